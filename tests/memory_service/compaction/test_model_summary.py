from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.compaction.model_summary import SummaryCheck, SummaryRules, _accept_any, summarize
from memory_service.compaction.prompts import OPENCODE_HEADINGS, PROMPT_VERSION
from memory_service.compaction.summary import PromptReading, Summary, SummaryRequest
from memory_service.errors import CallCancelled, ContextOverflow, ModelUnavailable, SummaryFailed, UpstreamFailed
from memory_service.llm.base import CallUsage, ChatMessage, Completion, not_cancelled
from memory_service.llm.calls import estimate_prompt
from memory_service.llm.errors import OVERFLOWS, classify
from memory_service.llm.litellm import LiteLLMModel
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import Numbered, count_tokens
from memory_service.testing import Failure, Hang, Reply, ScriptedModel, ScriptedServer
from memory_service.text.texts import ENGLISH
from tests.memory_service.compaction.talk import answer, asked, calls, chat, log, result, says, sectioned, user

GOOD = sectioned()
ANCHORED = SummaryRules()
PLAIN = SummaryRules(style="plain", headings=())
ROLLING = SummaryRules(style="rolling", headings=())
PARTS = SummaryRules(style="parts", headings=(), concurrent=True, merge_by_model=False, condense=True)
SECTIONS = SummaryRules(style="sections", headings=OPENCODE_HEADINGS)
DOWN = UpstreamFailed("It is down. Try again.", kind="unavailable")
PASSING = UpstreamFailed("It is down. Try again.", kind="unavailable", transient=True)
OVER = ContextOverflow("Too long. Send less.")


def written(
    model: ScriptedModel,
    rules: SummaryRules = ANCHORED,
    messages: Sequence[Numbered] = (),
    *,
    window: int = 32_000,
    check: SummaryCheck = _accept_any,
    cancelled: Callable[[], bool] = not_cancelled,
    timeout: float = 20.0,
    fallback: ScriptedModel | None = None,
    **request: object,
) -> Summary:
    asked_for = SummaryRequest(messages=tuple(messages or chat(3)), **request)  # type: ignore[arg-type]
    summary = summarize(
        asked_for, rules, model, window_tokens=window, check=check, cancelled=cancelled, timeout_seconds=timeout,
        fallbacks=(fallback,) if fallback else (),
    )  # fmt: skip
    for prompt in model.requests:
        assert estimate_prompt(prompt) < window
    return summary


def failed(model: ScriptedModel, *args: object, **kwargs: object) -> UpstreamFailed:
    with pytest.raises(UpstreamFailed) as caught:
        written(model, *args, **kwargs)  # type: ignore[arg-type]
    return caught.value


# --- one call ---


def test_one_call_and_what_is_told_of_it() -> None:
    model = ScriptedModel(Reply(text=GOOD, input_tokens=700, output_tokens=80))
    summary = written(model)
    assert summary == Summary(
        text=GOOD, method="model", prompt_version=PROMPT_VERSION, model="scripted", calls=1, input_tokens=700,
        output_tokens=80, chunk_ratio=0.4, parts=1,
    )  # fmt: skip
    assert "log:1 [User]: 0: The deploy" in asked(model.requests[0])


def test_in_chinese() -> None:
    text = sectioned(fill="部署在周二 10:00 进行")
    model = ScriptedModel(text)
    assert written(model, messages=chat(3, chinese=True), previous="## Goal\n- 部署").text == text
    assert "部署在周二进行。" in asked(model.requests[0])


def test_the_previous_summary_is_brought_up_to_date() -> None:
    model = ScriptedModel(GOOD)
    written(model, previous="we use 端口 8080; key sk-abcdefghijklmnop1234")
    assert "<previous-summary>\nwe use 端口 8080; key [redacted]\n</previous-summary>" in asked(model.requests[0])


@pytest.mark.parametrize("rules", [PLAIN, SECTIONS])
def test_styles_of_one_call(rules: SummaryRules) -> None:
    text = sectioned(rules.headings) or "部署在周二。"
    model = ScriptedModel(text)
    assert written(model, rules, chat(40), window=32_000).text == text
    assert len(model.requests) == 1


@pytest.mark.parametrize("rules", [PLAIN, SECTIONS])
def test_styles_of_one_call_fail_when_all_does_not_fit(rules: SummaryRules) -> None:
    model = ScriptedModel()
    error = failed(model, rules, chat(200), window=16_000)
    assert isinstance(error, SummaryFailed) and error.kind == "token_overflow"
    assert "16,000" in str(error) and not model.requests


def test_the_request_shapes_the_prompt() -> None:
    model = ScriptedModel(GOOD)
    written(model, instructions="Look at the ports.", identifier_policy="custom", identifier_instructions="Keep ports.")
    assert "<instructions>\nLook at the ports." in asked(model.requests[0])
    assert "<identifier-rules>\nKeep ports." in asked(model.requests[0])


# --- answers that are refused ---

FAULTS: dict[str, tuple[str | Reply, str]] = {
    "empty": ("", "empty"),
    "blank": (" \n", "empty"),
    "cut off": (Reply(text=GOOD, finish_reason="length"), "truncated"),
    "a call": (Reply(tool_call="search"), "tool_call"),
    "no headings": ("All is well.", "headings"),
    "too long": (sectioned(fill="word " * 2_000), "too_long"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_refused_answer_is_asked_for_again_with_the_reason(case: str) -> None:
    bad, _ = FAULTS[case]
    model = ScriptedModel(bad, GOOD)
    assert written(model).text == GOOD
    first, second = map(asked, model.requests)
    assert second.startswith(first) and "was refused" in second and "was refused" not in first


@pytest.mark.parametrize("case", sorted(FAULTS.keys() - {"too long"}))
@pytest.mark.parametrize("retries", [0, 1, 2])
def test_a_failure_says_what_was_wrong(case: str, retries: int) -> None:
    bad, kind = FAULTS[case]
    model = ScriptedModel(*[bad] * (retries + 1))
    error = failed(model, SummaryRules(retries=retries))
    assert isinstance(error, SummaryFailed) and error.kind == kind
    assert len(model.requests) == retries + 1
    assert str(error).count(". ") == 1 and "deploy" not in str(error).lower()


def test_what_a_filter_withheld_is_not_asked_for_again() -> None:
    model = ScriptedModel(Reply(text="x", finish_reason="content_filter"))
    assert failed(model).kind == "content_filter"


def test_no_failure_is_taken_for_an_overflow_of_the_conversation() -> None:
    errors = [failed(ScriptedModel(*[bad] * 2)) for bad, kind in FAULTS.values() if kind != "too_long"]
    errors += [failed(ScriptedModel(), PLAIN, chat(200), window=16_000), failed(ScriptedModel(*[OVER] * 9))]
    for error in errors:
        assert classify(str(error)).kind not in OVERFLOWS


def test_the_check_has_the_last_word() -> None:
    seen = []

    def check(text: str, reading: PromptReading) -> tuple[str, ...]:
        seen.append(text)
        return () if "端口 8080" in text else ("It leaves out `端口 8080`.",)

    better = sectioned(fill="端口 8080")
    model = ScriptedModel(GOOD, better)
    assert written(model, check=check).text == better
    assert seen == [GOOD, better]
    assert "- It leaves out `端口 8080`." in asked(model.requests[1])


def test_what_the_check_refuses_fails() -> None:
    model = ScriptedModel(GOOD, GOOD)
    error = failed(model, check=lambda text, reading: ("It says 4711.",))
    assert isinstance(error, SummaryFailed) and error.kind == "ungrounded"
    assert "4711" not in str(error) and len(model.requests) == 2


def test_the_check_costs_the_last_chunk_alone() -> None:
    model = ScriptedModel(*[GOOD] * 20)
    plain = written(model, messages=chat(60), window=16_000).calls
    again = ScriptedModel(*[GOOD] * 20)
    refusals = iter([("No.",), ()])
    assert (
        written(again, messages=chat(60), window=16_000, check=lambda text, reading: next(refusals)).calls == plain + 1
    )
    assert "was refused" in asked(again.requests[-1])
    assert asked(again.requests[-1]).startswith(asked(again.requests[-2]))


# --- chunks ---


def test_chunks_bring_the_summary_up_to_date() -> None:
    model = ScriptedModel(*[sectioned(fill=f"after {number}") for number in range(9)])
    summary = written(model, messages=chat(60), window=16_000, previous="OLD")
    count = len(model.requests)
    assert count > 2 and summary.calls == count and summary.text == sectioned(fill=f"after {count - 1}")
    texts = list(map(asked, model.requests))
    assert "OLD" in texts[0] and "OLD" not in texts[1]
    for number in range(1, count):
        assert f"after {number - 1}" in texts[number]
    for seq in range(1, 241):
        assert sum(f"log:{seq} [" in text for text in texts) == 1
    for text in texts:
        assert text.count("Assistant tool call]:") == text.count("[Tool result of bash]:")


def test_a_single_pass_where_all_fits() -> None:
    history = chat(60)
    model = ScriptedModel(GOOD)
    assert written(model, SummaryRules(single_pass=True), history, window=48_000).calls == 1
    assert written(ScriptedModel(*[GOOD] * 9), ANCHORED, history, window=48_000).calls > 1


def test_chunks_grow_where_calls_are_few() -> None:
    model = ScriptedModel(*[GOOD] * 4)
    assert written(model, SummaryRules(max_calls=4), chat(80), window=16_000).calls <= 4


def test_too_much_for_the_calls_fails_before_the_first() -> None:
    model = ScriptedModel()
    assert failed(model, SummaryRules(max_calls=2), chat(400), window=16_000).kind == "token_overflow"
    assert not model.requests


def test_the_calls_have_their_bound() -> None:
    model = ScriptedModel(*["bad"] * 9)
    assert failed(model, SummaryRules(max_calls=3, retries=9)).kind == "token_overflow"
    assert len(model.requests) == 3


def test_a_failure_of_a_later_chunk_leaves_nothing() -> None:
    rules = SummaryRules(keep_partial=False)
    assert failed(ScriptedModel(GOOD, DOWN), rules, messages=chat(60), window=16_000) is DOWN


def test_unless_a_partial_summary_is_wanted() -> None:
    model = ScriptedModel(GOOD, DOWN)
    summary = written(model, ANCHORED, chat(60), window=16_000)
    assert summary.text.startswith(GOOD) and "[Partial: the messages log:" in summary.text
    assert any("partial" in note and "unavailable" in note for note in summary.notes)
    assert failed(ScriptedModel(DOWN), SummaryRules(keep_partial=True)) is DOWN


# --- the summariser's own overflow ---


def test_a_window_that_is_told_is_learned() -> None:
    told = ContextOverflow("Too long. Send less.", window_tokens=12_000)
    model = ScriptedModel(GOOD, told, *[GOOD] * 12)
    summary = written(model, messages=chat(60))
    assert any("12,000" in note and "told" in note for note in summary.notes)
    for prompt in model.requests[2:]:
        assert estimate_prompt(prompt) < 12_000
    read = "".join(asked(prompt) for prompt in model.requests[:1] + model.requests[2:])
    assert all(read.count(f"log:{seq} [") == 1 for seq in range(1, 241))


def test_a_window_that_is_not_told_is_halved() -> None:
    model = ScriptedModel(OVER, *[GOOD] * 20)
    summary = written(model, messages=chat(60))
    assert any("16,000" in note for note in summary.notes)
    assert all(estimate_prompt(prompt) < 16_000 for prompt in model.requests[1:])


def test_halving_ends() -> None:
    model = ScriptedModel(*[OVER] * 20)
    error = failed(model, messages=chat(60), window=200_000)
    assert type(error) is SummaryFailed and error.kind == "token_overflow"
    assert len(model.requests) <= 6


# --- messages that are too large ---


def oversized(where: str = "user") -> tuple[Numbered, ...]:
    large = "巨大" * 7_000
    said: dict[str, list[Message]] = {
        "user": [user(large)],
        "assistant": [says(large)],
        "unit": [calls("a", text=large), result("a", "ok")],
    }
    return log(user("first"), *said[where], user("last"))


@pytest.mark.parametrize("where", ["user", "assistant", "unit"])
@pytest.mark.parametrize("rules", [ANCHORED, SECTIONS, ROLLING, replace(PARTS, condense=False)])
def test_what_is_too_large_gives_way_to_a_note(where: str, rules: SummaryRules) -> None:
    text = sectioned(rules.headings) or "fine"
    model = ScriptedModel(*[text] * 9)
    summary = written(model, rules, oversized(where), window=16_000)
    assert "~13K tokens; log:2]" in summary.text and "~13K tokens; log:2]" in summary.notes[0]
    sent = "".join(map(asked, model.requests))
    assert "巨大巨大" not in sent and "log:2 [Omitted: large" in sent
    assert "log:1 [User]: first" in sent and "[User]: last" in sent
    assert ("[Tool result of bash]: ok" in sent) == (where == "unit")


def test_without_notes_it_fails() -> None:
    rules = SummaryRules(without_oversized=False, keep_partial=False)
    error = failed(ScriptedModel(GOOD), rules, oversized(), window=16_000)
    assert error.kind == "token_overflow"


def test_a_failure_on_something_huge_is_tried_again_without_it() -> None:
    model = ScriptedModel(UpstreamFailed("Bad. Try.", kind="other"), GOOD)
    summary = written(model, SummaryRules(single_pass=True), oversized(), window=28_000)
    assert "巨大巨大" in asked(model.requests[0]) and "巨大巨大" not in asked(model.requests[1])
    assert "~13K tokens" in summary.text


def test_a_unit_of_many_results_is_made_to_fit() -> None:
    tool_calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}} for n in range(40)
    ]
    results = [result(f"c{n}", f"{n} " + "x" * (1_000 + 20 * n)) for n in range(40)]
    model = ScriptedModel(GOOD)
    summary = written(model, messages=log(says("", tool_calls=tool_calls), *results), window=8_000)
    assert len(model.requests) == 1
    assert asked(model.requests[0]).count("[Omitted:") > 5
    assert "more large messages.]" in summary.text
    small = written(ScriptedModel(GOOD), messages=log(says("", tool_calls=tool_calls), *results), window=8_000,
                    target_tokens=150)  # fmt: skip
    assert count_tokens(small.text) <= 150 and "## Context" in small.text


# --- parts ---


def test_rolling_parts_are_merged() -> None:
    model = ScriptedModel("one", "two", "both")
    summary = written(model, ROLLING, chat(60), window=64_000, previous="OLD")
    assert (summary.text, summary.calls) == ("both", 3)
    first, second, merge = map(asked, model.requests)
    assert "log:1 [User]" in first and "log:240 [Assistant]" in second
    assert "OLD" not in first + second and "<previous-summary>\nOLD" in merge
    assert '<partial-summary part="1">\none' in merge and '<partial-summary part="2">\ntwo' in merge


@pytest.mark.parametrize("messages", [chat(3), log(user("中" * 15_000), says("x"), user("y"))])
def test_little_is_not_divided(messages: tuple[Numbered, ...]) -> None:
    model = ScriptedModel(*["one"] * 3)
    written(model, ROLLING, messages, window=40_000)
    assert "partial-summary" not in "".join(map(asked, model.requests))


def test_the_parts_of_a_roll_may_take_several_chunks() -> None:
    model = ScriptedModel(*["text"] * 30)
    written(model, ROLLING, chat(100), window=24_000)
    assert len(model.requests) > 4
    assert sum("partial-summary" in asked(prompt) for prompt in model.requests) == 1


def test_the_check_costs_the_merge_alone() -> None:
    refusals = iter([("No.",), ()])
    model = ScriptedModel("one", "two", "both", "better")
    assert written(model, ROLLING, chat(60), window=64_000, check=lambda text, reading: next(refusals)).text == "better"


class Meeting:
    """A model whose calls wait for each other: with fewer at once, nobody answers."""

    name = "meeting"

    def __init__(self, count: int, answers: Callable[[str], str], patience_seconds: float = 5.0) -> None:
        self.requests: list[list[ChatMessage]] = []
        self._together = threading.Barrier(count, timeout=patience_seconds)
        self._answers = answers

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int | None = None,
        timeout_seconds: float = 1.0,
        cancelled: Callable[[], bool] = not_cancelled,
    ) -> Completion:
        self.requests.append(list(messages))
        self._together.wait()
        text = self._answers(asked(messages))
        return Completion(text=text, finish_reason="stop", usage=CallUsage(input_tokens=1), model=self.name)

    def context_window(self) -> int | None:
        return None

    def count_tokens(self, messages: Sequence[ChatMessage]) -> int | None:
        return None


def test_parts_are_summarised_at_once_and_joined_in_order() -> None:
    def part(prompt: str) -> str:
        return "first" if "log:1 [User]" in prompt else "last" if "log:80 [" in prompt else "middle"

    model = Meeting(3, part)
    request = SummaryRequest(messages=chat(20), previous="旧")
    summary = summarize(request, PARTS, model, window_tokens=32_000)
    assert summary.text == "旧\n\nfirst\n\nmiddle\n\nlast"
    assert (summary.calls, summary.input_tokens) == (3, 3)


def test_one_after_the_other_nobody_would_meet() -> None:
    with pytest.raises(threading.BrokenBarrierError):
        model = Meeting(3, lambda prompt: "x", patience_seconds=0.1)
        summarize(SummaryRequest(messages=chat(20)), replace(PARTS, concurrent=False), model, window_tokens=32_000)


def test_more_parts_where_messages_are_large() -> None:
    model = ScriptedModel(*["x"] * 9)
    large = log(*[user("中" * 3_000), says("x")] * 8)
    written(model, replace(PARTS, concurrent=False, tool_output_chars=99_999), large, window=12_000)
    assert len(model.requests) == 7


def test_what_is_over_its_target_is_summarised_again() -> None:
    long, shorter, short = "word " * 700, "word " * 200, "word " * 60
    model = ScriptedModel(long, long, long, shorter, short)
    summary = written(model, replace(PARTS, concurrent=False), chat(20), target_tokens=100)
    assert summary.text == short.strip() and summary.calls == 5
    assert "<partial-summary" in asked(model.requests[3]) and "<draft>" in asked(model.requests[4])


def test_summarising_again_ends_and_what_stays_too_long_is_cut() -> None:
    long = "A sentence of the record. " * 130
    model = ScriptedModel(*[long] * 9)
    summary = written(model, replace(PARTS, concurrent=False), chat(20), target_tokens=100)
    assert len(model.requests) == 3 + 1 + 1, "parts, merge, and one that made it no shorter"
    assert count_tokens(summary.text) <= 100 and summary.text.endswith("of the record.")
    assert any("for its length" in note for note in summary.notes)


@pytest.mark.parametrize("long", ["A sentence of the record. " * 400, "记录里的一句话。" * 400])
def test_an_answer_that_stays_too_long_is_cut_at_the_end_of_a_sentence(long: str) -> None:
    summary = written(ScriptedModel(long, long), PLAIN, target_tokens=200)
    assert 100 < count_tokens(summary.text) <= 200 and summary.text[-1] in ".。"
    assert any("for its length" in note for note in summary.notes)


def test_the_parts_before_a_failure_are_kept() -> None:
    model = ScriptedModel(*["One part of the record."] * 2, *[DOWN] * 20)
    summary = written(model, replace(ROLLING, keep_partial=True), chat(60), window=20_000)
    assert summary.text.startswith("One part of the record.") and "[Partial: the messages log:" in summary.text
    assert any("summary is partial" in note for note in summary.notes)
    assert summary.calls == len(model.requests) <= 5


def test_when_a_part_fails_the_others_end() -> None:
    rules = replace(PARTS, keep_partial=False)
    assert failed(ScriptedModel(DOWN, Hang(), Hang()), rules, chat(20), timeout=3_600.0) is DOWN


def test_when_all_parts_fail_the_first_failure_is_told() -> None:
    assert failed(ScriptedModel(DOWN, Hang(), Hang()), PARTS, chat(20), timeout=2.0) is DOWN


def test_many_partial_summaries_are_merged_by_halves() -> None:
    rules = replace(PARTS, concurrent=False, merge_by_model=True, condense=False, min_chunk_ratio=0.15)
    large = log(*[user("中" * 1_500), says("x")] * 8)
    model = ScriptedModel(*[answer("中" * 900)] * 30)
    written(model, rules, large, window=6_000, target_tokens=1_000)
    assert sum("<partial-summary" in asked(prompt) for prompt in model.requests) > 1


# --- a split turn ---


def test_a_split_turn_has_its_own_report() -> None:
    model = ScriptedModel(GOOD, "The user asked for a deploy.")
    summary = written(model, prefix=chat(2)[:6])
    assert summary.text == f"{GOOD}\n\n{ENGLISH.turn_context}\n\nThe user asked for a deploy."
    assert "beginning of one turn" in asked(model.requests[1]) and summary.calls == 2


def test_a_split_turn_alone_leaves_the_previous_summary() -> None:
    model = ScriptedModel("请求：部署。")
    request = SummaryRequest(messages=(), prefix=chat(1), previous="旧")
    summary = summarize(request, ANCHORED, model, window_tokens=32_000)
    assert summary.text == f"旧\n\n{ENGLISH.turn_context}\n\n请求：部署。"


def test_the_whole_of_a_split_turn_is_checked() -> None:
    refusals = iter([("No.",), ()])
    model = ScriptedModel(GOOD, "one", GOOD, "two")
    summary = written(model, prefix=chat(1), check=lambda text, reading: next(refusals))
    assert summary.text.endswith("two")
    assert all("was refused" in asked(prompt) for prompt in model.requests[2:])


def test_a_long_previous_summary_is_cut_to_its_place() -> None:
    previous = "\n".join(f"- 事实 {number}" for number in range(3_000))
    model = ScriptedModel(GOOD)
    summary = written(model, previous=previous, window=16_000)
    assert any("left out" in note for note in summary.notes)
    assert "- 事实 0\n" in asked(model.requests[0])


# --- nothing to say ---


def test_without_messages_the_previous_summary_stays() -> None:
    request = SummaryRequest(messages=(), previous="旧")
    summary = summarize(request, ANCHORED, ScriptedModel(), window_tokens=32_000)
    assert (summary.text, summary.calls) == ("旧", 0)


@pytest.mark.parametrize("messages", [(), log(says("", reasoning_content="secret"), user(""))])
def test_nothing_at_all_fails(messages: tuple[Numbered, ...]) -> None:
    with pytest.raises(SummaryFailed) as caught:
        summarize(SummaryRequest(messages=messages), ANCHORED, ScriptedModel(), window_tokens=32_000)
    assert caught.value.kind == "empty"


# --- time, cancellation, other models ---


def test_all_calls_together_have_their_time() -> None:
    model = ScriptedModel(*[answer(GOOD)] * 2, Hang())
    error = failed(model, SummaryRules(keep_partial=False), messages=chat(60), window=16_000, timeout=0.3)
    assert error.kind == "timeout"


def test_no_call_begins_after_the_time() -> None:
    model = ScriptedModel(GOOD)
    error = failed(model, timeout=0.0)
    assert isinstance(error, SummaryFailed) and error.kind == "timeout" and not model.requests


def test_a_cancelled_summary_asks_nobody() -> None:
    model = ScriptedModel()
    with pytest.raises(CallCancelled):
        written(model, replace(ANCHORED, keep_partial=True), cancelled=lambda: True)
    assert not model.requests


@pytest.mark.parametrize("rules", [ANCHORED, PARTS])
def test_cancelling_during_a_call(rules: SummaryRules) -> None:
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    with pytest.raises(CallCancelled):
        written(ScriptedModel(*[Hang()] * 9), rules, chat(20), cancelled=stop.is_set)


def test_cancelling_between_calls() -> None:
    model = ScriptedModel(*[GOOD] * 9)
    with pytest.raises(CallCancelled):
        written(model, messages=chat(60), window=16_000, cancelled=lambda: len(model.requests) >= 2)
    assert len(model.requests) == 2


def test_attempts_wait_longer_each_time() -> None:
    model = ScriptedModel(PASSING, PASSING, GOOD)
    begun = time.monotonic()
    summary = written(model, SummaryRules(attempts=3, backoff_seconds=0.05))
    assert summary.text == GOOD and summary.calls == 3
    assert time.monotonic() - begun > 0.12


@pytest.mark.parametrize("kind", ["auth", "content_filter", "malformed_history", "byte_overflow"])
def test_what_will_not_pass_is_not_tried_again(kind: str) -> None:
    error = UpstreamFailed("No. Try.", kind=kind)
    assert failed(ScriptedModel(error), SummaryRules(attempts=3)) is error


def test_another_model_is_asked_where_the_first_cannot_be_used() -> None:
    model = ScriptedModel(ModelUnavailable("No key. Set one.", kind="auth"))
    other = ScriptedModel(*[GOOD] * 9, name="other", context_window=16_000)
    summary = written(model, messages=chat(60), fallback=other)
    assert summary.model == "other" and any("other" in note for note in summary.notes)
    assert len(model.requests) == 1 and all(estimate_prompt(prompt) < 16_000 for prompt in other.requests[1:])


@pytest.mark.parametrize("rules", [ANCHORED, PARTS])
def test_without_another_model_it_fails(rules: SummaryRules) -> None:
    gone = ModelUnavailable("No key. Set one.", kind="auth")
    assert failed(ScriptedModel(*[gone] * 9), rules, chat(20)) is gone
    both = failed(ScriptedModel(*[gone] * 9), rules, chat(20), fallback=ScriptedModel(*[gone] * 9))
    assert isinstance(both, ModelUnavailable)


# --- what never leaves, and what always holds ---


def test_no_secret_no_bytes_and_no_thoughts_in_any_request() -> None:
    secret, encoded = "sk-abcdefghijklmnop1234", "aB3" * 500
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded}"}}
    history = log(
        user(f"key {secret}"),
        cast(Message, {"role": "user", "content": [{"type": "text", "text": "看"}, image]}),
        calls("a", arguments=f'{{"token": "{secret}"}}', text="<think>thought</think>go"),
        result("a", f"{secret} {encoded}", details="thought"),
        says("ok", reasoning_content="thought", thinking_blocks=[{"type": "thinking", "thinking": "thought"}]),
    )
    model = ScriptedModel(f"the key is {secret}", "done")
    summary = written(
        model, PLAIN, history, prefix=history, previous=f"key {secret}", check=_accept_any
    )  # fmt: skip
    sent = "".join(map(asked, model.requests))
    for never_sent in (secret, encoded, "thought"):
        assert never_sent not in sent.replace("thoughts", "")
    assert secret not in summary.text


@given(
    st.lists(st.integers(0, 9_000), min_size=1, max_size=30),
    st.sampled_from([ANCHORED, PLAIN, ROLLING, replace(PARTS, concurrent=False), SECTIONS]),
    st.sampled_from([4_000, 8_000, 16_000, 64_000]),
    st.integers(200, 3_000),
    st.booleans(),
)
@settings(max_examples=50, deadline=None)
def test_every_request_fits_and_every_summary_too(
    sizes: list[int], rules: SummaryRules, window: int, target: int, chinese: bool
) -> None:
    said: list[Message] = []
    for number, size in enumerate(sizes):
        text = ("中" if chinese else "word ")[: max(size, 1)] * (size // 5 + 1)
        said += [user(text)] if number % 3 else [calls(f"c{number}"), result(f"c{number}", text)]
    model = ScriptedModel(*[sectioned(rules.headings) or "fine"] * 60)
    request = SummaryRequest(messages=log(*said), target_tokens=target, prefix=log(*said[:2], first=500))
    try:
        summary = summarize(request, rules, model, window_tokens=window)
    except SummaryFailed as error:
        assert error.kind == "token_overflow"
    else:
        assert count_tokens(summary.text) <= target
        assert 1 <= summary.calls == len(model.requests) <= rules.max_calls
    for prompt in model.requests:
        assert estimate_prompt(prompt) <= window


# --- through litellm, over a loopback port ---

quiet = pytest.mark.filterwarnings("ignore::DeprecationWarning:(litellm|pydantic|aiohttp|httpx)")


@pytest.mark.litellm
@quiet
@pytest.mark.parametrize("provider", ["openai", "anthropic", "vllm"])
def test_a_real_overflow_is_learned_from(provider: str) -> None:
    with ScriptedServer(Failure.named(provider), *[GOOD] * 9) as server:
        model = LiteLLMModel("openai/any", api_base=server.url, api_key="any")
        summary = summarize(SummaryRequest(messages=chat(60)), ANCHORED, model, window_tokens=200_000)
        assert summary.text == GOOD and summary.model == "openai/any"
        assert any("131,072" in note for note in summary.notes)
        assert all(set(request.body) == {"model", "messages"} for request in server.requests)


@pytest.mark.litellm
@quiet
def test_real_parts_at_once_and_real_failures() -> None:
    with ScriptedServer("one", "one", Failure(status=503, body="down"), "one", "one") as server:
        model = LiteLLMModel("openai/any", api_base=server.url, api_key="any")
        rules = replace(PARTS, backoff_seconds=0.01)
        summary = summarize(SummaryRequest(messages=chat(20)), rules, model, window_tokens=32_000)
        assert summary.text == "one\n\none\n\none" and summary.calls == 4
    with ScriptedServer(Reply(tool_call="search"), Reply(text=GOOD, finish_reason="length")) as server:
        model = LiteLLMModel("openai/any", api_base=server.url, api_key="any")
        with pytest.raises(SummaryFailed) as caught:
            summarize(SummaryRequest(messages=chat(3)), ANCHORED, model, window_tokens=32_000)
        assert caught.value.kind == "truncated"
