"""Results of tools that a later one makes needless: the same again, and files that were read or changed since.

Invariants: a result that is left out says where the later one stands; the newest of each stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from memory_service.compaction.prune_steps import (
    CHARS_PER_TOKEN,
    NO_PRIOR_PRUNING,
    PriorPruning,
    Pruned,
    PruningDraft,
    PruningRules,
    ToolResult,
    may_prune,
    results_of,
    view_tokens,
)
from memory_service.messages.shapes import Function, is_tool_result, media_parts_of, text_of, tool_calls_of
from memory_service.messages.sizes import Numbered
from memory_service.text.placeholders import (
    Superseded,
    see_text,
)
from memory_service.text.texts import Texts

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
    """File of a call, whole or in part."""

    path: str
    whole: bool


class _Latest(NamedTuple):
    """The last time that each file was read or changed: the position, the number and the size of the result.

    `files` are those that were read, by the position of the result.
    """

    files: dict[int, _File]
    whole: dict[str, tuple[int, int, int]]
    alike: dict[str, tuple[int, int, int]]
    changes: dict[str, tuple[int, int, int]]


def duplicates(
    messages: Sequence[Numbered], rules: PruningRules | None = None, *, prior: PriorPruning = NO_PRIOR_PRUNING
) -> Pruned:
    """Clears results that a later one took the place of: the same text, the same file read again or changed since.

    Args:
        messages: The view, in order.
        rules: Of these, `allow_tools`, `deny_tools`, `min_result_chars` and `stale_after` count.
        prior: What is settled before.
    """
    rules = rules or PruningRules()
    draft = PruningDraft(rules, prior, view_tokens(messages, prior))
    results = [
        each_result
        for each_result in results_of(messages, rules, prior)
        if not media_parts_of(each_result.numbered.message)
    ]
    twins = _twins(messages, rules, prior) if results else {}
    latest = _latest_of_files(messages, rules, prior) if results else None
    same = number = 0
    for result in results:
        if twin := twins.get(result.numbered.seq):
            same += draft.put(result, _see(result, "same", twin, prior.texts))
        elif latest and (why := _superseded_by(result, latest)):
            number += draft.put(result, _see(result, *why, prior.texts))
    return draft.decisions(
        f"{same} results were the same as a later one." if same else "",
        f"{number} texts of files were read again or changed later." if number else "",
    )


def _twins(messages: Sequence[Numbered], rules: PruningRules, prior: PriorPruning) -> dict[int, int]:
    """For each result whose text comes again, the number of the newest result with that text."""
    least = rules.min_result_chars // CHARS_PER_TOKEN
    groups: dict[tuple[int, str], list[tuple[str, int]]] = {}
    for each_message in messages:
        message = each_message.message
        if each_message.tokens > least and is_tool_result(message) and each_message.seq not in prior.already:
            text = "" if message.get("interim") else text_of(message)
            groups.setdefault((len(text), text[-64:]), []).append((text, each_message.seq))
    # Long texts are hashed only where two may be the same.
    alike = [pair for group in groups.values() if len(group) > 1 for pair in group if pair[0]]
    newest = dict(alike)
    return {seq: newest[text] for text, seq in alike if newest[text] != seq}


def _latest_of_files(messages: Sequence[Numbered], rules: PruningRules, prior: PriorPruning) -> _Latest:
    latest = _Latest({}, {}, {}, {})
    functions: dict[str, Function] = {}
    least = rules.min_result_chars // CHARS_PER_TOKEN
    stale_before = _stale_before(messages, rules.stale_after)
    for at, each_message in enumerate(messages):
        message = each_message.message
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
            or each_message.seq in prior.already
        ):
            continue
        file, touch = _file_of(function), (at, each_message.seq, each_message.tokens)
        if file is None:
            continue
        if use == "change":
            if at < stale_before:
                latest.changes[file.path] = touch
        elif each_message.tokens > least and not media_parts_of(message):
            latest.files[at] = file
            latest.alike[function["arguments"]] = touch
            if file.whole:
                latest.whole[file.path] = touch
    return latest


def _superseded_by(result: ToolResult, latest: _Latest) -> tuple[Superseded, int] | None:
    """Why a result is out of date, and the number of the one that says so."""
    file = latest.files.get(result.at)
    if file is None:
        return None
    for at, seq, tokens in filter(None, (latest.whole.get(file.path), latest.alike.get(result.function["arguments"]))):
        if at > result.at and 2 * tokens >= result.tokens:
            return "read_again", seq
    at, seq, _ = latest.changes.get(file.path, (-1, 0, 0))
    return ("changed", seq) if at > result.at else None


def _stale_before(messages: Sequence[Numbered], results: int) -> int:
    """The position behind which fewer than so many results come."""
    if results <= 0:
        return len(messages)
    for at in range(len(messages) - 1, -1, -1):
        results -= is_tool_result(messages[at].message)
        if results == 0:
            return at
    return 0


def _see(result: ToolResult, why: Superseded, seq: int, texts: Texts) -> str:
    function = result.function
    return see_text(function["name"], function["arguments"], why, seq, result.numbered.seq, texts=texts)


@lru_cache(maxsize=1024)
def _use_of(name: str) -> Literal["read", "change", "other"]:
    """Use of files by a tool, by its name."""
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
