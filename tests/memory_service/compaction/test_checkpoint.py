from __future__ import annotations

import pytest

from memory_service.compaction.checkpoint import (
    Checkpoint,
    _checkpoint_text,
    checkpoint_messages,
    frame_tokens,
    is_checkpoint,
    pinned_texts,
    shorten_text,
)
from memory_service.messages.sizes import count_tokens, quarters
from tests.growth import at_most_readings

FULL = Checkpoint(
    summary="## Goal\n- 备份\n", ledger="- path: /srv/app", pins=("- 周五绝不部署",), request="下一步？", request_seq=12
)


def test_nothing_to_say_is_no_message() -> None:
    assert _checkpoint_text(Checkpoint()) == "" and checkpoint_messages(Checkpoint()) == []


def test_its_parts_stand_in_their_order_within_tags() -> None:
    text = _checkpoint_text(FULL)
    parts = (
        "not instructions", "<summary>\n## Goal\n- 备份\n</summary>", "<ledger>\n- path: /srv/app\n</ledger>",
        "<pinned>\n- 周五绝不部署\n</pinned>", '<current-request handle="log:12">\n下一步？\n</current-request>',
        "[End of checkpoint]",
    )  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert checkpoint_messages(FULL) == [{"role": "user", "content": text}]


def test_parts_that_are_missing_leave_no_empty_tags() -> None:
    text = _checkpoint_text(Checkpoint(summary="S"))
    assert "<ledger>" not in text and "<pinned>" not in text and "current-request" not in text


def test_pins_alone_are_no_record_of_a_compaction() -> None:
    text = _checkpoint_text(Checkpoint(pins=("- a", "- 乙")))
    assert "compacted" not in text and "<pinned>\n- a\n- 乙\n</pinned>" in text


def test_the_assistant_says_it_in_another_systems_words() -> None:
    (message,) = checkpoint_messages(Checkpoint(summary="S", role="assistant"))
    assert message["role"] == "assistant" and str(message["content"]).startswith("[COMPACTED_CONTEXT]\n")


@pytest.mark.parametrize("made", [FULL, Checkpoint(pins=("- a",)), Checkpoint(summary="S", role="assistant")])
def test_it_is_known_again(made: Checkpoint) -> None:
    assert is_checkpoint(_checkpoint_text(made))
    assert not is_checkpoint(f"He said: {_checkpoint_text(made)}") and not is_checkpoint("")


@pytest.mark.parametrize("text", ["x" * 5_000, "备" * 5_000, "x备" * 2_500, "x" * 2_000 + "备" * 2_000])
@pytest.mark.parametrize("limit", [4, 100, 1_000, 4_000])
def test_a_long_text_keeps_its_ends(text: str, limit: int) -> None:
    short = shorten_text(text, limit, "log:7")
    head, _, rest = short.partition("\n[… ")
    notice, _, tail = rest.partition(" …]\n")
    assert text.startswith(head) and text.endswith(tail) and "log:7" in notice
    assert int(notice.split()[0]) == len(text) - len(head) - len(tail)
    assert quarters(head) + quarters(tail) <= limit
    if limit >= 100:
        assert quarters(head) > quarters(tail) > 0


@pytest.mark.parametrize("text", ["", "short", "短" * 25])
def test_a_short_text_stays(text: str) -> None:
    assert shorten_text(text, 100, "log:1") == text


def test_a_megabyte_takes_no_time() -> None:
    with at_most_readings(500):
        shorten_text("备x" * 1_000_000, 500_000, "log:1")


def test_the_frame_is_what_a_checkpoint_takes_beside_its_parts() -> None:
    parts = count_tokens("S" * 400) + count_tokens("L" * 400) + count_tokens("R" * 400)
    whole = count_tokens(
        _checkpoint_text(Checkpoint(summary="S" * 400, ledger="L" * 400, request="R" * 400, request_seq=9))
    )
    assert parts < whole <= parts + frame_tokens()


def test_pins_of_messages_have_their_handles() -> None:
    assert pinned_texts([("甲", None), ("b", 3)]) == ("- 甲", "- (log:3) b")
