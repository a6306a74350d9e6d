from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from memory_service.compaction.checkpoint import is_checkpoint
from memory_service.errors import Conflict, Incompressible, InvalidName, InvalidRequest, NotFound
from memory_service.memories.block_text import is_block
from memory_service.messages.shapes import text_of
from memory_service.messages.sizes import Usage
from memory_service.runtime.session_store import MAX_PINS
from memory_service.schemas.messages import MAX_PIN_CHARS
from tests.memory_service.rooms import Room, S, calls, image, result, says, system, user, words

Rooms = Callable[..., Room]


def test_a_session_is_begun_with_what_is_set_for_it(room: Room) -> None:
    made = room.sessions.store.create(
        S, model="gpt-4o", context_window=32_000, settings={"compaction": {"preset": "turns"}}
    )
    assert (made.session_id, made.model, made.preset, made.messages, made.pressure) == (S, "gpt-4o", "turns", 0, "ok")
    assert (made.context_window.tokens, made.context_window.source) == (32_000, "session")
    with pytest.raises(Conflict):
        room.sessions.store.create(S)


def test_without_an_id_it_gets_one(room: Room) -> None:
    one, two = room.sessions.store.create(None), room.sessions.store.create(None)
    assert one.session_id != two.session_id
    assert {each.session_id for each in room.sessions.store.list_sessions()} == {one.session_id, two.session_id}


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "会话", "x" * 129, "a\n"])
def test_a_name_never_leaves_its_folder(room: Room, name: str) -> None:
    with pytest.raises((InvalidName, NotFound)):
        room.sessions.store.summary(name)
    if name:
        with pytest.raises(InvalidName):
            room.sessions.append(name, [user("x")])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"nothing": {}}, "no setting 'nothing'"),
        ({"compaction": 3}, "no object"),
        ({"compaction": {"preset": "best"}}, "compaction.preset"),
        ({"pruning": {"ttl_seconds": -1}}, "pruning.ttl_seconds"),
        ({"flush": {"later": True}}, "flush.later"),
    ],
)
def test_a_setting_that_cannot_be_used_is_an_error_when_it_is_set(room: Room, settings: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said.replace("'", ".")):
        room.sessions.store.create(S, settings=settings)
    assert room.sessions.store.list_sessions() == []
    room.say(user("x"))
    before = room.bytes()
    with pytest.raises(InvalidRequest):
        room.sessions.store.update(S, {"settings": settings})
    assert room.bytes() == before


def test_what_is_not_named_stays_when_settings_change(room: Room) -> None:
    room.sessions.store.create(S, model="gpt-4o", settings={"flush": {"mode": "off"}})
    made = room.sessions.store.update(S, {"context_window": 16_000})
    assert (made.model, made.context_window.tokens, made.settings) == ("gpt-4o", 16_000, {"flush": {"mode": "off"}})


def test_an_append_begins_the_session_and_tells_its_place(room: Room) -> None:
    made = room.sessions.append(S, [system("sys"), user("一"), says("two")])
    assert (made.first_seq, made.last_seq, made.pressure, made.source, made.replayed) == (2, 4, "ok", "estimate", False)
    assert made.tokens == room.view_tokens() and made.degraded == []
    assert room.sessions.append(S, [user("x")]).first_seq == 5


def test_pressure_rises_from_soft_to_hard(room: Room) -> None:
    seen = [room.sessions.append(S, [user(words(100)), says(words(100))]).pressure for _ in range(30)]
    assert seen == sorted(seen, key=["ok", "soft", "hard"].index) and {"ok", "soft", "hard"} == set(seen)


@pytest.mark.parametrize(
    "bad",
    [
        [],
        [3],
        ["text"],
        [{"role": "", "content": "x"}],
        [{"content": "x"}],
        [user("fine"), {"role": "user", "content": 3}],
    ],
)
def test_a_batch_is_refused_as_a_whole(room: Room, bad: list[object]) -> None:
    room.say(user("before"))
    before = room.bytes()
    with pytest.raises(InvalidRequest):
        room.sessions.append(S, bad)
    assert room.bytes() == before


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_refused(room: Room, number: float) -> None:
    with pytest.raises(InvalidRequest, match="NaN"):
        room.sessions.append(S, [{"role": "user", "content": "x", "metadata": number}])


def test_what_was_said_is_kept_as_it_came(room: Room) -> None:
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "表情 😀 and\u2028lines", "name": "阿里", "x-own": {"b": 1, "a": [1.5, None]}},
        {
            "role": "user",
            "content": [{"type": "text", "text": "看"}, {"type": "tool_result", "tool_use_id": "?", "content": "1"}],
        },
        image("大图", payload="QUJD" * 9_000),
    ]
    room.say(*said)
    assert room.raw_log() == said
    store = room.sessions.store
    assert json.loads(store.message(S, 2)) == said[0]
    assert store.medium(S, 4, 1) == (b"ABC" * 9_000, "image/png")
    with pytest.raises(NotFound):
        store.message(S, 99)
    with pytest.raises(NotFound):
        store.medium(S, 2, 1)


def test_the_log_is_read_in_pieces(room: Room) -> None:
    room.talk(3)
    part = room.sessions.store.log_view(S, since_seq=3, limit=2)
    assert part.seqs == [4, 5] and part.messages[0] == room.raw_log()[2]


def test_a_key_makes_an_append_happen_once(rooms: Rooms) -> None:
    room = rooms(context_window=8_000)
    said = [user("只一次"), says("ok")]
    first = room.sessions.append(S, said, key="k", usage=Usage(input_tokens=10))
    room.say(user("between"))
    again = room.sessions.append(S, said, key="k", usage=Usage(input_tokens=10))
    assert (again.first_seq, again.last_seq, again.replayed) == (first.first_seq, first.last_seq, True)
    other = rooms(context_window=8_000)
    assert other.sessions.append(S, said, key="k").replayed, "another process knows it too"
    assert len(room.raw_log()) == 3
    with pytest.raises(Conflict, match="another request"):
        room.sessions.append(S, [user("else")], key="k")


def test_what_the_service_put_into_a_prompt_is_not_taken_for_something_said(room: Room) -> None:
    room.say(user("The deploy of billing runs on Tuesdays."), says("ok"))
    room.talk(30, 100)
    room.sessions.store.pin(S, text="周五绝不部署")
    room.compact(force=True)
    made = room.context(query="when does billing deploy?", recall="always", system_prompt="You are 助手.")
    sent = [dict(message) for message in made.prompt.messages]
    ours = [message for message in sent if is_checkpoint(str(message["content"])) or is_block(str(message["content"]))]
    assert len(ours) == 2, "a checkpoint and a block of memories"
    before = len(room.raw_log())
    appended = room.sessions.append(S, [*ours, user("New question.")])
    assert len(room.raw_log()) == before + 1 and "2 were put into the prompt" in appended.degraded[0]
    last = room.sessions.append(S, ours)
    assert last.first_seq == last.last_seq + 1 and len(room.raw_log()) == before + 1


def test_pins_are_kept_once_and_go(room: Room) -> None:
    room.say(user("Rule: 先问再做。"), says("ok"))
    store = room.sessions.store
    one, same = store.pin(S, text="周五绝不部署"), store.pin(S, text="周五绝不部署")
    two = store.pin(S, seq=2)
    assert one.pin_id == same.pin_id and [pin.pin_id for pin in store.pins(S)] == [one.pin_id, two.pin_id]
    assert (two.text, two.seq) == ("Rule: 先问再做。", 2)
    store.unpin(S, one.pin_id)
    assert [pin.text for pin in store.pins(S)] == ["Rule: 先问再做。"]
    with pytest.raises(NotFound):
        store.unpin(S, one.pin_id)


@pytest.mark.parametrize(
    "given", [{}, {"text": "a", "seq": 2}, {"text": " "}, {"text": "长" * (MAX_PIN_CHARS + 1)}, {"seq": 3}]
)
def test_a_pin_that_cannot_be_kept_is_refused(room: Room, given: Any) -> None:
    room.say(user("x"), calls("a"), result("a", "1"))
    before = room.bytes()
    with pytest.raises(InvalidRequest):
        room.sessions.store.pin(S, **given)
    assert room.bytes() == before


def test_there_are_not_too_many_pins(room: Room) -> None:
    for number in range(MAX_PINS):
        room.sessions.store.pin(S, text=f"pin {number}")
    with pytest.raises(InvalidRequest, match="most"):
        room.sessions.store.pin(S, text="one more")
    with pytest.raises(NotFound):
        room.sessions.store.pin(S + "x", seq=1)


@pytest.mark.parametrize("wire", ["openai", "anthropic", "mistral"])
def test_the_model_view_goes_over_each_wire(room: Room, wire: Any) -> None:
    room.say(system("sys"), user("问"), calls("call_1"), result("call_1", "ok"), says("done"))
    sent = room.sessions.store.model_view(S, wire=wire)
    assert "问" in json.dumps(sent.messages, ensure_ascii=False)
    assert bool(sent.system) is (wire == "anthropic")


def test_late_results_are_waited_for(room: Room) -> None:
    room.say(user("x"), calls("slow"), user("meanwhile"), says("y"))
    room.sessions.store.await_results(S, ["slow"])
    assert room.sessions.snapshot(S).state.pending == {"slow"}
    with pytest.raises(InvalidRequest):
        room.sessions.store.await_results(S, [])


def test_a_branch_is_named_and_the_same_again_gives_it(rooms: Rooms) -> None:
    room = rooms()
    room.say(user("one"), says("two"), user("three"))
    store = room.sessions.store
    seqs = store.log_view(S).seqs or []
    room.sessions.store.pin(S, text="Never.")
    made = store.branch(S, seqs[1])
    assert (made.session_id, made.messages, made.pins) == (f"{S}.branch-{seqs[1]}", 2, 0)
    titled = store.branch(S, seqs[1], title=" 换一种做法 ")
    assert titled.session_id.startswith(f"{S}.branch-session-") and titled.title == "换一种做法"
    room.sessions.append(titled.session_id, [user("four")])
    room.sessions.append(S, [user("five")])
    # What both have is the same, whatever each went on with.
    again = store.branch(S, seqs[1], title="换一种做法")
    assert (again.session_id, again.messages) == (titled.session_id, 3)
    deeper = store.branch(titled.session_id, seqs[0])
    assert (deeper.session_id, deeper.title) == (f"{S}.branch-{seqs[0]}", titled.title)
    named = store.branch(S, seqs[2], branch_id="other")
    assert [each["content"] for each in store.log_view("other").messages] == ["one", "two", "three"]
    assert store.branch(S, seqs[2], branch_id="other") == named
    before = {each.session_id for each in store.list_sessions()}
    for seq, name in ((seqs[0], "other"), (seqs[2], titled.session_id), (seqs[0], S)):
        with pytest.raises(Conflict, match="another"):
            store.branch(S, seq, branch_id=name)
    for seq in (999, 1):
        with pytest.raises(NotFound):
            store.branch(S, seq)
    with pytest.raises(InvalidName):
        store.branch(S, seqs[0], branch_id="a/b")
    with pytest.raises(NotFound):
        store.branch("nobody", 2)
    long_name = "x" * 128
    room.sessions.append(long_name, [user("x")])
    assert len(store.branch(long_name, 2).session_id) == 128
    assert {each.session_id for each in store.list_sessions()} - before == {long_name, f"{long_name[:119]}.branch-2"}


def test_a_trim_can_be_taken_back(room: Room) -> None:
    room.talk(5)
    before, view = room.raw_log(), room.view()
    backup = room.sessions.store.trim(S, 4)
    assert room.raw_log() == before[-4:] and backup
    assert text_of(room.view()[0]).startswith("Question 3")
    room.sessions.store.restore(S)
    assert room.raw_log() == before and room.view() == view


def test_a_trim_takes_the_provider_s_count_with_it(room: Room) -> None:
    room.talk(30, 100)
    room.say(says("ok"), usage=Usage(input_tokens=50_000, output_tokens=60))
    room.talk(3, 100, first=30)
    assert room.sessions.store.summary(S).tokens > 50_000
    room.sessions.store.trim(S, 6)
    after = room.sessions.store.summary(S)
    assert after.tokens < 1_000 and after.pressure == "ok"
    assert abs(after.tokens - room.context(memory_budget_tokens=0).prompt.tokens.total) <= 8


def test_a_session_is_erased_from_disk_and_index(room: Room) -> None:
    room.say(user("The secret word is 枇杷膏."), says("ok"))
    assert room.sessions.store.delete(S).degraded == []
    assert not room.log.exists() and room.sessions.store.list_sessions() == []
    assert not room.service.search("default", "枇杷膏").results
    with pytest.raises(NotFound):
        room.sessions.store.summary(S)
    room.say(user("anew"))
    assert len(room.raw_log()) == 1


def test_a_window_that_is_too_small_is_told_and_takes_messages(rooms: Rooms) -> None:
    room = rooms(context_window=512)
    made = room.sessions.append(S, [user("x")])
    assert made.pressure == "hard" and room.sessions.store.summary(S).context_window.problem == "refuse"
    with pytest.raises(InvalidRequest, match="below the 1,024"):
        room.context()


def test_settings_of_the_service_that_contradict_a_sessions_are_told_before_anything_is_appended(rooms: Rooms) -> None:
    own: dict[str, Any] = {"compaction": {"overrides": {"target_share": 0.7}}}
    before = rooms(context_window=8_000)
    before.sessions.store.create(S, settings=own)
    before.talk(3)
    before.service.close()
    now = rooms(context_window=8_000, compaction={"overrides": {"trigger_share": 0.6}})
    log = now.bytes()
    for _ in range(2):
        with pytest.raises(InvalidRequest, match="target_share"):
            now.talk(1, first=3)
    assert now.bytes() == log, "nothing is half done"
    now.sessions.store.update(S, {"settings": None})
    now.talk(1, first=3)
    assert len(now.raw_log()) == 8


@pytest.mark.parametrize("change", ["create", "update"])
def test_settings_that_leave_nothing_of_the_window_are_not_written(room: Room, change: str) -> None:
    own: dict[str, Any] = {"compaction": {"overrides": {"reserve_share": 1, "reserve_tokens": 9_000}}}
    if change == "update":
        room.talk(1)
        log = room.bytes()
        with pytest.raises(Incompressible):
            room.sessions.store.update(S, {"settings": own})
        assert room.bytes() == log
    else:
        with pytest.raises(Incompressible):
            room.sessions.store.create(S, settings=own)
        assert not room.log.exists()
