"""A sync of a folder with a workspace: one look at both sides, a plan, and then step by step its effects.

Invariants: each step is taken only while both sides still are what it was decided on, else the file is looked at
again; what is written here is on disk before it is noted; a run that is killed anywhere loses nothing, and the next one
goes on; a file that fails is named, and the others go on; a server that is not reached ends the run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from indexer import to_nfc
from memory_service.client import MemoryClient
from memory_service.errors import (
    ConnectionFailed,
    Forbidden,
    InvalidRequest,
    MemoryServiceError,
    NotFound,
    Overloaded,
    PreconditionFailed,
    TooManyRequests,
    Unauthorized,
)
from memory_service.storage.files.disk import WriteLock, make_folder, storage_errors
from memory_service.storage.revisions import ATTEMPTS, kept_changing
from memory_service.sync.folder import NOTES_FOLDER, FolderFile, FolderScan, SyncFolder, is_conflict_copy, text_digest
from memory_service.sync.manifest import MANIFEST, Manifest
from memory_service.sync.merging import merge_texts
from memory_service.sync.steps import FileTrouble, SyncPlan, SyncStep, clashes, decide

# With these nothing more can be done now, whatever the file.
_ENDING = (ConnectionFailed, Unauthorized, Forbidden, Overloaded, TooManyRequests)
_LOCK_SECONDS = 1.0
# Told of each file, with how many are done and how many there are.
OnStep = Callable[[int, int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictCopy:
    """A file of which the server's text stays, and where yours lies."""

    path: str
    copy: str


@dataclass(slots=True, kw_only=True)
class SyncReport:
    """The work of one sync: the steps that were taken, or with `dry_run` those that would be."""

    url: str
    workspace: str
    folder: str
    dry_run: bool = False
    steps: list[SyncStep] = field(default_factory=list)
    conflicts: list[ConflictCopy] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    left_out: list[FileTrouble] = field(default_factory=list)
    unchanged: int = 0
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        """True if nothing is left for a person to do."""
        return not self.conflicts and not any(trouble.is_failure for trouble in self.left_out)


class WorkspaceSync:
    """Syncs a folder with a workspace, as often as `run` is called; close it afterwards, or use it with `with`.

    Args:
        folder: The folder; it is made if it is not there.
        url: Address of the server.
        workspace: Name of the workspace; its first file creates it.
        api_key: A key of the server, if it has any.
        deletes: Whether a file that is missing here is erased on the server, if it did not change there.

    Raises:
        InvalidRequest: The folder is that of a workspace itself.
        StorageFailed: It cannot be made.
    """

    def __init__(
        self, folder: Path, *, url: str, workspace: str, api_key: str | None = None, deletes: bool = False
    ) -> None:
        self._deletes = deletes
        if any(os.path.lexists(folder / name) for name in ("index.sqlite", "sessions", ".locks")):
            raise InvalidRequest(
                f"The folder {folder} is a workspace itself, whose server reads it as it is. Take a folder of your own."
            )
        with storage_errors(str(folder)):
            make_folder(folder)
        self._root = folder
        self._folder = SyncFolder(folder)
        self._scan = FolderScan()
        self._url = url.rstrip("/")
        self._client = MemoryClient(self._url, workspace=workspace, api_key=api_key)
        self._manifest: Manifest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the server."""
        self._client.close()

    def plan(self) -> SyncReport:
        """The steps that a run would take now; nothing is changed.

        Raises:
            MemoryServiceError: The server was not reached, or refuses; or the notes of the folder cannot be used.
        """
        with self._prepare_run() as (plan, report):
            report.dry_run = True
            report.steps = [step for step in plan.steps if step.action not in ("keep", "agree", "drop")]
            report.unchanged = sum(step.action in ("keep", "agree") for step in plan.steps)
        return report

    def run(self, on_step: OnStep = lambda done_number, total: None) -> SyncReport:
        """Bring both sides together.

        Args:
            on_step: Told of each file.

        Raises:
            MemoryServiceError: See `plan`; what was done until then is noted.
        """
        with self._prepare_run() as (plan, report):
            try:
                for number, step in enumerate(plan.steps, start=1):
                    self._take_named(step, report)
                    on_step(number, len(plan.steps))
            finally:
                self._manifest.save()
            self._manifest.sweep()
            self._folder.sweep()
        return report

    @contextmanager
    def _prepare_run(self) -> Iterator[tuple[SyncPlan, SyncReport]]:
        """The plan and an empty report, while no other run works on the folder."""
        started_value = time.monotonic()
        with storage_errors(str(self._root)):
            os.lstat(self._root)
        with WriteLock(self._root / NOTES_FOLDER / "sync.lock", timeout_seconds=_LOCK_SECONDS).hold():
            self._manifest = Manifest(self._root, self._url, self._client.workspace)
            plan = self._make_plan()
            report = SyncReport(
                url=self._url,
                workspace=self._client.workspace,
                folder=str(self._root),
                left_out=list(plan.left_out),
                unresolved=list(self._scan.conflicts),
            )
            yield plan, report
            report.seconds = round(time.monotonic() - started_value, 3)

    def _make_plan(self) -> SyncPlan:
        scan = self._scan = self._folder.scan()
        self._manifest.resume({key: file.digest for key, file in scan.files.items()})
        remote, left_out = self._list_remote()
        there = {key: etag for key, (_, etag) in remote.items()}
        steps = list[SyncStep]()
        for key in sorted({*scan.files, *there, *self._manifest.files}):
            if not scan.blocks(key) and not any(key == to_nfc(trouble.path) for trouble in left_out):
                path = remote[key][0] if key in remote else key
                try:
                    steps.append(self._step(path, scan.files.get(key), there.get(key)))
                except _ENDING:
                    raise
                except MemoryServiceError as error:
                    left_out.append(FileTrouble(path=path, reason=str(error), is_failure=True))
        return SyncPlan(steps=tuple(steps), left_out=(*scan.left_out, *left_out))

    def _list_remote(self) -> tuple[dict[str, tuple[str, str]], list[FileTrouble]]:
        """Path and version of each file of the server, by its path in NFC; and those that cannot be synced."""
        files = self._client.files()
        if not files and self._manifest.files and self._client.status().updated_at is None:
            raise NotFound(
                f"The server at {self._url} has no workspace {self._client.workspace} any more, and this folder was in "
                f"sync with it. Nothing was removed. Name the right one, or remove {self._root / MANIFEST} to send the "
                "files to a new one."
            )
        remote, left_out = dict[str, tuple[str, str]](), list[FileTrouble]()
        for file in files:
            key = to_nfc(file.path)
            fault = self._folder.fault_of(file.path)
            if is_conflict_copy(file.path):
                fault = f"{file.path} has the name of a conflict's copy, which is not synced. Rename it on the server."
            elif key in remote:
                fault = f"The server has {key} under two names that differ in their Unicode form. Rename one of them."
            if fault:
                left_out.append(FileTrouble(path=file.path, reason=fault))
            else:
                remote[key] = file.path, file.etag
        paths = {key: path for key, (path, _) in remote.items()}
        for key, other_text in clashes(paths, folds_case=self._folder.folds_case).items():
            reason = f"On this disk {key} would be {other_text}. Rename one of them on the server."
            left_out.append(FileTrouble(path=remote.pop(key)[0], reason=reason))
        return remote, left_out

    def _step(self, path: str, local: FolderFile | None, etag: str | None) -> SyncStep:
        """The next step for a file; where both sides changed, their texts are compared."""
        key = to_nfc(path)
        action = decide(self._manifest.files.get(key), local.digest if local else None, etag, deletes=self._deletes)
        if action != "compare" or local is None:
            return SyncStep(path=path, action=action, etag=etag or "")
        if etag == local.digest:  # as far as the server's versions are digests, which spares the look
            return SyncStep(path=path, action="agree", etag=etag, text=local.text)
        text_there = self._remote_text(path)
        if text_there is None:
            return self._step(path, local, None)
        text, version = text_there
        if text == local.text:
            return SyncStep(path=path, action="agree", etag=version, text=text)
        merged_texts = merge_texts(self._manifest.base_text(key), local.text, text)
        if merged_texts is None:
            return SyncStep(path=path, action="conflict", etag=version, text=text)
        if merged_texts in (text, local.text):
            return SyncStep(path=path, action="download" if merged_texts == text else "upload", etag=version)
        return SyncStep(path=path, action="merge", etag=version, text=text, merged=merged_texts)

    def _remote_text(self, path: str) -> tuple[str, str] | None:
        """Text and version of a file of the server; None if there is none."""
        for _ in range(ATTEMPTS):
            parts, start, etags = list[str](), 1, set[str]()
            while start:
                try:
                    page = self._client.get(path, start)
                except NotFound:
                    return None
                parts.append(page.text)
                etags.add(page.etag)
                start = page.next_start_line or 0
            text = "".join(parts)
            if len(etags) == 1:
                return text, etags.pop()
        raise kept_changing(path)

    def _take_named(self, step: SyncStep, report: SyncReport) -> None:
        """Take the step of a file, and name the file if that fails."""
        try:
            self._take(step, report)
        except _ENDING:
            raise
        except MemoryServiceError as error:
            report.left_out.append(FileTrouble(path=step.path, reason=str(error), is_failure=True))

    def _take(self, step: SyncStep, report: SyncReport) -> None:
        """Take the step of a file; again from a new look, as long as somebody changes it meanwhile."""
        local = self._scan.files.get(to_nfc(step.path))
        for _ in range(ATTEMPTS):
            try:
                is_complete = self._effect(step, local, report)
            except (PreconditionFailed, NotFound):
                is_complete = False
            if is_complete:
                if step.action in ("keep", "agree"):
                    report.unchanged += 1
                elif step.action != "drop":
                    report.steps.append(step)
                return
            local = self._folder.read(local.path if local else step.path)
            there = self._remote_text(step.path)
            step = self._step(step.path, local, there[1] if there else None)
        raise kept_changing(step.path)

    def _effect(self, step: SyncStep, local: FolderFile | None, report: SyncReport) -> bool:
        """Do what a step says; gives whether it was done, as the file here may have changed since."""
        key = to_nfc(step.path)
        match step.action:
            case "keep":
                return True
            case "drop":
                self._manifest.drop(key)
                return True
            case "download" | "restore":
                return self._download(step, local)
            case "delete_there":
                # An editor may have taken it away for a moment, to put a new one there.
                if self._folder.read(key):
                    return False
                self._client.delete(step.path, etag=step.etag)
                self._manifest.drop(key)
                return True
        if local is None:
            return False
        match step.action:
            case "agree":
                self._manifest.note(key, step.etag, local.text)
                return True
            case "upload" | "create":
                return self._upload(step.path, local.text, step.etag)
            case "merge":
                return self._merge(step, local)
            case "conflict":
                return self._put_aside(step, local, report)
            case _:
                is_removed = self._folder.remove(local)
                if is_removed:
                    self._manifest.drop(key)
                return is_removed

    def _upload(self, path: str, text: str, etag: str) -> bool:
        file = self._client.put(path, text, etag=etag or None)
        self._manifest.note(to_nfc(path), file.etag or text_digest(text), text)
        return True

    def _download(self, step: SyncStep, local: FolderFile | None) -> bool:
        text_there = self._remote_text(step.path)
        if text_there is None:
            return False
        text, etag = text_there
        if not self._folder.replace(local.path if local else to_nfc(step.path), text, file=local):
            return False
        self._manifest.note(to_nfc(step.path), etag, text)
        return True

    def _merge(self, step: SyncStep, local: FolderFile) -> bool:
        """Put the merged text here, note the server's as the base, then send it: each is a state to go on from."""
        key, text = to_nfc(step.path), step.text or ""
        self._manifest.begin(key, step.etag, text, step.merged)
        if not self._folder.replace(local.path, step.merged, file=local):
            return False
        self._manifest.note(key, step.etag, text)
        return self._upload(step.path, step.merged, step.etag)

    def _put_aside(self, step: SyncStep, local: FolderFile, report: SyncReport) -> bool:
        """Copy the text here beside the file, then put the server's in its place."""
        copy = self._folder.put_aside(local)
        text = step.text or ""
        if not self._folder.replace(local.path, text, file=local):
            return False
        self._manifest.note(to_nfc(step.path), step.etag, text)
        report.conflicts.append(ConflictCopy(path=local.path, copy=copy))
        return True
