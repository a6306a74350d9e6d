"""The history of the memory files of a workspace: the versions that edits took the place of, and what is erased of it.

Invariants: what is forgotten is in no version either. A version that has it goes whole, and before the file loses it:
an erasure that was broken off has left the text where it is asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from indexer.common import lazy_regex
from memory_service.errors import NotFound
from memory_service.memories.file_text import read_range
from memory_service.schemas.entries import Removal
from memory_service.schemas.memories import FileText, FileVersion, FileVersions
from memory_service.storage.documents import DocumentStore

# A shorter line, such as a heading, says nothing by itself: of other files no version goes for it.
_LEAST_BYTES = 12
# What stands before the words of a line.
_MARKERS = b" \t-*+>#"
_HAS_WORDS = lazy_regex(r"\w")


class FileHistory:
    """The earlier versions of memory files; callers have checked the paths.

    Args:
        documents: The storage of the files.
    """

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents

    @property
    def is_there(self) -> bool:
        """True if the storage has a history."""
        return self._documents.has_history

    def versions(self, path: str) -> FileVersions:
        """The versions of a file, the last replaced first.

        Raises:
            NotFound: There is no such file.
        """
        if self._documents.revision(path) is None:
            raise NotFound(f"There is no file {path}. List the files of the workspace to see what is there.")
        versions = [
            FileVersion(version_id=version.version_id, replaced_at=version.replaced_at, bytes=version.size_bytes)
            for version in self._documents.versions(path)
        ]
        return FileVersions(path=path, has_history=self.is_there, versions=versions)

    def read(self, path: str, version_id: str, start_line: int = 1, lines: int | None = None) -> FileText:
        """Some lines of a version, as of a file.

        Raises:
            NotFound: There is no such version.
            InvalidRequest: It is not UTF-8.
        """
        return read_range(self._documents.version(path, version_id), path, start_line=start_line, lines=lines)

    def erase(self, path: str) -> int:
        """Erases the versions of a file; gives how many these were."""
        return self._documents.erase_versions(lambda version_path, _: version_path == path)

    def erase_removals(self, removals: Collection[Removal]) -> None:
        """Erases the versions that have something that is to be forgotten, or an entry of its id in other words.

        A line is looked for in all files, a short one in its own.
        """
        ids = {b"memory id=" + removal.memory_id.encode() for removal in removals if removal.memory_id}
        lines = {(line, removal.path) for removal in removals for line in _lines_with_words(removal.text or "")}
        everywhere = ids | {line for line, _ in lines if len(line) >= _LEAST_BYTES}

        def holds(path: str, raw: bytes) -> bool:
            return any(words in raw for words in everywhere) or any(
                place == path and line in raw for line, place in lines
            )

        self._documents.erase_versions(holds)

    def erase_messages(self, texts: Callable[[], Iterable[str]]) -> None:
        """Erases the versions that have a line of messages, word for word.

        Args:
            texts: Gives the messages, which are not read where there is no history.
        """
        if not self.is_there:
            return
        lines = {line for text in texts() for line in _lines_with_words(text) if len(line) >= _LEAST_BYTES}
        if lines:
            self._documents.erase_versions(
                lambda _, raw: any(line.strip().lstrip(_MARKERS) in lines for line in raw.splitlines())
            )


def _lines_with_words(text: str) -> Iterable[bytes]:
    """The lines of a text that say something, as they may stand behind other markers elsewhere."""
    for line in text.splitlines():
        if _HAS_WORDS.search(line):
            yield line.encode("utf-8", "surrogateescape").strip().lstrip(_MARKERS)
