"""The sections and lines of a summary made by rules: writing them, and reading those of an earlier summary.

Invariants: pure; linear; reading what was written gives the same lines; a summary that a model wrote is read too: the
headings that are known by another name go to their section, whatever else it says to the facts, word for word.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from indexer.common import lazy_regex
from memory_service.messages.sizes import quarters
from memory_service.text.phrases import is_nothing, subject_of
from memory_service.text.sentences import Voice, split_text
from memory_service.text.texts import ENGLISH, Texts, in_every_language, names_in_every_language

_T = TypeVar("_T")


class Section(Enum):
    """The sections in their order; the value is the name of the heading in each table of texts."""

    GOAL = "GOAL"
    RULES = "RULES"
    DECISIONS = "DECISIONS"
    DONE = "DONE"
    PLANS = "PLANS"
    FAILED = "FAILED"
    OPEN = "OPEN"
    FACTS = "FACTS"
    CONTEXT = "CONTEXT"
    TURN = "TURN"


USER, ASSISTANT, TOOL = "User", "Assistant", "Tool"
# What a user's message quotes, or shows of a page.
QUOTED = "Quoted"
LATEST = "User, latest"
_VOICES: dict[str, Voice] = {USER: "user", LATEST: "user", ASSISTANT: "assistant", TOOL: "tool", QUOTED: "tool"}

# Longer than any line that is written here: a sentence, its speaker, its handle.
OWN_CHARS = 400
# An earlier summary that is longer is no summary; of it the beginning and the end are read.
_MAX_CHARS = 48_000

_HEADING = lazy_regex(r"#{1,6}[ \t]+(\S.*)|\*\*([^*]{1,60})\*\*:?[ \t]*$")
_SECTIONS = {text: Section[name] for text, name in names_in_every_language("headings").items()}
_SPEAKERS = names_in_every_language("speakers")
_MEDIA = names_in_every_language("media")
# The longest first: the one begins with the other.
_OWN = lazy_regex(
    f"(?:({'|'.join(sorted(_SPEAKERS, key=len, reverse=True))})((?: \\[\\w+\\])*)"
    f"(?:{'|'.join(in_every_language('said'))}))?(.*?)"
    r"(?: \(log:(\d{1,18})(?:, (\d{4}-\d\d-\d\d))?\))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryLine:
    """One line of a summary.

    Attributes:
        text: What was said.
        label: Who said it; empty if the words tell it, or nobody knows.
        media: What came with it, such as `[image]`; in English, whatever language the line is written in.
        seq: The message; 0 if it is not known.
        day: When, as `YYYY-MM-DD`; empty if that is not known or of no matter.
        place: Its place in the message, or in the earlier summary.
        score: What it is worth against other lines.
        carried: Whether an earlier summary had it.
    """

    section: Section
    text: str
    label: str = ""
    media: str = ""
    seq: int = 0
    day: str = ""
    place: int = 0
    score: float = 0.0
    carried: bool = False

    @property
    def voice(self) -> Voice:
        """Whose words it has; the user's if that is not known."""
        return _VOICES.get(self.label, "user")

    def render(self, texts: Texts) -> str:
        """The line as it is written in a language."""
        media = "".join(f" {texts.media.get(label, label)}" for label in self.media.split()) if self.label else ""
        handle = f" (log:{self.seq}{', ' + self.day if self.day else ''})" if self.seq else ""
        speaker = f"{texts.speakers.get(self.label, self.label)}{media}{texts.said}" if self.label else ""
        return f"- {speaker}{self.text}{handle}"

    @property
    def purpose(self) -> str:
        """Purpose of the line; within one purpose a text stands once.

        That an ask waits is news even where the goal quotes it, and a rule stays one if it is all that was said.
        """
        if self.section in (Section.RULES, Section.DECISIONS):
            return "binding"
        return "open" if self.section is Section.OPEN else "told"

    def size(self, texts: Texts) -> int:
        """Size with its line break, in quarters of a token."""
        return quarters(self.render(texts)) + 1


def heading_size(section: Section, texts: Texts) -> int:
    """Size of a heading with the empty line before it, in quarters of a token."""
    return quarters(texts.headings[section.value]) + len("## \n\n")


def render_summary(lines: Iterable[SummaryLine], texts: Texts = ENGLISH) -> str:
    """The lines as Markdown, by section, in the order of their messages."""
    blocks: dict[Section, list[SummaryLine]] = {section: [] for section in Section}
    for line in lines:
        blocks[line.section].append(line)
    return "\n\n".join(
        "\n".join([f"## {texts.headings[section.value]}", *(line.render(texts) for line in sorted(block, key=_order))])
        for section, block in blocks.items()
        if block
    )


def _order(line: SummaryLine) -> tuple[bool, int, int]:
    return line.label == LATEST, line.seq, line.place


def parse_summary(text: str) -> list[SummaryLine]:
    """The lines of an earlier summary, whoever wrote it."""
    lines: list[SummaryLine] = []
    section = Section.FACTS
    if len(text) > _MAX_CHARS:
        text = f"{text[: _MAX_CHARS // 2]}\n{text[-_MAX_CHARS // 2 :]}"
    for raw in text.splitlines():
        bare = raw.strip()
        heading = _HEADING.fullmatch(bare)
        if heading is not None:
            section = _section_of(heading[1] or heading[2])
        elif bare and not is_nothing(bare):
            lines += _read_line(bare, section, len(lines))
    return lines


def _section_of(heading: str) -> Section:
    return _SECTIONS.get(heading.strip()) or Section[subject_of(heading) or "FACTS"]


def _read_line(bare: str, section: Section, place: int) -> Iterator[SummaryLine]:
    own = _OWN.fullmatch(bare[2:]) if bare.startswith("- ") and len(bare) <= OWN_CHARS else None
    if own is not None:
        yield SummaryLine(
            section=section,
            label=_SPEAKERS[own[1]] if own[1] else "",
            media=" ".join(_MEDIA.get(label, label) for label in (own[2] or "").split()),
            text=own[3].strip(),
            seq=int(own[4] or 0),
            day=own[5] or "",
            place=place,
            carried=True,
        )
        return
    for offset, piece in enumerate(split_text(bare)):
        if not is_nothing(piece):
            yield SummaryLine(section=section, text=piece, place=place + offset, carried=True)


def unique(items: Iterable[tuple[Hashable, _T]]) -> list[_T]:
    """First item of each key."""
    seen_values: dict[Hashable, _T] = {}
    for key, item in items:
        seen_values.setdefault(key, item)
    return list(seen_values.values())


# What stays although the request below says it: what the talk is about, and what binds.
_REPEATED_IN = frozenset({Section.OPEN, Section.TURN, Section.FACTS, Section.PLANS, Section.DONE, Section.FAILED})


def folded_line(text: str) -> str:
    """A text as its sentences are compared: on one line, in lower case."""
    return " ".join(text.split()).lower()


def without_repeated(summary: str, request: str, request_seq: int) -> str:
    """A summary without the lines that the request below it says in full; a heading with nothing below it goes, too.

    Args:
        summary: As rules write it; other lines stay.
        request: The words of the request.
        request_seq: The number of its message.
    """
    asked_line, handle = folded_line(request), f" (log:{request_seq}"
    kept_texts: list[str] = []
    section = Section.FACTS
    for raw in summary.split("\n"):
        heading = _HEADING.fullmatch(raw)
        if heading is not None:
            section = _section_of(heading[1] or heading[2])
            if kept_texts and _HEADING.fullmatch(kept_texts[-1]):
                kept_texts.pop()
        own = _OWN.fullmatch(raw[2:]) if handle in raw and section in _REPEATED_IN and raw.startswith("- ") else None
        if own is None or not own[1] or folded_line(own[3]) not in asked_line:
            if not raw and kept_texts and _HEADING.fullmatch(kept_texts[-1]):
                kept_texts.pop()
            elif raw or (kept_texts and kept_texts[-1]):
                kept_texts.append(raw)
    return "\n".join(kept_texts[:-1] if kept_texts and _HEADING.fullmatch(kept_texts[-1]) else kept_texts).rstrip("\n")
