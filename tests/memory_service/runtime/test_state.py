"""Direct tests of the fold; that it is a fold whatever the records are, `tests/properties` hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from memory_service.compaction.record import Compaction, Head, PinRecord
from memory_service.messages.sizes import Usage
from memory_service.runtime.session import SessionState, _extend_state, chain_of
from memory_service.sessions.records import (
    Body,
    FlushRecord,
    Keyed,
    Learned,
    Media,
    MessageRecord,
    Pending,
    Record,
    SessionHeader,
    Undo,
    Unknown,
    Unpin,
)


def records(*bodies: Body, first: int = 1) -> list[Record]:
    return [Record(seq=seq, ts=f"t{seq}", kind="", body=body) for seq, body in enumerate(bodies, first)]


def state_of(*bodies: Body) -> SessionState:
    return _extend_state(SessionState(), records(*bodies))


def say(role: str, text: object, **more: object) -> MessageRecord:
    return MessageRecord(text=json.dumps({"role": role, "content": text, **more}, ensure_ascii=False))


def compaction(
    base: int | None, tail_start: int, summary: Sequence[str | tuple[int, int]] = ("摘要",), **more: object
) -> Compaction:
    made = Compaction(
        base=base, upto=tail_start, tail_start=tail_start, summary=tuple(summary), stage="summary",
        tokens_before=100, tokens_after=10,
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


TALK = (
    SessionHeader(session_id="s"),
    say("user", "部署在 /srv/app/deploy.sh"),
    say("assistant", "好"),
    say("user", "下一步"),
)


def test_nothing_comes_to_nothing() -> None:
    assert _extend_state(SessionState(), []) == SessionState()
    assert SessionState().message(1) is None and SessionState().since(0) == ()


def test_messages_keep_their_numbers_and_the_last_header_counts() -> None:
    state = state_of(*TALK, SessionHeader(session_id="s", model="gpt-4o", context_window=9))
    assert [each.seq for each in state.messages] == [2, 3, 4]
    assert state.header is not None and state.header.context_window == 9
    assert (state.last_seq, state.last_at) == (5, "t5")
    found = state.message(3)
    assert found is not None and found.message["content"] == "好" and found.at == "t3"
    assert state.message(1) is None
    assert [each.seq for each in state.since(3)] == [3, 4] and [each.seq for each in state.between(2, 3)] == [2, 3]


def test_one_message_of_anthropic_may_be_several_that_share_a_number() -> None:
    blocks = [{"type": "tool_result", "tool_use_id": "a", "content": "1"}, {"type": "text", "text": "接着呢？"}]
    calls = [{"type": "tool_use", "id": "a", "name": "run", "input": {}}]
    state = state_of(say("user", "x"), say("assistant", calls), say("user", blocks))
    assert [(each.seq, each.message["role"]) for each in state.messages] == [
        (1, "user"), (2, "assistant"), (3, "tool"), (3, "user"),
    ]  # fmt: skip
    assert len(state.between(3, 3)) == 2 and len(state.since(3)) == 2


@pytest.mark.parametrize("text", ["{", "[]", '"x"', "[" * 100_000])
def test_what_cannot_be_read_is_counted_and_left_out(text: str) -> None:
    state = state_of(say("user", "x"), MessageRecord(text=text), say("assistant", "y"))
    assert state.unreadable == 1 and [each.seq for each in state.messages] == [1, 3] and state.last_seq == 3


def test_records_of_a_newer_version_change_nothing_else() -> None:
    before = state_of(*TALK)
    after = _extend_state(before, records(Unknown(kind="later", text="{}"), first=5))
    assert replace(after, last_seq=4, last_at="t4") == before and after.last_seq == 5


def test_media_belong_to_their_message() -> None:
    medium = Media(mime="image/png", size_bytes=3, handle="log:1#1")
    assert state_of(MessageRecord(text='{"role": "user", "content": "x"}', media=(medium,))).media == {1: (medium,)}


def test_a_compaction_becomes_the_head_and_gathers_a_ledger() -> None:
    state = state_of(*TALK, compaction(None, 4, cleared={3: "[gone]"}, stripped=(2,), role="assistant"))
    head = state.head
    assert (head.seq, head.base, head.tail_start, head.summary, head.rounds) == (5, None, 4, "摘要", 1)
    assert head.cleared == {3: "[gone]"} and head.stripped == {2}
    assert (head.role, state.changed_seq) == ("assistant", 5)
    assert any(entry.text == "/srv/app/deploy.sh" and entry.seqs == [2] for entry in head.ledger)
    assert [past.seq for past in state.compactions] == [5] and state.compactions[0].active


def test_the_next_one_changes_the_summary_before_it_and_begins_at_its_tail() -> None:
    state = state_of(
        *TALK,
        compaction(None, 3, ("一\n二\n三",), cleared={2: "a"}),
        say("assistant", "看 https://example.net/wiki/42"),
        say("user", "y"),
        compaction(5, 7, ((0, 0), (2, 2), "四"), cleared={6: "b"}),
    )
    assert state.head.summary == "一\n三\n四" and state.head.rounds == 2
    assert state.head.cleared == {2: "a", 6: "b"}
    assert {entry.text for entry in state.head.ledger} >= {"/srv/app/deploy.sh", "https://example.net/wiki/42"}
    assert chain_of(state.heads, state.head) == [8, 5]


def test_pruning_leaves_summary_and_tail_as_they_were() -> None:
    state = state_of(*TALK, compaction(None, 3), compaction(5, 99, ("never",), stage="prune", cleared={4: "x"}))
    assert (state.head.seq, state.head.tail_start, state.head.summary, state.head.rounds) == (6, 3, "摘要", 1)
    assert state.head.cleared == {4: "x"}


def test_an_undo_goes_back_and_takes_all_that_was_built_on_it() -> None:
    state = state_of(*TALK, compaction(None, 3), compaction(5, 4, ("later",)), Undo(compaction=5))
    assert state.head == Head() and state.changed_seq == 7
    assert [past.active for past in state.compactions] == [False, False]
    again = _extend_state(state, records(compaction(None, 4, ("anew",)), first=8))
    assert again.head.summary == "anew" and [past.active for past in again.compactions] == [False, False, True]


@pytest.mark.parametrize("which", [5, 99])
def test_what_does_not_count_is_not_undone_again(which: int) -> None:
    before = state_of(*TALK, compaction(None, 3), Undo(compaction=5), compaction(None, 4))
    after = _extend_state(before, records(Undo(compaction=which), first=8))
    assert after.head is before.head and after.changed_seq == before.changed_seq


def test_pins_come_and_go() -> None:
    state = state_of(
        PinRecord(pin_id="a", text="甲"),
        PinRecord(pin_id="b", target=2),
        PinRecord(pin_id="a", text="乙"),
        Unpin(pin_id="x"),
    )
    assert [(pin.pin_id, pin.text, pin.target) for pin in state.pins] == [("b", None, 2), ("a", "乙", None)]
    assert _extend_state(state, records(Unpin(pin_id="b"), first=5)).pins == (PinRecord(pin_id="a", text="乙"),)


def test_flushes_count_by_rounds_and_none_is_never() -> None:
    state = state_of(*TALK)
    assert (state.flushed_to, state.flushed_round) == (0, None)
    state = _extend_state(state, records(FlushRecord(from_seq=2, to_seq=4), FlushRecord(from_seq=2, to_seq=3), first=5))
    assert (state.flushed_to, state.flushed_round) == (4, 0)
    state = _extend_state(state, records(compaction(None, 4), FlushRecord(from_seq=5, to_seq=7), first=7))
    assert (state.flushed_to, state.flushed_round) == (7, 1)


def test_the_last_sixteen_counts_are_kept_wherever_they_stand() -> None:
    state = state_of(*[Usage(input_tokens=number) for number in range(20)])
    assert [counted.usage.input_tokens for counted in state.usages] == list(range(4, 20))
    with_usage = state_of(MessageRecord(text='{"role": "assistant", "content": "x"}', usage=Usage(input_tokens=7)))
    assert [counted.usage.input_tokens for counted in with_usage.usages] == [7]


def test_keys_name_the_messages_before_them_and_the_oldest_go() -> None:
    state = state_of(say("user", "x"), say("user", "y"), Keyed(key="k", messages=2, content="c"))
    assert state.keys == {"k": (1, 2, "c")}
    many = _extend_state(state, records(*[Keyed(key=str(at), messages=0, content="") for at in range(1_000)], first=4))
    assert len(many.keys) == 1_000 and "k" not in many.keys


def test_the_rest_is_kept_as_told() -> None:
    state = state_of(Pending(call_ids=("a",)), Pending(call_ids=("b",)), Learned(context_window=8_000, model="m"))
    assert state.pending == {"a", "b"} and state.learned is not None and state.learned.context_window == 8_000


def test_a_state_never_changes() -> None:
    before = state_of(*TALK, compaction(None, 3))
    kept: Mapping[str, object] = {name: getattr(before, name) for name in SessionState.__slots__}
    _extend_state(before, records(say("user", "z"), Undo(compaction=5), PinRecord(pin_id="p", text="t"), first=6))
    assert {name: getattr(before, name) for name in SessionState.__slots__} == kept and len(before.messages) == 3
