from __future__ import annotations

from typing import cast

import pytest

from memory_service.compaction.prune_steps import PriorPruning, pruned_view
from memory_service.compaction.pruning import media, media_bytes, media_to_bytes
from memory_service.messages.shapes import Message, Part, media_parts_of, text_of
from memory_service.messages.sizes import Numbered, number_message
from tests.memory_service.messages.test_repair import calls, says, user


def image(size_bytes: int = 1_000) -> Part:
    head = "data:image/png;base64,"
    return {"type": "image_url", "image_url": {"url": head + "A" * (size_bytes - len(head))}}


def holding(role: str, *parts: Part) -> Message:
    id_of_call = {"tool_call_id": "c"} if role == "tool" else {}
    content = [cast(Part, {"type": "text", "text": "看图"}), *parts]
    return cast(Message, {"role": role, "content": content, **id_of_call})


def view(*messages: Message) -> list[Numbered]:
    return [number_message(message, seq) for seq, message in enumerate(messages, start=1)]


STORY = view(
    holding("user", image(), image()),  # 1
    calls("c"),
    holding("tool", image()),  # 3
    says("ok"),
    holding("user", image()),  # 5
    calls("c"),
    holding("tool", image(5_000)),  # 7
    user("and?"),
)


def test_media_older_than_the_newest_of_the_user_give_way_to_labels() -> None:
    done = media(STORY)
    assert done.stripped == (1, 3)
    after = pruned_view(STORY, {}, done.stripped)
    assert text_of(after[0].message) == (
        "看图\n[Attached image/png: file; log:1#1]\n[Attached image/png: file; log:1#2]"
    )
    assert [each.seq for each in after if media_parts_of(each.message)] == [5, 7]
    assert done.tokens_after == sum(each.tokens for each in after)
    assert done.gain_tokens > 3 * 1_500


def test_what_only_tools_showed_stays_until_it_must_go() -> None:
    messages = view(user("look"), calls("c"), holding("tool", image()), says("ok"))
    assert media(messages).stripped == ()
    assert media(messages, hard=True).stripped == (3,)


def test_all_may_have_to_go_the_newest_too() -> None:
    assert media(STORY, hard=True).stripped == (1, 3, 5, 7)


def test_pins_stay_and_nothing_goes_twice() -> None:
    assert media(STORY, hard=True, prior=PriorPruning(protected={1, 5})).stripped == (3, 7)
    again = media(STORY, prior=PriorPruning().after(media(STORY)))
    assert (again.stripped, again.gain_tokens, again.notes) == ((), 0, ())


@pytest.mark.parametrize(
    ("limit", "stripped"),
    [(9_000, ()), (8_999, (1,)), (7_000, (1,)), (6_999, (1, 3)), (5_000, (1, 3, 5)), (0, (1, 3, 5, 7))],
)
def test_the_oldest_go_until_the_rest_is_small_enough(limit: int, stripped: tuple[int, ...]) -> None:
    assert media_bytes(STORY) == 9_000
    done = media_to_bytes(STORY, limit)
    assert done.stripped == stripped
    assert media_bytes(STORY, prior=PriorPruning().after(done)) <= limit


def test_what_is_only_referred_to_takes_no_bytes_and_stays() -> None:
    linked = view(holding("user", {"type": "image_url", "image_url": {"url": "https://h.test/图.png"}}))
    assert media_bytes(linked) == 0
    assert media_to_bytes(linked, 0).stripped == ()
