"""Tool calls read by name, arguments and result: files, commands, failures. Pure.

Invariants: linear; tools are known by the words of their names, since every harness names them differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from indexer.common import lazy_regex
from indexer.language import command_exit_of, failure_lines, is_exit_only, ornament
from memory_service.compaction.shell_commands import shell_commands
from memory_service.messages.shapes import Message, ToolCall, arguments_of, text_of
from memory_service.text.sentences import single_line

SUCCESS = ("", "exit 0")  # of outcomes: none told, or none bad
_WORD = lazy_regex("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_READ = frozenset({"read", "cat", "view", "open", "get", "show", "load", "head", "tail"})
_WRITE = frozenset({"write", "edit", "create", "replace", "patch", "insert", "append", "update", "save", "delete",
                    "remove", "multiedit", "move", "rename", "modify"})  # fmt: skip
_SHELL = frozenset({"bash", "shell", "terminal", "exec", "execute", "cmd", "powershell", "zsh", "sh", "command", "run"})
_PATH_KEYS = (
    "source", "destination", "path", "file_path", "filepath", "filename", "file_name", "file", "target_file",
    "notebook_path", "absolute_path", "relative_path", "filePath", "paths", "file_paths", "files",
)  # fmt: skip
_COMMAND_KEYS = ("command", "cmd", "script", "code", "commands")
_PATCHED = lazy_regex(
    r"^(?:\*\*\* (?:Update|Add|Delete) File: |\*\*\* Move to: |\+\+\+ (?:b/)?)(\S[^\n\t]{0,300})", re.MULTILINE
)
# What a tool says that did not find what it was to change.
_NOT_WRITTEN = lazy_regex(
    r"\s*(?:<tool_use_error>|No replacement was performed|No changes (?:were )?made|String to replace not found"
    r"|The user (?:doesn['’]t|does not) want|old_?[sS]tring not found|Did not find|Patch failed"
    r"|apply_patch verification failed"
    r"|Your (?:proposed )?edit has introduced|Failed to|Could not|Cannot )"
)
_WRITING_COMMANDS = frozenset("tee touch rm mv truncate rmdir unlink".split())
_COPYING_COMMANDS = frozenset("cp install ln rsync".split())
_EDITING_COMMANDS = frozenset("sed gsed perl".split())
_SHOWING_COMMANDS = frozenset("cat head tail less more nl bat open".split())
_SHELLS = frozenset("bash sh zsh dash".split())
_IN_PLACE = lazy_regex(r"-(?!-)\w*i|--in-place")
_SCRIPT_FOLLOWS = lazy_regex(r"-[A-Za-df-z]*e")
_LINES = lazy_regex(r"\d+:\d+|\d+")
# Of SWE-agent's editor: the lines, and what is put in their place.
_LINE_EDIT = lazy_regex(r"^edit (\d+:\d+)\n.*?^end_of_edit[ \t]*$", re.MULTILINE | re.DOTALL)
# Stands for the file that an editor has open.
OPEN_FILE = "*"


def files_of(call: ToolCall, *, has_failed: bool = False) -> Iterator[tuple[str, str]]:
    """The files that a call reads and writes: pairs of `file_read` or `file_modified` and the path.

    The path is `OPEN_FILE` where the editor's own file is meant. A call that failed wrote nothing; of a command line,
    what stands before its last command was done.
    """
    words = _words_of(call["function"]["name"])
    arguments = arguments_of(call)
    if words & _SHELL:
        yield from _files_of_command(command_of(call), has_failed=has_failed)
    elif has_failed:
        return
    elif words & _WRITE or "str" in words:
        # One tool for all: its command says what it does.
        kind = "file_read" if str(arguments.get("command", "")).lower() == "view" else "file_modified"
        if "directory" not in words:
            yield from ((kind, path) for path in _paths(arguments))
        yield from (("file_modified", path) for path in _patched_paths(arguments))
    elif words & _READ:
        for path in _paths(arguments):
            yield "file_read", path


def was_refused(result: Message | None) -> bool:
    """True if a tool says that it changed nothing."""
    return result is not None and _NOT_WRITTEN.match(text_of(result)[:400]) is not None


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
    """The lines of a result that say what went wrong, as one; empty if nothing did."""
    text = text_of(result)
    text = text if len(text) <= 8_000 else f"{text[:3_000]}\n{text[-5_000:]}"
    lines = ornament("outcomes", [], failure_lines, text)
    telling = [line for line in lines if not line.startswith("Traceback")]
    telling = [line for line in telling if not is_exit_only(line.lower())] or telling
    if telling:
        # A traceback says at its end what happened, everything else at its beginning.
        return single_line(telling[-1] if len(telling) < len(lines) and "Traceback" in text else telling[0])
    if outcome_of(result) in SUCCESS:
        return ""
    texts = [line.strip() for line in text.splitlines() if line.strip()]
    return single_line(next((line for line in texts if not is_exit_only(line.lower())), texts[0] if texts else ""))


@lru_cache(maxsize=1_024)
def _words_of(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name[:200]))


def _paths(arguments: Mapping[str, object]) -> Iterator[str]:
    for key in _PATH_KEYS:
        value = arguments.get(key)
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, str) and 0 < len(path.strip()) <= 300 and "\n" not in path:
                yield path.strip()


def _patched_paths(arguments: Mapping[str, object]) -> Iterator[str]:
    for value in arguments.values():
        if isinstance(value, str) and ("*** " in value or "+++ " in value):
            yield from (match[1].strip() for match in _PATCHED.finditer(value) if match[1] != "/dev/null")


def _files_of_command(command: str, *, has_failed: bool = False) -> Iterator[tuple[str, str]]:
    """The files of a command line; here-documents and quotations are no commands, a patch is one."""
    if "end_of_edit" in command:
        command = _LINE_EDIT.sub(r"edit \1", command)
    commands = list(shell_commands(command))
    for each_command in commands[:-1] if has_failed else commands:
        for path in each_command.raw_words:
            yield from _file_changes(path)
        yield from _files_of_words(each_command.words, each_command.document)


def _files_of_words(words: Sequence[str], document: str) -> Iterator[tuple[str, str]]:
    name = words[0].rpartition("/")[2] if words else ""
    given_words = [word for word in words[1:] if not word.startswith("-")]
    if name == "git" and given_words[:1] in (["mv"], ["rm"]):
        name, given_words = given_words[0], given_words[1:]
    if name in _SHELLS and any(word.startswith("-") and "c" in word for word in words[1:]):
        yield from _files_of_command(given_words[0] if given_words else "")
    elif name in _WRITING_COMMANDS:
        for path in given_words:
            yield from _file_changes(path)
    elif name in _COPYING_COMMANDS and len(given_words) > 1:
        yield from _file_changes(given_words[-1])
    elif name in _EDITING_COMMANDS and any(map(_IN_PLACE.match, words[1:])):
        for path in _edited_files(words[1:]):
            yield from _file_changes(path)
    elif name == "create" and len(given_words) == 1:
        yield "file_modified", given_words[0]
    elif name == "edit" and given_words and _LINES.fullmatch(given_words[0]):
        yield "file_modified", OPEN_FILE
    elif name in _SHOWING_COMMANDS or (name == "sed" and "-n" in words):
        shown_texts = given_words[1:] if name == "sed" else given_words
        yield from (("file_read", path) for path in shown_texts if _is_path(path) and not _LINES.fullmatch(path))
    patch = "\n".join([document, *words[1:]]) if name in ("apply_patch", "applypatch", "patch", "git") else ""
    if "*** " in patch or "+++ " in patch:
        yield from (("file_modified", match[1].strip()) for match in _PATCHED.finditer(patch))


def _edited_files(words: Sequence[str]) -> list[str]:
    """The files of a stream editor: its words without options, scripts and what belongs to those."""
    scripts = {at + 1 for at, word in enumerate(words) if word in ("-e", "-f") or _SCRIPT_FOLLOWS.fullmatch(word)}
    given_words = [word for at, word in enumerate(words) if not word.startswith("-") and at not in scripts]
    return given_words if scripts else given_words[1:]


def _file_changes(path: str) -> Iterator[tuple[str, str]]:
    if _is_path(path) and not path.startswith("/dev/"):
        yield "file_modified", path


def _is_path(word: str) -> bool:
    """True if a word may name one file: no pattern, no variable, no sign alone."""
    plain = not any(char in word for char in "*?$`{}=\n")
    return plain and len(word) <= 300 and word != "/dev/null" and any(map(str.isalnum, word))
