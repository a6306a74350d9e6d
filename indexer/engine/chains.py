"""Facts that change: which statement of a thing holds now, which ones it replaces, and their order in an answer.

Statements of one thing are ordered by their days, in one file by their lines; between files of one day, or without one,
only by a word of change in one of them. Where that leaves two values standing, none replaces the other: so do two notes
that replace each other.

Invariants: nothing is told by likeness; a statement is replaced by a later one of another value, never by its own
passage; the work is linear in the statements read, of each thing at most `_READ` dated ones and as many others.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from indexer.lru import LRU
from indexer.stores.base import IndexStore, OfThings, StoredPassage
from indexer.text.fact_words import is_beside, is_same
from indexer.text.facts import NOT_SAME, Facts, NotSame, change_of, facts_of, is_named, thing_number, things_of
from indexer.text.facts_clause import Claim
from indexer.text.facts_frame import FRAMES, is_frame
from indexer.text.ornaments import ornament
from indexer.types import Hit, SearchFilter, Statement

_READ = 64
_MOST_REPLACED = 8
_MOST_PAIRS = 512
_REMEMBERED = 8_192
_SHOWN_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A claim where it stands.

    Attributes:
        day: Proleptic ordinal of its day; 0 for none.
        place: Its place within the passage.
    """

    claim: Claim
    stored: StoredPassage
    day: int
    place: int

    def is_after(self, other: Stated) -> bool:
        """True if it was said later, as far as that can be known."""
        if self.day and other.day and self.day != other.day:
            return self.day > other.day
        if self.stored.path == other.stored.path and bool(self.day) == bool(other.day):
            return (self.stored.ordinal, self.place) > (other.stored.ordinal, other.place)
        return self.claim.changes and not other.claim.changes

    def differs(self, other: Stated) -> bool:
        """True if it says another value; a senior developer is something else than a developer."""
        if self.claim.thing.endswith("|role"):
            return self.claim.value != other.claim.value
        if not self.claim.thing.endswith("|cadence") and is_beside(self.claim.value, other.claim.value):
            return False
        return not is_same(self.claim.value, other.claim.value)

    def shown(self, *, current: bool | None = None) -> Statement:
        """The same for an answer."""
        passage = self.stored.passage
        subject, _, attribute = self.claim.thing.partition("|")
        return Statement(
            path=self.stored.path,
            start_line=passage.start_line,
            end_line=passage.end_line,
            date=dt.date.fromordinal(self.day) if self.day else None,
            text=passage.text[:_SHOWN_CHARS],
            about=FRAMES.get(attribute)
            or f"{attribute.partition('=')[0]} ({subject.replace('@me', 'user').replace('@', '')})".removesuffix(" ()"),
            current=current,
        )


@dataclass(frozen=True)
class Chain:
    """The statements of one thing."""

    statements: tuple[Stated, ...]

    @cached_property
    def _last(self) -> tuple[Stated, ...]:
        """The last statement of each file, of those with a day only those of the last day."""
        # Of what may be several at once, only a word of change ends another.
        some = [each for each in self.statements if each.claim.single or each.claim.changes]
        newest = max((each.day for each in some), default=0)
        last = dict[str, Stated]()
        for each in some:
            key = f"{each.stored.path}#{bool(each.day)}"
            if each.day in (0, newest) and (key not in last or each.is_after(last[key])):
                last[key] = each
        return tuple(last.values())

    @cached_property
    def current(self) -> Stated | None:
        """The statement that holds now; None where several values are left that nothing tells apart."""
        last = self._last
        if not last:
            return None
        new = [each for each in last if each.claim.changes] or [*last]
        best = max(new, key=lambda each: (each.day, each.stored.ordinal, each.place))
        among = new if any(best.differs(each) for each in last) else last
        settled = not any(best.differs(each) for each in among) and (
            among is last or all(best.is_after(each) or not best.differs(each) for each in last)
        )
        return best if settled else None

    def replacer(self, old: Stated, *, parted: Callable[[Stated, Stated], bool]) -> Stated | None:
        """The statement that an earlier one gave way to; None if it still holds.

        Args:
            old: The earlier one.
            parted: True for two statements of which a person says that they are not the same thing.
        """
        current = self.current
        standing = self._last if current is None else (current,)
        if any(not each.differs(old) for each in standing):
            return None
        if current is None and any(each.stored.key == old.stored.key for each in self._last):
            return None
        later = (each for each in standing if each.stored.key != old.stored.key and each.is_after(old))
        return next((each for each in later if not parted(each, old)), None)

    def renewed(self, old: Stated) -> Stated | None:
        """The statement that holds now, if an earlier one said the same before the value changed and came back."""
        now = self.current
        if now is None or now.stored.key == old.stored.key or not now.is_after(old):
            return None
        between = (each for each in self.statements if each.differs(now) and each.is_after(old) and now.is_after(each))
        return now if next(between, None) is not None else None

    def in_order(self) -> list[Stated]:
        """All statements, oldest first; those without a day first, by file."""
        return sorted(self.statements, key=lambda each: (each.day, each.stored.path, each.stored.ordinal, each.place))


_UNREAD = Chain(())
_NO_FACTS = Facts()


class FactChains:
    """Chains of one state of an index, read when they are asked for. Safe to use from several threads."""

    def __init__(self) -> None:
        self._known = dict[tuple[int, int], Chain]()
        self._pairs: tuple[NotSame, ...] | None = None
        self._stated = LRU[int, list[Stated]](_REMEMBERED)

    def stated_in(self, stored: StoredPassage) -> list[Stated]:
        """The claims of a passage."""
        if (known := self._stated.get(stored.key)) is not None:
            return known
        claims, passage = self._facts_of(stored).claims, stored.passage
        days = [day.toordinal() if (day := claim.day or passage.date) else 0 for claim in claims]
        stated = [
            Stated(claim=claim, stored=stored, day=day, place=place)
            for place, (claim, day) in enumerate(zip(claims, days, strict=True))
        ]
        self._stated[stored.key] = stated
        return stated

    def read(self, store: IndexStore, claims: Iterable[Claim], limit: int = _READ) -> None:
        """Have the chains of what is claimed at hand; to be called within a read of that state."""
        things = {thing_number(claim.thing): claim.thing for claim in claims}
        unknown = {number: thing for number, thing in things.items() if (number, limit) not in self._known}
        if not unknown:
            return
        missing = self._worth_reading(store, unknown)
        self._known.update(((number, limit), _UNREAD) for number in unknown.keys() - missing)
        found = dict[int, list[Stated]]()
        for stored in store.passages(OfThings(missing, limit, least=2)).values() if missing else ():
            for each in self.stated_in(stored):
                found.setdefault(thing_number(each.claim.thing), []).append(each)
        for thing in missing:
            self._known[thing, limit] = Chain(tuple(found.get(thing, ())))

    def _worth_reading(self, store: IndexStore, things: dict[int, str]) -> tuple[int, ...]:
        """Numbers of things; of those that are frames, which many a passage may share, the ones with a change."""
        changes = {thing_number(change_of(thing)): number for number, thing in things.items() if is_frame(thing)}
        changed = set[int]()
        for stored in store.passages(OfThings(tuple(changes), 1)).values() if changes else ():
            changed.update(changes[each] for each in things_of(self._facts_of(stored)) if each in changes)
        return tuple(number for number, thing in things.items() if number in changed or not is_frame(thing))

    def chain(self, thing: int, limit: int = _READ) -> Chain:
        """A chain that was read."""
        return self._known[thing, limit]

    def pairs(self, store: IndexStore) -> tuple[NotSame, ...]:
        """The pairs of which people say that they are not the same."""
        if self._pairs is None:
            written = store.passages(OfThings((thing_number(NOT_SAME),), _MOST_PAIRS)).values()
            self._pairs = tuple(pair for stored in written for pair in self._facts_of(stored).not_same)
        return self._pairs

    @staticmethod
    def _facts_of(stored: StoredPassage) -> Facts:
        passage = stored.passage
        return ornament("facts", _NO_FACTS, facts_of, passage.text, passage.heading, passage.label, stored.path)


class FactResolver:
    """Marks what was replaced since among the hits of one search, and puts what holds now before it.

    Args:
        store: The index, within a read.
        chains: What is known of its chains.
        filter: Filter of the search; what it leaves out is not brought in.
        history: Tell each chain whole.
    """

    def __init__(self, store: IndexStore, chains: FactChains, filter: SearchFilter, *, history: bool = False) -> None:
        self._store = store
        self._chains = chains
        self._filter = filter
        self._history = history
        self._is_open = filter == SearchFilter()

    def resolved(
        self, hits: Sequence[tuple[StoredPassage, Hit]], found: Callable[[StoredPassage, Hit], Hit]
    ) -> list[Hit]:
        """The hits, and before each one that was replaced the one that holds now.

        Args:
            hits: Best first.
            found: A passage as a hit that stands before another.
        """
        stated = {stored.key: claims for stored, _ in hits if (claims := self._chains.stated_in(stored))}
        limit = -1 if self._history else _READ
        self._chains.read(self._store, (each.claim for claims in stated.values() for each in claims), limit)
        marked = {stored.key: (stored, hit) for stored, hit in hits}
        ahead = dict[int, StoredPassage]()
        for key, claims in stated.items():
            chains = [(each, self._chains.chain(thing_number(each.claim.thing), limit)) for each in claims]
            if chains := [(each, chain) for each, chain in chains if len(chain.statements) > 1]:
                stored, hit = marked[key]
                marked[key] = stored, self._marked(hit, chains)
                if first := next((new for each, chain in chains if (new := self._allowed(chain, each))), None):
                    ahead[key] = first.stored
        ordered = self._ordered(marked, ahead, found)
        if not self._history:
            return ordered
        passages = (*(stored for stored, _ in marked.values()), *ahead.values())
        return self._with_history(ordered, {(stored.path, stored.ordinal): stored for stored in passages})

    def _ordered(
        self,
        marked: dict[int, tuple[StoredPassage, Hit]],
        ahead: dict[int, StoredPassage],
        found: Callable[[StoredPassage, Hit], Hit],
    ) -> list[Hit]:
        placed = dict[int, Hit]()
        for key, (_, hit) in marked.items():
            new = ahead.get(key)
            if new is not None and new.key not in placed and key not in placed:
                if new.key in marked:
                    placed[new.key] = _not_below(marked[new.key][1], hit)
                else:
                    brought = found(new, hit)
                    chains = [(each, self._known(each)) for each in self._chains.stated_in(new)]
                    placed[new.key] = self._marked(_not_below(brought, hit), chains)
            placed.setdefault(key, hit)
        return [*placed.values()]

    def _known(self, each: Stated) -> Chain:
        limit = -1 if self._history else _READ
        self._chains.read(self._store, [each.claim], limit)
        return self._chains.chain(thing_number(each.claim.thing), limit)

    def _marked(self, hit: Hit, chains: Sequence[tuple[Stated, Chain]]) -> Hit:
        by = next((new for each, chain in chains if (new := self._replacer(chain, each))), None)
        replaces = {(old.path, old.start_line): old for each, chain in chains for old in self._replaced(chain, each)}
        if by is None and not replaces:
            return hit
        shown = by.shown() if by else None
        return replace(hit, replaced_by=shown, replaces=tuple(replaces.values())[:_MOST_REPLACED])

    def _replacer(self, chain: Chain, old: Stated) -> Stated | None:
        return chain.replacer(old, parted=self._parted)

    def _allowed(self, chain: Chain, old: Stated) -> Stated | None:
        """The statement that stands before an earlier one, of those that the filter lets pass."""
        if not self._is_open:
            chain = Chain(
                tuple(
                    each
                    for each in chain.statements
                    if self._filter.passes(each.stored.source, each.stored.path, each.stored.passage)
                )
            )
        return self._replacer(chain, old) or chain.renewed(old)

    def _replaced(self, chain: Chain, new: Stated) -> Iterator[Statement]:
        """Statements that gave way to one, the newest first."""
        current = chain.current
        if current is not None and current.stored.key != new.stored.key:
            return
        for old in chain.in_order()[::-1]:
            by = self._replacer(chain, old)
            if by is not None and by.stored.key == new.stored.key:
                yield old.shown()

    def _with_history(self, hits: Sequence[Hit], stored: dict[tuple[str, int], StoredPassage]) -> list[Hit]:
        """The hits, the first one of each thing with all its statements."""
        told, made = set[str](), list[Hit]()
        for hit in hits:
            history = dict[tuple[str, int], Statement]()
            for each in self._chains.stated_in(stored[hit.path, hit.ordinal]):
                chain = self._known(each)
                if "=" in each.claim.thing or each.claim.thing in told or len(chain.statements) < 2:
                    continue
                told.add(each.claim.thing)
                current = chain.current
                for other in chain.in_order():
                    holds = current is not None and (other is current or other.stored.key == current.stored.key)
                    history[other.stored.path, other.stored.ordinal] = other.shown(current=holds)
            made.append(replace(hit, history=tuple(history.values())) if history else hit)
        return made

    def _parted(self, new: Stated, old: Stated) -> bool:
        return any(
            (_means(pair.first, new) and _means(pair.second, old))
            or (_means(pair.first, old) and _means(pair.second, new))
            for pair in self._chains.pairs(self._store)
        )


def _means(reference: str, each: Stated) -> bool:
    passage = each.stored.passage
    return is_named(reference, each.stored.path, passage.start_line, passage.end_line, passage.text)


def _not_below(hit: Hit, other: Hit) -> Hit:
    """A hit with a score and a relevance that are not less than those of another."""
    score = max(hit.score, other.score)
    raised = score - hit.score
    relevance = other.relevance if hit.relevance is None else max(hit.relevance, other.relevance or 0.0)
    answers = other.answers if hit.answers is None else max(hit.answers, other.answers or 0.0)
    signals = {**hit.signals, "current": raised} if other.signals and raised else hit.signals
    return replace(hit, score=score, relevance=relevance, answers=answers, signals=signals)


def current_first(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Hits in their order, but none before the one that replaced it."""
    place = {(hit.path, hit.passage.start_line): hit for hit in hits}
    placed = dict[tuple[str, int], Hit]()
    for key, hit in place.items():
        by = hit.replaced_by
        new = place.get((by.path, by.start_line)) if by else None
        if new is not None and key not in placed:
            placed.setdefault((new.path, new.passage.start_line), _not_below(new, hit))
        placed.setdefault(key, hit)
    return tuple(placed.values()) if len(place) == len(hits) else tuple(hits)
