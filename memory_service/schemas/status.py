"""Values of the index and of the server: reindexing and its operations, status, checks, workspaces, version.

Invariants: those of the values of memories.
"""

from __future__ import annotations

import datetime as dt
from typing import Literal

from pydantic import Field

from memory_service.schemas.base import Answer, Degraded, Request
from memory_service.schemas.memories import OperationName, SourcePath

OperationState = Literal["queued", "running", "done", "failed", "cancelled"]


class ReindexRequest(Request):
    """The files to bring up to date."""

    full: bool = Field(
        default=False,
        description="Make the index anew, beside the one in use. Without paths, a change of model does the same.",
    )
    paths: list[str] = Field(default=[], max_length=10_000, description="Files or folders; empty means all.")


class OperationRef(Answer):
    """An operation that has begun."""

    operation_id: OperationName


class FileFailure(Answer):
    """A file that could not be indexed, and why."""

    path: SourcePath
    reason: str = Field(description="What went wrong with the file, in words.")


class ReindexReport(Answer):
    """The work of a reindex, counted in files; `embedded` counts passages."""

    added: int = Field(description="Files that are new in the index.")
    changed: int = Field(description="Files whose content had changed.")
    removed: int = Field(description="Files that are gone from the disk and now from the index.")
    unchanged: int = Field(description="Files that were as the index has them.")
    failed: list[FileFailure] = Field(description="Files that could not be read; what the index had of them stays.")
    embedded: int = Field(description="Passages for which the model computed a vector.")
    reused: int = Field(description="Passages that got the vector of an equal text that was embedded before.")
    seconds: float = Field(description="Time that the work took, in seconds.")
    degraded: Degraded = Field(default=[])


class Operation(Answer):
    """How far an operation is."""

    operation_id: OperationName
    state: OperationState = Field(description="`queued`, `running`, or how it ended: `done`, `failed` or `cancelled`.")
    done: int = Field(description="Number of passages stored so far.")
    total: int = Field(description="Number of passages to store, judged by what was read so far.")
    rate: float = Field(description="Passages per second so far.")
    eta_seconds: float | None = Field(
        description="Estimated seconds until the end; null while there is nothing to estimate from."
    )
    report: ReindexReport | None = Field(default=None, description="What was done; null until `state` is `done`.")
    error: str | None = Field(
        default=None, description="Why it ended early, in words; null unless it failed or was cancelled while it ran."
    )
    created_at: dt.datetime | None = Field(
        default=None, description="Time at which it was asked for; null where an earlier version began it."
    )

    @property
    def is_open(self) -> bool:
        """True until it has ended."""
        return self.state in ("queued", "running")


class OperationList(Answer):
    """The operations of a workspace."""

    operations: list[Operation] = Field(description="Those of the last day, of every process; the newest first.")


class ModelFingerprint(Answer):
    """The versions and models that an index was made with."""

    model: str = Field(description="Name and version of the embedding model; empty without vectors.")
    dimensions: int = Field(description="Length of its vectors; 0 without vectors.")
    rules: str = Field(description="Version of the rules that split files into passages and words.")
    schema_version: int = Field(description="Version of the tables of the index.")


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
    file: str = Field(description="Name of the file that is being built.")
    files: int = Field(description="Number of files that it holds so far.")
    total_files: int = Field(description="Number of files that it will hold.")
    share: float = Field(description="Share of the files that are done, 0 to 1.")
    passages: int = Field(description="Number of passages that it holds so far.")
    embedded: int = Field(description="Number of these passages that have a vector.")
    bytes: int = Field(description="Size so far, in bytes.")


class Status(Answer):
    """How a workspace stands."""

    workspace: str = Field(description="Name of the workspace.")
    files: int = Field(description="Number of files in the index.")
    passages: int = Field(description="Number of passages in the index.")
    embedded: int = Field(description="Number of passages that have a vector.")
    coverage: float = Field(description="Share of passages that have a vector, 0 to 1; 1 without a model.")
    dirty: int = Field(description="Files changed since the last reindex.")
    syncing: bool = Field(
        default=False, description="True while this server brings the index up to date; the answer is as it is so far."
    )
    sync_done: int | None = Field(default=None, description="Passages that it has stored; null while none runs.")
    sync_total: int | None = Field(default=None, description="Passages that this sync will store, as far as known.")
    failed: list[FileFailure] = Field(
        description="Files that could not be read at the last reindex; an empty list where all could."
    )
    index_bytes: int = Field(description="Size of the index on disk, in bytes; 0 before it is made.")
    updated_at: dt.datetime | None = Field(description="Time of the last change of the index; null before it is made.")
    embedding_model: str = Field(description="The setting `embedding_model`; `none` means search by words alone.")
    embedding_choice: str | None = Field(default=None, description="With `auto`, the chosen model and why; else null.")
    fingerprint: ModelFingerprint | None = Field(description="What the index was made with; null before it is made.")
    current_fingerprint: ModelFingerprint = Field(
        description="What an index would be made with now; where `fingerprint` differs, a reindex makes the index anew."
    )
    timezone: str = Field(
        description="The setting `timezone`, which decides the day of a memory: an IANA name, or `local` for "
        "that of the server."
    )
    rebuild: Rebuild | None = Field(
        default=None, description="A new index that is being made, or was interrupted; null for none."
    )
    watching: Watching | None = Field(
        default=None, description="How this process notices changes of the files; null where it does not say."
    )
    reader_failures: dict[str, int] = Field(
        default={},
        description="How often what reads facts, days, names and the like into texts has failed in this process, by "
        "reader: those texts go without. Empty where nothing failed.",
    )
    degraded: Degraded = Field(default=[])


class WorkspaceSummary(Answer):
    """A workspace of the home, told from its folder alone."""

    workspace: str = Field(description="Name of the workspace.")
    memory_files: int = Field(description="Number of memory files.")
    sessions: int = Field(description="Number of sessions.")
    modified_at: dt.datetime = Field(description="Time of the last change of these files.")
    project: str | None = Field(
        default=None, description="Folder of the project of a coding agent that it belongs to; null for none."
    )


class Workspaces(Answer):
    """The workspaces of the home."""

    workspaces: list[str] = Field(description="The names, of those alone that the key is for.")
    details: list[WorkspaceSummary] = Field(default=[], description="More of each, by name.")


class Check(Answer):
    """One line of the doctor; `figures` are those of a measure, by name."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    figures: dict[str, float] = Field(default={})


SettingOrigin = Literal["default", "file", "environment", "argument"]


class SettingValue(Answer):
    """A setting as it holds in this process."""

    name: str = Field(description="Its whole name, such as `ranking.fusion`.")
    value: str = Field(description="Its value as text; of what is secret, only that it is there.")
    origin: SettingOrigin = Field(description="Where the value is from.")
    place: str = Field(default="", description="The variable, or the file and the line; empty for none.")
    description: str = Field(default="", description="The meaning of the setting.")


class SettingValues(Answer):
    """The settings of a server."""

    settings: list[SettingValue] = Field(description="All settings, in the order of the documentation.")


class ConnectedHost(Answer):
    """A coding agent that is connected."""

    host: str = Field(description="Name of the host.")
    project: str | None = Field(default=None, description="Folder of the project; null for the user's own settings.")
    files: list[str] = Field(description="Its settings files that have something of ours.")


class ConnectedHosts(Answer):
    """The coding agents that are connected on this machine, and what went wrong in their hooks."""

    hosts: list[ConnectedHost] = Field(description="The hosts, by name; an empty list where none is connected.")
    log: list[str] = Field(description="The last lines of `hooks.log`, the newest last: one for each fault.")
    degraded: Degraded = Field(default=[])


class Health(Answer):
    """The health of the server: if it lives, or is ready to serve."""

    status: Literal["ok", "unavailable"] = Field(
        description="`ok`, or `unavailable` (with status 503) while requests cannot be served."
    )
    degraded: Degraded = Field(default=[])


class Version(Answer):
    """The version that is running."""

    version: str = Field(description="Version of the server.")
    embedding_model: str = Field(description="Name of the embedding model in use; `none` without one.")
