"""Owns the summary that no model writes: sentences of the messages, chosen and put into sections by rules.

```
sentences, wording, worth  ->  material (lines with a score)  ->  selection  ->  outline
```
Invariants: pure; deterministic; every line but the one that says what is covered is a sentence of a message or a line
of the earlier summary, word for word; never longer than asked for; without news the earlier summary stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from indexer.analysis import MOSTLY, read_part
from indexer.embeddings.base import Embedder
from indexer.errors import EmbeddingError
from memory_service.compaction.material import Material, gather
from memory_service.compaction.outline import LATEST, Line, Section, write_outline
from memory_service.compaction.selection import Basket, best_first, diverse, each_once
from memory_service.compaction.sentences import clip
from memory_service.compaction.summary import Summary, SummaryRequest
from memory_service.tokens import count_tokens, quarters

PROMPT_VERSION = "extractive-1"
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


def extract(request: SummaryRequest, *, embedder: Embedder | None = None) -> Summary:
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
    material = gather(request)
    notes = list(_policy_notes(request))
    facts = _of(material, Section.FACTS)
    try:
        ordered = diverse(facts, embedder=_suited(embedder, facts))
    except EmbeddingError as error:
        ordered = diverse(facts)
        notes.append(f"Sentences were compared by their words alone: {error}")
    return _summary(write_outline(_choose(material, ordered, request)), tuple(notes))


def _summary(text: str, notes: tuple[str, ...]) -> Summary:
    return Summary(text=text, method="extractive", prompt_version=PROMPT_VERSION, notes=notes)


def _policy_notes(request: SummaryRequest) -> Sequence[str]:
    if request.identifier_policy == "anonymize":
        return ("Sentences with identifiers were left out, since rules cannot anonymize them.",)
    if request.identifier_policy == "custom":
        return ("The instructions for identifiers were not followed: only a model can.",)
    return ()


def _suited(embedder: Embedder | None, facts: Sequence[Line]) -> Embedder | None:
    """The embedder, unless it was trained on other scripts than most of the lines have."""
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


def _choose(material: Material, facts: Sequence[Line], request: SummaryRequest) -> list[Line]:
    room = _Room(4 * max(request.target_tokens, 0))
    basket = Basket(budget=room.budget)
    goals = _of(material, Section.GOAL)
    now = [line for line in goals if line.label == LATEST and request.target_tokens < _LATEST_FROM]
    _take_goals(basket, [line for line in goals if line not in now], room)
    if material.coverage and request.target_tokens >= CONTEXT_FROM:
        basket.take(Line(section=Section.CONTEXT, text=str(material.coverage)))
    lines = {section: best_first(_of(material, section)) for section in Section}
    lines[Section.FACTS] = list(facts)
    lines[Section.RULES] = best_first(each_once(lines[Section.RULES]))
    turn_share = _TURN_SHARE if request.messages or request.previous else 1.0
    basket.fill(lines[Section.TURN], room.share(turn_share))
    for section, share in _FIRST:
        basket.fill(lines[section], max(room.share(share), 4 * _FIRST_TOKENS))
    _take_goals(basket, now, room)
    left = room.budget - basket.used
    for section, share in _THEN:
        basket.fill(lines[section], int(left * share))
    for section in (Section.RULES, Section.DECISIONS):
        basket.fill(lines[section])
    rest = [line for section, _ in _THEN[:-1] for line in lines[section]]
    basket.fill([*best_first(rest), *facts, *lines[Section.TURN]])
    return basket.lines


def _take_goals(basket: Basket, goals: Sequence[Line], room: _Room) -> None:
    limit = max(room.share(_GOAL_SHARE / 2), 4 * _GOAL_TOKENS)
    for line in goals:
        allowed = min(limit, room.budget - basket.used)
        spare = allowed - (basket.cost(line) - quarters(line.text))
        short = clip(line.text, max(spare, 0) if line.text.isascii() else max(spare - 4, 0))
        if short and not basket.take(replace(line, text=short)):
            # A line without its handle still tells what it is about.
            basket.take(replace(line, text=short, seq=0))


def _of(material: Material, section: Section) -> list[Line]:
    return [line for line in material.lines if line.section is section]
