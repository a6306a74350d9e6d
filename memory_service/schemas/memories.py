"""Values of memories, search, index and operations: what each use case takes and gives, in process and on the wire.

Invariants: frozen; names are those of the public contract; a request with an unknown field is refused, an answer with
one is accepted, so that an older client works with a newer server.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.json_schema import SkipJsonSchema

from memory_service.errors import InvalidRequest

Source = Literal["memory", "sessions", "files"]
SearchMode = Literal["hybrid", "text", "vector"]
Origin = Literal["user", "agent", "tool"]
Order = Literal["score", "memory_first"]
OperationState = Literal["queued", "running", "done", "failed", "cancelled"]

DEFAULT_WORKSPACE = "default"
# In the document alone: what does not match is answered with what to do.
SESSION_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
MAX_QUERY_CHARS = 10_000
MAX_TEXT_CHARS = 100_000
MAX_LIMIT = 200
MAX_BUDGET_TOKENS = 200_000

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


def _written_day(given: object) -> object:
    """A day as it is written; pydantic would take a number for seconds since 1970."""
    if isinstance(given, dt.date) or (isinstance(given, str) and _DAY.fullmatch(given)):
        return given
    raise ValueError("a day is written as YYYY-MM-DD")


Day = Annotated[dt.date, BeforeValidator(_written_day), Field(strict=False)]
Since = Annotated[Day | None, Field(description="Only memories dated this day or later.", examples=["2026-11-01"])]
Until = Annotated[Day | None, Field(description="Only memories dated this day or earlier.", examples=["2026-11-30"])]
PathPrefix = Annotated[
    str, Field(max_length=512, description="Only files whose path begins so.", examples=["memory/2026-11"])
]
Sources = Annotated[list[Source], Field(description="Kinds of source to search; empty means all.")]
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
Degraded = Annotated[list[str], Field(description="Parts that were missing from this answer, each with the reason.")]


class Request(BaseModel):
    """A body that the API takes. A value of another type is refused, never converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


R = TypeVar("R", bound=BaseModel)


def checked(shape: type[R], **values: object) -> R:
    """A request with these values.

    Raises:
        InvalidRequest: It cannot hold one of them, as the server would answer.
    """
    plain = {
        name: list(value) if isinstance(value, tuple | set | frozenset) else value for name, value in values.items()
    }
    try:
        return shape.model_validate(plain)
    except ValidationError as error:
        name, reason = fault_in(error.errors()[0])
        raise InvalidRequest(f"The field {name!r} cannot be used: {reason}. Give another value.") from None


def fault_in(error: Mapping[str, Any]) -> tuple[str, str]:
    """The name of a field that pydantic refuses, and why in a clause, without the value."""
    reason = str(error["msg"]).removeprefix("Value error, ").rstrip(".")
    return ".".join(map(str, error["loc"])), f"{reason[:1].lower()}{reason[1:]}"


class Answer(BaseModel):
    """The answer of a use case, and a body of the API."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class NewMemory(Request):
    """Something to remember."""

    text: str = Field(
        min_length=1, max_length=MAX_TEXT_CHARS, examples=["Deploys go out on Tuesdays after the 10:00 stand-up."]
    )
    tags: list[str] = Field(default=[], max_length=16, description="Appended to the text as #tags.", examples=[["ops"]])
    date: Day | None = Field(
        default=None, description="The day it belongs to; today in the workspace's timezone unless given."
    )
    origin: Origin | None = Field(default=None, description="Who says so.")
    session_id: str | None = Field(
        default=None,
        description="The conversation it comes from.",
        examples=["support-42"],
        json_schema_extra={"pattern": SESSION_ID},
    )


class StoredMemory(Answer):
    """Where a memory was written. It is on disk and searchable when this arrives."""

    memory_id: str
    path: str
    start_line: int
    end_line: int
    duplicate: bool = Field(description="Whether the same text stood there already; nothing was written then.")
    # On the wire it is the header `Idempotency-Replayed`.
    replayed: SkipJsonSchema[bool] = Field(default=False, exclude=True)
    degraded: Degraded = []


class MemoryFile(Answer):
    """A memory file."""

    path: str
    bytes: int
    lines: int
    modified_at: dt.datetime
    etag: str


class MemoryFiles(Answer):
    """All memory files of a workspace, by path."""

    files: list[MemoryFile]


class FileText(Answer):
    """A range of lines of a memory file, exactly as they stand there."""

    path: str
    text: str
    start_line: int
    end_line: int
    total_lines: int
    next_start_line: int | None = Field(description="Where to go on reading; null at the end.")
    etag: str


class FileWrite(Request):
    """A whole file's new text."""

    text: str = Field(examples=["# What always holds\n\n- Never deploy on Fridays.\n"])


class WrittenFile(Answer):
    """A file that was written."""

    path: str
    etag: str | None = None
    degraded: Degraded = []


class Erased(Answer):
    """The proof of an erasure: what a look at the index shows after it."""

    passages: int = Field(description="How many passages are gone.")
    checked: list[str] = Field(description="Where they were looked for and not found.")


class ErasedFile(Answer):
    """A file that was erased, from the disk and from the index."""

    path: str
    erased: Erased | None = Field(default=None, description="None where the index could not be read.")
    degraded: Degraded = []


class ForgottenMemory(Answer):
    """An entry that was erased from its file and from the index."""

    memory_id: str
    path: str = Field(description="The first of `paths`.")
    paths: list[str] = Field(default=[], description="All files that held it.")
    erased: Erased | None = Field(default=None, description="None where the index could not be read.")
    degraded: Degraded = []


class SearchRequest(Request):
    """The query and the filters of a search."""

    query: QueryText
    limit: int = Field(default=6, ge=1, le=MAX_LIMIT)
    mode: SearchMode = "hybrid"
    sources: Sources = []
    path_prefix: PathPrefix = ""
    since: Since = None
    until: Until = None
    min_score: float | None = Field(default=None, description="Only results with at least this score.")
    min_relevance: MinRelevance = 0.0
    order: ResultOrder = "score"
    explain: bool = Field(default=False, description="Say what every signal added to each score.")
    history: bool = Field(default=False, description="Tell all values that the facts found have had, with their days.")


class Statement(Answer):
    """A value of a fact that changes, and where it stands."""

    path: str
    start_line: int
    end_line: int
    citation: str = Field(description="Path and lines in one word.", examples=["memory/2026-03-01.md#L7"])
    date: dt.date | None
    about: str = Field(description="The fact.", examples=["location (ana)"])
    text: str = Field(description="The passage; of a long one the beginning.")
    current: bool | None = Field(default=None, description="In a history: whether it holds now.")


class SearchResult(Answer):
    """A passage that was found."""

    path: str
    start_line: int
    end_line: int
    text: str = Field(description="The passage; of a long one the part that the question is about.")
    heading: list[str] = Field(description="Titles above it, outermost first.")
    date: dt.date | None
    source: Source
    score: float = Field(description="0 to 1, for the order within this answer only.")
    relevance: Relevance = None
    text_score: float = Field(description="Plain BM25; 0 where no word of the query occurs.")
    vector_score: float | None = Field(description="Cosine of query and passage; null without vectors.")
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

    results: list[SearchResult]
    mode: SearchMode = Field(description="What was really done.")
    degraded: Degraded = []
    took_ms: float


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
    sources: Sources = []
    path_prefix: PathPrefix = ""
    since: Since = None
    until: Until = None


class ReceiptItem(Answer):
    """A passage in a receipt."""

    path: str
    start_line: int
    end_line: int
    tokens: int
    score: float
    relevance: Relevance = None
    text_score: float
    vector_score: float | None
    replaced_by: str | None = Field(
        default=None,
        description="Where what holds now stands, if the passage states a value that was replaced since.",
        examples=["memory/2026-03-01.md#L7"],
    )


class OmittedItem(ReceiptItem):
    """A passage that stayed out, and why."""

    reason: str


class Receipt(Answer):
    """The record of what was put into a prompt and why."""

    receipt_id: str
    created_at: dt.datetime
    query: str
    budget_tokens: int
    tokens: int
    included: list[ReceiptItem]
    omitted: list[OmittedItem] = Field(description="The best of those that stayed out.")
    omitted_count: int
    reason: str = Field(description="Why the block is empty; empty where it is not.")
    cached_prefix_tokens: int | None = Field(
        default=None, description="Of a session's prompt: see there. Null where the block is of no session."
    )
    degraded: Degraded = []


class Context(Answer):
    """A block of memories for a prompt."""

    system_prompt: str = Field(description="The given system prompt with the block behind it.")
    block: str = Field(description="The block alone; empty when nothing fits.")
    tokens: int = Field(description="Size of the block with its wrapper; never over the budget.")
    receipt: Receipt
    degraded: Degraded = []


class ReindexRequest(Request):
    """The files to bring up to date."""

    full: bool = Field(
        default=False,
        description="Make the index anew, beside the one in use. Without paths, a change of model does the same.",
    )
    paths: list[str] = Field(default=[], max_length=10_000, description="Files or folders; empty means all.")


class OperationRef(Answer):
    """An operation that has begun."""

    operation_id: str


class FileFailure(Answer):
    """A file that could not be indexed, and why."""

    path: str
    reason: str


class ReindexReport(Answer):
    """The work of a reindex, counted in files; `embedded` counts passages."""

    added: int
    changed: int
    removed: int
    unchanged: int
    failed: list[FileFailure]
    embedded: int
    reused: int
    seconds: float
    degraded: Degraded = []


class Operation(Answer):
    """How far an operation is."""

    operation_id: str
    state: OperationState
    done: int = Field(description="Files done.")
    total: int = Field(description="Files to do.")
    rate: float = Field(description="Passages per second so far.")
    eta_seconds: float | None
    report: ReindexReport | None = None
    error: str | None = None


class ModelFingerprint(Answer):
    """The versions and models that an index was made with."""

    model: str
    dimensions: int
    rules: str
    schema_version: int


class Watching(Answer):
    """The state of watching: if what others change in the files is indexed without a search having to ask."""

    mode: Literal["events", "polling", "off"] = Field(
        description="By file events; by looks every few seconds, where there are none; or not at all."
    )
    reason: str = Field(default="", description="Why it is not by events.")


class Rebuild(Answer):
    """A new generation of the index that is being made beside the one in use, which answers meanwhile."""

    state: Literal["running", "interrupted", "outdated"] = Field(
        description="An interrupted one is gone on with by the next full reindex, an outdated one is deleted by it."
    )
    file: str
    files: int
    total_files: int
    share: float = Field(description="Share of the files that are done.")
    passages: int
    embedded: int
    bytes: int


class Status(Answer):
    """How a workspace stands."""

    workspace: str
    files: int
    passages: int
    embedded: int
    coverage: float = Field(description="Share of passages that have a vector, where a model is configured.")
    dirty: int = Field(description="Files changed since the last reindex.")
    failed: list[FileFailure]
    index_bytes: int
    updated_at: dt.datetime | None
    embedding_model: str
    fingerprint: ModelFingerprint | None
    current_fingerprint: ModelFingerprint
    timezone: str
    rebuild: Rebuild | None = Field(default=None, description="Where one runs, or was interrupted.")
    watching: Watching | None = Field(default=None, description="By the process that answers.")
    degraded: Degraded = []


class Workspaces(Answer):
    """Names of workspaces."""

    workspaces: list[str]


class Check(Answer):
    """One line of the doctor."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


class ErrorBody(Answer):
    """The error: what failed and what to do."""

    code: str
    message: str
    parts: dict[str, int] | None = Field(
        default=None, description="Of `incompressible`: what each part of the prompt takes, the largest first."
    )


class ErrorAnswer(Answer):
    """Every answer that is not a success."""

    error: ErrorBody


class Health(Answer):
    """The health of the server: if it lives, or is ready to serve."""

    status: Literal["ok", "unavailable"]
    degraded: Degraded = []


class Version(Answer):
    """The version that is running."""

    version: str
    embedding_model: str
