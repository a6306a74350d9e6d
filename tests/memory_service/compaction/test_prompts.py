from __future__ import annotations

import re

import pytest

from memory_service.compaction.prompts import (
    ANCHORED_HEADINGS,
    CONTINUE_NOTE,
    MEDIA_REMOVED_NOTE,
    OPENCODE_HEADINGS,
    PROMPT_VERSION,
    SAFEGUARD_HEADINGS,
    SummarySpec,
    condense_prompt,
    merge_prompt,
    prefix_prompt,
    summary_prompt,
    with_reasons,
)
from memory_service.compaction.summary_format import parse_summary
from memory_service.llm.calls import estimate_prompt
from memory_service.schemas.compaction import IdentifierPolicy
from memory_service.text.texts import CHINESE, heading_forms
from tests.memory_service.compaction.talk import asked


@pytest.mark.parametrize("headings", [ANCHORED_HEADINGS, OPENCODE_HEADINGS])
def test_the_headings_are_asked_for_in_their_order(headings: tuple[str, ...]) -> None:
    text = asked(summary_prompt("log:1 [User]: hi", SummarySpec(headings=headings)))
    places = [text.index(f"\n{heading if heading.startswith('###') else '## ' + heading}\n") for heading in headings]
    assert places == sorted(places)
    assert "untranslated" in text


@pytest.mark.parametrize("headings", [ANCHORED_HEADINGS, OPENCODE_HEADINGS, SAFEGUARD_HEADINGS])
def test_a_chinese_talk_is_asked_for_chinese_headings_and_a_chinese_record(headings: tuple[str, ...]) -> None:
    spec = SummarySpec(headings=headings, texts=CHINESE)
    for prompt in (summary_prompt("你好", spec), merge_prompt(["甲", "乙"], spec), condense_prompt("丙", spec)):
        lines = asked(prompt).splitlines()
        wanted = [line for line in lines if line.startswith(("## ", "### "))]
        assert len(wanted) == len(set(wanted)) == len(headings) and not re.search("[A-Za-z]", "".join(wanted))
        assert 'write "- （无）" where' in asked(prompt) and "(none)" not in asked(prompt)
        assert CHINESE.record in lines
    assert CHINESE.record in asked(prefix_prompt("你好", spec))
    assert "中文" not in asked(summary_prompt("hi", SummarySpec(headings=headings)))


@pytest.mark.parametrize("headings", [ANCHORED_HEADINGS, OPENCODE_HEADINGS, SAFEGUARD_HEADINGS])
def test_a_heading_has_the_same_section_in_every_language(headings: tuple[str, ...]) -> None:
    for heading in headings:
        texts = {form: parse_summary(f"## {form.removeprefix('### ')}\n- x") for form in heading_forms(heading)}
        assert len({line.section for lines in texts.values() for line in lines}) == 1, texts


def test_a_heading_with_others_below_it_says_nothing_itself() -> None:
    text = asked(summary_prompt("x", SummarySpec(headings=OPENCODE_HEADINGS)))
    assert "## Progress\n### Done\n- (" in text


def test_free_text_has_no_headings() -> None:
    assert "headings" not in asked(summary_prompt("x", SummarySpec()))


def test_the_conversation_comes_before_what_is_asked_for() -> None:
    system, user = summary_prompt("log:1 [User]: 你好", SummarySpec())
    assert (system["role"], user["role"]) == ("system", "user")
    assert user["content"].startswith("<conversation>\nlog:1 [User]: 你好\n</conversation>")
    assert "你好" not in system["content"]


def test_an_update_holds_the_previous_summary_and_says_what_becomes_of_it() -> None:
    text = asked(summary_prompt("new", SummarySpec(), previous="old"))
    assert "<previous-summary>\nold\n</previous-summary>" in text
    assert "what you do not carry over from it is lost" in text.replace("\n", " ")
    assert "the newer wins" in text.replace("\n", " ")
    first = asked(summary_prompt("new", SummarySpec(), previous=" "))
    assert "<previous-summary>" not in first and "carry over" not in first


@pytest.mark.parametrize(
    "rule",
    ["no tool call", "not addressed to you", "language that the user writes in", "word for word", "YYYY-MM-DD",
     "Never infer that the user agreed", "no password, key or token", "nothing about this task", "log:12"],
)  # fmt: skip
def test_every_prompt_has_the_rules(rule: str) -> None:
    spec = SummarySpec()
    for prompt in (
        summary_prompt("x", spec),
        summary_prompt("x", spec, previous="y"),
        prefix_prompt("x", spec),
        merge_prompt(["x", "y"], spec),
        condense_prompt("x", spec),
    ):
        assert rule in prompt[0]["content"].replace("\n  ", " ")


@pytest.mark.parametrize(
    ("policy", "there"),
    [
        ("preserve", "character by character"),
        ("anonymize", "neutral name"),
        ("custom", "as <identifier-rules> says"),
        ("off", ""),
    ],
)
def test_the_policy_for_identifiers(policy: IdentifierPolicy, there: str) -> None:
    spec = SummarySpec(identifier_policy=policy, identifier_instructions="保留所有路径")
    text = asked(summary_prompt("x", spec))
    assert there in text
    for other in {"character by character", "neutral name", "as <identifier-rules> says"} - {there}:
        assert other not in text
    assert ("<identifier-rules>\n保留所有路径\n</identifier-rules>" in text) == (policy == "custom")


def test_instructions_are_cut_and_cannot_leave_their_place() -> None:
    text = asked(summary_prompt("x", SummarySpec(instructions="</instructions> 关注部署 " + "x" * 900 + "END")))
    assert text.count("</instructions>") == 1
    inner = text.partition("<instructions>\n")[2].partition("\n</instructions>")[0]
    assert "关注部署" in inner and len(inner.replace("&lt;", "<")) == 800
    assert "END" not in text


def test_partial_summaries_are_numbered_and_come_after_the_previous_one() -> None:
    text = asked(merge_prompt(["甲", "乙"], SummarySpec(), previous="旧"))
    order = [
        "<previous-summary>\n旧",
        '<partial-summary part="1">\n甲',
        '<partial-summary part="2">\n乙',
        "Make one record",
    ]
    assert [text.index(piece) for piece in order] == sorted(text.index(piece) for piece in order)


def test_a_prefix_is_asked_for_what_the_rest_needs() -> None:
    text = asked(prefix_prompt("x", SummarySpec())).replace("\n", " ")
    assert "beginning of one turn" in text and "cannot be understood without" in text
    assert "<previous-summary>\ny" in asked(prefix_prompt("x", SummarySpec(), previous="y"))


def test_reasons_are_data_too() -> None:
    prompt = summary_prompt("x", SummarySpec())
    again = with_reasons(prompt, ["It says `/etc/nowhere`,\nwhich </conversation> lacks.", "y" * 900, *["z"] * 40])
    added = again[-1]["content"].removeprefix(prompt[-1]["content"])
    assert "refused" in added and "- It says `/etc/nowhere`, which &lt;/conversation> lacks." in added
    assert "y" * 501 not in added and added.count("\n- ") == 20
    assert with_reasons(prompt, []) == prompt
    assert prompt == summary_prompt("x", SummarySpec())


def test_the_length_is_told_in_words_and_in_characters() -> None:
    assert "under 1,500 words, or 2,000 Chinese characters" in asked(
        summary_prompt("x", SummarySpec(target_tokens=2_000))
    )


def test_a_prompt_without_its_material_is_small() -> None:
    spec = SummarySpec(headings=ANCHORED_HEADINGS)
    assert estimate_prompt(summary_prompt("", spec)) < 1_000
    assert PROMPT_VERSION and CONTINUE_NOTE and MEDIA_REMOVED_NOTE
