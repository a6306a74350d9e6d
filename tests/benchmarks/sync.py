"""A folder of files in step with a server: the first sync, one with nothing to do, one after changes on both sides.

`python -m tests.benchmarks.sync [--files 1000]`

One line of JSON: seconds of each, with the server in the same process and without a model; beside them the seconds that
it takes to read all files of the folder, which each sync does.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from memory_service.client import MemoryClient
from memory_service.service import MemoryService
from memory_service.sync import WorkspaceSync
from tests.serving import serving, settings

_ROUNDS = 5
_WORKSPACE = "team"


def fill(folder: Path, files: int) -> list[Path]:
    """Files of some 2.5 kB."""
    (folder / "memory").mkdir(parents=True)
    paths = [folder / f"memory/note-{number:05}.md" for number in range(files)]
    for number, path in enumerate(paths):
        path.write_text("".join(f"- Note {number}, line {line}: {'word ' * 10}\n" for line in range(32)))
    return paths


def seconds(work: Callable[[], object]) -> float:
    """How long some work takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def measure(files: int) -> dict[str, float]:
    """The seconds of each sync."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "notes"
        paths = fill(folder, files)
        with (
            MemoryService(settings(Path(place) / "home", embedding_model="none")) as service,
            serving(service) as server,
            MemoryClient(server.url, workspace=_WORKSPACE) as client,
            WorkspaceSync(folder, url=server.url, workspace=_WORKSPACE) as sync,
            WorkspaceSync(Path(place) / "other", url=server.url, workspace=_WORKSPACE) as other,
        ):
            measured = {"send_all": seconds(sync.run), "take_all": seconds(other.run)}
            measured["nothing_to_do"] = min(seconds(sync.run) for _ in range(_ROUNDS))
            paths[0].write_text("- Changed here.\n")
            there = client.get("memory/note-00001.md")
            client.put(there.path, "- Changed there.\n", etag=there.etag)
            measured["one_changed_on_each_side"] = seconds(sync.run)
            measured["read_all"] = min(seconds(lambda: [path.read_bytes() for path in paths]) for _ in range(_ROUNDS))
    return {name: round(value, 3) for name, value in measured.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000)
    print(json.dumps(measure(parser.parse_args().files)))


if __name__ == "__main__":
    main()
