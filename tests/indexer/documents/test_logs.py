from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.documents.incremental import Growth, Logs
from indexer.documents.transcripts import split_transcript
from indexer.types import Passage
from tests.indexer.talks import batches, turns

PATH = "sessions/talk.jsonl"
LINES = batches(*(turns(f"Anna: 第{n}句", f"Ben: line {n}?") for n in range(8)))


class Shelf:
    """What an index holds of one log, written as a sync writes it."""

    def __init__(self, logs: Logs) -> None:
        self.logs = logs
        self.stored_hash = ""
        self.passages = list[Passage]()

    def take(self, raw: bytes, *, path: str = PATH) -> Growth:
        content_hash = str(hash(raw))
        grown = self.logs.read(raw, path, content_hash=content_hash, stored_hash=self.stored_hash)
        self.passages = self.passages[: grown.first] + grown.passages
        self.stored_hash = content_hash
        return grown


def test_a_log_that_grows_is_read_at_its_end_only() -> None:
    shelf = Shelf(Logs())
    shelf.take(b"".join(LINES[:9]))
    for end in range(11, len(LINES) + 1, 2):
        grown = shelf.take(b"".join(LINES[:end]))
        assert (grown.first, len(grown.passages)) == (end - 3, 2)
        assert shelf.passages == split_transcript(b"".join(LINES[:end]))


def test_a_log_that_changed_before_its_end_is_read_anew() -> None:
    shelf = Shelf(Logs())
    raw = b"".join(LINES[:9])
    shelf.take(raw)
    changed = raw.replace("第0句".encode(), "第9句".encode()) + b"".join(LINES[9:])
    assert len(changed) > len(raw)
    assert shelf.take(changed).first == 0
    assert shelf.passages == split_transcript(changed)


def test_a_log_that_became_shorter_is_read_anew() -> None:
    shelf = Shelf(Logs())
    shelf.take(b"".join(LINES))
    shorter = b"".join(LINES[:5])
    assert shelf.take(shorter).first == 0
    assert shelf.passages == split_transcript(shorter)


def test_an_index_that_holds_another_state_gets_all_of_it() -> None:
    logs = Logs()
    shelf, other = Shelf(logs), Shelf(logs)
    shelf.take(b"".join(LINES[:5]))
    shelf.take(b"".join(LINES[:9]))
    assert other.take(b"".join(LINES)).first == 0
    assert other.passages == split_transcript(b"".join(LINES))
    # The first one holds an older state than was read last.
    assert shelf.take(b"".join(LINES)).first == 0
    assert shelf.passages == other.passages


def test_what_is_remembered_is_bounded() -> None:
    logs = Logs()
    shelves = {f"sessions/{n}.jsonl": Shelf(logs) for n in range(70)}
    for path, shelf in shelves.items():
        shelf.take(b"".join(LINES[:5]), path=path)
    firsts = [shelf.take(b"".join(LINES), path=path).first for path, shelf in reversed(shelves.items())]
    assert firsts.count(0) == 6, "the 64 read last are remembered"
    assert all(shelf.passages == split_transcript(b"".join(LINES)) for shelf in shelves.values())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2500), st.booleans()), max_size=8))
def test_any_states_one_after_another_give_what_the_whole_gives(states: list[tuple[int, int, bool]]) -> None:
    shelf, raw = Shelf(Logs()), b"".join(LINES)
    for at, end, spoilt in states:
        state = raw[:end]
        if spoilt:
            state = state[:at] + b"#" + state[at + 1 :]
        shelf.take(state)
        assert shelf.passages == split_transcript(state)
