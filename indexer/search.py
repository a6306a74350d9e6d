"""Search from question to hits: candidates by words and vectors, ranking, the passages of the best.

Invariants: filters apply before ranking; one search ranks one state of the index, and a passage that is removed before
it is fetched is left out; no read is open while the question is embedded; a missing half is named, never passed over.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from indexer.corpus import Corpus, Floats, Ints, Mask
from indexer.embeddings.base import Embedder
from indexer.embeddings.bundled import MultilingualE5
from indexer.engine.authority import Contender, authorities, best_above, by_authority, cosines_among, unknown_cosine
from indexer.engine.bm25 import NO_STATISTICS, RangeStatistics, text_evidence
from indexer.engine.chains import FactResolver
from indexer.engine.copies import days_of_copies, distinct
from indexer.engine.ranking import (
    CANDIDATES,
    ENGLISH_WEIGHTS,
    MULTILINGUAL_WEIGHTS,
    Candidates,
    EvidenceWeights,
    Fusion,
    Ranked,
    RankingSettings,
    age_share,
    blend,
    candidates,
    corpus_candidates,
    cue_bonus,
    fuse,
    latest_bonus,
    merge_candidates,
    mmr_order,
    name_bonus,
    reciprocal_ranks,
    speaker_bonus,
    vector_candidates,
    vector_evidence,
)
from indexer.engine.reader import MAX_TERMS, IndexReader, Packed, QueryTerms
from indexer.engine.relevance import Calibration, QuestionTerms, Regime, signals
from indexer.engine.restatements import COMPARED, restated_last
from indexer.engine.segments.scoring import SegmentQuery, search_segment
from indexer.engine.sought import Sought, named_first, with_sought
from indexer.errors import EmbeddingError, QueryInvalid
from indexer.stores.base import IndexStore, StoredPassage
from indexer.text import terms as analysis
from indexer.text.asked_days import LATEST_ALONE, LATEST_BESIDE, AskedDays, asked_days
from indexer.text.names import NOBODY, Named
from indexer.text.ornaments import ornament
from indexer.text.questions import asks_when
from indexer.text.sentences import SNIPPET_CHARS, snippet
from indexer.types import AUTHORITY, Cue, Hit, LineRange, Mode, SearchFilter, Vectors

MAX_QUERY_CHARS = 10_000
# An English model reads the Latin words of a question in Chinese or Russian, such as names of products, and knows
# little of what is said of them. Source: tests/evals/chinese.py, dev half: alike from .1 to .4. With the whole
# question embedded, hit@1 of natural questions fell from .930 by words alone to .927 at .2 and .909 at .45.
_FOREIGN_TRUST = 0.2
# A few words each of Russian, Greek, Arabic, Hindi, Korean and Chinese.
_OTHER_SCRIPTS = "Где лежит ключ? Πού είναι το κλειδί; أين المفتاح؟ चाबी कहाँ है? 열쇠는 어디에 있나요? 钥匙在哪里？"
# Of the packed candidates, how many of the nearest are measured by their stored vectors.
_MEASURED = 16
# Of those of higher authority than a hit, how many of the best are compared with it.
_CONTENDERS = 8


class Timer:
    """Laps in milliseconds, by name; two of one name add up."""

    def __init__(self) -> None:
        self.laps_ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Book the time since the last lap under a name."""
        now = time.perf_counter()
        self.laps_ms[name] = self.laps_ms.get(name, 0.0) + (now - self._last) * 1000
        self._last = now


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question with its options.

    Attributes:
        limit: Most hits to return.
        today: The day that "yesterday" and recency count from.
        zone: The time zone of that day; None is the machine's.
        explain: Give each hit the contribution of every signal to its score.
        history: Give hits all values that their facts ever had.
        snippets: Look for the part of a long passage that is nearest to the question.
        named: The speakers that it names.
    """

    text: str
    limit: int
    mode: Mode
    filter: SearchFilter
    today: dt.date
    zone: dt.tzinfo | None = None
    explain: bool = False
    snippets: bool = True
    history: bool = False
    named: Named = NOBODY


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


def rank(
    view: IndexReader,
    query: Query,
    words: QueryTerms,
    vector: Vectors | None,
    trust: float,
    settings: RankingSettings,
    *,
    reads_all: bool = True,
    weights: EvidenceWeights = ENGLISH_WEIGHTS,
) -> Ranked:
    """Score the candidates of a question.

    Args:
        view: The index.
        query: The question.
        words: Occurrences of its terms; none for a vector search.
        vector: Its vector; None for a text search.
        trust: Weight of the vectors.
        settings: Settings of the ranking.
        reads_all: True if the model reads other scripts than Latin.
        weights: Weights of the signals with the model's vectors.
    """
    asked = ornament("days", AskedDays(), asked_days, query.text, query.today)
    sought = Sought.of(view, words, asked)
    found = merge_candidates(_found(view, query, words, vector, sought), sought.keys)
    if not reads_all and vector is not None and trust >= 1.0:
        found = found.take(_readable(found))
    unread = trust < 1.0 and analysis.has_unspaced(query.text)
    parts = _parts(found, trust, settings, weights=weights, characters=unread)
    if settings.fusion == "evidence":
        parts |= _question_parts(found, view, query, asked, sought)
    scores = sum(parts.values(), np.zeros(len(found)))
    aged = age_share(found.days, found.evergreen, query.today.toordinal(), settings.half_life_days)
    parts["recency"] = aged * settings.recency_weight * _recency_unit(scores, settings.fusion)
    if asked.latest and settings.fusion == "evidence":
        parts["recency"] += latest_bonus(found.days, *(LATEST_BESIDE if words.terms else LATEST_ALONE))
    scores = scores + parts["recency"]
    if found.text and found.vector is None:
        # Nothing speaks for a passage with none of the words in it or around it. They go last, as the others
        # are measured against them.
        spoken_for = (found.text.window > 0) | np.isin(found.keys, sought.without_words)
        found, scores = found.take(spoken_for), scores[spoken_for]
        parts = {name: part[spoken_for] for name, part in parts.items()}
    return Ranked(candidates=found, scores=scores, parts=parts)


def _recency_unit(scores: Floats, fusion: Fusion) -> float:
    """Unit of the recency weight in the scale of the scores; among few or equal ones a tenth of the best."""
    # Those of "evidence" are in standard deviations already.
    if fusion == "evidence" or not len(scores):
        return 1.0
    return max(float(scores.std()), 0.1 * float(scores.max()))


def _readable(found: Candidates) -> Mask:
    """Candidates that the model reads, or that have a word of the question in them or around them.

    The vectors of others say nothing, and they shift the mean that the rest is standardised by: with as many passages
    in five other scripts beside the sample's notes, the English hit@5 fell from .93 to .83.
    """
    readable: Mask = (found.marks & Cue.UNLATIN) == 0
    if found.text is not None:
        readable = readable | (found.text.window > 0)
    return readable if readable.any() else ~readable


def _found(
    view: IndexReader, query: Query, words: QueryTerms, vector: Vectors | None, sought: Sought
) -> list[Candidates]:
    """Candidates of each part of the index."""
    parts = []
    if view.packed and query.mode == "vector" and vector is not None:
        parts.append(_exact(view.store, view.packed, query, vector))
    elif view.packed:
        packed = _packed(view, view.packed, query, words, vector, sought.packed)
        parts.append(packed if vector is None else _measured(view.store, packed, vector))
    if len(view.corpus) or not parts:
        parts.append(_unpacked(view, query, words, vector, sought.rows))
    return parts


def _unpacked(view: IndexReader, query: Query, words: QueryTerms, vector: Vectors | None, sought: Ints) -> Candidates:
    """Candidates of the part that is not packed, of which all rows are scored."""
    corpus = view.corpus
    allowed = _allowed(corpus, query.filter, view.tagged(query.filter))
    text = text_evidence(words.postings, corpus, words.known) if query.mode != "vector" else None
    lexical = [text.pair, text.window] if text else []
    if vector is not None and view.matrix is None:
        rows, near = vector_candidates(view.store, corpus, vector, query.filter, allowed, lexical, sought)
        return corpus_candidates(corpus, rows, text, near)
    if vector is None or view.matrix is None:
        rows = with_sought(candidates(lexical, allowed), sought, allowed)
        return corpus_candidates(corpus, rows, text, None)
    own, triple = view.matrix.cosines(vector)
    rows = with_sought(candidates([*lexical, own, triple], allowed), sought, allowed)
    return corpus_candidates(corpus, rows, text, vector_evidence(own, triple, corpus))


def _exact(store: IndexStore, packed: Packed, query: Query, vector: Vectors) -> Candidates:
    """The nearest of the packed passages by sqlite-vec, from the stored float32 instead of their codes."""
    segment = packed.segment
    nearest, cosines = store.nearest(vector, CANDIDATES, query.filter)
    allowed = np.isin(segment.keys(np.arange(len(segment))), nearest)
    if packed.standing is not None:
        allowed &= packed.standing
    found = search_segment(segment, SegmentQuery(found=None, known=NO_STATISTICS, vector=vector, allowed=allowed))
    if found.vector is None:
        return found
    order = np.argsort(nearest)
    own = cosines[order][np.searchsorted(nearest[order], found.keys)] if len(found) else found.vector.own
    return replace(found, vector=replace(found.vector, own=own))


def _packed(
    view: IndexReader, packed: Packed, query: Query, words: QueryTerms, vector: Vectors | None, sought: Ints
) -> Candidates:
    wanted = SegmentQuery(
        found=words.packed if query.mode != "vector" else None,
        known=words.known or NO_STATISTICS,
        vector=vector,
        allowed=packed.segment.allowed(query.filter, packed.standing, view.tagged(query.filter)),
        sought=sought,
    )
    return search_segment(packed.segment, wanted)


def _measured(store: IndexStore, found: Candidates, vector: Vectors) -> Candidates:
    """The same candidates, with the cosines of the nearest from their stored vectors."""
    if found.vector is None or not len(found):
        return found
    own = found.vector.own.copy()
    nearest = np.argsort(-own, kind="stable")[:_MEASURED]
    keys, vectors = store.vectors(found.keys[nearest].tolist())
    at = nearest[np.argsort(found.keys[nearest], kind="stable")]
    known = np.searchsorted(found.keys[at], keys)
    if len(keys):
        own[at[known]] = np.vecdot(vectors, vector)
    return replace(found, vector=replace(found.vector, own=own))


def nearest(view: IndexReader, vector: Vectors, limit: int, filter: SearchFilter) -> tuple[Ints, Floats]:
    """The nearest passages as a search finds them: keys and cosines, nearest first."""
    if view.matrix is None and not view.packed:
        return view.store.nearest(vector, limit, filter)
    keys, cosines = np.empty(0, np.int64), np.empty(0)
    if view.matrix is not None:
        own, _ = view.matrix.cosines(vector)
        rows = candidates([own], _allowed(view.corpus, filter, view.tagged(filter)), limit)
        keys, cosines = view.corpus.keys[rows], own[rows]
    if view.packed:
        wanted = SegmentQuery(
            found=None,
            known=NO_STATISTICS,
            vector=vector,
            allowed=view.packed.segment.allowed(filter, view.packed.standing, view.tagged(filter)),
        )
        found = _measured(view.store, search_segment(view.packed.segment, wanted), vector)
        if found.vector:
            keys, cosines = np.r_[keys, found.keys], np.r_[cosines, found.vector.own]
    best = np.argsort(-cosines, kind="stable")[:limit]
    return keys[best], cosines[best]


def _parts(
    found: Candidates, trust: float, settings: RankingSettings, *, weights: EvidenceWeights, characters: bool
) -> dict[str, Floats]:
    if settings.fusion == "blend":
        return blend(found.text, found.vector)
    if settings.fusion == "rrf":
        return reciprocal_ranks(found.text, found.vector)
    return fuse(found.text, found.vector, trust, weights=weights, characters=characters)


def _question_parts(
    found: Candidates, view: IndexReader, query: Query, asked: AskedDays, sought: Sought
) -> dict[str, Floats]:
    parts = {
        "speaker": speaker_bonus(found.labels, view.speakers, query.named.labels),
        "cues": cue_bonus(found.marks, ornament("questions", False, asks_when, query.text)),
    }
    if sought.named and len(found):
        parts["identifiers"] = name_bonus(found.keys, sought.named)
    if asked and len(found):
        days, place = np.unique(found.days, return_inverse=True)
        parts["date"] = np.array([asked.bonus(int(day)) for day in days])[place]
    return parts


def _allowed(corpus: Corpus, filter: SearchFilter, tagged: Ints | None) -> Mask:
    files = np.array(
        [
            (not filter.sources or file.source in filter.sources) and file.path.startswith(filter.path_prefix)
            for file in corpus.files
        ],
        bool,
    )
    allowed: Mask = files[corpus.file]
    if filter.since or filter.until:
        first = filter.since.toordinal() if filter.since else 1
        last = (filter.until or dt.date.max).toordinal()
        allowed = allowed & (corpus.days >= first) & (corpus.days <= last)
    if tagged is not None:
        allowed = allowed & np.isin(corpus.keys, tagged)
    if filter.without:
        allowed = allowed.copy()
        _leave_out(corpus, filter.without, allowed)
    return allowed


def _leave_out(corpus: Corpus, ranges: Sequence[LineRange], allowed: Mask) -> None:
    """Take passages within ranges of lines off the mask of allowed ones, which is changed in place."""
    numbers = {file.path: number for number, file in enumerate(corpus.files)}
    for lines in ranges:
        number = numbers.get(lines.path)
        if number is not None:
            rows = slice(*np.searchsorted(corpus.file, [number, number + 1]))
            within = (corpus.start_lines[rows] >= lines.start_line) & (corpus.end_lines[rows] <= lines.end_line)
            allowed[rows] &= ~within


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """How relevant the hits of one question are; without a calibration nobody knows."""

    calibration: Calibration | None
    regime: Regime
    asked: QuestionTerms
    model: str

    def of(
        self, ranked: Ranked, chosen: Sequence[tuple[int, StoredPassage]]
    ) -> Sequence[tuple[float | None, float | None]]:
        """The relevance of some candidates, and the probability that they answer; None where it cannot be read."""
        nothing: Sequence[tuple[float | None, float | None]] = [(None, None)] * len(chosen)
        if self.calibration is None or not chosen:
            return nothing
        return ornament("relevance", nothing, self._read, self.calibration, ranked, chosen)

    def _read(
        self, calibration: Calibration, ranked: Ranked, chosen: Sequence[tuple[int, StoredPassage]]
    ) -> list[tuple[float, float]]:
        places = np.array([place for place, _ in chosen], np.int64)
        texts = [stored.passage for _, stored in chosen]
        found = signals(ranked, self.regime, self.asked, places, texts, model=self.model)
        relevance, answers = calibration.judge(found)
        return list(zip(relevance.round(4).tolist(), answers.tolist(), strict=True))


def regime_of(query: Query, vector: Vectors | None, trust: float) -> Regime:
    """The signals that the hits of a question are known by."""
    if vector is not None and query.mode == "vector":
        return "vector"
    if vector is not None and trust >= 1.0:
        return "hybrid"
    return "characters" if analysis.has_unspaced(query.text) else "words"


def relevance_of(
    view: IndexReader, query: Query, words: QueryTerms, regime: Regime, calibration: Calibration | None, model: str
) -> Relevance:
    """How relevant the hits of a question are, by the vectors of a model; without a calibration nobody knows."""
    return Relevance(calibration=calibration, regime=regime, asked=_question_terms(view, query, words), model=model)


def _question_terms(view: IndexReader, query: Query, words: QueryTerms) -> QuestionTerms:
    """The terms of a question, and how rare each is."""
    terms = analysis.asked_terms(query.text)[:MAX_TERMS]
    names = {term for word in query.named.words for term in analysis.stored_terms(word)}
    statistics = RangeStatistics(count=len(view), containing={term: words.passages(term) for term in terms})
    telling = tuple(term for term in terms if term not in names)
    return QuestionTerms(terms=frozenset(terms), telling=telling or tuple(terms), statistics=statistics)


def to_hits(
    view: IndexReader, query: Query, ranked: Ranked, settings: RankingSettings, relevance: Relevance
) -> tuple[Hit, ...]:
    """The best candidates as hits, each text once, none before one of higher authority that tells of the same thing."""
    varied = settings.mmr_lambda < 1
    pool = 4 * query.limit if varied else max(query.limit, COMPARED)
    chosen = distinct(view.store, ranked, pool)
    if varied:
        chosen = _varied(chosen, ranked, settings.mmr_lambda, max(query.limit, COMPARED))
    made = _Hits(view.store, query, ranked, relevance)
    contenders = made.contenders(chosen[: query.limit])
    hits = ornament("authority", [(each.stored, each.hit) for each in contenders], made.by_authority, contenders)
    if days := ornament("days", {}, days_of_copies, view.store, ranked, chosen[: query.limit]):
        hits = [(stored, replace(hit, days=days.get(stored.key, ()))) for stored, hit in hits]
    chains = view.facts.on(query.today, query.zone)
    resolver = FactResolver(view.store, chains, query.filter, history=query.history)
    resolved = ornament("facts", [hit for _, hit in hits], resolver.resolved, hits, made.brought)
    others = [stored for _, stored in chosen[query.limit : COMPARED]]
    known = chains, resolver.parted, made.brought
    resolved = ornament("restated", resolved, restated_last, resolved, others, *known, history=query.history)
    return tuple(named_first(resolved, ranked, chosen))


class _Hits:
    """The hits of one question.

    Args:
        store: The index, within a read.
        query: The question.
        ranked: Its candidates.
        relevance: How relevant they are.
    """

    def __init__(self, store: IndexStore, query: Query, ranked: Ranked, relevance: Relevance) -> None:
        self._store = store
        self._query = query
        self._ranked = ranked
        self._relevance = relevance
        self._terms = analysis.asked_terms(query.text)

    def contenders(self, chosen: Sequence[tuple[int, StoredPassage]]) -> list[Contender]:
        """Some candidates by their positions, as hits to be compared."""
        chances = self._relevance.of(self._ranked, chosen)
        return [
            Contender(stored=found, hit=self._hit(found, position, *chance), asked=self._relevance.asked)
            for (position, found), chance in zip(chosen, chances, strict=True)
        ]

    def by_authority(self, hits: list[Contender]) -> list[tuple[StoredPassage, Hit]]:
        """The hits, and before each the passage of higher authority that it rivals, be it among them or not."""
        found = self._ranked.candidates
        least = min((each.authority for each in hits), default=max(AUTHORITY.values()))
        above = best_above(found, self._ranked.scores, self._relevance.asked.rarity, least, _CONTENDERS)
        if not len(above):
            return [(each.stored, each.hit) for each in hits]
        known = {each.stored.key: each for each in hits}
        places = dict(zip(found.keys[above].tolist(), above.tolist(), strict=True))
        fetched = self._store.passages([key for key in places if key not in known])
        unknown = [(places[key], stored) for key, stored in fetched.items()]
        known |= {each.stored.key: each for each in self.contenders(unknown)}
        higher = self._alone([known[key] for key in places if key in known])
        vectors = self._store.vectors([*known]) if found.vector else None
        return by_authority(hits, higher, cosines_among(*vectors) if vectors else unknown_cosine)

    def _alone(self, higher: list[Contender]) -> list[Contender]:
        """Passages with the relevance that each would have without any of lower authority beside it."""
        ranked, judged = self._ranked, dict[int, float | None]()
        ranks = authorities(ranked.candidates.marks)
        for authority in {each.authority for each in higher}:
            places = np.flatnonzero(ranks >= authority)
            others = Ranked(
                candidates=ranked.candidates.take(places),
                scores=ranked.scores[places],
                parts={name: part[places] for name, part in ranked.parts.items()},
            )
            at = {key: place for place, key in enumerate(others.candidates.keys.tolist())}
            some = [(at[each.stored.key], each.stored) for each in higher if each.authority == authority]
            chances = self._relevance.of(others, some)
            judged |= {stored.key: chance for (_, stored), (chance, _) in zip(some, chances, strict=True)}
        best = sorted((chance or 0.0 for chance in judged.values()), reverse=True)
        next_best = best[1] if len(best) > 1 else 0.0
        return [replace(each, alone=judged[each.stored.key], next_best=next_best) for each in higher]

    def brought(self, found: StoredPassage, before: Hit) -> Hit:
        """A passage that is brought in to stand before a hit."""
        position = np.flatnonzero(self._ranked.candidates.keys == found.key)
        if len(position):
            return self._hit(found, int(position[0]))
        return replace(
            before,
            path=found.path,
            source=found.source,
            passage=found.passage,
            ordinal=found.ordinal,
            snippet=self._snippet(found),
            text_score=0.0,
            vector_score=None,
            replaces=(),
            replaced_by=None,
            yields_to=(),
            history=(),
            signals={},
        )

    def _snippet(self, found: StoredPassage) -> str:
        text = found.passage.text
        return ornament("snippets", text[:SNIPPET_CHARS], snippet, text, self._terms) if self._query.snippets else text

    def _hit(
        self, found: StoredPassage, position: int, relevance: float | None = None, answers: float | None = None
    ) -> Hit:
        ranked = self._ranked
        text, vector = ranked.candidates.text, ranked.candidates.vector
        explained = {name: float(part[position]) for name, part in ranked.parts.items()} if self._query.explain else {}
        return Hit(
            path=found.path,
            source=found.source,
            passage=found.passage,
            ordinal=found.ordinal,
            snippet=self._snippet(found),
            score=float(ranked.scores[position]),
            text_score=float(text.unit[position]) if text else 0.0,
            vector_score=float(vector.own[position]) if vector else None,
            relevance=relevance,
            answers=answers,
            signals=explained,
        )


def why_unjudged(hits: Sequence[Hit], problem: str) -> str:
    """Why hits have no relevance, as `degraded` says it; empty where they have, and where there are none."""
    if hits and not problem and all(hit.relevance is None for hit in hits):
        return (
            "relevance: its reader failed on this question, and limits of relevance leave nothing out. Ask in other "
            "words, and report the line that the log has of it."
        )
    return problem if hits else ""


def _varied(
    chosen: list[tuple[int, StoredPassage]], ranked: Ranked, weight: float, count: int
) -> list[tuple[int, StoredPassage]]:
    scores = ranked.scores[[position for position, _ in chosen]]
    terms = [frozenset(analysis.stored_terms(found.passage.text)) for _, found in chosen]
    return [chosen[i] for i in mmr_order(scores, terms, weight, count)]


def embed_question(embedder: Embedder, question: str, degraded: list[str]) -> Vectors | None:
    """The vector of a question, or None with the reason added to `degraded`."""
    try:
        return embedder.embed_query(question)
    except EmbeddingError as error:
        degraded.append(f"vector: {error}")
        return None


def reads_all(embedder: Embedder | None) -> bool:
    """True if a model reads other scripts than Latin."""
    return embedder is None or embedder.reads(_OTHER_SCRIPTS)


def weights_of(model: str) -> EvidenceWeights:
    """Weights of the signals with the vectors of the model of that fingerprint."""
    return MULTILINGUAL_WEIGHTS if model == MultilingualE5.fingerprint else ENGLISH_WEIGHTS


def trust_in(embedder: Embedder | None, question: str) -> float:
    """Weight of the vectors for a question: less where the model, or no model, reads less than half of it."""
    reads = embedder.reads if embedder is not None else analysis.is_spaced
    part = ornament("scripts", None, analysis.read_part, question, reads)
    return 1.0 if part is None or part.share >= analysis.MOSTLY else _FOREIGN_TRUST
