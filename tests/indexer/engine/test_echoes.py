"""A question that was asked before stands behind what tells, whatever was answered to it."""

from __future__ import annotations

import pytest

from indexer import Index
from indexer.testing import HashEmbedder
from tests.indexer.talks import log_of, turns
from tests.indexer.workspace import Workspace, every_store

pytestmark = every_store

NOTES = ("The spare key is in the blue pot.", "备用轮胎放在地下室。", "Die lange Leiter haben die Nachbarn.")
ASKED = ("Where is the spare key?", "备用轮胎放在哪里？", "Wer hat die lange Leiter?")
SAID_NOTHING = ("I am not sure yet.", "这个我还不确定。", "Das weiß ich noch nicht.")


def _asked_before(workspace: Workspace, times: int) -> Index:
    workspace.write_items("memory/2026-11-01.md", [*NOTES, "The printer jams.", "Tea is drunk at four."])
    for number, (question, reply) in enumerate(zip(ASKED, SAID_NOTHING, strict=True)):
        for turn in range(times):
            workspace.write(f"sessions/asked-{number}-{turn}.jsonl", log_of(*turns(question, reply)))
    return workspace.synced(HashEmbedder())


@pytest.mark.parametrize("mode", ["hybrid", "text"])
def test_the_note_stays_before_the_questions(workspace: Workspace, mode: str) -> None:
    index = _asked_before(workspace, 4)
    for question, note in zip(ASKED, NOTES, strict=True):
        hits = index.search(question, limit=8, mode=mode, explain=True).hits  # type: ignore[arg-type]
        assert hits[0].passage.text == note
        asked = [place for place, hit in enumerate(hits) if hit.passage.text == question]
        assert all(hits[place].signals["echo"] < 0 for place in asked)
        assert not asked or min(asked) > max(i for i, hit in enumerate(hits) if hit.passage.text != question)


def test_a_question_is_found_where_nothing_else_is(workspace: Workspace) -> None:
    workspace.write("sessions/asked.jsonl", log_of(*turns("Where is the spare key?")))
    index = workspace.synced()
    assert [hit.passage.text for hit in index.search("Where is the spare key?").hits] == ["Where is the spare key?"]


def test_a_message_that_tells_is_no_echo(workspace: Workspace) -> None:
    workspace.write("sessions/told.jsonl", log_of(*turns("The server runs on port 8080.", "Noted.")))
    index = workspace.synced()
    (first, *_) = index.search("Does the server run on port 8080?", explain=True).hits
    assert first.passage.text == "The server runs on port 8080."
    assert not first.signals.get("echo")
