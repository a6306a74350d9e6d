"""Claude's memory tool on the memory files of a workspace: every search finds what Claude writes.

```python
tool = MemoryServiceTool("http://127.0.0.1:8765")
runner = client.beta.messages.tool_runner(model=…, max_tokens=1024, messages=messages, tools=[tool])
```

`/memories/notes/shop.md` is the file `memory/notes/shop.md`; `/memories/MEMORY.md` and `/memories/USER.md` are those
two. A file is Markdown: another name, such as `prefs.txt`, gets the ending `.md`.

Invariants: no path leaves the memory files; a write is on the disk and can be found when it is answered, or nothing was
changed; what a person changed meanwhile is not overwritten; the service's own files (dated ones, MEMORY.md, USER.md,
items of stores) are edited, never deleted or renamed.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from typing import Any

from memory_service.errors import MemoryServiceError, NotFound, PreconditionFailed
from memory_service.integrations.base import Memory, MemorySource, memory_of, missing, whole_file
from memory_service.integrations.items import FOLDER

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ImportError as error:
    raise missing("anthropic", error) from error

_ROOT = "/memories"
_EVERGREEN = ("MEMORY.md", "USER.md")
_SERVICE_FILES = re.compile(rf"MEMORY\.md|USER\.md|memory/\d{{4}}-\d{{2}}-\d{{2}}[^/]*\.md|{FOLDER}/.*")
_EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
_MOST_LEVELS = _AROUND = 2  # of folders, and lines that an edit is shown with


class MemoryServiceTool(BetaAbstractMemoryTool):
    """The memory tool for `Anthropic`.

    Args:
        memory: A `MemoryService` in this process, a client, or the URL of a server.
        workspace: Name of the workspace, unless a client is given, which has its own.
        api_key: A key of the server, if a URL is given.
        cache_control: Of the tool's definition, see Anthropic's documentation.
    """

    def __init__(
        self,
        memory: MemorySource,
        workspace: str | None = None,
        *,
        api_key: str | None = None,
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._memory: Memory = memory_of(memory, workspace, api_key)

    def execute(self, command: Any) -> Any:
        """Do what Claude asks for; what fails is told to Claude, which can do something about it."""
        try:
            return super().execute(command)
        except MemoryServiceError as error:
            raise ToolError(str(error)) from error

    def view(self, command: Any) -> str:
        """Show a file with its line numbers, or what is in a folder."""
        if command.path.rstrip("/") == _ROOT:
            return self._list_folder(command.path)
        try:
            lines = whole_file(self._memory, _path(command.path))[0].split("\n")
        except NotFound:
            return self._list_folder(command.path)
        first, last = command.view_range or (1, -1)
        shown_lines = lines[max(0, first - 1) : len(lines) if last == -1 else last]
        return f"Here's the content of {command.path} with line numbers:\n{_number_lines(shown_lines, max(1, first))}"

    def create(self, command: Any) -> str:
        """Write a file that is not there yet."""
        try:
            self._memory.put(_path(command.path), command.file_text)
        except PreconditionFailed:
            raise ToolError(f"File {command.path} already exists") from None
        return f"File created successfully at: {_shown_path(_path(command.path))}"

    def str_replace(self, command: Any) -> str:
        """Replace a text that stands in a file once."""
        text, etag = self._read(command.path)
        starts = [at.start() for at in re.finditer(f"(?={re.escape(command.old_str)})", text)]
        lines = [text.count("\n", 0, start) + 1 for start in starts]
        if len(lines) != 1 or not command.old_str:
            raise ToolError(_not_replaced(command, lines))
        old_str = text.replace(command.old_str, command.new_str or "")
        self._memory.put(_path(command.path), old_str, etag=etag)
        first = max(1, lines[0] - _AROUND)
        shown_parts = old_str.split("\n")[first - 1 : lines[0] + _AROUND]
        return f"{_EDITED}\n{_number_lines(shown_parts, first)}"

    def insert(self, command: Any) -> str:
        """Insert text behind a line."""
        text, etag = self._read(command.path)
        lines = text.removesuffix("\n").split("\n") if text else []
        if not 0 <= command.insert_line <= len(lines):
            wanted_text = f"It should be within the range [0, {len(lines)}]."
            raise ToolError(f"Invalid `insert_line` parameter: {command.insert_line}. {wanted_text}")
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        self._memory.put(_path(command.path), "\n".join(lines) + "\n", etag=etag)
        return f"The file {command.path} has been edited."

    def delete(self, command: Any) -> str:
        """Erase a file or a folder, from disk and index."""
        for file in self._own_files(command.path, "deleted"):
            self._memory.delete(file)
        return f"Successfully deleted {command.path}"

    def rename(self, command: Any) -> str:
        """Give a file or a folder another name; the old one goes when the new one is on the disk."""
        files = self._own_files(command.old_path, "renamed")
        single = len(files) == 1 and _to_nfc(files[0]) == _to_nfc(_path(command.old_path))
        old, new = (_path(command.old_path), _path(command.new_path)) if single else (
            f"memory{command.old_path.removeprefix(_ROOT).rstrip('/')}/",
            f"memory{_below_root(command.new_path).rstrip('/')}/",
        )  # fmt: skip
        names = {file: new + _to_nfc(file).removeprefix(_to_nfc(old)) for file in files}
        nfcs = {_to_nfc(file.path) for file in self._files()}
        if clash := next(
            (name for name in names.values() if _to_nfc(name) in nfcs or _SERVICE_FILES.fullmatch(name)), ""
        ):
            raise ToolError(f"The destination {_shown_path(clash)} already exists, or is a file of the memory service")
        for file, name in names.items():
            text, etag = whole_file(self._memory, file)
            self._memory.put(name, text)
            if whole_file(self._memory, file)[1] != etag:
                raise ToolError(f"{_shown_path(file)} was changed meanwhile. It is kept beside {_shown_path(name)}.")
            self._memory.delete(file)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Erase all files that the tool may delete; the service's own ones stay."""
        for file in self._files():
            if not _SERVICE_FILES.fullmatch(file.path):
                self._memory.delete(file.path)
        return "All memory cleared"

    def _files(self) -> list[Any]:
        try:
            return self._memory.files()
        except NotFound:
            return []  # The workspace is made by the first file.

    def _read(self, path: str) -> tuple[str, str]:
        try:
            return whole_file(self._memory, _path(path))
        except NotFound:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.") from None

    def _own_files(self, path: str, change: str) -> list[str]:
        """The file of a path, or those of a folder, if something may be done to all of them."""
        if not _below_root(path).strip("/"):
            raise ToolError(f"The {_ROOT} directory itself cannot be {change}")
        text, folder = _path(path), f"memory{_below_root(path).rstrip('/')}/"
        paths = {file.path: _to_nfc(file.path) for file in self._files()}
        items = [each_path for each_path in paths if each_path == text or each_path.startswith(folder)]
        if not items:  # The disk may spell its name in another Unicode form.
            text, folder = _to_nfc(text), _to_nfc(folder)
            items = [value for value, name in paths.items() if name == text or name.startswith(folder)]
        if not items:
            raise ToolError(f"The path {path} does not exist")
        if own := next((file for file in items if _SERVICE_FILES.fullmatch(file)), ""):
            raise ToolError(
                f"{_shown_path(own)} is a file of the memory service and is not {change}. Edit its text instead."
            )
        return items

    def _list_folder(self, path: str) -> str:
        """Sizes and names, two levels deep."""
        below = f"{_ROOT}{_below_root(path).rstrip('/')}"
        sizes: dict[str, int] = {}
        for file in self._files():
            shown_path = _shown_path(file.path)
            parts = shown_path.removeprefix(f"{below}/").split("/")
            if shown_path.startswith(f"{below}/"):
                for level in range(min(_MOST_LEVELS, len(parts) - 1)):
                    folder = f"{below}/{'/'.join(parts[: level + 1])}/"
                    sizes[folder] = sizes.get(folder, 0) + file.bytes
                if len(parts) <= _MOST_LEVELS:
                    sizes[shown_path] = file.bytes
        if not sizes and below != _ROOT:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        lines = [f"{_size(sizes[name])}\t{name}" for name in sorted(sizes)]
        head = f"Here're the files and directories up to {_MOST_LEVELS} levels deep in {path}, excluding hidden items:"
        return "\n".join([head, f"{_size(sum(file.bytes for file in self._files()))}\t{path}", *lines])


async def _execute_async(self: AsyncMemoryServiceTool, command: Any) -> str:
    return str(await asyncio.to_thread(self._tool.execute, command))


class AsyncMemoryServiceTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for `AsyncAnthropic`; see `MemoryServiceTool`."""

    def __init__(
        self,
        memory: MemorySource,
        workspace: str | None = None,
        *,
        api_key: str | None = None,
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryServiceTool(memory, workspace, api_key=api_key)

    # Each command goes through `execute` of the other tool.
    view = create = str_replace = insert = delete = rename = _execute_async

    async def clear_all_memory(self) -> str:
        """Erase all files that the tool may delete."""
        return await asyncio.to_thread(self._tool.clear_all_memory)


def _not_replaced(command: Any, lines: list[int]) -> str:
    if len(lines) < 2 or not command.old_str:
        return f"No replacement was performed, old_str `{command.old_str}` did not appear verbatim in {command.path}."
    text = f"Multiple occurrences of old_str `{command.old_str}` in lines: {', '.join(map(str, lines[:20]))}"
    return f"No replacement was performed. {text}. Please ensure it is unique"


def _below_root(path: str) -> str:
    if path != _ROOT and not path.startswith(f"{_ROOT}/"):
        raise ToolError(f"Path must start with {_ROOT}, got: {path}")
    if any(part.startswith(".") for part in path.split("/")):
        raise ToolError(f"Path {path} would escape {_ROOT} directory, or is hidden")
    return path.removeprefix(_ROOT)


def _to_nfc(path: str) -> str:
    return unicodedata.normalize("NFC", path)


def _path(path: str) -> str:
    """The path of the memory file, which `memory_path` checks when it is used."""
    name = _below_root(path)[1:]
    if not name:
        raise ToolError(f"{path} is a directory. Please provide the path of a file.")
    ending = "" if name.lower().endswith(".md") else ".md"
    return name if name in _EVERGREEN else f"memory/{name}{ending}"


def _shown_path(path: str) -> str:
    return f"{_ROOT}/{path.removeprefix('memory/')}"


def _number_lines(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _size(size: float) -> str:
    for unit in "BKM":
        if size < 1024:
            return f"{size:.1f}".removesuffix(".0") + unit
        size /= 1024
    return f"{size:.1f}G"
