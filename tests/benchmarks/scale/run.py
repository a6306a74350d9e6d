"""The run: every size, every system, one process after another, and what comes of it as lines of a table.

Invariants: a system that is missing, fails or takes too long has its line with the reason; nothing is left out.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from itertools import chain, islice
from pathlib import Path

import numpy as np

from tests.benchmarks.scale.material import Material, prepared
from tests.benchmarks.scale.peers.base import SYSTEMS, system
from tests.benchmarks.scale.values import Asked, Built, Line, Made, Question, Report
from tests.benchmarks.scale.vectors import recall

ROOT = Path(__file__).resolve().parents[3]
_REASON_CHARS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a run goes.

    Attributes:
        sizes: Passages, each with every kind of vectors that it is made with.
        systems: Names from the list.
        minilm_most: Larger corpora are not embedded by the model.
        direct: Whether ours is built without files.
        most_seconds: How long a system may build, and how long it may be asked, at each size.
        folder: Where materials are kept from run to run.
    """

    sizes: tuple[int, ...]
    systems: tuple[str, ...]
    made: tuple[Made, ...]
    minilm_most: int
    questions: int
    rounds: int
    direct: bool
    most_seconds: float
    folder: Path


class TrialFailed(Exception):
    """A system could not do it; the text says why."""


def run(settings: Settings, told: Callable[[Report], None]) -> Report:
    """Measure everything; what there is so far is told after every line."""
    report = Report(machine=_machine(), versions=versions(settings.systems), lines=())
    for size in settings.sizes:
        for made in settings.made:
            if made == "minilm" and size > settings.minilm_most:
                continue
            material = prepared(settings.folder, size, made, settings.questions)
            questions = material.questions()
            for name in settings.systems:
                line = measured(name, material, questions, settings)
                report = replace(report, lines=(*report.lines, line))
                told(report)
    return report


def measured(name: str, material: Material, questions: Sequence[Question], settings: Settings) -> Line:
    """A system at a size."""
    tried = system(name)
    line = Line(system=name, title=tried.title, does=tried.does, passages=material.size, vectors=material.made)
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        try:
            built = Built(**json.loads(_trial("build", name, material, Path(folder), settings)))
            line = replace(
                line,
                build_seconds=built.seconds,
                passages_per_second=material.size / built.seconds,
                disk_bytes=built.disk_bytes,
                build_peak_bytes=built.peak_bytes,
            )
            asked = Asked(**json.loads(_trial("ask", name, material, Path(folder), settings)))
        except TrialFailed as reason:
            return replace(line, note=str(reason))
    return answered(line, asked, material, questions)


def answered(line: Line, asked: Asked, material: Material, questions: Sequence[Question]) -> Line:
    """The line with what the answers came to."""
    milliseconds = list(chain.from_iterable(asked.milliseconds.values()))
    own = [question.row in found for question, found in zip(questions, asked.found, strict=False)]
    note = "" if len(asked.found) == len(questions) else f"asked {len(asked.found)} of {len(questions)} questions only"
    if next(islice(material.texts(), asked.found[0][0], None)) != asked.first_text:
        note = "its answer is no passage of the corpus"
    vectors = np.stack([question.vector for question in questions])
    return replace(
        line,
        start_seconds=asked.start_seconds,
        searches=len(milliseconds),
        p50_ms=float(np.percentile(milliseconds, 50)),
        p99_ms=float(np.percentile(milliseconds, 99)),
        kind_p50_ms={kind: float(np.median(some)) for kind, some in asked.milliseconds.items() if some},
        cpu_ms=asked.cpu_milliseconds,
        base_bytes=asked.base_bytes,
        resident_bytes=asked.resident_bytes,
        recall=recall(asked.nearest, material.vectors, vectors, material.lowest) if asked.nearest else None,
        filtered=asked.filtered,
        found=float(np.mean(own)),
        note=note,
    )


def versions(systems: Sequence[str]) -> dict[str, str]:
    """The installed versions of the systems' packages; "not installed" where there is none."""
    names = sorted({package for name in systems for package in system(name).packages})
    return {name: _version(name) for name in names}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _machine() -> str:
    return f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} processors"


def _trial(step: str, name: str, material: Material, folder: Path, settings: Settings) -> str:
    """The result of a trial as JSON, as its process printed it.

    Raises:
        TrialFailed: It ended with an error, or did not end in time.
    """
    command = [sys.executable, "-m", "tests.benchmarks.scale.trial", step, name, str(material.folder)]
    command += [material.made, str(material.size), str(folder), "--began", repr(time.time())]
    command += ["--rounds", str(settings.rounds), "--most-seconds", str(settings.most_seconds)]
    command += ["--direct"] if settings.direct else []
    # To be asked is two stretches of that time, the start and the last question come on top.
    patience = settings.most_seconds * (1 if step == "build" else 4)
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        output, errors = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise TrialFailed(f"> {patience:g} s to {step}") from None
    if process.returncode:
        raise TrialFailed(f"{step}: {reason_in(errors, process.returncode)}")
    return output.splitlines()[-1]


def reason_in(errors: str, code: int) -> str:
    """The last line that a failed process wrote, shortened."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    reason = lines[-1] if lines else f"it ended with {code}"
    return reason if len(reason) <= _REASON_CHARS else reason[: _REASON_CHARS - 1] + "…"


def all_systems() -> tuple[str, ...]:
    """The names in the list."""
    return tuple(SYSTEMS)


def default_folder() -> Path:
    """Where materials are kept unless told otherwise."""
    return Path(tempfile.gettempdir()) / "memory-service-scale"
