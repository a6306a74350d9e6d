"""Facts that change, as the service tells them: in results, and in the block of a prompt."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from memory_service.messages.sizes import count_tokens
from memory_service.service import MemoryService


def test_results_and_blocks_tell_what_was_replaced(tmp_path: Path) -> None:
    with MemoryService.open(tmp_path, embedding_model="none") as service:
        old = service.remember("default", "Ana lives in Lisbon", date=dt.date(2026, 1, 2))
        new = service.remember("default", "Ana moved to Porto", date=dt.date(2026, 3, 1))
        first, second = service.search("default", "where does Ana live?", history=True).results
        assert (first.path, second.path) == (new.path, old.path)
        assert second.replaced_by is not None
        assert second.replaced_by.citation == first.citation
        assert [each.citation for each in first.replaces] == [second.citation]
        assert [(each.text, each.current) for each in first.history] == [
            ("Ana lives in Lisbon", False),
            ("Ana moved to Porto", True),
        ]
        context = service.context("default", "where does Ana live?", budget_tokens=200)
        words = f'Ana lives in Lisbon <replaced date="2026-01-02" by="memory/2026-03-01.md#L{new.start_line}"/>'
        assert words in context.block
        assert context.tokens == count_tokens(context.block) <= 200
