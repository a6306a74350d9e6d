from __future__ import annotations

from pathlib import Path

import pytest

from tests.memory_service.cli.commands import CommandLine


@pytest.fixture
def cli(tmp_path: Path) -> CommandLine:
    """The command line on an empty home, without a model: words alone, and quick."""
    return CommandLine(home=tmp_path / "home")
