"""The campaign of outages in small: some of what can happen to two servers and their database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.outages import campaign
from tests.postgres import ADDRESS, NO_SERVER, is_installed

pytestmark = pytest.mark.skipif(bool(ADDRESS) or not is_installed(), reason=NO_SERVER)
FAULTS = "database,replica,connections,silent path,standby,asynchronous standby"


def test_what_was_acknowledged_is_there_once_and_everywhere(tmp_path: Path) -> None:
    assert not list(campaign(tmp_path, 6, 1, lambda line: None, faults=FAULTS, clients=2))
