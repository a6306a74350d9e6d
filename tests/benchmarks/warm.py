"""Commands and hooks through a running server and without one, and a long transcript that is read on.

`python -m tests.benchmarks.warm [--megabytes N] [--rounds N]` prints seconds, from the start of the process to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.index import write_notes
from tests.serving import own_process

_PROGRAM = (sys.executable, "-m", "memory_service")
_SESSION = "3f9a1b2c-0000-4000-8000-000000000001"


def _run(arguments: list[str], home: Path, stdin: str = "") -> float:
    """Seconds of one command."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_SERVICE_")}
    started = time.perf_counter()
    done = subprocess.run(
        [*_PROGRAM, *arguments],
        input=stdin.encode(),
        env={**given, "MEMORY_SERVICE_HOME": str(home)},
        capture_output=True,
        check=True,
    )
    seconds = time.perf_counter() - started
    assert not (home / "hooks.log").exists(), (home / "hooks.log").read_text()
    assert b"note:" not in done.stderr, done.stderr
    return seconds


def _figures(run: Callable[[], float], rounds: int) -> dict[str, float]:
    times = sorted(run() for _ in range(rounds))
    return {"p50": round(statistics.median(times), 3), "p95": round(times[min(rounds - 1, int(rounds * 0.95))], 3)}


def _call(project: Path, name: str, **fields: str) -> str:
    transcript = str(project / "transcript.jsonl")
    base = {"session_id": _SESSION, "cwd": str(project), "transcript_path": transcript, "hook_event_name": name}
    return json.dumps({**base, **fields})


def _message(number: int) -> str:
    said = {"role": "user", "content": f"Note {number}: the release train {number % 50} leaves on day {number % 28}."}
    return json.dumps({"type": "user", "uuid": f"u{number}", "isSidechain": False, "message": said}) + "\n"


def _write_transcript(file: Path, megabytes: int) -> None:
    """A transcript as hosts write them: few of its bytes are words."""
    filler = json.dumps({"type": "attachment", "attachment": {"text": "x" * 8_000}}) + "\n"
    with file.open("a") as opened:
        for number in range(megabytes * 1_000_000 // 40_000):
            opened.write(_message(number) + filler * 5)


def _commands(home: Path, project: Path, rounds: int) -> dict[str, dict[str, float]]:
    question = "when do we deploy?"
    numbers = iter(range(10**6))
    prompt = _call(project, "UserPromptSubmit", prompt="When did we decide to deploy?")
    return {
        "search": _figures(lambda: _run(["search", question], home), rounds),
        "context": _figures(lambda: _run(["context", question], home), rounds),
        "get": _figures(lambda: _run(["get", "memory/2020-01-01.md", "--lines", "5"], home), rounds),
        "remember": _figures(lambda: _run(["remember", f"Fact number {next(numbers)}."], home), rounds),
        "hook, a start": _figures(
            lambda: _run(["hook", "claude-code"], home, _call(project, "SessionStart", source="startup")), rounds
        ),
        "hook, a prompt": _figures(lambda: _run(["hook", "claude-code"], home, prompt), rounds),
        "hook, an end of a turn": _figures(lambda: _stopped(home, project, next(numbers)), rounds),
    }


def _stopped(home: Path, project: Path, number: int) -> float:
    with (project / "transcript.jsonl").open("a") as opened:
        opened.write(_message(10**6 + number))
    return _run(["hook", "claude-code"], home, _call(project, "Stop"))


def main() -> None:
    """Measure all and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder) / "home", Path(folder) / "project"
        project.mkdir()
        write_notes(home / "default", 100, 20)
        first = sorted((home / "default" / "memory").iterdir())[0]
        first.rename(first.with_name("2020-01-01.md"))
        _run(["reindex"], home)
        (project / "transcript.jsonl").write_text(_message(0))
        cold = _commands(home, project, max(3, chosen.rounds // 4))
        with own_process(home, {}):
            warm = _commands(home, project, chosen.rounds)
            _write_transcript(project / "transcript.jsonl", chosen.megabytes)
            started = time.perf_counter()
            _stopped(home, project, 0)
            _wait_until_read(home, project)
            long = {"first read": round(time.perf_counter() - started, 3)}
            long |= _figures(lambda: _stopped(home, project, time.time_ns()), chosen.rounds)
        long_cold = _figures(lambda: _stopped(home, project, time.time_ns()), 3)
    print(json.dumps({"cold": cold, "warm": warm, f"{chosen.megabytes} MB": long, "the same, cold": long_cold}))


def _wait_until_read(home: Path, project: Path) -> None:
    [file] = home.glob("*/.hosts/*.json")
    size = (project / "transcript.jsonl").stat().st_size
    while json.loads(file.read_bytes())["place"]["offset"] < size:
        time.sleep(0.05)


if __name__ == "__main__":
    main()
