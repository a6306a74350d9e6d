"""Search from question to hits: candidates by words and vectors, ranking, the passages of the best.

Invariants: filters apply before ranking; one search ranks one state of the index, and a passage that is removed before
it is fetched is left out; no read is open while the question is embedded; a missing half is named, never passed over.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indexer.corpus import Floats, Ints, Mask
from indexer.embeddings.base import Embedder
from indexer.embeddings.bundled import MultilingualE5
from indexer.engine.authority import (
    roles_of,
)
from indexer.engine.bm25 import RangeStatistics
from indexer.engine.candidates import Candidates, Ranked, Recipe
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
    EvidenceWeights,
    Fusion,
    RankingSettings,
    age_share,
    blend,
    cue_bonus,
    fuse,
    latest_bonus,
    name_bonus,
    reciprocal_ranks,
    role_bonus,
    speaker_bonus,
    standardise,
)
from indexer.engine.reader import MAX_TERMS, IndexReader, QueryTerms
from indexer.engine.relevance import Calibration, QuestionTerms, Regime, signals
from indexer.engine.second_hop import HOP_WEIGHT, second_hop
from indexer.engine.sought import Sought
from indexer.errors import EmbeddingError, QueryInvalid
from indexer.language import search_terms
from indexer.language import terms as analysis
from indexer.language.asked_days import LATEST_ALONE, LATEST_BESIDE, AskedDays, asked_days
from indexer.language.names import NOBODY, Named
from indexer.language.ornaments import ornament
from indexer.language.questions import asks_when, whose_word
from indexer.stores.base import StoredPassage
from indexer.types import Cue, Mode, SearchFilter, Vectors

MAX_QUERY_CHARS = 10_000
# An English model reads the Latin words of a question in Chinese or Russian, such as names of products, and knows
# little of what is said of them. Source: tests/evals/chinese.py, dev half: alike from .1 to .4. With the whole
# question embedded, hit@1 of natural questions fell from .930 by words alone to .927 at .2 and .909 at .45.
_FOREIGN_TRUST = 0.2
# A few words each of Russian, Greek, Arabic, Hindi, Korean and Chinese.
_OTHER_SCRIPTS = "Где лежит ключ? Πού είναι το κλειδί; أين المفتاح؟ चाबी कहाँ है? 열쇠는 어디에 있나요? 钥匙在哪里？"
# Folders of the best hits that are searched alone, too, where there are several; each takes about as long as a search.
_SEARCHED_ALONE = 3


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
    stripped_text = text.strip()
    if not stripped_text:
        raise QueryInvalid("The query is empty. Ask for something.")
    if len(stripped_text) > MAX_QUERY_CHARS:
        raise QueryInvalid(f"The query has {len(stripped_text):,} characters. Ask with at most {MAX_QUERY_CHARS:,}.")
    if limit < 1:
        raise QueryInvalid(f"The limit is {limit}. Ask for at least 1 result.")
    return stripped_text


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
    days = ornament("days", AskedDays(), asked_days, query.text, query.today)
    wanted_query = _wanted_of(view, query, words, vector, days)
    candidates = find_candidates(view, wanted_query)
    echoes = ornament("echoes", np.zeros(len(candidates), bool), find_echoes, view, query.text, words, candidates)
    if not echoes.any():
        return _score(
            view, query, days, wanted_query, candidates, trust, settings, reads_all=reads_all, weights=weights
        )
    wanted_query = wanted_query.without(left_out(view, candidates.keys[echoes]))
    told_candidates = find_candidates(view, wanted_query)
    ranking = _score(
        view, query, days, wanted_query, told_candidates, trust, settings, reads_all=reads_all, weights=weights
    )
    return echoes_last(ranking, candidates.take(echoes))


def _wanted_of(view: IndexReader, query: Query, words: QueryTerms, vector: Vectors | None, asked: AskedDays) -> Wanted:
    sought = Sought.of(view, words, asked)
    return Wanted(mode=query.mode, filter=query.filter, words=words, vector=vector, sought=sought)


def _score(
    view: IndexReader,
    query: Query,
    asked: AskedDays,
    wanted_query: Wanted,
    found: Candidates,
    trust: float,
    settings: RankingSettings,
    *,
    reads_all: bool,
    weights: EvidenceWeights,
) -> Ranked:
    """The candidates with their scores; see `rank`."""
    vector, words, sought = found.vector, wanted_query.words, wanted_query.sought
    if not reads_all and vector is not None and trust >= 1.0:
        found = found.take(_readable(found))
    is_unread = trust < 1.0 and analysis.has_unspaced(query.text)
    parts = _parts(found, trust, settings, weights=weights, characters=is_unread)
    recipe = Recipe(trust=trust, weights=weights, characters=is_unread)
    if settings.fusion == "evidence":
        parts |= _question_parts(found, view, query, asked, sought)
    scores = sum(parts.values(), np.zeros(len(found)))
    hop = np.zeros(len(found))
    if is_unread and settings.fusion == "evidence" and len(found):
        hop = second_hop(view, int(found.keys[np.argmax(scores)]), found.keys, words.asked)
        parts["hop"] = HOP_WEIGHT * standardise(hop)
        scores = scores + parts["hop"]
    values = age_share(found.days, found.evergreen, query.today.toordinal(), settings.half_life_days)
    parts["recency"] = values * settings.recency_weight * _recency_unit(scores, settings.fusion)
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


def _readable(candidates: Candidates) -> Mask:
    """Candidates that the model reads, or that have a word of the question in them or around them.

    The vectors of others say nothing, and they shift the mean that the rest is standardised by: with as many passages
    in five other scripts beside the sample's notes, the English hit@5 fell from .93 to .83.
    """
    readable: Mask = (candidates.marks & Cue.UNLATIN) == 0
    if candidates.text is not None:
        readable = readable | (candidates.text.window > 0)
    return readable if readable.any() else ~readable


def _parts(
    candidates: Candidates, trust: float, settings: RankingSettings, *, weights: EvidenceWeights, characters: bool
) -> dict[str, Floats]:
    if settings.fusion == "blend":
        return blend(candidates.text, candidates.vector)
    if settings.fusion == "rrf":
        return reciprocal_ranks(candidates.text, candidates.vector)
    return fuse(candidates.text, candidates.vector, trust, weights=weights, characters=characters)


def _question_parts(
    candidates: Candidates, view: IndexReader, query: Query, asked_days: AskedDays, sought: Sought
) -> dict[str, Floats]:
    parts = {
        "speaker": speaker_bonus(candidates.labels, view.speakers, query.named.labels),
        "cues": cue_bonus(candidates.marks, ornament("questions", False, asks_when, query.text)),
        "role": role_bonus(
            roles_of(candidates.marks), candidates.spoken, ornament("questions", "", whose_word, query.text)
        ),
    }
    if sought.named and len(candidates):
        parts["identifiers"] = name_bonus(candidates.keys, sought.named)
    if asked_days and len(candidates):
        days, place = np.unique(candidates.days, return_inverse=True)
        bonus = np.array([asked_days.bonus(int(day)) for day in days])[place]
        # A question of that day tells nothing that happened then.
        parts["date"] = np.where(candidates.marks & Cue.ASKING, np.minimum(bonus, 0.0), bonus)
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
        self, ranking: Ranked, chosen_pairs: Sequence[tuple[int, StoredPassage]]
    ) -> Sequence[tuple[float | None, float | None]]:
        """The relevance of some candidates, and the probability that they answer; None where it cannot be read."""
        pairs: Sequence[tuple[float | None, float | None]] = [(None, None)] * len(chosen_pairs)
        if self.calibration is None or not chosen_pairs:
            return pairs
        return ornament("relevance", pairs, self._read, self.calibration, ranking, chosen_pairs)

    def _read(
        self, calibration: Calibration, ranking: Ranked, chosen_pairs: Sequence[tuple[int, StoredPassage]]
    ) -> list[tuple[float, float]]:
        places = np.array([place for place, _ in chosen_pairs], np.int64)
        texts = [passage.passage for _, passage in chosen_pairs]
        folders = ranking.candidates.folders[places]
        rows, searched_count = np.zeros((len(chosen_pairs), 2)), 0
        echoes = ranking.candidates.keys[ranking.parts["echo"] < 0] if "echo" in ranking.parts else places[:0]
        for folder in dict.fromkeys(folders.tolist()):
            these_rows = np.flatnonzero(folders == folder)
            passages = [texts[at] for at in these_rows.tolist()]
            alone, at, terms = ranking, places[these_rows], self.asked
            if len(self.sizes) > 1:
                own = self.alone(folder, echoes) if searched_count < _SEARCHED_ALONE else None
                searched_count += 1
                alone = of_folder(ranking, folder, own.candidates if own else None)
                terms = terms.among(self.sizes.get(folder, 0), own.known if own else None)
                at = places_of(alone, ranking.candidates.keys[at])
            found_signals = signals(alone, self.regime, terms, at, passages, model=self.model)
            rows[these_rows] = np.stack(calibration.judge(found_signals), axis=1)
        relevance, answers = rows.T
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
    asked_question_terms = _question_terms(view, query, words)

    def alone(folder: int, echoes: Ints) -> Alone:
        days = ornament("days", AskedDays(), asked_days, query.text, query.today)
        return find_alone(view, _wanted_of(view, query, words, vector, days), folder, echoes)

    return Relevance(
        calibration=calibration,
        regime=regime,
        asked=asked_question_terms,
        model=model,
        sizes=folder_sizes(view),
        alone=alone,
    )


def _question_terms(view: IndexReader, query: Query, words: QueryTerms) -> QuestionTerms:
    """The terms of a question, and how rare each is."""
    terms = words.asked or tuple(search_terms.asked_terms(query.text)[:MAX_TERMS])
    names = {term for word in query.named.words for term in search_terms.stored_terms(word)}
    statistics = RangeStatistics(count=len(view), containing={term: words.passages(term) for term in terms})
    telling = tuple(term for term in terms if term not in names)
    return QuestionTerms(
        terms=frozenset(terms), telling=telling or terms, statistics=statistics, emphasis=words.emphasis
    )


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


def vector_weight(embedder: Embedder | None, question: str) -> float:
    """Weight of the vectors for a question: less where the model, or no model, reads less than half of it."""
    reads = embedder.reads if embedder is not None else analysis.is_spaced
    part = ornament("scripts", None, analysis.read_part, question, reads)
    return 1.0 if part is None or part.share >= analysis.MOSTLY else _FOREIGN_TRUST
