from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory_service.compaction.record import Compaction, PinRecord
from memory_service.compaction.view import ViewShape
from memory_service.errors import Conflict
from memory_service.messages.sizes import message_tokens
from memory_service.runtime.session import OpenSession, SessionState
from memory_service.sessions.records import Body, FlushRecord, MessageRecord, Undo
from memory_service.storage.files.log_folder import LogFolder
from tests.memory_service.rooms import image, says, user
from tests.memory_service.storage.log_steps import begin, trim

SHAPE = ViewShape(window_tokens=8_000)
PICTURE = "iVBORw0KGgo" * 2_000


def said(*messages: dict[str, Any]) -> list[Body]:
    return [MessageRecord(text=json.dumps(message, ensure_ascii=False)) for message in messages]


def compaction(base: int | None, upto: int, tail_start: int) -> Compaction:
    return Compaction(
        base=base, upto=upto, tail_start=tail_start, summary=("摘要",), stage="summary", tokens_before=9, tokens_after=1
    )


@pytest.fixture
def logs(tmp_path: Path) -> LogFolder:
    made = LogFolder(tmp_path / "sessions")
    begin(made, "s")
    return made


def opened(logs: LogFolder) -> OpenSession:
    session = OpenSession(logs.open("s"))
    session.append(said(user("一"), says("two"), user("three")))
    return session


def test_the_state_is_as_new_as_the_log_whoever_wrote(logs: LogFolder) -> None:
    session = opened(logs)
    other = OpenSession(LogFolder(logs.open("s").file.path.parent).open("s"))
    before = session.state()
    assert session.state() is before, "nothing is folded twice"
    other.append(said(says("four")))
    assert [each.seq for each in session.state().messages] == [2, 3, 4, 5]
    assert session.state().messages[0] is before.messages[0]


def test_a_view_is_made_once_for_a_log(logs: LogFolder) -> None:
    session = opened(logs)
    view = session.view(SHAPE)
    assert session.view(SHAPE) is view and session.last_view(SHAPE, session.state()) is view
    other = ViewShape(window_tokens=4_000)
    assert session.view(other) is not view
    session.append(said(says("four")))
    assert len(session.view(SHAPE).messages) == 4


def test_the_gauge_goes_with_the_view_whatever_comes(logs: LogFolder) -> None:
    session = opened(logs)
    steps: list[list[Body]] = [
        said(says("四")), said(user("x"), says("y")), [PinRecord(pin_id="p", text="钉住")], said(user("z")),
        [compaction(None, 9, 4)], said(says("more")), [Undo(compaction=10)], said({"role": "system", "content": "sys"}),
    ]  # fmt: skip
    for step in steps:
        session.append(step)
        state = session.state()
        view_sizes = session.view_sizes(SHAPE, state)
        fresh = OpenSession(session.log).view(SHAPE)
        assert view_sizes == fresh.view_sizes
        assert fresh.repairs or view_sizes.tokens == sum(map(message_tokens, fresh.messages))


def test_a_commit_counts_only_on_the_head_it_was_planned_on(logs: LogFolder) -> None:
    session = opened(logs)
    planned_on = session.state()
    seq = session.commit(compaction(None, 4, 4), planned_on)
    assert session.state().head.seq == seq
    with pytest.raises(Conflict, match="compacted or undone meanwhile"):
        session.commit(compaction(None, 4, 3), planned_on)
    assert session.state().last_seq == seq
    assert session.commit(compaction(seq, 4, 4), session.state()) == seq + 1


def test_what_was_said_between_plan_and_commit_stays(logs: LogFolder) -> None:
    session = opened(logs)
    planned_on = session.state()
    session.append(said(says("四"), user("five")))
    session.commit(compaction(None, planned_on.last_seq, 4), planned_on)
    assert session.view(SHAPE).seqs == (4, 5, 6)


def test_a_trim_and_its_end_are_seen(logs: LogFolder) -> None:
    session = opened(logs)
    session.view(SHAPE)
    other = LogFolder(logs._folder).open("s")
    trim(other, 1)
    assert words(session) == ["three"]
    other.restore_trim()
    assert words(session) == ["一", "two", "three"]
    other.append(said(says("four")))
    assert words(session) == ["一", "two", "three", "four"]


@pytest.mark.parametrize("count", [1, 3, 7])
def test_a_session_begun_anew_elsewhere_is_read_as_the_new_one_alone(logs: LogFolder, count: int) -> None:
    session = opened(logs)
    session.append(said(image("看这张图", payload=PICTURE)))
    session.view(SHAPE)
    elsewhere = LogFolder(logs._folder)
    for round in range(20):
        elsewhere.delete("s")
        new = [f"新 {round} {at}" for at in range(count)]
        begin(elsewhere, "s").append(said(*map(user, new)))
        assert words(session) == new
        assert all(str(each["content"]).startswith("新") for each in session.view(SHAPE).messages)


def test_nothing_made_from_a_session_goes_into_another_log(logs: LogFolder) -> None:
    session = opened(logs)
    path = logs._folder / "s.jsonl"
    writes: list[Callable[[SessionState], object]] = [
        lambda on: session.commit(compaction(None, 4, 4), on),
        lambda on: session.note([FlushRecord(from_seq=1, to_seq=4)], on),
        lambda on: session.hold(on).__enter__(),
    ]
    for write in writes:
        for others in ("deleted", "begun anew", "trimmed"):
            if not path.exists():
                begin(logs, "s")
                opened(logs)
            on = session.state()
            elsewhere = LogFolder(logs._folder)
            if others == "trimmed":
                trim(elsewhere.open("s"), 1)
            else:
                elsewhere.delete("s")
            if others == "begun anew":
                begin(elsewhere, "s").append(said(user("一"), says("two"), user("three")))
            before = path.read_bytes() if path.exists() else None
            with pytest.raises(Conflict, match="meanwhile"):
                write(on)
            assert (path.read_bytes() if path.exists() else None) == before, others
    with pytest.raises(Conflict, match="deleted meanwhile"):
        session.note([FlushRecord(from_seq=1, to_seq=4)], SessionState())


def test_a_log_without_an_identity_is_told_from_another_by_its_file(logs: LogFolder) -> None:
    """Logs of an earlier version have none: the time and the number of the file stand for it."""
    session = opened(logs)
    path = logs._folder / "s.jsonl"
    old = re.sub(rb',"log_id":"[0-9a-f]{16}"', b"", path.read_bytes())
    path.write_bytes(old)
    assert words(session) == ["一", "two", "three"]
    # Another file with the same beginning, the same end and the same size.
    other = path.with_name("other")
    other.write_bytes(old.replace(b'"two"', b'"TWO"'))
    other.replace(path)
    assert words(session) == ["一", "TWO", "three"]


def words(session: OpenSession) -> list[object]:
    return [each.message["content"] for each in session.state().messages]


def test_media_come_back_for_the_view_and_are_labels_once_they_are_gone(logs: LogFolder, tmp_path: Path) -> None:
    session = opened(logs)
    session.append(said(image("看这张图", payload=PICTURE), says("ok")))
    view = json.dumps(session.view(SHAPE).messages, ensure_ascii=False)
    assert PICTURE in view and PICTURE not in json.dumps([each.message for each in session.state().messages])
    blobs = [file for file in (tmp_path / "sessions").rglob("*") if file.is_file() and file.stat().st_size > 10_000]
    for blob in blobs:
        blob.unlink()
    again = json.dumps(OpenSession(logs.open("s")).view(SHAPE).messages, ensure_ascii=False)
    assert blobs and PICTURE not in again and "看这张图" in again and "log:5" in again
