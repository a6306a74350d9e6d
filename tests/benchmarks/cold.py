"""The cold start: what a command costs in a fresh process, beside an empty Python.

`python -m tests.benchmarks.cold`
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.index import write_notes

_ROUNDS = 7


def best_seconds(*arguments: str) -> float:
    """The best of several runs of a Python process."""
    times = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    return round(min(times), 3)


def main() -> None:
    """Measure all and print one line of JSON."""
    with tempfile.TemporaryDirectory() as home:
        write_notes(Path(home) / "default", 100, 20)
        command = ("-m", "memory_service")
        subprocess.run([sys.executable, *command, "reindex", "--home", home], check=True, stdout=subprocess.DEVNULL)
        figures = {
            "python": best_seconds("-c", "pass"),
            "import memory_service": best_seconds("-c", "import memory_service"),
            "--help": best_seconds(*command, "--help"),
            "search, 2,000 passages": best_seconds(*command, "search", "when do we deploy?", "--home", home),
        }
    print(json.dumps({"seconds": figures}))


if __name__ == "__main__":
    main()
