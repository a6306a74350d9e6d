"""One trial: a system, in a process of its own, builds an index or answers from it, and says what it took.

`python -m tests.benchmarks.scale.trial build|ask SYSTEM MATERIAL MADE SIZE FOLDER ...` is for `run` alone; its last
line of output is the result as JSON.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.benchmarks.scale.material import Material
from tests.benchmarks.scale.peers.base import System, system
from tests.benchmarks.scale.usage import folder_bytes, peak_bytes, resident_bytes
from tests.benchmarks.scale.values import KINDS, Asked, Built, Kind, Question

_WARMING = 20


def build(tried: System, material: Material, folder: Path) -> Built:
    """Index the material."""
    import_all(tried)
    tried.stage(material, folder)
    staged = folder_bytes(folder)
    started = time.perf_counter()
    tried.build(material, folder)
    seconds = time.perf_counter() - started
    return Built(seconds=seconds, disk_bytes=folder_bytes(folder) - staged, peak_bytes=peak_bytes())


def ask(tried: System, material: Material, folder: Path, *, began: float, rounds: int, most_seconds: float) -> Asked:
    """Answer the questions.

    Args:
        tried: What answers.
        material: What it has indexed.
        folder: Where.
        began: When this process was started, by the clock of `time.time`.
        rounds: How often all are asked and timed, after some that only warm up.
        most_seconds: When this is over, no more is asked.
    """
    import_all(tried)
    base = resident_bytes()
    questions = material.questions()
    tried.open(material, folder)
    first = tried.search(questions[0])
    start_seconds = time.time() - began
    last = time.monotonic() + most_seconds
    for question in questions[:_WARMING]:
        if time.monotonic() < last:
            tried.search(question)
    found, milliseconds, cpu = timed(tried, questions * rounds, last)
    resident = resident_bytes()
    return Asked(
        start_seconds=start_seconds,
        milliseconds=milliseconds,
        cpu_milliseconds=cpu,
        base_bytes=base,
        resident_bytes=resident,
        found=found[: len(questions)],
        nearest=nearest(tried, questions, time.monotonic() + most_seconds),
        filtered=tried.filtered_recall(material),
        first_text=first[0].text,
    )


def import_all(tried: System) -> None:
    """Import what a system needs, so that its packages count as the process, not as the corpus."""
    for name in tried.modules:
        importlib.import_module(name)


def timed(
    tried: System, questions: Sequence[Question], last: float
) -> tuple[list[list[int]], dict[Kind, list[float]], float]:
    """Rows found for each question, milliseconds by kind, and mean milliseconds of processor time."""
    found: list[list[int]] = []
    milliseconds: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    cpu = time.process_time()
    for question in questions:
        if time.monotonic() > last and found:
            break
        started = time.perf_counter()
        answers = tried.search(question)
        milliseconds[question.kind].append((time.perf_counter() - started) * 1000)
        found.append([answer.row for answer in answers])
    return found, milliseconds, (time.process_time() - cpu) * 1000 / len(found)


def nearest(tried: System, questions: Sequence[Question], last: float) -> list[list[int]]:
    """Rows that the vectors alone find, as far as time allows."""
    found: list[list[int]] = []
    for question in questions:
        if time.monotonic() > last:
            break
        found.append(list(tried.nearest(question)))
    return found if any(found) else []


def main() -> None:
    """Run one trial and print its result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("build", "ask"))
    parser.add_argument("system")
    parser.add_argument("material", type=Path)
    parser.add_argument("made", choices=("clustered", "minilm"))
    parser.add_argument("size", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--direct", action="store_true")
    parser.add_argument("--began", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most-seconds", type=float, default=120.0)
    given = parser.parse_args()
    material = Material(folder=given.material, size=given.size, made=given.made)
    tried = system(given.system, direct=given.direct)
    result: Built | Asked
    if given.step == "build":
        result = build(tried, material, given.folder)
    else:
        began, rounds, most = given.began, given.rounds, given.most_seconds
        result = ask(tried, material, given.folder, began=began, rounds=rounds, most_seconds=most)
    print(json.dumps(asdict(result)), flush=True)


if __name__ == "__main__":
    main()
