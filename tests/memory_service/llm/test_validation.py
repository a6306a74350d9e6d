from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory_service.compaction.prompts import ANCHORED_HEADINGS, OPENCODE_HEADINGS
from memory_service.llm.base import CallUsage, Completion
from memory_service.llm.validation import (
    AnswerValidation,
    _strip_wrapping,
    clip_sections,
    clip_to_sentence,
    validate_answer,
)
from memory_service.messages.sizes import count_tokens
from memory_service.text.texts import CHINESE, ENGLISH, TEXTS, heading_in
from tests.growth import at_most_readings
from tests.memory_service.compaction.talk import sectioned

TWO = ("Goal", "Next step")
LEFT_OUT = ENGLISH.omitted["lines"]


def completion(text: str, finish_reason: str = "stop", *, called: bool = False) -> Completion:
    return Completion(
        text=text, finish_reason=finish_reason, usage=CallUsage(), model="m", tool_calls_present=called
    )  # fmt: skip


REFUSED = {
    "empty": (completion(""), "empty"),
    "blank": (completion(" \n\u3000\t"), "empty"),
    "thoughts alone": (completion("<think>hm</think>"), "empty"),
    "an empty block": (completion("```\n```"), "empty"),
    "cut off": (completion(sectioned(TWO), "length"), "truncated"),
    "cut off, in another's words": (completion(sectioned(TWO), "max_tokens"), "truncated"),
    "a tool call": (completion(sectioned(TWO), "tool_calls"), "tool_call"),
    "a tool call beside a text": (completion(sectioned(TWO), called=True), "tool_call"),
    "withheld": (completion(sectioned(TWO), "content_filter"), "content_filter"),
    "no headings": (completion("一切正常。"), "headings"),
    "one heading": (completion("## Goal\n- x"), "headings"),
    "nothing below": (completion("## Goal\n\n## Next step\n- z"), "headings"),
    "nothing below the last": (completion("## Goal\n- x\n## Next step\n  "), "headings"),
    "in a block of code": (completion("```\n## Goal\n- x\n```\n## Next step\n- y"), "headings"),
    "too long": (completion(sectioned(TWO, "长" * 200)), "too_long"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    answer, kind = REFUSED[case]
    verdict = validate_answer(answer, headings=TWO, cap_tokens=100)
    assert (verdict.text, verdict.kind) == ("", kind)
    assert verdict.reason.endswith(".")


TAKEN = {
    "as asked": "## Goal\n- 部署\n## Next step\n- y",
    "other levels": "# goal:\n- 部署\n### NEXT  STEP\n- y",
    "in bold": "**Goal**\n- 部署\n**Next step**：\n- y",
    "with a preface": "Here is the record:\n\n## Goal\n- 部署\n## Next step\n- y",
    "in a block": "```markdown\n## Goal\n- 部署\n## Next step\n- y\n```",
    "in tags": "<summary>\n## Goal\n- 部署\n## Next step\n- y\n</summary>",
    "after thoughts": "<think>\n## Goal\n</think>\n## Goal\n- 部署\n## Next step\n- y",
    "in JSON": '{"goal": ["部署"], "next step": "y"}',
    "in a template": "Sure!\n<template>\n## Goal\n- 部署\n## Next step\n- y\n</template>\n\nLet me know if that helps.",
    "after an analysis": "<analysis>a</analysis>\n\n## Goal\n- 部署\n## Next step\n- y\n",
}


@pytest.mark.parametrize("case", TAKEN)
def test_taken(case: str) -> None:
    verdict = validate_answer(completion(TAKEN[case]), headings=TWO, cap_tokens=100)
    assert verdict == AnswerValidation(text="## Goal\n- 部署\n## Next step\n- y")


MENDED = {
    "another order": ("## Next step\n- y\n## Goal\n- 部署", "order"),
    "twice": ("## Goal\n- 部署\n## Next step\n- y\n## Goal\n(none)", "form"),
    "translated": ("## Ziel\n- 部署\n## Nächster Schritt\n- y", "form"),
    "translated into a language that nobody knows": ("## Lengo\n- 部署\n## Hatua\n- y", "form"),
    "numbered": ("1. ## Goal\n- 部署\n2. ## Next step\n- y", "form"),
    "with pictures": ("## 🎯 GOAL\n- 部署\n## ➡️ Next steps:\n- y", "form"),
    "as labels": ("Goal: 部署\nNext step: y", "form"),
    "as labels in bold": ("- **Goal:** 部署\n- **Next step:** y", "form"),
    "underlined": ("Goal\n====\n- 部署\n\nNext step\n----\n- y", "form"),
    "as tags": ("<goal>\n- 部署\n</goal>\n<next_step>\n- y\n</next_step>", "form"),
    "as HTML": ("<h2>Goal</h2>\n- 部署\n<h2>Next step</h2>\n- y", "form"),
    "as a table": ("| Section | Content |\n|---|---|\n| Goal | 部署 |\n| Next step | y |", "form"),
}


@pytest.mark.parametrize("case", MENDED)
def test_what_was_meant_is_taken_at_once_and_told(case: str) -> None:
    text, told = MENDED[case]
    verdict = validate_answer(completion(text), headings=TWO, cap_tokens=100)
    assert (verdict.text, verdict.kind) == ("## Goal\n- 部署\n## Next step\n- y", "")
    assert any(told in note for note in verdict.mended_texts)


def test_of_what_is_refused_for_its_headings_all_is_saved_below_them() -> None:
    for text, saved in {
        "## Goal\n- x": "## Goal\n- x\n## Next step\n- (none)",
        "It is deployed on Tuesday.": "## Goal\n- (none)\n## Next step\nIt is deployed on Tuesday.",
        "## Goal\n- x\n## Lunch\n- z\n## Dinner\n- w": "## Goal\n- x\n## Next step\n**Lunch**\n- z\n**Dinner**\n- w",
    }.items():
        verdict = validate_answer(completion(text), headings=TWO)
        assert (verdict.kind, verdict.saved_text) == ("headings", saved) and "Next step" in verdict.mended_texts[
            -1
        ] + saved


CHINESE_TAKEN = {
    "as asked": "## 目标\n- 部署\n## 下一步\n- y",
    "in English": "## Goal\n- 部署\n## Next step\n- y",
    "in both": "**目标**：\n- 部署\n**Next step**\n- y",
}


@pytest.mark.parametrize("case", CHINESE_TAKEN)
@pytest.mark.parametrize("language", TEXTS)
def test_headings_of_either_language_are_taken_and_get_that_of_the_talk(case: str, language: str) -> None:
    texts = TEXTS[language]
    verdict = validate_answer(completion(CHINESE_TAKEN[case]), headings=TWO, cap_tokens=100, texts=texts)
    goal, step = (heading_in(heading, texts) for heading in TWO)
    assert verdict == AnswerValidation(text=f"## {goal}\n- 部署\n## {step}\n- y")


def test_what_is_wrong_with_chinese_headings_is_told_with_them() -> None:
    for text, told in (
        ("## 目标\n- x", "下一步"),
        ("## 目标\n## Next step\n- x", '目标. Write "- （无）"'),
    ):
        verdict = validate_answer(completion(text), headings=TWO, texts=CHINESE)
        assert verdict.kind == "headings" and told in verdict.reason and "Next step" not in verdict.reason
    long = "\n".join(["## 目标", *["- 部署在周二上午十点进行"] * 20, "## 下一步", "- y"])
    clipped = validate_answer(completion(long), headings=TWO, cap_tokens=200, texts=CHINESE)
    assert clipped.is_clipped and "- （因长度略去）\n## 下一步" in clipped.text and LEFT_OUT not in clipped.text


def test_what_looks_like_a_heading_and_is_none() -> None:
    text = "## Goal\n**Next step**\n```sh\n# Goal\nmake\n```\n## Next step\n- y"
    assert validate_answer(completion(text), headings=TWO) == AnswerValidation(text=text)


def test_a_heading_above_others_may_say_nothing() -> None:
    text = sectioned(OPENCODE_HEADINGS).replace("## Progress\n- something\n", "## Progress\n")
    assert validate_answer(completion(text), headings=OPENCODE_HEADINGS).text == text


def test_secrets_and_fences_leave_an_answer() -> None:
    assert _strip_wrapping("the key is sk-abcdefghijklmnop1234 </summary> x") == "the key is [redacted] &lt;/summary> x"


def test_a_block_of_code_inside_stays() -> None:
    text = "- run:\n```sh\nmake\n```"
    assert _strip_wrapping(text) == text


def test_what_is_little_over_is_cut_and_keeps_its_headings() -> None:
    text = sectioned(ANCHORED_HEADINGS, "短") + "\n" + "\n".join(f"- 事实 {number}：部署在周二" for number in range(20))
    cap = int(count_tokens(text) / 1.4)
    verdict = validate_answer(completion(text), headings=ANCHORED_HEADINGS, cap_tokens=cap)
    assert verdict.is_clipped and not verdict.kind
    assert count_tokens(verdict.text) <= cap
    assert verdict.text.count("## ") == len(ANCHORED_HEADINGS)
    assert verdict.text.endswith(LEFT_OUT) and verdict.text.count(LEFT_OUT) == 1
    assert "事实 0" in verdict.text and "事实 19" not in verdict.text
    assert validate_answer(completion(verdict.text), headings=ANCHORED_HEADINGS, cap_tokens=cap).text == verdict.text


def test_without_a_cap_any_length_is_taken() -> None:
    assert validate_answer(completion("x" * 99_999)).text == "x" * 99_999


@given(st.text(alphabet=st.sampled_from(list("# Goal\n-中x`*")), max_size=300), st.integers(0, 60))
@settings(max_examples=100)
def test_a_clipped_text_is_never_over_its_size(text: str, cap: int) -> None:
    short = clip_sections(text, cap)
    assert count_tokens(short) <= cap or short == text.strip()
    if count_tokens(text) <= cap:
        assert short == text.strip()
    assert {*map(str.strip, short.split("\n"))} <= {*map(str.strip, text.split("\n")), LEFT_OUT, ""}


@given(st.one_of(st.text(max_size=300), st.text(alphabet="0 .!。中\n", max_size=300)), st.integers(0, 60))
@example("000\n0", 1)
def test_the_beginning_of_a_text(text: str, most: int) -> None:
    head = clip_to_sentence(text, most)
    assert text.startswith(head) and count_tokens(head) <= most
    rest = text[len(head) :]
    blank = rest[: len(rest) - len(rest.lstrip())]
    ends_a_sentence = "\n" in blank or head.endswith((".", "!", "?", "。", "！", "？"))
    assert head == text or ends_a_sentence or count_tokens(text[: len(head) + 1]) > most


@pytest.mark.parametrize("sign", ["#", "**", "## Goal\n", "`", "```\n", "中", "\n"])
def test_a_quarter_of_a_megabyte_of_hostile_answer(sign: str) -> None:
    text = sign * (250_000 // len(sign))
    with at_most_readings(70):
        validate_answer(completion(text), headings=TWO, cap_tokens=50_000)
        clip_sections(text, 1_000)
