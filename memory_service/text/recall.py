"""Recall decision: whether a message needs a memory search, with which query, and why.

Invariants: pure; linear; in doubt the answer is yes, since a search takes milliseconds and a memory that is missed
may cost a wrong answer. What needs nothing shows it: greetings, thanks, a yes, a go-on, code or logs alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from indexer.common import COMMON_HAN, lazy_regex
from indexer.language import ANY, MessagePart, fold, has_time_words, message_parts, ornament
from memory_service.text.speech import without_inserted

_MAX_QUERY_CHARS: Final = 500
# A message beyond this is cut to what it asks, how it begins and how it ends.
_LONG_CHARS: Final = 600
_SMALL_TALK_CHARS = 120

_COMMAND = lazy_regex(rf"/([a-z][a-z0-9_-]{{0,31}}|{ANY.recall.commands_within})(?=\s|$)", re.IGNORECASE)
_ASKS_MEMORY = ANY.recall.asking_commands
_KEEPS_MEMORY = ANY.recall.keeping_commands
_KEEP = lazy_regex(rf"/(?:{ANY.recall.keep})[\s:：,，]*(.*)", re.IGNORECASE | re.DOTALL)
# What clients take for themselves; the model never needs a memory for it.
_OF_CLIENTS = frozenset(
    "compact clear new reset help model models status exit quit stop undo redo cost usage login logout config settings "
    "theme version start think verbose".split()
)
_EXTENSIONS = (
    "py|pyi|ipynb|js|jsx|mjs|ts|tsx|vue|svelte|go|rs|java|kt|scala|swift|c|h|cc|cpp|hpp|cs|rb|php|pl|lua|r|jl|ex|exs"
    "|erl|hs|sh|bash|zsh|ps1|bat|sql|html|htm|css|scss|less|xml|svg|json|jsonl|json5|yaml|yml|toml|ini|cfg|conf|env"
    "|lock|log|md|mdx|rst|txt|tex|csv|tsv|xls|xlsx|doc|docx|ppt|pptx|pdf|png|jpg|jpeg|gif|webp|mp3|mp4|wav|zip|tar|gz|proto|tf|gradle"
)
_FILE = lazy_regex(
    rf"(?<![\w/.@~\\-])@?[\w./\\~-]{{0,160}}[\w-]\.(?:{_EXTENSIONS})(?![A-Za-z0-9_/])"
    r"|(?<![\w/.@])@[A-Za-z0-9_./-]{2,80}"
    r"|(?<![\w/.])(?:Dockerfile|Makefile|Procfile|Gemfile|Justfile|CHANGELOG|LICENSE)\b",
    re.ASCII,
)
_FILE_HAN = lazy_regex(rf"[{COMMON_HAN}][\w-]{{0,40}}\.(?:{_EXTENSIONS})(?![A-Za-z0-9_/])")
_TRIGGER = lazy_regex(f"(?ix){ANY.recall.triggers}")
_FILLERS = ANY.recall.fillers
# Wholes whose words say something elsewhere.
_SMALL_TALK = lazy_regex(ANY.recall.small_talk)
_SMALL_TALK_WITHIN = lazy_regex(ANY.recall.small_talk_within)
_WORD = lazy_regex(r"[^\W_]+(?:['’][^\W_]+)*")
_PICK = lazy_regex(
    rf"(?:{ANY.recall.picks})?\s{{0,3}}[(\[]?[a-z0-9{ANY.recall.pick_signs}][)\].、]?\s{{0,3}}"
    rf"(?:{ANY.recall.pick_units})?(?:{ANY.recall.pick_ends})?[.。!！]?",
    re.IGNORECASE,
)
_COURTESY = lazy_regex(rf"(?ix)\s*(?:{ANY.recall.courtesies})\s*")
_THANKS = lazy_regex(f"(?i){ANY.recall.thanks}")
_SENTENCE = lazy_regex(r"[^.!?。！？；\n]*+(?:[.!?](?!\s|$)[^.!?。！？；\n]*+)*+(?:[.!?。！？；]+|\n|$)")
_ASKING_END = ("?", "？", *ANY.recall.asking_ends)
_ASKING = lazy_regex(f"(?i){ANY.recall.asking}")
_BLANKS = lazy_regex(r"\s+")
_QUOTE_MARKS = lazy_regex(r"^[> ]+", re.MULTILINE)
_QUOTATION: Final = "\"'“„「『«‹‘"
END_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallDecision:
    """Decision to search memories or not, with the query and the reason.

    Attributes:
        query: What for, at most `_MAX_QUERY_CHARS`; empty if they are not.
        reason: Why, in a few plain words.
        asks: Whether it asks something, or names something by name, and does not only touch on it.
        outright: Whether it is a command that asks for memories.
    """

    search: bool
    query: str
    reason: str
    asks: bool = True
    outright: bool = False


def decide_recall(text: str) -> RecallDecision:
    """Decide if a user's message needs memories.

    The commands and triggers of other systems are honoured; beside them everything is searched for that does not
    clearly need nothing. `/remember` is searched for too: what is known of a matter tells whether the new says
    otherwise.

    Args:
        text: The user's message; one that cannot be read is searched for as it stands.
    """
    return ornament("recall", None, _decision, text) or RecallDecision(
        search=bool(text.strip()), query=text.strip()[:_MAX_QUERY_CHARS], reason="it could not be read"
    )


def words_to_keep(text: str) -> str:
    """The words behind a `/remember` or /记住 that a message of the user begins with; empty if it does not."""
    match = _KEEP.match(text.strip())
    return match[1].strip() if match else ""


def _decision(text: str) -> RecallDecision:
    message = (f"{text[:END_CHARS]}\n{text[-END_CHARS:]}" if len(text) > 2 * END_CHARS else text).strip()
    if (command := _COMMAND.match(message)) and (decision := _of_command(command)):
        return decision
    parts = message_parts(without_inserted(message) or message)
    said_text = _query_words(parts)
    if not said_text:
        is_pasted = any(part.kind == "pasted" for part in parts)
        return _no("it is only code or output, without a question" if is_pasted else "it says nothing")
    if reason := _named_reason(said_text):
        return _yes(said_text, reason)
    if reason := _needless(said_text):
        return _no(reason)
    return _general(said_text)


def _query_words(parts: Sequence[MessagePart]) -> str:
    """The words that a message asks with: typed ones and the quotations in them, or quoted lines if nothing else."""
    message_parts = [part for part in parts if part.kind == "quoted"]
    within = {part.start for part in message_parts if part.text[0] in _QUOTATION}
    asked_text = "".join(part.text for part in parts if part.kind == "typed" or part.start in within)
    return asked_text.strip() or "\n".join(_QUOTE_MARKS.sub("", part.text) for part in message_parts).strip()


def _of_command(command: re.Match[str]) -> RecallDecision | None:
    name, rest = command[1].lower(), command.string[command.end() :].strip()
    if name in _OF_CLIENTS:
        return _no(f"the command /{name} needs no memory")
    if name not in _ASKS_MEMORY | _KEEPS_MEMORY:
        return None
    if not rest:
        return _no(f"the command /{name} names nothing to look for")
    why = ": what is known of it may say otherwise" if name in _KEEPS_MEMORY else ""
    return RecallDecision(
        search=True, query=_cut_query(_BLANKS.sub(" ", rest)), reason=f"the command /{name}{why}", outright=True
    )


def _named_reason(text: str) -> str:
    """A reason that the message gives by name; empty if it gives none."""
    if file := _FILE.search(text) or _FILE_HAN.search(text):
        return f"it names the file {file[0].lstrip('@')}" if "." in file[0] else f"it names {file[0]}"
    if trigger := _TRIGGER.search(text):
        return f"it asks about something said before: “{trigger[0].lower()}”"
    return ""


def _needless(text: str) -> str:
    """Reason why a message needs no memories; empty if it may need some."""
    if _PICK.fullmatch(text):
        return "it picks one of what was offered"
    if not any(map(str.isalnum, text[:_SMALL_TALK_CHARS])) and not any(map(str.isalnum, text)):
        return "it has no words"
    if len(text) > _SMALL_TALK_CHARS:
        return ""
    rest = _SMALL_TALK_WITHIN.sub(" ", fold(text).replace("’", "'"))
    clauses = re.split(r"[^\w\s']+|\n", rest)
    needless = all(
        _SMALL_TALK.fullmatch(clause.strip()) or _FILLERS.issuperset(_WORD.findall(clause)) for clause in clauses
    )
    return "it is small talk, a yes or a go-on" if needless else ""


def _general(text: str) -> RecallDecision:
    if any(sentence.endswith(_ASKING_END) for sentence in _sentences(text)):
        return _yes(text, "it asks something")
    is_timed = any(map(str.isdigit, text)) or has_time_words(text)
    reason = "it names a number or a time" if is_timed else "it may touch on something known"
    return replace(_yes(text, reason), asks=False)


def _no(reason: str) -> RecallDecision:
    return RecallDecision(search=False, query="", reason=reason)


def _yes(text: str, reason: str) -> RecallDecision:
    return RecallDecision(search=True, query=_query_of(text), reason=reason)


def _query_of(said_text: str) -> str:
    """Search query of a message: without courtesies, a long message cut to its questions, beginning and end."""
    text = _BLANKS.sub(
        " ", _without_courtesies(said_text if len(said_text) <= _LONG_CHARS else _essence(said_text))
    ).strip()
    return _cut_query(text)


def _without_courtesies(said_text: str) -> str:
    text = said_text
    for _ in range(6):
        match = _COURTESY.match(text)
        if match is None or match.end() == len(text):
            break
        text = text[match.end() :]
    shorter = text[: match.start()] if (match := _THANKS.search(text, max(0, len(text) - 60))) else text
    return shorter if any(map(str.isalnum, shorter)) else text


def _essence(text: str) -> str:
    """The sentences of a long message that matter most, in their order."""
    sentences = _sentences(text)
    asking = [at for at, sentence in enumerate(sentences) if sentence.endswith(_ASKING_END)]
    asking += [at for at, sentence in enumerate(sentences) if _ASKING.match(sentence) and at not in asking[-1:]]
    order = dict.fromkeys([*reversed(asking), len(sentences) - 1, 0])
    kept_numbers, room = list[int](), _MAX_QUERY_CHARS
    for at in order:
        size = len(sentences[at]) + 1
        if size <= room:
            kept_numbers.append(at)
            room -= size
    return " ".join(sentences[at] for at in sorted(kept_numbers)) or sentences[-1]


def _sentences(text: str) -> list[str]:
    return [each_text for match in _SENTENCE.finditer(text) if (each_text := match[0].strip())] or [text.strip()]


def _cut_query(text: str) -> str:
    if len(text) <= _MAX_QUERY_CHARS:
        return text
    space = text.rfind(" ", _MAX_QUERY_CHARS - 60, _MAX_QUERY_CHARS)
    return text[: space if space > 0 else _MAX_QUERY_CHARS].rstrip()
