"""Facts that change: which statement of a thing holds now, which ones it replaces, and their order in an answer.

Only those of the highest authority that speaks of a thing say what holds: the word of a lower one replaces nothing and
stands behind theirs, unmarked. They are ordered by the days on which they were written, in one file by their lines, in
several of one day by the hour; where that is not known, by a word of change in one of them. A day in words orders only
what was written on no day that is known. Where that leaves two values standing, none replaces the other: so do two
notes that replace each other. What speaks of a day to come is a plan: it replaces nothing and stands behind what holds.

Invariants: nothing is told by likeness; a statement is replaced by a later one of another value, never by its own
passage nor by one of lower authority; the work is linear in the statements read, of each thing at most `_READ` dated
ones and as many others.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from indexer.common.lru import LRU
from indexer.engine.authority import not_below
from indexer.language.fact_words import is_beside, is_same, words_of
from indexer.language.facts import NOT_SAME, Facts, NotSame, change_of, facts_of, is_named, thing_number, things_of
from indexer.language.facts_clause import Claim
from indexer.language.facts_frame import FRAMES, is_frame
from indexer.language.facts_records import caption
from indexer.language.ornaments import ornament
from indexer.stores.base import IndexStore, OfFile, OfThings, StoredPassage
from indexer.types import Hit, SearchFilter, Statement

_READ = 64
_MOST_REPLACED = 8
_MOST_PAIRS = 512
_REMEMBERED = 8_192
_SHOWN_CHARS = 300
# How many lines above one of a record its name is looked for.
_CAPTION_ABOVE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A claim where it stands.

    Attributes:
        day: Proleptic ordinal of the day that orders it: when it was written, else the one in its words; 0 for none.
        minute: Minute of that day at which it was written; -1 where that is not known.
        second: Milliseconds behind that minute; -1 where that is not known.
        place: Its place within the passage.
        is_plan: True if it speaks of a day that is still to come.
    """

    claim: Claim
    stored: StoredPassage
    day: int
    minute: int = -1
    second: int = -1
    place: int
    is_plan: bool = False

    @property
    def authority(self) -> int:
        """Authority of its passage."""
        return self.stored.passage.authority

    @property
    def age(self) -> tuple[int, int, int, int, int]:
        """Order of statements, the oldest first, as far as their own days, hours and lines tell it."""
        return self.day, self.minute, self.second, self.stored.ordinal, self.place

    def is_after(self, other: Stated) -> bool:
        """True if it was said later, as far as that can be known."""
        if self.day and other.day and self.day != other.day:
            return self.day > other.day
        if self.stored.path == other.stored.path and bool(self.day) == bool(other.day):
            return (self.stored.ordinal, self.place) > (other.stored.ordinal, other.place)
        if self.is_later_that_day(other) or other.is_later_that_day(self):
            return self.is_later_that_day(other)
        return self.claim.changes and not other.claim.changes

    def is_later_that_day(self, other: Stated) -> bool:
        """True if both were written on one day, this one at a later hour."""
        if not self.day or self.day != other.day or min(self.minute, other.minute) < 0:
            return False
        if self.minute != other.minute or min(self.second, other.second) < 0:
            return self.minute > other.minute
        return self.second > other.second

    def differs(self, other: Stated) -> bool:
        """True if it says another value; a senior developer is something else than a developer."""
        if self.claim.thing.endswith("|role"):
            return self.claim.value != other.claim.value
        if not self.claim.thing.endswith("|cadence") and is_beside(self.claim.value, other.claim.value):
            return False
        return not is_same(self.claim.value, other.claim.value)

    def to_statement(self, *, current: bool | None = None) -> Statement:
        """The same for an answer."""
        passage = self.stored.passage
        subject, _, attribute = self.claim.thing.partition("|")
        return Statement(
            path=self.stored.path,
            start_line=passage.start_line,
            end_line=passage.end_line,
            date=self.claim.day or (dt.date.fromordinal(self.day) if self.day else None),
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
    def leading(self) -> tuple[Stated, ...]:
        """The statements of the highest authority that says what holds; plans say what will."""
        present = [each for each in self.statements if not each.is_plan]
        most = max((each.authority for each in present), default=0)
        return tuple(each for each in present if each.authority == most)

    @cached_property
    def _last(self) -> tuple[Stated, ...]:
        """The last statement of each file, of those with a day only those of the last day."""
        # Of what may be several at once, only a word of change ends another.
        some = [each for each in self.leading if each.claim.single or each.claim.changes]
        newest = max((each.day for each in some), default=0)
        last = dict[str, Stated]()
        for each in some:
            key = f"{each.stored.path}#{bool(each.day)}"
            if each.day in (0, newest) and (key not in last or each.is_after(last[key])):
                last[key] = each
        latest = max(last.values(), key=lambda each: each.age, default=None)
        return tuple(each for each in last.values() if latest is None or not latest.is_later_that_day(each))

    @cached_property
    def current(self) -> Stated | None:
        """The statement that holds now; None where several values are left that nothing tells apart."""
        last = self._last
        if not last:
            return None
        new = [each for each in last if each.claim.changes] or [*last]
        best = max(new, key=lambda each: each.age)
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
        if old.is_plan or any(not each.differs(old) for each in standing):
            return None
        if current is None and any(each.stored.key == old.stored.key for each in self._last):
            return None
        later = (each for each in standing if each.stored.key != old.stored.key and each.is_after(old))
        return next((each for each in later if not parted(each, old)), None)

    def restatement(self, old: Stated) -> Stated | None:
        """The statement that holds now, if an earlier one said the same before the value changed and came back."""
        now = self.current
        if now is None or now.stored.key == old.stored.key or not now.is_after(old):
            return None
        between = (each for each in self.leading if each.differs(now) and each.is_after(old) and now.is_after(each))
        return now if next(between, None) is not None else None

    def above(self, other: Stated) -> Stated | None:
        """The statement that stands before one which may not say what holds: before a plan and a lower authority."""
        if not self.leading or not (other.is_plan or other.authority < self.leading[0].authority):
            return None
        now = self.current or max(self.leading, key=lambda each: each.age)
        return now if now.stored.key != other.stored.key else None

    def in_order(self) -> list[Stated]:
        """All statements, oldest first; those without a day first, by file."""
        return sorted(self.statements, key=lambda each: (each.day, each.minute, each.stored.path, *each.age))


_UNREAD = Chain(())
_NO_FACTS = Facts()


class FactChains:
    """Chains of one state of an index. Safe to use from several threads."""

    def __init__(self) -> None:
        self._last: DayChains | None = None

    def on(self, today: dt.date, zone: dt.tzinfo | None) -> DayChains:
        """The chains as they stand on a day of a time zone; None is the machine's own."""
        last = self._last
        if last is None or (last.today, last.zone) != (today, zone):
            last = self._last = DayChains(today, zone)
        return last


class DayChains:
    """Chains of one state of an index on one day, read when they are asked for. Safe to use from several threads."""

    def __init__(self, today: dt.date, zone: dt.tzinfo | None) -> None:
        self.today = today
        self.zone = zone
        self._known = dict[tuple[int, int], Chain]()
        self._pairs: tuple[tuple[NotSame, int], ...] | None = None
        self._stated = LRU[int, list[Stated]](_REMEMBERED)
        self._captions = LRU[int, frozenset[str]](_REMEMBERED)

    def stated_in(self, stored: StoredPassage) -> list[Stated]:
        """The claims of a passage."""
        if (known := self._stated.get(stored.key)) is not None:
            return known
        claims = self._facts_of(stored).claims
        stated = [self.statement_of(claim, stored, place) for place, claim in enumerate(claims)]
        self._stated[stored.key] = stated
        return stated

    def statement_of(self, claim: Claim, stored: StoredPassage, place: int = 0) -> Stated:
        """A claim of a passage, with when it was made."""
        written = stored.passage.written
        day, minute, second = self._moment(written) if written else (0, -1, -1)
        holds_from = claim.day.toordinal() if claim.day else 0
        return Stated(
            claim=claim,
            stored=stored,
            day=day or holds_from,
            minute=minute,
            second=second,
            place=place,
            is_plan=max(day, holds_from) > self.today.toordinal(),
        )

    def _moment(self, written: dt.datetime) -> tuple[int, int, int]:
        """Day, minute and milliseconds at which a passage was written, as far as each is known."""
        is_exact = written.tzinfo is not None
        there = written.astimezone(self.zone) if is_exact else written
        minute = 60 * there.hour + there.minute
        if is_exact:
            return there.toordinal(), minute, 1_000 * there.second + there.microsecond // 1_000
        return there.toordinal(), minute or -1, -1

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
            self._known[thing, limit] = Chain(_certain(found.get(thing, ())))

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

    def pairs(self, store: IndexStore) -> tuple[tuple[NotSame, int], ...]:
        """The pairs of which somebody says that they are not the same, and with which authority."""
        if self._pairs is None:
            written = store.passages(OfThings((thing_number(NOT_SAME),), _MOST_PAIRS)).values()
            self._pairs = tuple(
                (pair, stored.passage.authority) for stored in written for pair in self._facts_of(stored).not_same
            )
        return self._pairs

    def caption_of(self, store: IndexStore, stored: StoredPassage) -> frozenset[str]:
        """Words of the line above some keys and values that tells whose they are; empty for none."""
        if stored.path.startswith("sessions/"):
            return frozenset()
        if (known := self._captions.get(stored.key)) is not None:
            return known
        first = max(0, stored.ordinal - _CAPTION_ABOVE)
        above = [
            each.passage.text
            for each in store.passages(OfFile(stored.path, first, stored.ordinal)).values()
            if each.passage.heading == stored.passage.heading
        ]
        found = self._captions[stored.key] = caption(above[::-1])
        return found

    @staticmethod
    def _facts_of(stored: StoredPassage) -> Facts:
        passage = stored.passage
        return ornament("facts", _NO_FACTS, facts_of, passage.text, passage.heading, passage.label, stored.path)


def _certain(statements: Sequence[Stated]) -> tuple[Stated, ...]:
    """Statements of one thing, without lines of records that tell of several.

    Where one list has a key with two values, and nothing says that one of them is new, whose they are stands elsewhere:
    then no line of that key alone tells what it is of. Lines that follow each other are a log, if their key says of
    what: "Build status: …".
    """
    before = dict[tuple[str, int, int, int], Stated]()
    lines = (each for each in statements if each.claim.is_borrowed and not each.claim.changes)
    for each in sorted(lines, key=lambda each: (each.stored.path, each.stored.ordinal, each.place)):
        path = each.stored.path
        part = each.stored.ordinal if path.startswith("sessions/") else 0
        place = path, part, each.day, each.minute
        other = before.get(place)
        if other and each.differs(other) and not _follows(each, other):
            return tuple(other for other in statements if not other.claim.is_borrowed)
        before[place] = each
    return tuple(statements)


def _follows(line: Stated, before: Stated) -> bool:
    """True for the next line of a log of one thing."""
    new, old = line.stored, before.stored
    return (
        new.ordinal == old.ordinal + 1
        and new.passage.heading == old.passage.heading
        and not line.claim.subject.isdisjoint(words_of(new.passage.text))
    )


class FactResolver:
    """Marks what was replaced since among the hits of one search, and puts what holds now before it.

    Args:
        store: The index, within a read.
        chains: What is known of its chains.
        filter: Filter of the search; what it leaves out is not brought in.
        history: Tell each chain whole.
    """

    def __init__(self, store: IndexStore, chains: DayChains, filter: SearchFilter, *, history: bool = False) -> None:
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
                marked[key] = stored, self._yielding(self._mark(hit, chains), chains)
                if first := next((new for each, chain in chains if (new := self._allowed_replacer(chain, each))), None):
                    ahead[key] = first.stored
        ordered = self._order(marked, ahead, found)
        if not self._history:
            return ordered
        passages = (*(stored for stored, _ in marked.values()), *ahead.values())
        return self._with_history(ordered, {(stored.path, stored.ordinal): stored for stored in passages})

    def _order(
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
                    placed[new.key] = not_below(marked[new.key][1], hit)
                else:
                    brought = found(new, hit)
                    chains = [(each, self._chain_of(each)) for each in self._chains.stated_in(new)]
                    placed[new.key] = self._mark(not_below(brought, hit), chains)
            placed.setdefault(key, hit)
        return [*placed.values()]

    def _chain_of(self, each: Stated) -> Chain:
        limit = -1 if self._history else _READ
        self._chains.read(self._store, [each.claim], limit)
        return self._chains.chain(thing_number(each.claim.thing), limit)

    def _mark(self, hit: Hit, chains: Sequence[tuple[Stated, Chain]]) -> Hit:
        by = next((new for each, chain in chains if (new := self._replacer(chain, each))), None)
        replaces = {
            (old.path, old.start_line): old for each, chain in chains for old in self._replaced_statements(chain, each)
        }
        if by is None and not replaces:
            return hit
        shown = by.to_statement() if by else None
        return replace(hit, replaced_by=shown, replaces=tuple(replaces.values())[:_MOST_REPLACED])

    def _replacer(self, chain: Chain, old: Stated) -> Stated | None:
        by = chain.replacer(old, parted=self.parted)
        if by is None or not (by.claim.is_borrowed and old.claim.is_borrowed):
            return by
        one, other = (self._chains.caption_of(self._store, each.stored) for each in (by, old))
        return by if one == other else None

    def _yielding(self, hit: Hit, chains: Sequence[tuple[Stated, Chain]]) -> Hit:
        above = (self._above(self._passing(chain), each) for each, chain in chains)
        places = dict.fromkeys(
            (each.stored.path, each.stored.ordinal)
            for each in above
            if each is not None and each.authority > hit.passage.authority
        )
        return replace(hit, yields_to=tuple(dict.fromkeys((*hit.yields_to, *places)))) if places else hit

    def _passing(self, chain: Chain) -> Chain:
        """The statements that the filter lets pass."""
        if self._is_open:
            return chain
        return Chain(
            tuple(
                each
                for each in chain.statements
                if self._filter.passes(each.stored.source, each.stored.path, each.stored.passage)
            )
        )

    def _allowed_replacer(self, chain: Chain, old: Stated) -> Stated | None:
        """The statement that stands before an earlier one, of those that the filter lets pass."""
        chain = self._passing(chain)
        return self._replacer(chain, old) or chain.restatement(old) or self._above(chain, old)

    def _above(self, chain: Chain, other: Stated) -> Stated | None:
        """The statement of higher authority that stands before one, or the present one before a plan."""
        if is_frame(other.claim.thing) or (above := chain.above(other)) is None:
            return None
        return None if self.parted(above, other) else above

    def _replaced_statements(self, chain: Chain, new: Stated) -> Iterator[Statement]:
        """Statements that gave way to one, the newest first."""
        current = chain.current
        if current is not None and current.stored.key != new.stored.key:
            return
        for old in chain.in_order()[::-1]:
            by = self._replacer(chain, old)
            if by is not None and by.stored.key == new.stored.key:
                yield old.to_statement()

    def _with_history(self, hits: Sequence[Hit], stored: dict[tuple[str, int], StoredPassage]) -> list[Hit]:
        """The hits, the first one of each thing with all its statements."""
        told, made = set[str](), list[Hit]()
        for hit in hits:
            history = dict[tuple[str, int], Statement]()
            for each in self._chains.stated_in(stored[hit.path, hit.ordinal]):
                chain = self._chain_of(each)
                if "=" in each.claim.thing or each.claim.thing in told or len(chain.statements) < 2:
                    continue
                told.add(each.claim.thing)
                current = chain.current
                for other in chain.in_order():
                    holds = current is not None and (other is current or other.stored.key == current.stored.key)
                    history[other.stored.path, other.stored.ordinal] = other.to_statement(current=holds)
            made.append(replace(hit, history=tuple(history.values())) if history else hit)
        return made

    def parted(self, new: Stated, old: Stated) -> bool:
        """True if a person says of two statements that they are not the same thing."""
        least = max(new.authority, old.authority)
        return any(
            authority >= least
            and (
                (_means(pair.first, new) and _means(pair.second, old))
                or (_means(pair.first, old) and _means(pair.second, new))
            )
            for pair, authority in self._chains.pairs(self._store)
        )


def _means(reference: str, each: Stated) -> bool:
    passage = each.stored.passage
    return is_named(reference, each.stored.path, passage.start_line, passage.end_line, passage.text)


def current_first(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Hits in their order, but none before the one that replaced it, nor before one that it yields to."""
    place = {(hit.path, hit.ordinal): hit for hit in hits}
    if len(place) != len(hits):
        return tuple(hits)
    starts = {(hit.path, hit.passage.start_line): key for key, hit in place.items()}
    placed = dict[tuple[str, int], Hit]()

    def put(key: tuple[str, int], before: Hit | None) -> None:
        hit = place[key]
        hit = hit if before is None else not_below(hit, before)
        by = starts.get((hit.replaced_by.path, hit.replaced_by.start_line)) if hit.replaced_by else None
        for first in (*((by,) if by else ()), *hit.yields_to):
            if first in place and first not in placed and first != key and first not in above:
                above.add(first)
                put(first, hit)
        placed.setdefault(key, hit)

    for key in place:
        above = {key}
        if key not in placed:
            put(key, None)
    return tuple(placed.values())
