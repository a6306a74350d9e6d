"""The bytes of a memory file as text: ranges of lines, counts, entity tags.

Invariants: LF, CR LF and CR end a line, and nothing else does; lines count from 1; the tag is that of the whole file.
"""

from __future__ import annotations

import codecs
import hashlib
import io
from collections.abc import Iterable

from memory_service.errors import InvalidRequest
from memory_service.schemas.memories import FileText

MAX_LINES = 2_000


def read_range(raw: bytes, path: str, *, start_line: int = 1, lines: int | None = None) -> FileText:
    """Some lines of a file: as many as asked for, and 2,000 at most.

    Args:
        raw: The file.
        path: Its name.
        start_line: The first line.
        lines: How many.

    Raises:
        InvalidRequest: The file is not UTF-8.
    """
    count = min(lines or MAX_LINES, MAX_LINES)
    window: list[str] = []
    total = 0
    try:
        for total, line in enumerate(io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8", newline=""), start=1):
            if start_line <= total < start_line + count:
                window.append(line)
    except UnicodeDecodeError as error:
        raise not_utf8(path, raw) from error
    end_line = start_line + len(window) - 1
    return FileText(
        path=path,
        text="".join(window),
        start_line=start_line,
        end_line=end_line,
        total_lines=total,
        next_start_line=end_line + 1 if end_line < total and window else None,
        etag=etag_of(raw),
    )


def check_range(start_line: int, lines: int | None) -> None:
    """Makes sure that a range of lines is one.

    Raises:
        InvalidRequest: A number is below 1.
    """
    if start_line < 1 or (lines is not None and lines < 1):
        raise InvalidRequest(f"start_line {start_line} and lines {lines} cannot be read. Both count from 1.")


def not_utf8(path: str, raw: bytes) -> InvalidRequest:
    """The error of a file in another encoding; names the first line that shows it."""
    before = raw[: whole_bytes(raw)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    line = before.count(b"\n") + 1
    return InvalidRequest(f"The file {path} is not UTF-8, as line {line} shows. Save it as UTF-8.")


def whole_bytes(raw: bytes) -> int:
    """Number of bytes at the beginning that are UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return error.start
    return len(raw)


def ends_within_character(rest: bytes) -> bool:
    """True if bytes that are not UTF-8 would be, with more to follow."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(rest) == ""
    except UnicodeDecodeError:
        return False


def etag_of(raw: bytes) -> str:
    """The entity tag of a content: 32 hexadecimal digits."""
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def measure(pieces: Iterable[bytes]) -> tuple[int, int, str]:
    """Bytes, lines and entity tag of a content, however large it is."""
    digest, size_bytes, count, last = hashlib.blake2b(digest_size=16), 0, 0, b""
    for piece in pieces:
        digest.update(piece)
        size_bytes += len(piece)
        count += piece.count(b"\n") + piece.count(b"\r") - piece.count(b"\r\n") - (last + piece[:1] == b"\r\n")
        last = piece[-1:]
    return size_bytes, count + (last not in (b"", b"\n", b"\r")), digest.hexdigest()
