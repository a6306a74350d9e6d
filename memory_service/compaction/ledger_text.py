"""Owns how a ledger looks in a prompt, and which of it fits.

Invariants: pure; one line for each entry, so that none can open a section of its own; the same ledger gives the same
bytes; what fits is counted exactly as `count_tokens` counts the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.sessions.records import LedgerEntry
from memory_service.tokens import quarters


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """A part of the text; its kinds stand in the order in which they are wanted most."""

    opening: str
    kinds: tuple[str, ...]
    closing: str = ""
    handles: bool = True


# The most wanted first: what the user may not have to say twice, then what cannot be looked up elsewhere.
_SECTIONS = (
    _Section(opening="## Rules", kinds=("rule",)),
    _Section(opening="## Decisions", kinds=("decision",)),
    _Section(opening="## Open asks", kinds=("ask",)),
    _Section(opening="## Confirmations", kinds=("confirmation",)),
    _Section(opening="## Names", kinds=("name", "fact")),
    _Section(opening="## Tool Failures", kinds=("failure",)),
    _Section(opening="<modified-files>", kinds=("file_modified",), closing="</modified-files>", handles=False),
    _Section(opening="## Commands", kinds=("command",)),
    _Section(
        opening="<exact-identifiers>", kinds=("id", "url", "path", "number", "date"), closing="</exact-identifiers>"
    ),
    _Section(opening="<read-files>", kinds=("file_read",), closing="</read-files>", handles=False),
)
_TAGS = re.compile(r"<(?=/?(?:modified-files|exact-identifiers|read-files|summary|pinned-verbatim)\b)")


def rendered(ledger: Sequence[LedgerEntry]) -> str:
    """A ledger as Markdown; empty for an empty one, and without kinds that it does not know."""
    sections = [_section_text(section, ledger) for section in _SECTIONS]
    return "\n".join(filter(None, sections))


def fitted(ledger: Sequence[LedgerEntry], limit_tokens: int) -> tuple[LedgerEntry, ...]:
    """The most valuable entries whose text is at most `limit_tokens`, in their order.

    The sections count in the order in which they are written; of each, the newest entries first.
    """
    left = 4 * limit_tokens + quarters("\n")  # the last line ends without one
    kept: set[int] = set()
    for section in _SECTIONS:
        frame = sum(quarters(f"{line}\n") for line in (section.opening, section.closing) if line)
        for at in range(len(ledger) - 1, -1, -1):
            if ledger[at]["kind"] not in section.kinds:
                continue
            size = frame + quarters(f"{_line(section, ledger[at])}\n")
            if size <= left:
                left, frame = left - size, 0
                kept.add(at)
    return tuple(entry for at, entry in enumerate(ledger) if at in kept)


def _section_text(section: _Section, ledger: Sequence[LedgerEntry]) -> str:
    lines = [_line(section, entry) for entry in ledger if entry["kind"] in section.kinds]
    return "\n".join(filter(None, [section.opening, *lines, section.closing])) if lines else ""


def _line(section: _Section, entry: LedgerEntry) -> str:
    text = _TAGS.sub("&lt;", " ".join(entry["text"].split()))
    if not section.handles or not entry["seqs"]:
        return f"- {text}"
    return f"- {text} (log:{entry['seqs'][-1]})"
