"""A person's folder in step with a workspace of a server: plans and merges as values, then their effects."""

from memory_service.sync.steps import FileTrouble, SyncStep
from memory_service.sync.watch import keep_in_sync
from memory_service.sync.workspace_sync import ConflictCopy, SyncReport, WorkspaceSync

__all__ = ["ConflictCopy", "FileTrouble", "SyncReport", "SyncStep", "WorkspaceSync", "keep_in_sync"]
