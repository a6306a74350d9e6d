"""Rows of session logs: their lines, which are those of a file, and the media beside them.

Invariants: a row holds the end of a line as the codec writes it, and the codec puts its beginning before it again; a
content goes when no record names it any more, with its row locked, so that nobody names it meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, LiteralString, NamedTuple, Self

from indexer.stores import INCARNATION, Transaction
from memory_service.errors import NotFound
from memory_service.sessions.codec import LogLine, RecordDraft, decode, encode
from memory_service.storage.postgres.workspace_rows import WorkspaceRows

# The edition of a log for its readers: another one, too, once the database may have lost what was last written.
EDITION: Final[LiteralString] = "(hashtextextended(edition::text || " + INCARNATION + ", 0) & 4611686018427387903)"
_ROWS_AT_ONCE = 256
# What a line has beside its number, its time, its kind and its end.
_FRAME_BYTES = len(encode(RecordDraft(kind="message", rest=""), seq=1, ts="")) - 1
_KIND_BYTES = len(encode(RecordDraft(kind="pin", rest=""), seq=1, ts="")) - 1 - _FRAME_BYTES - len("pin")
_BATCH_BYTES = len(encode(RecordDraft(kind="message", rest=""), seq=1, ts="", batch=2)) - 2 - _FRAME_BYTES - 1
# The size of the lines of a log, as they stand in a file.
SIZE: Final[LiteralString] = """(
    SELECT sum(octet_length(rest) + length(seq::text) + octet_length(ts) + %(frame_bytes)s
        + CASE kind WHEN 'message' THEN 0 ELSE length(kind) + %(kind_bytes)s END
        + CASE WHEN batch > 1 THEN length(batch::text) + %(batch_bytes)s ELSE 0 END)
    FROM log_records WHERE ws = %(ws)s AND session = %(session)s AND retired_by IS NULL
)"""
SIZE_VALUES: Final = {"frame_bytes": _FRAME_BYTES, "kind_bytes": _KIND_BYTES, "batch_bytes": _BATCH_BYTES}


class RecordRow(NamedTuple):
    """A record as it is stored: its number, its time, its line without them, and of how many it is the first."""

    seq: int
    ts: str
    draft: RecordDraft
    batch: int = 0

    @classmethod
    def read(cls, seq: int, ts: str, kind: str, rest: bytes, batch: int = 0) -> Self:
        """The record of a row."""
        return cls(seq, ts, RecordDraft(kind=kind, rest=rest.decode()), batch)

    @property
    def line(self) -> bytes:
        """The line of the record, as a file has it."""
        return encode(self.draft, seq=self.seq, ts=self.ts, batch=self.batch)

    def decode(self) -> LogLine | None:
        """The record; None if the line is damaged."""
        try:
            return decode(self.line)
        except ValueError:
            return None


def insert_records(transaction: Transaction, session_id: str, rows: Sequence[RecordRow]) -> None:
    """Stores records, and the media that they name."""
    for at in range(0, len(rows), _ROWS_AT_ONCE):
        chunk = rows[at : at + _ROWS_AT_ONCE]
        transaction.execute(
            "INSERT INTO log_records (ws, session, seq, ts, kind, rest, batch) "
            "SELECT %s, %s, * FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::bytea[], %s::integer[])",
            [
                transaction.workspace,
                session_id,
                [row.seq for row in chunk],
                [row.ts for row in chunk],
                [row.draft.kind for row in chunk],
                [row.draft.rest.encode() for row in chunk],
                [row.batch for row in chunk],
            ],
        )
    insert_media(transaction, session_id, ((row.seq, row.draft) for row in rows))


def insert_media(transaction: Transaction, session_id: str, drafts: Iterable[tuple[int, RecordDraft]]) -> None:
    """Stores the contents beside some records, each once, and that these name them."""
    contents, refs = dict[bytes, bytes](), set[tuple[bytes, int]]()
    for seq, draft in drafts:
        for part, content in zip(draft.media.parts, draft.media.contents, strict=True) if draft.media else ():
            contents[bytes.fromhex(part.sha256)] = content
            refs.add((bytes.fromhex(part.sha256), seq))
    # Sorted, so that no two wait for each other; written again if it is there, so that nobody removes it meanwhile.
    for sha256, content in sorted(contents.items()):
        transaction.execute(
            "INSERT INTO blobs (ws, sha256, content) VALUES (%s, %s, %s) "
            "ON CONFLICT (ws, sha256) DO UPDATE SET sha256 = excluded.sha256",
            [transaction.workspace, sha256, content],
        )
    if refs:
        transaction.execute(
            "INSERT INTO blob_refs (ws, session, sha256, seq) SELECT %s, %s, * FROM unnest(%s::bytea[], %s::bigint[])",
            [transaction.workspace, session_id, *map(list, zip(*refs, strict=True))],
        )


def remove_media(transaction: Transaction, session_id: str, seqs: Sequence[int] | None = None) -> None:
    """Removes what some records of a session name, or all of them, and the contents that nothing names then."""
    rows = transaction.rows(
        "DELETE FROM blob_refs WHERE ws = %s AND session = %s AND (%s::bigint[] IS NULL OR seq = ANY(%s)) "
        "RETURNING sha256",
        [transaction.workspace, session_id, seqs, seqs],
        binary=True,
    )
    if not rows:
        return
    hashes = list({sha256 for (sha256,) in rows})
    transaction.execute(
        "SELECT FROM blobs WHERE ws = %s AND sha256 = ANY(%s) ORDER BY sha256 FOR UPDATE",
        [transaction.workspace, hashes],
    )
    # A statement of its own sees what others have named until the rows were locked.
    transaction.execute(
        "DELETE FROM blobs b WHERE ws = %s AND sha256 = ANY(%s) "
        "AND NOT EXISTS (SELECT FROM blob_refs r WHERE r.ws = b.ws AND r.sha256 = b.sha256)",
        [transaction.workspace, hashes],
    )


def blob(rows: WorkspaceRows, sha256: str) -> bytes:
    """A content beside the logs of a workspace.

    Raises:
        NotFound: It is not there.
    """
    for (content,) in rows.read("SELECT content FROM blobs WHERE ws = %s AND sha256 = %s", bytes.fromhex(sha256)):
        return bytes(content)
    raise NotFound("There is no content of that name. Take the name from the log.")


def last_lines(transaction: Transaction, session_id: str) -> Iterator[bytes]:
    """The lines of a log, the last one first."""
    before = 1 << 62
    while rows := transaction.rows(
        "SELECT seq, ts, kind, rest, batch FROM log_records WHERE ws = %s AND session = %s AND seq < %s "
        "AND retired_by IS NULL ORDER BY seq DESC LIMIT %s",
        [transaction.workspace, session_id, before, _ROWS_AT_ONCE],
        binary=True,
    ):
        yield from (RecordRow.read(*row).line for row in rows)
        before = rows[-1][0]
