"""Meaning of words, for both libraries: terms, scripts, days, questions, names, outcomes, ends of sentences.

Pure, but for the count of the readers that failed. The first use of a name loads the file that it stands in.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indexer.language.authorship import (
        MessagePart,
        PartKind,
        announces_others,
        introduction,
        is_reported,
        message_parts,
        typed_text,
    )
    from indexer.language.breadcrumbs import breadcrumb, name_title
    from indexer.language.dates import (
        STATED_HOLDS,
        Day,
        clock_spans,
        clock_times_of,
        day_of_name,
        day_spans,
        days_of,
        full_day,
        has_time_words,
    )
    from indexer.language.fact_words import is_tool
    from indexer.language.facts import facts_of, not_same_line
    from indexer.language.identifiers import IdentifierKind, SpanOfKind, identifier_spans
    from indexer.language.inserted import (
        FOUND_HERE,
        folder_told,
        is_auxiliary,
        is_client_command,
        is_inserted,
        is_own_tool,
        is_recalled,
        without_inserted,
    )
    from indexer.language.language_patterns import LanguagePattern
    from indexer.language.languages import language_of, writing_of
    from indexer.language.markup import Fences
    from indexer.language.ornaments import FAILURES, ornament
    from indexer.language.outcomes import (
        begins_as_error,
        command_exit_of,
        ends_in_error,
        exit_code_of,
        failure_lines,
        has_failed,
        is_error_line,
        is_exit_only,
        names_outcome,
    )
    from indexer.language.questions import asks
    from indexer.language.restated import restating
    from indexer.language.search_terms import asked_terms, stored_terms
    from indexer.language.section_names import next_subjects, section_subject
    from indexer.language.sentences import says_little
    from indexer.language.short_replies import (
        ChoiceLabel,
        chosen_labels,
        is_assent,
        is_bare_assent,
        is_continuation,
        is_refusal,
    )
    from indexer.language.spoken_values import (
        is_estimate,
        names_relative_day,
        ordinal_days,
        spelled_numbers,
        spoken_times,
    )
    from indexer.language.tables import ANY, LANGUAGES
    from indexer.language.terms import MOSTLY, STOP_WORDS, fold, has_unspaced, query_terms, read_part, simplify
    from indexer.language.tool_output import is_tool_output

__all__ = [
    "ANY",
    "FAILURES",
    "FOUND_HERE",
    "LANGUAGES",
    "MOSTLY",
    "STATED_HOLDS",
    "STOP_WORDS",
    "ChoiceLabel",
    "Day",
    "Fences",
    "IdentifierKind",
    "LanguagePattern",
    "MessagePart",
    "PartKind",
    "SpanOfKind",
    "announces_others",
    "asked_terms",
    "asks",
    "begins_as_error",
    "breadcrumb",
    "chosen_labels",
    "clock_spans",
    "clock_times_of",
    "command_exit_of",
    "day_of_name",
    "day_spans",
    "days_of",
    "ends_in_error",
    "exit_code_of",
    "facts_of",
    "failure_lines",
    "fold",
    "folder_told",
    "full_day",
    "has_failed",
    "has_time_words",
    "has_unspaced",
    "identifier_spans",
    "introduction",
    "is_assent",
    "is_auxiliary",
    "is_bare_assent",
    "is_client_command",
    "is_continuation",
    "is_error_line",
    "is_estimate",
    "is_exit_only",
    "is_inserted",
    "is_own_tool",
    "is_recalled",
    "is_refusal",
    "is_reported",
    "is_tool",
    "is_tool_output",
    "language_of",
    "message_parts",
    "name_title",
    "names_outcome",
    "names_relative_day",
    "next_subjects",
    "not_same_line",
    "ordinal_days",
    "ornament",
    "query_terms",
    "read_part",
    "restating",
    "says_little",
    "section_subject",
    "simplify",
    "spelled_numbers",
    "spoken_times",
    "stored_terms",
    "typed_text",
    "without_inserted",
    "writing_of",
]

_MODULES = {
    "ANY": "tables",
    "ChoiceLabel": "short_replies",
    "Day": "dates",
    "FAILURES": "ornaments",
    "FOUND_HERE": "inserted",
    "Fences": "markup",
    "IdentifierKind": "identifiers",
    "LANGUAGES": "tables",
    "LanguagePattern": "language_patterns",
    "MOSTLY": "terms",
    "MessagePart": "authorship",
    "PartKind": "authorship",
    "STATED_HOLDS": "dates",
    "STOP_WORDS": "terms",
    "SpanOfKind": "identifiers",
    "announces_others": "authorship",
    "asked_terms": "search_terms",
    "asks": "questions",
    "begins_as_error": "outcomes",
    "breadcrumb": "breadcrumbs",
    "chosen_labels": "short_replies",
    "clock_spans": "dates",
    "clock_times_of": "dates",
    "command_exit_of": "outcomes",
    "day_of_name": "dates",
    "day_spans": "dates",
    "days_of": "dates",
    "ends_in_error": "outcomes",
    "exit_code_of": "outcomes",
    "facts_of": "facts",
    "not_same_line": "facts",
    "failure_lines": "outcomes",
    "fold": "terms",
    "folder_told": "inserted",
    "full_day": "dates",
    "has_failed": "outcomes",
    "has_time_words": "dates",
    "has_unspaced": "terms",
    "identifier_spans": "identifiers",
    "introduction": "authorship",
    "is_assent": "short_replies",
    "is_auxiliary": "inserted",
    "is_bare_assent": "short_replies",
    "is_client_command": "inserted",
    "is_continuation": "short_replies",
    "is_error_line": "outcomes",
    "is_estimate": "spoken_values",
    "is_exit_only": "outcomes",
    "is_inserted": "inserted",
    "is_own_tool": "inserted",
    "is_recalled": "inserted",
    "is_refusal": "short_replies",
    "is_reported": "authorship",
    "is_tool": "fact_words",
    "is_tool_output": "tool_output",
    "language_of": "languages",
    "message_parts": "authorship",
    "name_title": "breadcrumbs",
    "names_outcome": "outcomes",
    "names_relative_day": "spoken_values",
    "next_subjects": "section_names",
    "ordinal_days": "spoken_values",
    "ornament": "ornaments",
    "query_terms": "terms",
    "read_part": "terms",
    "restating": "restated",
    "says_little": "sentences",
    "section_subject": "section_names",
    "simplify": "terms",
    "spelled_numbers": "spoken_values",
    "spoken_times": "spoken_values",
    "stored_terms": "search_terms",
    "typed_text": "authorship",
    "without_inserted": "inserted",
    "writing_of": "languages",
}

# Unseen by type checkers, which would take any name for one that is here.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
