"""How long readers and writers wait while an index is rebuilt or packed, against the quiet time of the same run.

`python -m tests.benchmarks.rebuild [--passages 20000] [--model random|minilm|none] [--same-model]`

One thread searches and one remembers without a pause, first for some seconds of quiet, then for as long as a full
rebuild takes in the same process, and a packing. Printed are the quiet p99, the longest wait, and how much that is
above it; the rebuild's passages per second stand beside those of one that nobody disturbs. Another process only sleeps
and looks how late it wakes: `calm` leaves out the calls during which the machine itself was late.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import multiprocessing
import random
import statistics
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

from indexer import Embedder, Index, MiniLM
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from memory_service.memories.drafts import entry_draft
from memory_service.memories.long_term import LongTermMemory
from memory_service.memories.store import MemoryStore
from memory_service.storage.files.document_files import FileDocuments
from memory_service.storage.files.log_folder import LogFolder
from tests.memory_service.storage.in_memory_records import erasures

# When a call began and ended, seconds of `perf_counter`, which all processes of a machine share.
Span = tuple[float, float]

_LINES = 100
_PACKINGS = 3
_NAP_SECONDS = 0.002
_LATE_SECONDS = 0.008
_NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)


def write_notes(folder: Path, passages: int) -> list[str]:
    """Fill a workspace with list items of invented words, some of them common; gives the words."""
    chance = random.Random(7)
    words = ["".join(chance.choices("aeiou", k=2)).join(chance.choices("bdfgklmnprst", k=3)) for _ in range(8_000)]
    weights = [1 / (rank + 3) for rank in range(len(words))]
    (folder / "memory").mkdir(parents=True)
    for number in range(passages // _LINES):
        items = [" ".join(chance.choices(words, weights, k=chance.randint(8, 25))) for _ in range(_LINES)]
        body = "".join(f"- {item}\n" for item in items)
        (folder / "memory" / f"note-{number:05}.md").write_text(f"# Note {number}\n\n{body}", "utf-8")
    return words


class RandomEmbedder(HashEmbedder):
    """Gives every text a direction of its own: as cheap to a Python thread as a model that computes outside it."""

    def embed_query(self, text: str) -> Vectors:
        """See `Embedder`."""
        seed = zlib.crc32(f"{self.fingerprint}:{text}".encode())
        vector = np.random.default_rng(seed).standard_normal(self.dimensions, np.float32)
        return np.asarray(vector / np.linalg.norm(vector), np.float32)


class Lookout:
    """A process of its own that sees when the machine lets nobody have their turn: within a `with` block."""

    def __init__(self) -> None:
        self._over = multiprocessing.get_context("spawn").Event()
        self._ours, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(target=look_out, args=(self._over, theirs))
        self.stalls: list[Span] = []

    def __enter__(self) -> Lookout:
        """Begin."""
        self._process.start()
        self._ours.recv()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop; what was seen stands in `stalls`."""
        self._over.set()
        self.stalls = self._ours.recv()
        self._process.join()


def look_out(over: Event, seen: Connection) -> None:
    """Sleep a little again and again; send how often that took much longer."""
    stalls, parent = list[Span](), multiprocessing.parent_process()
    seen.send(None)
    while not over.is_set() and parent and parent.is_alive():
        started = time.perf_counter()
        time.sleep(_NAP_SECONDS)
        if (ended := time.perf_counter()) > started + _NAP_SECONDS + _LATE_SECONDS:
            stalls.append((started, ended))
    seen.send(stalls)


class Strain:
    """Two threads that search and remember until they are stopped."""

    def __init__(self, memory: LongTermMemory, words: list[str]) -> None:
        self._memory = memory
        self._words = words
        self._over = threading.Event()
        self._number = 0

    def during(self, work: Callable[[], object]) -> dict[str, list[Span]]:
        """When every search and every write began and ended while some work is done."""
        taken: dict[str, list[Span]] = {"search": [], "remember": []}
        self._over.clear()
        threads = [
            threading.Thread(target=self._repeat, args=(self._search, taken["search"])),
            threading.Thread(target=self._repeat, args=(self._remember, taken["remember"])),
        ]
        for thread in threads:
            thread.start()
        try:
            work()
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        return taken

    def _repeat(self, act: Callable[[], None], taken: list[Span]) -> None:
        while not self._over.is_set():
            started = time.perf_counter()
            act()
            taken.append((started, time.perf_counter()))
            # Agents think between two calls; two threads that never rest would be a quiet time of another kind.
            time.sleep(0.01)

    def _search(self) -> None:
        found = self._memory.index.search(" ".join(random.choices(self._words[50:], k=4)))
        assert all("--full" in reason for reason in found.degraded), found.degraded

    def _remember(self) -> None:
        self._number += 1
        # Days of fifty entries, as a file that grows without end would be slower and slower to write.
        day = _NOW.date() - dt.timedelta(days=self._number // 50)
        text = f"remembered {self._number} {' '.join(random.choices(self._words, k=8))}"
        _, missing = self._memory.remember(entry_draft(text, date=day))
        assert all("--full" in reason for reason in missing), missing


def p99(taken: list[float]) -> float:
    """The 99th percentile."""
    return statistics.quantiles(taken, n=100)[98]


def run(passages: int, model: str, same_model: bool, quiet_seconds: float) -> list[dict[str, object]]:
    """Build, keep quiet, rebuild, pack; one record for each kind of waiting and one for the rebuild."""
    with tempfile.TemporaryDirectory() as name, Lookout() as lookout:
        folder = Path(name) / "w"
        words = write_notes(folder, passages)
        Index(folder, made_with(model, other=not same_model)).sync()
        index = Index(folder, made_with(model, other=False))
        files, logs = MemoryStore(FileDocuments(folder), now=lambda: _NOW), LogFolder(folder / "sessions")
        memory = LongTermMemory(files, index, erasures(), lambda: logs)
        strain = Strain(memory, words)
        strain.during(lambda: time.sleep(2))
        quiet = strain.during(lambda: time.sleep(quiet_seconds))
        started = time.perf_counter()
        rebuilt = strain.during(lambda: index.sync(full=True))
        seconds = time.perf_counter() - started
        settled = strain.during(lambda: time.sleep(quiet_seconds))
        packed = strain.during(lambda: pack(folder, index))
        started = time.perf_counter()
        index.sync(full=True)
        alone = time.perf_counter() - started
        memory.close()
    phases = (("rebuild", quiet, rebuilt), ("pack", settled, packed))
    records = [waits(f"{kind}, {what}", q[kind], b[kind], lookout.stalls) for what, q, b in phases for kind in q]
    rates = {"rebuild_per_second": round(passages / seconds), "alone_per_second": round(passages / alone)}
    return [*records, {"rebuild_seconds": round(seconds, 1), **rates}]


def pack(folder: Path, index: Index) -> None:
    """Pack an index as it is packed after many writes, some times; what is mapped stays in use meanwhile."""
    for _ in range(_PACKINGS):
        for path in folder.glob("*.pack"):
            path.unlink()
        assert index.pack() == ()


def made_with(model: str, *, other: bool) -> Embedder | None:
    """The embedder, or another one that has made the index before."""
    if model == "random" or other:
        return RandomEmbedder(384, seed=int(other))
    return MiniLM() if model == "minilm" else None


def waits(what: str, quiet: list[Span], busy: list[Span], stalls: list[Span]) -> dict[str, object]:
    """How waiting during some work compares with the quiet time."""
    before, during = milliseconds(quiet), milliseconds(busy)
    calm_before, calm = (milliseconds([span for span in spans if is_calm(span, stalls)]) for spans in (quiet, busy))
    return {
        "what": what,
        "quiet_p50_ms": round(statistics.median(before), 1),
        "quiet_p99_ms": round(p99(before), 1),
        "quiet_max_ms": round(max(before), 1),
        "busy_p50_ms": round(statistics.median(during), 1),
        "busy_p99_ms": round(p99(during), 1),
        "longest_ms": round(max(during), 1),
        "above_quiet_p99_ms": round(max(during) - p99(before), 1),
        "calm_above_quiet_p99_ms": round(max(calm) - p99(calm_before), 1),
        "calls": [len(before), len(during)],
        "calm": [len(calm_before), len(calm)],
    }


def milliseconds(spans: list[Span]) -> list[float]:
    """How long each took."""
    return [1000 * (ended - started) for started, ended in spans]


def is_calm(span: Span, stalls: list[Span]) -> bool:
    """Whether the machine was never late meanwhile."""
    return not any(started < span[1] and ended > span[0] for started, ended in stalls)


def main() -> None:
    """Run it and print one line of JSON for each record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--model", choices=("random", "minilm", "none"), default="random")
    parser.add_argument("--same-model", action="store_true", help="Take the vectors of the index in use.")
    parser.add_argument("--quiet-seconds", type=float, default=10)
    arguments = parser.parse_args()
    for record in run(arguments.passages, arguments.model, arguments.same_model, arguments.quiet_seconds):
        print(json.dumps(record))


if __name__ == "__main__":
    main()
