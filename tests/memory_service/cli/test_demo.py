"""The story that `demo` tells."""

from __future__ import annotations

import re
from pathlib import Path

from memory_service.tokens import count_tokens
from tests.memory_service.cli.commands import CommandLine

STEPS = ("An agent's memory is a folder of Markdown", "reindex", "search", "remember", "context", "forget")


def check_story(told: str) -> None:
    """Every step is named in order, and the block it shows is within the budget it names."""
    assert re.findall(r"^(\d)\. (.+)$", told, re.MULTILINE) == [
        (str(number), title) for number, title in enumerate(STEPS, 1)
    ]
    shown = "\n".join(line[5:] for line in told.splitlines() if line.startswith("   │ "))
    block = shown[shown.index("<relevant_context>") : shown.index("</relevant_context>") + len("</relevant_context>")]
    counted = re.search(r"^   (\d+) of (\d+) tokens", told, re.MULTILINE)
    assert counted is not None
    tokens, budget = map(int, counted.groups())
    assert count_tokens(block) == tokens <= budget
    assert "The courier picks up at 15:30" in block
    assert re.search(r"[1-9]\d* passages embedded", told)
    assert "a search finds 0 of it" in told
    assert "\x1b" not in told


def test_the_demo_tells_its_story_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    run = CommandLine(home=tmp_path / "home", environment={}).spawn("demo", cwd=folder)
    assert (run.code, run.err) == (0, "")
    check_story(run.out)
    assert list(folder.iterdir()) == [] and not (tmp_path / "home").exists()


def test_the_sample_may_be_kept_and_never_replaces_a_workspace(tmp_path: Path) -> None:
    kept = tmp_path / "my notes"
    cli = CommandLine(home=kept)
    run = cli.run("demo", "--keep", str(kept))
    assert (run.code, run.err) == (0, "")
    assert f"--home '{kept}'" in run.out
    assert cli.run("search", "plants").out
    mine = kept / "default" / "MEMORY.md"
    mine.write_text("- My own note.\n", "utf-8")
    cli.run("demo", "--keep", str(kept)).failed_with("workspace", str(kept))
    assert mine.read_text("utf-8") == "- My own note.\n"
    blocked = tmp_path / "file"
    blocked.write_text("", "utf-8")
    cli.run("demo", "--keep", str(blocked / "below")).failed_with(str(blocked))
