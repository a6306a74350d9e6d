"""Todo lists of agents by their shape, in the ledger and in every view until they are done."""

from __future__ import annotations

import pytest

from memory_service.compaction.ledger import ledger_of, merge_ledger
from memory_service.compaction.stateless import compact
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import number_message
from memory_service.schemas.compaction import LedgerEntry
from tests.memory_service.compaction.work import called, looks, said

ITEMS = [("Copy the database", "completed"), ("Switch DNS", "in_progress"), ("Cancel the old host", "pending")]
LISTS: list[tuple[str, object]] = [
    ("TodoWrite", {"todos": [{"content": text, "status": state, "activeForm": "…"} for text, state in ITEMS]}),
    ("update_plan", {"explanation": "so far", "plan": [{"step": text, "status": state} for text, state in ITEMS]}),
    ("todowrite", {"todos": [{"content": t, "status": s, "priority": "high", "id": "7"} for t, s in ITEMS]}),
    ("write_todos", {"todos": [{"description": text, "status": state} for text, state in ITEMS]}),
    ("update_todo_list", {"todos": "[x] Copy the database\n[-] Switch DNS\n[ ] Cancel the old host"}),
    (
        "read_file",
        {"path": "a", "task_progress": "- [x] Copy the database\n- [~] Switch DNS\n- [ ] Cancel the old host"},
    ),
]
WANTED = ["[x] Copy the database", "[~] Switch DNS", "[ ] Cancel the old host"]


def todos(messages: list[Message], before: tuple[LedgerEntry, ...] = ()) -> list[str]:
    said_now = [number_message(message, at) for at, message in enumerate(messages, 1 + 100 * bool(before))]
    ledger = merge_ledger(before, ledger_of(said_now, before=before))
    return [entry.text for entry in ledger if entry.kind == "todo"]


@pytest.mark.parametrize(("name", "arguments"), LISTS)
def test_a_list_is_known_by_its_shape(name: str, arguments: object) -> None:
    assert todos(called(name, arguments, "ok", "c1")) == WANTED


@pytest.mark.parametrize(("name", "arguments"), LISTS)
def test_open_items_stand_in_every_view(name: str, arguments: object) -> None:
    messages = [said("user", "Move the site."), *called(name, arguments, "Todos have been modified.", "c1"), *looks(36)]
    for _ in range(3):
        view = compact(messages, context_window=16_000, force=True).messages
        assert all(item in str(view[0]["content"]) for item in WANTED[1:])
        messages = [*messages, *looks(10, first=100 + len(messages))]


def test_the_last_list_counts_and_a_done_one_is_done() -> None:
    before = merge_ledger((), ledger_of([number_message(each, 1) for each in called(*LISTS[0], "ok", "c1")]))
    done = {"todos": [{"content": text, "status": "completed"} for text, _ in ITEMS]}
    assert all(text.startswith("[x]") for text in todos(called("TodoWrite", done, "ok", "c2"), before))
    assert todos(called("TodoWrite", {"todos": []}, "ok", "c2"), before) == ["[x] -"]
    assert todos([said("user", "Go on.")], before) == WANTED


def test_single_items_are_changed_in_their_places() -> None:
    made = [
        *called(
            "TaskCreate", {"subject": "Copy the database", "description": "d"}, "Task #1 created successfully", "a"
        ),
        *called("TaskCreate", {"subject": "Switch DNS", "description": "d"}, "Task #2 created successfully", "b"),
        *called("TaskUpdate", {"taskId": "1", "status": "completed"}, "Updated task #1 status", "c"),
    ]
    assert todos(made) == ["[x] #1 Copy the database", "[ ] #2 Switch DNS"]
    before = merge_ledger((), ledger_of([number_message(each, at) for at, each in enumerate(made, 1)]))
    later = called("TaskUpdate", {"taskId": "2", "status": "in_progress"}, "Updated task #2 status", "d")
    assert todos(later, before) == ["[x] #1 Copy the database", "[~] #2 Switch DNS"]


def test_a_merged_list_keeps_the_items_that_it_does_not_name() -> None:
    first = {"merge": False, "todos": [{"id": str(at), "content": t, "status": s} for at, (t, s) in enumerate(ITEMS)]}
    change = {"merge": True, "todos": [{"id": "1", "status": "completed"}]}
    found = todos([*called("todo_write", first, "ok", "a"), *called("todo_write", change, "ok", "b")])
    assert found == ["[x] #0 Copy the database", "[x] #1 Switch DNS", "[ ] #2 Cancel the old host"]


def test_a_plan_in_words_and_boxes_of_the_assistant_are_lists() -> None:
    plan = {"plan": "# Plan\n\n1. Read the schema\n2. Write the migration\n   - with a test\n3. Run it"}
    assert todos(called("ExitPlanMode", plan, "User has approved your plan.", "c")) == [
        "[ ] Read the schema", "[ ] Write the migration", "[ ] Run it",
    ]  # fmt: skip
    refused = called("ExitPlanMode", plan, "The user doesn't want to proceed with this tool use.", "c", failed=True)
    assert todos(refused) == []
    assert todos([said("assistant", "Where we are:\n- [x] schema\n- [ ] migration")]) == ["[x] schema", "[ ] migration"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search", {"items": ["a", "b"]}),
        ("create_issue", {"title": "x", "status": "open"}),
        ("list_orders", {"items": [{"name": "kettle"}, {"name": "pot"}]}),
        ("update_order", {"items": [{"name": "kettle", "status": "shipped"}, {"name": "pot", "status": "returned"}]}),
        ("search", {"items": [], "steps": [], "tasks": []}),
        ("Write", {"file_path": "a.md", "content": "- [ ] one\n- [ ] two"}),
    ],
)
def test_other_lists_are_none(name: str, arguments: object) -> None:
    assert todos(called(name, arguments, "ok", "c")) == []
    before = merge_ledger((), ledger_of([number_message(each, 1) for each in called(*LISTS[0], "ok", "c0")]))
    assert todos(called(name, arguments, "ok", "c"), before) == WANTED
