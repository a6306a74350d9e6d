from __future__ import annotations

from tests.indexer.workspace import Workspace, every_store

pytestmark = every_store

LINES = [
    "我上司的职位是总裁。",
    "我上司的生日是五月二号。",
    "我表妹的生日是八月一号。",
    "我同事的生日是九月三号。",
    "我叔叔的生日是三月九号。",
    "打印机又卡纸了。",
    "周五的会改到三点。",
]


def test_what_the_best_passage_names_brings_the_next(workspace: Workspace) -> None:
    workspace.write_items("memory/2026-11-01.md", LINES)
    hits = workspace.synced().search("那个职位是总裁的人，生日在哪个季节？", limit=5, explain=True).hits
    assert [hit.passage.text for hit in hits[:2]] == LINES[:2]
    assert hits[1].signals["hop"] > 0


def test_a_script_with_spaces_has_none(workspace: Workspace) -> None:
    workspace.write_items("memory/2026-11-01.md", ["My boss is the president.", "The birthday of my boss is in May."])
    hits = workspace.synced().search("When is the birthday of the president?", explain=True).hits
    assert hits and all("hop" not in hit.signals for hit in hits)
