"""Search from question to hits: candidates by words and vectors, ranking, the passages of the best.

Echoes of a question, earlier ones that ask the same and messages that repeat it, stand behind what tells.

Invariants: filters apply before ranking; one search ranks one state of the index, and a passage that is removed before
it is fetched is left out; no read is open while the question is embedded; a missing half is named, never passed over.
What is no message of a user is an echo only if it does nothing but ask; the question is told from what it asks about by
its words alone.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from indexer.corpus import Floats, Ints, Mask
from indexer.embeddings.base import Embedder
from indexer.embeddings.bundled import MultilingualE5
from indexer.engine.authority import roles_of
from indexer.engine.bm25 import RangeStatistics
from indexer.engine.candidates import Candidates, Ranked, Recipe, joined_candidates
from indexer.engine.finding import (
    Alone,
    Sought,
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
from indexer.errors import EmbeddingError, QueryInvalid
from indexer.language import search_terms
from indexer.language import terms as analysis
from indexer.language.asked_days import LATEST_ALONE, LATEST_BESIDE, AskedDays, asked_days
from indexer.language.names import NOBODY, Named
from indexer.language.ornaments import ornament
from indexer.language.questions import asks, asks_when, only_ask, requests, whose_word
from indexer.language.sentences import sentences_of
from indexer.language.terms import index_terms, query_terms
from indexer.stores.base import StoredPassage
from indexer.types import ROLES, Cue, Mode, SearchFilter, Vectors

# Of all words of two texts, as many are in both of them where one repeats the other.
_REPEATED = 0.75
# Of what a text asks, as much is what the question asks, where it asks about the same.
_ASKED_ABOUT = 0.6
# A part of a question of more characters than these is cut from it.
_PIECE_CHARS = 200
_ECHO_CHARS = 4_000


class AskedQuestion:
    """A question, read once for all the texts that it is compared with.

    Attributes:
        text: The question.
        terms: Its terms as of a stored text, in their order.
        distinct: The same, each once.
        asked_about: Its terms as of a question.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.terms = index_terms(text)
        self.distinct = frozenset(self.terms)
        self.asked_about = frozenset(query_terms(text))

    @cached_property
    def flat(self) -> str:
        """Its words in lower case, a space between them."""
        return _flat(self.text)


def is_echo(question: AskedQuestion, text: str, *, is_typed: bool) -> bool:
    """True if a text only asks about what a question asks, or repeats the question.

    Args:
        question: The question.
        text: The text.
        is_typed: True for a message of a user: one that repeats the question without a question mark asks it, too.
    """
    if len(text) > _ECHO_CHARS:
        return False
    if is_typed and _repeats(question, text):
        return True
    if not only_ask(sentences_of(text)):
        return False
    own = {*query_terms(text)}
    return len(own & question.asked_about) >= _ASKED_ABOUT * len(own)


def _repeats(question: AskedQuestion, text: str) -> bool:
    """True if a message is the question again, word by word or nearly so, or a long piece of it."""
    if len(text) >= _PIECE_CHARS and _flat(text) in question.flat:
        return True
    own = index_terms(text)
    if question.terms == own:
        return True
    distinct = {*own}
    shared_count = len(distinct & question.distinct)
    if not shared_count or shared_count < _REPEATED * len(distinct | question.distinct):
        return False
    return asks(text) or requests(text) or (own[0] == question.terms[0] and not asks(question.text))


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())


# Share of the question's words, by how rare each is, that a passage has if it may be an echo: BM25 of a long message
# with all of them is less than half of what a line of average length has.
_SUSPECT = 0.3
_SUSPECTS = 256
_USER = ROLES.index("user")


def _find_echoes(view: IndexReader, question: str, words: QueryTerms, candidates: Candidates) -> Mask:
    """Mask of the candidates that are echoes of a question; to be called within a read."""
    echoes = np.zeros(len(candidates), bool)
    typed_value = candidates.spoken & (roles_of(candidates.marks) == _USER)
    near = _nearness(view, words, candidates)
    suspects = np.flatnonzero((typed_value | (candidates.marks & Cue.QUESTION > 0)) & (near >= _SUSPECT))
    if not len(suspects):
        return echoes
    suspects = suspects[np.argsort(-near[suspects], kind="stable")[:_SUSPECTS]]
    passages = view.store.passages(candidates.keys[suspects].tolist())
    asked_question = AskedQuestion(question)
    for place in suspects.tolist():
        passage = passages.get(int(candidates.keys[place]))
        echoes[place] = passage is not None and is_echo(
            asked_question, passage.passage.text, is_typed=bool(typed_value[place])
        )
    return echoes


def _nearness(view: IndexReader, words: QueryTerms, candidates: Candidates) -> Floats:
    """Share of the question's words that each candidate has; its cosine where no words are searched."""
    if candidates.text is None:
        return candidates.vector.own if candidates.vector else np.zeros(len(candidates))
    idf = words.statistics(len(view)).idf
    whole = sum(words.emphasis.get(term, 1.0) * idf(term) for term in words.asked)
    share: Floats = candidates.text.unit / max(1e-9, whole)
    return share


def _echoes_last(ranking: Ranked, echoes: Candidates) -> Ranked:
    """Ranked candidates, and behind all of them the echoes of the question, the nearest one first."""
    candidates = joined_candidates([ranking.candidates, echoes])
    own = echoes.text.unit if echoes.text else np.zeros(len(echoes))
    last = min(0.0, float(ranking.scores.min(initial=0.0))) - 1.0
    scores = np.r_[ranking.scores, last - (own.max(initial=0.0) - own)]
    values = np.zeros(len(echoes))
    parts = {name: np.r_[part, values] for name, part in ranking.parts.items()}
    parts["echo"] = np.r_[np.zeros(len(ranking.scores)), scores[len(ranking.scores) :]]
    return Ranked(candidates=candidates, scores=scores, parts=parts, recipe=ranking.recipe)


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
    echoes = ornament("echoes", np.zeros(len(candidates), bool), _find_echoes, view, query.text, words, candidates)
    if not echoes.any():
        return _score(
            view, query, days, wanted_query, candidates, trust, settings, reads_all=reads_all, weights=weights
        )
    wanted_query = wanted_query.without(left_out(view, candidates.keys[echoes]))
    told_candidates = find_candidates(view, wanted_query)
    ranking = _score(
        view, query, days, wanted_query, told_candidates, trust, settings, reads_all=reads_all, weights=weights
    )
    return _echoes_last(ranking, candidates.take(echoes))


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
