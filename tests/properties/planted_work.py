"""Bugs of the work behind the answers, each one change of our text."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from indexer.engine import segments
from indexer.stores import sqlite
from memory_service import lanes, operations
from memory_service.shortterm import flushes
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
            lanes,
            "self._entered(key, patience, compaction=True):",
            "self._entered(key, _Patience(timeout_seconds, cancelled), compaction=True):",
            working.check_a_compaction_waits_once_in_all,
        ),
        "the switches of forgotten operations stay": _mutant(
            operations,
            "del self._operations[oldest], self._stops[oldest]",
            "del self._operations[oldest]",
            working.check_nothing_of_a_forgotten_operation_stays,
        ),
        "a text without a vector hides one that has it": _mutant(
            sqlite,
            "WHERE p.text_hash = unhex(j.value) AND p.embedded LIMIT 1)",
            "WHERE p.text_hash = unhex(j.value) LIMIT 1)",
            working.check_a_vector_is_found_wherever_it_stands,
        ),
        "an erased speaker counts in the packed part": _mutant(
            segments,
            '    arrays["speakers"] = np.unique(arrays["labels"][arrays["labels"] > 0])\n',
            "",
            working.check_a_scrubbed_pack_is_as_one_made_anew,
        ),
    }
)
