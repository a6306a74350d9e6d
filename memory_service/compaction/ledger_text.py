"""Owns how a ledger looks in a prompt, and which of it fits.

Invariants: pure; one line for each entry, so that none can open a section of its own or close a frame; the same
ledger gives the same bytes; what fits is counted exactly as `count_tokens` counts the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.compaction.statements import is_standing
from memory_service.sessions.records import LedgerEntry
from memory_service.text.frames import escaped
from memory_service.tokens import quarters


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """A part of the text; its kinds stand in the order in which they are wanted most."""

    opening: str
    kinds: tuple[str, ...]
    closing: str = ""
    handles: bool = True
    share: float = 1.0


# The most wanted first: what the user may not have to say twice, then what cannot be looked up elsewhere.
_SECTIONS = (
    _Section(opening="## Rules", kinds=("rule",), share=0.5),
    _Section(opening="## Decisions", kinds=("decision",), share=0.15),
    _Section(opening="## Open asks", kinds=("ask",), share=0.1),
    _Section(opening="## Promises and deadlines", kinds=("promise",), share=0.2),
    _Section(opening="## Confirmations", kinds=("confirmation",), share=0.05),
    _Section(opening="## Names", kinds=("name", "fact")),
    _Section(opening="## Tool Failures", kinds=("failure",)),
    _Section(opening="<modified-files>", kinds=("file_modified",), closing="</modified-files>", handles=False),
    _Section(opening="## Commands", kinds=("command",)),
    _Section(
        opening="<exact-identifiers>", kinds=("id", "url", "path", "number", "date"), closing="</exact-identifiers>"
    ),
    _Section(opening="<read-files>", kinds=("file_read",), closing="</read-files>", handles=False),
)


def rendered(ledger: Sequence[LedgerEntry]) -> str:
    """A ledger as Markdown; empty for an empty one, and without kinds that it does not know."""
    sections = [_section_text(section, ledger) for section in _SECTIONS]
    return "\n".join(filter(None, sections))


def fitted(ledger: Sequence[LedgerEntry], limit_tokens: int) -> tuple[LedgerEntry, ...]:
    """The most valuable entries whose text is at most `limit_tokens`, in their order.

    The sections count in the order in which they are written, of each the newest entries first, of rules
    those that always hold; none takes more than
    its share before the others had theirs.
    """
    whole = left = 4 * limit_tokens + quarters("\n")  # the last line ends without one
    kept: set[int] = set()
    opened: set[str] = set()
    sized = {section.opening: _sized(section, ledger) for section in _SECTIONS}
    shared = ((section, section.share) for section in _SECTIONS if section.share < 1)
    for section, share in (*shared, *((section, 1.0) for section in _SECTIONS)):
        room = whole * share
        for at, line in sized[section.opening]:
            size = line if section.opening in opened else line + _frame(section)
            if at not in kept and size <= min(left, room):
                left, room = left - size, room - size
                kept.add(at)
                opened.add(section.opening)
    return tuple(entry for at, entry in enumerate(ledger) if at in kept)


def _sized(section: _Section, ledger: Sequence[LedgerEntry]) -> list[tuple[int, int]]:
    """The places of a section's entries, the most wanted first, with the size of their lines."""
    places = [at for at in range(len(ledger) - 1, -1, -1) if ledger[at]["kind"] in section.kinds]
    if "rule" in section.kinds:
        # What always holds is not overtaken by what was said of one thing.
        places.sort(key=lambda at: not is_standing(ledger[at]["text"]))
    return [(at, quarters(f"{_line(section, ledger[at])}\n")) for at in places]


def _frame(section: _Section) -> int:
    return sum(quarters(f"{line}\n") for line in (section.opening, section.closing) if line)


def _section_text(section: _Section, ledger: Sequence[LedgerEntry]) -> str:
    lines = [_line(section, entry) for entry in ledger if entry["kind"] in section.kinds]
    return "\n".join(filter(None, [section.opening, *lines, section.closing])) if lines else ""


def _line(section: _Section, entry: LedgerEntry) -> str:
    text = " ".join(escaped(entry["text"]).split())
    if not section.handles or not entry["seqs"]:
        return f"- {text}"
    return f"- {text} (log:{entry['seqs'][-1]})"
