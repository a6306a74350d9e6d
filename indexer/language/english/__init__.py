"""English."""

from indexer.language.base import Language
from indexer.language.english.english_authorship import ENGLISH_AUTHORSHIP
from indexer.language.english.english_clauses import ENGLISH_CLAUSES
from indexer.language.english.english_days import ENGLISH_DAYS
from indexer.language.english.english_facts import ENGLISH_FRAMES, ENGLISH_VALUES
from indexer.language.english.english_grammar import ENGLISH_GRAMMAR
from indexer.language.english.english_labels import ENGLISH_LABELS, ENGLISH_NAMES, ENGLISH_UNITS
from indexer.language.english.english_lasting import ENGLISH_LASTING
from indexer.language.english.english_nouns import ENGLISH_NOUNS
from indexer.language.english.english_numerals import ENGLISH_NUMERALS
from indexer.language.english.english_outcomes import ENGLISH_OUTCOMES
from indexer.language.english.english_phrases import ENGLISH_PHRASES
from indexer.language.english.english_recall import ENGLISH_RECALL
from indexer.language.english.english_restatements import ENGLISH_RESTATEMENTS
from indexer.language.english.english_salience import ENGLISH_SALIENCE
from indexer.language.english.english_sameness import ENGLISH_SAMENESS
from indexer.language.english.english_secrets import ENGLISH_SECRETS
from indexer.language.english.english_statements import ENGLISH_QUESTIONS, ENGLISH_STATEMENTS
from indexer.language.english.english_wordings import ENGLISH_SCRIPT, ENGLISH_WORDINGS
from indexer.language.english.english_words import ENGLISH_REPLIES, ENGLISH_SECTIONS
from indexer.language.fact_tables import FactTable, Readings


def _readings() -> Readings:
    # Late: the readings are rules, which need the words of all languages.
    from indexer.language.english.english_claims import ended_in_english, english_claims

    return english_claims, ended_in_english


ENGLISH = Language(
    name="English",
    outcomes=ENGLISH_OUTCOMES,
    questions=ENGLISH_QUESTIONS,
    authorship=ENGLISH_AUTHORSHIP,
    clauses=ENGLISH_CLAUSES,
    nouns=ENGLISH_NOUNS,
    values=ENGLISH_VALUES,
    statements=ENGLISH_STATEMENTS,
    phrases=ENGLISH_PHRASES,
    recall=ENGLISH_RECALL,
    salience=ENGLISH_SALIENCE,
    sameness=ENGLISH_SAMENESS,
    replies=ENGLISH_REPLIES,
    lasting=ENGLISH_LASTING,
    grammar=ENGLISH_GRAMMAR,
    days=ENGLISH_DAYS,
    sections=ENGLISH_SECTIONS,
    labels=ENGLISH_LABELS,
    units=ENGLISH_UNITS,
    numerals=ENGLISH_NUMERALS,
    secrets=ENGLISH_SECRETS,
    names=ENGLISH_NAMES,
    frames=ENGLISH_FRAMES,
    restatements=ENGLISH_RESTATEMENTS,
    facts=FactTable(wordings=ENGLISH_WORDINGS, script=ENGLISH_SCRIPT, readings=_readings),
)
