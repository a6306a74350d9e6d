"""The picture of the demo in the README, from what the demo prints: `python -m tests.picture` writes docs/demo.svg.

Its lines are compared with those of the demo in tests/memory_service/cli/test_demo.py, without their figures.
"""

from __future__ import annotations

import html
import io
import re
from pathlib import Path

from click.testing import CliRunner
from rich.console import Console
from rich.text import Text

from memory_service.cli.root import root

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "demo.svg"
COMMAND = "python -m tests.picture"
# A picture of all that it prints would be three screens long.
STEPS = ("2. conversation", "6. context")
_CELLS = 118
# It would be fetched from another host; a page that shows the picture has a font of its own for code.
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> None:
    """Run the demo and draw it."""
    printed = CliRunner().invoke(root, ["demo"], color=True, catch_exceptions=False).stdout
    PICTURE.write_text(drawn(shown_part(printed)), "utf-8")


def shown_part(printed: str) -> str:
    """The steps that the picture shows, each with its lines."""
    steps = re.split(r"\n\n(?=(?:\x1b\[1m)?\d\. )", printed.strip())
    return "\n\n".join(step for step in steps if _plain(step).startswith(STEPS))


def drawn(printed: str) -> str:
    """A terminal with some output, as SVG."""
    console = Console(record=True, width=_CELLS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text("$ memory-service demo", style="bold"), "", Text.from_ansi(printed), sep="\n")
    return _FONTS.sub("", console.export_svg(title="memory-service", unique_id="demo"))


def lines_of(svg: str) -> list[str]:
    """The lines of text in a picture, as they stand one below the other."""
    rows: dict[str, str] = {}
    for line, text in re.findall(r'clip-path="url\(#demo-(line-\d+)\)">([^<]*)</text>', svg):
        rows[line] = rows.get(line, "") + html.unescape(text)
    return [row.replace("\xa0", " ").rstrip() for row in rows.values()]


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


if __name__ == "__main__":
    main()
