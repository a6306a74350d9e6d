"""Owns which tool results say again, or better, what an older one said: only the newest of them stays.

Invariants: pure and linear; what an older result gives way to is in the view, whole, and at least half as long. A
note that a file is unchanged, an error, or another part of a file takes nobody's place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from memory_service.compaction.steps import (
    CHARS_PER_TOKEN,
    NOTHING_GIVEN,
    Draft,
    Given,
    Pruned,
    PruningRules,
    Result,
    may_prune,
    results_of,
    view_tokens,
)
from memory_service.compaction.stubs import see_text
from memory_service.messages import Function, Numbered, is_tool_result, media_parts_of, text_of, tool_calls_of

# What tools for files are called. Source: those of Claude Code, opencode, pi, Cline, Codex and the MCP file server.
_READS = (
    "read",
    "read[_-]*",
    "*[_-]read",
    "readfile",
    "*__read*",
    "view",
    "view_file",
    "open_file",
    "cat",
    "get_file*",
)
_CHANGES = (
    *(
        "write*",
        "*[_-]write*",
        "edit*",
        "*[_-]edit*",
        "multiedit",
        "notebookedit",
        "patch*",
        "str_replace*",
        "replace*",
    ),
    *("insert*", "create_file", "delete_file", "move_file"),
)
_PATHS = (
    "path",
    "file_path",
    "filePath",
    "filepath",
    "absolute_path",
    "target_file",
    "notebook_path",
    "filename",
    "file",
)


class _File(NamedTuple):
    """What a call was about: a file, whole or in part."""

    path: str
    whole: bool


class _Latest(NamedTuple):
    """The last time that each file was read or changed: the position, the number and the size of the result.

    `files` are those that were read, by the position of the result.
    """

    files: dict[int, _File]
    whole: dict[str, tuple[int, int, int]]
    alike: dict[str, tuple[int, int, int]]
    changed: dict[str, tuple[int, int, int]]


def duplicates(
    messages: Sequence[Numbered], rules: PruningRules | None = None, *, given: Given = NOTHING_GIVEN
) -> Pruned:
    """Clears results that a later one took the place of: the same text, the same file read again or changed since.

    Args:
        messages: The view, in order.
        rules: Of these, `allow_tools`, `deny_tools`, `min_result_chars` and `stale_after` count.
        given: What is settled before.
    """
    rules = rules or PruningRules()
    draft = Draft(rules, given, view_tokens(messages, given))
    found = [each for each in results_of(messages, rules, given) if not media_parts_of(each.numbered.message)]
    twins = _twins(messages, rules, given) if found else {}
    latest = _latest_of_files(messages, rules, given) if found else None
    same = outdated = 0
    for result in found:
        if twin := twins.get(result.numbered.seq):
            same += draft.put(result, _see(result, "same as", twin))
        elif latest and (why := _superseded(result, latest)):
            outdated += draft.put(result, _see(result, *why))
    return draft.done(
        f"{same} results were the same as a later one." if same else "",
        f"{outdated} texts of files were read again or changed later." if outdated else "",
    )


def _twins(messages: Sequence[Numbered], rules: PruningRules, given: Given) -> dict[int, int]:
    """For each result whose text comes again, the number of the newest result with that text."""
    least = rules.min_result_chars // CHARS_PER_TOKEN
    groups: dict[tuple[int, str], list[tuple[str, int]]] = {}
    for each in messages:
        message = each.message
        if each.tokens > least and is_tool_result(message) and each.seq not in given.already:
            text = "" if message.get("interim") else text_of(message)
            groups.setdefault((len(text), text[-64:]), []).append((text, each.seq))
    # Long texts are hashed only where two may be the same.
    alike = [pair for group in groups.values() if len(group) > 1 for pair in group if pair[0]]
    newest = dict(alike)
    return {seq: newest[text] for text, seq in alike if newest[text] != seq}


def _latest_of_files(messages: Sequence[Numbered], rules: PruningRules, given: Given) -> _Latest:
    latest = _Latest({}, {}, {}, {})
    functions: dict[str, Function] = {}
    least = rules.min_result_chars // CHARS_PER_TOKEN
    settled = _stale_before(messages, rules.stale_after)
    for at, each in enumerate(messages):
        message = each.message
        if "tool_calls" in message:
            for call in tool_calls_of(message):
                functions[call["id"]] = call["function"]
        function = functions.get(message.get("tool_call_id", "")) if is_tool_result(message) else None
        use = _use_of(function["name"]) if function else "other"
        if (
            function is None
            or use == "other"
            or message.get("is_error")
            or message.get("interim")
            or each.seq in given.already
        ):
            continue
        file, touch = _file_of(function), (at, each.seq, each.tokens)
        if file is None:
            continue
        if use == "change":
            if at < settled:
                latest.changed[file.path] = touch
        elif each.tokens > least and not media_parts_of(message):
            latest.files[at] = file
            latest.alike[function["arguments"]] = touch
            if file.whole:
                latest.whole[file.path] = touch
    return latest


def _superseded(result: Result, latest: _Latest) -> tuple[str, int] | None:
    """Why a result is out of date, and the number of the one that says so."""
    file = latest.files.get(result.at)
    if file is None:
        return None
    for at, seq, tokens in filter(None, (latest.whole.get(file.path), latest.alike.get(result.function["arguments"]))):
        if at > result.at and 2 * tokens >= result.tokens:
            return "read again, see", seq
    at, seq, _ = latest.changed.get(file.path, (-1, 0, 0))
    return ("file was changed later, see", seq) if at > result.at else None


def _stale_before(messages: Sequence[Numbered], results: int) -> int:
    """The position behind which fewer than so many results come."""
    if results <= 0:
        return len(messages)
    for at in range(len(messages) - 1, -1, -1):
        results -= is_tool_result(messages[at].message)
        if results == 0:
            return at
    return 0


def _see(result: Result, why: str, seq: int) -> str:
    return see_text(result.function["name"], result.function["arguments"], why, seq, result.numbered.seq)


@lru_cache(maxsize=1024)
def _use_of(name: str) -> Literal["read", "change", "other"]:
    """What a tool does with files, by its name."""
    if may_prune(name, _READS, ()):
        return "read"
    return "change" if may_prune(name, _CHANGES, ()) else "other"


def _file_of(function: Function) -> _File | None:
    try:
        arguments = json.loads(function["arguments"])
    except (ValueError, RecursionError):
        return None
    if not isinstance(arguments, Mapping):
        return None
    for key in _PATHS:
        path = arguments.get(key)
        if isinstance(path, str) and path:
            return _File(path.removeprefix("./"), whole=len(arguments) == 1)
    return None
