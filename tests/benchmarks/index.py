"""The speed of indexing, each number beside a reference of the same run.

`python -m tests.benchmarks.index [--files 10000] [--passages 800] [--lines 50000]`

- throughput: a reindex against the bare embedder on the same texts, in turns, best of each;
- lexical: passages per second without a model, on lines of 60 to 150 characters, in seconds of the clock and of CPU;
- no-op: a reindex of unchanged files, in seconds of CPU, as a multiple of a bare walk of them (`os.scandir` and
  `stat`), in turns, medians; and how many of them it opened; of memory files, and of an extra folder with ignore rules;
- one changed: a reindex after one of them changed, as a multiple of the no-op.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from indexer import Index, MiniLM
from indexer.sources.folders import ExtraFolder, FileSource, Folders
from indexer.testing import HashEmbedder

WORDS = (
    "deploy database stand-up Tuesday courier invoice customer shipment warehouse greenhouse supplier ticket release "
    "error server backup migration price discount newsletter meeting decision owner deadline travel holiday account "
    "password rotation latency budget printer label parcel return refund photo product search filter report".split()
)
IGNORED = (
    "# made\n*.pyc\n*.log\n/out/\nnode_modules/\n.env\n!keep.log\n*.tmp\ndocs/_build/\n*.sw?\n*~\nsecret*\n**/cache/\n"
)


def write_notes(folder: Path, files: int, lines: int, seed: int = 1, words: tuple[int, int] = (8, 30)) -> list[str]:
    """Fill a workspace with dated notes of random words; gives the text of every list item."""
    chance = random.Random(seed)
    texts = []
    (folder / "memory").mkdir(parents=True)
    for number in range(files):
        items = [" ".join(chance.choices(WORDS, k=chance.randint(*words))) for _ in range(lines)]
        texts += items
        body = "".join(f"- {item}\n" for item in items)
        (folder / "memory" / f"note-{number:05}.md").write_text(f"# Note {number}\n\n{body}", "utf-8")
    return texts


def throughput(passages: int) -> dict[str, float]:
    """Passages per second of a reindex and of the embedder alone."""
    embedder = MiniLM()
    embedder.embed_query("warm")
    rates: dict[str, list[float]] = {"bare": [], "reindex": []}
    for turn in range(8):
        with tempfile.TemporaryDirectory() as name:
            texts = write_notes(Path(name), passages // 20, 20, seed=turn)
            started = time.perf_counter()
            embedder.embed_documents(texts)
            rates["bare"].append(len(texts) / (time.perf_counter() - started))
            index = Index(Path(name), embedder)
            started = time.perf_counter()
            embedded = index.sync().embedded
            rates["reindex"].append(embedded / (time.perf_counter() - started))
            index.close()
    bare, reindex = max(rates["bare"]), max(rates["reindex"])
    return {
        "bare_per_second": round(bare, 1),
        "reindex_per_second": round(reindex, 1),
        "ratio": round(reindex / bare, 3),
    }


def lexical(lines: int) -> dict[str, float]:
    """Passages per second without a model."""
    walls, cpus = [], []
    for turn in range(3):
        with tempfile.TemporaryDirectory() as name:
            write_notes(Path(name), lines // 100, 100, seed=turn, words=(9, 20))
            index = Index(Path(name), None)
            wall, cpu = time.perf_counter(), time.process_time()
            index.sync()
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
            index.close()
    return {"passages": lines, "per_second": round(lines / min(walls)), "per_cpu_second": round(lines / min(cpus))}


def _walk(folder: str) -> int:
    """Look at every file, and do nothing else."""
    seen = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                seen += _walk(entry.path)
            else:
                entry.stat(follow_symlinks=False)
                seen += 1
    return seen


def no_op(files: int) -> dict[str, float]:
    """What a reindex costs when nothing, and when one file, has changed."""
    opened = [0]

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith(".md"):
            opened[0] += 1

    sys.addaudithook(audit)
    with tempfile.TemporaryDirectory() as name:
        write_notes(Path(name), files, 3)
        index = Index(Path(name), HashEmbedder())
        index.sync()
        time.sleep(0.1)
        index.sync()
        opened[0] = 0
        idle, walk = _in_turns(index.sync, lambda: _walk(name))
        read = opened[0]
        changed = []
        for number in range(5):
            with (Path(name) / "memory" / f"note-{number:05}.md").open("a", encoding="utf-8") as note:
                note.write("- one more line\n")
            changed.append(_cpu_seconds(index.sync))
        index.close()
    return {
        "files": files,
        "cpu_seconds": round(idle, 4),
        "walk_ratio": round(idle / walk, 2),
        "files_read": read,
        "one_changed_ratio": round(statistics.median(changed) / idle, 2),
    }


def no_op_beside(files: int) -> dict[str, float]:
    """What a reindex costs when nothing has changed in an extra folder."""
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        root, beside = Path(name) / "workspace", Path(name) / "beside"
        root.mkdir()
        for number in range(files):
            place = beside / f"part-{number % 10}" / f"module-{number // 10 % 25}"
            place.mkdir(parents=True, exist_ok=True)
            file = place / f"file-{number:05}.{chance.choice(('py', 'md', 'ts', 'txt', 'go'))}"
            file.write_text(f"def number_{number}():\n    return {number}\n", "utf-8")
        (beside / ".gitignore").write_text(IGNORED, "utf-8")
        (beside / "part-3" / ".gitignore").write_text("*.o\nbuild/\n", "utf-8")
        index = Index(
            FileSource(root, extra=Folders(root, [ExtraFolder(name="beside", folder=beside)])), HashEmbedder()
        )
        index.sync()
        time.sleep(0.1)
        index.sync()
        idle, walk = _in_turns(index.sync, lambda: _walk(str(beside)))
        index.close()
    return {"files": files, "cpu_seconds": round(idle, 4), "walk_ratio": round(idle / walk, 2)}


def _in_turns(first: Callable[[], object], second: Callable[[], object], turns: int = 11) -> tuple[float, float]:
    """Median seconds of CPU that each of two takes."""
    pairs = [(_cpu_seconds(first), _cpu_seconds(second)) for _ in range(turns)]
    return statistics.median(one for one, _ in pairs), statistics.median(other for _, other in pairs)


def _cpu_seconds(act: Callable[[], object]) -> float:
    started = time.process_time()
    act()
    return time.process_time() - started


def main() -> None:
    """Run all and print one line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--passages", type=int, default=800)
    parser.add_argument("--lines", type=int, default=50_000)
    arguments = parser.parse_args()
    print(json.dumps({"no_op": no_op(arguments.files)}))
    print(json.dumps({"no_op_beside": no_op_beside(arguments.files)}))
    print(json.dumps({"lexical": lexical(arguments.lines)}))
    print(json.dumps({"throughput": throughput(arguments.passages)}))


if __name__ == "__main__":
    main()
