"""A person who edits memory files in a folder, and syncs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memory_service.sync import SyncReport, WorkspaceSync


@dataclass(frozen=True, slots=True, kw_only=True)
class Editor:
    """The person."""

    folder: Path
    sync: WorkspaceSync

    def write(self, path: str, text: str | bytes) -> Path:
        """Save a file as an editor does."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def read(self, path: str) -> str:
        return (self.folder / path).read_bytes().decode()

    def files(self) -> dict[str, str]:
        """The texts of all files that lie in the open."""
        paths = (path.relative_to(self.folder) for path in self.folder.rglob("*.md"))
        return {path.as_posix(): self.read(path.as_posix()) for path in paths}

    def actions(self) -> dict[str, str]:
        """Sync, which leaves nothing to do; gives the steps that were taken."""
        report = self.sync.run()
        assert report.is_clean, report
        return steps_of(report)


def steps_of(report: SyncReport) -> dict[str, str]:
    """The steps of a report by path."""
    return {step.path: step.action for step in report.steps}
