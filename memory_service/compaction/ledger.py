"""Typed ledger: the exact things of a conversation that no model rewrites, found, merged and written by code. Pure.

Invariants: linear; every text is quoted from its message, on one line, at most 240 characters, without secrets; a merge
is bounded and depends on nothing but its arguments, so that a replay gives the same ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from indexer.common import lazy_regex
from indexer.language import is_tool_output, ornament, typed_text
from memory_service.compaction.actions import (
    OPEN_FILE,
    SUCCESS,
    command_of,
    failure_of,
    files_of,
    outcome_of,
    was_refused,
)
from memory_service.compaction.todos import todos_after
from memory_service.compaction.tool_answers import tool_answers
from memory_service.compaction.written_calls import applied_edits, opened_file, written_calls
from memory_service.messages.shapes import (
    Message,
    ToolCall,
    is_system,
    is_tool_result,
    own_text_of,
    text_of,
    tool_calls_of,
)
from memory_service.messages.sizes import Numbered
from memory_service.schemas.compaction import LedgerEntry
from memory_service.text.choices import answered_question, asked_in_one_line, chosen_options, options_in
from memory_service.text.identifiers import find_identifiers, with_measure
from memory_service.text.secrets import redact
from memory_service.text.sentence_kinds import SentenceKinds
from memory_service.text.sentences import STATEMENT_CHARS, single_line
from memory_service.text.statements import (
    ask_of,
    decisions_of,
    is_no,
    is_yes,
    names_of,
    promises_of,
    question_of,
    reports_will,
    rules_of,
    speaks_of_deciding,
)

# How many of a kind a ledger keeps. Source: OpenClaw keeps 8 tool failures and 12 ids; a ledger of 160 entries takes
# about 3,000 tokens, and a view shows what fits.
CAPS = {
    "todo": 40, "rule": 24, "decision": 24, "ask": 4, "promise": 8, "answer": 12, "confirmation": 8, "name": 4,
    "failure": 8, "file_modified": 40, "command": 16, "id": 24, "url": 12, "path": 16, "number": 20, "date": 8,
    "file_read": 16,
}  # fmt: skip
_JUDGED = ("rule", "decision")
KEPT_LAST = frozenset({"todo", "rule", "decision", "answer", "promise", "file_modified"})
_MOST_ENTRIES = 160
_KINDS = {
    "id": "id", "uuid": "id", "hash": "id", "version": "id", "variable": "id", "email": "id", "address": "id",
    "url": "url", "path": "path", "number": "number", "date": "date",
}  # fmt: skip
# What is read of one message, and how many identifiers are taken from it; a tool may print thousands.
_SCAN_CHARS = 12_000
_MESSAGE_IDENTIFIERS = 40
_RESULT_IDENTIFIERS = 8
_PIECE_CHARS = 1_500
_LAST_SEQS = 5
# A number of few digits without a unit, and without a word that says what it measures.
_BARE = lazy_regex(r"[\d.,]{1,4}")


def ledger_of(
    messages: Sequence[Numbered],
    statements: Sequence[LedgerEntry] | None = None,
    *,
    before: Iterable[LedgerEntry] = (),
) -> tuple[LedgerEntry, ...]:
    """Ledger of some messages, in order.

    Args:
        messages: The messages.
        statements: Their rules and decisions, see `judged_statements`; None to find them by patterns.
        before: The ledger before them, whose todo list they may change.

    Returns:
        Each thing once with the messages it stands in, the one mentioned last at the end; `merge_ledger` caps it.
    """
    alone = (
        entry
        for message in messages
        for entry in ornament("statements", (), _message_entries, message)
        if statements is None or entry.kind not in _JUDGED
    )
    calls = ornament("statements", (), list, _calls(messages))
    answers = ornament("statements", (), list, _answers(messages))
    asks = ornament("statements", (), _open_asks, messages)
    todos = ornament("statements", (), todos_after, messages, before)
    return tuple(_merge_entries([*alone, *(statements or ()), *calls, *answers, *asks, *todos]))


def judged_statements(messages: Sequence[Numbered], kinds: SentenceKinds) -> tuple[LedgerEntry, ...]:
    """The rules and decisions of some messages, as a judge finds them, in order.

    Args:
        messages: The messages, without secrets.
        kinds: The kinds of their sentences.

    Returns:
        Of each kind no more than a ledger keeps, the last ones.
    """
    entries = [entry for message in messages for entry in ornament("statements", (), _judged_entries, message, kinds)]
    last = {kind: [entry for entry in entries if entry.kind == kind][-CAPS[kind] :] for kind in _JUDGED}
    return tuple(entry for entry in entries if entry in last[entry.kind])


def _judged_entries(message: Numbered, kinds: SentenceKinds) -> tuple[LedgerEntry, ...]:
    if is_system(message.message) or is_tool_result(message.message):
        return ()
    role, statements = message.message["role"], kinds.statements_of(message)
    if statements is None:
        return tuple(entry for entry in _message_entries(message) if entry.kind in _JUDGED)
    rules, decisions = statements
    decided_texts = [decision for decision in decisions if decision not in rules or speaks_of_deciding(decision)]
    entries = [("decision", f"{role}: {text}") for text in decided_texts]
    entries += [("rule", rule) for rule in rules if rule not in decided_texts]
    return tuple(_entry(kind, words, message.seq) for kind, words in dict.fromkeys(entries))


def _message_entries(message: Numbered) -> tuple[LedgerEntry, ...]:
    """Entries of one message by itself: rules, decisions, promises, names, identifiers, failures of tools."""
    inner = message.message
    if is_system(inner):
        return ()
    text = redact(_scan_part(own_text_of(inner)))
    result = is_tool_result(inner) or (inner["role"] == "user" and is_tool_output(text))
    pairs = [] if result else [*ornament("statements", (), _typed_statements, inner["role"], text)]
    if result and not is_tool_result(inner):
        pairs += _failures(inner, "")
    most = _RESULT_IDENTIFIERS if result else _MESSAGE_IDENTIFIERS
    pairs += ornament("identifiers", (), _identifiers, text, most, numbers=not result)
    return tuple(_entry(kind, words, message.seq) for kind, words in dict.fromkeys(pairs))


def _failures(result: Message, tool: str) -> list[tuple[str, str]]:
    """The failure that a result tells, with its tool."""
    failure = failure_of(result)
    return [("failure", redact(f"{tool}: {failure}" if tool else failure))] if failure else []


def _scan_part(text: str) -> str:
    return text if len(text) <= _SCAN_CHARS else f"{text[: _SCAN_CHARS // 2]}\n{text[-_SCAN_CHARS // 2 :]}"


def _entry(kind: str, text: str, *seqs: int) -> LedgerEntry:
    return LedgerEntry(kind=kind, text=single_line(text, STATEMENT_CHARS), seqs=list(seqs))


def _typed_statements(role: str, text: str) -> list[tuple[str, str]]:
    return [*_statements(role, typed_text(text) if role == "user" else text)]


def _statements(role: str, text: str) -> list[tuple[str, str]]:
    # An assistant cannot say what the user has decided or allowed.
    decisions = [
        each_decision for each_decision in decisions_of(text) if role == "user" or not reports_will(each_decision)
    ]
    rules = rules_of(text) if role == "user" else []
    # What both decides and binds stands once.
    texts = [decision for decision in decisions if decision not in rules or speaks_of_deciding(decision)]
    rules = [rule for rule in rules if rule not in texts]
    promises = [promise for promise in promises_of(text) if promise not in texts and promise not in rules]
    promises = [promise for promise in promises if role == "user" or not reports_will(promise)]
    pairs = [("decision", f"{role}: {decision}") for decision in texts]
    pairs += [("rule", rule) for rule in rules]
    pairs += [("promise", f"{role}: {promise}") for promise in promises]
    if role == "user":
        pairs += [("name", name) for name in names_of(text)]
    return pairs


def _identifiers(text: str, limit: int, *, numbers: bool) -> list[tuple[str, str]]:
    if not numbers and len(text) > _PIECE_CHARS:
        # Of a long output the first few are taken: most of it need not be read.
        return _first_identifiers(text, limit)
    pairs: list[tuple[str, str]] = []
    text = _unescape_line_ends(text) if not numbers else text
    for identifier in find_identifiers(text):
        kind = _KINDS.get(identifier.kind)
        if kind == "path" and text[max(0, identifier.start - 1) : identifier.start] in _NO_PATH_BEHIND:
            continue
        if kind and len(identifier.text) <= STATEMENT_CHARS and (numbers or kind != "number"):
            words = with_measure(text, identifier) if kind == "number" else identifier.text
            if kind == "number" and _BARE.fullmatch(words):
                continue
            pairs.append((kind, words))
            if len(pairs) == limit:
                break
    return pairs


def _first_identifiers(output: str, limit: int) -> list[tuple[str, str]]:
    """The first identifiers of an output, which is read piece by piece, and ends at a line where it can."""
    values: dict[tuple[str, str], None] = {}
    at = 0
    while at < len(output) and len(values) < limit:
        border = output.rfind("\n", at + 1, at + _PIECE_CHARS)
        end = border if border > 0 and at + _PIECE_CHARS < len(output) else at + _PIECE_CHARS
        values |= dict.fromkeys(_identifiers(output[at:end], limit, numbers=False))
        at = end
    return list(values)[:limit]


# "</tag>", "*.log", "\\.txt": what follows is no path.
_NO_PATH_BEHIND = ("<", "*", "\\")
_LITERAL_END = lazy_regex(r"(?<!\\)\\[nrt](?=[^\n]*[\"'}\]])")


def _unescape_line_ends(output: str) -> str:
    """An output of a tool in which the ends of lines that JSON spells are ends of lines."""
    return _LITERAL_END.sub("\n", output) if "\\" in output and output.lstrip()[:1] in '{["' else output


def _calls(messages: Sequence[Numbered]) -> Iterator[LedgerEntry]:
    """Commands with how they ended, failures and files; what a failed call would have written was not written."""
    tools = [message for message in messages if is_tool_result(message.message)]
    results = {tool.message.get("tool_call_id", ""): tool.message for tool in tools}
    said_in = {tool.message.get("tool_call_id", ""): tool.seq for tool in tools}
    known_keys = {call["id"] for message in messages for call in tool_calls_of(message.message)}
    opened_text = ""
    for at, message in enumerate(messages):
        if is_tool_result(message.message) and message.message.get("tool_call_id", "") not in known_keys:
            yield from (_entry(kind, failure, message.seq) for kind, failure in _failures(message.message, ""))
        for call, result in _calls_with_results(message, messages[at + 1 : at + 2], results):
            command, outcome = command_of(call), outcome_of(result)
            if command:
                ending = f" ({outcome})" if outcome else ""
                yield _entry(
                    "command", single_line(redact(command), STATEMENT_CHARS - len(ending)) + ending, message.seq
                )
            if result is not None and is_tool_result(result):
                seq = said_in.get(call["id"], message.seq)
                for kind, failure in _failures(result, call["function"]["name"][:40]):
                    yield _entry(kind, failure, seq)
            if not was_refused(result):
                for kind, path in files_of(call, has_failed=outcome not in SUCCESS):
                    opened_text = path if path != OPEN_FILE else opened_text
                    if opened_text:
                        yield _entry(kind, redact(opened_text if path == OPEN_FILE else path), message.seq)
        if message.message["role"] == "user":
            text = own_text_of(message.message)
            opened_text = file if (file := opened_file(text)) else opened_text
            yield from (_entry("file_modified", redact(path), message.seq) for path in applied_edits(text))


def _calls_with_results(
    message: Numbered, following: Sequence[Numbered], results: Mapping[str, Message]
) -> Iterator[tuple[ToolCall, Message | None]]:
    """The calls of a message with their results; of those in its words, what a user's message gives back."""
    calls = tool_calls_of(message.message)
    yield from ((call, results.get(call["id"])) for call in calls)
    if message.message["role"] != "assistant" or calls:
        return
    answer = next((each_message.message for each_message in following if each_message.message["role"] == "user"), None)
    answer = answer if answer and is_tool_output(own_text_of(answer)) else None
    written = written_calls(text_of(message.message), f"written-{message.seq}", has_answer=answer is not None)
    yield from ((call, answer) for call in written)


def _answers(messages: Sequence[Numbered]) -> Iterator[LedgerEntry]:
    """The user's answers to questions, both quoted: a yes or no, an option, a few words, and those through a tool."""
    results = {
        each_message.message.get("tool_call_id", ""): each_message
        for each_message in messages
        if is_tool_result(each_message.message)
    }
    asked_message: Numbered | None = None
    for message in messages:
        role, text = message.message["role"], own_text_of(message.message)
        for call in tool_calls_of(message.message):
            result = results.get(call["id"])
            for question, answer in tool_answers(call, result.message if result else None):
                yield _answer_entry("answer", question, answer, message.seq, result.seq if result else message.seq)
        if role == "assistant" and text:
            asked_message = message
        elif role == "user" and not is_tool_output(text):
            text = typed_text(_scan_part(text))
            if asked_message and text:
                yield from _reply(asked_message, text, message.seq)
            asked_message = None if text else asked_message


def _reply(message: Numbered, text: str, seq: int) -> Iterator[LedgerEntry]:
    """A reply with what it answers, if that was a question or a list of options."""
    before = text_of(message.message)
    options = chosen_options(text, options_in(before))
    question = question_of(redact(_scan_part(before)))
    if options:
        chosen_text = "; ".join(option.text for option in options)
        yield _answer_entry(
            "answer", asked_in_one_line(redact(_scan_part(before))), f"{text}: {chosen_text}", message.seq, seq
        )
    elif question and (is_yes(text) or is_no(text)):
        yield _answer_entry("confirmation", question, text, message.seq, seq)
    elif question and answered_question(text, before):
        yield _answer_entry("answer", question, text, message.seq, seq)


def _answer_entry(kind: str, question: str, answer: str, *seqs: int) -> LedgerEntry:
    text = single_line(redact(answer[:800]), 100)
    return _entry(kind, f"“{single_line(redact(question), 130)}” → “{text}”", *seqs)


def _open_asks(messages: Sequence[Numbered]) -> list[LedgerEntry]:
    """Asks of the user since the assistant last answered in words."""
    ledger_entries: list[LedgerEntry] = []
    for message in reversed(messages):
        role = message.message["role"]
        if role == "assistant" and text_of(message.message).strip() and not tool_calls_of(message.message):
            break
        ask = ask_of(redact(typed_text(_scan_part(own_text_of(message.message))))[-4_000:]) if role == "user" else ""
        if ask:
            ledger_entries.append(_entry("ask", ask, message.seq))
        if len(ledger_entries) == CAPS["ask"]:
            break
    return ledger_entries[::-1]


def merge_ledger(
    old: Iterable[LedgerEntry], new: Iterable[LedgerEntry], *, cap: int = _MOST_ENTRIES
) -> tuple[LedgerEntry, ...]:
    """The next ledger.

    Args:
        old: The ledger so far.
        new: What later messages add, see `ledger_of`.
        cap: The most entries it may have.

    Returns:
        Each thing once, the one mentioned last at the end. A modified file is no read one, and neither is a
        mere path. The old open asks are gone once there is something newer: they were answered or overtaken. Over the
        caps the oldest leave first, rules and decisions last.
    """
    before, after = list(old), list(new)
    if any(entry.kind == "todo" for entry in after):
        before = [entry for entry in before if entry.kind != "todo"]
    latest = max((entry.seqs[-1] for entry in after if entry.seqs), default=0)
    live = [entry for entry in before if entry.kind != "ask" or _last(entry) >= latest]
    entries = _without_covered(_merge_entries([*live, *after]))
    return tuple(_cap_entries(entries, cap))


def _merge_entries(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Each thing once, with the first and the last few messages it stands in, ordered by the last."""
    by_key: dict[tuple[str, str], LedgerEntry] = {}
    for entry in entries:
        key = (entry.kind, _normal_form(entry))
        ledger_entry = by_key.get(key)
        if ledger_entry:
            seqs = sorted({*ledger_entry.seqs, *entry.seqs})
            by_key[key] = LedgerEntry(kind=ledger_entry.kind, text=ledger_entry.text, seqs=_limit_seqs(seqs))
        else:
            short = len(entry.seqs) <= _LAST_SEQS
            by_key[key] = (
                entry if short else LedgerEntry(kind=entry.kind, text=entry.text, seqs=_limit_seqs(entry.seqs))
            )
    return sorted(by_key.values(), key=_age)


def _limit_seqs(seqs: list[int]) -> list[int]:
    return seqs if len(seqs) <= _LAST_SEQS + 1 else [seqs[0], *seqs[-_LAST_SEQS:]]


def _normal_form(entry: LedgerEntry) -> str:
    if entry.kind in ("path", "file_read", "file_modified"):
        return entry.text.removeprefix("./")
    text = " ".join(entry.text.split())
    return text.rstrip(".。!！").lower() if entry.kind in ("rule", "decision", "ask", "failure", "number") else text


def _last(entry: LedgerEntry) -> int:
    return entry.seqs[-1] if entry.seqs else 0


def _age(entry: LedgerEntry) -> tuple[int, str, str]:
    # A list keeps its own order.
    return _last(entry), entry.kind, "" if entry.kind == "todo" else entry.text


def _without_covered(entries: list[LedgerEntry]) -> list[LedgerEntry]:
    normal_forms = {_normal_form(entry) for entry in entries if entry.kind == "file_modified"}
    files = normal_forms | {_normal_form(entry) for entry in entries if entry.kind == "file_read"}
    covered_fields = {"file_read": normal_forms, "path": files}
    return [entry for entry in entries if _normal_form(entry) not in covered_fields.get(entry.kind, ())]


def _cap_entries(entries: list[LedgerEntry], cap: int) -> list[LedgerEntry]:
    counts: dict[str, int] = {}
    ledger_entries: list[LedgerEntry] = []
    places = {id(entry): at for at, entry in enumerate(entries)}
    for entry in reversed(entries):
        counts[entry.kind] = counts.get(entry.kind, 0) + 1
        if counts[entry.kind] <= CAPS.get(entry.kind, 8):
            ledger_entries.append(entry)
    ranked_ledger_entries = sorted(ledger_entries, key=lambda entry: entry.kind not in KEPT_LAST)
    return sorted(ranked_ledger_entries[: max(cap, 0)], key=lambda entry: (*_age(entry), places[id(entry)]))
