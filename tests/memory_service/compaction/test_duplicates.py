from __future__ import annotations

import json
from typing import Any, cast

import pytest

from memory_service.compaction.duplicates import duplicates
from memory_service.compaction.prune_steps import PriorPruning, PruningRules, pruned_view
from memory_service.messages.shapes import Message, text_of
from memory_service.messages.sizes import Numbered, number_message
from tests.memory_service.messages.test_repair import IMAGE, says, user

TEXT = "".join(f"def step_{number}(): ...\n" for number in range(60))
CHINESE = "第一章 上下文管理\n" * 60


def call(tool: str, arguments: dict[str, Any], text: str, **keys: Any) -> list[Message]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    asked = {"role": "assistant", "content": None, "tool_calls": [{"id": "", "type": "function", "function": function}]}
    return [cast(Message, asked), cast(Message, {"role": "tool", "tool_call_id": "", "content": text, **keys})]


def read(path: str, text: str = TEXT, **arguments: Any) -> list[Message]:
    return call("read", {"path": path, **arguments}, text)


def edit(path: str, text: str = "ok", **keys: Any) -> list[Message]:
    return call("edit_file", {"file_path": path, "old": "a", "new": "b"}, text, **keys)


def view(*steps: list[Message], begun: bool = True) -> list[Numbered]:
    """A user who asks and calls with their results, which have the numbers 3, 5, 7 …; then a reply."""
    messages: list[Message] = [user("go")] if begun else []
    for index, (asked, answer) in enumerate(steps):
        ids = [{**each, "id": f"c{index}"} for each in asked["tool_calls"]]
        messages += [cast(Message, {**asked, "tool_calls": ids}), {**answer, "tool_call_id": f"c{index}"}]
    return [number_message(message, seq) for seq, message in enumerate([*messages, says("done")], start=1)]


def gone(*steps: list[Message], **keys: Any) -> dict[int, str]:
    return dict(duplicates(view(*steps), **keys).cleared)


@pytest.mark.parametrize("text", [TEXT, CHINESE])
def test_of_results_with_the_same_text_the_newest_stays(text: str) -> None:
    run = call("bash", {"command": "git diff"}, text)
    assert gone(run, call("bash", {"command": "查看"}, text), run) == {
        3: "[bash: `git diff`; same as log:7; log:3]",
        5: "[bash: `查看`; same as log:7; log:5]",
    }


def test_small_results_are_not_worth_a_stub() -> None:
    assert not gone(*[call("bash", {"command": "ls"}, "a\n" * 60)] * 3)


def test_texts_that_only_begin_and_end_alike_are_not_the_same() -> None:
    assert not gone(call("bash", {}, TEXT + "1" + TEXT), call("bash", {}, TEXT + "2" + TEXT))


def test_a_file_that_is_read_again_is_shown_once() -> None:
    newer = TEXT.replace("step", "stage")
    assert gone(read("a.py"), read("b.py", TEXT + "b"), read("./a.py", newer)) == {
        3: "[read: `a.py`; read again, see log:7; log:3]"
    }
    assert [*gone(read("文档.md", CHINESE), read("文档.md", CHINESE + "完"))] == [3]


def test_a_part_of_a_file_gives_way_to_the_whole_or_to_the_same_part() -> None:
    part, other = read("a.py", offset=1, limit=60), read("a.py", TEXT + "x", offset=61, limit=60)
    assert not gone(part, other)
    assert not gone(read("a.py", TEXT + "w"), other)
    assert [*gone(part, read("a.py", TEXT + "w"))] == [3]
    assert [*gone(part, read("a.py", TEXT + "later", offset=1, limit=60))] == [3]


def test_a_note_that_nothing_changed_takes_nobodys_place() -> None:
    assert not gone(read("a.py"), read("a.py", "File unchanged since it was read."))
    assert not gone(read("a.py"), read("a.py", "The file was not changed; see above. " * 15))


def test_a_failed_read_takes_nobodys_place() -> None:
    failed = call("read", {"path": "a.py"}, "错误:" + TEXT, is_error=True)
    assert not gone(read("a.py"), failed)


def test_what_a_file_said_before_an_edit_goes_once_the_edit_is_old() -> None:
    other = [call("bash", {"command": f"{number}"}, "ok") for number in range(5)]
    assert not gone(read("a.py"), edit("a.py"), *other[:4])
    assert gone(read("a.py"), edit("a.py"), *other) == {3: "[read: `a.py`; file was changed later, see log:5; log:3]"}
    assert [*gone(read("a.py"), edit("a.py"), rules=PruningRules(stale_after=0))] == [3]
    assert not gone(read("a.py"), edit("b.py"), *other)
    assert not gone(read("a.py"), edit("a.py", "no match", is_error=True), *other)
    assert not gone(edit("a.py"), read("a.py"), *other)


def test_only_tools_that_read_files_are_judged_by_their_paths() -> None:
    assert not gone(call("bash", {"path": "a.py"}, TEXT), call("bash", {"path": "a.py"}, TEXT + "x"))
    assert [
        *gone(call("mcp__fs__read_text_file", {"path": "a"}, TEXT), call("View", {"file_path": "a"}, TEXT + "x"))
    ] == [3]
    broken = read("a.py")
    broken[0]["tool_calls"][0]["function"]["arguments"] = '{"path": "a.py'
    assert not gone(broken, read("a.py", TEXT + "x"))


def test_pins_errors_unread_and_pending_results_stay() -> None:
    run = call("bash", {}, TEXT)
    assert [*gone(run, run, run, prior=PriorPruning(protected={3}))] == [5]
    assert [*gone(run, run, run, prior=PriorPruning(pending={"c1"}))] == [3]
    assert [*gone(call("bash", {}, TEXT, is_error=True), run, run)] == [5]
    unread = view(run, run)[:-1]
    assert [*duplicates(unread).cleared] == [3]


def test_what_is_cleared_already_takes_nobodys_place_and_is_not_touched() -> None:
    run = call("bash", {}, TEXT)
    assert not gone(run, run, prior=PriorPruning(already={5: "[bash, cleared; log:5]"}))
    assert not gone(read("a.py"), read("a.py", TEXT + "x"), prior=PriorPruning(already={5: "[read, cleared; log:5]"}))


def test_results_with_images_stay() -> None:
    pictured = call("bash", {}, "")
    pictured[1]["content"] = [{"type": "text", "text": TEXT}, IMAGE]
    assert not gone(pictured, pictured)


def test_the_sizes_are_those_of_the_views() -> None:
    messages = view(read("a.py"), call("bash", {}, CHINESE), call("bash", {}, CHINESE), read("a.py", TEXT + "x"))
    done = duplicates(messages)
    after = pruned_view(messages, done.cleared)
    assert done.tokens_before == sum(each.tokens for each in messages)
    assert done.tokens_after == sum(each.tokens for each in after) < done.tokens_before
    assert text_of(after[-2].message) == TEXT + "x"
    assert done.notes == (
        "1 results were the same as a later one.",
        "1 texts of files were read again or changed later.",
    )
