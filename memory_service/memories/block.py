"""Memory block of a prompt: passages chosen for a token budget, rendered, with a receipt. Pure.

Invariants: `tokens` is the block's size with its wrapper and never over the budget; a receipt names every
passage that went in, with its lines, and the best of those that did not, with the reason.

Invariants of the choice: the rendered block, wrapper included, is never over the budget; the same passages and budget
give the same choice; every passage that was offered is either chosen or has a reason; the scale of the scores
changes nothing, and passages come in the order that they are offered in, whatever their scores; one that says otherwise
than a higher authority goes in only behind that.

Source: worth - .5 ln(cost) over cost-blind rank order gained .014 of LoCoMo's evidence at 1,024 tokens. With worths
in standard deviations .4 finds most: .894 at 1,024 tokens, .933 at 2,048, and .885 with five conversations in one
workspace, where .5 finds .893, .931 and .882.

"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from heapq import heapify, heappop, heappush
from math import log
from typing import Any

import numpy as np

from indexer import Floats, Hit
from indexer.language import day_of_name, ornament
from memory_service.errors import InvalidRequest
from memory_service.memories.block_text import (
    GAP,
    Span,
    day_line,
    days_mark,
    file_quarters,
    in_language,
    line_range,
    lines_above,
    render_block,
    replaced_mark,
    shortfall,
    shown_text,
    wrapper_quarters,
)
from memory_service.memories.overlap import repeats_among
from memory_service.messages.sizes import count_tokens, quarters
from memory_service.schemas.memories import Context, Order, Receipt
from memory_service.text.talk_language import talk_language

# Passages to choose from, per token of the budget: a passage takes 30 or more, so this is twice what fits.
_CANDIDATES_PER_TOKEN = 1 / 16
_FEWEST, _MOST = 100, 1000
_COST_WEIGHT = 0.4
_GAP_QUARTERS = quarters(GAP)
# Below this many quarters, shorter is not better: a line of five tokens is seldom an answer.
_LEAST_COST = 20
# In so many quarters of a token a passage has to bring the least gain.
_QUARTERS = 400
# An offer in the order in which they are taken: whether others go first, how bad it is, its place, and its cost.
_Entry = tuple[bool, float, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer(Span):
    """A passage that may go into the block; its text is already fit for that.

    Attributes:
        relevance: Probability that it bears on the question; None where it is not known.
        answers: Probability that it is one of those that answer; None where it is not known.
        goes_first: Whether it has the budget before those that do not, whatever their scores.
        yields_to: Path and ordinal of passages of a higher authority; it goes in only behind one of them.
    """

    path: str
    score: float
    relevance: float | None = None
    answers: float | None = None
    goes_first: bool = False
    yields_to: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceLimits:
    """The least that a passage has to bring, to be in a block. One of unknown relevance brings enough.

    Attributes:
        min_relevance: Least relevance of it.
        min_best: Least relevance of the best; where none has it, nothing goes in.
        min_gain: Least gain for 100 tokens of it, its wrapper counted: the probability that it answers and nothing that
            is in the block does.
    """

    min_relevance: float = 0.0
    min_best: float = 0.0
    min_gain: float = 0.0

    def among(self, offers: Sequence[Offer]) -> RelevanceLimits:
        """The limits of each of some offers, now that the best of them is known."""
        best = max((1.0 if offer.relevance is None else offer.relevance for offer in offers), default=1.0)
        least = self.min_relevance if best >= self.min_best else max(self.min_best, self.min_relevance)
        return replace(self, min_relevance=least, min_best=0.0)


_NO_LIMITS = RelevanceLimits()


def checked_share(min_relevance: float) -> float:
    """A least relevance that can be used.

    Raises:
        InvalidRequest: It is not between 0 and 1.
    """
    if 0 <= min_relevance <= 1:
        return min_relevance
    raise InvalidRequest(f"min_relevance is {min_relevance}, and relevance is a probability. Give 0 to 1.")


def is_relevant(relevance: float | None, least: float) -> bool:
    """True if a relevance is not less than this, or not known."""
    return relevance is None or relevance >= least


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A choice: positions in the offers, and the block they make; an empty block when nothing fits.

    Attributes:
        unpaid: What those would add that fit and are relevant, for 100 tokens of them, by their positions.
    """

    chosen: tuple[int, ...]
    block: str
    unpaid: Mapping[int, float] = field(default_factory=dict)


def candidates_for(budget_tokens: int) -> int:
    """Number of passages worth offering for a budget.

    Source: on LoCoMo the evidence in the block is the same from 100 to 250 at 1,024 and 2,048 tokens: .894 and .934
    with this number, .894 and .933 with twice as many.
    """
    return max(_FEWEST, min(_MOST, round(budget_tokens * _CANDIDATES_PER_TOKEN)))


def pack(offers: Sequence[Offer], budget_tokens: int, limits: RelevanceLimits = _NO_LIMITS) -> Packed:
    """Choose offers, best first, until the budget is full or no other one is worth its tokens.

    Args:
        offers: Best first; `candidates_for` tells how many are worth offering.
        budget_tokens: Most tokens of the block with its wrapper.
        limits: What an offer has to bring.
    """
    picker = _Picker(offers, 4 * budget_tokens, limits)
    picked_numbers, block = picker.run(), picker.block
    # The estimate may be off by a few characters of line numbers; the rendered block decides.
    while picked_numbers and quarters(block) > 4 * budget_tokens:
        picked_numbers.pop()
        block = _render_picked(offers, picked_numbers) if picked_numbers else ""
    return Packed(chosen=tuple(sorted(picked_numbers)), block=block, unpaid=picker.unpaid())


def _render_picked(offers: Sequence[Offer], picked_numbers: Sequence[int]) -> str:
    spans = defaultdict[str, list[Offer]](list)
    for offer in sorted((offers[i] for i in picked_numbers), key=lambda offer: offer.ordinal):
        spans[offer.path].append(offer)
    return render_block(spans)


def _own_quarters(offer: Offer) -> int:
    # The line of the day may turn out to stand there already: then the room is regained.
    return quarters(offer.text) + 1 + (quarters(day_line(offer.day)) if offer.day else 0)


def _worths(offers: Sequence[Offer]) -> Floats:
    """Values of offers in standard deviations of their scores; the first is worth most.

    Rankings have scales of their own, and the order is not always that of the scores: a reranker, or variety, comes
    after them. So the scores say how far the places lie apart, and the order says whose they are.
    """
    scores = np.sort(np.array([offer.score for offer in offers], float))[::-1]
    spread = scores.std() if len(scores) else 0.0
    worths: Floats = (scores - scores.mean()) / spread if spread else np.zeros(len(scores))
    return worths


class _Picker:
    """The greedy loop: costs change as neighbours and files come in, everything else is fixed.

    The best that is left lies on top of a heap. One whose cost has changed lies there again, with the new cost.
    """

    def __init__(self, offers: Sequence[Offer], limit: int, limits: RelevanceLimits = _NO_LIMITS) -> None:
        self._offers = offers
        self._limit = limit
        self._room = limit - wrapper_quarters()
        self._worths: list[float] = _worths(offers).tolist()
        self._limits = limits.among(offers)
        least = self._limits.min_relevance
        relevant = [i for i, offer in enumerate(offers) if is_relevant(offer.relevance, least)]
        self._place = {(offers[i].path, offers[i].ordinal): i for i in relevant}
        self._of_file = defaultdict[str, list[int]](list)
        for i in relevant:
            self._of_file[offers[i].path].append(i)
        lines = [len(line_range(offer.start_line, offer.end_line)) for offer in offers]
        own = [_own_quarters(offer) for offer in offers]
        self._inner_costs = [own[i] + 1 + lines[i] for i in range(len(offers))]
        above = [quarters(offer.above) + 1 if offer.above else 0 for offer in offers]
        self._above = above
        self._costs = [own[i] + above[i] + file_quarters(offers[i].path) + lines[i] for i in range(len(offers))]
        self._of_group = defaultdict[tuple[str, str], list[int]](list)
        for i in relevant:
            if above[i]:
                self._of_group[offers[i].path, offers[i].above].append(i)
        self._left = [self._entry(i) for i in relevant]
        self._unanswered = 1.0
        self._open: set[str] = set()
        self._told: set[tuple[str, str]] = set()
        self._picked: list[int] = []
        self._taken: set[int] = set()
        self._waiting = defaultdict[int, list[int]](list)
        self.block = ""

    def run(self) -> list[int]:
        over = list[_Entry]()
        heapify(self._left)
        while self._left or self._regain_room():
            if not self._left:
                self._left, over = over, []
                heapify(self._left)
                continue
            entry = heappop(self._left)
            _, _, i, cost = entry
            if i in self._taken or cost != self._costs[i]:
                continue
            if not self._brings(i):
                continue
            if self._waits(i, entry):
                continue
            if cost > self._room:
                over.append(entry)
            else:
                self._take(i)
        return self._picked

    def _waits(self, i: int, entry: _Entry) -> bool:
        """True if an offer has to wait for one of a higher authority, which then comes next in its place."""
        offer = self._offers[i]
        if not offer.yields_to:
            return False
        higher = [self._place[key] for key in offer.yields_to if key in self._place]
        if not self._taken.isdisjoint(higher):
            return False
        for other_number in higher:
            self._waiting[other_number].append(i)
            first, value, _, _ = min(entry, self._entry(other_number))
            heappush(self._left, (first, value, other_number, self._costs[other_number]))
        return True

    def unpaid(self) -> dict[int, float]:
        """The gains of those that are relevant and fit, and bring too little for their cost."""
        return {
            i: self._gain(i)
            for i in self._place.values()
            if i not in self._taken and self._costs[i] <= self._room and not self._brings(i)
        }

    def _brings(self, i: int) -> bool:
        return self._offers[i].answers is None or self._gain(i) >= self._limits.min_gain

    def _gain(self, i: int) -> float:
        """Probability for 100 tokens that an offer answers what nothing in the block does."""
        return (self._offers[i].answers or 0.0) * self._unanswered * _QUARTERS / self._costs[i]

    def _regain_room(self) -> int:
        """Room that the picked ones leave after all: line numbers of neighbours melt into one range."""
        if not self._picked:
            return 0
        self.block = _render_picked(self._offers, self._picked)
        regained_count = max(0, self._limit - quarters(self.block) - self._room)
        self._room += regained_count
        return regained_count

    def _take(self, i: int) -> None:
        path = self._offers[i].path
        group = path, self._offers[i].above
        self._room -= self._costs[i]
        self._picked.append(i)
        self._taken.add(i)
        self._unanswered *= 1 - (self._offers[i].answers or 0.0)
        if path not in self._open:
            self._open.add(path)
            touched_numbers = self._of_file[path]
        else:
            touched_numbers = [j for j in (self._neighbour(i, -1), self._neighbour(i, 1)) if j is not None]
            if group not in self._told:
                touched_numbers += self._of_group.get(group, ())
        self._told.add(group)
        for j in touched_numbers:
            self._costs[j] = self._cost(j)
            heappush(self._left, self._entry(j))
        for j in self._waiting.pop(i, ()):
            heappush(self._left, self._entry(j))

    def _entry(self, i: int) -> _Entry:
        cost = self._costs[i]
        value = self._worths[i] - _COST_WEIGHT * log(max(_LEAST_COST, cost))
        return not self._offers[i].goes_first, -value, i, cost

    def _cost(self, i: int) -> int:
        beside = (self._neighbour(i, -1) in self._taken) + (self._neighbour(i, 1) in self._taken)
        # Between two neighbours the gap goes, but not always the line numbers: text may lie between the lines.
        is_told = (self._offers[i].path, self._offers[i].above) in self._told
        return self._inner_costs[i] + (1 - beside) * _GAP_QUARTERS + (0 if is_told else self._above[i])

    def _neighbour(self, i: int, step: int) -> int | None:
        return self._place.get((self._offers[i].path, self._offers[i].ordinal + step))


# A receipt explains the near misses; the two-hundredth is not one.
_OMITTED = 20
# A passage that says more than a better one takes its place before the choice up to this many times its size: what is
# much larger may not fit.
_LONGER = 4
# So many of the best hits tell the language of a question of one word.
_HEARD = 8
_SHOWN = "already shown: an earlier block of the prompt has it"


def build_context(
    hits: Sequence[Hit],
    *,
    query: str,
    budget_tokens: int,
    limits: RelevanceLimits = _NO_LIMITS,
    receipt_id: str,
    created_at: dt.datetime,
    system_prompt: str = "",
    degraded: Sequence[str] = (),
    order: Order = "score",
    heard_text: str = "",
    shown: Callable[[str], bool] | None = None,
    language: str = "",
    silence: str = "",
) -> Context:
    """Pack hits, in the order that they shall have, into a block of at most `budget_tokens`, behind a system prompt.

    The words of sessions have no secrets in it, but for those of the log `heard_text`, whose prompt it is for. The
    scores of its receipt are those of the hits; of several that say the same, those of the best. A text that the prompt
    shows in another block, as `shown` tells, is chosen with the others, since it is worth as much as they are, and is
    not written again. Its first line and its labels are in the `language` of the talk, or of the query where there is
    none. Where there is a reason for `silence`, nothing goes in, and the receipt gives the reason.
    """
    language = language or _language_of(query, hits)
    room = 4 * budget_tokens - wrapper_quarters()
    offer = partial(_offer, order=order, heard_text=heard_text, language=language, room=room)
    choice = _each_once(hits, offer, 0 if silence else budget_tokens, limits, in_session=bool(heard_text))
    hits, offers, pack = choice.hits, choice.offers, choice.packed
    numbers = frozenset(i for i in pack.chosen if shown is not None and shown(hits[i].passage.text))
    included_numbers = [i for i in pack.chosen if i not in numbers]
    limits = limits.among(offers)
    block = (_render_picked(offers, included_numbers) if numbers else pack.block) if included_numbers else ""
    block = in_language(block, language)
    spare = budget_tokens - count_tokens(in_language(pack.block, language))
    receipt = Receipt.model_validate(
        {
            "receipt_id": receipt_id,
            "created_at": created_at,
            "query": query,
            "budget_tokens": budget_tokens,
            "tokens": count_tokens(block),
            "included": [_item(hits[i], offers[i]) for i in included_numbers],
            "omitted": _items_left_out(choice, offer, numbers, limits, spare, silence),
            "omitted_count": len(numbers) + len(choice.repeats) + len(offers) - len(pack.chosen),
            "reason": "" if block else silence or (_SHOWN if numbers else _why_empty(offers, budget_tokens, limits)),
            "degraded": list(degraded),
        }
    )
    return Context(
        system_prompt="\n\n".join(part for part in (system_prompt, block) if part),
        block=block,
        tokens=receipt.tokens,
        receipt=receipt,
        degraded=receipt.degraded,
    )


def _items_left_out(
    choice: _Choice,
    offer: Callable[[Hit], Offer],
    shown_numbers: frozenset[int],
    limits: RelevanceLimits,
    spare_tokens: int,
    silence: str,
) -> list[dict[str, Any]]:
    """Items of the hits that a block has not, as many as a receipt lists, each with the reason."""
    hits, offers, pack = choice.hits, choice.offers, choice.packed
    pairs = {_key(hits[i]) for i in pack.chosen}
    left = sorted({*range(len(offers))}.difference(pack.chosen))[:_OMITTED]
    whys = [silence or _why_left(offers[i], limits, pack.unpaid.get(i), spare_tokens, pairs) for i in left]
    parts = [
        *((hits[i], offers[i], _SHOWN) for i in sorted(shown_numbers)),
        *((hit, offer(hit), f"repeats {by.path}#L{by.passage.start_line}") for hit, by in choice.repeats),
        *((hits[i], offers[i], why) for i, why in zip(left, whys, strict=True)),
    ]
    return [_item(hit, its_offer) | {"reason": why} for hit, its_offer, why in parts[:_OMITTED]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A choice among hits that says each thing once.

    Attributes:
        repeats: Hits that are left out of it, each with the one that says the same.
    """

    hits: Sequence[Hit]
    offers: Sequence[Offer]
    packed: Packed
    repeats: Sequence[tuple[Hit, Hit]]


def _each_once(
    hits: Sequence[Hit],
    offer: Callable[[Hit], Offer],
    budget_tokens: int,
    limits: RelevanceLimits,
    *,
    in_session: bool,
) -> _Choice:
    """Choose hits until none of those chosen repeats another: what is left out makes room for the next."""
    # A session has what was said in its log, and again in notes: there the fuller one goes in for either.
    values: dict[int, int] = {}
    places = ornament("similarity", values, repeats_among, hits, longest=_LONGER) if in_session else values
    repeats = [(hits[at], hits[other_number]) for at, other_number in places.items()]
    hits = _without_repeats(hits, places)
    while True:
        offers = [offer(hit) for hit in hits]
        packed = pack(offers, budget_tokens, limits)
        found_values = ornament("similarity", values, repeats_among, [hits[i] for i in packed.chosen])
        if not found_values:
            return _Choice(hits=hits, offers=offers, packed=packed, repeats=repeats)
        places = {packed.chosen[at]: packed.chosen[other_number] for at, other_number in found_values.items()}
        repeats += [(hits[at], hits[other_number]) for at, other_number in places.items()]
        hits = _without_repeats(hits, places)


def _without_repeats(hits: Sequence[Hit], places: Mapping[int, int]) -> list[Hit]:
    """Hits without those that repeat others; what stays has the place and the worth of the best that says it."""
    best = dict[int, int]()
    for at, other_number in places.items():
        best[other_number] = min(best.get(other_number, other_number), at)
    moved_hits = {
        place: replace(hits[at], score=hits[place].score, relevance=hits[place].relevance, answers=hits[place].answers)
        for at, place in best.items()
    }
    difference = {*places, *best}.difference(moved_hits)
    stands = {_key(hits[at]): _key(hits[number]) for at, number in places.items()}
    return [_behind(moved_hits.get(i, hit), stands) for i, hit in enumerate(hits) if i not in difference]


def _key(hit: Hit) -> tuple[str, int]:
    return hit.path, hit.ordinal


def _behind(hit: Hit, stands: Mapping[tuple[str, int], tuple[str, int]]) -> Hit:
    """A hit that stands behind those, too, that say what the ones it stands behind do."""
    other_stands = [stands[key] for key in hit.yields_to if key in stands]
    return replace(hit, yields_to=(*hit.yields_to, *other_stands)) if other_stands else hit


def _language_of(query: str, hits: Sequence[Hit]) -> str:
    """Language of a question; where it says too little, of what was found for it, the best counting most."""
    beside = [hit.passage.text for hit in hits[:_HEARD]]
    return ornament("speech", "en", talk_language, [query], beside=beside[::-1])


def _offer(hit: Hit, order: Order, heard_text: str, language: str, room: int) -> Offer:
    elsewhere = hit.source == "sessions" and hit.path != heard_text
    shown_partial = partial(shown_text, role=hit.passage.role, secrets=not elsewhere, language=language)
    text = shown_partial(hit.passage.text)
    above = "" if hit.source == "sessions" else lines_above(hit.passage, hit.path, room)
    return Offer(
        path=hit.path,
        ordinal=hit.ordinal,
        start_line=hit.passage.start_line,
        end_line=hit.passage.end_line,
        text=text + days_mark(hit) + (replaced_mark(hit, hit.replaced_by) if hit.replaced_by else ""),
        score=hit.score,
        relevance=hit.relevance,
        answers=hit.answers,
        # A memory file has its day in its name; a session, or one file with headings of many days, has not.
        day="" if hit.passage.date in (None, _day_of(hit.path)) else str(hit.passage.date),
        goes_first=order == "memory_first" and hit.source != "sessions",
        yields_to=hit.yields_to,
        above=shown_partial(above) if above else "",
    )


@lru_cache(maxsize=1_024)
def _day_of(path: str) -> dt.date | None:
    return ornament("days", None, day_of_name, path)


def _item(hit: Hit, offer: Offer) -> dict[str, Any]:
    return {
        "path": hit.path,
        "start_line": offer.start_line,
        "end_line": offer.end_line,
        "tokens": count_tokens(offer.text),
        "role": hit.passage.role,
        "origin": hit.passage.role if hit.passage.noted else None,
        "memory_id": hit.memory_id,
        "score": hit.score,
        "relevance": hit.relevance,
        "text_score": hit.text_score,
        "vector_score": hit.vector_score,
        "replaced_by": f"{hit.replaced_by.path}#L{hit.replaced_by.start_line}" if hit.replaced_by else None,
    }


def _why_left(
    offer: Offer, limits: RelevanceLimits, gain: float | None, spare: int, taken_pairs: Collection[tuple[str, int]]
) -> str:
    if reason := _why_irrelevant(offer, limits, gain):
        return reason
    if offer.yields_to and not any(key in taken_pairs for key in offer.yields_to):
        return f"authority: it stands behind {offer.yields_to[0][0]}, of which nothing on this is in the block"
    tokens = count_tokens(offer.text)
    if tokens > spare:
        return f"budget: needs {tokens} tokens and its wrapper, {spare} are left"
    return f"budget: its wrapper takes more than the {spare - tokens} tokens that would be left beside it"


def _why_irrelevant(offer: Offer, limits: RelevanceLimits, gain: float | None) -> str:
    """Why relevance or a gain that is too small keeps an offer out; empty if something else does."""
    if offer.relevance is not None and offer.relevance < limits.min_relevance:
        return f"relevance {shortfall(offer.relevance, limits.min_relevance)}"
    return "" if gain is None else f"gain: {shortfall(gain, limits.min_gain)} for 100 tokens"


def _why_empty(offers: Sequence[Offer], budget_tokens: int, limits: RelevanceLimits) -> str:
    if not offers:
        return "nothing found: no memory matches the query and its filters"
    count = len(offers)
    offers = [replace(offer, yields_to=()) for offer in offers]
    fitting = [offer for offer in offers if pack([offer], budget_tokens).block]
    best = max((offer.relevance for offer in fitting if offer.relevance is not None), default=1.0)
    if fitting and best < limits.min_relevance:
        return f"nothing relevant: the best of {count} passages has relevance {shortfall(best, limits.min_relevance)}"
    if fitting:
        gain = pack(fitting[:1], budget_tokens, limits).unpaid.get(0)
        return f"nothing worth its tokens: {_why_irrelevant(fitting[0], limits, gain)}"
    least = min(count_tokens(pack([offer], 10**9).block) for offer in offers)
    return (
        f"budget too small: {budget_tokens} tokens, and the smallest of {count} passages needs {least} with its wrapper"
    )
