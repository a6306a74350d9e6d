"""Values that pass between the parts of the index, frozen.

Invariants: lines count from 1 and ranges include both ends; paths are relative to the workspace, with forward slashes;
a higher score is better; `date` is the day that a text speaks of, never a file time.
"""

from __future__ import annotations

import datetime as dt
import os
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What the paths of extra folders begin with, and no path of a workspace does.
EXTRA_MARK = "@"

SourceKind = Literal["memory", "sessions", "files"]
# Whose word a passage is.
Role = Literal["user", "agent", "assistant", "tool", "pasted", "file"]
# The order of roles: what one of a lower authority says neither replaces nor displaces the word of a higher one.
AUTHORITY: Mapping[Role, int] = {"user": 4, "agent": 3, "assistant": 2, "tool": 1, "pasted": 1, "file": 1}
# Roles by their numbers in an index, the highest authority first.
ROLES: tuple[Role, ...] = ("user", "agent", "assistant", "tool", "pasted", "file")
Mode = Literal["hybrid", "text", "vector"]
# In words, so that whoever needs no vectors loads no numpy.
Vectors: TypeAlias = "NDArray[np.float32]"

# Curated files at the top of a workspace: they never age.
EVERGREEN = ("MEMORY.md", "USER.md")


class Cue(IntFlag):
    """Properties of a passage's wording, found when it is indexed and used when it is ranked."""

    NONE = 0
    TIME = 1  # it has words of time: "yesterday", "last week", "5 May", "昨天"
    QUESTION = 2  # it asks something, and says little else
    ANSWER = 4  # it is short and follows a passage that asks something
    UNLATIN = 8  # it has letters, and no Latin ones
    ASKING = 16  # it is a message of a user that does nothing but ask, or ask for something


# Bits that the flags of a passage take in its marks, and the number of its role above them.
CUE_BITS = 5
ROLE_BITS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The unit that is indexed: a list item, a paragraph, a table row, a code block, or a message of a session.

    Attributes:
        start_line: First line of the passage in its file; of a message its `seq` in the log.
        end_line: Last line, inclusive.
        text: Text of the file without list marker, HTML comments and surrounding space; never empty.
        heading: Titles above it, outermost first: of the file, of its sections, labels of a group ("**Mia**", "Mia:"),
            list items that it stands below; for messages their day.
        opens_section: True for the first passage of a group: those with one heading; each row of a table is its own.
        date: The day it belongs to: from a date in a heading, else the name of the file or of its folders, else its
            front matter. Of a message: the date that it, or an earlier one, begins with, else the day of writing.
        label: The speaker, where several list items or messages of the file begin "Name: ".
        cues: See `Cue`.
        role: Whose word it is.
        noted: True for an entry that was noted through the service; its comment says whose word it is.
        written: The moment at which it was stated, to the millisecond. Of a message it is the moment of the log, in
            UTC, never a date in its words. Of a file it is the day, and the hour of the heading if it has one, of the
            workspace's own time zone, and has none itself; None for an undated file. An entry whose comment says when
            it was written has that moment, in UTC.
        tags: Its tags, folded, without `#`; those of the whole entry, of which it may be a part, and those of the front
            matter. Messages have none.
        columns: The first row of the table that it is a row of; empty for others.
    """

    start_line: int
    end_line: int
    text: str
    heading: tuple[str, ...] = ()
    opens_section: bool = False
    date: dt.date | None = None
    label: str | None = None
    cues: Cue = Cue.NONE
    role: Role = "user"
    noted: bool = False
    written: dt.datetime | None = None
    tags: tuple[str, ...] = ()
    columns: str = ""

    @property
    def authority(self) -> int:
        """Rank of its role; the user's own word has the highest."""
        return AUTHORITY[self.role]

    @property
    def marks(self) -> int:
        """Its cues, above them the number of its role, then one bit if it was noted: what a ranking knows of it."""
        return int(self.cues) | (ROLES.index(self.role) | self.noted << ROLE_BITS) << CUE_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRange:
    """Lines of a file, both ends included; of a session log the numbers of its messages."""

    path: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Restriction of a search, applied before ranking. Empty fields do not restrict.

    Attributes:
        sources: Kinds of source to find; empty means all.
        path_prefix: Beginning of the paths to find, in any Unicode form; it is held in NFC.
        since: First day; passages without a date are left out.
        until: Last day; passages without a date are left out.
        without: Ranges whose passages are left out, such as those that a prompt already shows.
        tags: Tags that a passage has to have, all of them, in upper case or lower; `ops/deploy` is one of `ops`, too.
    """

    sources: tuple[SourceKind, ...] = ()
    path_prefix: str = ""
    since: dt.date | None = None
    until: dt.date | None = None
    without: tuple[LineRange, ...] = ()
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tuple(map(fold_tag, self.tags)))
        object.__setattr__(self, "path_prefix", to_nfc(self.path_prefix))

    def reaches(self, source: SourceKind, path: str) -> bool:
        """True if passages of a file may pass, as far as its kind and its path tell."""
        if self.sources and source not in self.sources:
            return False
        return not self.path_prefix or to_nfc(path).startswith(self.path_prefix)

    def passes(self, source: SourceKind, path: str, passage: Passage) -> bool:
        """True if a passage of a file is not left out."""
        day = passage.date
        if not self.reaches(source, path):
            return False
        if ((self.since or self.until) and day is None) or not has_tags(passage.tags, self.tags):
            return False
        if day is not None and ((self.since and day < self.since) or (self.until and day > self.until)):
            return False
        return not any(
            out.path == path and out.start_line <= passage.start_line and passage.end_line <= out.end_line
            for out in self.without
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A value of a fact, and where it stands.

    Attributes:
        date: The day that it was said, or that it says it holds from; None if neither is known.
        text: The passage; of a long one the beginning.
        about: The fact, such as "location (ana)".
        current: In a history, True for what holds now; else None.
    """

    path: str
    start_line: int
    end_line: int
    date: dt.date | None
    text: str
    about: str
    current: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage found by a search.

    Attributes:
        ordinal: Position of the passage in its file, from 0; neighbours differ by 1.
        score: The rank score; comparable within one answer only.
        text_score: Plain BM25 of the passage; 0.0 where no word of the question occurs in it.
        vector_score: Cosine of question and passage; None without vectors.
        relevance: Probability that the passage bears on the question; None where it is not known.
        answers: Probability that it is one of the passages that answer; known where relevance is.
        snippet: The passage's text; of a long one the part that is nearest to the question.
        replaced_by: The statement that holds now, if this passage states a value that was replaced since.
        replaces: Earlier statements that this passage has replaced, the newest first.
        yields_to: Path and ordinal of the passages of higher authority that tell of the same thing, behind which this
            hit stands.
        history: All statements of the fact, oldest first; filled when it was asked for, at the first hit of each fact.
        signals: Share of each ranking signal in the score; filled when `explain` was asked for.
        memory_id: Id of the entry that the passage is of; None for none, and where whoever searches knows no entries.
        days: All days on which these words were written, its own among them, in order; empty for one day alone.
    """

    path: str
    source: SourceKind
    passage: Passage
    ordinal: int
    snippet: str
    score: float
    text_score: float
    vector_score: float | None
    relevance: float | None = None
    answers: float | None = None
    replaced_by: Statement | None = None
    replaces: tuple[Statement, ...] = ()
    yields_to: tuple[tuple[str, int], ...] = ()
    history: tuple[Statement, ...] = ()
    signals: dict[str, float] = field(default_factory=dict)
    memory_id: str | None = None
    days: tuple[dt.date, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResults:
    """Hits of a search, best first, and what it had to do without.

    Attributes:
        mode: The mode in effect: a hybrid search without vectors is a text search. It stays hybrid where the model
            cannot read the question's script and the words alone decide.
        degraded: Parts that were asked for and missing, each "part: why and what to do".
        unjudged: Why no hit has a relevance, as `degraded` says it; empty where they have.
        stages_ms: Duration of each stage, in their order.
    """

    hits: tuple[Hit, ...]
    mode: Mode
    degraded: tuple[str, ...] = ()
    unjudged: str = ""
    stages_ms: Mapping[str, float] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """Model, rules and schema that an index was built with. A different one means: rebuild.

    Attributes:
        model: The embedder's own fingerprint; empty for an index without vectors.
        dimensions: Length of its vectors; 0 without vectors.
        rules: Version of the passage rules and of the text analysis.
        schema: Version of the tables.
    """

    model: str
    dimensions: int
    rules: str
    schema: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFailure:
    """A file that could not be indexed. Passages that an earlier sync read from it stay searchable."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncProgress:
    """Progress of a sync in files, bytes and passages. Files and bytes are known from the start: the scan comes first.

    Attributes:
        passages: Passages stored so far, and those that got a vector that they lacked.
        path: The file at hand.
        total_passages: How many there will be: of the files that were read, and by their measure of the others.
    """

    done: int
    total: int
    done_bytes: int
    total_bytes: int
    passages: int
    path: str
    total_passages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """Result of a sync: numbers of files, and of passages newly embedded."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: tuple[FileFailure, ...] = ()
    embedded: int = 0
    reused: int = 0
    seconds: float = 0.0
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedPassages:
    """Result of an erasure, as checked afterwards.

    Attributes:
        passages: Number of erased passages.
        checked: Places that were searched for them.
        left: Places where some were still found.
    """

    passages: int
    checked: tuple[str, ...]
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingVectors:
    """Result of embedding the passages that were stored without a vector.

    Attributes:
        embedded: Number of passages that have a vector now.
        problems: Why others have none, each "vector: why and what to do".
        left: True if there are others.
        away: True if the model did not answer at all.
    """

    embedded: int = 0
    problems: tuple[str, ...] = ()
    left: bool = False
    away: bool = False


def to_nfc(text: str) -> str:
    """A text in the Unicode form NFC: paths and names are compared in it."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def fold_tag(tag: str) -> str:
    """A tag as it is compared, without `#`."""
    return to_nfc(tag.removeprefix("#")).casefold()


def has_tags(tags: Iterable[str], wanted_texts: Iterable[str]) -> bool:
    """True if all tags that are wanted are there; `ops/deploy` is one of `ops`, too."""
    there = tuple(tags)
    return all(any(tag == text or tag.startswith(f"{text}/") for tag in there) for text in wanted_texts)


def file_mode(folder: str | os.PathLike[str]) -> int:
    """Mode of a file that is made in a folder: whoever may not enter the folder may not read the file."""
    return 0o600 | 0o666 & os.stat(folder or ".").st_mode


def sync_file(descriptor: int) -> None:
    """Wait until an open file is on the disk; macOS leaves it in the drive's own memory unless it is asked for more.

    Source: macOS, fsync(2), "F_FULLFSYNC".
    """
    try:
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined, unused-ignore]
    except (ImportError, AttributeError, OSError):  # another system, or a drive that knows no such thing
        os.fsync(descriptor)


def short_path(path: str | Path) -> str:
    """Path of an index file for messages: its folder's name and its own, as messages may leave the machine."""
    return "/".join(Path(path).parts[-2:])
