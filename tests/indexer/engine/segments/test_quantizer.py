from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.corpus import Floats, Ints, Mask
from indexer.engine.segments import quantizer as coding
from indexer.engine.segments.quantizer import Coder, Codes, _survivors, cosines, nearest_rows, triple_norms
from indexer.errors import EmbeddingError
from indexer.stores.base import FileState, FileWrite, NewPassage
from indexer.stores.sqlite import SqliteStore
from indexer.sync.plan import text_hash
from indexer.types import Fingerprint, Passage, SearchFilter, SourceKind, Vectors

# More than one step of a scan, and not a whole number of them.
MANY = 34_000
SOURCES: tuple[SourceKind, ...] = ("memory", "sessions", "files")


def units(vectors: Vectors | Floats) -> Vectors:
    scaled: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def clustered(count: int, dimensions: int, *, clusters: int = 400, lean: float = 0.0, seed: int = 0) -> Vectors:
    """Unit vectors about some centres, which all lean in one direction."""
    chance = np.random.default_rng(seed)
    centres = units(chance.standard_normal((clusters, dimensions)))
    around = 0.5 / np.sqrt(dimensions) * chance.standard_normal((count, dimensions))
    return units(centres[chance.integers(0, clusters, count)] + around + lean * units(np.ones((1, dimensions)))[0])


def coded(vectors: Vectors) -> Codes:
    return Coder.fit(vectors[:5000]).encode(vectors)


def steps_off(codes: Codes, near: Vectors, vectors: Vectors, query: Vectors, rows: Ints) -> float:
    """How far cosines are off, in units of what rounding every number by half a step can amount to."""
    unit = query.astype(np.float64) / np.linalg.norm(query)
    room = codes.scales[rows] / 2 * np.abs(unit).sum() + 1e-6
    return float(np.max(np.abs(near - vectors[rows].astype(np.float64) @ unit) / room, initial=0))


def recall(vectors: Vectors, codes: Codes, queries: Vectors, allowed: Mask | None, *, k: int = 10, kept: int) -> float:
    """Share of the exact k nearest that are among the `kept` best by bytes."""
    found = 0
    for query in queries:
        exact = np.einsum("ij,j->i", vectors, query)
        if allowed is not None:
            exact[~allowed] = -2
        limit = np.partition(exact, -k)[-k]
        rows, near = nearest_rows(codes, query, k, allowed)
        best = rows[np.argsort(-near)[:kept]]
        found += min(k, int((exact[best] >= limit - 1e-6).sum()))
    return found / (k * len(queries))


def some(count: int, share: float, seed: int = 0) -> Mask:
    allowed: Mask = np.random.default_rng(seed).random(count) < share
    return allowed


@pytest.mark.parametrize("dimensions", [8, 100, 384, 1000])
def test_turning_keeps_angles(dimensions: int) -> None:
    vectors = clustered(20, dimensions)
    turned = coding._rotate(vectors)
    assert turned.shape[0] >= max(dimensions, coding.MIN_BITS)
    assert turned.shape[0] % 64 == 0
    factor = float(np.sum(turned[:, 0] ** 2))
    assert np.allclose(turned.T @ turned / factor, vectors @ vectors.T, atol=1e-4)


@pytest.mark.parametrize("dimensions", [8, 64, 384, 1024])
def test_turning_spreads_a_single_number(dimensions: int) -> None:
    axes = np.eye(dimensions, dtype=np.float32)[:: max(1, dimensions // 50)]
    turned = coding._rotate(axes)
    powers = turned**2 / np.sum(turned**2, axis=0)
    assert powers.max() < 40 / turned.shape[0]
    differing = (turned[:, :, None] > 0) != (turned[:, None, :] > 0)
    apart = differing.mean(axis=0)[~np.eye(len(axes), dtype=bool)]
    assert 0.35 < apart.min() < apart.max() < 0.65, "axes are at right angles: about half of their bits differ"


def test_codes_stay_what_they_are() -> None:
    # Codes are kept in files: other signs or another layout need another version of these.
    vectors = ((np.arange(5 * 100) * 7919 % 101 - 50) / np.float32(512)).reshape(5, 100).astype(np.float32)
    codes = Coder(dimensions=100, mean=np.full(100, 0.01, np.float32)).encode(vectors)
    digest = hashlib.sha256(codes.bits.tobytes() + codes.levels.tobytes()).hexdigest()
    assert digest[:16] == "53ea2351fab0c783"


@pytest.mark.parametrize("dimensions", [8, 100, 384])
def test_distances_against_bits(dimensions: int) -> None:
    vectors, codes = scene(dimensions, 0.0)
    assert codes.bits.shape == (codes.coder.words, MANY)
    assert codes.levels.shape == vectors.shape
    word_bits = codes.coder.sign_bits(vectors[:1])[:, 0]
    among = np.flatnonzero(some(MANY, 0.9))
    expected = np.unpackbits((codes.bits ^ word_bits[:, None]).T.copy().view(np.uint8), axis=1).sum(axis=1)
    assert expected.max() > dimensions // 3
    assert np.array_equal(coding._distances(codes.bits, word_bits, None), expected)
    assert np.array_equal(coding._distances(codes.bits, word_bits, among), expected[among])


def test_distances_do_not_overflow() -> None:
    bits = np.zeros((64, 3), np.uint64)
    bits[:, 1] = np.uint64(2**64 - 1)
    assert coding._distances(bits, bits[:, 0], None).tolist() == [0, 64 * 64, 0]
    assert coding._distances(bits, bits[:, 1], np.array([1, 2])).tolist() == [0, 64 * 64]


def test_encoding_does_not_depend_on_company() -> None:
    vectors = clustered(3000, 100, lean=1.0)
    coder = Coder.fit(vectors)
    whole = coder.encode(vectors)
    for rows in (slice(0, 1), slice(1234, 1240), slice(5, 2999)):
        part = coder.encode(vectors[rows])
        assert np.array_equal(part.bits, whole.bits[:, rows])
        assert np.array_equal(part.levels, whole.levels[rows])
        assert np.array_equal(part.scales, whole.scales[rows])


@given(
    st.integers(0, 60), st.integers(8, 130), st.integers(1, 80), st.integers(0, 2**32 - 1), st.sampled_from([0, 0.5, 1])
)
def test_few_passages_are_all_measured(count: int, dimensions: int, k: int, seed: int, share: float) -> None:
    vectors = clustered(count, dimensions, clusters=5, seed=seed)
    vectors[some(count, 0.1, seed + 1)] = 0
    allowed = some(count, share, seed) if share < 1 else None
    query = clustered(1, dimensions, seed=seed + 2)[0]
    codes = coded(vectors)
    rows, near = nearest_rows(codes, query, k, allowed)
    expected = vectors.any(axis=1) if allowed is None else allowed & vectors.any(axis=1)
    assert rows.tolist() == np.flatnonzero(expected).tolist()
    assert steps_off(codes, near, vectors, query, rows) <= 1
    assert near.dtype == np.float32


@cache
def scene(dimensions: int, lean: float) -> tuple[Vectors, Codes]:
    vectors = clustered(MANY, dimensions, lean=lean)
    return vectors, coded(vectors)


@pytest.mark.parametrize("share", [1.0, 0.7, 0.3, 0.1])
@pytest.mark.parametrize(("dimensions", "lean"), [(200, 0.0), (384, 0.0), (96, 3.0)])
def test_the_nearest_are_among_the_survivors(dimensions: int, lean: float, share: float) -> None:
    vectors, codes = scene(dimensions, lean)
    queries = clustered(20, dimensions, lean=lean, seed=0)
    allowed = some(MANY, share) if share < 1 else None
    assert recall(vectors, codes, queries, allowed, kept=80) >= 0.99
    rows, near = nearest_rows(codes, queries[0], 10, allowed)
    assert np.all(np.diff(rows) > 0)
    assert allowed is None or allowed[rows].all()
    assert steps_off(codes, near, vectors, queries[0], rows) < 0.6
    count = MANY if allowed is None else int(allowed.sum())
    assert len(rows) == count if count <= 8000 else _survivors(count, 10) <= len(rows) <= 2 * _survivors(count, 10)


def test_the_mean_opens_a_narrow_cone() -> None:
    chance = np.random.default_rng(0)
    spread = units(chance.standard_normal((MANY, 24)) @ chance.standard_normal((24, 96)))
    vectors = units(spread + 12 * units(np.ones((1, 96))))
    plain = Coder(dimensions=96, mean=np.zeros(96, np.float32)).encode(vectors)
    fitted = recall(vectors, coded(vectors), vectors[:20], None, kept=80)
    assert fitted >= 0.95
    assert recall(vectors, plain, vectors[:20], None, kept=80) < fitted - 0.08


@pytest.mark.parametrize("kind", ["one-hot", "positive"])
def test_awkward_vectors(kind: str) -> None:
    chance = np.random.default_rng(4)
    if kind == "one-hot":
        made = np.eye(128, dtype=np.float32)[chance.integers(0, 128, MANY)] * 20
        made += 0.4 * chance.standard_normal(made.shape, dtype=np.float32)
    else:
        made = np.maximum(chance.standard_normal((MANY, 20)) @ chance.standard_normal((20, 128)) / 4 + 1.5, 0)
    vectors = units(made)
    assert recall(vectors, coded(vectors), vectors[:20], None, kept=80) >= 0.99


@pytest.mark.parametrize("share", [1.0, 0.6, 0.3, 0.02])
def test_what_has_no_vector_is_never_found(share: float) -> None:
    vectors = clustered(MANY, 16, clusters=5)
    broken = some(MANY, 0.4, seed=1)
    usable = vectors.copy()
    usable[broken] = 0
    spoilt = usable.copy()
    spoilt[np.flatnonzero(broken)[::3], 3] = np.nan
    spoilt[np.flatnonzero(broken)[1::3], 5] = np.inf
    # None of the broken rows weighs on the mean, and all of them are coded alike.
    first, second = coded(usable), coded(spoilt)
    assert np.array_equal(first.coder.mean, second.coder.mean)
    assert np.array_equal(first.bits, second.bits)
    allowed = some(MANY, share) if share < 1 else None
    for codes in (first, second):
        rows, near = nearest_rows(codes, vectors[0], 10, allowed)
        assert not broken[rows].any()
        assert np.isfinite(near).all()
        assert cosines(codes, vectors[0], np.flatnonzero(broken)[:9]).tolist() == [0] * 9
    assert recall(usable, second, vectors[:5], ~broken if allowed is None else ~broken & allowed, kept=80) >= 0.99


def test_nothing_is_found_in_nothing() -> None:
    query = clustered(1, 32)[0]
    for codes in (coded(np.empty((0, 32), np.float32)), coded(np.zeros((9000, 32), np.float32))):
        rows, near = nearest_rows(codes, query, 10, None)
        assert (len(rows), len(near)) == (0, 0)
        assert len(triple_norms(codes, *alone(len(codes)))) == len(codes)
    codes = coded(clustered(9000, 32))
    assert len(nearest_rows(codes, query, 10, np.zeros(9000, bool))[0]) == 0
    assert len(cosines(codes, query, np.empty(0, np.int64))) == 0


@given(st.lists(st.integers(0, 64), min_size=1, max_size=60), st.data())
def test_the_lowest_against_sorting(made: list[int], draw: st.DataObject) -> None:
    wanted = draw.draw(st.integers(1, len(made)))
    limit = sorted(made)[wanted - 1]
    ties = [place for place, distance in enumerate(made) if distance == limit]
    nearer = [place for place, distance in enumerate(made) if distance < limit]
    if len(nearer) + len(ties) > 2 * wanted:
        ties = ties[: wanted - len(nearer)]
    assert coding._lowest(np.array(made, np.uint16), wanted, 64).tolist() == sorted(nearer + ties)


@pytest.mark.parametrize("share", [1.0, 0.9, 0.4])
def test_copies_do_not_crowd_in(share: float) -> None:
    vectors = clustered(MANY, 64)
    vectors[1000:31_000] = vectors[1000]
    codes = coded(vectors)
    allowed = some(MANY, share) if share < 1 else None
    for query in (vectors[1000], vectors[5]):
        rows, near = nearest_rows(codes, query, 10, allowed)
        assert 2000 <= len(rows) <= 4000
        assert len(set(rows.tolist())) == len(rows)
        best = float((vectors @ query)[allowed if allowed is not None else slice(None)].max())
        assert near.max() == pytest.approx(best, abs=0.01)
    # Those that are nearer than the copies are all there.
    query = units(vectors[1000:1001] + 0.5 * vectors[5:6])[0]
    nearer = np.flatnonzero(vectors @ query > vectors[1000] @ query + 0.01)
    wanted = nearer if allowed is None else nearer[allowed[nearer]]
    assert np.isin(wanted, nearest_rows(codes, query, 10, allowed)[0]).all()


def test_many_may_be_wanted() -> None:
    vectors = clustered(MANY, 32)
    codes = coded(vectors)
    assert len(nearest_rows(codes, vectors[0], 1000, None)[0]) >= 20_000
    assert len(nearest_rows(codes, vectors[0], 10 * MANY, None)[0]) == MANY


def test_cosines_of_any_rows() -> None:
    vectors = clustered(5000, 200)
    codes = coded(vectors)
    rows = np.random.default_rng(0).integers(0, 5000, 3000)
    rows[:10] = 7
    near = cosines(codes, vectors[3], rows)
    assert near.dtype == np.float32
    assert steps_off(codes, near, vectors, vectors[3], rows) < 0.6
    assert np.allclose(near, cosines(codes, 5 * vectors[3], rows), atol=1e-6), "a question's vector may have any length"


@pytest.mark.parametrize(
    "query",
    [
        np.zeros(32, np.float32),
        np.full(32, np.nan, np.float32),
        np.full(32, np.inf, np.float32),
        np.ones(31, np.float32),
        np.ones((1, 32), np.float32),
    ],
)
def test_a_question_without_direction_is_refused(query: Vectors) -> None:
    codes = coded(clustered(10, 32))
    for search in (lambda: nearest_rows(codes, query, 10, None), lambda: cosines(codes, query, np.arange(3))):
        with pytest.raises(EmbeddingError, match="32 dimensions"):
            search()


def test_vectors_of_another_length_are_refused() -> None:
    with pytest.raises(EmbeddingError, match="32 dimensions"):
        Coder.fit(clustered(10, 32)).encode(clustered(10, 33))


def alone(count: int) -> tuple[Ints, Ints]:
    return np.arange(count), np.arange(count)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_triple_norms_against_loops(count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    vectors = clustered(count, 48, clusters=4, seed=seed)
    vectors[some(count, 0.1, seed)] = 0
    rows = np.arange(count)
    low = np.maximum(rows - chance.integers(0, 2, count), 0)
    high = np.minimum(rows + chance.integers(0, 2, count), count - 1)
    codes = coded(vectors)
    lengths = triple_norms(codes, low, high)
    assert lengths.dtype == np.float16
    for i in rows:
        exact = float(np.linalg.norm(vectors[low[i] : high[i] + 1].sum(axis=0)))
        # Rounding by half a step in each of 48 numbers, and float16.
        room = float(codes.scales[low[i] : high[i] + 1].sum()) / 2 * np.sqrt(48) + 0.002
        assert lengths[i] == pytest.approx(max(exact, 0.05), abs=room)


def test_triple_norms_of_more_than_one_step() -> None:
    vectors = clustered(4000, 384)
    rows = np.arange(4000)
    low, high = np.maximum(rows - 1, 0), np.minimum(rows + 1, 3999)
    running = np.r_[np.zeros((1, 384)), np.cumsum(vectors, axis=0, dtype=np.float64)]
    exact = np.linalg.norm(running[high + 1] - running[low], axis=1)
    assert np.allclose(triple_norms(coded(vectors), low, high), exact, atol=0.01)


def test_arrays_may_be_maps_of_a_file(tmp_path: Path) -> None:
    vectors = clustered(MANY, 48)
    codes = coded(vectors)
    maps = {}
    for name in ("bits", "levels", "scales"):
        np.save(tmp_path / f"{name}.npy", getattr(codes, name))
        maps[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    mapped = Codes(coder=codes.coder, **maps)
    for allowed in (None, some(MANY, 0.8), some(MANY, 0.3), some(MANY, 0.05)):
        rows, near = nearest_rows(mapped, vectors[1], 10, allowed)
        expected_rows, expected = nearest_rows(codes, vectors[1], 10, allowed)
        assert np.array_equal(rows, expected_rows)
        assert np.array_equal(near, expected)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqliteStore, Vectors]]:
    """Vectors in a store, row i under the i-th key, in files of three sources; some were removed again."""
    vectors = clustered(12_000, 24, clusters=100, seed=8)
    store = SqliteStore(tmp_path_factory.mktemp("codes") / "index.sqlite")
    store.begin(Fingerprint(model="m", dimensions=24, rules="r", schema=1))
    for number, rows in enumerate(np.array_split(np.arange(12_000), 3)):
        store.write([filled(f"{number}.md", SOURCES[number], vectors, rows)])
    yield store, vectors
    store.close()


def filled(path: str, source: SourceKind, vectors: Vectors, rows: Ints) -> FileWrite:
    made = [
        NewPassage(
            ordinal=at,
            passage=Passage(start_line=at + 1, end_line=at + 1, text=str(row)),
            text_hash=text_hash(str(row)),
            terms=(str(row),),
            vector=vectors[row].astype("<f4").tobytes(),
        )
        for at, row in enumerate(rows.tolist())
    ]
    state = FileState(path=path, source=source, size_bytes=1, version=b"1", checked_ns=1, content_hash="h")
    return FileWrite(path=path, state=state, expected_revision=0, inserted=tuple(made))


@pytest.mark.parametrize("sources", [(), ("memory",), ("memory", "files")])
@pytest.mark.parametrize("removed", [False, True])
def test_the_same_as_the_store(
    stored: tuple[SqliteStore, Vectors], sources: tuple[SourceKind, ...], *, removed: bool
) -> None:
    store, vectors = stored
    keys = np.sort(store.vectors(None)[0])
    allowed = np.isin(np.repeat(SOURCES, 4000), sources or SOURCES)
    codes = coded(vectors)
    gone = some(12_000, 0.2, seed=5) if removed else np.zeros(12_000, bool)
    allowed &= ~gone
    for query in clustered(10, 24, clusters=100, seed=8):
        near_keys, near = store.nearest(query, 3000, SearchFilter(sources=sources))
        exact = np.searchsorted(keys, near_keys)
        expected = near[~gone[exact]][:10]
        rows, _ = nearest_rows(codes, query, 10, allowed)
        best = np.sort(vectors[rows] @ query)[::-1][:10]
        assert np.allclose(best, expected, atol=1e-5)
