"""Words of failure and success: outputs, exit codes, lines, sentences, error pages, acknowledgements. Pure; linear.

The tables differ by what is asked: is an end worth keeping (any sign, even within a word), which line of a result is
its failure (at the beginning of a line), does a sentence speak of a failure, is a whole answer an error page, does it
say that all went well and nothing else.
"""

from __future__ import annotations

import re

from indexer.common.patterns import lazy_regex
from indexer.language.language_patterns import LanguagePattern
from indexer.language.tables import ANY

# Found anywhere in a word: one sign too many keeps some of an end that could have gone, one too few loses the reason.
_SIGNS = ANY.outcomes.signs
_LOOKED_AT = 2_000  # of the end, in characters, for such signs

_EXIT = lazy_regex(
    rf"(?:{ANY.outcomes.exit_words})[\s:=\""
    r"'>:]{0,4}(-?\d{1,5})\b",
    re.IGNORECASE,
)
_EXIT_SIGNS = ANY.outcomes.exit_signs
_COMMAND_EXIT_SIGNS = ANY.outcomes.command_exit_signs
# Of a command whose failure is recorded: no number that goes on behind a dot, and fewer signs in between.
_ENDED = lazy_regex(
    rf"(?:{ANY.outcomes.command_exit_words})[\""
    r"'>]{0,2}[ \t]{0,3}[:=：]?[ \t]{0,3}(-?\d{1,5})(?![\d.])"
)
_FAILURE = lazy_regex(
    rf"(?mx)^[ \t>|*-]{{0,8}}(?:{ANY.outcomes.failure_starts})[^\n]{{0,240}}|{ANY.outcomes.failure_lines}"
)
# Stricter than that of sentences: "Failed: 3, no warnings" is a failure.
_NO_FAILURE = lazy_regex(f"(?i){ANY.outcomes.no_failures}")
_ERROR_PAGE = lazy_regex(rf"\W{{0,8}}(?:(?:4\d\d|5\d\d) [A-Z]|{ANY.outcomes.error_pages})", re.IGNORECASE)


def ends_in_error(text: str) -> bool:
    """True if the end of a text looks like a diagnosis: an error, a traceback, an exit code; English or Chinese."""
    end = text[-_LOOKED_AT:].lower()
    return any(sign in end for sign in _SIGNS)


def exit_code_of(piece: str) -> str:
    """Exit code in the beginning or the end of an output, as it is written; empty if there is none."""
    lowered_text = piece.lower()
    # The pattern is slow, and most results tell no exit code.
    match = _EXIT.search(piece) if any(sign in lowered_text for sign in _EXIT_SIGNS) else None
    return match[1] if match else ""


def command_exit_of(text: str) -> str:
    """Exit code that the result of a command reports, as it is written; empty if there is none."""
    lowered_text = text.lower()
    match = _ENDED.search(lowered_text) if any(sign in lowered_text for sign in _COMMAND_EXIT_SIGNS) else None
    return match[1] if match else ""


def failure_lines(text: str) -> list[str]:
    """Lines of a result that report a failure."""
    return [match[0].strip() for match in _FAILURE.finditer(text) if not _NO_FAILURE.search(match[0])]


def begins_as_error(text: str) -> bool:
    """True if a text begins as an error page or a refusal does."""
    return _ERROR_PAGE.match(text) is not None


# --- sentences ---------------------------------------------------------------------------------------------------

_FAILED = LanguagePattern(lambda language: language.outcomes.failed)
_NOT_FAILED = LanguagePattern(lambda language: language.outcomes.not_failed)
# What a program prints when it fails is no rule, whatever words it has.
_ERROR_LINE = lazy_regex(ANY.outcomes.error_lines)
_OUTCOME = lazy_regex(ANY.outcomes.outcomes)


# What it was the exit of stands in no line; the commands of the ledger have it.
_EXIT_ONLY = lazy_regex(rf"\W*(?:{ANY.outcomes.exit_leads})(?:{ANY.outcomes.exit_only})\W*-?\d+\W*")


def has_failed(lower: str) -> bool:
    """True if a text, in lower case, speaks of a failure."""
    return ("error" in lower or "exception" in lower or _FAILED.is_in(lower)) and not _NOT_FAILED.is_in(lower)


def is_error_line(lower: str) -> bool:
    """True if a line, in lower case, is what a program prints when it fails: no rule, whatever words it has."""
    return _ERROR_LINE.search(lower) is not None


def names_outcome(lower: str) -> bool:
    """True if a line of a tool's result, in lower case, tells an outcome: "3 passed", "exit code 1", "部署成功"."""
    return _OUTCOME.search(lower) is not None


def is_exit_only(lower: str) -> bool:
    """True if a line, in lower case, tells an exit code and nothing else."""
    return _EXIT_ONLY.fullmatch(lower) is not None


# --- acknowledgements --------------------------------------------------------------------------------------------

_ACKNOWLEDGED_CHARS = 120
_WORD = lazy_regex(r"\w+(?:\.\d+)?")
_FINE = ANY.outcomes.fine
_DEED = ANY.outcomes.deeds
# "exit code 0" and "1 sent" say that it went well; "exit code 1" and "0 sent" are news.
_CLAUSES = (
    f"(?:(?:{ANY.outcomes.results}) )?(?:{_FINE})",
    f"(?:{_DEED})(?: (?:{ANY.outcomes.deed_results}|[1-9][0-9]{{0,2}}))?",
    ANY.outcomes.acknowledgements,
)
_TAKEN = rf"[0-9]{{1,4}}(?:\.[0-9]+)? ?(?:{ANY.outcomes.seconds})"
_ACKNOWLEDGEMENT = lazy_regex(f"(?:(?:{'|'.join(_CLAUSES)})(?: |$))+(?:{_TAKEN})?")


def is_acknowledgement(text: str) -> bool:
    """True if an answer says that something went well, and nothing else: `{"ok": true}`, "exit code 0"."""
    if len(text) > _ACKNOWLEDGED_CHARS:
        return False
    return _ACKNOWLEDGEMENT.fullmatch(" ".join(_WORD.findall(text.casefold()))) is not None
