"""Join of two homes, as a plan: what another home has and this one lacks."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedFile:
    """A file of another home.

    Attributes:
        workspace: Its workspace, here as there.
        path: Its path within it, there.
        target: Its path within it, here.
        state: `copied` under its own name, `renamed` beside another file of that name, or the `same` is here already.
    """

    workspace: str
    path: str
    target: str
    state: Literal["copied", "renamed", "same"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeJoin:
    """A home and what another one brings into it."""

    home: str
    other: str
    files: tuple[JoinedFile, ...]

    @property
    def missing(self) -> tuple[JoinedFile, ...]:
        """The files that are not here yet."""
        return tuple(file for file in self.files if file.state != "same")

    def __str__(self) -> str:
        """A sentence on what is not here, and the command that brings it."""
        missing = self.missing
        workspaces = sorted({file.workspace for file in missing})
        files = "1 file" if len(missing) == 1 else f"{len(missing):,} files"
        return (
            f"{self.other} has {files} that {self.home} lacks, in {', '.join(workspaces[:3])}"
            f"{' and others' if len(workspaces) > 3 else ''}. To join them: "
            f"memory-service join {shlex.quote(self.other)} --home {shlex.quote(self.home)}"
        )
