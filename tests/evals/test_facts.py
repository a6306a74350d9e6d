"""Floors of facts that change: what holds now comes first, and nothing else is marked."""

from __future__ import annotations

import pytest

from tests.evals.facts import cases, numbers, outcome


@pytest.mark.parametrize(("judged", "first"), [(False, 0.98), (True, 0.96)])
def test_what_holds_now_comes_first_and_nothing_is_marked_wrongly(judged: bool, first: float) -> None:
    half = [case for case in cases() if case.judged is judged]
    assert len(half) > 300
    found = numbers([(case, outcome(case)) for case in half])
    assert found.first >= first
    assert found.wrong <= 0.01
    assert found.reachable == 1.0
