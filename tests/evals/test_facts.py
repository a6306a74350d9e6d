"""Floors of facts that change: what holds now comes first, and nothing else is marked."""

from __future__ import annotations

import pytest

from tests.evals.facts import cases, marked_share, numbers, outcome, pairs


@pytest.mark.parametrize(("judged", "first"), [(False, 0.98), (True, 0.96)])
def test_what_holds_now_comes_first_and_nothing_is_marked_wrongly(judged: bool, first: float) -> None:
    half = [case for case in cases() if case.judged is judged]
    assert len(half) > 300
    found = numbers([(case, outcome(case)) for case in half])
    assert found.first >= first
    assert found.wrong <= 0.01
    assert found.reachable == 1.0


@pytest.mark.parametrize(("judged", "least"), [(False, 0.7), (True, 0.6)])
def test_free_wordings_are_read_and_seldom_wrongly(judged: bool, least: float) -> None:
    found = [(case, outcome(case)) for case in pairs(judged=judged)]
    assert marked_share(found, changes=True) >= least
    assert marked_share(found, changes=False) <= 0.01
