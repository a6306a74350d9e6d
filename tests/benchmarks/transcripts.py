"""The speed of following a session as it grows, beside reading all of it in the same run.

`python -m tests.benchmarks.transcripts [--messages 2000 10000]`

A log of so many messages is indexed; then ten more are appended, again and again:

- grown: a sync by the index that knows the log;
- anew: a sync by another index object on the same files, which has to read and compare all of it;
- parse: `split_transcript` of the whole log alone.

Vectors come from `HashEmbedder`; `embed_ms` is what it takes for the ten, and is part of both syncs.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from indexer import Index
from indexer.documents.transcripts import split_transcript
from indexer.testing import HashEmbedder
from memory_service.sessions.records import MessageRecord
from memory_service.storage.files.jsonl_log import JsonlLog
from tests.benchmarks.index import WORDS

_PATH = "sessions/talk.jsonl"
_STEP = 10
_ROUNDS = 9


def spoken(count: int, chance: random.Random) -> list[MessageRecord]:
    """Messages of two, as a service appends them."""
    made = []
    for number in range(count):
        role, name = (("user", "Anna"), ("assistant", "Ben"))[number % 2]
        words = " ".join(chance.choices(WORDS, k=chance.randint(8, 60)))
        made.append(MessageRecord(text=json.dumps({"role": role, "content": f"{name}: {words}."})))
    return made


def follow(messages: int) -> dict[str, float]:
    """Milliseconds, medians of several rounds."""
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "sessions").mkdir()
        log = JsonlLog(root / _PATH)
        for _ in range(messages // 100):
            log.append(spoken(100, chance))
        embedder = HashEmbedder()
        index = Index(root, embedder)
        index.sync()
        times: dict[str, list[float]] = {"grown": [], "anew": [], "parse": [], "embed": []}
        for turn in range(2 * _ROUNDS):
            ten = spoken(_STEP, chance)
            log.append(ten)
            grows = turn % 2 == 0
            other = index if grows else Index(root, embedder)
            times["grown" if grows else "anew"].append(_ms(partial(other.sync, [_PATH])))
            raw = (root / _PATH).read_bytes()
            times["parse"].append(_ms(partial(split_transcript, raw)))
            times["embed"].append(_ms(partial(embedder.embed_documents, [m.text for m in ten])))
            if not grows:
                other.close()
                # The one that knows the log has to see what the other one stored: it reads it once more.
                log.append(spoken(_STEP, chance))
                index.sync([_PATH])
        index.close()
    row = {f"{what}_ms": round(statistics.median(taken), 2) for what, taken in times.items()}
    return {"messages": messages, **row, "ratio": round(row["anew_ms"] / row["grown_ms"], 1)}


def _ms(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return (time.perf_counter() - started) * 1000


def main() -> None:
    """Run all and print one line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, nargs="+", default=[2000, 10_000])
    for messages in parser.parse_args().messages:
        print(json.dumps({"follow": follow(messages)}))


if __name__ == "__main__":
    main()
