"""What an agent reads after a compaction by rules, to go on rightly."""

from __future__ import annotations

from memory_service.compaction.stateless import compact
from memory_service.compaction.summary_format import without_repeated
from memory_service.messages.reading import read_messages
from memory_service.messages.shapes import Message, text_of
from tests.memory_service.compaction.work import called, looks, said


def summary_of(messages: list[Message], window: int = 12_000) -> str:
    view = text_of(read_messages(compact(messages, context_window=window, force=True).messages)[0])
    return view[view.find("<summary>") : view.find("</summary>")]


def test_items_have_the_line_above_their_list_and_headings_are_gone() -> None:
    text = summary_of([
        said("user", "Clean the config.\n\nRemove these:\n- old guest wifi\n- UPnP\n\nKeep these:\n- VPN on 51820"),
        said("assistant", "## Summary of changes\n\n- the wifi\n\n### What's NEW vs Current\nAll three are done."),
        said("user", "Print the config."),
        *looks(30),
    ])  # fmt: skip
    assert "Remove these: old guest wifi" in text and "Keep these: VPN on 51820" in text
    assert "What's NEW" not in text and "- Assistant: Summary of changes (" not in text


def test_of_what_was_announced_only_the_last_step_stands() -> None:
    text = summary_of([
        said("user", "Move the site to the new host."),
        said("assistant", "Great question! Let me look at the database first."),
        *looks(3),
        said("assistant", "Now I’ll check the DNS records."),
        *looks(3, first=10),
        said("assistant", "The records point to the old host, because the TTL is a week."),
        *looks(30, first=20),
    ])  # fmt: skip
    assert "database first" not in text and "Great question" not in text and "check the DNS" not in text
    assert "because the TTL is a week" in text


def test_what_a_tool_printed_is_neither_done_nor_a_fact() -> None:
    text = summary_of([
        said("user", "Fix the labels."),
        *called("TodoWrite", {"x": 1}, "Todos have been modified successfully.", "a"),
        *called("Bash", {"command": "vitest"}, "bash 212 dofork: child -1 - died unexpectedly, exit code 1", "b"),
        *called("Bash", {"command": "vitest"}, "Tests  12 passed (12)\nexit code 0", "c"),
        said("assistant", "Fixed: the labels come from the API."),
        said("user", "And the tooltips?"),
        *looks(30),
    ])  # fmt: skip
    assert "Tool:" not in text
    assert "Fixed: the labels come from the API." in text


def test_options_give_way_to_the_one_that_was_chosen() -> None:
    text = summary_of([
        said("user", "We need a cache."),
        said("assistant", "Which cache should we use?\n1. Redis on its own server\n2. In-memory LRU per process"),
        said("user", "2"),
        *looks(30),
    ])  # fmt: skip
    assert "Redis" not in text and "- User: 2" not in text


def test_code_in_a_sentence_does_not_break_it() -> None:
    text = summary_of([
        said("user", "Show labels."),
        said("assistant", "Labels come from `GET /orders?expand=label and more of it`, and others fall back to ids."),
        said("user", "Good. Now sort the table by date."),
        *looks(30),
    ])  # fmt: skip
    assert "Labels come from `GET /orders?expand=label and more of it`, and others fall back to ids." in text


def test_a_summary_does_not_repeat_the_request_below_it() -> None:
    summary = (
        "## Goal\n- User: Write the test. (log:3)\n\n## User constraints\n- User: Write the test. (log:3)\n\n"
        "## Open asks\n- User: Write the test. (log:3)\n\n"
        "## Facts\n- User: Kim owns it. (log:2)\n- Assistant: x (log:3)"
    )
    assert without_repeated(summary, "Write the test.\nAnd more.", 3) == (
        "## Goal\n- User: Write the test. (log:3)\n\n## User constraints\n- User: Write the test. (log:3)\n\n"
        "## Facts\n- User: Kim owns it. (log:2)\n- Assistant: x (log:3)"
    )
    assert without_repeated(summary, "Something else.", 3) == summary
    assert without_repeated("A model's words. (log:3)", "words", 3) == "A model's words. (log:3)"
