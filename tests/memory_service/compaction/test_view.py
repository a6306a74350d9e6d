"""Direct tests of the view; that nothing falls between and all is valid, `tests/properties` hold."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from memory_service.compaction.prune_steps import GuardRules
from memory_service.compaction.record import Compaction, Head, PinRecord
from memory_service.compaction.view import ViewShape, checkpoint_of, extend_view, pin_texts, project, tail_of, with_head
from memory_service.messages.shapes import Message, text_of
from memory_service.messages.sizes import message_tokens
from memory_service.messages.writing import to_openai
from memory_service.runtime.session import SessionState, _extend_state
from memory_service.sessions.records import Body, MessageRecord, Record
from tests.memory_service.rooms import calls, image, result, says, system, user, words
from tests.wire import problems

SHAPE = ViewShape(window_tokens=8_000)


def session(*said: dict[str, Any], then: tuple[Body, ...] = ()) -> SessionState:
    bodies: list[Body] = [MessageRecord(text=json.dumps(each, ensure_ascii=False)) for each in said]
    return _extend_state(
        SessionState(), [Record(seq=seq, ts="", kind="", body=body) for seq, body in enumerate((*bodies, *then), 1)]
    )


def compacted(tail_start: int, summary: str = "## Goal\n- 备份", **more: Any) -> Compaction:
    given: dict[str, Any] = {"base": None, "stage": "summary", "upto": 99, "tokens_before": 9, "tokens_after": 1}
    return Compaction(tail_start=tail_start, summary=(summary,), **{**given, **more})


def shown(state: SessionState, shape: ViewShape = SHAPE) -> list[str]:
    return [text_of(message) for message in project(state, shape).messages]


def test_without_a_compaction_all_is_shown_as_it_was_said() -> None:
    said = [system("You are 助手."), user("hi"), calls("a"), result("a", "ok"), says("done")]
    view = project(session(*said), SHAPE)
    assert to_openai(view.messages) == said
    assert (view.lead, view.first_seq, view.last_seq, view.seqs) == (1, 2, 5, (2, 3, 4, 5))
    assert view.tokens == sum(map(message_tokens, view.messages)) == view.view_sizes.tokens and view.repairs == ()


def test_an_empty_session_has_an_empty_view() -> None:
    view = project(SessionState(), SHAPE)
    assert (view.messages, view.tokens, view.first_seq) == ((), 0, 1)


def test_a_compaction_puts_its_summary_between_system_and_tail() -> None:
    state = session(system("sys"), user("one"), says("two"), user("three"), then=(compacted(4),))
    view = project(state, SHAPE)
    assert [message["role"] for message in view.messages] == ["system", "user", "user"]
    assert "- 备份" in text_of(view.messages[1]) and text_of(view.messages[2]) == "three"
    assert (view.lead, view.first_seq, view.seqs) == (2, 4, (4,))
    assert view.tail == tail_of(state, SHAPE) and [each.seq for each in view.tail] == [4]
    assert view.summary_tokens == message_tokens(view.messages[1]) and view.system_tokens == 5
    assert "current-request" not in text_of(view.messages[1])


def test_the_last_request_stands_in_the_checkpoint_if_it_is_covered() -> None:
    state = session(
        user("最后的请求"), calls("a"), result("a", "1"), calls("b"), result("b", "2"), then=(compacted(4),)
    )
    texts = shown(state)
    assert '<current-request handle="log:1">\n最后的请求\n</current-request>' in texts[0]
    later = session(user("旧"), says("x"), user("新的请求"), then=(compacted(3),))
    assert "current-request" not in shown(later)[0]


def test_a_long_request_is_shortened_with_its_handle() -> None:
    state = session(user("开始 " + words(2_000) + " 结束"), says("x"), then=(compacted(2),))
    request = checkpoint_of(state, ViewShape(window_tokens=8_000, request_chars=400)).request
    assert request.startswith("开始") and request.endswith("结束") and "log:1" in request and len(request) < 500


def test_pictures_alone_are_no_request() -> None:
    state = session(user("问题"), image(""), says("x"), then=(compacted(3),))
    assert checkpoint_of(state, SHAPE).request == "问题"


def test_pins_stand_word_for_word_and_once() -> None:
    pins: tuple[Body, ...] = (
        PinRecord(pin_id="a", text="绝不在周五部署"),
        PinRecord(pin_id="b", target=1),
        PinRecord(pin_id="c", target=77),
    )
    plain = session(user("Rule: ask first."), says("ok"), user("go"), then=pins)
    assert pin_texts(plain) == [("绝不在周五部署", None), ("Rule: ask first.", 1)]
    # The message still stands in the view itself.
    assert "绝不在周五部署" in shown(plain)[0] and "Rule" not in shown(plain)[0]
    after = session(user("Rule: ask first."), says("ok"), user("go"), then=(*pins, compacted(3)))
    assert "- 绝不在周五部署\n- (log:1) Rule: ask first." in shown(after)[0]


def test_stubs_and_labels_stand_where_steps_put_them_but_not_for_pins() -> None:
    said = [user("x"), calls("a"), result("a", "long " * 90), calls("b"), result("b", "kept"), image("看"), says("y")]
    made = compacted(0, stage="prune", cleared={3: "[stub log:3]", 5: "[stub log:5]"}, stripped=(6,))
    state = session(*said, then=(made, PinRecord(pin_id="p", target=5)))
    texts = shown(state)
    assert texts[2] == "[stub log:3]" and texts[4] == "kept"
    assert "image/png" in texts[5] and "aGVsbG8" not in json.dumps(to_openai(project(state, SHAPE).messages))


def test_a_result_over_its_share_is_guarded() -> None:
    state = session(user("x"), calls("a"), result("a", words(6_000)), says("y"))
    view = project(state, ViewShape(window_tokens=8_000, guard=GuardRules(share=0.1)))
    assert view.tokens < 1_200 and "log:3" in text_of(view.messages[2])
    assert project(state, SHAPE).tokens > view.tokens


def test_thinking_older_than_a_compaction_is_left_out() -> None:
    def thinks(text: str) -> dict[str, Any]:
        return {
            "role": "assistant",
            "content": text,
            "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
        }

    said = [user("a"), thinks("b"), user("c"), thinks("d"), user("e"), thinks("f")]
    before = project(session(*said), SHAPE).messages
    assert sum("thinking_blocks" in message for message in before) == 3
    after = project(session(*said, then=(compacted(3, upto=6),)), SHAPE).messages
    assert [text_of(message) for message in after if "thinking_blocks" in message] == ["f"]


def test_system_messages_among_the_others_move_up_when_what_they_stood_among_is_compacted() -> None:
    said = [system("first"), user("a"), says("b"), system("later"), user("c")]
    plain, after = project(session(*said), SHAPE), project(session(*said, then=(compacted(5),)), SHAPE)
    assert (plain.lead, after.lead) == (1, 3)
    assert [text_of(each) for each in after.messages[:2]] == ["first", "later"]


@pytest.mark.parametrize("summary", ["A summary.", "一段摘要。"])
def test_what_comes_out_is_valid_even_if_the_log_is_not(summary: str) -> None:
    said = [result("gone", "orphan"), says("first"), calls("a", "b"), result("a", "1"), user("x"), says("y")]
    for then in ((), (compacted(3, summary),), (compacted(4, summary),), (compacted(3, summary, role="assistant"),)):
        view = project(session(*said, then=then), SHAPE)
        assert problems(to_openai(view.messages), "openai") == [] and view.repairs
        assert view.tokens == sum(map(message_tokens, view.messages))


def test_the_same_state_gives_the_same_bytes() -> None:
    state = session(user("a"), says("b"), user("c"), then=(compacted(3), PinRecord(pin_id="p", text="钉")))
    assert json.dumps(project(state, SHAPE).messages) == json.dumps(project(state, SHAPE).messages)


def test_a_gauge_grows_as_the_view_does() -> None:
    said = [user("a"), calls("x"), result("x", words(4_000)), says("好"), user("c"), says(words(40))]
    shape = ViewShape(window_tokens=8_000, guard=GuardRules(share=0.05))
    before, after = session(*said[:2]), session(*said)
    assert extend_view(project(before, shape).view_sizes, after.messages[2:], shape) == project(after, shape).view_sizes


def test_originals_bring_media_back() -> None:
    state = session(user("note 图"), says("x"))
    whole = cast(Message, image("图"))
    view = project(state, SHAPE, originals={1: (whole,)})
    assert view.messages[0] == whole and view.sizes[0] > 1_600
    assert tail_of(state, SHAPE, originals={1: (whole,)})[0].message == whole


def test_another_head_can_be_tried() -> None:
    state = session(user("a"), says("b"), user("c"))
    tried = project(with_head(state, Head(seq=9, tail_start=3, summary="S", rounds=1, upto=3)), SHAPE)
    assert tried.seqs == (3,) and "S" in text_of(tried.messages[0]) and state.head == Head()
