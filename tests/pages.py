"""The pages that a reader of the project meets: README.md and docs/, and their tables."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of each block of code."""
    return _BLOCK.findall(PAGES[page])


def prose(page: str) -> str:
    """The page without its blocks of code."""
    return _BLOCK.sub("", PAGES[page])


def table(page: str, head: str) -> list[list[str]]:
    """The cells of each row of the table whose first column has this head."""
    rows = PAGES[page].partition(f"\n| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    assert rows, f"{page} has no table '{head}'"
    return [[cell.strip() for cell in row.strip("|").split(" |")] for row in rows]


def code(cell: str) -> list[str]:
    """What a cell has in backticks."""
    return re.findall(r"`([^`]+)`", cell)
