"""Search from question to hits: candidates by words and vectors, ranking, the passages of the best.

Invariants: filters apply before ranking; one search ranks one state of the index, and a passage that is removed before
it is fetched is left out; no read is open while the question is embedded; a missing half is named, never passed over.
"""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from indexer.corpus import Floats, Ints, Mask
from indexer.embeddings.base import Embedder
from indexer.embeddings.bundled import MultilingualE5
from indexer.engine.attribute_first import attribute_first, body_first
from indexer.engine.authority import (
    Contender,
    authorities,
    best_above,
    by_authority,
    cosines_among,
    roles_of,
    unknown_cosine,
)
from indexer.engine.bm25 import RangeStatistics
from indexer.engine.chains import FactResolver
from indexer.engine.copies import days_of_copies, distinct
from indexer.engine.echoes import echoes_last, find_echoes
from indexer.engine.finding import (
    Alone,
    Wanted,
    find_alone,
    find_candidates,
    folder_sizes,
    left_out,
    of_folder,
    places_of,
)
from indexer.engine.ranking import (
    ENGLISH_WEIGHTS,
    MULTILINGUAL_WEIGHTS,
    Candidates,
    EvidenceWeights,
    Fusion,
    Ranked,
    RankingSettings,
    Recipe,
    age_share,
    blend,
    cue_bonus,
    fuse,
    latest_bonus,
    mmr_order,
    name_bonus,
    reciprocal_ranks,
    role_bonus,
    speaker_bonus,
    spread,
    standardised,
)
from indexer.engine.reader import MAX_TERMS, IndexReader, QueryTerms
from indexer.engine.relevance import Calibration, QuestionTerms, Regime, signals
from indexer.engine.restatements import COMPARED, restated_last
from indexer.engine.second_hop import HOP_WEIGHT, second_hop
from indexer.engine.sought import Sought, named_first
from indexer.errors import EmbeddingError, QueryInvalid
from indexer.language import terms as analysis
from indexer.language.asked_days import LATEST_ALONE, LATEST_BESIDE, AskedDays, asked_days
from indexer.language.names import NOBODY, Named
from indexer.language.ornaments import ornament
from indexer.language.questions import asks_when, whose_word
from indexer.language.sentences import SNIPPET_CHARS, snippet
from indexer.stores.base import IndexStore, StoredPassage
from indexer.types import AUTHORITY, Cue, Hit, Mode, SearchFilter, Vectors

MAX_QUERY_CHARS = 10_000
# An English model reads the Latin words of a question in Chinese or Russian, such as names of products, and knows
# little of what is said of them. Source: tests/evals/chinese.py, dev half: alike from .1 to .4. With the whole
# question embedded, hit@1 of natural questions fell from .930 by words alone to .927 at .2 and .909 at .45.
_FOREIGN_TRUST = 0.2
# A few words each of Russian, Greek, Arabic, Hindi, Korean and Chinese.
_OTHER_SCRIPTS = "Где лежит ключ? Πού είναι το κλειδί; أين المفتاح؟ चाबी कहाँ है? 열쇠는 어디에 있나요? 钥匙在哪里？"
# Hits of one Markdown file before the best of others, where places are asked for. Source: dialogues at work (RealMem),
# evidence among the first five and ten without, with 5, 3, 2: .570 / .642, .608 / .719, .612 / .734, .618 / .747.
_OF_ONE_FILE = 5
# Folders of the best hits that are searched alone, too, where there are several; each takes about as long as a search.
_SEARCHED_ALONE = 3
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
        spread: Put the best hits of other files before what is left of one that has several.
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
    spread: bool = False
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
    wanted = _wanted(view, query, words, vector, asked)
    found = find_candidates(view, wanted)
    echoes = ornament("echoes", np.zeros(len(found), bool), find_echoes, view, query.text, words, found)
    if not echoes.any():
        return _scored(view, query, asked, wanted, found, trust, settings, reads_all=reads_all, weights=weights)
    wanted = wanted.without(left_out(view, found.keys[echoes]))
    told = find_candidates(view, wanted)
    ranked = _scored(view, query, asked, wanted, told, trust, settings, reads_all=reads_all, weights=weights)
    return echoes_last(ranked, found.take(echoes))


def _wanted(view: IndexReader, query: Query, words: QueryTerms, vector: Vectors | None, asked: AskedDays) -> Wanted:
    sought = Sought.of(view, words, asked)
    return Wanted(mode=query.mode, filter=query.filter, words=words, vector=vector, sought=sought)


def _scored(
    view: IndexReader,
    query: Query,
    asked: AskedDays,
    wanted: Wanted,
    found: Candidates,
    trust: float,
    settings: RankingSettings,
    *,
    reads_all: bool,
    weights: EvidenceWeights,
) -> Ranked:
    """The candidates with their scores; see `rank`."""
    vector, words, sought = found.vector, wanted.words, wanted.sought
    if not reads_all and vector is not None and trust >= 1.0:
        found = found.take(_readable(found))
    unread = trust < 1.0 and analysis.has_unspaced(query.text)
    parts = _parts(found, trust, settings, weights=weights, characters=unread)
    recipe = Recipe(trust=trust, weights=weights, characters=unread)
    if settings.fusion == "evidence":
        parts |= _question_parts(found, view, query, asked, sought)
    scores = sum(parts.values(), np.zeros(len(found)))
    hop = np.zeros(len(found))
    if unread and settings.fusion == "evidence" and len(found):
        hop = second_hop(view, int(found.keys[np.argmax(scores)]), found.keys, words.asked)
        parts["hop"] = HOP_WEIGHT * standardised(hop)
        scores = scores + parts["hop"]
    aged = age_share(found.days, found.evergreen, query.today.toordinal(), settings.half_life_days)
    parts["recency"] = aged * settings.recency_weight * _recency_unit(scores, settings.fusion)
    if asked.latest and settings.fusion == "evidence":
        parts["recency"] += latest_bonus(found.days, *(LATEST_BESIDE if words.terms else LATEST_ALONE))
    scores = scores + parts["recency"]
    if found.text and found.vector is None:
        # Nothing speaks for a passage with none of the words in it or around it. They go last, as the others
        # are measured against them.
        spoken_for = (found.text.window > 0) | (hop > 0) | np.isin(found.keys, sought.without_words)
        found, scores = found.take(spoken_for), scores[spoken_for]
        parts = {name: part[spoken_for] for name, part in parts.items()}
    return Ranked(candidates=found, scores=scores, parts=parts, recipe=recipe)


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
        "role": role_bonus(roles_of(found.marks), found.spoken, ornament("questions", "", whose_word, query.text)),
    }
    if sought.named and len(found):
        parts["identifiers"] = name_bonus(found.keys, sought.named)
    if asked and len(found):
        days, place = np.unique(found.days, return_inverse=True)
        bonus = np.array([asked.bonus(int(day)) for day in days])[place]
        # A question of that day tells nothing that happened then.
        parts["date"] = np.where(found.marks & Cue.ASKING, np.minimum(bonus, 0.0), bonus)
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """How relevant the hits of one question are; without a calibration nobody knows."""

    calibration: Calibration | None
    regime: Regime
    asked: QuestionTerms
    model: str
    sizes: Mapping[int, int]
    alone: Callable[[int, Ints], Alone]

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
        folders = ranked.candidates.folders[places]
        judged, searched = np.zeros((len(chosen), 2)), 0
        echoes = ranked.candidates.keys[ranked.parts["echo"] < 0] if "echo" in ranked.parts else places[:0]
        for folder in dict.fromkeys(folders.tolist()):
            these = np.flatnonzero(folders == folder)
            some = [texts[at] for at in these.tolist()]
            alone, at, asked = ranked, places[these], self.asked
            if len(self.sizes) > 1:
                own = self.alone(folder, echoes) if searched < _SEARCHED_ALONE else None
                searched += 1
                alone = of_folder(ranked, folder, own.candidates if own else None)
                asked = asked.among(self.sizes.get(folder, 0), own.known if own else None)
                at = places_of(alone, ranked.candidates.keys[at])
            found = signals(alone, self.regime, asked, at, some, model=self.model)
            judged[these] = np.stack(calibration.judge(found), axis=1)
        relevance, answers = judged.T
        return list(zip(relevance.round(4).tolist(), answers.tolist(), strict=True))


def regime_of(query: Query, vector: Vectors | None, trust: float) -> Regime:
    """The signals that the hits of a question are known by."""
    if vector is not None and query.mode == "vector":
        return "vector"
    if vector is not None and trust >= 1.0:
        return "hybrid"
    return "characters" if analysis.has_unspaced(query.text) else "words"


def relevance_of(
    view: IndexReader,
    query: Query,
    words: QueryTerms,
    regime: Regime,
    calibration: Calibration | None,
    model: str,
    vector: Vectors | None = None,
) -> Relevance:
    """How relevant the hits of a question are, by the vectors of a model; without a calibration nobody knows."""
    asked = _question_terms(view, query, words)

    def alone(folder: int, echoes: Ints) -> Alone:
        days = ornament("days", AskedDays(), asked_days, query.text, query.today)
        return find_alone(view, _wanted(view, query, words, vector, days), folder, echoes)

    return Relevance(
        calibration=calibration,
        regime=regime,
        asked=asked,
        model=model,
        sizes=folder_sizes(view),
        alone=alone,
    )


def _question_terms(view: IndexReader, query: Query, words: QueryTerms) -> QuestionTerms:
    """The terms of a question, and how rare each is."""
    terms = words.asked or tuple(analysis.asked_terms(query.text)[:MAX_TERMS])
    names = {term for word in query.named.words for term in analysis.stored_terms(word)}
    statistics = RangeStatistics(count=len(view), containing={term: words.passages(term) for term in terms})
    telling = tuple(term for term in terms if term not in names)
    return QuestionTerms(
        terms=frozenset(terms), telling=telling or terms, statistics=statistics, emphasis=words.emphasis
    )


def to_hits(
    view: IndexReader, query: Query, ranked: Ranked, settings: RankingSettings, relevance: Relevance
) -> tuple[Hit, ...]:
    """The best candidates as hits, each text once, none before one of higher authority that tells of the same thing."""
    varied = settings.mmr_lambda < 1
    pool = 4 * query.limit if varied else max(query.limit, COMPARED)
    order = np.argsort(-ranked.scores, kind="stable")
    if query.spread:
        order = spread(order, ranked.candidates.files, ~ranked.candidates.spoken, _OF_ONE_FILE)
    chosen = distinct(view.store, ranked, order, pool)
    if varied:
        chosen = _varied(chosen, ranked, settings.mmr_lambda, max(query.limit, COMPARED))
    if settings.fusion == "evidence":
        ranked, chosen = ornament("labels", (ranked, chosen), attribute_first, query.text, ranked, chosen)
        ranked, chosen = ornament("labels", (ranked, chosen), body_first, query.text, ranked, chosen)
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
    told = ornament("restated", resolved, restated_last, resolved, others, *known, history=query.history)
    told = named_first(told, ranked, chosen)
    return tuple(_descending(told) if query.spread else told)


def _descending(hits: Sequence[Hit]) -> Iterator[Hit]:
    """The hits with scores that only fall: what stands behind another file's hits has no more than these."""
    least = math.inf
    for hit in hits:
        least = min(least, hit.score)
        lacks = least - hit.score
        signals = {**hit.signals, "spread": lacks} if hit.signals and lacks else hit.signals
        yield replace(hit, score=least, signals=signals) if lacks else hit


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
        told = self._ranked.parts.get("echo", np.zeros(len(found))) >= 0
        above = best_above(found, self._ranked.scores, self._relevance.asked.rarity, least, _CONTENDERS, told)
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
                recipe=ranked.recipe,
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
