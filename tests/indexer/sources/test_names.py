from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.sources.names import name_fault, path_for_new, path_on_disk
from indexer.types import composed


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("café.md", ""),
        ("cafe\u0301.md", ""),
        ("备忘 🎉.md", ""),
        ("a\nb.md", "control character"),
        ("a\x7f.md", "control character"),
        ("a\u2028.md", "control character"),
        ("a\udce9.md", "not UTF-8"),
        ("a\\b.md", "backslash"),
    ],
)
def test_names_that_cannot_be_given_back(name: str, fault: str) -> None:
    found = name_fault(name)
    assert fault in found and bool(fault) == bool(found)
    if fault == "backslash":
        assert not name_fault(name, backslash=True)


def test_a_folder_counts_as_well_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "Cafe\u0301").mkdir()
    assert path_on_disk(tmp_path, "Café") == "Cafe\u0301"
    assert path_on_disk(tmp_path, "Thé") is None
    assert path_on_disk(tmp_path, "none/Thé") is None
    assert path_for_new(tmp_path, "Café/the\u0301/the\u0301.md") == "Cafe\u0301/thé/thé.md"


@given(st.text(st.sampled_from("e\u0301u\u0308é한\u1112\u1161\u11ab豈が"), min_size=1, max_size=6))
def test_every_form_names_one_file(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.mktemp("names")
    (folder / name).write_text("x")
    assert path_on_disk(folder, name) == path_on_disk(folder, composed(name)) == name
