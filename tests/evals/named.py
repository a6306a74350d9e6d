"""Measure of what a question names in so many words: is the passage with that identifier or of that day the first?

`python -m tests.evals.named [--missed 5]`

All of it is generated, with a fixed seed. 400 tickets, 150 versions, 100 commits and 26 telephone numbers stand in one
file each, as list items or as rows of a table, beside the same words again and again, so that nothing but the
identifier tells two lines apart; some identifiers begin as others do. Telephone numbers are asked for without the
spaces that they are written with, commits by their first seven letters. Of 420 days each has a file of five notes,
which hold hours and numbers that look like days; 120 of the days are asked for, in ten spellings and six languages.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from indexer import Embedder, MiniLM
from tests.evals.chinese import open_index

Layout = Literal["items", "table"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
LAST_DAY = dt.date(2026, 11, 20)
DAYS, ASKED_DAYS = 420, 120

_THINGS = (
    "login form", "invoice export", "search page", "cookie banner", "payment retry", "mail digest", "image upload",
    "audit trail", "price list", "stock count", "address book", "backup job", "rate limit", "map view", "print layout",
)  # fmt: skip
_DEEDS = ("fix", "rewrite", "speed up", "test", "translate", "document", "simplify", "monitor", "replace", "review")
_PLACES = ("shop", "app", "office", "partners", "website", "warehouse", "kiosk", "call centre", "press", "test rig")
_TEAMS = ("harbour", "garden", "tower", "bridge", "mill", "forge", "orchard", "quarry", "lighthouse", "dairy")
_NOTES = (
    "Painted the {} fence.", "Sold the {} kayak.", "Fixed the {} tap.", "Walked {} km along the river.",
    "Read chapter {} of the manual.", "Call at {}:00 about the delivery.", "Finished module {} of the course.",
    "Paid invoice {} for the shed.", "Planted {} tulips.", "The market was open until {}:30.", "Baked {} loaves.",
    "Measured {} degrees in the cellar.",
)  # fmt: skip
_ASKING = (
    "What did I do on {0:%B} {0.day}, {0.year}?", "What happened on {0:%A}, {0:%B} {0.day}, {0.year}?",
    "what did I do on {0:%Y-%m-%d}?", "What happened on {0.day} {0:%b} {0.year}?", "Was ist am {0:%d.%m.%Y} passiert?",
    "{0.year}年{0.month}月{0.day}日发生了什么？", "{0.year}년 {0.month}월 {0.day}일에 뭐 했어?",
    "notes of {0:%Y/%m/%d}",
    "¿Qué hice el {0.day} de {1} de {0.year}?", "{0.year}年{0.month}月{0.day}日に何をした？",
)  # fmt: skip
_SPANISH = "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many questions have the right passage first.

    Attributes:
        missed: Each question that has not, with what is first.
    """

    right: int
    asked: int
    missed: tuple[tuple[str, str], ...]

    @property
    def first(self) -> float:
        """Their share."""
        return self.right / self.asked


Asked = Mapping[str, list[tuple[str, str]]]  # by kind: question, what the first passage has to hold


def write_identifiers(folder: Path, layout: Layout) -> Asked:
    """Write the files of tickets, versions, commits and telephone numbers, and choose what is asked."""
    made = random.Random(29)
    # Some begin as another does: 104 and 1042.
    tickets = [f"PLAT-{number}" for number in [*range(1000, 1360), *range(100, 140)]]
    versions = [f"{a}.{b}" for a in range(1, 7) for b in range(5)]
    versions += [f"{version}.{c}" for version in versions for c in range(4)]
    commits = [f"{made.getrandbits(160):040x}" for _ in range(100)]
    phones = [f"06{made.randrange(50, 99)} {made.randrange(100, 999)} {made.randrange(1000, 9999)}" for _ in range(26)]
    rows = {name: _rows(made, names) for name, names in
            (("tickets", tickets), ("versions", versions), ("commits", commits), ("phones", phones))}  # fmt: skip
    (folder / "memory").mkdir(parents=True)
    for name, lines in rows.items():
        (folder / "memory" / f"{name}.md").write_text(_file(name, lines, layout), "utf-8")

    def some(name: str, count: int) -> list[tuple[str, str]]:
        return made.sample(rows[name], count)

    return {
        "tickets": [(each, deed) for each, deed in some("tickets", 60)],
        "owners": [(f"who owns {each}?", deed) for each, deed in some("tickets", 60)],
        "versions": [(f"what changed in version {each}?", deed) for each, deed in some("versions", 40)],
        "phones": [(each.replace(" ", ""), deed) for each, deed in some("phones", 26)],
        "commits": [(each[:7], deed) for each, deed in some("commits", 30)],
    }


def _rows(made: random.Random, names: list[str]) -> list[tuple[str, str]]:
    """Identifiers and the lines beside them, each line once."""
    deeds = [f"{deed} the {thing} for the {place}" for deed in _DEEDS for thing in _THINGS for place in _PLACES]
    lines = [f"{deed} (owner: {made.choice(_TEAMS)})" for deed in made.sample(deeds, len(names))]
    return list(zip(names, lines, strict=True))


def _file(title: str, rows: list[tuple[str, str]], layout: Layout) -> str:
    if layout == "items":
        lines = [f"- {name}: {deed}" for name, deed in rows]
    else:
        lines = ["| Name | What |", "| --- | --- |", *(f"| {name} | {deed} |" for name, deed in rows)]
    return "\n".join([f"# {title.title()}", "", *lines, ""])


def write_days(folder: Path) -> list[tuple[str, str]]:
    """Write the files of the days, and choose what is asked: questions, each with the path of its file."""
    made = random.Random(420)
    days = [LAST_DAY - dt.timedelta(days=ago) for ago in range(DAYS)]
    (folder / "memory").mkdir(parents=True)
    for day in days:
        lines = [f"- {note.format(made.randrange(1, 32))}" for note in made.sample(_NOTES, 5)]
        (folder / f"memory/{day}.md").write_text("\n".join([*lines, ""]), "utf-8")
    asked = made.sample(days, ASKED_DAYS)
    forms = [_ASKING[number % len(_ASKING)] for number in range(ASKED_DAYS)]
    return [
        (form.format(day, _SPANISH[day.month - 1]), f"memory/{day}.md") for form, day in zip(forms, asked, strict=True)
    ]


def measure_identifiers(folder: Path, embedder: Embedder | None, layout: Layout) -> dict[str, Share]:
    """Ask an index of the files of identifiers, by kind."""
    asked = write_identifiers(folder, layout)
    index = open_index(folder, embedder)
    found = {kind: [(question, index.search(question, limit=1).hits, deed) for question, deed in pairs]
             for kind, pairs in asked.items()}  # fmt: skip
    index.close()
    return {
        kind: _share([(question, hits[0].passage.text if hits else "", deed) for question, hits, deed in pairs])
        for kind, pairs in found.items()
    }


def measure_days(folder: Path, embedder: Embedder | None) -> Share:
    """Ask an index of the files of days."""
    asked = write_days(folder)
    index = open_index(folder, embedder)
    found = [(question, index.search(question, limit=1).hits, path) for question, path in asked]
    index.close()
    return _share([(question, hits[0].path if hits else "", path) for question, hits, path in found])


def _share(found: list[tuple[str, str, str]]) -> Share:
    missed = tuple((question, first) for question, first, want in found if want not in first)
    return Share(right=len(found) - len(missed), asked=len(found), missed=missed)


def main() -> None:
    """Run the measure and print one line of JSON per kind, layout and mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missed", type=int, default=0, help="print so many questions whose answer is not first")
    missed = parser.parse_args().missed
    with tempfile.TemporaryDirectory() as home:
        for mode, embedder in (("text", None), ("hybrid", MiniLM())):
            found = dict[tuple[str, str], Share]()
            for layout in LAYOUTS:
                shares = measure_identifiers(Path(home, mode, layout), embedder, layout)
                found |= {(layout, kind): share for kind, share in shares.items()}
            found["files", "days"] = measure_days(Path(home, mode, "days"), embedder)
            for (form, kind), share in found.items():
                line = {"mode": mode, "layout": form, "kind": kind, "right": share.right, "asked": share.asked}
                print(json.dumps(line | ({"missed": share.missed[:missed]} if missed else {}), ensure_ascii=False))


if __name__ == "__main__":
    main()
