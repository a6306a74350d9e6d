from __future__ import annotations

import pytest

from memory_service.errors import ContextOverflow, MemoryServiceError, UpstreamFailed, _below, from_wire
from memory_service.llm.errors import classify


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in _below(MemoryServiceError) if "code" in vars(kind)]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("kind", _below(MemoryServiceError), ids=lambda kind: kind.__name__)
def test_every_error_comes_back_over_the_wire(kind: type[MemoryServiceError]) -> None:
    error = from_wire(kind.status, kind.code, "What failed. What to do.")
    assert type(error) is kind
    assert str(error) == "What failed. What to do."


def test_a_bare_status_means_the_general_error() -> None:
    assert type(from_wire(502, "a code of a later version", "")) is UpstreamFailed


def test_an_overflow_carries_its_numbers() -> None:
    error = ContextOverflow("Too long.", window_tokens=8192, requested_tokens=9000)
    assert (error.kind, error.window_tokens, error.requested_tokens) == ("token_overflow", 8192, 9000)
    assert classify("").kind == UpstreamFailed("").kind == "other"
