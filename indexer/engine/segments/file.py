"""File of named arrays that is mapped into memory: a header, then one array after another.

Invariants: a file is written whole under another name, synced and put in place at once, never changed afterwards; one
with a wrong header or size counts as missing. Its content is derived and may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import io
import json
import mmap
import os
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.common.throttle import THROTTLE
from indexer.errors import StoreError, StoreFull
from indexer.types import file_mode, sync_file

Array = NDArray[Any]

_MAGIC = b"memory-service pack 1\n"
_ALIGNED = 64
_PIECE = 1 << 24
_DRAFT = ".tmp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """Mapped, read-only arrays of a file, and the notes beside them."""

    notes: Mapping[str, str]
    arrays: Mapping[str, Array]
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Offset of an array in a file, and its checksum."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    crc: int

    @property
    def size_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


def write_pack(path: Path, arrays: Mapping[str, Array], notes: Mapping[str, str]) -> None:
    """Write arrays to a file, replacing the one that is there.

    Raises:
        StoreFull: The disk is full; the former file stays.
        StoreError: The file cannot be written; the former file stays.
    """
    flat = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    places, offset = dict[str, _Place](), 0
    for name, array in flat.items():
        places[name] = _Place(dtype=array.dtype.str, shape=array.shape, offset=offset, crc=_checksum(_bytes(array)))
        offset = _padded_size(offset + array.nbytes)
    replace_file(path, _pieces(_header(places, notes, offset), flat.values()))


def replace_file(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file piece by piece under another name, and put it in the place of the one that is there.

    Raises:
        StoreFull: The disk is full; the former file stays.
        StoreError: The file cannot be written; the former file stays.
    """
    # Threads of one process may fetch and pack at the same time.
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}{_DRAFT}")
    try:
        with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, file_mode(path.parent))) as stream:
            waiting_bytes = 0
            for piece in THROTTLE.pace(pieces):
                stream.write(piece)
                waiting_bytes += len(piece)
                # Otherwise whoever syncs a small file meanwhile waits for all of this one.
                if waiting_bytes >= _PIECE:
                    waiting_bytes = 0
                    sync_file(stream.fileno())
            stream.flush()
            sync_file(stream.fileno())
        os.replace(draft, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(
                f"The disk is full: {path} cannot be written. Free some space; until then searches are slower, and "
                "nothing is lost."
            ) from error
        raise StoreError(
            f"The file {path} cannot be written ({error.strerror}). Searches are slower without it; check its folder."
        ) from error
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def open_pack(path: Path) -> Pack | None:
    """Map a file; None if there is no whole one."""
    try:
        with open(path, "rb") as stream:
            header = _read_header(stream.readline(), stream.readline(), stream.readline())
            if header is None:
                return None
            start = _padded_size(stream.tell())
            places, notes, size = header
            if os.fstat(stream.fileno()).st_size != start + size:
                return None
            mapped_mmap = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    arrays = {
        name: np.frombuffer(
            mapped_mmap, place.dtype, count=int(np.prod(place.shape, dtype=np.int64)), offset=start + place.offset
        ).reshape(place.shape)
        for name, place in places.items()
        if place.size_bytes
    }
    empty = {name: np.empty(place.shape, place.dtype) for name, place in places.items() if not place.size_bytes}
    return Pack(notes=notes, arrays=arrays | empty, size_bytes=start + size)


def is_sound(path: Path) -> bool:
    """True if every byte of a file is as it was written; reads all of it."""
    pack = open_pack(path)
    if pack is None:
        return False
    with open(path, "rb") as stream:
        header = _read_header(stream.readline(), stream.readline(), stream.readline())
    return header is not None and all(
        _checksum(_bytes(pack.arrays[name])) == place.crc for name, place in header[0].items()
    )


def with_notes(pieces: Iterable[bytes], notes: Mapping[str, str]) -> Iterator[bytes]:
    """The pieces of a file with some of its notes replaced; the first one holds the header.

    Args:
        pieces: The file; one without a whole header stays as it is.
        notes: The notes to replace.
    """
    rest = iter(pieces)
    first = next(rest, b"")
    stream = io.BytesIO(first)
    header = _read_header(stream.readline(), stream.readline(), stream.readline())
    if header is not None:
        places, former_notes, size = header
        first = _header(places, {**former_notes, **notes}, size) + first[_padded_size(stream.tell()) :]
    yield first
    yield from rest


def draft_files(path: Path) -> list[Path]:
    """Unfinished files, of running or crashed writers."""
    return sorted(path.parent.glob(f".{glob.escape(path.name)}.*{_DRAFT}"))


def sweep(path: Path) -> None:
    """Delete temporary files of crashed writers. Hold the pack lock."""
    for draft in draft_files(path):
        with contextlib.suppress(OSError):
            draft.unlink()


def _header(places: Mapping[str, _Place], notes: Mapping[str, str], size: int) -> bytes:
    listed_fields = {name: (place.dtype, place.shape, place.offset, place.crc) for name, place in places.items()}
    body = json.dumps({"arrays": listed_fields, "notes": dict(notes), "size": size}).encode() + b"\n"
    header = _MAGIC + f"{zlib.crc32(body)}\n".encode() + body
    return header.ljust(_padded_size(len(header)), b"\0")


def _read_header(magic: bytes, crc: bytes, body: bytes) -> tuple[dict[str, _Place], dict[str, str], int] | None:
    if magic != _MAGIC or crc.strip() != str(zlib.crc32(body)).encode():
        return None
    read = json.loads(body)
    places = {
        name: _Place(dtype=dtype, shape=tuple(shape), offset=offset, crc=crc)
        for name, (dtype, shape, offset, crc) in read["arrays"].items()
    }
    return places, read["notes"], read["size"]


def _bytes(array: Array) -> memoryview:
    # Zero-length arrays have no buffer that can be cast.
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _pieces(header: bytes, arrays: Iterable[Array]) -> Iterator[bytes | memoryview]:
    yield header
    for array in arrays:
        content = _bytes(array)
        for start in range(0, len(content), _PIECE):
            yield content[start : start + _PIECE]
        yield b"\0" * (_padded_size(array.nbytes) - array.nbytes)


def _checksum(content: memoryview) -> int:
    crc = 0
    for start in range(0, len(content), _PIECE):
        crc = zlib.crc32(content[start : start + _PIECE], crc)
    return crc


def _padded_size(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
