"""Bugs are planted into our code, one at a time: the property that each names must break."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.properties.planted import PLANTED
from tests.properties.planted_erasure import PLANTED_ERASURE
from tests.properties.planted_index import PLANTED_INDEX
from tests.properties.planted_work import PLANTED_WORK

ALL = {**PLANTED, **PLANTED_ERASURE, **PLANTED_INDEX, **PLANTED_WORK}

pytestmark = pytest.mark.skipif(os.name == "nt", reason="folders are synced by POSIX alone")


@pytest.mark.parametrize("name", ALL)
def test_the_property_finds_the_bug(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = ALL[name]
    with monkeypatch.context() as patch:
        mutant.apply(patch)
        with pytest.raises(AssertionError):
            mutant.check(tmp_path)
