"""Building of packed segments: from a store, into a file beside it.

Invariants: a segment is of one generation at one revision; a file of another generation, or a damaged one, is ignored;
packing holds no lock that a reader or a writer waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from indexer.common.throttle import THROTTLE
from indexer.corpus import Corpus, Ints, Mask
from indexer.engine.segments import postings as lexicon
from indexer.engine.segments import quantizer as coding
from indexer.engine.segments.file import (
    Array,
    Pack,
    draft_files,
    is_sound,
    open_pack,
    replace_file,
    sweep,
    with_notes,
    write_pack,
)
from indexer.engine.segments.postings import Postings
from indexer.engine.segments.quantizer import Coder, Codes
from indexer.engine.segments.segment import Reach, Segment
from indexer.errors import StoreBusy, StoreError, StoreLocked, StoreReadOnly
from indexer.stores.base import IndexStore, TermEntries
from indexer.types import SourceKind, Vectors, file_mode, short_path

SOURCES: tuple[SourceKind, ...] = ("memory", "sessions", "files")
_FORMAT = "4"
# Where the steps of each kind of range begin among the bits of a row, and how many each side of it has.
_REACHES = {"pairs": (0, 1), "triples": (2, 1), "windows": (4, 3)}
_ROW_COLUMNS = ("key_offsets", "days", "marks", "labels", "greeted", "start_lines", "end_lines", "sections", "steps")
# What is coded at once, and of these what the coder is fitted to: some thousands of vectors, not all of one file.
_CODED_ROWS, _FITTED_BLOCKS = 2_048, 8
# How long an erasure waits for a packing that began before it.
_SCRUB_SECONDS = 60.0


def open_segment(path: Path, generation: str) -> Segment | None:
    """The segment in a file, mapped; None if there is none of this generation."""
    pack = open_pack(path)
    if pack is None or not _is_of(pack, generation):
        return None
    try:
        return _segment(pack)
    except (LookupError, ValueError):
        # Its header is whole and its content is not.
        return None


def fetch_pack(store: IndexStore, path: Path) -> bool:
    """Put the pack that a store keeps in the place of a file that is older or of another generation; True if so.

    Raises:
        StoreError: The store cannot be read or the file not written; see `replace_file`.
    """
    generation = store.head().generation
    pieces = store.segments.fetch(newer_than=_revision(path, generation))
    if pieces is not None:
        replace_file(path, with_notes(pieces, {"generation": generation}))
    return pieces is not None


def pack_store(store: IndexStore, path: Path) -> Segment | None:
    """Build a segment of all passages of a store, and write it to a file; or fetch one that another machine built.

    Returns:
        The written segment; None where another process is packing, the store is empty or another one took its place.

    Raises:
        StoreError: The store cannot be read or the file not written; see `write_pack`.
    """
    try:
        with _alone(path), store.segments.hold_lock():
            sweep(path)
            generation = store.head().generation
            if not generation:
                return None
            if fetch_pack(store, path):
                return open_segment(path, generation)
            arrays, notes = _build_arrays(store)
            store.segments.sync()
            try:
                write_pack(path, arrays, notes)
            except StoreError:
                if path == store.segments.path():
                    raise
            if path != store.segments.path():
                # Another generation took the index's place meanwhile: nobody looks here any more.
                _remove(path)
                return None
            store.segments.publish(path, generation=notes["generation"], revision=int(notes["revision"]))
    except (Timeout, StoreBusy):
        return None
    return open_segment(path, generation)


def scrub_pack(store: IndexStore, path: Path) -> None:
    """Erase from the file the passages that were removed or replaced in the store; a damaged file goes whole.

    Raises:
        StoreLocked: Another process packs, maybe the same passages.
        StoreError: The file cannot be read or written.
    """
    if not path.exists() and not draft_files(path) and not fetch_pack(store, path):
        return
    try:
        with _alone(path, seconds=_SCRUB_SECONDS), store.segments.hold_lock(_SCRUB_SECONDS):
            sweep(path)
            fetch_pack(store, path)
            pack, generation = open_pack(path), store.head().generation
            if pack is None or not _is_of(pack, generation):
                _remove_everywhere(store, path)
                return
            segment = _segment(pack)
            changes = store.head(segment.revision)
            standing = segment.standing([*(number for number, _, _ in changes.files), *changes.gone])
            if standing is None:
                return
            # Written anew, damage would have the checksums of what is whole.
            if is_sound(path):
                write_pack(path, *_standing(pack, segment, standing))
                store.segments.publish(path, generation=generation, revision=segment.revision)
            else:
                _remove_everywhere(store, path)
    except (Timeout, StoreBusy):
        raise StoreLocked(
            f"Another process packs the index, so what was removed may still be in {short_path(path)}. "
            "Wait for it and try again."
        ) from None


def _revision(path: Path, generation: str) -> int:
    """The revision of the pack in a file; 0 if there is none of this generation."""
    pack = open_pack(path)
    return int(pack.notes["revision"]) if pack is not None and _is_of(pack, generation) else 0


def _remove_everywhere(store: IndexStore, path: Path) -> None:
    _remove(path)
    store.segments.publish(None, generation="", revision=0)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"The file {short_path(path)} cannot be removed ({error.strerror}), and may hold what was erased. "
            "Remove it."
        ) from error


@contextmanager
def _alone(path: Path, *, seconds: float = 0.0) -> Iterator[None]:
    """Hold the lock of the file, so that nobody else packs or scrubs it within the block.

    Raises:
        Timeout: Somebody does.
        StoreReadOnly: The folder cannot be written.
    """
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=seconds, mode=file_mode(path.parent))
    try:
        lock.acquire()
    except OSError as error:
        if isinstance(error, Timeout):
            raise
        raise StoreReadOnly(
            f"The file {short_path(path)} cannot be made ({error.strerror}). "
            "Make its folder writable, or choose another --home."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _is_of(pack: Pack, generation: str) -> bool:
    return pack.notes.get("generation") == generation and pack.notes.get("format") == _FORMAT


def _standing(pack: Pack, segment: Segment, standing: Mask) -> tuple[dict[str, Array], dict[str, str]]:
    """Arrays and notes without the rows that were replaced."""
    rows = np.flatnonzero(standing)
    sizes = np.add.reduceat(np.r_[standing, False].astype(np.int64), segment.starts[:-1]) * (
        np.diff(segment.starts) > 0
    )
    kept_rows = np.flatnonzero(sizes)
    arrays = dict(pack.arrays)
    for name in (*_ROW_COLUMNS, "triple_norms", "codes.levels", "codes.scales"):
        if name in arrays and len(arrays[name]):
            arrays[name] = arrays[name][rows]
    if segment.codes is not None:
        arrays["codes.bits"] = arrays["codes.bits"][:, rows]
    totals = np.r_[0, np.cumsum(np.diff(segment.totals)[rows], dtype=np.int64)]
    arrays["totals"] = _small(totals, np.int32)
    arrays["files"], arrays["sources"] = arrays["files"][kept_rows], arrays["sources"][kept_rows]
    arrays["starts"] = np.r_[0, np.cumsum(sizes[kept_rows])]
    arrays["paths"] = _join_paths([segment.paths[position] for position in kept_rows.tolist()])
    arrays["speakers"] = np.unique(arrays["labels"][arrays["labels"] > 0])
    every = np.arange(len(rows))
    now = {name: _reach(arrays["steps"], name, 0.0).of(every) for name in _REACHES}
    new_rows = np.where(standing, np.cumsum(standing) - 1, -1)
    words = lexicon.take(segment.postings, new_rows, now["pairs"], now["windows"])
    lengths = {f"{name}.length": str(_length(totals, now[name])) for name in _REACHES}
    return arrays | _lexicon(words), {**pack.notes, **lengths}


def _join_paths(paths: Sequence[str]) -> Array:
    return np.frombuffer("\0".join(paths).encode("utf-8", "surrogatepass"), np.uint8)


def _build_arrays(store: IndexStore) -> tuple[dict[str, Array], dict[str, str]]:
    """All arrays of a segment, and the notes beside them."""
    with store.reading():
        whole = store.corpus(None)
        # Ordered by the store's numbers, so that the files of a segment are found by bisection.
        corpus = replace(whole, files=tuple(sorted(whole.files, key=attrgetter("file"))))
        words = lexicon.build(_entries(store, corpus), corpus.pairs, corpus.windows)
        codes = _codes(store, corpus)
    totals = corpus.totals
    notes = {
        "generation": whole.generation,
        "revision": str(whole.revision),
        "format": _FORMAT,
        "first_key": str(_first_key(corpus)),
        **{f"{name}.length": str(_length(totals, getattr(corpus, name))) for name in _REACHES},
    }
    return _columns(corpus) | _lexicon(words) | (_codebook(codes, corpus) if codes else {}), notes


def _columns(corpus: Corpus) -> dict[str, Array]:
    files = corpus.files
    columns: dict[str, Array] = {
        "files": np.array([file.file for file in files], np.int64),
        "starts": np.cumsum([0, *(len(file.table) for file in files)]),
        "paths": _join_paths([file.path for file in files]),
        "sources": np.array([SOURCES.index(file.source) for file in files], np.uint8),
        "key_offsets": _small(corpus.keys - _first_key(corpus), np.uint32),
        "days": corpus.days.astype(np.int32),
        "marks": corpus.marks.astype(np.uint16),
        "labels": _small(corpus.labels, np.uint16),
        "greeted": _small(corpus.greeted, np.uint16),
        "start_lines": _small(corpus.start_lines, np.int32),
        "end_lines": _small(corpus.end_lines, np.int32),
        "totals": _small(corpus.totals, np.int32),
        "sections": np.repeat(
            np.arange(len(corpus.section_starts), dtype=np.int32), np.diff(np.r_[corpus.section_starts, len(corpus)])
        ),
        "speakers": np.array(sorted(corpus.speakers), np.int32),
    }
    rows, steps = np.arange(len(corpus)), np.zeros(len(corpus), np.uint16)
    for name, (shift, bits) in _REACHES.items():
        low, high = getattr(corpus, name)
        steps |= (((rows - low) | ((high - rows) << bits)) << shift).astype(np.uint16)
    return columns | {"steps": steps}


def _first_key(corpus: Corpus) -> int:
    return int(corpus.keys.min()) if len(corpus) else 0


def _small(values: NDArray[np.integer], kind: type[np.integer]) -> Array:
    """The same as smaller numbers, where they fit."""
    return values.astype(kind) if not len(values) or values.max() <= np.iinfo(kind).max else values


def _length(totals: Ints, ranges: tuple[Ints, Ints]) -> float:
    """Terms of all ranges together."""
    low, high = ranges
    return float((totals[high + 1] - totals[low]).sum())


def _lexicon(words: Postings) -> dict[str, Array]:
    arrays: dict[str, Array] = {f"words.{field.name}": getattr(words, field.name) for field in fields(words)}
    return arrays | {"words.starts": _small(words.starts, np.int32)}


def _codebook(codes: Codes, corpus: Corpus) -> dict[str, Array]:
    return {
        "codes.mean": codes.coder.mean,
        "codes.bits": codes.bits,
        "codes.levels": codes.levels,
        "codes.scales": codes.scales,
        "triple_norms": coding.triple_norms(codes, *corpus.triples),
    }


def _entries(store: IndexStore, corpus: Corpus) -> Iterator[TermEntries]:
    for chunk in THROTTLE.pace(store.segments.terms()):
        rows, mask = corpus.rows(chunk.passages.astype(np.int64, copy=False))
        if not mask.all():
            # Earlier versions left terms of passages that were removed under other rules than stored them.
            starts = np.cumsum(chunk.sizes) - chunk.sizes
            sizes = np.add.reduceat(mask, starts, dtype=np.int64)
            chunk = replace(chunk, sizes=sizes, counts=chunk.counts[mask])
        yield replace(chunk, passages=rows)


def _codes(store: IndexStore, corpus: Corpus) -> Codes | None:
    """The codes of all vectors, made block by block; those of any store that gives the same vectors are the same."""
    blocks = THROTTLE.pace(_blocks(store.segments.vectors(), _CODED_ROWS))
    first = list(islice(blocks, _FITTED_BLOCKS))
    if not first:
        return None
    coder = Coder.fit(np.concatenate([vectors for _, vectors in first]))
    codes = Codes(
        coder=coder,
        bits=np.zeros((coder.words, len(corpus)), np.uint64),
        levels=np.zeros((len(corpus), coder.dimensions), np.int8),
        scales=np.zeros(len(corpus), np.float16),
    )
    for keys, vectors in THROTTLE.pace(chain(first, blocks)):
        part = codes.coder.encode(vectors)
        rows, mask = corpus.rows(keys)
        codes.bits[:, rows] = part.bits[:, mask]
        codes.levels[rows] = part.levels[mask]
        codes.scales[rows] = part.scales[mask]
    return codes


def _blocks(chunks: Iterable[tuple[Ints, Vectors]], size: int) -> Iterator[tuple[Ints, Vectors]]:
    """The same rows in blocks of one size, the last one excepted, however many a chunk has."""
    waiting, count = list[tuple[Ints, Vectors]](), 0
    for chunk in chunks:
        waiting.append(chunk)
        count += len(chunk[0])
        if count < size:
            continue
        keys, vectors = _concatenate(waiting)
        whole = count - count % size
        for start in range(0, whole, size):
            yield keys[start : start + size], vectors[start : start + size]
        count -= whole
        waiting = [(keys[whole:], vectors[whole:])] if count else []
    if count:
        yield _concatenate(waiting)


def _concatenate(chunks: Sequence[tuple[Ints, Vectors]]) -> tuple[Ints, Vectors]:
    """Several chunks as one; a single one is not copied."""
    if len(chunks) == 1:
        return chunks[0]
    return np.concatenate([keys for keys, _ in chunks]), np.concatenate([vectors for _, vectors in chunks])


def _segment(pack: Pack) -> Segment:
    arrays, notes = pack.arrays, pack.notes
    paths = arrays["paths"].tobytes().decode("utf-8", "surrogatepass").split("\0") if len(arrays["files"]) else []
    codes = None
    if "codes.bits" in arrays:
        mean = arrays["codes.mean"]
        codes = Codes(
            coder=Coder(dimensions=len(mean), mean=mean),
            bits=arrays["codes.bits"],
            levels=arrays["codes.levels"],
            scales=arrays["codes.scales"],
        )
    return Segment(
        generation=notes["generation"],
        revision=int(notes["revision"]),
        paths=tuple(paths),
        sources=tuple(SOURCES[number] for number in arrays["sources"].tolist()),
        speakers=frozenset(arrays["speakers"].tolist()),
        postings=Postings(**{field.name: arrays[f"words.{field.name}"] for field in fields(Postings)}),
        codes=codes,
        # An index of words that was packed may take vectors since: rows without one are as near as any.
        triple_norms=arrays.get("triple_norms", np.ones(len(arrays["key_offsets"]), np.float16)),
        files=arrays["files"],
        starts=arrays["starts"],
        totals=arrays["totals"],
        first_key=int(notes["first_key"]),
        key_offsets=arrays["key_offsets"],
        days=arrays["days"],
        marks=arrays["marks"],
        labels=arrays["labels"],
        greeted=arrays["greeted"],
        start_lines=arrays["start_lines"],
        end_lines=arrays["end_lines"],
        sections=arrays["sections"],
        pairs=_reach(arrays["steps"], "pairs", float(notes["pairs.length"])),
        triples=_reach(arrays["steps"], "triples", float(notes["triples.length"])),
        windows=_reach(arrays["steps"], "windows", float(notes["windows.length"])),
    )


def _reach(steps: Array, name: str, length: float) -> Reach:
    shift, bits = _REACHES[name]
    return Reach(steps=steps, shift=shift, bits=bits, length=length)
