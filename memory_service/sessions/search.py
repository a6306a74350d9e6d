"""Keyword search of a live session, whether the index has its messages yet or not.

Invariants: never changes once made; a message is cut into windows that overlap, so that a few words in a long tool
result are found and shown; only what has a word of the question is found; terms are those of `indexer.language.terms`,
so Chinese is searched by its bigrams; what is known of messages that were searched before is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from indexer.common import UNSPACED, lazy_regex
from indexer.language import asked_terms, has_unspaced, stored_terms
from memory_service.messages.shapes import Message, arguments_of, own_text_of, tool_calls_of
from memory_service.messages.sizes import Numbered
from memory_service.schemas.messages import FoundMessage

SNIPPET_CHARS: Final = 300
_WINDOW_CHARS, _OVERLAP_CHARS = 1_200, 200
# Of a question, the rarest terms decide; a page pasted into it must not cost its length times the session's.
_MAX_TERMS = 12
_RUN = lazy_regex(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
_SPACE = lazy_regex(r"\s")
_MARK = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """A stretch of a message's text with its terms."""

    start: int
    end: int
    terms: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A message as it is searched."""

    text: str
    windows: tuple[_Window, ...]


class _Ranker(NamedTuple):
    """BM25 over windows: the weight of each term, and the score of each window for some terms."""

    idf: Mapping[str, float]
    scores: Callable[[Sequence[str]], Iterable[float]]


class SessionKeywordSearch:
    """The messages of a session, ready to be searched. Make one with `of`.

    Attributes:
        upto: The last record of the session that is searched.
    """

    def __init__(self, messages: tuple[Numbered, ...], read: tuple[_Read, ...], *, upto: int) -> None:
        self.upto = upto
        self._messages = messages
        self._read = read
        self._windows = [(at, window) for at, each_read in enumerate(read) for window in each_read.windows]
        self._ranker = _ranker([window.terms for _, window in self._windows])

    @classmethod
    def of(
        cls, messages: Sequence[Numbered], *, upto: int, before: SessionKeywordSearch | None = None
    ) -> SessionKeywordSearch:
        """A search over messages.

        Args:
            messages: Of one session, in order.
            upto: The last record to search; later messages are left out.
            before: An earlier search of the same session.
        """
        listed_messages = tuple(message for message in messages if message.seq <= upto)
        if before is not None and (before.upto, before._messages) == (upto, listed_messages):
            return before
        reads = {id(each_message.message): read for each_message, read in before._read_messages()} if before else {}
        return cls(
            listed_messages,
            tuple(reads.get(id(message.message)) or _read(message.message) for message in listed_messages),
            upto=upto,
        )

    def search(self, query: str, *, limit: int = 10) -> list[FoundMessage]:
        """The messages that have words of a query, best first, of equal ones the newest.

        Args:
            query: What to look for.
            limit: The most hits.
        """
        if self._ranker is None or limit <= 0:
            return []
        idf = self._ranker.idf
        terms = sorted((term for term in asked_terms(query) if term in idf), key=lambda term: -idf[term])[:_MAX_TERMS]
        best = dict[int, tuple[float, int]]()
        if not terms:
            return []
        for place, score in enumerate(self._ranker.scores(terms)):
            at = self._windows[place][0]
            if score > 0 and (at not in best or score > best[at][0]):
                best[at] = (float(score), place)
        weights = {term: idf[term] for term in terms}
        first = sorted(best.items(), key=lambda item: (-item[1][0], -item[0]))[:limit]
        return [self._hit(at, place, score, weights) for at, (score, place) in first]

    def _hit(self, at: int, place: int, score: float, weights: Mapping[str, float]) -> FoundMessage:
        message = self._messages[at]
        text = _excerpt(self._read[at].text, self._windows[place][1], weights)
        return FoundMessage(seq=message.seq, role=message.message["role"], text=text, score=round(score, 6))

    def _read_messages(self) -> Iterator[tuple[Numbered, _Read]]:
        return zip(self._messages, self._read, strict=True)


def _ranker(documents: list[list[str]]) -> _Ranker | None:
    """BM25 over windows; None where no window has a term, which the package cannot rank.

    Source: of the package's classes Okapi gives a term of more than half of the documents a negative weight, or a
    quarter of the mean weight, which is negative too in a short talk; Plus has log((N + 1) / n), always above 0. Its
    `delta` is added to documents without the term as well, so it changes no order; at 0 what has no term scores 0.
    Windows bound the length already: at the usual `b` of .75 a short message with one of two words ranks above a window
    of a tool result that has both.
    """
    if not any(documents):
        return None
    # Late: it brings multiprocessing along, which takes 20 ms that a command which searches nothing need not spend.
    from rank_bm25 import BM25Plus

    ranker = BM25Plus(documents, b=0.1, delta=0)
    return _Ranker(idf=ranker.idf, scores=ranker.get_scores)


def _read(message: Message) -> _Read:
    text = _searched_text(message)
    return _Read(text=text, windows=tuple(_windows(text)))


def _windows(text: str) -> Iterator[_Window]:
    start = 0
    while start < len(text):
        end = min(len(text), start + _WINDOW_CHARS)
        yield _Window(start=start, end=end, terms=stored_terms(text[start:end]))
        if end == len(text):
            return
        # Half a word at the start would be another word; the one before has it whole.
        space = _SPACE.search(text, end - _OVERLAP_CHARS, end - _OVERLAP_CHARS // 2)
        start = space.end() if space else end - _OVERLAP_CHARS


def _searched_text(message: Message) -> str:
    calls = [" ".join((call["function"]["name"], *_texts_in(arguments_of(call)))) for call in tool_calls_of(message)]
    return "\n".join((own_text_of(message), *calls)).strip()


def _texts_in(value: object) -> Iterator[str]:
    """The texts and numbers of a JSON value with their keys, in order: JSON's escapes would hide words."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as fields:
                waiting += [each_value for key, item in reversed(fields.items()) for each_value in (item, key)]
            case list() as items:
                waiting += reversed(items)
            case None:
                pass
            case item:
                yield str(item)


def _excerpt(text: str, window: _Window, weights: Mapping[str, float]) -> str:
    """Of a text what is around the most of the terms in a window, within `SNIPPET_CHARS`."""
    if len(text) <= SNIPPET_CHARS:
        return text
    room = SNIPPET_CHARS - 2 * len(_MARK) - 2
    first, last = _best_span(list(_marks(text, window, weights)), weights, room) or (window.start, window.start)
    start = max(0, min(first - max(0, room - (last - first)) // 3, len(text) - room))
    end = min(len(text), start + room)
    return f"{_MARK + ' ' if start else ''}{text[start:end].strip()}{' ' + _MARK if end < len(text) else ''}"


def _best_span(
    marks: Sequence[tuple[int, int, str]], weights: Mapping[str, float], room: int
) -> tuple[int, int] | None:
    """Best span of a given length: where the distinct terms in it weigh most."""
    low, counts, weight = 0, dict.fromkeys(weights, 0), 0.0
    best, span = 0.0, None
    for _, end, term in marks:
        weight += weights[term] if not counts[term] else 0.0
        counts[term] += 1
        while end - marks[low][0] > room and marks[low][1] < end:
            gone_text = marks[low][2]
            counts[gone_text] -= 1
            weight -= weights[gone_text] if not counts[gone_text] else 0.0
            low += 1
        if weight > best + 1e-9:
            best, span = weight, (marks[low][0], end)
    return span


def _marks(text: str, window: _Window, weights: Mapping[str, float]) -> Iterator[tuple[int, int, str]]:
    """Positions of terms in a window of a text, in order."""
    for run in _RUN.finditer(text, window.start, window.end):
        start, end = run.span()
        if has_unspaced(run[0]):
            terms = [run[0], text[start : start + 2]]
        else:
            terms = stored_terms(run[0])
        yield from ((start, end, term) for term in terms if term in weights)
