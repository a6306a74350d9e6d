"""Of the lines of one record, the one with the label that is asked for comes first."""

from __future__ import annotations

import pytest

from tests.indexer.workspace import Workspace, texts

RECORDS = """# Tools

## Drill
- Bought at: Weber
- Price: 90
- Kept in: the shed

## Ladder
- Bought at: Novak
- Price: 120
- Kept in: the attic
"""


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("where is the ladder?", "Kept in: the attic"),
        ("where is the drill?", "Kept in: the shed"),
        ("where did I get the ladder?", "Bought at: Novak"),
        ("how expensive is the drill?", "Price: 90"),
    ],
)
def test_the_line_with_the_label_comes_first(workspace: Workspace, question: str, first: str) -> None:
    workspace.write("memory/tools.md", RECORDS)
    index = workspace.synced(None)
    assert texts(index, question, limit=1) == [first]
    hits = index.search(question, limit=12, explain=True).hits
    assert len({hit.passage.text for hit in hits}) == len(hits) >= 3
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert sum(hit.signals.values()) == pytest.approx(hit.score)


def test_a_record_without_such_a_label_stays_as_it_is(workspace: Workspace) -> None:
    workspace.write("memory/tools.md", "# Saw\n\n- Colour of the saw: red\n- Price: 40\n")
    index = workspace.synced(None)
    assert texts(index, "where is the saw?") == texts(index, "who owns the saw?")
    parts = index.search("where is the saw?", explain=True).hits[0].signals
    assert "label" not in parts
    assert texts(index, "how expensive is the saw?")[0] == "Price: 40"
