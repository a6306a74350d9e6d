"""Record of a compaction: its changes of the one before it, and the head of a chain. Plain values.

A summary is kept as what it changes of another: whole lines of that one by their numbers, the rest as text.

Invariants: pure; `apply_delta(base, text_delta(base, text)) == text`, always. Summaries of one session share most of
their lines: kept whole, twenty of them would take as much as a fifth of the messages that they stand for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from memory_service.messages.shapes import Json

if TYPE_CHECKING:
    from memory_service.schemas.compaction import LedgerEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The old messages of the view give way to a summary; what it changes, not what the one before it did.

    Attributes:
        base: The compaction before this one; None for the first.
        upto: The last record that the plan was made on.
        tail_start: The first message that stays word for word.
        stage: How far it went: `prune` leaves summary and tail as they were, `hard` cut what else would not fit.
        summary: Stands for all messages before `tail_start`, as what it changes of the one before it: lines of that
            by their numbers, from 0, both included, and new ones as text. Of no meaning at the stage `prune`.
        cleared: The text that stands for a tool result, by message; what this one added.
        stripped: Messages whose media gave way to a label; what this one added.
        toolless_upto: The last message that is shown without calls of tools, their results and reasoning; 0 for none.
        ledger_tokens: The longest ledger, where that is less than the view's own limit; None for that.
        whole_request: Whether the user's last request stands in the checkpoint however long it is.
        role: Whose message the summary is shown as.
        tokens_before: Size of the view before it.
        tokens_after: Size of the view after it.
        method: Who wrote the summary: `model`, `extractive`, `note`, or `none` where none was needed.
        calls: Requests to a model.
        input_tokens: What the provider counted for them together.
        output_tokens: The same for its answers.
        chunk_ratio: The share of the summariser's window that a chunk took; None where no model wrote.
        parts: Into how many parts the history was divided for it; 0 where no model wrote.
        audit: What was checked, and what was found.
        identifier_policy: What became of identifiers; with `anonymize` summary and ledger hold labels.
        labels: Originals and their labels, as far as this summary and its ledger hold them.
        notes: What went differently than asked.
        overrides: What of the preset's numbers was overridden.
        language: Of the talk, which summary and ledger are written in; empty for English.
        statements: Rules and decisions of the messages that it covers, with kind, text and number of the message, as a
            judge found them; None where patterns do, anew whenever the log is read.
    """

    base: int | None
    upto: int
    tail_start: int
    summary: tuple[str | tuple[int, int], ...]
    stage: str
    tokens_before: int
    tokens_after: int
    cleared: Mapping[int, str] = field(default_factory=dict)
    stripped: tuple[int, ...] = ()
    toolless_upto: int = 0
    ledger_tokens: int | None = None
    whole_request: bool = False
    role: str = "user"
    preset: str = "default"
    trigger: str = "manual"
    method: str = "none"
    model: str | None = None
    prompt_version: str | None = None
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    chunk_ratio: float | None = None
    parts: int = 0
    duration_ms: int = 0
    audit: Mapping[str, Json] = field(default_factory=dict)
    identifier_policy: str = "preserve"
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    overrides: Mapping[str, Json] = field(default_factory=dict)
    reason: str = ""
    language: str = ""
    statements: tuple[tuple[str, str, int], ...] | None = None

    def judged_statements(self) -> list[LedgerEntry] | None:
        """The statements as entries of a ledger."""
        from memory_service.schemas.compaction import LedgerEntry

        if self.statements is None:
            return None
        return [LedgerEntry(kind=kind, text=text, seqs=[seq]) for kind, text, seq in self.statements]


@dataclass(frozen=True, slots=True, kw_only=True)
class PinRecord:
    """A pin that every view keeps word for word: a text, or the message with the number `target`."""

    pin_id: str
    text: str | None = None
    target: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The compaction that counts, with what its chain has gathered; without `seq` there is none.

    Attributes:
        seq: The record of the compaction.
        base: The one before it in the chain.
        upto: The last record that its plan was made on.
        tail_start: The first message that stays word for word.
        ledger: Exact things that its messages held, found anew whenever the log is read.
        cleared: The text that stands for a tool result, by message.
        stripped: Messages whose media are labels.
        toolless_upto: The last message that is shown without its tools; 0 for none.
        ledger_tokens: The longest ledger, where that is less than the view's own limit; None for that.
        whole_request: Whether the user's last request stands in the checkpoint however long it is.
        labels: Originals and what stands for them, where identifiers are not to be shown.
        rounds: How many compactions of the chain made a summary.
        language: Of the talk, as the last of them found it; empty for English.
    """

    seq: int | None = None
    base: int | None = None
    upto: int = 0
    tail_start: int = 0
    summary: str = ""
    ledger: tuple[LedgerEntry, ...] = ()
    cleared: Mapping[int, str] = field(default_factory=dict)
    stripped: frozenset[int] = frozenset()
    toolless_upto: int = 0
    ledger_tokens: int | None = None
    whole_request: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    role: str = "user"
    rounds: int = 0
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCompaction:
    """A logged compaction; `active` if it or a descendant shapes the view.

    Attributes:
        head: What it made: summary and ledger as the view shows them.
    """

    seq: int
    at: str
    compaction: Compaction
    head: Head
    active: bool = True

    @property
    def compaction_id(self) -> str:
        """Id that callers know it by."""
        return f"c{self.seq}"


def newest_compaction(compactions: Sequence[LoggedCompaction]) -> str:
    """Id of the newest compaction that counts; empty if none does."""
    return next((past.compaction_id for past in reversed(compactions) if past.active), "")


def built_on(below: Head, compaction: Compaction, seq: int, ledger: tuple[LedgerEntry, ...]) -> Head:
    """The head that a compaction makes of the one that it was planned on."""
    head = replace(
        below,
        seq=seq,
        base=compaction.base,
        upto=compaction.upto,
        cleared={**below.cleared, **compaction.cleared} if compaction.cleared else below.cleared,
        stripped=below.stripped | set(compaction.stripped),
        toolless_upto=max(below.toolless_upto, compaction.toolless_upto),
    )
    if compaction.stage == "prune":
        return head
    return replace(
        head,
        tail_start=compaction.tail_start,
        summary=_apply_delta(below.summary, compaction.summary),
        ledger=ledger,
        ledger_tokens=compaction.ledger_tokens,
        whole_request=compaction.whole_request,
        labels={**below.labels, **compaction.labels} if compaction.labels else below.labels,
        role=compaction.role,
        rounds=below.rounds + 1,
        language=compaction.language,
    )


# The lines from one number to another of the base, counted from 0, both included; or some lines of text.
DeltaPart: TypeAlias = "str | tuple[int, int]"


def text_delta(base: str, text: str) -> tuple[DeltaPart, ...]:
    """A text as parts; without a base, the text itself."""
    known_fields = {line: number for number, line in reversed(list(enumerate(base.split("\n"))))} if base else {}
    parts = list[DeltaPart]()
    for line in text.split("\n"):
        number = known_fields.get(line)
        last = parts[-1] if parts else None
        if number is None:
            if isinstance(last, str):
                parts[-1] = f"{last}\n{line}"
            else:
                parts.append(line)
        elif isinstance(last, tuple) and last[1] + 1 == number:
            parts[-1] = (last[0], number)
        else:
            parts.append((number, number))
    return tuple(parts)


def _apply_delta(base: str, parts: Sequence[DeltaPart]) -> str:
    """The text that parts stand for; lines that the base does not have are left out."""
    lines = base.split("\n")
    return "\n".join(part if isinstance(part, str) else "\n".join(lines[part[0] : part[1] + 1]) for part in parts)
