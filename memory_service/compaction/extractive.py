"""Extractive summary: sentences of the messages, scored, selected within a budget and put into sections by rules. Pure.

Invariants: deterministic; every line but the one of coverage is a sentence of a message or a line of the earlier
summary, word for word; never longer than asked for, headings included; without anything new the earlier summary stays
as it is; no two lines say the same; an embedder is asked once, for a bounded number of texts, and never needed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from indexer import EmbeddingError
from indexer.language import MOSTLY, asked_terms, language_of, read_part, writing_of
from memory_service.compaction.extractive_lines import CandidateLines, candidate_lines
from memory_service.compaction.summary import Summary, SummaryRequest
from memory_service.compaction.summary_format import LATEST, Section, SummaryLine, heading_size, render_summary
from memory_service.messages.sizes import count_tokens, quarters
from memory_service.text.sentences import clip
from memory_service.text.similarity import groups_of
from memory_service.text.texts import ENGLISH, Texts, texts_in

if TYPE_CHECKING:
    from indexer import Embedder, LanguageChoice

MAX_CANDIDATES = 200
# How much of a line's score stands whether or not it is new.
# Source: facts that survive five rounds at 800 tokens, 0.1 to 0.4 are alike, and 0.1 repeats least (our measurement).
KNOWN_SHARE = 0.1

Novelty = Callable[[int, Sequence[int]], float]


@dataclass(slots=True, kw_only=True)
class LineSelection:
    """Lines taken so far, within a budget in quarters of a token."""

    budget: int
    texts: Texts = ENGLISH
    lines: list[SummaryLine] = field(default_factory=list)
    used_count: int = 0
    _sections: set[Section] = field(default_factory=set)
    _taken_pairs: set[tuple[str, str]] = field(default_factory=set)

    def cost(self, line: SummaryLine) -> int:
        """Quarters of a token that a line would take of the budget."""
        heading = 0 if line.section in self._sections else heading_size(line.section, self.texts)
        return line.size(self.texts) + heading

    def take(self, line: SummaryLine, limit: int | None = None) -> bool:
        """Takes a line if it fits, also within a limit of its own; a text is taken once.

        Returns:
            Whether it was taken.
        """
        cost = self.cost(line)
        key = (line.purpose, line.text)
        if (
            cost > min(self.budget - self.used_count, self.budget if limit is None else limit)
            or key in self._taken_pairs
        ):
            return False
        self._sections.add(line.section)
        self._taken_pairs.add(key)
        self.lines.append(line)
        self.used_count += cost
        return True

    def fill(self, lines: Iterable[SummaryLine], limit: int | None = None) -> None:
        """Takes lines in their order as long as they fit, all together within a limit of their own."""
        start = self.used_count
        for line in lines:
            self.take(line, None if limit is None else limit - (self.used_count - start))


def _best_first(lines: Iterable[SummaryLine]) -> list[SummaryLine]:
    """Lines by score; of equals the earlier one."""
    return sorted(lines, key=lambda line: (-line.score, line.seq, line.place))


def mmr_order(lines: Sequence[SummaryLine], *, embedder: Embedder | None = None) -> list[SummaryLine]:
    """The best lines by score for their length, each weighed by what the ones before it do not say.

    Args:
        lines: All there are; the `MAX_CANDIDATES` best are looked at.
        embedder: Judges likeness by meaning; without it, by terms.

    Raises:
        EmbeddingError: From the embedder.
    """
    candidates = _best_first(lines)[:MAX_CANDIDATES]
    if len(candidates) < 2:
        return candidates
    values = [line.score / (20 + quarters(line.text)) ** 0.5 for line in candidates]
    novelty = _by_terms(candidates) if embedder is None else _by_meaning(candidates, embedder)
    # What a line adds only falls as others are taken, so that most need not be weighed again.
    heap = [(-value, index, 0) for index, value in enumerate(values)]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        _, index, weighed_count = heapq.heappop(heap)
        if weighed_count == len(order):
            order.append(index)
            continue
        value = values[index] * (KNOWN_SHARE + (1 - KNOWN_SHARE) * novelty(index, order))
        heapq.heappush(heap, (-value, index, len(order)))
    return [candidates[index] for index in order]


def _by_terms(lines: Sequence[SummaryLine]) -> Novelty:
    terms = [frozenset(asked_terms(line.text)) for line in lines]
    covered_keys: set[str] = set()
    seen_count = 0

    def novelty(index: int, order: Sequence[int]) -> float:
        nonlocal seen_count
        for taken_count in order[seen_count:]:
            covered_keys.update(terms[taken_count])
        seen_count = len(order)
        return len(terms[index] - covered_keys) / max(len(terms[index]), 1)

    return novelty


def _by_meaning(lines: Sequence[SummaryLine], embedder: Embedder) -> Novelty:
    vectors = embedder.embed_documents([line.text for line in lines])
    likeness: list[list[float]] = (vectors @ vectors.T).tolist()
    nearest = [0.0] * len(lines)
    numbers = [0] * len(lines)

    def novelty(index: int, order: Sequence[int]) -> float:
        row = likeness[index]
        nearest[index] = max(nearest[index], max((row[number] for number in order[numbers[index] :]), default=0.0))
        numbers[index] = len(order)
        return 1 - nearest[index]

    return novelty


def _deduplicate(lines: Sequence[SummaryLine]) -> list[SummaryLine]:
    """Of lines that say the same, the last, in order; looks at the `MAX_CANDIDATES` best."""
    ordered_lines = sorted(_best_first(lines)[:MAX_CANDIDATES], key=lambda line: (line.seq, line.place))
    groups = groups_of([line.text for line in ordered_lines])
    return [ordered_lines[at] for at in sorted(group[-1] for group in groups)]


_RULES_VERSION = "extractive-1"
# Below this a line about the covered messages costs more than it tells, in tokens.
CONTEXT_FROM = 120

# Shares of the whole that a section may take before the others had their turn; what is left over goes to all.
# Chosen, not tuned: with them eight incidental facts and a decision survive five rounds at 400 tokens.
_FIRST = ((Section.RULES, 0.45), (Section.DECISIONS, 0.22))
_THEN = (
    (Section.OPEN, 0.15),
    (Section.PLANS, 0.18),
    (Section.FAILED, 0.12),
    (Section.DONE, 0.15),
    (Section.FACTS, 1.0),
)
# Room for one line of theirs even where the share is less.
_FIRST_TOKENS = 48
_TURN_SHARE = 0.25
# Below this the ask of now comes after the rules.
_LATEST_FROM = 100
_GOAL_SHARE = 0.3
_GOAL_TOKENS = 24


def extract(request: SummaryRequest, *, embedder: Embedder | LanguageChoice | None = None) -> Summary:
    """Makes a summary out of what the messages say themselves.

    Args:
        request: What to summarise; the earlier summary may be of any form.
        embedder: Judges which sentences say the same by meaning; without it, terms do.

    Returns:
        The summary, at most `target_tokens` long. Notes say what could not be done as asked.
    """
    news = bool(request.messages or request.prefix)
    if not news and count_tokens(request.previous) <= request.target_tokens:
        return _summary(request.previous, ())
    material = candidate_lines(request)
    notes = list(_policy_notes(request))
    facts = _of(material, Section.FACTS)
    try:
        lines = mmr_order(facts, embedder=_suitable_embedder(embedder, facts))
    except EmbeddingError as error:
        lines = mmr_order(facts)
        notes.append(f"Sentences were compared by their words alone: {error}")
    texts = texts_in(request.language)
    return _summary(render_summary(_choose(material, lines, request, texts), texts), tuple(notes))


def _summary(text: str, notes: tuple[str, ...]) -> Summary:
    return Summary(text=text, method="extractive", prompt_version=_RULES_VERSION, notes=notes)


def _policy_notes(request: SummaryRequest) -> Sequence[str]:
    if request.identifier_policy == "anonymize":
        return ("Sentences with identifiers were left out, since rules cannot anonymize them.",)
    if request.identifier_policy == "custom":
        return ("The instructions for identifiers were not followed: only a model can.",)
    return ()


def _suitable_embedder(embedder: Embedder | LanguageChoice | None, facts: Sequence[SummaryLine]) -> Embedder | None:
    """The embedder, unless it was trained on other scripts than most of the lines have.

    Of a choice it is the one for English: how like two lines are was measured with that one.
    """
    if embedder is None:
        return None
    from indexer import LanguageChoice

    if isinstance(embedder, LanguageChoice):
        english = writing_of((language_of(line.text), 1.0) for line in facts).foreign < MOSTLY
        embedder = embedder.english if english else None
    if embedder is None:
        return None
    read = sum(read_part(line.text, embedder.reads).share >= MOSTLY for line in facts)
    return embedder if 2 * read >= len(facts) else None


@dataclass(frozen=True, slots=True)
class _Room:
    """Parts of a budget."""

    budget: int

    def share(self, part: float) -> int:
        return int(self.budget * part)


def _choose(
    material: CandidateLines, facts: Sequence[SummaryLine], request: SummaryRequest, texts: Texts
) -> list[SummaryLine]:
    room = _Room(4 * max(request.target_tokens, 0))
    selection = LineSelection(budget=room.budget, texts=texts)
    goals = _of(material, Section.GOAL)
    now = [line for line in goals if line.label == LATEST and request.target_tokens < _LATEST_FROM]
    _take_goals(selection, [line for line in goals if line not in now], room)
    if material.coverage and request.target_tokens >= CONTEXT_FROM:
        selection.take(SummaryLine(section=Section.CONTEXT, text=material.coverage.render(texts)))
    lines = {section: _best_first(_of(material, section)) for section in Section}
    lines[Section.FACTS] = list(facts)
    lines[Section.RULES] = _best_first(_deduplicate(lines[Section.RULES]))
    turn_share = _TURN_SHARE if request.messages or request.previous else 1.0
    selection.fill(lines[Section.TURN], room.share(turn_share))
    for section, share in _FIRST:
        selection.fill(lines[section], max(room.share(share), 4 * _FIRST_TOKENS))
    _take_goals(selection, now, room)
    left = room.budget - selection.used_count
    for section, share in _THEN:
        selection.fill(lines[section], int(left * share))
    for section in (Section.RULES, Section.DECISIONS):
        selection.fill(lines[section])
    rest = [line for section, _ in _THEN[:-1] for line in lines[section]]
    selection.fill([*_best_first(rest), *facts, *lines[Section.TURN]])
    return selection.lines


def _take_goals(selection: LineSelection, goals: Sequence[SummaryLine], room: _Room) -> None:
    limit = max(room.share(_GOAL_SHARE / 2), 4 * _GOAL_TOKENS)
    for line in goals:
        allowed_count = min(limit, room.budget - selection.used_count)
        spare = allowed_count - (selection.cost(line) - quarters(line.text))
        short = clip(line.text, max(spare, 0) if line.text.isascii() else max(spare - 4, 0))
        if short and not selection.take(replace(line, text=short)):
            # A line without its handle still tells what it is about.
            selection.take(replace(line, text=short, seq=0))


def _of(material: CandidateLines, section: Section) -> list[SummaryLine]:
    return [line for line in material.lines if line.section is section]
