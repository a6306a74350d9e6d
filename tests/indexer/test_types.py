"""Durability of an open file, on systems that want to be asked for it twice."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from indexer.types import sync_file


def test_a_file_is_flushed_to_the_drive_where_the_system_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[tuple[str, int]]()
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda descriptor, command: calls.append(("full", command)))
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append(("plain", descriptor)))
    with (tmp_path / "file").open("w") as opened:
        sync_file(opened.fileno())
        assert calls == [("full", 51)]

        def unknown(descriptor: int, command: int) -> None:
            raise OSError(45, "Operation not supported")

        monkeypatch.setattr(fcntl, "fcntl", unknown)
        sync_file(opened.fileno())
        assert calls[1:] == [("plain", opened.fileno())], "a network drive"
        monkeypatch.delattr(fcntl, "F_FULLFSYNC")
        sync_file(opened.fileno())
        assert calls[2:] == [("plain", opened.fileno())], "another system"
