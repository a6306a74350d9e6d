"""The ends of logs, ranked by their words: real files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from indexer import Hit, LineRange, Passage, SearchFilter
from indexer.documents.transcripts import split_transcript
from indexer.stores.base import StoredPassage
from memory_service.memories.indexing import interleave_hits
from memory_service.memories.unindexed import UnindexedMessages
from memory_service.storage.files.log_folder import LogFolder
from tests.indexer.talks import write_log

ALL = SearchFilter()


def just_said(root: Path, *known: StoredPassage) -> UnindexedMessages:
    """What an index has not heard of that has these passages of every log."""
    return UnindexedMessages(
        cache(lambda: LogFolder(root / "sessions")), lambda _, first: known[-1:] if first else known
    )


def logs_in(root: Path) -> list[str]:
    return [f"sessions/{path.name}" for path in (root / "sessions").glob("*.jsonl")]


def hits(root: Path, query: str, kept: SearchFilter = ALL, *known: StoredPassage) -> list[Hit]:
    return just_said(root, *known).search(logs_in(root), query, limit=10, passing=kept, rounds=0)


def found(root: Path, query: str, kept: SearchFilter = ALL, *known: StoredPassage) -> list[tuple[str, int]]:
    return [(hit.path, hit.passage.start_line) for hit in hits(root, query, kept, *known)]


def known_of(passages: Sequence[Passage]) -> list[StoredPassage]:
    return [
        StoredPassage(key=at, path="memory/a.md", source="memory", ordinal=at, passage=each)
        for at, each in enumerate(passages)
    ]


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
    assert found(tmp_path, "wombat", ALL, *known_of([first])) == [(path, second.start_line)]
    without = LineRange(path=path, start_line=second.start_line, end_line=second.start_line)
    assert found(tmp_path, "wombat", SearchFilter(without=(without,))) == [(path, first.start_line)]


def test_however_much_the_index_has_what_is_behind_it_is_found_at_its_place(tmp_path: Path) -> None:
    long = " ".join(f"quiet{n}" for n in range(400))
    texts = ["(2024-03-01) Lena: the wombat digs.", "Lena: the wombat sleeps.", "袋熊 wombat 在挖洞。", long]
    write_log(tmp_path, *(f"{text} wombat{n}" for n in range(3) for text in texts))
    whole = split_transcript((tmp_path / "sessions/talk.jsonl").read_bytes())
    assert len(whole) > 12, "a message of several passages is among them"
    for has in range(len(whole) + 1):
        behind = hits(tmp_path, "wombat1 wombat2", ALL, *known_of(whole[:has]))
        wanted = [at for at, each in enumerate(whole) if at >= has and "wombat2" in each.text]
        assert {hit.ordinal for hit in behind} >= {*wanted}, has
        for hit in behind:
            there = whole[hit.ordinal]
            assert hit.ordinal >= has and (hit.passage.text, hit.passage.date) == (there.text, there.date), has


def test_what_is_said_next_is_found_by_the_same_search_and_what_was_trimmed_is_not(tmp_path: Path) -> None:
    write_log(tmp_path, "The wombat digs.")
    log = tmp_path / "sessions/talk.jsonl"
    passages, rounds = known_of(split_transcript(log.read_bytes())), 0
    said = UnindexedMessages(
        cache(lambda: LogFolder(tmp_path / "sessions")), lambda _, first: passages[-1:] if first else passages
    )

    def lines() -> list[int]:
        behind = said.search(logs_in(tmp_path), "wombat", limit=9, passing=ALL, rounds=rounds)
        return [hit.passage.start_line for hit in behind]

    assert lines() == []
    write_log(tmp_path, "The wombat sleeps.", "The wombat eats.")
    now = split_transcript(log.read_bytes())
    assert sorted(lines()) == [each.start_line for each in now[1:]]
    passages, rounds = known_of(now[:2]), 1
    assert lines() == [now[2].start_line], "the index has heard of one more"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[-1:]))
    assert lines() == [now[2].start_line], "the line that the index has last is gone"
    log.unlink()
    write_log(tmp_path, "Another wombat.", "The wombat talks.", "No wombat at all.")
    assert sorted(lines()) == [each.start_line for each in now], "another log has taken its place"


@pytest.mark.parametrize("raw", [b"", b"\0\xff", b"no log\n", json.dumps({"type": "session"}).encode() + b"\n"])
def test_a_log_that_cannot_be_read_or_is_gone_gives_nothing(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions/odd.jsonl").write_bytes(raw)
    assert found(tmp_path, "wombat") == []
    assert just_said(tmp_path).search(["sessions/gone.jsonl"], "wombat", limit=3, passing=ALL, rounds=0) == []


def test_each_stands_before_the_hit_of_its_rank_and_none_twice(tmp_path: Path) -> None:
    write_log(tmp_path, *(f"The wombat digs hole {number}." for number in range(4)))
    four = hits(tmp_path, "wombat")
    of_index, said = four[:2], four[1:]
    merged = interleave_hits(of_index, said, 3)
    assert [hit.passage.start_line for hit in merged] == [four[at].passage.start_line for at in (2, 0, 3)]
    assert [hit.score for hit in merged] == [of_index[0].score, of_index[0].score, of_index[1].score]
    assert interleave_hits([], said, 9)[0].score == said[0].score
