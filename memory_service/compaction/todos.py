"""Todo lists of agents, read by their shape: the last list, with what was changed in it since. Pure.

Invariants: linear; a list is known by a text and a state of work in each of its items, whatever tool it is given to,
so that an order of "Pot, shipped" is none; a list takes the place of the one before it, a change of single items keeps
the others; what a tool refused changes nothing.

Source: TodoWrite, TaskCreate and TaskUpdate of Claude Code, update_plan of Codex, todowrite of opencode, todo_write of
Cursor, write_todos of Gemini CLI, update_todo_list of Roo Code, task_progress of Cline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from indexer.common import lazy_regex
from memory_service.compaction.actions import was_refused
from memory_service.messages.shapes import Message, ToolCall, arguments_of, is_tool_result, text_of, tool_calls_of
from memory_service.messages.sizes import Numbered
from memory_service.schemas.compaction import LedgerEntry
from memory_service.text.secrets import redact
from memory_service.text.sentences import single_line

_TEXT_KEYS = ("content", "step", "title", "text", "task", "description", "subject", "name", "item", "todo")
_STATE_KEYS = ("status", "state", "completed", "done", "checked")
_ID_KEYS = ("id", "taskId", "task_id", "todo_id")
# An empty value of these empties the list; tools of all kinds have lists under the other keys.
_TODO_KEYS = frozenset({"todos", "plan", "todo_list", "todoList"})
_LIST_KEYS = ("todos", "plan", "task_progress", "todo_list", "todoList", "tasks", "steps", "items", "list", "checklist")
_DONE = frozenset("completed complete done finished closed cancelled canceled skipped deleted removed x true".split())
_OPEN = frozenset(
    "pending todo to_do to-do open new not_started not-started queued planned blocked waiting false".split()
) | {"not started"}
_DOING = frozenset(
    "in_progress in-progress inprogress in_review review reviewing active doing current started running ~ - > /".split()
)
_BOX = lazy_regex(r"[ \t]{0,12}(?:[-*+]|\d{1,3}[.)])?[ \t]*\[(?P<mark>[ xX✓~>/-])\][ \t]+(?P<text>\S.*)")
_STEP = lazy_regex(r"(?:[-*+]|\d{1,3}[.)])[ \t]+(?P<text>\S.*)")
_SINGLE = lazy_regex(r"(?i)(?:task|todo)_?(?:create|update|add|complete)|(?:create|update|add|complete)_?(?:task|todo)")
_NUMBERED = lazy_regex(r"#(\w[\w-]{0,39})")
_WRITTEN = lazy_regex(r"\[(?P<mark>[ x~])\] (?:#(?P<id>\S{1,40}) )?(?P<text>.*)")
_TEXT_CHARS = 160
_MOST_ITEMS, _MOST_DONE = 40, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Todo:
    """An item; `mark` is a blank, `~` or `x`; `todo_id` is empty where nothing names it again."""

    mark: str
    text: str
    todo_id: str = ""

    def render(self) -> str:
        named_text = f"#{self.todo_id} " if self.todo_id else ""
        return f"[{self.mark}] {named_text}{self.text}"


def todos_after(messages: Sequence[Numbered], before: Iterable[LedgerEntry] = ()) -> list[LedgerEntry]:
    """The todo list after some messages; none if they do not change it.

    Args:
        messages: The messages.
        before: The ledger before them.
    """
    results = {
        message.message.get("tool_call_id", ""): message.message
        for message in messages
        if is_tool_result(message.message)
    }
    items, changed_in = [_read(entry.text) for entry in before if entry.kind == "todo"], 0
    for each_message in messages:
        for call in tool_calls_of(each_message.message):
            result = results.get(call["id"])
            if (result is not None and result.get("is_error")) or was_refused(result):
                continue
            after = _apply_call(items, call, result)
            items, changed_in = (items, changed_in) if after is None else (after, each_message.seq)
        if each_message.message["role"] == "assistant" and len(boxes := _boxes(text_of(each_message.message))) > 1:
            items, changed_in = boxes, each_message.seq
    return (
        [LedgerEntry(kind="todo", text=todo.render(), seqs=[changed_in]) for todo in _limit_items(items)]
        if changed_in
        else []
    )


def _read(text: str) -> _Todo:
    match = _WRITTEN.fullmatch(text)
    return (
        _Todo(mark=match["mark"], text=match["text"], todo_id=match["id"] or "")
        if match
        else _Todo(mark=" ", text=text)
    )


def is_open_todo(entry: LedgerEntry) -> bool:
    """True for an entry of a todo list that is not done."""
    return entry.kind == "todo" and not entry.text.startswith("[x]")


def _limit_items(items: Sequence[_Todo]) -> list[_Todo]:
    """All that is open, and of what is done the last; a mark of a list that is done and empty."""
    done_todos = [todo for todo in items if todo.mark == "x"]
    kept_numbers = {id(todo) for todo in done_todos[-_MOST_DONE:]} | {id(todo) for todo in items if todo.mark != "x"}
    return [todo for todo in items if id(todo) in kept_numbers][:_MOST_ITEMS] or [_Todo(mark="x", text="-")]


def _apply_call(items: list[_Todo], call: ToolCall, result: Message | None) -> list[_Todo] | None:
    """The list after a call; None if it changes none."""
    arguments = arguments_of(call)
    for key in _LIST_KEYS:
        todos = _items_of(arguments.get(key), is_named="merge" in arguments)
        if todos or (todos is not None and key in _TODO_KEYS):
            return _merge_items(items, todos) if arguments.get("merge") else todos
    if _SINGLE.search(call["function"]["name"]):
        return _with_single(items, arguments, result)
    return None


def _items_of(value: object, *, is_named: bool) -> list[_Todo] | None:
    """The items of a value that has the shape of a list; None for any other."""
    if isinstance(value, str):
        # A plan in words: its steps at the margin.
        steps = [match["text"] for line in value.splitlines() if (match := _STEP.match(line))]
        return _boxes(value) or ([_todo(text) for text in steps] if len(steps) > 1 else None)
    if not isinstance(value, list):
        return None
    if not value:
        return []
    if all(isinstance(each_value, str) for each_value in value):
        boxes = _boxes("\n".join(value))
        return boxes if len(boxes) == len(value) else None
    todos = [_item_of(each_value, is_named=is_named) for each_value in value]
    return [todo for todo in todos if todo is not None] if all(todos) else None


def _item_of(value: object, *, is_named: bool = False) -> _Todo | None:
    if not isinstance(value, Mapping):
        return None
    state = next((value[key] for key in _STATE_KEYS if key in value), None)
    text = next((text for key in _TEXT_KEYS if isinstance(text := value.get(key), str) and text.strip()), "")
    todo_id = _id_of(value) if is_named else ""
    if state is None or str(state).strip().lower() not in _OPEN | _DOING | _DONE or not (text or todo_id):
        return None
    return _todo(text, str(state), todo_id)


def _id_of(value: Mapping[str, object]) -> str:
    text = next((value[key] for key in _ID_KEYS if isinstance(value.get(key), str | int)), "")
    return "".join(str(text).split())[:40].lstrip("#")


def _todo(text: str, state: str = "", todo_id: str = "") -> _Todo:
    state = state.strip().lower()
    mark = "x" if state in _DONE else "~" if state in _DOING else " "
    return _Todo(mark=mark, text=single_line(redact(text), _TEXT_CHARS), todo_id=todo_id)


def _boxes(text: str) -> list[_Todo]:
    """The lines of a text with a box to tick."""
    if "[" not in text:
        return []
    matches = (_BOX.match(line) for line in text.splitlines())
    return [_todo(match["text"], match["mark"].replace("✓", "x")) for match in matches if match]


def _merge_items(items: Sequence[_Todo], changes: Iterable[_Todo]) -> list[_Todo]:
    """A list with changed items in their places, and new ones at its end."""
    by_id = {todo.todo_id or todo.text: todo for todo in items}
    for change in changes:
        key = change.todo_id or change.text
        known_todo = by_id.get(key)
        by_id[key] = replace(change, text=change.text or known_todo.text) if known_todo else change
    return [todo for todo in by_id.values() if todo.text]


def _with_single(items: list[_Todo], arguments: Mapping[str, object], result: Message | None) -> list[_Todo] | None:
    """A list with one item that a call makes or changes."""
    text = next((text for key in ("subject", *_TEXT_KEYS) if isinstance(text := arguments.get(key), str) and text), "")
    todo_id, state = _id_of(arguments), arguments.get("status", "")
    if not todo_id and result is not None and (match := _NUMBERED.search(text_of(result)[:400])):
        todo_id = match[1]
    if not (text or (todo_id and state)):
        return None
    todo = next((item for item in items if todo_id and item.todo_id == todo_id), None)
    new_todo = _todo(text or (todo.text if todo else ""), str(state), todo_id)
    if todo and not state:
        new_todo = replace(new_todo, mark=todo.mark)
    return _merge_items(items, [new_todo]) if new_todo.text else None
