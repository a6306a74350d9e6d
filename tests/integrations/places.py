"""The memory that an adapter is tested with: in this process and on a server, and the recipes of its page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from memory_service.service import MemoryService
from tests.pages import PAGES

PAGE = "docs/integrations.md"
DEPLOYS = "Deploys go out on Tuesdays after the 10:00 stand-up."
NO_SERVER = "http://127.0.0.1:9"
_SERVER = "http://127.0.0.1:8765"
_MOST_LINES = 15


def needs(*packages: str) -> None:
    """Skip a file of tests where its framework is missing; `.ci/run` takes a file without tests for a failure."""
    for package in packages:
        parents = package.split(".")
        if any(find_spec(".".join(parents[: depth + 1])) is None for depth in range(len(parents))):
            pytest.skip(
                f"{package} is not installed: .ci/run tests this in its own environment", allow_module_level=True
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A workspace as an adapter is given it.

    Attributes:
        source: The service itself, or the URL of its server.
        workspace: A name of its own for each test.
        service: The service, to look at what became of it.
        url: The server of the service.
    """

    source: Any
    workspace: str
    service: MemoryService
    url: str

    @property
    def folder(self) -> Path:
        return self.service.settings.home / self.workspace

    def remember(self, text: str) -> None:
        self.service.remember(self.workspace, text)

    def log(self, session_id: str) -> list[dict[str, Any]]:
        return self.service.messages(self.workspace, session_id, "log").messages

    def sessions(self) -> list[str]:
        return [each.session_id for each in self.service.list_sessions(self.workspace).sessions]


def recipes(heading: str) -> list[str]:
    """The programs and settings below a heading of the page."""
    section = PAGES[PAGE].partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^```\w+\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found and max(text.count("\n") for text in found) <= _MOST_LINES, (
        f"{PAGE}: {_MOST_LINES} lines for {heading}"
    )
    return found


def run_recipe(heading: str, place: Place, **environment: str) -> str:
    """Run the recipe of an adapter as its reader would, with a server of ours; gives what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", recipes(heading)[0].replace(_SERVER, place.url)],
        env={**os.environ, "no_proxy": "127.0.0.1", **environment},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "without it" not in done.stderr, done.stderr
    return done.stdout
