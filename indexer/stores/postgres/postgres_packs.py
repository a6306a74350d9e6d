"""The packed part of an index in PostgreSQL: its material, and the pack that machines share, in parts of a megabyte.

Invariants: a pack is published whole or not at all, and only into the incarnation of the database that it was made of;
where its rows are, what it was made of is, too, so that it outlives a restart. A machine that fetches one while another
takes its place gets neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, LiteralString

from indexer.corpus import Ints
from indexer.errors import StoreBusy
from indexer.stores.base import SegmentSource, TermEntries
from indexer.stores.postgres.postgres_generations import hold_database_lock
from indexer.stores.postgres.postgres_heads import PostgresHeads
from indexer.stores.postgres.postgres_nearest import stored_vectors
from indexer.stores.postgres.postgres_words import PostgresWords, stored_term_entries
from indexer.types import Vectors

# The first half of the advisory locks of packings; the other one is the number of the workspace.
_LOCK: Final = 1_769_235_302
_PART_BYTES = 1 << 20
_KEPT: Final[LiteralString] = "ws = %(ws)s AND gen = %(gen)s AND name = %(name)s"


class PostgresSegments(SegmentSource):
    """The material of a packed segment of an index in PostgreSQL; see `SegmentSource`.

    Args:
        heads: The index.
        words: Its postings in memory, which nobody asks for once it is packed.
        scratch: Folder of the segment.
    """

    def __init__(self, heads: PostgresHeads, words: PostgresWords, scratch: Path) -> None:
        self._heads = heads
        self._words = words
        self._scratch = scratch

    def path(self) -> Path | None:
        """See `SegmentSource`."""
        now, ws = self._heads.row(), self._heads.number()
        if now is None:
            return None
        with suppress(OSError):
            # Of the owner alone, as is the folder above where there was none.
            self._scratch.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._scratch.mkdir(mode=0o700, exist_ok=True)
        return self._scratch / f"index-{ws}-{now.gen}.pack"

    @contextmanager
    def hold_lock(self, seconds: float = 0.0) -> Iterator[None]:
        """See `SegmentSource`."""
        busy = "Another machine packs this index. Wait for it."
        with hold_database_lock(self._heads, _LOCK, seconds=seconds, message=busy):
            yield

    def fetch(self, *, newer_than: int) -> Iterator[bytes] | None:
        """See `SegmentSource`."""
        with self._heads.reading():
            now = self._heads.row()
            if now is None:
                return None
            rows = self._heads.rows(
                f"SELECT count(*), max(revision), max(generation) FROM index_packs WHERE {_KEPT}", name=now.name
            )
        parts, revision, generation = rows[0] if rows else (0, None, "")
        return self._parts(parts, revision, now.name, generation) if parts and revision > newer_than else None

    def _parts(self, parts: int, revision: int, name: str, generation: str) -> Iterator[bytes]:
        for part in range(parts):
            rows = self._heads.rows(
                f"""SELECT content FROM index_packs WHERE {_KEPT} AND part = %(part)s AND revision = %(revision)s
                    AND generation = %(generation)s""",
                part=part,
                revision=revision,
                name=name,
                generation=generation,
            )
            if not rows:
                raise StoreBusy("Another machine published the packed part of this index meanwhile. Try again.")
            yield rows[0][0]

    def publish(self, pack: Path | None, *, generation: str, revision: int) -> None:
        """See `SegmentSource`."""
        ws = self._heads.number()
        if ws is None:
            return
        # On the very connection: behind a failover there is another one.
        with self._heads.database.transaction(ws) as transaction:
            now = self._heads.row_of(transaction)
            if now is None or (pack is not None and now.generation != generation):
                return
            key = {"ws": ws, "gen": now.gen, "revision": revision, "name": now.name, "generation": generation}
            transaction.execute("DELETE FROM index_packs WHERE ws = %(ws)s AND gen = %(gen)s", key)
            for part, content in enumerate(_pieces(pack) if pack else ()):
                transaction.execute(
                    """INSERT INTO index_packs (ws, gen, part, revision, name, generation, content) VALUES
                       (%(ws)s, %(gen)s, %(part)s, %(revision)s, %(name)s, %(generation)s, %(content)s)""",
                    {**key, "part": part, "content": content},
                )

    def sync(self) -> None:
        """See `SegmentSource`; what is committed is on the disk of the database already."""
        self._words.forget()

    def terms(self) -> Iterator[TermEntries]:
        """See `SegmentSource`."""
        return stored_term_entries(self._heads)

    def vectors(self) -> Iterator[tuple[Ints, Vectors]]:
        """See `SegmentSource`."""
        return stored_vectors(self._heads)


def _pieces(pack: Path) -> Iterator[bytes]:
    with pack.open("rb") as file:
        while piece := file.read(_PART_BYTES):
            yield piece
