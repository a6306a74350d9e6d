"""Quality of facts that change: `python -m tests.evals.facts` prints the numbers of each class and of both halves.

A case is two or three notes and a question. Corrections and reverted values must have the current note first and every
older one
marked with it; coexisting values, other subjects and unrelated notes must have no mark. Templates are split by
the hash of their text: rules were written with the tuned half, and the judged half has other wordings and other names,
but for the last templates of each list, which were added with the rules that read them.

`python -m tests.evals.facts --pairs` prints the same for pairs of notes that were written by hand, each in its own
wording: how many changes are marked, and how many pairs are in which nothing changed. The judged ones were written
after the rules and counted once before any of them mended a rule.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from indexer import Index
from tests.indexer.memory_store import InMemoryStore

TEMPLATES = Path(__file__).with_name("fact_changes.json")
PAIRS = Path(__file__).with_name("fact_pairs.json")
FILLS = 5
DAYS = ("2026-01-04", "2026-02-11", "2026-03-20")
NOISE = {
    "en": ("The garden needs water twice a week.", "Bring the blue folder to the archive.", "The train had a delay."),
    "zh": ("院子里的花每周浇两次水。", "把蓝色文件夹带到档案室。", "昨晚的电影很好看。"),
}
CLASSES = ("correction", "reverted", "coexisting", "other subject", "unrelated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Notes with their days, oldest first, and what is asked of them."""

    kind: str
    language: str
    judged: bool
    notes: tuple[str, ...]
    question: str
    one_file: bool

    @property
    def changes(self) -> bool:
        """True if the last note is the current one of the others."""
        return self.kind in ("correction", "reverted")


class Outcome(NamedTuple):
    """Result of a case: the current note came first, notes were wrongly marked, older ones were reached and marked."""

    first: bool
    wrong: bool
    reachable: bool
    marked: bool


def is_judged(template: str) -> bool:
    """True for a template of the judged half."""
    return hashlib.blake2b(template.encode(), digest_size=2).digest()[0] % 2 == 1


def cases() -> list[Case]:
    """All cases."""
    known = json.loads(TEMPLATES.read_text(encoding="utf-8"))
    return [case for language, part in known.items() for case in _of_language(language, part)]


def pairs(*, judged: bool) -> list[Case]:
    """Pairs of notes in wordings of their own: "correction" where the later one replaces the other, else "apart"."""
    part = json.loads(PAIRS.read_text(encoding="utf-8"))["judged" if judged else "tuned"]
    return [
        Case(
            kind="correction" if name == "changed" else "apart",
            language=language,
            judged=judged,
            notes=tuple(line.split(" | ")),
            question=line.split(" | ")[0],
            one_file=False,
        )
        for language in part
        for name, lines in part[language].items()
        for line in lines
    ]


def marked_share(found: list[tuple[Case, Outcome]], *, changes: bool) -> float:
    """Share of the pairs that are marked, of those that tell of a change or of the others."""
    some = [each.marked if changes else each.wrong for case, each in found if case.changes is changes]
    return sum(some) / max(1, len(some))


def _of_language(language: str, part: Any) -> Iterator[Case]:
    slots: dict[str, list[str]] = part["slots"]
    lists: dict[str, list[str]] = part["templates"]
    changing = [template.split(" | ") for template in lists["changing"]]
    for number, (older, newer, question) in enumerate(changing):
        judged = is_judged(older + newer)
        for fill in range(FILLS):
            first, second = _values(slots, judged, number + fill), _values(slots, judged, number + fill + 1)
            common: Any = {"language": language, "judged": judged, "one_file": fill == 2}
            old, new = _filled(older, first, first), _filled(newer, first, second)
            asked = _filled(question, first, first)
            yield Case(kind="correction", notes=(old, new), question=asked, **common)
            if fill < 2:
                back = _filled(newer, first, first, former=second)
                if "{+" in newer:
                    yield Case(kind="reverted", notes=(old, new, back), question=asked, **common)
            if fill < 3 and "{p}" in older:
                other = dict(second, p=_values(slots, judged, number + fill + 2)["p"])
                third = dict(first, p=other["p"])
                notes = (old, _filled(newer, third, second))
                yield Case(kind="other subject", notes=notes, question=asked, **common)
    for number, template in enumerate(lists["coexisting"]):
        judged = is_judged(template)
        for fill in range(FILLS + 1):
            first, second = _values(slots, judged, number + fill), _values(slots, judged, number + fill + 1)
            several = tuple(_filled(note, first, second) for note in template.split(" | "))
            yield Case(
                kind="coexisting",
                language=language,
                judged=judged,
                notes=several,
                question=several[0],
                one_file=fill == 2,
            )
    for number, (older, _, question) in enumerate(changing):
        apart = changing[(number + 7) % len(changing)]
        judged = is_judged(older + changing[number][1])
        for fill in range(2):
            first, second = _values(slots, judged, number + fill), _values(slots, judged, number + fill + 3)
            notes = (_filled(older, first, first), _filled(apart[1], second, _values(slots, judged, number + fill + 4)))
            yield Case(
                kind="unrelated",
                language=language,
                judged=judged,
                notes=notes,
                question=_filled(question, first, first),
                one_file=False,
            )


def _values(slots: dict[str, list[str]], judged: bool, turn: int) -> dict[str, str]:
    """A value for each slot, from the half of its values that belongs to the half of the cases."""
    chosen = {}
    for name, values in slots.items():
        half = values[len(values) // 2 :] if judged else values[: len(values) // 2]
        chosen[name] = half[turn % len(half)]
    return chosen


def _filled(
    template: str, subject: dict[str, str], value: dict[str, str], *, former: dict[str, str] | None = None
) -> str:
    """A note: `{p}` and other small letters are the subject's, `{+city}` the new value, `{-city}` the one before."""
    text = template
    for name in subject:
        text = text.replace(f"{{+{name}}}", value[name])
        text = text.replace(f"{{-{name}}}", (former or subject)[name])
        text = text.replace(f"{{{name}}}", subject[name])
    return text


def outcome(case: Case) -> Outcome:
    """What a search makes of a case."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "memory").mkdir()
        _write(root, case)
        index = Index(root, None, store=InMemoryStore())
        index.sync()
        hits = index.search(case.question, limit=8, history=True).hits
        index.close()
    texts = [hit.passage.text for hit in hits if hit.passage.text in case.notes]
    marks = {hit.passage.text for hit in hits if hit.replaced_by is not None}
    if not case.changes:
        return Outcome(first=True, wrong=bool(marks), reachable=True, marked=False)
    current, *older = case.notes[::-1]
    told = {each.text for hit in hits for each in hit.history}
    stale = [note for note in older if note not in (case.notes[0] if case.kind == "reverted" else "", current)]
    return Outcome(
        first=bool(texts) and texts[0] == current,
        wrong=current in marks or any(mark not in case.notes for mark in marks),
        reachable=all(note in texts or note in told for note in case.notes),
        marked=all(note in marks for note in stale),
    )


def _write(root: Path, case: Case) -> None:
    noise = NOISE[case.language]
    lines = [f"- {note}\n- {noise[place % len(noise)]}\n" for place, note in enumerate(case.notes)]
    if case.one_file:
        (root / "memory" / f"{DAYS[0]}.md").write_text("".join(lines), encoding="utf-8")
        return
    for day, text in zip(DAYS, lines, strict=False):
        (root / "memory" / f"{day}.md").write_text(text, encoding="utf-8")


class Numbers(NamedTuple):
    """The three numbers of some cases: shares of all, and how many there are."""

    cases: int
    first: float
    wrong: float
    reachable: float


def numbers(found: list[tuple[Case, Outcome]]) -> Numbers:
    """The three numbers: current first and reachable among what changes, wrongly marked among all."""
    changing = [outcome for case, outcome in found if case.changes]
    return Numbers(
        cases=len(found),
        first=sum(each.first for each in changing) / max(1, len(changing)),
        wrong=sum(each.wrong for _, each in found) / max(1, len(found)),
        reachable=sum(each.reachable for each in changing) / max(1, len(changing)),
    )


def _print_pairs() -> None:
    for judged in (False, True):
        found = [(case, outcome(case)) for case in pairs(judged=judged)]
        shares = [f"{marked_share(found, changes=changes):.3f}" for changes in (True, False)]
        print("judged" if judged else "tuned", f"{len(found)} pairs, changes marked {shares[0]}, others {shares[1]}")


def main() -> None:
    """Print the numbers, and what went wrong in the tuned half where `--failures` is given."""
    if "--pairs" in sys.argv:
        _print_pairs()
        return
    found = [(case, outcome(case)) for case in cases()]
    for judged in (False, True):
        half = [each for each in found if each[0].judged is judged]
        print("judged" if judged else "tuned", numbers(half))
        for language in ("en", "zh"):
            groups = defaultdict[str, list[tuple[Case, Outcome]]](list)
            for case, result in half:
                if case.language == language:
                    groups[case.kind].append((case, result))
            for kind in CLASSES:
                marked = sum(result.marked for _, result in groups[kind])
                print(f"  {language} {kind:<14}", *numbers(groups[kind]), f"marked {marked}/{len(groups[kind])}")
    if "--failures" in sys.argv:
        bad = (
            (case, result)
            for case, result in found
            if not case.judged
            and (result.wrong or not result.first or not result.reachable or (case.changes and not result.marked))
        )
        for case, result in islice(bad, 200):
            print(case.kind, case.language, *case.notes, "?", case.question, result, sep="\n   ")


if __name__ == "__main__":
    main()
