"""Holds how many files a reader has to know to follow a piece of work; see `tests/benchmarks/walks.py`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.benchmarks.walks import walks
from tests.serving import settings

HOUSE = tomllib.loads((Path(__file__).parent / "house.toml").read_text("utf-8"))
# A clock or a thread may bring a file more or less.
BAND = 3


def test_no_work_enters_more_files(tmp_path: Path) -> None:
    found = walks(settings(tmp_path, embedding_model="minilm", context_window=1_000_000), 60)
    files = {name: len(walk) for name, walk in found.items()}
    most = HOUSE["files_entered"]
    assert files.keys() == most.keys()
    longer = {name: (count, most[name]) for name, count in files.items() if count > most[name] + BAND}
    assert not longer, (
        f"These enter more files than tests/house.toml says: {longer}. Let what they pass through be one file, or "
        "raise the figure and say why in the same commit."
    )
