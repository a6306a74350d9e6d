"""Sqlite-vec and FTS5 used plainly, as most projects use them: the mark that this project is measured against.

A scan of all vectors (vec0, float32) and `bm25()` for the words, 50 of each, joined by reciprocal ranks; words of
more than a tenth of the passages are dropped, without which a question of common words takes seconds. The driver is
the fastest there is, and the file is mapped into memory: this is the plain design at its best.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.scale.material import Material
from tests.benchmarks.scale.peers.base import System, vendor
from tests.benchmarks.scale.values import FIRST, Answer, Question
from tests.benchmarks.scale.vectors import DIMENSIONS

_POOL = 50
_K = 60
_COMMON_SHARE = 0.1
_MAPPED_BYTES = 4 * 1024**3
_TABLES = f"""
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE passages (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
    CREATE VIRTUAL TABLE words USING fts5 (text, content='passages', content_rowid='id');
    CREATE VIRTUAL TABLE counts USING fts5vocab (words, row);
    CREATE VIRTUAL TABLE vectors USING vec0 (
        id INTEGER PRIMARY KEY, embedding FLOAT[{DIMENSIONS}] distance_metric=cosine);
    CREATE TABLE common (word TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_COMMON = "INSERT INTO common SELECT term FROM counts WHERE doc > ? * (SELECT count(*) FROM passages)"


class Plain(System):
    """One SQLite file."""

    title = "sqlite-vec + FTS5, plain"
    does = "hybrid"
    modules = ("apsw", "sqlite_vec")
    packages = ("apsw", "sqlite-vec")

    def build(self, material: Material, folder: Path) -> None:
        """Insert everything in one transaction."""
        database = _connected(folder)
        database.execute(_TABLES).fetchall()
        with database:
            for start, texts, vectors in material.batches():
                rows = range(start, start + len(texts))
                database.executemany("INSERT INTO passages VALUES (?, ?)", zip(rows, texts, strict=True))
                database.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", zip(rows, texts, strict=True))
                blobs = (vector.tobytes() for vector in vectors)
                database.executemany("INSERT INTO vectors VALUES (?, ?)", zip(rows, blobs, strict=True))
        database.execute(_COMMON, (_COMMON_SHARE,))
        database.close()

    def open(self, material: Material, folder: Path) -> None:
        """Connect, and read which words are common."""
        self._database = _connected(folder)
        self._common = {word for (word,) in self._database.execute("SELECT word FROM common")}

    def search(self, question: Question) -> Sequence[Answer]:
        """Both lists, fused, and the rows of the first ten."""
        scores: dict[int, float] = {}
        for rows in (self._nearest(question, _POOL), self._matching(question.text)):
            for rank, row in enumerate(rows, 1):
                scores[row] = scores.get(row, 0.0) + 1 / (_K + rank)
        best = sorted(scores, key=lambda row: -scores[row])[:FIRST]
        marks = ",".join("?" * len(best))
        texts = dict(self._database.execute(f"SELECT id, text FROM passages WHERE id IN ({marks})", best))
        return [Answer(row=row, text=texts[row]) for row in best]

    def nearest(self, question: Question) -> Sequence[int]:
        """The scan alone."""
        return self._nearest(question, FIRST)

    def _nearest(self, question: Question, count: int) -> list[int]:
        query = "SELECT id FROM vectors WHERE embedding MATCH ? AND k = ? ORDER BY distance"
        return [row for (row,) in self._database.execute(query, (question.vector.tobytes(), count))]

    def _matching(self, text: str) -> list[int]:
        words = [word for word in re.findall(r"\w+", text.lower()) if word not in self._common]
        if not words:
            return []
        query = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT ?"
        return [row for (row,) in self._database.execute(query, (" OR ".join(f'"{word}"' for word in words), _POOL))]


def _connected(folder: Path) -> Any:
    database = vendor("apsw").Connection(str(folder / "plain.sqlite"))
    database.enable_load_extension(True)
    database.load_extension(vendor("sqlite_vec").loadable_path())
    database.enable_load_extension(False)
    database.execute(f"PRAGMA mmap_size = {_MAPPED_BYTES}")
    return database
