"""Echoes of a question: earlier ones that ask the same, and messages that repeat it. They stand behind what tells.

Invariants: what is no message of a user is an echo only if it does nothing but ask; the question is told from what it
asks about by its words alone.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from indexer.corpus import Floats, Mask
from indexer.engine.authority import roles_of
from indexer.engine.candidates import Candidates, Ranked, joined_candidates
from indexer.engine.reader import IndexReader, QueryTerms
from indexer.language.questions import asks, only_ask, requests
from indexer.language.sentences import sentences_of
from indexer.language.terms import index_terms, query_terms
from indexer.types import ROLES, Cue

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


def find_echoes(view: IndexReader, question: str, words: QueryTerms, candidates: Candidates) -> Mask:
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


def echoes_last(ranking: Ranked, echoes: Candidates) -> Ranked:
    """Ranked candidates, and behind all of them the echoes of the question, the nearest one first."""
    candidates = joined_candidates([ranking.candidates, echoes])
    own = echoes.text.unit if echoes.text else np.zeros(len(echoes))
    last = min(0.0, float(ranking.scores.min(initial=0.0))) - 1.0
    scores = np.r_[ranking.scores, last - (own.max(initial=0.0) - own)]
    values = np.zeros(len(echoes))
    parts = {name: np.r_[part, values] for name, part in ranking.parts.items()}
    parts["echo"] = np.r_[np.zeros(len(ranking.scores)), scores[len(ranking.scores) :]]
    return Ranked(candidates=candidates, scores=scores, parts=parts, recipe=ranking.recipe)
