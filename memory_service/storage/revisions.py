"""Optimistic changes: the revision that a change is made from, and the error where somebody else is always faster."""

from __future__ import annotations

from typing import TypeAlias

from memory_service.errors import StorageFailed

# Opaque: files pack the stat of a file, a database its revision. A revision never comes back with another content.
Revision: TypeAlias = bytes
# How often a change that somebody makes at the same moment is met by doing it again.
ATTEMPTS = 5


def kept_changing(path: str) -> StorageFailed:
    """The error of a document that somebody else changes all the time."""
    return StorageFailed(f"The file {path} kept changing while it was to be written. Try again.")
