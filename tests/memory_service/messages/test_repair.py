from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.messages.repair import MISTRAL, Repaired, Rules, repair_messages
from memory_service.messages.shapes import Message, Part, ToolCall, is_system, is_tool_result, text_of, tool_calls_of
from memory_service.messages.units import REPAIR_TEXTS, units_of
from memory_service.messages.writing import to_mistral, to_openai
from memory_service.messages.writing_anthropic import to_anthropic
from tests.growth import assert_grows_at_most
from tests.wire import PROVIDERS, Provider, Wire, problems, to_litellm

TEXTS = REPAIR_TEXTS["en"]
MISSING, RUNNING = TEXTS.missing, TEXTS.running
FIRST_USER, AFTER_RESULT = TEXTS.first_user, TEXTS.after_result
IMAGE: Part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SCAN = cast(Part, {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}})
SIGNED = cast(Part, {"type": "thinking", "thinking": "hm", "signature": "c2ln"})
REDACTED = cast(Part, {"type": "redacted_thinking", "data": "eA=="})
UNSIGNED = cast(Part, {"type": "thinking", "thinking": "from elsewhere"})
IDS = ("a", "b", "c", "functions.run:0", "x" * 60, "")


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def says(text: str, **keys: Any) -> Message:
    return cast(Message, {"role": "assistant", "content": text, **keys})


def system(text: str) -> Message:
    return {"role": "system", "content": text}


def call(call_id: str, arguments: str = "{}") -> ToolCall:
    return {"id": call_id, "type": "function", "function": {"name": "run", "arguments": arguments}}


def calls(*ids: str, **keys: Any) -> Message:
    return cast(Message, {"role": "assistant", "content": None, "tool_calls": [call(each) for each in ids], **keys})


def result(call_id: str, text: str = "done", **keys: Any) -> Message:
    return cast(Message, {"role": "tool", "tool_call_id": call_id, "content": text, **keys})


def kinds(done: Repaired) -> list[str]:
    return [repair.kind for repair in done.repairs]


def wire(messages: Sequence[Message], provider: Provider) -> Sequence[Wire]:
    if provider == "anthropic":
        return to_anthropic(messages)[1]
    return {"openai": to_openai, "gemini": to_litellm, "mistral": to_mistral}[provider](messages)


def rules_of(provider: Provider) -> Rules:
    return MISTRAL if provider == "mistral" else Rules()


# -- Sequences of every kind --------------------------------------------------------------------------------------

words = st.integers(0, 999).map(lambda number: f"word{number:03}.")
blank = st.sampled_from(["", " ", "\n\t"])
texts = st.one_of(words, words, words, blank)
text_parts = texts.map(lambda text: cast(Part, {"type": "text", "text": text}))
contents = st.one_of(texts, st.lists(st.one_of(text_parts, st.sampled_from([IMAGE, SCAN])), max_size=3))
ids = st.sampled_from(IDS)
made_calls = st.builds(call, ids, st.sampled_from(["{}", '{"a": 1}', "", '{"cut": "of', "[1]", "NaN"]))
thoughts = st.lists(st.sampled_from([SIGNED, REDACTED, UNSIGNED]), min_size=1, max_size=2)
flags = st.fixed_dictionaries({}, optional={"is_error": st.booleans(), "interim": st.booleans()})


@st.composite
def assistants(draw: st.DrawFn) -> Message:
    message: dict[str, Any] = {"role": "assistant", "content": draw(st.one_of(st.none(), texts, st.lists(text_parts)))}
    if draw(st.booleans()):
        message["tool_calls"] = draw(st.lists(made_calls, max_size=3))
    if draw(st.integers(0, 2)) == 0:
        message["thinking_blocks"] = draw(thoughts)
        message["block_order"] = draw(st.lists(st.sampled_from(["thinking", "content"]), max_size=3))
    if draw(st.integers(0, 6)) == 0:
        message |= {"content": None, "refusal": draw(words)}
    return cast(Message, message)


@st.composite
def results(draw: st.DrawFn) -> Message:
    message = {"role": "tool", "tool_call_id": draw(ids), "content": draw(contents), **draw(flags)}
    if draw(st.integers(0, 9)) == 0:
        told = [text for texts in REPAIR_TEXTS.values() for text in (texts.missing, texts.running)]
        message["content"] = draw(st.sampled_from(told))
    return cast(Message, message)


plain = st.builds(
    lambda role, content: cast(Message, {"role": role, "content": content}),
    st.sampled_from(["user", "user", "user", "system", "developer"]),
    contents,
)


@st.composite
def rounds(draw: st.DrawFn) -> list[Message]:
    """A message with calls and results that are missing, doubled, in any order, and have others between them."""
    asked = draw(assistants())
    answers = [draw(results()) for _ in tool_calls_of(asked)]
    for each, answer in zip(tool_calls_of(asked), answers, strict=True):
        answer["tool_call_id"] = each["id"]
    behind = draw(st.lists(st.one_of(st.sampled_from(answers or [user("so")]), results(), plain), max_size=3))
    return [asked, *draw(st.permutations([*answers, *behind]))]


sequences = st.one_of(
    st.lists(st.one_of(plain, assistants(), results()), max_size=12),
    st.lists(st.one_of(rounds(), plain.map(lambda message: [message])), max_size=6).map(
        lambda lists: [*chain.from_iterable(lists)]
    ),
)
pendings = st.sets(ids, max_size=2)


@st.composite
def valid_sequences(draw: st.DrawFn) -> list[Message]:
    """Conversations as they should be, valid everywhere."""
    made: list[Message] = [system(draw(words)) for _ in range(draw(st.integers(0, 2)))]
    for turn in range(draw(st.integers(1, 4))):
        made.append({"role": "user", "content": draw(words)})
        for step in range(draw(st.integers(0, 3))):
            names = [f"call{turn}{step}{which}ok" for which in range(draw(st.integers(1, 3)))]
            thinks = {"thinking_blocks": [SIGNED]} if draw(st.booleans()) else {}
            made += [calls(*names, **thinks), *(result(name, draw(words)) for name in names)]
        made.append(says(draw(words), **({"thinking_blocks": [SIGNED]} if made[-1]["role"] != "assistant" else {})))
    if draw(st.booleans()):
        made += [user("more"), calls("open00001", "open00002"), *([result("open00001")] if draw(st.booleans()) else [])]
    return made


# -- Properties ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=100)
@given(messages=sequences, pending=pendings)
def test_no_provider_refuses_what_was_repaired(provider: Provider, messages: list[Message], pending: set[str]) -> None:
    done = repair_messages(messages, pending=pending, rules=rules_of(provider))
    assert not problems(wire(done.messages, provider), provider)


@settings(max_examples=100)
@given(sequences, pendings)
def test_nothing_that_was_said_is_lost(messages: list[Message], pending: set[str]) -> None:
    said = "\n".join(text_of(message) for message in repair_messages(messages, pending=pending).messages)
    for message in messages:
        if not is_tool_result(message):
            assert text_of(message).strip() in said


@settings(max_examples=100)
@given(sequences)
def test_what_a_tool_said_is_lost_only_where_a_call_has_two_results(messages: list[Message]) -> None:
    done = repair_messages(messages)
    said = "\n".join(text_of(message) for message in done.messages)
    doubled = {repair.index for repair in done.repairs if repair.kind == "duplicate_result"}
    for index, message in enumerate(messages):
        assert index in doubled or text_of(message).strip() in said


@settings(max_examples=100)
@given(sequences, pendings, st.sampled_from([Rules(), MISTRAL, Rules(mid_system="keep")]))
def test_repairing_twice_is_repairing_once(messages: list[Message], pending: set[str], rules: Rules) -> None:
    once = repair_messages(messages, pending=pending, rules=rules)
    again = repair_messages(once.messages, pending=pending, rules=rules)
    assert again.messages == once.messages
    assert not again.repairs


@settings(max_examples=100)
@given(sequences, pendings)
def test_the_messages_given_are_not_touched(messages: list[Message], pending: set[str]) -> None:
    before = copy.deepcopy(messages)
    done = repair_messages(messages, pending=pending)
    assert messages == before
    assert all(0 <= repair.index < len(messages) for repair in done.repairs)
    # What changed has a reason, and without a reason nothing changed.
    same = len(messages) == len(done.messages) and all(map(is_same, messages, done.messages))
    assert same == (not done.repairs)


def is_same(one: object, other: object) -> bool:
    return one is other


@settings(max_examples=70)
@given(valid_sequences(), st.sampled_from([Rules(), MISTRAL]))
def test_a_valid_list_comes_back_with_the_same_objects(messages: list[Message], rules: Rules) -> None:
    for provider in PROVIDERS:
        assert not problems(wire(messages, provider), provider)
    done = repair_messages(messages, rules=rules)
    assert done.repairs == ()
    assert [*map(id, done.messages)] == [*map(id, messages)]


@settings(max_examples=100)
@given(sequences, st.lists(st.one_of(plain, assistants()), max_size=4))
def test_what_was_settled_stays_when_messages_come_behind(messages: list[Message], more: list[Message]) -> None:
    # A prompt's prefix is cached by its bytes. Only calls that waited at the end change what stood before.
    begun = repair_messages([*messages, user("a border")]).messages
    assert repair_messages([*messages, user("a border"), *more]).messages[: len(begun)] == begun


@settings(max_examples=100)
@given(sequences)
def test_thinking_is_whole_or_gone(messages: list[Message]) -> None:
    given_blocks = [message["thinking_blocks"] for message in messages if "thinking_blocks" in message]
    for message in repair_messages(messages).messages:
        if "thinking_blocks" in message:
            assert any(message["thinking_blocks"] is blocks for blocks in given_blocks)


@settings(max_examples=100)
@given(sequences)
def test_arguments_and_names_stay_as_they_are(messages: list[Message]) -> None:
    before = [each["function"] for message in messages for each in tool_calls_of(message)]
    after = [each["function"] for message in repair_messages(messages).messages for each in tool_calls_of(message)]
    assert after == before


def test_repairs_tell_nothing_of_what_was_said() -> None:
    secret = "hunter2"
    messages = [
        result("z", secret),
        calls("a"),
        user(secret),
        result("a", secret),
        result("a", secret * 2),
        system(secret),
    ]
    assert secret not in str(repair_messages(messages).repairs)


def test_repair_takes_linear_time() -> None:
    def repairs(size: int) -> None:
        """What makes the work hard: one id for all, parallel, doubled, missing and late."""
        messages = [calls(*["a"] * size), *(result("a") for _ in range(2 * size))]
        messages += [*(calls("b") for _ in range(size)), *(result("b", str(at)) for at in range(size))]
        messages += [*(system("s") for _ in range(size)), *(says("x", thinking_blocks=[SIGNED]) for _ in range(size))]
        units_of(repair_messages(messages).messages)

    assert_grows_at_most(10, repairs, 1_000, 4_000)  # sixteen times as long if every one met every other


# -- Single cases -------------------------------------------------------------------------------------------------

ASK = user("go")
END = user("next")
CASES: dict[str, tuple[list[Message], list[Message], list[str]]] = {
    "parallel results come in the order of calls": (
        [ASK, calls("a", "b"), result("b", "2"), result("a", "1"), END],
        [ASK, calls("a", "b"), result("a", "1"), result("b", "2"), END],
        ["moved_result"],
    ),
    "a result moves behind its call": (
        [ASK, calls("a"), END, result("a", "1")],
        [ASK, calls("a"), result("a", "1"), END],
        ["moved_result"],
    ),
    "a missing result is answered in its place": (
        [ASK, calls("a", "b"), result("b", "2"), END],
        [ASK, calls("a", "b"), result("a", MISSING), result("b", "2"), END],
        ["missing_result"],
    ),
    "the last calls stay open": ([ASK, calls("a", "b")], [ASK, calls("a", "b")], []),
    "the last calls stay open when some are answered": (
        [ASK, calls("a", "b"), result("b")],
        [ASK, calls("a", "b"), result("b")],
        [],
    ),
    "a result without a call becomes text": (
        [ASK, result("z", "42"), END],
        [ASK, user("[Result of a tool call that is not shown any more]\n42"), END],
        ["orphan_result"],
    ),
    "an empty result without a call goes": ([ASK, result("z", ""), END], [ASK, END], ["orphan_result"]),
    "a result before its call is none of it": (
        [ASK, result("a", "1"), calls("a"), END],
        [ASK, user("[Result of a tool call that is not shown any more]\n1"), calls("a"), result("a", MISSING), END],
        ["orphan_result", "missing_result"],
    ),
    "the first of two results counts": (
        [ASK, calls("a"), result("a", "1"), result("a", "2"), END],
        [ASK, calls("a"), result("a", "1"), END],
        ["duplicate_result"],
    ),
    "an empty result counts only when there is no other": (
        [ASK, calls("a"), result("a", ""), result("a", "2"), END],
        [ASK, calls("a"), result("a", "2"), END],
        ["duplicate_result"],
    ),
    "a late second result becomes text": (
        [ASK, calls("a"), result("a", "1"), says("well"), result("a", "2"), END],
        [ASK, calls("a"), result("a", "1"), says("well"), user("[Late result of an earlier tool call]\n2"), END],
        ["late_result"],
    ),
    "a late copy goes": (
        [ASK, calls("a"), result("a", "1"), says("well"), result("a", "1"), END],
        [ASK, calls("a"), result("a", "1"), says("well"), END],
        ["duplicate_result"],
    ),
    "a final result takes the place of an interim one": (
        [ASK, calls("a"), result("a", "5 %", interim=True), says("well"), result("a", "2"), END],
        [ASK, calls("a"), result("a", "2"), says("well"), END],
        ["moved_result", "duplicate_result"],
    ),
    "a real result takes the place of one that we put in": (
        [ASK, calls("a"), result("a", MISSING), says("well"), result("a", "2"), END],
        [ASK, calls("a"), result("a", "2"), says("well"), END],
        ["moved_result", "duplicate_result"],
    ),
    "an id is used once": (
        [ASK, calls("a"), result("a", "1"), calls("a"), result("a", "2"), END],
        [ASK, calls("a"), result("a", "1"), calls("a_2"), result("a_2", "2"), END],
        ["call_id"],
    ),
    "an id that two parallel calls have": (
        [ASK, calls("a", "a"), result("a", "1"), result("a", "2"), END],
        [ASK, calls("a", "a_2"), result("a", "1"), result("a_2", "2"), END],
        ["call_id"],
    ),
    "a new id is a free one": (
        [ASK, calls("a", "a_2", "a"), result("a"), result("a_2"), result("a"), END],
        [ASK, calls("a", "a_2", "a_3"), result("a"), result("a_2"), result("a_3"), END],
        ["call_id"],
    ),
    "a call gets an id": (
        [ASK, calls(""), result("", "1"), END],
        [ASK, calls("call_2"), result("call_2", "1"), END],
        ["call_id"],
    ),
    "empty messages go": ([ASK, says(""), user(" "), system(""), END], [ASK, END], ["empty"] * 3),
    "thinking alone is nothing": ([ASK, says("", thinking_blocks=[SIGNED]), END], [ASK, END], ["empty"]),
    "a system message in the middle becomes text": (
        [system("rule"), ASK, system("new rule")],
        [system("rule"), ASK, user("[System message]\nnew rule")],
        ["mid_system"],
    ),
    "a system message does not part a call from its result": (
        [ASK, calls("a"), system("new rule"), result("a")],
        [ASK, calls("a"), result("a"), user("[System message]\nnew rule")],
        ["moved_result", "mid_system"],
    ),
    "the user begins": (
        [system("rule"), says("hello"), END],
        [system("rule"), user(FIRST_USER), says("hello"), END],
        ["first_user"],
    ),
    "thinking begins a turn": (
        [ASK, says("one", thinking_blocks=[SIGNED]), says("two", thinking_blocks=[SIGNED])],
        [ASK, says("one", thinking_blocks=[SIGNED]), says("two")],
        ["thinking"],
    ),
    "thinking stays in an open loop": (
        [ASK, calls("a", thinking_blocks=[SIGNED]), result("a"), calls("b", thinking_blocks=[REDACTED]), result("b")],
        [ASK, calls("a", thinking_blocks=[SIGNED]), result("a"), calls("b", thinking_blocks=[REDACTED]), result("b")],
        [],
    ),
    "nothing is nothing": ([], [], []),
    "system messages alone stay alone": ([system("rule")], [system("rule")], []),
}


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    messages, expected, done = CASES[case]
    got = repair_messages(messages)
    assert got.messages == expected
    assert kinds(got) == done


def test_a_call_that_is_known_to_run_is_answered_as_running_once_others_speak() -> None:
    messages = [ASK, calls("a"), END]
    assert repair_messages(messages, pending={"a"}).messages == [ASK, calls("a"), result("a", RUNNING), END]
    assert repair_messages(messages[:2], pending={"a"}).messages == messages[:2]


def test_of_a_call_that_is_known_to_run_the_last_result_counts() -> None:
    messages = [ASK, calls("a"), result("a", "5 %"), END, result("a", "50 %")]
    assert repair_messages(messages, pending={"a"}).messages == [ASK, calls("a"), result("a", "50 %"), END]


def test_media_of_a_result_without_a_call_stay() -> None:
    found = cast(Message, {"role": "tool", "tool_call_id": "z", "content": [IMAGE]})
    (message,) = repair_messages([found]).messages
    assert message["role"] == "user"
    assert IMAGE in cast("list[Part]", message["content"])


def test_mistral_wants_an_answer_between_a_result_and_the_user() -> None:
    messages = [ASK, calls("a"), result("a"), END]
    assert repair_messages(messages, rules=MISTRAL).messages == [*messages[:3], says(AFTER_RESULT), END]


def test_openai_may_keep_system_messages_where_they_are() -> None:
    messages = [ASK, system("new rule"), says("yes")]
    assert repair_messages(messages, rules=Rules(mid_system="keep")) == Repaired(messages=messages, repairs=())


def test_what_is_put_into_a_chinese_talk_is_chinese_and_known_when_it_comes_back() -> None:
    messages = [says("你好"), calls("a", "b"), user("继续"), result("z", "1"), system("新规则"), END]
    chinese = repair_messages(messages, pending={"b"}, rules=MISTRAL, language="zh")
    texts = REPAIR_TEXTS["zh"]
    assert [text_of(each) for each in chinese.messages] == [
        texts.first_user,
        "你好",
        "",
        texts.missing,
        texts.running,
        texts.after_result,
        "继续",
        f"{texts.orphan}\n1",
        f"{texts.system}\n新规则",
        text_of(END),
    ]
    assert not any(re.search("[A-Za-z]", text) for text in dataclasses.astuple(texts))
    assert kinds(chinese) == kinds(repair_messages(messages, pending={"b"}, rules=MISTRAL))
    # A result that comes late takes the place of a stand-in of any language.
    for each in REPAIR_TEXTS.values():
        late = [ASK, calls("a"), result("a", each.missing), says("well"), result("a", "2"), END]
        assert repair_messages(late, language="zh").messages == [ASK, calls("a"), result("a", "2"), says("well"), END]
    assert repair_messages(chinese.messages, rules=MISTRAL, language="zh").messages == chinese.messages
    assert repair_messages(messages, language="de").messages == repair_messages(messages).messages


# -- The validator itself: what it lets pass proves nothing if it lets all pass -------------------------------------

WRONG: dict[str, tuple[Provider, list[Message]]] = {
    "roles_are_known": ("openai", [cast(Message, {"role": "critic", "content": "no"})]),
    "content_is_there": ("openai", [{"role": "user", "content": None}]),
    "calls_are_answered_at_once": ("openai", [ASK, calls("a"), END]),
    "results_follow_their_call": ("openai", [ASK, result("a")]),
    "results_keep_the_order_of_calls": ("openai", [ASK, calls("a", "b"), result("b"), result("a")]),
    "one_result_for_each_call": ("openai", [ASK, calls("a"), result("a"), result("a")]),
    "call_ids_are_unique": ("openai", [ASK, calls("a"), result("a"), calls("a"), result("a")]),
    "user_comes_first": ("openai", [says("hello")]),
    "systems_come_first": ("gemini", [ASK, system("rule")]),
    "call_turns_follow_user_or_results": ("gemini", [calls("a")]),
    "response_turns_answer_call_turns": ("gemini", [ASK, calls("a", "b"), result("a"), END]),
    "turns_have_parts": ("gemini", [ASK, says(""), END]),
    "mistral_order": ("mistral", [ASK, calls("a"), result("a"), END]),
    "mistral_counts": ("mistral", [ASK, calls("a"), says("well"), END]),
    "mistral_assistants_say_something": ("mistral", [ASK, says(""), END]),
    "anthropic_user_comes_first": ("anthropic", [says("hello")]),
    "tool_uses_are_answered_next": ("anthropic", [ASK, calls("a"), END]),
    "tool_results_answer_the_turn_before": ("anthropic", [ASK, result("a")]),
    "tool_results_come_first": ("anthropic", [ASK, calls("a"), END, result("a")]),
    "tool_uses_come_last": ("anthropic", [ASK, calls("a"), says("well")]),
    "tool_use_ids_fit": ("anthropic", [ASK, calls("a"), result("a"), calls("a"), result("a")]),
    "thinking_begins_a_turn": ("anthropic", [ASK, says("one"), says("two", thinking_blocks=[SIGNED])]),
}


@pytest.mark.parametrize("rule", WRONG)
def test_the_validator_finds(rule: str) -> None:
    provider, messages = WRONG[rule]
    assert [found for found in problems(wire(messages, provider), provider) if found.startswith(f"{rule}:")]
    assert (
        not problems(wire(repair_messages(messages, rules=rules_of(provider)).messages, provider), provider)
        or rule == "roles_are_known"
    )


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_validator_finds_a_request_that_waits(provider: Provider) -> None:
    assert problems(wire([ASK, calls("a")], provider), provider, ready=True)
    assert not problems(wire([ASK, calls("a"), result("a")], provider), provider, ready=True)


def test_json_of_a_view_is_the_same_each_time() -> None:
    messages, *_ = CASES["an id that two parallel calls have"]
    assert json.dumps(repair_messages(messages).messages) == json.dumps(
        repair_messages(copy.deepcopy(messages)).messages
    )
    assert not any(map(is_system, repair_messages(messages).messages))
