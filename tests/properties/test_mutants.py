"""Bugs of other systems are put into our code, one at a time: the invariants must find each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.properties.homes import Homes
from tests.properties.invariants import play
from tests.properties.mutants import MUTANTS, Mutant
from tests.properties.scenarios import SCENARIOS
from tests.properties.shots import Broken


def broken_by(mutant: Mutant, homes: Homes) -> Iterator[Broken]:
    """What each test that the mutant names finds."""
    for name in mutant.scenarios:
        script = SCENARIOS[name]
        try:
            play(homes.world(script.window), script.operations)
        except Broken as broken:
            yield broken
    for run in mutant.also:
        try:
            run(homes)
        except Broken as broken:
            yield broken


@pytest.mark.parametrize("name", MUTANTS)
def test_the_invariants_find_the_bug(name: str, homes: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    with monkeypatch.context() as patch:
        mutant.apply(patch)
        found = next(broken_by(mutant, homes), None)
    assert found is not None, f"no invariant finds that {name}: make one stronger ({mutant.source})"
    assert found.invariant in mutant.killed_by, str(found)
