"""Notes of a sync in the person's folder: which version of each file both sides last had, and its text.

`.memory-sync.json` is the table, replaced in one step; `.memory-sync/` has the texts, named by their digests.
Invariants: a text counts only if it has its digest, so that one that was lost or torn is no base of a merge; what no
file needs any more is removed; without the notes nothing is lost: files that differ meet without a base.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_service.errors import InvalidRequest
from memory_service.storage.files import disk
from memory_service.storage.files.disk import storage_errors
from memory_service.storage.revisions import kept_changing
from memory_service.sync.folder import NOTES_FOLDER, text_digest
from memory_service.sync.steps import SyncedFile

MANIFEST = ".memory-sync.json"
_FORMAT = 1
_DIGEST = re.compile("[0-9a-f]{32}")
# A run that is killed looks again at what it did in so many seconds.
_SAVE_SECONDS = 1.0


class Manifest:
    """The notes of one folder, for one workspace of one server.

    Args:
        root: The folder.
        url: Address of the server.
        workspace: Name of the workspace.

    Attributes:
        files: The files as both sides last had them, by path in NFC.
        pending: Files whose merged text may stand in the folder already, each with the digest of that text and the
            server's version that went into it.

    Raises:
        InvalidRequest: The notes are of another workspace, or cannot be read.
    """

    def __init__(self, root: Path, url: str, workspace: str) -> None:
        self.files: dict[str, SyncedFile] = {}
        self.pending: dict[str, tuple[str, SyncedFile]] = {}
        self._root, self._url, self._workspace = root, url, workspace
        self._texts = root / NOTES_FOLDER
        self._is_changed, self._saved_at = False, 0.0
        self._load()

    def _load(self) -> None:
        place = self._root / MANIFEST
        anew = f"Remove {place} to begin anew: nothing is lost, and files that differ become conflicts."
        try:
            with storage_errors(MANIFEST):
                raw = place.read_bytes() if os.path.lexists(place) else b""
            if not raw:
                return
            table: dict[str, Any] = json.loads(raw)
            if table["format"] != _FORMAT:
                raise InvalidRequest(f"{place} was written by another version of memory-service. Upgrade, or: {anew}")
            url, workspace = table["url"], table["workspace"]
            self.files = {path: _synced_file(file) for path, file in table["files"].items()}
            self.pending = {
                path: (str(file["text"]), _synced_file(file)) for path, file in table.get("pending", {}).items()
            }
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidRequest(f"{place} cannot be read. {anew}") from None
        if (url, workspace) != (self._url, self._workspace):
            raise InvalidRequest(
                f"The folder is in sync with the workspace {workspace} of {url}, not with {self._workspace} of "
                f"{self._url}. Name that one, or take another folder. {anew}"
            )

    def base_text(self, path: str) -> str | None:
        """The text of a file that both sides last had; None if it is not known."""
        record = self.files.get(path)
        if record is None:
            return None
        try:
            text = (self._texts / record.base).read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            return None
        return text if text_digest(text) == record.base else None

    def note(self, path: str, etag: str, text: str) -> None:
        """Note that both sides have a text."""
        self._store(text)
        self.files[path] = SyncedFile(etag=etag, base=text_digest(text))
        self.pending.pop(path, None)
        self._note_change()

    def begin(self, path: str, etag: str, text: str, merged_text: str) -> None:
        """Note that a merge with the server's text is about to stand in the folder; on disk when this returns."""
        self._store(text)
        self.pending[path] = text_digest(merged_text), SyncedFile(etag=etag, base=text_digest(text))
        self._is_changed = True
        self.save()

    def resume(self, digests: Mapping[str, str]) -> None:
        """Take up merges that were pending: the server's version has gone into those whose text stands in the folder.

        Args:
            digests: The digests of the texts in the folder, by path.
        """
        for path, (digest, file) in self.pending.items():
            if digests.get(path) == digest:
                self.files[path] = file
        self._is_changed = self._is_changed or bool(self.pending)
        self.pending = {}

    def drop(self, path: str) -> None:
        """Forget a file."""
        self.pending.pop(path, None)
        if self.files.pop(path, None):
            self._note_change()

    def save(self) -> None:
        """Write the table, if it changed."""
        if not self._is_changed:
            return
        table = {
            "format": _FORMAT,
            "url": self._url,
            "workspace": self._workspace,
            "files": {path: {"etag": file.etag, "base": file.base} for path, file in sorted(self.files.items())},
            "pending": {
                path: {"etag": file.etag, "base": file.base, "text": digest}
                for path, (digest, file) in sorted(self.pending.items())
            },
        }
        raw = json.dumps(table, ensure_ascii=False, indent=1).encode()
        place = self._root / MANIFEST
        with storage_errors(MANIFEST):
            if not disk.replace_durably(place, raw, expected=disk.current_signature(place), drafts=self._texts):
                raise kept_changing(MANIFEST)
        self._is_changed, self._saved_at = False, time.monotonic()

    def sweep(self) -> None:
        """Remove texts that no file needs, which may have been erased on the server, and drafts of killed runs."""
        in_use = {file.base for file in self.files.values()} | {file.base for _, file in self.pending.values()}
        with storage_errors(NOTES_FOLDER):
            disk.sweep([self._texts])
            for name in os.listdir(self._texts):
                if _DIGEST.fullmatch(name) and name not in in_use:
                    (self._texts / name).unlink()

    def _store(self, text: str) -> None:
        place = self._texts / text_digest(text)
        if not place.exists():
            with storage_errors(NOTES_FOLDER):
                disk.replace_undurably(place, text.encode())

    def _note_change(self) -> None:
        self._is_changed = True
        if time.monotonic() - self._saved_at > _SAVE_SECONDS:
            self.save()


def _synced_file(file: Mapping[str, object]) -> SyncedFile:
    return SyncedFile(etag=str(file["etag"]), base=str(file["base"]))
