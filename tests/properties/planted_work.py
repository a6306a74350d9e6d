"""Bugs of the work behind the answers, each one change of our text."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from memory_service.runtime import background, flushes, locks
from tests.properties import working
from tests.properties.planted import Planted, _mutant

PLANTED_WORK: Mapping[str, Planted] = MappingProxyType(
    {
        "at exactly the soft threshold no flush is due": _mutant(
            flushes,
            "if tokens < budget.soft_tokens or",
            "if tokens <= budget.soft_tokens or",
            working.check_a_flush_is_due_where_pressure_says_so,
        ),
        "a compaction waits twice": _mutant(
            locks,
            "self._enter(key, patience, compaction=True):",
            "self._enter(key, _Patience(timeout_seconds, cancelled), compaction=True):",
            working.check_a_compaction_waits_once_in_all,
        ),
        "a flush waits for the compaction": _mutant(
            flushes,
            "if tokens < budget.soft_tokens or",
            "if tokens < budget.hard_tokens or",
            working.check_a_flush_is_due_where_pressure_says_so,
        ),
        "the newest operation is forgotten": _mutant(
            background,
            "next((name for name, running in self._operations.items() if running.has_ended), None)",
            "next((name for name, running in reversed(self._operations.items()) if running.has_ended), None)",
            working.check_the_oldest_that_ended_is_forgotten,
        ),
    }
)
