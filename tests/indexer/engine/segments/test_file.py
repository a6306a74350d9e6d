from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from indexer.engine.segments.file import Array, Pack, is_sound, open_pack, write_pack
from indexer.errors import StoreError, StoreFull

ARRAYS: dict[str, Array] = {
    "rows": np.arange(1000, dtype=np.int32),
    "bits": np.arange(60, dtype=np.uint64).reshape(6, 10),
    "half": np.array([0.5, 1.5], np.float16),
    "none": np.empty((0, 3), np.uint8),
    "袋鼠": np.array([True, False]),
}


def opened(path: Path) -> Pack:
    pack = open_pack(path)
    assert pack is not None
    return pack


def test_what_is_written_is_mapped_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "index.pack"
    write_pack(path, ARRAYS, {"generation": "a1", "says": "笔记"})
    pack = opened(path)
    assert pack.notes == {"generation": "a1", "says": "笔记"}
    assert pack.size_bytes == path.stat().st_size
    assert set(pack.arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert pack.arrays[name].dtype == array.dtype
        assert np.array_equal(pack.arrays[name], array)
    assert not pack.arrays["rows"].flags.writeable
    assert is_sound(path)


DTYPES = [np.uint8, np.int8, np.int32, np.int64, np.uint64, np.float16, np.float32, np.bool_]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(DTYPES).flatmap(
            lambda dtype: arrays.arrays(dtype, arrays.array_shapes(max_dims=2, min_side=0))
        ),
        max_size=5,
    )
)
def test_any_arrays(tmp_path: Path, made: list[Array]) -> None:
    path = tmp_path / "any.pack"
    write_pack(path, {str(number): array for number, array in enumerate(made)}, {})
    pack = opened(path)
    for number, array in enumerate(made):
        assert pack.arrays[str(number)].shape == array.shape
        assert np.array_equal(pack.arrays[str(number)], array, equal_nan=array.dtype.kind == "f")


def test_columns_of_another_order_are_written_in_theirs(tmp_path: Path) -> None:
    path = tmp_path / "index.pack"
    turned = np.arange(12).reshape(3, 4).T
    write_pack(path, {"turned": turned, "big": np.arange(3, dtype=">i4")}, {})
    assert np.array_equal(opened(path).arrays["turned"], turned)
    assert opened(path).arrays["big"].tolist() == [0, 1, 2]


def test_one_that_is_mapped_outlives_its_replacement(tmp_path: Path) -> None:
    path = tmp_path / "index.pack"
    write_pack(path, {"rows": np.zeros(5000)}, {})
    old = opened(path).arrays["rows"]
    write_pack(path, {"rows": np.ones(9)}, {})
    assert opened(path).arrays["rows"].tolist() == [1] * 9
    assert old.sum() == 0
    assert len(old) == 5000


@pytest.mark.parametrize("length", [0, 1, 21, 22, 30, 200, -64, -1])
def test_a_torn_file_is_none(tmp_path: Path, length: int) -> None:
    path = tmp_path / "index.pack"
    write_pack(path, ARRAYS, {})
    whole = path.read_bytes()
    path.write_bytes(whole[:length])
    assert open_pack(path) is None
    assert not is_sound(path)


def test_other_files_are_none(tmp_path: Path) -> None:
    path = tmp_path / "index.pack"
    assert open_pack(path) is None
    path.write_text("# Notes\n\n- a\n- b\n", "utf-8")
    assert open_pack(path) is None
    path.unlink()
    path.mkdir()
    assert open_pack(path) is None


def test_a_changed_header_is_none_and_changed_content_is_found(tmp_path: Path) -> None:
    path = tmp_path / "index.pack"
    write_pack(path, ARRAYS, {"generation": "abcdef"})
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"abcdef", b"abcdeg"))
    assert open_pack(path) is None
    at = whole.index(ARRAYS["rows"].tobytes()) + 100
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    assert open_pack(path) is not None, "its size is right: opening reads no array"
    assert not is_sound(path)


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "index.pack"
    write_pack(path, ARRAYS, {})
    blocked = tmp_path / f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp"
    blocked.mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        write_pack(path, {"rows": np.ones(3)}, {})
    assert len(opened(path).arrays["rows"]) == 1000


FULL = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from indexer.errors import StoreFull
from indexer.engine.segments.file import write_pack

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    write_pack(Path(sys.argv[1]), {"rows": np.ones(100_000)}, {})
except Exception as error:
    print(type(error).__name__)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="this system has no limit of file sizes")
def test_a_write_that_does_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "index.pack"
    write_pack(path, ARRAYS, {})
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in (StoreFull.__name__, StoreError.__name__), done.stderr
    assert len(opened(path).arrays["rows"]) == 1000
    assert [file.name for file in tmp_path.iterdir()] == ["index.pack"]
