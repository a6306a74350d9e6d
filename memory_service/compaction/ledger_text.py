"""The ledger as text, within a number of tokens. Pure.

Invariants: one line for each entry in a prompt, so that none can open a section of its own or close a frame; what fits
is counted as `count_tokens` counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indexer.common import lazy_regex
from indexer.language import ornament
from memory_service.compaction.todos import is_open_todo
from memory_service.messages.sizes import quarters
from memory_service.schemas.compaction import LedgerEntry
from memory_service.text.frames import escape_frames
from memory_service.text.statements import (
    is_standing,
)
from memory_service.text.texts import ENGLISH, Texts

# How a command ended, as `_calls` writes it.
_OUTCOME = lazy_regex(r" \((?:exit (?P<code>-?\d{1,5})|failed)\)\Z")


def _in_words(entry: LedgerEntry, texts: Texts) -> str:
    """The text of an entry, with the words that code put into it in a language."""
    text = escape_frames(entry.text)
    if entry.kind in ("decision", "promise"):
        role = next((role for role, label in ENGLISH.roles.items() if text.startswith(label)), None)
        return texts.roles[role] + text.removeprefix(ENGLISH.roles[role]) if role else text
    if entry.kind == "command":
        match = _OUTCOME.search(text)
        outcome = texts.pruned["exit"].format(code=match["code"]) if match and match["code"] else texts.failed
        return text[: match.start()] + texts.outcome.format(outcome=outcome) if match else text
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """A part of the text; its kinds stand in the order in which they are wanted most."""

    kinds: tuple[str, ...]
    tag: str = ""
    handles: bool = True
    share: float = 1.0

    def opening(self, texts: Texts) -> str:
        """Tag or heading that the part begins with."""
        return f"<{self.tag}>" if self.tag else f"## {texts.ledger[self.kinds[0]]}"

    @property
    def closing(self) -> str:
        """Tag that it ends with; empty behind a heading."""
        return f"</{self.tag}>" if self.tag else ""


# The most wanted first: what the user may not have to say twice, then what cannot be looked up elsewhere.
_SECTIONS = (
    _Section(kinds=("todo",), handles=False, share=0.6),
    _Section(kinds=("rule",), share=0.5),
    _Section(kinds=("decision",), share=0.15),
    _Section(kinds=("answer",), share=0.15),
    _Section(kinds=("ask",), share=0.1),
    _Section(kinds=("promise",), share=0.2),
    _Section(kinds=("confirmation",), share=0.05),
    _Section(tag="modified-files", kinds=("file_modified",), handles=False, share=0.5),
    _Section(kinds=("name", "fact")),
    _Section(kinds=("failure",)),
    _Section(kinds=("command",)),
    _Section(tag="exact-identifiers", kinds=("id", "url", "path", "number", "date")),
    _Section(tag="read-files", kinds=("file_read",), handles=False),
)


def render_ledger(ledger: Sequence[LedgerEntry], texts: Texts = ENGLISH) -> str:
    """A ledger as Markdown; empty for an empty one, and without kinds that it does not know."""
    sections = [_section_text(section, ledger, texts) for section in _SECTIONS]
    return "\n".join(filter(None, sections))


def fit_ledger(ledger: Sequence[LedgerEntry], limit_tokens: int, texts: Texts = ENGLISH) -> tuple[LedgerEntry, ...]:
    """The most valuable entries whose text is at most `limit_tokens`, in their order.

    The sections count in the order in which they are written; of each the newest entries come first, of rules those
    that always hold; none takes more than its share before the others had theirs.
    """
    whole = left = 4 * limit_tokens + quarters("\n")  # the last line ends without one
    kept_numbers: set[int] = set()
    opened_texts: set[tuple[str, ...]] = set()
    sized_values = {section.kinds: _entry_sizes(section, ledger, texts) for section in _SECTIONS}
    shared_pairs = ((section, section.share) for section in _SECTIONS if section.share < 1)
    for section, share in (*shared_pairs, *((section, 1.0) for section in _SECTIONS)):
        room = whole * share
        for at, line in sized_values[section.kinds]:
            size = line if section.kinds in opened_texts else line + _frame(section, texts)
            if at not in kept_numbers and size <= min(left, room):
                left, room = left - size, room - size
                kept_numbers.add(at)
                opened_texts.add(section.kinds)
    return tuple(entry for at, entry in enumerate(ledger) if at in kept_numbers)


def _entry_sizes(section: _Section, ledger: Sequence[LedgerEntry], texts: Texts) -> list[tuple[int, int]]:
    """The places of a section's entries, the most wanted first, with the size of their lines."""
    places = [at for at in range(len(ledger) - 1, -1, -1) if ledger[at].kind in section.kinds]
    if "todo" in section.kinds:
        # In the order of the list, what is done last.
        places.sort(key=lambda at: (not is_open_todo(ledger[at]), at))
    if "rule" in section.kinds:
        # What always holds is not overtaken by what was said of one thing.
        places.sort(key=lambda at: not ornament("statements", False, is_standing, ledger[at].text))
    return [(at, quarters(f"{_line(section, ledger[at], texts)}\n")) for at in places]


def _frame(section: _Section, texts: Texts) -> int:
    return sum(quarters(f"{line}\n") for line in (section.opening(texts), section.closing) if line)


def _section_text(section: _Section, ledger: Sequence[LedgerEntry], texts: Texts) -> str:
    lines = [_line(section, entry, texts) for entry in ledger if entry.kind in section.kinds]
    return "\n".join(filter(None, [section.opening(texts), *lines, section.closing])) if lines else ""


def _line(section: _Section, entry: LedgerEntry, texts: Texts) -> str:
    text = " ".join(_in_words(entry, texts).split())
    if not section.handles or not entry.seqs:
        return f"- {text}"
    return f"- {text} (log:{entry.seqs[-1]})"
