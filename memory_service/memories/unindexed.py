"""Messages that the index does not have yet, ranked by words (rank-bm25).

Invariants: of a log only what lies behind the index's last passage of it is ranked, or its end where that is another
than it was; of many logs only the newest are looked at, so that no search waits for it; what the index has already, or
a filter leaves out, is not found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from indexer import Hit, IndexerError, Passage, SearchFilter, StoredPassage, is_openclaw, split_transcript
from memory_service.errors import InvalidName
from memory_service.messages.sizes import Numbered, number_message
from memory_service.schemas.messages import FoundMessage
from memory_service.sessions.search import SessionKeywordSearch

if TYPE_CHECKING:
    from memory_service.storage.logs import LogChange, LogStore, SessionLog

OpenLogs: TypeAlias = "Callable[[], LogStore]"
# A megabyte is ranked within .2 s.
_LOGS = 16
_END_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """A passage that waits, its place in its log, and the message that it is ranked as."""

    path: str
    ordinal: int
    passage: Passage
    message: Numbered


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """Unindexed messages of a log, valid until the log or its index changes."""

    seen: tuple[int, LogChange]
    said: tuple[_Said, ...]


class UnindexedMessages:
    """The messages at the end of logs that an index does not have yet, ready to be searched.

    Args:
        logs: Gives the logs of the workspace.
        passages: The passages that the index has of a log, by its path, from a position on; from -1, the last one.
    """

    def __init__(self, logs: OpenLogs, passages: Callable[[str, int], Collection[StoredPassage]]) -> None:
        self._open_logs = logs
        self._passages = passages
        self._numbers = count(1)
        self._logs: dict[str, _Log] = {}
        self._live: SessionKeywordSearch | None = None

    def search(
        self, paths: Collection[str], query: str, *, limit: int, passing: SearchFilter, rounds: int
    ) -> list[Hit]:
        """Search unindexed messages by the words of a query, best first.

        Args:
            paths: The logs; those last written are looked at.
            query: What to look for.
            limit: The most hits.
            passing: Which messages may be found.
            rounds: How often logs have been indexed so far.
        """
        logs = {path: self._log(path, log, (rounds, change)) for path, log, change in self._newest(paths, passing)}
        self._logs = logs
        waiting = {
            part.message.seq: part
            for path, log in logs.items()
            for part in log.said
            if passing.passes("sessions", path, part.passage)
        }
        messages = [part.message for part in waiting.values()]
        self._live = live = SessionKeywordSearch.of(messages, upto=max(waiting, default=0), before=self._live)
        from indexer import AskedQuestion, is_echo

        hits = [_hit(waiting[message.seq], message) for message in live.search(query, limit=limit)]
        # Whoever asks the same elsewhere, at the same time, tells nothing.
        question = AskedQuestion(query)
        return [hit for hit in hits if not is_echo(question, hit.passage.text, is_typed=hit.passage.role == "user")]

    def is_said(self, path: str, text: str) -> bool:
        """True if a log is there, and has a passage with the words of a text, which may be none."""
        log = _log_at(self._open_logs(), path)
        if log is None or log.last_change() is None:
            return False
        words = " ".join(text.split())
        if not words:
            return True
        return any(words in " ".join(passage.text.split()) for passage in split_transcript(log.tail()[0]))

    def _newest(self, paths: Collection[str], passing: SearchFilter) -> list[tuple[str, SessionLog, LogChange]]:
        """Of some logs those last written that a filter leaves, the newest last, and the last change of each."""
        newest: list[tuple[str, SessionLog, LogChange]] = []
        for path in paths:
            if passing.reaches("sessions", path) and (log := _log_at(self._open_logs(), path)):
                if change := log.last_change():
                    newest.append((path, log, change))
        return sorted(newest, key=lambda entry: (entry[2], entry[0]))[-_LOGS:]

    def _log(self, path: str, log: SessionLog, seen_pair: tuple[int, LogChange]) -> _Log:
        before = self._logs.get(path)
        if before is not None and before.seen == seen_pair:
            return before
        parts = tuple(
            _Said(
                path=path,
                ordinal=ordinal,
                passage=passage,
                message=number_message({"role": "user", "content": passage.text}, next(self._numbers)),
            )
            for ordinal, passage in self._waiting(path, log)
        )
        return _Log(seen=seen_pair, said=parts)

    def _waiting(self, path: str, log: SessionLog) -> Iterator[tuple[int, Passage]]:
        """The passages at the end of a log that the index does not have, as it will hold them, and their places."""
        last = next(iter(self._passages_from(path, -1)), None)
        raw, is_whole = log.tail(_END_BYTES)
        behind = _behind(raw, last) if last else None
        if behind is None:
            stored = self._passages_from(path, 0) if last else ()
            pairs = {(passage.passage.start_line, passage.passage.text) for passage in stored}
            # Lines of OpenClaw's are numbered by their place, which the end alone does not tell.
            read = split_transcript(raw) if is_whole or not is_openclaw(raw) else []
            behind = [
                each_passage for each_passage in read if (each_passage.start_line, each_passage.text) not in pairs
            ]
        return enumerate(behind, last.ordinal + 1 if last else 0)

    def _passages_from(self, path: str, first: int) -> Collection[StoredPassage]:
        with suppress(IndexerError):  # the search says why it cannot be read
            return self._passages(path, first)
        return ()


def _hit(part: _Said, message: FoundMessage) -> Hit:
    return Hit(
        path=part.path,
        source="sessions",
        passage=part.passage,
        ordinal=part.ordinal,
        snippet=message.text,
        score=message.score,
        text_score=message.score,
        vector_score=None,
    )


def _log_at(logs: LogStore, path: str) -> SessionLog | None:
    """The log that the index knows by a path; None if no session has such a path."""
    with suppress(InvalidName):
        return logs.open(path.removeprefix("sessions/").removesuffix(".jsonl"), must_exist=False)
    return None


def _behind(raw: bytes, last: StoredPassage) -> list[Passage] | None:
    """The passages behind one, which is read once more: None if it is not there, or says something else now."""
    line = b'{"seq":%d,' % last.passage.start_line
    at = 0 if raw.startswith(line) else raw.rfind(b"\n" + line) + 1
    if not at and not raw.startswith(line):
        return None
    read = split_transcript(raw[at:])
    same = [place for place, passage in enumerate(read) if _is_same(passage, last.passage)]
    return read[same[-1] + 1 :] if same else None


def _is_same(a: Passage, b: Passage) -> bool:
    """True if a passage is still what it was; its day may depend on lines before it that are not read again."""
    return (a.start_line, a.text, a.date) == (b.start_line, b.text, b.date)
