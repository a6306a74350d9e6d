"""Search results and receipts as the API answers them, with scores as people see them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from indexer import (
    Hit,
)
from indexer import SearchResults as Found
from indexer import Statement as Stated
from memory_service import schemas
from memory_service.home import citation
from memory_service.memories.block import is_relevant

_Item = TypeVar("_Item", bound=schemas.ReceiptItem)


def _shown_score(raw: float, fusion: str) -> float:
    """A rank score as people see it: 0 to 1. Sums of deviations are squeezed, the others are cut at both ends."""
    if fusion != "evidence":
        return round(max(0.0, min(1.0, raw)), 6)
    return round(1 / (1 + math.exp(-max(-60.0, min(60.0, raw)) / 4)), 6)


# Where some are left out, so many of the best are looked at: relevance does not fall with every place, nor does the
# score where memories go first.
_LOOKED_AT = 100


def looked_at(limit: int, min_score: float | None, min_relevance: float) -> int:
    """How many results are looked at, for those that a search shall give."""
    return max(limit, _LOOKED_AT) if min_relevance > 0 or min_score is not None else limit


def search_results(
    results: Found,
    *,
    limit: int,
    fusion: str,
    min_score: float | None,
    min_relevance: float,
    explain: bool,
    took_ms: float,
) -> schemas.SearchResults:
    """Search results as the API answers them: the best of those that have enough."""
    hits = [hit for hit in results.hits if is_relevant(hit.relevance, min_relevance)]
    shown_pairs = [(hit, _shown_score(hit.score, fusion)) for hit in hits]
    kept_pairs = [(hit, score) for hit, score in shown_pairs if min_score is None or score >= min_score]
    return schemas.SearchResults(
        results=[_result(hit, score, explain) for hit, score in kept_pairs[:limit]],
        mode=results.mode,
        degraded=list(results.degraded),
        took_ms=round(took_ms, 3),
    )


def _result(hit: Hit, score: float, explain: bool) -> schemas.SearchResult:
    passage = hit.passage
    return schemas.SearchResult(
        path=hit.path,
        start_line=passage.start_line,
        end_line=passage.end_line,
        text=hit.snippet,
        heading=list(passage.heading),
        columns=passage.columns,
        date=passage.date,
        days=list(hit.days),
        source=hit.source,
        role=passage.role,
        origin=passage.role if passage.noted else None,
        memory_id=hit.memory_id,
        score=score,
        relevance=hit.relevance,
        text_score=round(hit.text_score, 6),
        vector_score=None if hit.vector_score is None else round(hit.vector_score, 6),
        citation=citation(hit.path, passage.start_line, passage.end_line),
        signals={name: round(part, 6) for name, part in hit.signals.items()} if explain else None,
        replaced_by=_statement(hit.replaced_by) if hit.replaced_by else None,
        replaces=[_statement(statement) for statement in hit.replaces],
        history=[_statement(statement) for statement in hit.history],
    )


def changed_facts(facts: Iterable[Sequence[Stated]]) -> schemas.ChangedFacts:
    """Facts with all their values."""
    return schemas.ChangedFacts(
        facts=[
            schemas.ChangedFact(about=values[-1].about, values=[_statement(value) for value in values])
            for values in facts
        ]
    )


def _statement(statement: Stated) -> schemas.Statement:
    return schemas.Statement(
        path=statement.path,
        start_line=statement.start_line,
        end_line=statement.end_line,
        citation=citation(statement.path, statement.start_line, statement.end_line),
        date=statement.date,
        about=statement.about,
        text=statement.text,
        current=statement.current,
    )


def receipt(receipt: schemas.Receipt, *, fusion: str) -> schemas.Receipt:
    """A receipt as it is stored, with scores as people see them."""
    shown_fields = {
        "included": _with_shown_scores(receipt.included, fusion),
        "omitted": _with_shown_scores(receipt.omitted, fusion),
    }
    return receipt.model_copy(update=shown_fields)


def _with_shown_scores(items: Iterable[_Item], fusion: str) -> list[_Item]:
    return [item.model_copy(update={"score": _shown_score(item.score, fusion)}) for item in items]
