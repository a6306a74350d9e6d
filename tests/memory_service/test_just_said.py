"""The ends of logs, ranked by their words: real files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from indexer import LineRange, SearchFilter
from indexer.documents.transcripts import split_transcript
from indexer.stores.base import KnownPassage
from memory_service.just_said import beside, just_said, newest_logs
from tests.indexer.talks import write_log

ALL = SearchFilter()


def found(root: Path, query: str, kept: SearchFilter = ALL, *known: KnownPassage) -> list[tuple[str, int]]:
    logs = newest_logs(root, [f"sessions/{path.name}" for path in (root / "sessions").glob("*.jsonl")], kept)
    hits = just_said(root, logs, known, query, limit=10, kept=kept)
    return [(hit.path, hit.passage.start_line) for hit in hits]


def test_only_the_end_of_a_long_log_is_read_and_its_numbers_stand(tmp_path: Path) -> None:
    words = "the ferry leaves at nine and the harbour is quiet " * 20
    write_log(tmp_path, *(f"quokka{n} {words}" for n in range(400)), session_id="long")
    raw = (tmp_path / "sessions/long.jsonl").read_bytes()
    assert len(raw) > 300_000
    last = split_transcript(raw)[-1]
    assert found(tmp_path, "quokka399") == [("sessions/long.jsonl", last.start_line)]
    assert found(tmp_path, "quokka3") == []


def test_of_many_logs_the_newest_are_read(tmp_path: Path) -> None:
    for number in range(40):
        write_log(tmp_path, "袋熊在挖洞。", session_id=f"talk{number}")
        os.utime(tmp_path / f"sessions/talk{number}.jsonl", (number, number))
    paths = {path for path, _ in found(tmp_path, "袋熊")}
    assert "sessions/talk39.jsonl" in paths and "sessions/talk0.jsonl" not in paths


def test_what_is_known_or_left_out_is_not_found(tmp_path: Path) -> None:
    write_log(tmp_path, "The wombat digs.", "The wombat sleeps.")
    first, second = split_transcript((tmp_path / "sessions/talk.jsonl").read_bytes())
    path = "sessions/talk.jsonl"
    assert {line for _, line in found(tmp_path, "wombat")} == {first.start_line, second.start_line}
    known = KnownPassage(key=1, ordinal=0, passage=first, text_hash=b"")
    assert found(tmp_path, "wombat", ALL, known) == [(path, second.start_line)]
    without = LineRange(path=path, start_line=second.start_line, end_line=second.start_line)
    assert found(tmp_path, "wombat", SearchFilter(without=(without,))) == [(path, first.start_line)]


@pytest.mark.parametrize("raw", [b"", b"\0\xff", b"no log\n", json.dumps({"type": "session"}).encode() + b"\n"])
def test_a_log_that_cannot_be_read_or_is_gone_gives_nothing(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions/odd.jsonl").write_bytes(raw)
    assert found(tmp_path, "wombat") == []
    assert just_said(tmp_path, ["sessions/gone.jsonl"], (), "wombat", limit=3, kept=ALL) == []
    assert newest_logs(tmp_path, ["sessions/gone.jsonl"], ALL) == []


def test_each_stands_before_the_hit_of_its_rank_and_none_twice(tmp_path: Path) -> None:
    write_log(tmp_path, *(f"The wombat digs hole {number}." for number in range(4)))
    hits = just_said(tmp_path, ["sessions/talk.jsonl"], (), "wombat", limit=4, kept=ALL)
    of_index, said = hits[:2], hits[1:]
    merged = beside(of_index, said, 3)
    assert [hit.passage.start_line for hit in merged] == [hits[at].passage.start_line for at in (2, 0, 3)]
    assert [hit.score for hit in merged] == [of_index[0].score, of_index[0].score, of_index[1].score]
    assert beside([], said, 9)[0].score == said[0].score
