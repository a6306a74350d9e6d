"""Chinese."""

from indexer.language.base import Language
from indexer.language.chinese.chinese_authorship import CHINESE_AUTHORSHIP
from indexer.language.chinese.chinese_days import CHINESE_DAYS, CHINESE_NUMERALS
from indexer.language.chinese.chinese_facts import CHINESE_CLAUSES, CHINESE_FRAMES, CHINESE_NOUNS, CHINESE_VALUES
from indexer.language.chinese.chinese_labels import CHINESE_LABELS, CHINESE_NAMES, CHINESE_UNITS
from indexer.language.chinese.chinese_phrases import (
    CHINESE_LASTING,
    CHINESE_PHRASES,
    CHINESE_RECALL,
    CHINESE_RESTATEMENTS,
    CHINESE_SAMENESS,
)
from indexer.language.chinese.chinese_salience import CHINESE_SALIENCE
from indexer.language.chinese.chinese_secrets import CHINESE_SECRETS
from indexer.language.chinese.chinese_statements import CHINESE_OUTCOMES, CHINESE_QUESTIONS, CHINESE_STATEMENTS
from indexer.language.chinese.chinese_wordings import CHINESE_SCRIPT, CHINESE_WORDINGS
from indexer.language.chinese.chinese_words import CHINESE_GRAMMAR, CHINESE_REPLIES, CHINESE_SECTIONS
from indexer.language.fact_tables import FactTable, Readings


def _readings() -> Readings:
    # Late: the readings are rules, which need the words of all languages.
    from indexer.language.chinese.chinese_claims import chinese_claims, ended_in_chinese

    return chinese_claims, ended_in_chinese


CHINESE = Language(
    name="Chinese",
    is_spaced=False,
    outcomes=CHINESE_OUTCOMES,
    questions=CHINESE_QUESTIONS,
    authorship=CHINESE_AUTHORSHIP,
    clauses=CHINESE_CLAUSES,
    nouns=CHINESE_NOUNS,
    values=CHINESE_VALUES,
    statements=CHINESE_STATEMENTS,
    phrases=CHINESE_PHRASES,
    recall=CHINESE_RECALL,
    salience=CHINESE_SALIENCE,
    sameness=CHINESE_SAMENESS,
    replies=CHINESE_REPLIES,
    lasting=CHINESE_LASTING,
    grammar=CHINESE_GRAMMAR,
    days=CHINESE_DAYS,
    sections=CHINESE_SECTIONS,
    labels=CHINESE_LABELS,
    units=CHINESE_UNITS,
    numerals=CHINESE_NUMERALS,
    secrets=CHINESE_SECRETS,
    names=CHINESE_NAMES,
    frames=CHINESE_FRAMES,
    restatements=CHINESE_RESTATEMENTS,
    facts=FactTable(wordings=CHINESE_WORDINGS, script=CHINESE_SCRIPT, readings=_readings),
)
