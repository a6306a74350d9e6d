"""Searches of an index: from a question to its hits, in one state of the index.

Invariants: a search reads the state that it began with, or begins again; a packed part that is damaged is done without;
no lock is held while the question is embedded.
"""

from __future__ import annotations

import datetime as dt
from contextlib import nullcontext, suppress
from dataclasses import replace

from indexer.common import THROTTLE
from indexer.compatibility import IndexCompatibility
from indexer.embeddings.reranking import RERANKED_FROM, Reranking
from indexer.engine.chains import current_first
from indexer.engine.changed_facts import changed_facts
from indexer.engine.hits import to_hits, why_unjudged
from indexer.engine.ranking import RankingSettings
from indexer.engine.reader import find_named, find_terms, vector_text
from indexer.engine.reader_manager import ReaderManagers
from indexer.engine.relevance import Calibration
from indexer.engine.search import (
    Query,
    Timer,
    embed_question,
    rank,
    reads_all,
    regime_of,
    relevance_of,
    vector_weight,
    weights_of,
)
from indexer.errors import IndexerError, StoreReplaced
from indexer.language.facts import FACT_RULES, UNREAD_FACTS
from indexer.stores.base import IndexStore
from indexer.types import Fingerprint, Mode, SearchFilter, SearchResults, Statement

_ROUNDS = 20


class IndexSearch:
    """Searches of one index.

    Args:
        store: The index.
        compatibility: Its embedder.
        readers: Its data in memory.
        ranking: How results are ordered.
        reranking: A second look at the best hits; None for none.
        calibration: Tells how relevant hits are.
    """

    def __init__(
        self,
        store: IndexStore,
        compatibility: IndexCompatibility,
        readers: ReaderManagers,
        *,
        ranking: RankingSettings,
        reranking: Reranking | None,
        calibration: Calibration,
    ) -> None:
        self._store = store
        self._compatibility = compatibility
        self._readers = readers
        self._ranking = ranking
        self._reranking = reranking
        self._calibration = calibration

    def why_unjudged(self, made_with: Fingerprint) -> str:
        """Why hits of an index that was made so have no relevance; empty where they have, and without a model."""
        model = self._calibrated_as(made_with)
        return self._calibration.problem("hybrid", model, self._ranking) if made_with.model else ""

    def run(self, query: Query) -> SearchResults:
        """One search, begun again while other generations take the index's place.

        Raises:
            StoreOutdated: Another version made the index.
            StoreError: The index cannot be read.
        """
        most = max(query.limit, RERANKED_FROM) if self._reranking else query.limit
        with THROTTLE.foreground():
            for _ in range(_ROUNDS):
                with suppress(StoreReplaced):
                    return self._run_unless_damaged(replace(query, limit=most), query.limit)
            return self._run_unless_damaged(replace(query, limit=most), query.limit)

    def _run_unless_damaged(self, query: Query, limit: int) -> SearchResults:
        """One search, without the packed part if that is damaged."""
        try:
            return self._run_once(query, limit)
        except IndexerError:
            raise
        except Exception:
            with self._store.reading(), self._readers.loading() as manager:
                is_damaged = manager.drop_if_damaged()
            if not is_damaged:
                raise
        return self._run_once(query, limit)

    def _run_once(self, query: Query, limit: int) -> SearchResults:
        # Where nobody is waited for within it, one read sees the words and the passages.
        is_one_read = query.mode == "text" and not self._reranking
        with self._store.reading() if is_one_read else nullcontext():
            return self._search(query, limit)

    def _search(self, query: Query, limit: int) -> SearchResults:
        """One search.

        Raises:
            StoreReplaced: Another generation took the index's place meanwhile.
        """
        text, mode = query.text, query.mode
        degraded, watch = list[str](), Timer()
        with self._store.reading():
            # The view begins with the first query, under the lock: it is never older than what is in memory.
            with self._readers.loading() as manager:
                embedder, made_with = self._compatibility.for_search(mode, degraded)
                view = manager.reader(self._compatibility.dimensions() if embedder else None)
            watch.lap("view")
            words = find_terms(view, text, names_alone=mode == "vector" and embedder is not None)
            named_value = find_named(view, text, words)
        watch.lap("words")
        vector, heard_vector_text = None, ""
        if embedder is not None and len(view):
            heard_vector_text = vector_text(text, words, view, embedder.reads, named_value)
            vectors = embed_question(embedder, heard_vector_text, degraded) if heard_vector_text else None
            vector = self._compatibility.fit_vector(vectors, made_with, degraded)
        trust = vector_weight(embedder if vector is not None else None, text)
        done_mode: Mode = "text" if vector is None and (heard_vector_text or embedder is None) else mode
        query = replace(query, mode=done_mode, named=named_value)
        watch.lap("embed")
        with self._store.reading():
            head = self._store.head()
            if head.generation != view.corpus.generation:
                raise StoreReplaced("The index is replaced again and again. Try again in a moment.")
            if len(view) and head.fact_rules != FACT_RULES:
                degraded.append(UNREAD_FACTS)
            if done_mode == "text" and mode == "vector" and embedder is not None:
                words = find_terms(view, text)
            reads_scripts = reads_all(embedder if vector is not None else None)
            weights = weights_of(made_with.model if made_with else "")
            ranking = rank(view, query, words, vector, trust, self._ranking, reads_all=reads_scripts, weights=weights)
            watch.lap("rank")
            regime = regime_of(query, vector, trust)
            judge = self._calibrated_as(made_with)
            unjudged_problem = self._calibration.problem(regime, judge, self._ranking)
            calibration = None if unjudged_problem else self._calibration
            relevance = relevance_of(view, query, words, regime, calibration, judge, vector)
            hits = to_hits(view, query, ranking, self._ranking, relevance)
        watch.lap("fetch")
        if self._reranking:
            hits, problem = self._reranking.rerank(hits, text)
            hits = current_first(hits)
            degraded += [problem] if problem else []
            watch.lap("rerank")
        return SearchResults(
            hits=hits[:limit],
            mode=done_mode,
            degraded=tuple(degraded),
            unjudged=why_unjudged(hits, unjudged_problem),
            stages_ms=watch.laps_ms,
        )

    def changed_facts(
        self, filter: SearchFilter, today: dt.date, zone: dt.tzinfo | None
    ) -> list[tuple[Statement, ...]]:
        """The facts whose value was replaced, of the passages that a filter lets pass; the last changed first.

        Raises:
            StoreOutdated: Another version made the index.
            StoreError: The index cannot be read.
        """
        with self._store.reading(), THROTTLE.foreground():
            with self._readers.loading() as manager:
                view = manager.reader(None)
            return changed_facts(self._store, view.facts.on(today, zone), filter)

    def _calibrated_as(self, made_with: Fingerprint | None) -> str:
        """Fingerprint of the model whose relevance the vectors have."""
        own: str = getattr(self._compatibility.embedder(made_with), "calibrated_as", "")
        return own or (made_with.model if made_with else "")
