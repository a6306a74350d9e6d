"""An older Python: one clear sentence in the place of a syntax error or of a name that is missing."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOO_OLD = (
    r"ImportError: memory-service \S+ needs Python 3\.11 or later, and this is {}\. Make the environment with a newer"
)
OLD = ("3.7", "3.8", "3.9", "3.10")


@pytest.mark.parametrize("version", OLD)
@pytest.mark.parametrize("name", ["__init__.py", "_version.py"])
def test_what_is_read_before_the_check_can_be_read_by_an_older_one(name: str, version: str) -> None:
    major, minor = map(int, version.split("."))
    source = (ROOT / "memory_service" / name).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(major, minor))
    if name == "__init__.py":
        ours = [
            node.module
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and "memory_service" in str(node.module)
        ]
        assert ours[0] == "memory_service._version", "the check comes before all that may need more"


def test_the_check_names_the_version_that_runs_and_the_one_that_is_needed() -> None:
    code = (
        "import sys; sys.version_info = (3, 10, 13, 'final', 0); sys.version = '3.10.13 (main)'; import memory_service"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and re.search(TOO_OLD.format(r"3\.10\.13"), done.stderr)


@pytest.mark.parametrize("version", OLD)
@pytest.mark.parametrize("way", [["-m", "memory_service", "--help"], ["-c", "import memory_service"]], ids=["-m", "-c"])
def test_an_older_python_says_so_from_a_checkout(version: str, way: list[str]) -> None:
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "-V"], capture_output=True, check=False).returncode:
        pytest.skip(f"there is no Python {version} here")
    done = subprocess.run([python, "-B", *way], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and re.search(TOO_OLD.format(rf"{re.escape(version)}\.\d+"), done.stderr)
