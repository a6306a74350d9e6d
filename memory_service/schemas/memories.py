"""Values of memories, search and contexts: what each use case takes and gives, in process and on the wire.

Invariants: frozen; names are those of the public contract; a request with an unknown field is refused, an answer with
one is accepted, so that an older client works with a newer server.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from memory_service.schemas.base import (
    MAX_BUDGET_TOKENS,
    MAX_QUERY_CHARS,
    Answer,
    Degraded,
    PendingErasure,
    Proof,
    Request,
)
from memory_service.schemas.roles import EntryOrigin, SourceRole

Source = Literal["memory", "sessions", "files"]
SearchMode = Literal["hybrid", "text", "vector"]
Origin = Literal["user", "agent", "tool"]
Order = Literal["score", "memory_first"]

DEFAULT_WORKSPACE = "default"
MAX_TEXT_CHARS = 100_000
MAX_LIMIT = 200

QueryText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_QUERY_CHARS,
        description="The question, in plain words of any language.",
        examples=["when do we deploy?"],
    ),
]
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _written_day(given_value: object) -> object:
    """A day as it is written; pydantic would take a number for seconds since 1970."""
    if isinstance(given_value, dt.date) or (isinstance(given_value, str) and _DAY.fullmatch(given_value)):
        return given_value
    raise ValueError("a day is written as YYYY-MM-DD")


Day = Annotated[dt.date, BeforeValidator(_written_day), Field(strict=False)]
Since = Annotated[Day | None, Field(description="Only memories dated this day or later.", examples=["2026-11-01"])]
Until = Annotated[Day | None, Field(description="Only memories dated this day or earlier.", examples=["2026-11-30"])]
PathPrefix = Annotated[
    str, Field(max_length=512, description="Only files whose path begins so.", examples=["memory/2026-11"])
]
Sources = Annotated[
    list[Source], Field(description="Kinds of source to search: `memory`, `sessions`, `files`; empty means all.")
]
ResultOrder = Annotated[
    Order,
    Field(
        description="`score`: the best first, wherever it stands. `memory_first`: of the best, memories and files come "
        "before what was said in sessions, and have the budget first."
    ),
]
MinRelevance = Annotated[
    float,
    Field(ge=0, le=1, description="Leave out what is less relevant than this, from 0 (nothing) to 1.", examples=[0.1]),
]
MinGain = Annotated[
    float,
    Field(
        ge=0,
        le=100,
        description="Least chance of an answer that a passage adds for 100 tokens; 0 fills the budget.",
    ),
]
Relevance = Annotated[
    float | None,
    Field(description="Probability that the passage bears on the query; null where it is not known."),
]
SourcePath = Annotated[
    str,
    Field(
        description="The file, relative to the folder of the workspace; `@NAME/…` in an extra folder.",
        examples=["memory/2026-11-20.md"],
    ),
]
FirstLine = Annotated[
    int, Field(description="First of its lines in the file, from 1; in a session's log, its message's number.")
]
LastLine = Annotated[int, Field(description="Last of its lines in the file, included; in a log, as `start_line`.")]
Etag = Annotated[str, Field(description="Version of the file's content, without quotes; `If-Match` takes it back.")]
MemoryId = Annotated[
    str,
    Field(
        description="Id of the entry; `DELETE …/entries/{memory_id}` erases it, `PATCH` changes it.",
        examples=["m0123456789ab"],
    ),
]
OfEntry = Annotated[str | None, Field(description="Id of the entry that the passage is of; null where it is of none.")]
Tags = Annotated[
    list[str],
    Field(
        max_length=16,
        description="Only what has all of these tags, in upper case or lower; `ops/deploy` is one of `ops`, too.",
        examples=[["ops"]],
    ),
]
OperationName = Annotated[str, Field(description="Id to ask for progress with, at `GET …/operations/{operation_id}`.")]
PassageDate = Annotated[dt.date | None, Field(description="Day of the passage; null where it has none.")]
SourceKind = Annotated[
    Source,
    Field(description="`memory`: the memory files; `sessions`: what was said; `files`: those of extra folders."),
]
Score = Annotated[float, Field(description="0 to 1, for the order within this answer only.")]
TextScore = Annotated[float, Field(description="Plain BM25; 0 where no word of the query occurs.")]
VectorScore = Annotated[float | None, Field(description="Cosine of query and passage; null without vectors.")]


class MemoryFile(Answer):
    """A memory file."""

    path: SourcePath
    bytes: int = Field(description="Size of the file in bytes.")
    lines: int = Field(description="Number of lines.")
    modified_at: dt.datetime = Field(description="Time of its last change, in UTC.")
    etag: Etag


class MemoryFiles(Answer):
    """All memory files of a workspace, by path."""

    files: list[MemoryFile] = Field(description="The files, by path; an empty list where there are none.")


class FileText(Answer):
    """A range of lines of a memory file, exactly as they stand there."""

    path: SourcePath
    text: str = Field(description="The lines with their line ends, exactly as in the file.")
    start_line: FirstLine
    end_line: LastLine
    total_lines: int = Field(description="Number of lines of the whole file.")
    next_start_line: int | None = Field(description="Where to go on reading; null at the end.")
    etag: Etag


class FileVersion(Answer):
    """A content that a memory file had, until another one took its place."""

    version_id: str = Field(
        description="Id of the version; `GET …/memories/{path}?version=…` reads it.", examples=["1f2e3d4c5b6a7988"]
    )
    replaced_at: dt.datetime = Field(description="Time at which another content took its place, in UTC.")
    bytes: int = Field(description="Size of the version in bytes.")


class FileVersions(Answer):
    """The earlier versions of a memory file."""

    path: SourcePath
    has_history: bool = Field(
        description="Whether the storage keeps versions: a database does; for files in folders there is git."
    )
    versions: list[FileVersion] = Field(description="The versions, the last replaced first; at most 100, of 90 days.")


class ErasedVersions(Answer):
    """The earlier versions of a file that were erased; the file stays as it is."""

    path: SourcePath
    versions: int = Field(description="How many versions are gone.")
    pending: list[PendingErasure] = Field(default=[], description="Where a database still holds them, and until when.")


class FileWrite(Request):
    """A whole file's new text."""

    text: str = Field(
        description="The whole file, as Markdown.", examples=["# What always holds\n\n- Never deploy on Fridays.\n"]
    )


class WrittenFile(Answer):
    """A file that was written."""

    path: SourcePath
    etag: str | None = Field(default=None, description="Version of the new content, for the next `If-Match`.")
    degraded: Degraded = Field(default=[])


class ErasedFile(Answer):
    """A file that was erased, from the disk and from the index."""

    path: SourcePath
    erased: Proof = None
    degraded: Degraded = Field(default=[])


class SearchRequest(Request):
    """The query and the filters of a search."""

    query: QueryText
    limit: int = Field(default=6, ge=1, le=MAX_LIMIT, description="The most results.")
    mode: SearchMode = Field(
        default="hybrid", description="`text`: by words; `vector`: by meaning; `hybrid`: by both, in one ranking."
    )
    sources: Sources = Field(default=[])
    path_prefix: PathPrefix = ""
    tags: Tags = Field(default=[])
    since: Since = None
    until: Until = None
    min_score: float | None = Field(
        default=None, description="Only results with at least this score, 0 to 1; null for all."
    )
    min_relevance: MinRelevance = 0.0
    order: ResultOrder = "score"
    explain: bool = Field(default=False, description="Say in `signals` what every signal added to each score.")
    history: bool = Field(default=False, description="Tell all values that the facts found have had, with their days.")


class Statement(Answer):
    """A value of a fact that changes, and where it stands."""

    path: SourcePath
    start_line: FirstLine
    end_line: LastLine
    citation: str = Field(description="Path and lines in one word.", examples=["memory/2026-03-01.md#L7"])
    date: dt.date | None = Field(
        description="Day since which the value holds, or on which it was stated; null where neither is known."
    )
    about: str = Field(description="The fact whose value it is.", examples=["location (ana)"])
    text: str = Field(description="The passage; of a long one the beginning.")
    current: bool | None = Field(default=None, description="In a history: whether it holds now.")


class SearchResult(Answer):
    """A passage that was found."""

    path: SourcePath
    start_line: FirstLine
    end_line: LastLine
    text: str = Field(description="The passage; of a long one the part that the question is about.")
    heading: list[str] = Field(
        description="Titles, labels and list items above it, outermost first; of a row of a table see `columns`."
    )
    columns: str = Field(default="", description="The first row of the table that it is a row of; empty for others.")
    date: PassageDate
    days: list[dt.date] = Field(
        default=[], description="All days on which these words were written, where there are several, in order."
    )
    source: SourceKind
    role: SourceRole
    origin: EntryOrigin = None
    memory_id: OfEntry = None
    score: Score
    relevance: Relevance = None
    text_score: TextScore
    vector_score: VectorScore
    citation: str = Field(description="Path and lines in one word.", examples=["memory/2026-11-20.md#L14-L15"])
    signals: dict[str, float] | None = Field(
        default=None,
        description="With explain: what each signal added before the score was scaled; `current` is what a passage got "
        "for what holds now, to stand before what it has replaced.",
    )
    replaced_by: Statement | None = Field(
        default=None, description="What holds now, if the passage states a value that was replaced since."
    )
    replaces: list[Statement] = Field(default=[], description="What the passage has replaced, the newest first.")
    history: list[Statement] = Field(
        default=[], description="With history: all values of the fact, oldest first, at its first result."
    )


class SearchResults(Answer):
    """The memories that were found, best first; with `memory_first`, best first of each kind."""

    results: list[SearchResult] = Field(description="At most `limit` passages; an empty list where nothing was found.")
    mode: SearchMode = Field(description="What was really done.")
    degraded: Degraded = Field(default=[])
    took_ms: float = Field(description="Time that the search took, in milliseconds.")


class ContextRequest(Request):
    """The subject of the prompt, and how much room there is."""

    query: QueryText
    system_prompt: str = Field(default="", max_length=1_000_000, description="The block is appended to it.")
    budget_tokens: int = Field(
        default=2000, ge=0, le=MAX_BUDGET_TOKENS, description="Most tokens of the block with its wrapper."
    )
    min_relevance: MinRelevance = 0.0
    min_gain: MinGain = 0.0
    order: ResultOrder = "score"
    sources: Sources = Field(default=[])
    path_prefix: PathPrefix = ""
    tags: Tags = Field(default=[])
    since: Since = None
    until: Until = None


class ReceiptItem(Answer):
    """A passage in a receipt."""

    path: SourcePath
    start_line: FirstLine
    end_line: LastLine
    tokens: int = Field(description="Size of its text in tokens, without the wrapper of the block.")
    role: SourceRole = "user"
    origin: EntryOrigin = None
    memory_id: OfEntry = None
    score: Score
    relevance: Relevance = None
    text_score: TextScore
    vector_score: VectorScore
    replaced_by: str | None = Field(
        default=None,
        description="Where what holds now stands, if the passage states a value that was replaced since.",
        examples=["memory/2026-03-01.md#L7"],
    )


class OmittedItem(ReceiptItem):
    """A passage that stayed out, and why."""

    reason: str = Field(
        description="Why it stayed out, in words: the budget, its relevance, its gain, or what it repeats."
    )


class Receipt(Answer):
    """The record of what was put into a prompt and why."""

    receipt_id: str = Field(description="Id to read this receipt again with, at `GET …/receipts/{receipt_id}`.")
    created_at: dt.datetime = Field(description="Time of the search, with its time zone.")
    query: str = Field(description="The question that was searched for.")
    budget_tokens: int = Field(description="Most tokens that the block might have.")
    tokens: int = Field(description="Size of the block with its wrapper, in tokens; 0 for an empty block.")
    included: list[ReceiptItem] = Field(description="The passages of the block.")
    omitted: list[OmittedItem] = Field(description="The best of those that stayed out.")
    omitted_count: int = Field(
        description="Number of passages that were found and stayed out, those that `omitted` does not show included."
    )
    reason: str = Field(description="Why the block is empty; empty where it is not.")
    cached_prefix_tokens: int | None = Field(
        default=None, description="Of a session's prompt: see there. Null where the block is of no session."
    )
    session_id: str | None = Field(
        default=None, description="The session whose prompt it is of, as it was stored; null for none."
    )
    degraded: Degraded = Field(default=[])


class ReceiptList(Answer):
    """Receipts, the newest first."""

    receipts: list[Receipt] = Field(description="At most `limit` receipts; an empty list where there are none.")


class ChangedFact(Answer):
    """A fact that had several values."""

    about: str = Field(description="The fact whose values they are.", examples=["location (ana)"])
    values: list[Statement] = Field(description="Its values, oldest first; `current` is true of what holds now.")


class ChangedFacts(Answer):
    """The facts of the memory files that had several values."""

    facts: list[ChangedFact] = Field(description="At most `limit` facts, the last changed first.")


class Distinction(Request):
    """Two statements that are taken for values of one fact, and are not."""

    first: str = Field(
        min_length=1, max_length=1_000, description="Words of the one.", examples=["Ana lives in Lisbon"]
    )
    second: str = Field(
        min_length=1, max_length=1_000, description="Words of the other.", examples=["Ana moved to Porto"]
    )


class Context(Answer):
    """A block of memories for a prompt."""

    system_prompt: str = Field(description="The given system prompt with the block behind it.")
    block: str = Field(description="The block alone; empty when nothing fits.")
    tokens: int = Field(description="Size of the block with its wrapper; never over the budget.")
    receipt: Receipt = Field(description="What stands in the block, what stayed out, and why.")
    degraded: Degraded = Field(default=[])


class ErrorBody(Answer):
    """The error: what failed and what to do."""

    code: str = Field(
        description="Stable name of the kind of error, for programs, such as `not_found` or `invalid_request`."
    )
    message: str = Field(description="What failed and what to do, for people; its wording may change.")
    parts: dict[str, int] | None = Field(
        default=None, description="Of `incompressible`: what each part of the prompt takes, the largest first."
    )


class ErrorAnswer(Answer):
    """Every answer that is not a success."""

    error: ErrorBody = Field(description="The kind of error, and what to do.")
