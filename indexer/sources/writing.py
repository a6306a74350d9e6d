"""Languages of a workspace, read from a sample of its memories and conversations."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from indexer.common import LRU
from indexer.errors import SourceMissing
from indexer.language.languages import Writing, language_of, writing_of
from indexer.sources.base import Source, SourceFile
from indexer.sources.scan import MEMORY_FOLDER, SESSIONS_FOLDER
from indexer.types import EVERGREEN, Passage

# To tell the languages of a workspace so many files are looked at, so much of all pages together and of each log, and
# so many passages of them: 40 ms of a processor.
_SAMPLED_FILES = 24
_SAMPLED_BYTES = 72 * 1024
_SAMPLED_LOG_BYTES = 32 * 1024
_SAMPLED_PASSAGES = 240
_LARGEST_BYTES = 8 * 1024 * 1024
_REMEMBERED_FILES = 2_048
_OWN = (*EVERGREEN, MEMORY_FOLDER, SESSIONS_FOLDER)

_Shares = tuple[tuple[str, float], ...]


class WritingSample:
    """A sample of what is written in a source.

    The same files give the same answer in every process, and a file is read again only when it has changed. What tools
    printed does not count, nor do the folders beside the workspace, which may be full of code, nor what cannot be read.

    Args:
        source: The files.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: LRU[tuple[SourceFile, int], _Shares] = LRU(_REMEMBERED_FILES)

    def read(self) -> Writing:
        """The languages as they are now; none where there are no files."""
        try:
            files = [*self._source.scan(paths=_OWN).files.values()]
        except SourceMissing:
            files = []
        # Some of many, the same ones each time, whatever is added beside them.
        files.sort(key=lambda file: hashlib.blake2b(file.path.encode("utf-8", "surrogateescape")).digest())
        parts = min(_SAMPLED_FILES, len(files))
        return writing_of(share for file in files[:parts] for share in self._languages_in(file, parts))

    def _languages_in(self, file: SourceFile, parts: int) -> _Shares:
        """Languages of a file, each with the number of passages in it, from its part of the whole sample."""
        shares = self._known.get((file, parts))
        if shares is None:
            try:
                shares = _languages(file, self._pieces(file, parts), parts)
            except Exception:  # of readers of any content; why a file cannot be read is said where it is indexed
                shares = ()
            self._known[file, parts] = shares
        return shares

    def _pieces(self, file: SourceFile, parts: int) -> list[bytes]:
        if file.source != "sessions":
            content = self._source.read(file, max_bytes=_LARGEST_BYTES)
            return _spread_lines(content.text.encode("utf-8", "surrogatepass"), _SAMPLED_BYTES // parts)
        # The newest of a conversation.
        raw, whole = self._source.tail(file.path, _SAMPLED_LOG_BYTES)
        return [raw if whole else raw.partition(b"\n")[2]]


def _languages(file: SourceFile, pieces: Sequence[bytes], parts: int) -> _Shares:
    passages = [passage for piece in pieces for passage in _sampled_passages(file, piece)]
    looked_at = passages[:: max(1, len(passages) * parts // _SAMPLED_PASSAGES)]
    share = sum(map(len, pieces)) / max(1, file.size_bytes)
    standing_for = len(passages) / max(1, len(looked_at)) / max(share, 1e-9)
    counts = Counter(language_of(passage.text) for passage in looked_at)
    return tuple((language, number * standing_for) for language, number in counts.items())


def _spread_lines(raw: bytes, most: int) -> list[bytes]:
    """Lines of a page: all, or so many bytes of its beginning, its middle and its end."""
    if len(raw) <= most:
        return [raw]
    piece = most // 3
    last = len(raw) - piece
    return [_lines_at(raw, start, piece) for start in (0, last // 2, last)]


def _lines_at(raw: bytes, start: int, most: int) -> bytes:
    """Whole lines of a page from a byte on."""
    piece = raw[start : start + most]
    if start:
        piece = piece.partition(b"\n")[2]
    return piece if start + most >= len(raw) else piece[: piece.rfind(b"\n") + 1]


def _sampled_passages(file: SourceFile, raw: bytes) -> list[Passage]:
    # Late: what lists files needs no reader of them.
    from indexer.documents.incremental import Splitter
    from indexer.documents.transcripts import split_transcript

    if file.source == "sessions":
        return [passage for passage in split_transcript(raw) if passage.role not in ("tool", "pasted")]
    return Splitter().split(raw.decode("utf-8", "replace"), file.path)
