"""Tool calls read by name, arguments and result: files, commands, failures. Pure.

Invariants: linear; tools are known by the words of their names, since every harness names them differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from indexer.text import lazy_regex
from indexer.text.ornaments import ornament
from indexer.text.outcomes import command_exit_of, failure_lines
from memory_service.messages import Message, ToolCall, arguments_of, text_of
from memory_service.text.sentences import single_line

SUCCESS = ("", "exit 0")  # of outcomes: none told, or none bad
_WORD = lazy_regex("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_READ = frozenset({"read", "cat", "view", "open", "get", "show", "load", "head", "tail"})
_WRITE = frozenset({"write", "edit", "create", "replace", "patch", "insert", "append", "update", "save", "delete",
                    "remove", "multiedit", "move", "rename", "modify"})  # fmt: skip
_SHELL = frozenset({"bash", "shell", "terminal", "exec", "execute", "cmd", "powershell", "zsh", "sh", "command", "run"})
_PATH_KEYS = ("path", "file_path", "filepath", "filename", "file_name", "file", "target_file", "notebook_path",
              "absolute_path", "relative_path", "filePath", "paths", "file_paths", "files")  # fmt: skip
_COMMAND_KEYS = ("command", "cmd", "script", "code", "commands")
_PATCHED = lazy_regex(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(\S[^\n]{0,300})", re.MULTILINE)
_REDIRECTED = lazy_regex(
    r"(?<![0-9&>-])>{1,2}[ \t]{0,4}([^\s;&|<>()'\"$]{1,300})|\btee (?:-a )?([^\s;&|<>()'\"$-][^\s;&|<>()'\"]{0,300})"
)
_SHOWN = lazy_regex(
    r"(?:^|[;&|]\s{0,4})(?:cat|head|tail|less)(?: -[-\w]{1,20}(?: \d{1,9})?)*"
    r" ([^\s;&|<>()'\"$-][^\s;&|<>()'\"]{0,300})"
)


def files_of(call: ToolCall) -> Iterator[tuple[str, str]]:
    """The files that a call reads and writes: pairs of `file_read` or `file_modified` and the path."""
    words = _words_of(call["function"]["name"])
    arguments = arguments_of(call)
    if words & _WRITE or "str" in words:
        # One tool for all: its command says what it does.
        kind = "file_read" if str(arguments.get("command", "")).lower() == "view" else "file_modified"
        for path in _paths(arguments):
            yield kind, path
        if "patch" in words:
            yield from (("file_modified", path) for path in _patched(arguments))
    elif words & _READ and not words & _SHELL:
        for path in _paths(arguments):
            yield "file_read", path
    elif words & _SHELL:
        yield from _files_of_command(command_of(call))


def command_of(call: ToolCall) -> str:
    """The command that a call of a shell runs; empty for other tools."""
    if not _words_of(call["function"]["name"]) & _SHELL:
        return ""
    arguments = arguments_of(call)
    for key in _COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            # A shell with its command as one argument: what counts is the command.
            return value[-1] if value[0] in ("bash", "sh", "zsh", "/bin/bash", "/bin/sh") else " ".join(value)
    return ""


def outcome_of(result: Message | None) -> str:
    """How a command ended, by its result: `exit 1`, `failed`, or empty if that is not told."""
    if result is None:
        return ""
    text = text_of(result)
    text = text if len(text) <= 800 else f"{text[:400]}\n{text[-400:]}"
    code = ornament("outcomes", "", command_exit_of, text)
    return f"exit {code}" if code else "failed" if result.get("is_error") else ""


def failure_of(result: Message) -> str:
    """The line of a result that says what went wrong; empty if nothing did."""
    text = text_of(result)
    text = text if len(text) <= 8_000 else f"{text[:3_000]}\n{text[-5_000:]}"
    lines = ornament("outcomes", [], failure_lines, text)
    telling = [line for line in lines if not line.startswith("Traceback")]
    if telling:
        # A traceback says at its end what happened, everything else at its beginning.
        return single_line(telling[-1] if len(telling) < len(lines) else telling[0])
    if outcome_of(result) in SUCCESS:
        return ""
    return single_line(next((line for line in text.splitlines() if line.strip()), ""))


@lru_cache(maxsize=1_024)
def _words_of(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name[:200]))


def _paths(arguments: Mapping[str, object]) -> Iterator[str]:
    for key in _PATH_KEYS:
        value = arguments.get(key)
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, str) and 0 < len(path.strip()) <= 300 and "\n" not in path:
                yield path.strip()


def _patched(arguments: Mapping[str, object]) -> Iterator[str]:
    for value in arguments.values():
        if isinstance(value, str) and ("*** " in value or "+++ " in value):
            yield from (match[1].strip() for match in _PATCHED.finditer(value) if match[1] != "/dev/null")


def _files_of_command(command: str) -> Iterator[tuple[str, str]]:
    if ">" in command or "tee " in command:
        for match in _REDIRECTED.finditer(command):
            path = match[1] or match[2]
            if not path.startswith(("/dev/", "=")):
                yield "file_modified", path
    for match in _SHOWN.finditer(command):
        yield "file_read", match[1]
    if "*** " in command:
        yield from (("file_modified", match[1].strip()) for match in _PATCHED.finditer(command))
