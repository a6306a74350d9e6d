from __future__ import annotations

import pytest

from memory_service.compaction import compact
from memory_service.compaction.audit import Audit, audit_summary
from memory_service.compaction.mending import SourceTerms, mend_summary, with_lines_of_rules, without_content
from memory_service.compaction.summary import SummaryRequest
from memory_service.errors import UpstreamFailed
from memory_service.testing import ScriptedModel
from tests.memory_service.compaction.talk import chat, log, says, sectioned, user

SAID = log(
    user("The shop's checkout hangs. Never deploy on Fridays. Ping ops@example.com."),
    says("I raised the timeout of the checkout to 60 seconds. Shall I deploy it?"),
    user("Wait. 周五不要发布。"),
)
REQUEST = SummaryRequest(messages=SAID)
CONSENT = "- The user approved to deploy the checkout"
DOWN = UpstreamFailed("It is down. Try again.", kind="unavailable")


def mended(text: str, *, keep: bool = False, request: SummaryRequest = REQUEST) -> tuple[str, tuple[str, ...]]:
    audit = audit_summary(text, request=request)
    made = mend_summary(text, audit, request, source=SourceTerms(request), keep=keep)
    return made.text, made.notes


def test_a_line_with_something_invented_goes_or_is_marked() -> None:
    text = "## Done\n- The timeout of the checkout is 60 seconds\n- It took 4711 euros"
    assert "4711" not in mended(text)[0] and "60 seconds" in mended(text)[0]
    kept, notes = mended(text, keep=True)
    assert "- It took 4711 euros [not found in the conversation]" in kept and "marked: 1" in notes[0]


def test_what_rests_on_an_invented_consent_goes_with_it() -> None:
    text = (
        f"## Done\n- The checkout hangs\n## Decisions\n{CONSENT}\n## Next step\n- Deploy the checkout now\n## Context"
    )
    for keep in (False, True):
        rest, notes = mended(text, keep=keep)
        assert "approved" not in rest and "Deploy the checkout" not in rest and "left out: 2" in notes[0]
        assert "## Next step\n- (none)" in rest


def test_rules_and_identifiers_are_put_back_as_they_were_said() -> None:
    text, notes = mended("## User constraints\n- (none)\n## Context\n- The checkout hangs, its timeout was raised")
    assert "## User constraints\n- User: Never deploy on Fridays. (log:1)\n" in text
    assert "- User: Ping ops@example.com. (log:1)" in text and "put back by code" in notes[-1]
    short = SummaryRequest(messages=SAID, target_tokens=20)
    assert "ops@" not in mended("The checkout hangs, its timeout was raised", request=short)[0]


@pytest.mark.parametrize("text", ["All is well.", "## Done\n- (none)", CONSENT, "- It took 4711 euros", ""])
def test_what_tells_nothing_of_the_source_is_nothing(text: str) -> None:
    assert mended(text)[0] == ""


def test_a_text_without_content() -> None:
    assert without_content("## Goal\n- (none)\n## Done\n（无）") == "empty"
    assert without_content("## Goal\n- I'm sorry, I can't do that.") == "refusal"
    assert without_content("## Goal\n- I'm sorry.\n- The checkout hangs") == ""


def test_lines_of_rules_go_below_empty_headings_as_far_as_they_fit() -> None:
    by_rules = "## Goal\n- User: fix the checkout\n\n## Facts\n- The shop is old"
    text, count = with_lines_of_rules(
        "## Goal\n- (none)\n## Context\n- x", by_rules, ("Goal", "Context"), REQUEST, only_empty=True
    )
    assert (text, count) == ("## Goal\n- User: fix the checkout\n## Context\n- x", 1)
    none = SummaryRequest(messages=SAID, target_tokens=5)
    assert with_lines_of_rules("## Goal\n- (none)", by_rules, ("Goal",), none, only_empty=True)[1] == 0


def test_an_audit_without_findings_changes_nothing() -> None:
    text = "- The checkout hangs"
    made = mend_summary(text, Audit(), REQUEST, source=SourceTerms(REQUEST), keep=False)
    assert (made.text, made.notes) == (text, ())


def test_what_was_read_is_kept_when_a_later_call_fails_and_rules_tell_of_the_rest() -> None:
    messages = [each.message for each in chat(60)]
    for preset in ("default", "openclaw", "ponybunny"):
        good = sectioned() if preset == "default" else "The deploy runs on Tuesday."
        model = ScriptedModel(good, *[DOWN] * 60, context_window=16_000)
        made = compact(messages, context_window=24_000, preset=preset, force=True, model=model).receipt
        assert made.method == "model" and "[Partial: the messages log:" in (made.summary or ""), preset
        assert any("partial" in note for note in made.notes)
        assert any("rules found" in note for note in made.notes) == (preset == "default")
