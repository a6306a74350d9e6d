"""Folders of workspaces in a home: which there are, and who may make one."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from indexer import change_times, scan_workspace
from memory_service.disk import make_folder, storage_errors
from memory_service.errors import InvalidName, NotFound
from memory_service.home import WORKSPACE_NAME, check_workspace, make_home, project_of_workspace
from memory_service.schemas.memories import WorkspaceSummary


class WorkspaceFolders:
    """The workspaces of one home.

    Args:
        home: The folder that holds one folder for each workspace; it need not exist yet.
    """

    def __init__(self, home: Path) -> None:
        self._home = home

    def folder(self, name: str) -> Path:
        """The folder that a workspace has or would have.

        Raises:
            InvalidName: The name is not one of a workspace.
        """
        check_workspace(name)
        return self._home / name

    def is_there(self, name: str) -> bool:
        """True if a workspace has a folder that is no link.

        Raises:
            InvalidName: The name is not one of a workspace.
            StorageFailed: The home cannot be searched.
        """
        folder = self.folder(name)
        with storage_errors(self._told(name)):
            return not folder.is_symlink() and folder.is_dir()

    def existing(self, name: str) -> Path:
        """The folder of a workspace that is there.

        Raises:
            InvalidName: The name is not one of a workspace.
            NotFound: It has no folder, or only a link to one.
        """
        if self.is_there(name):
            return self.folder(name)
        raise NotFound(
            f"There is no workspace {name} in the home {self._home}. Write a first memory to create it, or check the "
            "name and the home; a symbolic link does not count as one."
        )

    def ensure(self, name: str) -> Path:
        """The folder of a workspace, created if need be.

        Raises:
            InvalidName: The name is not one of a workspace, or a link or file stands in its place.
            StorageFailed: The folder cannot be created.
        """
        folder = self.folder(name)
        with storage_errors(self._told(name)):
            if folder.is_symlink():
                raise InvalidName(f"{self._told(name)} is a symbolic link. Put the folder itself there.")
            make_home(self._home)
            make_folder(folder)
            if not folder.is_dir():
                raise InvalidName(f"A file stands where the folder of {self._told(name)} would be. Move it away.")
        return folder

    def _told(self, name: str) -> str:
        """A workspace for messages, with the home that it is looked for in."""
        return f"the workspace {name} of the home {self._home}"

    def summary(self, name: str) -> WorkspaceSummary:
        """Contents of a workspace's folder, without an index.

        Raises:
            NotFound: There is no such workspace.
            StorageFailed: It cannot be listed.
        """
        folder = self.existing(name)
        with storage_errors(self._told(name)):
            memories = scan_workspace(folder).files.values()
            changes = [change_times(file)[0] for file in memories] or [folder.stat().st_mtime_ns]
        sessions = sum(file.source == "sessions" for file in memories)
        return WorkspaceSummary(
            workspace=name,
            memory_files=len(memories) - sessions,
            sessions=sessions,
            modified_at=dt.datetime.fromtimestamp(max(changes) / 1e9, dt.UTC),
            project=project_of_workspace(folder) or None,
        )

    def summaries(self, names: Iterable[str]) -> list[WorkspaceSummary]:
        """Contents of some workspaces; one that is gone meanwhile is left out."""
        found = list[WorkspaceSummary]()
        for name in names:
            with suppress(NotFound):
                found.append(self.summary(name))
        return found

    def names(self) -> list[str]:
        """The names of all workspaces, sorted.

        Raises:
            StorageFailed: The home cannot be listed.
        """
        if not self._home.exists():
            return []
        with storage_errors(f"the home {self._home}"), os.scandir(self._home) as entries:
            return sorted(
                e.name for e in entries if WORKSPACE_NAME.fullmatch(e.name) and e.is_dir(follow_symlinks=False)
            )
