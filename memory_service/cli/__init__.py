"""The command line `memory-service`: one file per group of commands, loaded when it is called."""

from __future__ import annotations

from memory_service.cli.root import main, run

__all__ = ["main", "run"]
