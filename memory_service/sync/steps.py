"""Steps of a sync as values: what stands here, what stands on the server, and what follows from both.

Invariants: pure; nothing of either side is lost by a step whose conditions hold when it is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Action = Literal[
    "keep",  # both sides are as they were
    "agree",  # both sides say the same, which is to be noted
    "compare",  # both sides changed: their texts decide
    "upload",  # changed here alone
    "create",  # new here, or changed here and erased on the server
    "download",  # new or changed on the server alone
    "restore",  # missing here, and not to be erased on the server
    "merge",  # changed on both sides, and the texts go together
    "conflict",  # changed on both sides, and they do not: the server's stays, ours lies beside it
    "delete_here",  # erased on the server, unchanged here
    "delete_there",  # missing here, unchanged on the server, and to be erased there
    "drop",  # missing on both sides
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncedFile:
    """A file as both sides last had it.

    Attributes:
        etag: The server's version of it.
        base: Digest of its text.
    """

    etag: str
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStep:
    """The next step for a file.

    Attributes:
        path: The file, as the server spells its path; a new one in NFC.
        action: The step; never `compare` in a plan that is shown.
        etag: The server's version that it was decided on; empty for no file there.
        text: The server's text, where it was read.
        merged: The text of a merge.
    """

    path: str
    action: Action
    etag: str = ""
    text: str | None = None
    merged: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTrouble:
    """A file that is not synced, and why.

    Attributes:
        path: The file, or a folder with all that is below it.
        reason: The reason and what to do, in sentences that name it.
        is_failure: Whether it is one that was meant to be synced; a link and a name that no memory file has are none.
    """

    path: str
    reason: str
    is_failure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPlan:
    """The steps of a sync, by path, and what is left out."""

    steps: tuple[SyncStep, ...]
    left_out: tuple[FileTrouble, ...] = ()


def decide(record: SyncedFile | None, digest: str | None, etag: str | None, *, deletes: bool) -> Action:
    """The step that a file needs.

    Args:
        record: The file when both sides last agreed; None if they never did.
        digest: Digest of the text here; None if there is no such file.
        etag: The version on the server; None if there is no such file.
        deletes: Whether a file that is missing here is erased on the server.
    """
    is_ours = record is not None and record.base == digest
    is_theirs = record is not None and record.etag == etag
    if digest is None or etag is None:
        return _decide_missing(record, digest, etag, is_ours=is_ours, erases=deletes and is_theirs)
    if is_ours and is_theirs:
        return "keep"
    if is_theirs:
        return "upload"
    return "download" if is_ours else "compare"


def _decide_missing(
    record: SyncedFile | None, digest: str | None, etag: str | None, *, is_ours: bool, erases: bool
) -> Action:
    if digest is not None:
        return "delete_here" if is_ours else "create"
    if etag is None:
        return "drop"
    if record is None:
        return "download"
    return "delete_there" if erases else "restore"


def clashes(paths: Mapping[str, str], *, folds_case: bool) -> dict[str, str]:
    """Files of the server that have one name here, each with the other one's path.

    Args:
        paths: The paths as they are compared, each with the path that it stands for.
        folds_case: Whether the disk takes names that differ in case alone for one.
    """
    first, clashing = dict[str, str](), dict[str, str]()
    for key in sorted(paths):
        name = key.casefold() if folds_case else key
        if name in first:
            clashing[key] = paths[first[name]]
        first.setdefault(name, key)
    return clashing
