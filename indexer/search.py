"""Owns a search from question to hits: candidates from both halves, ranking, the passages of the best.

Invariants: filters decide before anything is ranked; one search ranks one state of the index, and a passage
that goes before it is fetched is left out; no read is open while the question is embedded; a half that is
missing is named, never passed over.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from indexer import analysis
from indexer.corpus import Corpus, Floats, Ints, Mask
from indexer.cues import asks_when
from indexer.dates import AskedDays, asked_days
from indexer.embeddings.base import Embedder
from indexer.errors import EmbeddingError, QueryInvalid
from indexer.matrix import Matrix
from indexer.ranking import (
    CANDIDATES,
    Posting,
    RankingSettings,
    TextEvidence,
    VectorEvidence,
    age_share,
    blend,
    candidates,
    cue_bonus,
    diversified,
    fuse,
    named_labels,
    reciprocal_ranks,
    speaker_bonus,
    text_evidence,
    vector_evidence,
)
from indexer.snippets import snippet
from indexer.stores.base import IndexStore, StoredPassage
from indexer.types import Hit, LineRange, Mode, SearchFilter, Vectors

MAX_QUERY_CHARS = 10_000
# A question longer than this is a pasted text; its first terms say what it is about.
_MAX_TERMS = 64
_COMMON_SHARE = 0.3
_COMMON_FROM = 50
# An English model knows little of a question in Chinese. Source: XQuAD zh, hit@5 .95 at .3, below at .6.
_FOREIGN_TRUST = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked.

    Attributes:
        limit: Most hits to return.
        today: The day that "yesterday" and recency count from.
        explain: Whether each hit says what every signal added to its score.
        snippets: Whether the part of a long passage that is nearest to the question is looked for.
    """

    text: str
    limit: int
    mode: Mode
    kept: SearchFilter
    today: dt.date
    explain: bool = False
    snippets: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one search reads: a store within a read, its corpus, and its vectors where they are in memory."""

    store: IndexStore
    corpus: Corpus
    matrix: Matrix | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    """Candidate rows with their scores, unordered."""

    rows: Ints
    scores: Floats
    parts: dict[str, Floats]
    text: TextEvidence | None
    vector: VectorEvidence | None


def check_query(text: str, limit: int) -> str:
    """The question, stripped.

    Raises:
        QueryInvalid: It is empty or over-long, or the limit is not positive.
    """
    stripped = text.strip()
    if not stripped:
        raise QueryInvalid("The query is empty. Ask for something.")
    if len(stripped) > MAX_QUERY_CHARS:
        raise QueryInvalid(f"The query has {len(stripped):,} characters. Ask with at most {MAX_QUERY_CHARS:,}.")
    if limit < 1:
        raise QueryInvalid(f"The limit is {limit}. Ask for at least 1 result.")
    return stripped


def find_postings(view: View, question: str) -> list[Posting]:
    """Where the terms of a question occur in the corpus."""
    found = []
    for posting in view.store.postings(analysis.query_terms(question)[:_MAX_TERMS]):
        rows, known = view.corpus.rows(posting.keys)
        if len(rows):
            found.append(Posting(term=posting.term, rows=rows, counts=posting.counts[known]))
    return found


def vector_text(question: str, postings: list[Posting], corpus: Corpus) -> str:
    """The question without what cannot tell passages apart: names of speakers and words found in nearly all.

    Source: dropping non-stop words of more than 30 % of the passages gained .014 on LoCoMo.
    """
    common = {p.term for p in postings if len(corpus) >= _COMMON_FROM and len(p.rows) > _COMMON_SHARE * len(corpus)}
    for label in named_labels(corpus, question):
        common.update(analysis.index_terms(corpus.label_names[label]))
    kept = [word for word in question.split() if not _only(word, common)]
    return " ".join(kept) or question


def _only(word: str, common: set[str]) -> bool:
    """Whether a word is one of the common ones, or its genitive."""
    terms = analysis.index_terms(re.sub(r"['’]s\b", "", word))
    return bool(terms) and all(term in common for term in terms)


def rank(
    view: View, query: Query, postings: list[Posting], vector: Vectors | None, trust: float, settings: RankingSettings
) -> _Ranked:
    """Score the candidates of a question.

    Args:
        view: What to search.
        query: What is asked.
        postings: Where its terms occur; empty for a vector search.
        vector: Its embedding, or None for a text search.
        trust: Weight of the vectors.
        settings: How to fuse.
    """
    corpus = view.corpus
    allowed = _allowed(corpus, query.kept)
    text = text_evidence(postings, corpus) if query.mode != "vector" else None
    lexical = [text.pair, text.window] if text else []
    near = _vector_evidence(view, query, vector, allowed, lexical) if vector is not None else None
    signals = [*lexical, *([near.own, near.triple] if near else [])]
    rows = candidates(signals, allowed)
    parts = _parts(text, near, rows, trust, settings)
    if settings.fusion == "evidence":
        parts |= _question_parts(corpus, rows, query.text, asked_days(query.text, query.today))
    scores = sum(parts.values(), np.zeros(len(rows)))
    aged = _aged(corpus, rows, query, settings)
    if settings.fusion == "evidence":
        parts["recency"] = aged * settings.recency_weight
        scores = scores + parts["recency"]
    elif settings.recency_weight:
        parts = {name: part * aged for name, part in parts.items()}
        scores = scores * aged
    if text and near is None:
        # Nothing speaks for a passage with none of the words in it or around it. They go last, as the others
        # are measured against them.
        spoken_for = text.window[rows] > 0
        rows, scores = rows[spoken_for], scores[spoken_for]
        parts = {name: part[spoken_for] for name, part in parts.items()}
    return _Ranked(rows=rows, scores=scores, parts=parts, text=text, vector=near)


def _parts(
    text: TextEvidence | None, vector: VectorEvidence | None, rows: Ints, trust: float, settings: RankingSettings
) -> dict[str, Floats]:
    if settings.fusion == "blend":
        return blend(text, vector, rows)
    if settings.fusion == "rrf":
        return reciprocal_ranks(text, vector, rows)
    return fuse(text, vector, rows, trust)


def _question_parts(corpus: Corpus, rows: Ints, question: str, asked: AskedDays) -> dict[str, Floats]:
    parts = {
        "speaker": speaker_bonus(corpus, rows, question),
        "cues": cue_bonus(corpus, rows, asks_when(question)),
    }
    if asked:
        days, place = np.unique(corpus.days[rows], return_inverse=True)
        parts["date"] = np.array([asked.bonus(int(day)) for day in days])[place]
    return parts


def _aged(corpus: Corpus, rows: Ints, query: Query, settings: RankingSettings) -> Floats:
    return age_share(corpus, rows, query.today.toordinal(), settings.half_life_days)


def _allowed(corpus: Corpus, kept: SearchFilter) -> Mask:
    files = np.array(
        [
            (not kept.sources or file.source in kept.sources) and file.path.startswith(kept.path_prefix)
            for file in corpus.files
        ],
        bool,
    )
    allowed: Mask = files[corpus.file]
    if kept.since or kept.until:
        first = kept.since.toordinal() if kept.since else 1
        last = (kept.until or dt.date.max).toordinal()
        allowed = allowed & (corpus.days >= first) & (corpus.days <= last)
    if kept.without:
        allowed = allowed.copy()
        _leave_out(corpus, kept.without, allowed)
    return allowed


def _leave_out(corpus: Corpus, ranges: Sequence[LineRange], allowed: Mask) -> None:
    """Takes passages within ranges of lines off the allowed ones, which are changed in place."""
    numbers = {file.path: number for number, file in enumerate(corpus.files)}
    for lines in ranges:
        number = numbers.get(lines.path)
        if number is not None:
            rows = slice(*np.searchsorted(corpus.file, [number, number + 1]))
            within = (corpus.start_lines[rows] >= lines.start_line) & (corpus.end_lines[rows] <= lines.end_line)
            allowed[rows] &= ~within


def _vector_evidence(view: View, query: Query, vector: Vectors, allowed: Mask, lexical: list[Floats]) -> VectorEvidence:
    if view.matrix is not None:
        own, triple = view.matrix.cosines(vector)
        return vector_evidence(own, triple, view.corpus)
    keys, cosines = view.store.nearest(vector, CANDIDATES, query.kept)
    nearest, known = view.corpus.rows(keys)
    wanted = candidates(lexical, allowed) if lexical else np.empty(0, np.int64)
    return _looked_up(view, vector, nearest, cosines[known], wanted)


def _looked_up(view: View, vector: Vectors, nearest: Ints, cosines: Floats, lexical: Ints) -> VectorEvidence:
    """Vector signals of the store's nearest and of the lexical candidates; all others count as no nearer."""
    corpus = view.corpus
    floor = float(cosines.min()) if len(cosines) else 0.0
    own = np.full(len(corpus), floor)
    own[nearest] = cosines
    missing = np.setdiff1d(lexical, nearest)
    stored_keys, stored = view.store.vectors(corpus.keys[missing].tolist())
    rows, known = corpus.rows(stored_keys)
    if len(rows):
        own[rows] = stored[known] @ vector
    low, high = corpus.triples
    running = np.r_[0.0, np.cumsum(own)]
    return vector_evidence(own, (running[high + 1] - running[low]) / (high - low + 1), corpus)


def to_hits(view: View, query: Query, ranked: _Ranked, settings: RankingSettings) -> tuple[Hit, ...]:
    """The best candidates as hits, each text once."""
    varied = settings.mmr_lambda < 1
    pool = 4 * query.limit if varied else query.limit
    chosen = list(islice(_distinct(view, ranked, pool + 20), pool))
    if varied:
        chosen = _varied(chosen, ranked, settings.mmr_lambda)
    terms = analysis.query_terms(query.text)
    return tuple(_hit(found, position, ranked, terms, query) for position, found in chosen[: query.limit])


def _distinct(view: View, ranked: _Ranked, step: int) -> Iterator[tuple[int, StoredPassage]]:
    """Positions of the candidates with their passages, best first, each text once; read `step` at a time."""
    order = np.argsort(-ranked.scores, kind="stable")
    seen = set[str]()
    for start in range(0, len(order), step):
        keys = view.corpus.keys[ranked.rows[order[start : start + step]]].tolist()
        stored = view.store.passages(keys)
        for position, key in zip(order[start : start + step].tolist(), keys, strict=True):
            found = stored.get(key)
            if found is None:
                continue
            words = " ".join(found.passage.text.casefold().split())
            if words not in seen:
                seen.add(words)
                yield position, found


def _varied(chosen: list[tuple[int, StoredPassage]], ranked: _Ranked, weight: float) -> list[tuple[int, StoredPassage]]:
    scores = ranked.scores[[position for position, _ in chosen]]
    terms = [frozenset(analysis.index_terms(found.passage.text)) for _, found in chosen]
    return [chosen[i] for i in diversified(scores, terms, weight)] if chosen else chosen


def _hit(found: StoredPassage, position: int, ranked: _Ranked, terms: list[str], query: Query) -> Hit:
    row = ranked.rows[position]
    return Hit(
        path=found.path,
        source=found.source,
        passage=found.passage,
        ordinal=found.ordinal,
        snippet=snippet(found.passage.text, terms) if query.snippets else found.passage.text,
        score=float(ranked.scores[position]),
        text_score=float(ranked.text.unit[row]) if ranked.text else 0.0,
        vector_score=float(ranked.vector.own[row]) if ranked.vector else None,
        signals={name: float(part[position]) for name, part in ranked.parts.items()} if query.explain else {},
    )


def embed_question(embedder: Embedder, question: str, degraded: list[str]) -> Vectors | None:
    """The vector of a question, or None with the reason added to `degraded`."""
    try:
        return embedder.embed_query(question)
    except EmbeddingError as error:
        degraded.append(f"vector: {error}")
        return None


def trust_in(embedder: Embedder, question: str) -> float:
    """How far the model's vectors count for a question: less in a script that it was not trained on."""
    return _FOREIGN_TRUST if analysis.has_unspaced(question) and not embedder.multilingual else 1.0
