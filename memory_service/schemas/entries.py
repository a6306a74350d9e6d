"""Values of entries: something to remember, an entry that is listed or changed, and what is forgotten.

Invariants: those of `memory_service.schemas.memories`; what was erased is not told again.
"""

from __future__ import annotations

import datetime as dt

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from memory_service.schemas.base import MAX_QUERY_CHARS, SESSION_ID, Answer, Degraded, Proof, Request
from memory_service.schemas.memories import MAX_TEXT_CHARS, Day, FirstLine, LastLine, MemoryId, Origin, SourcePath
from memory_service.schemas.roles import EntryOrigin, SourceRole

MAX_LISTED = 500
_MAX_PLACE_CHARS = 1_000


class NewMemory(Request):
    """Something to remember."""

    text: str = Field(
        min_length=1,
        max_length=MAX_TEXT_CHARS,
        description="What to remember, as Markdown; it is written as a list item.",
        examples=["Deploys go out on Tuesdays after the 10:00 stand-up."],
    )
    tags: list[str] = Field(default=[], max_length=16, description="Appended to the text as #tags.", examples=[["ops"]])
    date: Day | None = Field(
        default=None,
        description="The day it belongs to, as YYYY-MM-DD; today in the setting `timezone` unless given.",
        examples=["2026-11-20"],
    )
    origin: Origin | None = Field(
        default=None, description="Who says so: `user`, `agent` or `tool`; null where it does not matter."
    )
    session_id: str | None = Field(
        default=None,
        description="The conversation it comes from.",
        examples=["support-42"],
        json_schema_extra={"pattern": SESSION_ID},
    )


class StoredMemory(Answer):
    """Where a memory was written. It is on disk and searchable when this arrives."""

    memory_id: MemoryId
    path: SourcePath
    start_line: FirstLine
    end_line: LastLine
    duplicate: bool = Field(description="Whether the same text stood there already; nothing was written then.")
    # On the wire it is the header `Idempotency-Replayed`.
    replayed: SkipJsonSchema[bool] = Field(default=False, exclude=True)
    degraded: Degraded = Field(default=[])


class MemoryEntry(Answer):
    """An entry of a memory file."""

    memory_id: MemoryId
    path: SourcePath
    start_line: FirstLine
    end_line: LastLine
    citation: str = Field(description="Path and lines in one word.", examples=["memory/2026-11-20.md#L14"])
    text: str = Field(description="What it says, with its tags.")
    tags: list[str] = Field(description="Its tags, in lower case, without `#`.")
    date: dt.date | None = Field(description="Day of the file that it stands in; null where that has none.")
    role: SourceRole
    origin: EntryOrigin = None
    session_id: str | None = Field(default=None, description="The conversation that it comes from; null for none.")
    first_seq: int | None = Field(
        default=None, description="Number of the first message of it that it was taken from; null for none."
    )
    last_seq: int | None = Field(default=None, description="Number of the last one; null for none.")
    written_at: dt.datetime | None = Field(
        default=None, description="Time at which it was noted, in UTC; null where its comment does not say."
    )
    etag: str = Field(description="Version of its text, without quotes; `If-Match` of a change takes it back.")


class ChangedEntry(MemoryEntry):
    """An entry that was changed, as it is now: on disk, and found by its new text."""

    degraded: Degraded = Field(default=[])


class MemoryEntries(Answer):
    """Entries, those of the newest day first and there the last one; then those of files without a day."""

    entries: list[MemoryEntry] = Field(description="At most `limit` entries; an empty list where there are none.")
    next_cursor: str | None = Field(description="What to send as `cursor` to read on; null at the end.")


class EntryChange(Request):
    """A change of an entry; what is not sent stays."""

    text: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_TEXT_CHARS,
        description="What it says from now on. A text without tags at its end keeps those of the entry.",
        examples=["Deploys go out on Wednesdays after the 10:00 stand-up."],
    )
    tags: list[str] | None = Field(
        default=None, max_length=16, description="The tags at its end, instead of those that it has."
    )
    origin: Origin | None = Field(
        default=None,
        description="Who changes it; null means the user. Words of a higher authority cannot be changed.",
    )


class ForgetRequest(Request):
    """A memory to forget, named by `memory` or by `query`, not both."""

    memory: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_PLACE_CHARS,
        description="Id of an entry; or where it stands, as a result cites it: `memory/2026-11-20.md#L14-L15`, a whole "
        "file, or a message of a session, `sessions/support-42.jsonl#L12`. An entry goes whole.",
        examples=["memory/2026-11-20.md#L14"],
    )
    query: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_QUERY_CHARS,
        description="Words that stand in one memory alone, in upper case or lower. Where several have them, or none, "
        "nothing is erased: `dry_run` shows which come into question.",
    )
    dry_run: bool = Field(default=False, description="Erase nothing, show what would go.")


class Removal(Answer):
    """An entry, lines or a message that goes, or is gone."""

    memory_id: str | None = Field(default=None, description="Id of the entry; null for lines that are of none.")
    path: SourcePath
    citation: str = Field(description="Path and lines in one word.", examples=["memory/2026-11-20.md#L14"])
    role: SourceRole
    text: str | None = Field(default=None, description="What it says; null once it is erased.")


class ForgottenMemory(Answer):
    """Memories that were erased from their files and from the index, or would be."""

    memory_id: str | None = Field(default=None, description="Id of the entry, where it is one.")
    path: str = Field(default="", description="The first of `paths`; empty where nothing goes.")
    paths: list[str] = Field(default=[], description="All files that held it.")
    removed: list[Removal] = Field(
        default=[], description="What is gone, as it stood; in a dry run what would go, or what comes into question."
    )
    dry_run: bool = Field(default=False, description="Whether nothing was erased.")
    named: int | None = Field(
        default=None,
        description="In a dry run by words: how many memories have these words. Only where it is 1 something would go; "
        "where it is 0, `removed` is what a search finds for the words. Else null.",
    )
    erased: Proof = None
    degraded: Degraded = Field(default=[])
