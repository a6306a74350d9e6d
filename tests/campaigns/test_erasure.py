"""A small version of the campaign of killed erasures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.campaigns.erasure import campaign
from tests.storages import STORAGES

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


@pytest.mark.parametrize("storage", STORAGES)
def test_what_was_erased_is_nowhere_wherever_it_was_killed(storage: str, tmp_path: Path) -> None:
    assert not list(campaign(tmp_path, 12, 1, lambda line: None, storage=STORAGES[storage]))
