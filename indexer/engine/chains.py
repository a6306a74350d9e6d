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
from itertools import chain as chained

from indexer.common.lru import LRU
from indexer.engine.authority import not_below
from indexer.engine.captions import Captions
from indexer.language.fact_words import is_beside, is_same, words_of
from indexer.language.facts import (
    NOT_SAME,
    Facts,
    NotSame,
    change_of,
    facts_of,
    is_named,
    thing_number,
)
from indexer.language.facts_clause import Claim
from indexer.language.facts_frame import FRAMES, is_frame
from indexer.language.ornaments import ornament
from indexer.stores.base import IndexStore, OfThings, StoredPassage
from indexer.types import Hit, SearchFilter, Statement

_READ = 64
_MOST_REPLACED = 8
_MOST_PAIRS = 512
_REMEMBERED = 8_192
_SHOWN_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class FactStatement:
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

    def is_after(self, other_statement: FactStatement) -> bool:
        """True if it was said later, as far as that can be known."""
        if self.day and other_statement.day and self.day != other_statement.day:
            return self.day > other_statement.day
        if self.stored.path == other_statement.stored.path and bool(self.day) == bool(other_statement.day):
            return (self.stored.ordinal, self.place) > (other_statement.stored.ordinal, other_statement.place)
        if self.is_later_that_day(other_statement) or other_statement.is_later_that_day(self):
            return self.is_later_that_day(other_statement)
        return self.claim.changes and not other_statement.claim.changes

    def is_later_that_day(self, other_statement: FactStatement) -> bool:
        """True if both were written on one day, this one at a later hour."""
        if not self.day or self.day != other_statement.day or min(self.minute, other_statement.minute) < 0:
            return False
        if self.minute != other_statement.minute or min(self.second, other_statement.second) < 0:
            return self.minute > other_statement.minute
        return self.second > other_statement.second

    def differs(self, other_statement: FactStatement) -> bool:
        """True if it says another value; a senior developer is something else than a developer."""
        if self.claim.thing.endswith("|role"):
            return self.claim.value != other_statement.claim.value
        if not self.claim.thing.endswith("|cadence") and is_beside(self.claim.value, other_statement.claim.value):
            return False
        return not is_same(self.claim.value, other_statement.claim.value)

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

    statements: tuple[FactStatement, ...]

    @cached_property
    def leading(self) -> tuple[FactStatement, ...]:
        """The statements of the highest authority that says what holds; plans say what will."""
        present = [statement for statement in self.statements if not statement.is_plan]
        most = max((statement.authority for statement in present), default=0)
        return tuple(statement for statement in present if statement.authority == most)

    @cached_property
    def _last(self) -> tuple[FactStatement, ...]:
        """The last statement of each file, of those with a day only those of the last day."""
        # Of what may be several at once, only a word of change ends another.
        statements = [statement for statement in self.leading if statement.claim.single or statement.claim.changes]
        newest = max((each_statement.day for each_statement in statements), default=0)
        last = dict[str, FactStatement]()
        for each in statements:
            key = f"{each.stored.path}#{bool(each.day)}"
            if each.day in (0, newest) and (key not in last or each.is_after(last[key])):
                last[key] = each
        latest = max(last.values(), key=lambda statement: statement.age, default=None)
        return tuple(
            statement for statement in last.values() if latest is None or not latest.is_later_that_day(statement)
        )

    @cached_property
    def current(self) -> FactStatement | None:
        """The statement that holds now; None where several values are left that nothing tells apart."""
        last = self._last
        if not last:
            return None
        new = [statement for statement in last if statement.claim.changes] or [*last]
        best = max(new, key=lambda statement: statement.age)
        among = new if any(best.differs(statement) for statement in last) else last
        is_settled = not any(best.differs(statement) for statement in among) and (
            among is last or all(best.is_after(statement) or not best.differs(statement) for statement in last)
        )
        return best if is_settled else None

    def replacer(
        self, old: FactStatement, *, parted: Callable[[FactStatement, FactStatement], bool]
    ) -> FactStatement | None:
        """The statement that an earlier one gave way to; None if it still holds.

        Args:
            old: The earlier one.
            parted: True for two statements of which a person says that they are not the same thing.
        """
        current = self.current
        standing = self._last if current is None else (current,)
        if old.is_plan or any(not statement.differs(old) for statement in standing):
            return None
        if current is None and any(each_statement.stored.key == old.stored.key for each_statement in self._last):
            return None
        later = (
            statement for statement in standing if statement.stored.key != old.stored.key and statement.is_after(old)
        )
        return next((statement for statement in later if not parted(statement, old)), None)

    def restatement(self, old: FactStatement) -> FactStatement | None:
        """The statement that holds now, if an earlier one said the same before the value changed and came back."""
        now = self.current
        if now is None or now.stored.key == old.stored.key or not now.is_after(old):
            return None
        between = (
            statement
            for statement in self.leading
            if statement.differs(now) and statement.is_after(old) and now.is_after(statement)
        )
        return now if next(between, None) is not None else None

    def above(self, other_statement: FactStatement) -> FactStatement | None:
        """The statement that stands before one which may not say what holds: before a plan and a lower authority."""
        if not self.leading or not (other_statement.is_plan or other_statement.authority < self.leading[0].authority):
            return None
        now = self.current or max(self.leading, key=lambda statement: statement.age)
        return now if now.stored.key != other_statement.stored.key else None

    def in_order(self) -> list[FactStatement]:
        """All statements, oldest first; those without a day first, by file."""
        return sorted(
            self.statements,
            key=lambda statement: (statement.day, statement.minute, statement.stored.path, *statement.age),
        )


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
        self._known_chains = dict[tuple[int, int], Chain]()
        self._pairs: tuple[tuple[NotSame, int], ...] | None = None
        self._statements = LRU[int, list[FactStatement]](_REMEMBERED)
        self.captions = Captions()

    def stated_in(self, passage: StoredPassage) -> list[FactStatement]:
        """The claims of a passage."""
        if (statements := self._statements.get(passage.key)) is not None:
            return statements
        claims = self._facts_of(passage).claims
        stated = [self.statement_of(claim, passage, place) for place, claim in enumerate(claims)]
        self._statements[passage.key] = stated
        return stated

    def statement_of(self, claim: Claim, passage: StoredPassage, place: int = 0) -> FactStatement:
        """A claim of a passage, with when it was made."""
        moment = passage.passage.written
        day, minute, second = self._moment(moment) if moment else (0, -1, -1)
        holds_from = claim.day.toordinal() if claim.day else 0
        return FactStatement(
            claim=claim,
            stored=passage,
            day=day or holds_from,
            minute=minute,
            second=second,
            place=place,
            is_plan=max(day, holds_from) > self.today.toordinal(),
        )

    def _moment(self, moment: dt.datetime) -> tuple[int, int, int]:
        """Day, minute and milliseconds at which a passage was written, as far as each is known."""
        is_exact = moment.tzinfo is not None
        there = moment.astimezone(self.zone) if is_exact else moment
        minute = 60 * there.hour + there.minute
        if is_exact:
            return there.toordinal(), minute, 1_000 * there.second + there.microsecond // 1_000
        return there.toordinal(), minute or -1, -1

    def read(self, store: IndexStore, claims: Iterable[Claim], limit: int = _READ) -> None:
        """Have the chains of what is claimed at hand; to be called within a read of that state."""
        things = {thing_number(claim.thing): claim.thing for claim in claims}
        unknown_values = {
            number: thing for number, thing in things.items() if (number, limit) not in self._known_chains
        }
        if not unknown_values:
            return
        # Frames, which many a passage may share, are worth reading where one changes; the others' chains are empty.
        changes = tuple(thing_number(change_of(thing)) if is_frame(thing) else 0 for thing in unknown_values.values())
        statements = dict[int, list[FactStatement]]()
        for passage in store.passages(OfThings(tuple(unknown_values), limit, least=2, besides=changes)).values():
            for statement in self.stated_in(passage):
                statements.setdefault(thing_number(statement.claim.thing), []).append(statement)
        for number, thing in unknown_values.items():
            stated = statements.get(number, [])
            is_read = not is_frame(thing) or any(statement.claim.changes for statement in stated)
            self._known_chains[number, limit] = Chain(_certain(stated) if is_read else ())

    def chain(self, thing: int, limit: int = _READ) -> Chain:
        """A chain that was read."""
        return self._known_chains[thing, limit]

    def pairs(self, store: IndexStore) -> tuple[tuple[NotSame, int], ...]:
        """The pairs of which somebody says that they are not the same, and with which authority."""
        if self._pairs is None:
            passages = store.passages(OfThings((thing_number(NOT_SAME),), _MOST_PAIRS)).values()
            self._pairs = tuple(
                (pair, passage.passage.authority) for passage in passages for pair in self._facts_of(passage).not_same
            )
        return self._pairs

    @staticmethod
    def _facts_of(stored_passage: StoredPassage) -> Facts:
        passage = stored_passage.passage
        return ornament("facts", _NO_FACTS, facts_of, passage.text, passage.heading, passage.label, stored_passage.path)


def _certain(statements: Sequence[FactStatement]) -> tuple[FactStatement, ...]:
    """Statements of one thing, without lines of records that tell of several.

    Where one list has a key with two values, and nothing says that one of them is new, whose they are stands elsewhere:
    then no line of that key alone tells what it is of. Lines that follow each other are a log, if their key says of
    what: "Build status: …".
    """
    before = dict[tuple[str, int, int, int], FactStatement]()
    lines = (statement for statement in statements if statement.claim.is_borrowed and not statement.claim.changes)
    for line in sorted(lines, key=lambda statement: (statement.stored.path, statement.stored.ordinal, statement.place)):
        path = line.stored.path
        part = line.stored.ordinal if path.startswith("sessions/") else 0
        place = path, part, line.day, line.minute
        other_statement = before.get(place)
        if other_statement and line.differs(other_statement) and not _follows(line, other_statement):
            return tuple(statement for statement in statements if not statement.claim.is_borrowed)
        before[place] = line
    return tuple(statements)


def _follows(line: FactStatement, before: FactStatement) -> bool:
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
        self._limit = -1 if history else _READ
        self._is_open = filter == SearchFilter()

    def resolve(
        self, hits: Sequence[tuple[StoredPassage, Hit]], found: Callable[[StoredPassage, Hit], Hit]
    ) -> list[Hit]:
        """The hits, and before each one that was replaced the one that holds now.

        Args:
            hits: Best first.
            found: A passage as a hit that stands before another.
        """
        statements = {passage.key: claims for passage, _ in hits if (claims := self._chains.stated_in(passage))}
        self._read(chained.from_iterable(statements.values()))
        values = {stored_passage.key: (stored_passage, hit) for stored_passage, hit in hits}
        ahead = dict[int, StoredPassage]()
        for key, claims in statements.items():
            chains = [(statement, self._known_chain(statement)) for statement in claims]
            if chains := [(each_statement, chain) for each_statement, chain in chains if len(chain.statements) > 1]:
                stored, hit = values[key]
                values[key] = stored, self._yielding(self._mark(hit, chains), chains)
                if first := next(
                    (new for statement, chain in chains if (new := self._allowed_replacer(chain, statement))), None
                ):
                    ahead[key] = first.stored
        ordered_hits = self._order(values, ahead, found)
        if not self._history:
            return ordered_hits
        passages = (*(passage for passage, _ in values.values()), *ahead.values())
        return self._with_history(ordered_hits, {(passage.path, passage.ordinal): passage for passage in passages})

    def _order(
        self,
        marked_values: dict[int, tuple[StoredPassage, Hit]],
        ahead: dict[int, StoredPassage],
        found: Callable[[StoredPassage, Hit], Hit],
    ) -> list[Hit]:
        hits = dict[int, Hit]()
        self._read(statement for new in ahead.values() for statement in self._chains.stated_in(new))
        for key, (_, hit) in marked_values.items():
            new = ahead.get(key)
            if new is not None and new.key not in hits and key not in hits:
                if new.key in marked_values:
                    hits[new.key] = not_below(marked_values[new.key][1], hit)
                else:
                    brought_hit = found(new, hit)
                    chains = [(statement, self._chain_of(statement)) for statement in self._chains.stated_in(new)]
                    hits[new.key] = self._mark(not_below(brought_hit, hit), chains)
            hits.setdefault(key, hit)
        return [*hits.values()]

    def _read(self, statements: Iterable[FactStatement]) -> None:
        """Have at hand the chains of some statements, and the captions that tell which of them replace which."""
        by_place = {(statement.claim.thing, statement.stored.key): statement for statement in statements}
        self._chains.read(self._store, (statement.claim for statement in by_place.values()), self._limit)
        earlier = dict[tuple[str, int], tuple[Chain, FactStatement]]()
        for (thing, key), statement in by_place.items():
            chain = self._known_chain(statement)
            # The present one is compared with all others, each other one with that alone.
            is_old = chain.current is not None and chain.current.stored.key != key
            among = [statement] if is_old else chain.statements
            earlier |= {(thing, old.stored.key): (chain, old) for old in among if old.claim.is_borrowed}
        passages = dict[int, StoredPassage]()
        for chain, old in earlier.values():
            by = chain.replacer(old, parted=self.is_distinct)
            if by is not None and by.claim.is_borrowed:
                passages |= {by.stored.key: by.stored, old.stored.key: old.stored}
        self._chains.captions.of(self._store, [*passages.values()])

    def _known_chain(self, statement: FactStatement) -> Chain:
        return self._chains.chain(thing_number(statement.claim.thing), self._limit)

    def _chain_of(self, statement: FactStatement) -> Chain:
        self._chains.read(self._store, [statement.claim], self._limit)
        return self._known_chain(statement)

    def _mark(self, hit: Hit, chains: Sequence[tuple[FactStatement, Chain]]) -> Hit:
        by = next((new for statement, chain in chains if (new := self.replacer(chain, statement))), None)
        replaces = dict[tuple[str, int], Statement]()
        for old in chained.from_iterable(self._replaced_statements(chain, statement) for statement, chain in chains):
            if len(replaces) == _MOST_REPLACED and (old.path, old.start_line) not in replaces:
                break
            replaces[old.path, old.start_line] = old
        if by is None and not replaces:
            return hit
        shown_statement = by.to_statement() if by else None
        return replace(hit, replaced_by=shown_statement, replaces=tuple(replaces.values()))

    def replacer(self, chain: Chain, old: FactStatement) -> FactStatement | None:
        """The statement that took the place of an earlier one."""
        by = chain.replacer(old, parted=self.is_distinct)
        if by is None or not (by.claim.is_borrowed and old.claim.is_borrowed):
            return by
        keys, other_keys = self._chains.captions.of(self._store, [by.stored, old.stored])
        return by if keys == other_keys else None

    def _yielding(self, hit: Hit, chains: Sequence[tuple[FactStatement, Chain]]) -> Hit:
        above = (self._above(self._passing(chain), statement) for statement, chain in chains)
        places = dict.fromkeys(
            (statement.stored.path, statement.stored.ordinal)
            for statement in above
            if statement is not None and statement.authority > hit.passage.authority
        )
        return replace(hit, yields_to=tuple(dict.fromkeys((*hit.yields_to, *places)))) if places else hit

    def _passing(self, chain: Chain) -> Chain:
        """The statements that the filter lets pass."""
        if self._is_open:
            return chain
        return Chain(
            tuple(
                statement
                for statement in chain.statements
                if self._filter.passes(statement.stored.source, statement.stored.path, statement.stored.passage)
            )
        )

    def _allowed_replacer(self, chain: Chain, old: FactStatement) -> FactStatement | None:
        """The statement that stands before an earlier one, of those that the filter lets pass."""
        chain = self._passing(chain)
        return self.replacer(chain, old) or chain.restatement(old) or self._above(chain, old)

    def _above(self, chain: Chain, other_statement: FactStatement) -> FactStatement | None:
        """The statement of higher authority that stands before one, or the present one before a plan."""
        if is_frame(other_statement.claim.thing) or (above := chain.above(other_statement)) is None:
            return None
        return None if self.is_distinct(above, other_statement) else above

    def _replaced_statements(self, chain: Chain, new: FactStatement) -> Iterator[Statement]:
        """Statements that gave way to one, the newest first."""
        current = chain.current
        if current is not None and current.stored.key != new.stored.key:
            return
        for old in chain.in_order()[::-1]:
            by = self.replacer(chain, old)
            if by is not None and by.stored.key == new.stored.key:
                yield old.to_statement()

    def _with_history(self, hits: Sequence[Hit], passages: dict[tuple[str, int], StoredPassage]) -> list[Hit]:
        """The hits, the first one of each thing with all its statements."""
        keys, new_hits = set[str](), list[Hit]()
        for hit in hits:
            history = dict[tuple[str, int], Statement]()
            for statement in self._chains.stated_in(passages[hit.path, hit.ordinal]):
                chain = self._chain_of(statement)
                if "=" in statement.claim.thing or statement.claim.thing in keys or len(chain.statements) < 2:
                    continue
                keys.add(statement.claim.thing)
                current = chain.current
                for other_statement in chain.in_order():
                    holds = current is not None and (
                        other_statement is current or other_statement.stored.key == current.stored.key
                    )
                    history[other_statement.stored.path, other_statement.stored.ordinal] = other_statement.to_statement(
                        current=holds
                    )
            new_hits.append(replace(hit, history=tuple(history.values())) if history else hit)
        return new_hits

    def is_distinct(self, new: FactStatement, old: FactStatement) -> bool:
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


def _means(reference: str, statement: FactStatement) -> bool:
    passage = statement.stored.passage
    return is_named(reference, statement.stored.path, passage.start_line, passage.end_line, passage.text)


def current_first(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Hits in their order, but none before the one that replaced it, nor before one that it yields to."""
    place = {(hit.path, hit.ordinal): hit for hit in hits}
    if len(place) != len(hits):
        return tuple(hits)
    starts = {(hit.path, hit.passage.start_line): key for key, hit in place.items()}
    placed_hits = dict[tuple[str, int], Hit]()

    def put(key: tuple[str, int], before: Hit | None) -> None:
        hit = place[key]
        hit = hit if before is None else not_below(hit, before)
        by = starts.get((hit.replaced_by.path, hit.replaced_by.start_line)) if hit.replaced_by else None
        for first in (*((by,) if by else ()), *hit.yields_to):
            if first in place and first not in placed_hits and first != key and first not in above:
                above.add(first)
                put(first, hit)
        placed_hits.setdefault(key, hit)

    for key in place:
        above = {key}
        if key not in placed_hits:
            put(key, None)
    return tuple(placed_hits.values())
