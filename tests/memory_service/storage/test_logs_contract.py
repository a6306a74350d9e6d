"""What every storage engine of session logs keeps: the files, a PostgreSQL database, and the double in memory."""

from __future__ import annotations

import base64
import datetime as dt
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from memory_service.compaction.record import Compaction, PinRecord
from memory_service.errors import Conflict, InvalidName, InvalidRequest, NotFound, StorageFailed
from memory_service.messages.sizes import Usage
from memory_service.runtime.log_changes import begin_log, erase_messages, fork_log, has_messages, kept_by_trim
from memory_service.sessions.codec import MAX_NESTING
from memory_service.sessions.records import (
    Appended,
    Body,
    ErasedRecord,
    FlushRecord,
    Learned,
    MessageRecord,
    Pending,
    Record,
    SessionHeader,
    TrimRecord,
    Undo,
    Unknown,
    Unpin,
)
from memory_service.storage.files.log_folder import LogFolder
from memory_service.storage.logs import LogChange, LogStatus, LogStore, SessionLog
from memory_service.storage.postgres.postgres_logs import PostgresLogs
from tests.disk import Call, recorded
from tests.memory_service.storage.log_steps import begin, bodies, header, said, seqs, texts, trim
from tests.memory_service.storage.memory_logs import MemoryLogs
from tests.memory_service.storage.postgres_workspaces import PostgresWorkspaces
from tests.memory_service.storage.postgres_workspaces import postgres_workspaces as postgres_workspaces

S = "support-42"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


@dataclass(frozen=True)
class Engine:
    """An engine under test.

    Attributes:
        logs: A store in it.
        again: Gives the same store as another process sees it.
        failing: While the block runs, the storage takes nothing.
    """

    logs: LogStore
    again: Callable[[], LogStore]
    failing: Callable[[], AbstractContextManager[None]]

    def log(self) -> SessionLog:
        """The log of a session that is not there yet."""
        return self.logs.open(S, must_exist=False)


@pytest.fixture(params=["files", "memory", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    if request.param == "postgres":
        workspaces: PostgresWorkspaces = request.getfixturevalue("postgres_workspaces")
        name, other = workspaces.name(), workspaces.database()
        return Engine(PostgresLogs(workspaces.database(), name), lambda: PostgresLogs(other, name), workspaces.cutting)
    if request.param == "files":
        folder = tmp_path / "sessions"
        return Engine(LogFolder(folder), lambda: LogFolder(folder), lambda: _full_disk(folder))
    logs = MemoryLogs()
    return Engine(logs, lambda: logs, lambda: _full_memory(logs))


@contextmanager
def _full_disk(folder: Path) -> Iterator[None]:
    def refuses(call: Call) -> None:
        if call.name == "write" or (call.name == "unlink" and (folder / call.path).stat().st_size):
            raise OSError(28, "No space left on device")

    with recorded(folder, refuses):
        yield


@contextmanager
def _full_memory(logs: MemoryLogs) -> Iterator[None]:
    def refuses() -> None:
        raise StorageFailed("The storage is full.")

    logs.before_write = refuses
    yield
    logs.before_write = lambda: None


def picture(content: bytes = PNG) -> MessageRecord:
    """A message with a medium."""
    url = "data:image/png;base64," + base64.b64encode(content).decode()
    return MessageRecord(
        text=json.dumps({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]})
    )


def edition(log: SessionLog) -> int:
    """The edition of a log as it is now."""
    return log.follow().edition


def stored(logs: LogStore) -> dict[str, tuple[LogStatus, list[Record]]]:
    """All that a store has."""
    return {
        row.session_id: (logs.open(row.session_id).status(), [*logs.open(row.session_id).read()]) for row in logs.list()
    }


BODIES: list[Body] = [
    SessionHeader(session_id=S, model="gpt-4o", context_window=128_000, settings={"preset": "a", "n": [1]}),
    MessageRecord(text='{"role":"user","content":"Hello"}'),
    MessageRecord(text='{"role":"assistant","content":"Hi"}', usage=Usage(input_tokens=9, output_tokens=2, model="m")),
    Usage(input_tokens=10, output_tokens=3, cache_read_tokens=4, cache_write_tokens=5),
    Compaction(
        base=None,
        upto=3,
        tail_start=3,
        summary=('Said hello. ,"message":{} \ud800', (1, 4), "你好"),
        stage="summary",
        tokens_before=900,
        tokens_after=90,
        cleared={2: "[cleared, ref=log:2]"},
        model="gpt-4o-mini",
        prompt_version="1",
        audit={"missing": [], "ratio": 0.1},
        reason="threshold",
    ),
    Undo(compaction=5, reason="asked for"),
    PinRecord(pin_id="p1", text="Never deploy on Fridays.\n"),
    PinRecord(pin_id="p2", target=2),
    Unpin(pin_id="p1"),
    FlushRecord(from_seq=1, to_seq=3, written=2, reason="before compaction"),
    Pending(call_ids=("call_1",)),
    Learned(context_window=32_768, model="gpt-4o", reason="overflow"),
]


def test_every_kind_of_record_comes_back_as_it_was(engine: Engine) -> None:
    log = engine.log()
    assert log.append(BODIES) == Appended(first_seq=1, last_seq=len(BODIES))
    for same in (log, engine.again().open(S)):
        assert bodies(same) == BODIES
        assert [r.seq for r in same.read(since_seq=9)] == [10, 11, 12]
        assert [r.kind for r in same.read()][:5] == ["session", "message", "message", "usage", "compaction"]
        assert header(same) == BODIES[0]
        assert same.status().repairs == ()
        assert same.status().size_bytes == len(b"".join(same.tail(10**6)[:1]))
    assert all(record.ts.endswith("Z") for record in log.read())


def test_a_log_begins_with_a_header_of_its_own(engine: Engine) -> None:
    log = engine.log()
    assert log.append([said("a")], expected_last_seq=0) == Appended(first_seq=2, last_seq=2)
    assert header(log) == SessionHeader(session_id=S)
    assert seqs(log) == [1, 2]


def test_a_log_that_is_opened_again_is_the_same_object(engine: Engine) -> None:
    log = engine.log()
    log.append([said("a")])
    assert engine.logs.open(S) is log


def test_records_have_the_moment_that_is_given(engine: Engine) -> None:
    log = engine.logs.open(S, must_exist=False)
    at = dt.datetime(2026, 11, 17, 7, 41, 10, 123_000, dt.timezone(dt.timedelta(hours=1)))
    log.append([MessageRecord(text='{"role":"user","content":"Hello"}')], at=at)
    assert [record.ts for record in log.read()] == ["2026-11-17T06:41:10.123Z"] * 2, "its header has it too"
    log.append([MessageRecord(text='{"role":"user","content":"Now"}')])
    assert [*log.read()][-1].ts != "2026-11-17T06:41:10.123Z"


def test_the_last_header_counts(engine: Engine) -> None:
    log = engine.log()
    log.append([said("a"), SessionHeader(session_id=S, model="other")])
    assert header(log) == SessionHeader(session_id=S, model="other")


@pytest.mark.parametrize("seq", [0, 1, 3, -1])
def test_only_messages_are_messages(engine: Engine, seq: int) -> None:
    log = engine.log()
    log.append([said("a")])
    assert log.message(2) == '{"role":"user","content":"a"}'
    with pytest.raises(NotFound):
        log.message(seq)


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '"text"', '{"a":NaN}', '{"a":1}x', "{" * 9999, "\ufeff{}"])
def test_what_is_no_json_object_is_refused(engine: Engine, text: str) -> None:
    log = engine.log()
    with pytest.raises(InvalidRequest):
        log.append([MessageRecord(text=text)])
    assert engine.logs.list() == [] and not engine.logs.has_remains(S)


def test_depth_has_a_limit(engine: Engine) -> None:
    log = engine.log()
    deep = '{"a":' * (MAX_NESTING - 1) + "{}" + "}" * (MAX_NESTING - 1)
    log.append([MessageRecord(text=deep)])
    assert log.message(2) == deep
    with pytest.raises(InvalidRequest, match="nested"):
        log.append([MessageRecord(text=f'{{"a":{deep}}}')])


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2, "b" : 1e400}',
        ' {"a":"\\u0000\\ud800\\/"}\t',
        '{\n  "a": 1,\r\n  "b": "\\n"\n}',
        '{"a":"half \ud83d of a pair","b":"\u2028\u0085\x7f"}',
        '{"a":' + "9" * 5000 + "}",
        '{"message":{"text":"\\",\\"message\\":"},"text":"x","media":[{"at":0}],"seq":7}',
    ],
)
def test_odd_json_comes_back_to_the_byte(engine: Engine, text: str) -> None:
    log = engine.log()
    log.append([MessageRecord(text=text, usage=Usage(input_tokens=1, model=',"message":'))])
    again = engine.again().open(S)
    assert log.message(2) == again.message(2) == again.message(2, media=False) == text
    assert log.tail(10**6)[0].count(b"\n") == 2


def test_an_append_on_an_older_state_changes_nothing(engine: Engine) -> None:
    log = engine.log()
    log.append([said("a")])
    before = log.tail(10**6)
    for wrong in (0, 1, 3):
        with pytest.raises(Conflict, match="ends with record 2"):
            log.append([said("b")], expected_last_seq=wrong)
    assert log.tail(10**6) == before
    assert log.append([said("b")], expected_last_seq=2).last_seq == 3


def test_a_conflict_makes_no_log(engine: Engine) -> None:
    log = engine.log()
    with pytest.raises(Conflict):
        log.append([said("a")], expected_last_seq=4)
    assert engine.logs.list() == [] and not engine.logs.has_remains(S)


def test_an_empty_batch_is_refused(engine: Engine) -> None:
    log = engine.log()
    with pytest.raises(InvalidRequest, match="nothing to append"):
        log.append([])


def test_two_objects_see_what_the_other_appends(engine: Engine) -> None:
    log = engine.log()
    other = engine.again().open(S, must_exist=False)
    for number in range(6):
        (log, other)[number % 2].append([said(str(number))])
        assert log.status().last_seq == other.status().last_seq == number + 2
    assert texts(log) == texts(other) == list("012345")


def test_threads_lose_nothing_and_mix_nothing(engine: Engine) -> None:
    log = engine.log()
    logs = [log, log, *(engine.again().open(S, must_exist=False) for _ in range(2))]

    def write(number: int) -> list[tuple[int, int]]:
        answers = (logs[number].append([said(f"{number}.{i}.{k}") for k in range(3)]) for i in range(20))
        return [(a.first_seq, a.last_seq) for a in answers]

    with ThreadPoolExecutor(4) as pool:
        answers = [answer for part in pool.map(write, range(4)) for answer in part]
    assert all(last - first == 2 for first, last in answers)
    found = texts(engine.again().open(S))
    assert len(found) == len(set(found)) == 240
    assert all(found[at].rpartition(".")[0] == found[at + 2].rpartition(".")[0] for at in range(0, 240, 3))
    assert seqs(log) == list(range(1, 242))


def test_of_those_who_compare_one_wins(engine: Engine) -> None:
    log = engine.log()
    log.append([said("a")])
    logs = [engine.again().open(S) for _ in range(6)]

    def swap(number: int) -> bool:
        try:
            logs[number].append([said(str(number))], expected_last_seq=2)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(swap, range(6))) == 1
    assert log.status().last_seq == 3


def test_an_iterator_keeps_to_what_was_there(engine: Engine) -> None:
    log = engine.log()
    log.append([said("a"), said("b")])
    records = log.read()
    assert next(records).seq == 1
    log.append([said("c")])
    trim(log, 0)
    assert [record.seq for record in records] == [2, 3]
    del records


def test_a_trim_is_taken_back_with_what_came_later(engine: Engine) -> None:
    log = engine.log()
    log.append([said("a"), said("b")])
    before, _ = log.tail(10**6)
    trim(log, 0)
    log.append([said("c")])
    trim(log, 1)
    log.append([said("d")])
    assert texts(log) == ["d"] or texts(log) == ["c", "d"]
    log.restore_trim()
    assert texts(log)[-2:] == ["c", "d"]
    log.restore_trim()
    assert texts(log) == texts(engine.again().open(S)) == ["a", "b", "c", "d"]
    assert log.tail(10**6)[0].startswith(before)
    assert seqs(log) == list(range(1, log.status().last_seq + 1))
    with pytest.raises(NotFound, match="no trim"):
        log.restore_trim()
    trim(log, 1)
    assert log.status().repairs == ()


def test_trims_that_cannot_be(engine: Engine) -> None:
    log = engine.log()
    with pytest.raises(NotFound):
        trim(log, 1)
    with pytest.raises(NotFound):
        log.restore_trim()
    with pytest.raises(InvalidRequest):
        trim(log, -1)


# Reading on, and what makes a log another one.


def test_a_reader_follows_what_is_added_and_begins_again_where_the_log_is_another_one(engine: Engine) -> None:
    log = engine.log()
    assert log.follow() == log.follow(0, 7)
    assert (log.follow().edition, log.follow().records) == (0, ())
    log.append([said("a"), picture()])
    first = log.follow()
    assert [record.seq for record in first.records] == [1, 2, 3] and not first.is_same and first.edition
    assert "ref=log:3#1" in str(first.records[2].body)
    engine.again().open(S).append([said("b")])
    added = log.follow(first.edition, 3)
    assert (added.edition, added.is_same, [record.seq for record in added.records]) == (first.edition, True, [4])
    other = log.follow(first.edition + 99, 3)
    assert (other.is_same, [record.seq for record in other.records]) == (False, [1, 2, 3, 4])


def _begin_anew(logs: LogStore) -> None:
    logs.delete(S)
    begin(logs, S).append([said("a"), said("b")])


CHANGES: Mapping[str, Callable[[LogStore], object]] = {
    "deleted": lambda logs: logs.delete(S),
    "begun anew": lambda logs: _begin_anew(logs),
    "trimmed": lambda logs: trim(logs.open(S), 1),
    "restored": lambda logs: logs.open(S).restore_trim(),
    "erased": lambda logs: erase_messages(logs, S, [2]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_was_made_from_a_log_goes_into_no_other(engine: Engine, name: str) -> None:
    log = engine.log()
    log.append([said("a"), said("b")])
    if name == "restored":
        trim(log, 1)
    before = edition(log)
    engine.again().open(S).append([said("c")])
    assert edition(log) == before
    CHANGES[name](engine.again())
    now = stored(engine.again())
    assert edition(log) != before
    writes: list[Callable[[], object]] = [
        lambda: log.append([said("d")], edition=before),
        lambda: log.append([said("d")], edition=before, expected_last_seq=log.status().last_seq),
        lambda: log.trim([1], TrimRecord(backup="", lines=0), expected_last_seq=log.status().last_seq, edition=before),
        lambda: log.hold(before).__enter__(),
    ]
    for write in writes:
        with pytest.raises(Conflict):
            write()
    assert stored(engine.again()) == now


def test_nobody_writes_to_a_log_that_is_held(engine: Engine) -> None:
    log = engine.log()
    log.append([said("a")])
    order = list[str]()
    begun = threading.Event()

    def write(act: Callable[[SessionLog], object]) -> None:
        begun.set()
        act(engine.again().open(S))
        order.append("write")

    acts: list[Callable[[SessionLog], object]] = [lambda it: it.append([said("b")]), lambda it: trim(it, 1)]
    for act in acts:
        begun.clear()
        with log.hold(edition(log)):
            thread = threading.Thread(target=write, args=(act,))
            thread.start()
            assert begun.wait(60)
            thread.join(0.1)
            order.append("held")
        thread.join(60)
    assert order == ["held", "write"] * 2


# Trims.


def test_a_trim_keeps_the_records_that_it_is_given(engine: Engine) -> None:
    log = engine.log()
    log.append([said("a"), PinRecord(pin_id="p", text="x"), Usage(input_tokens=1), said("b"), said("c")])
    assert log.outline() == [(1, "session"), (2, "message"), (3, "pin"), (4, "usage"), (5, "message"), (6, "message")]
    assert kept_by_trim(log, 1, also=[2]) == {1, 2, 3, 6}
    record = TrimRecord(backup="", lines=0, head=7)
    with pytest.raises(Conflict):
        log.trim([1, 3, 6], record, expected_last_seq=5, edition=edition(log))
    name = log.trim([1, 3, 6], record, expected_last_seq=6, edition=edition(log))
    assert seqs(log) == seqs(engine.again().open(S)) == [1, 3, 6, 7]
    assert name and bodies(log)[-1] == TrimRecord(backup=name, lines=3, head=7)
    assert log.message(6) == said("c").text
    with pytest.raises(NotFound):
        log.message(2)
    assert log.outline() == [(1, "session"), (3, "pin"), (6, "message"), (7, "trimmed")]
    assert [seq for seq, _ in log.outline(trimmed=True)] == [1, 2, 3, 4, 5, 6, 7]
    assert log.append([said("d")]).last_seq == 8


# Media.


def test_media_come_back_and_the_same_content_is_there_once(engine: Engine) -> None:
    log, other = engine.log(), begin(engine.logs, "b")
    log.append([picture(), picture()])
    other.append([picture()])
    for same in (log, engine.again().open(S)):
        assert same.message(2) == picture().text and same.content(3, 1) == PNG
        short = same.message(2, media=False)
        assert f"[image/png, {len(PNG)} bytes, ref=log:2#1]" in short and len(short) < 200
        *_, record = same.read()
        assert isinstance(record.body, MessageRecord)
        assert record.body.text == picture().text
        assert [(medium.mime, medium.handle) for medium in record.body.media] == [("image/png", "log:3#1")]
        *_, record = same.read(media=False)
        assert isinstance(record.body, MessageRecord)
        assert record.body.text == short.replace("log:2", "log:3")
    for number in (0, 2, -1):
        with pytest.raises(NotFound):
            log.content(2, number)
    with pytest.raises(NotFound):
        log.content(1, 1)
    engine.logs.delete(S)
    assert other.message(2) == picture().text


def test_what_was_trimmed_has_its_media_when_it_comes_back(engine: Engine) -> None:
    log = engine.log()
    log.append([picture(), said("b")])
    trim(log, 1)
    begin(engine.logs, "b").append([picture()])
    engine.logs.delete("b")
    log.restore_trim()
    assert log.message(2) == picture().text


# The store.


def test_sessions_are_begun_listed_and_deleted(engine: Engine) -> None:
    logs = engine.logs
    assert logs.list() == [] and not logs.has_remains("A")
    given_header = SessionHeader(session_id="b.1", model="m", context_window=9, settings={"a": [1]}, title="三")
    made = begin_log(logs, given_header)
    begin(logs, "A").append([said("one")])
    assert header(made) == given_header
    with pytest.raises(Conflict, match="already"):
        begin(logs, "A")
    made.append([said("later")])
    rows = {row.session_id: row for row in engine.again().list()}
    assert {name: (row.last_seq, row.title) for name, row in rows.items()} == {"A": (2, ""), "b.1": (2, "三")}
    assert rows["A"].size_bytes == logs.open("A").status().size_bytes
    assert rows["b.1"].last_activity.isoformat(timespec="milliseconds")[:23] == [*made.read()][-1].ts[:23]
    logs.delete("A")
    assert [row.session_id for row in engine.again().list()] == ["b.1"] and not logs.has_remains("A")
    for act in NAMING:
        with pytest.raises(NotFound, match="no session A"):
            act(logs, "A")


NAMING: list[Callable[[LogStore, str], object]] = [
    lambda logs, session_id: logs.open(session_id),
    lambda logs, session_id: logs.delete(session_id),
    lambda logs, session_id: logs.rewrite(session_id, lambda _: {}, first=lambda: None),
]


@pytest.mark.parametrize("session_id", ["", "..", "../a", "a/b", ".a", "a\0", "a\n", "a b", "ä", "x" * 129])
def test_ids_that_are_none_are_refused(engine: Engine, session_id: str) -> None:
    for act in (*NAMING, begin):
        with pytest.raises(InvalidName):
            act(engine.logs, session_id)
    assert engine.logs.list() == []


def test_a_branch_has_what_stood_before_a_record(engine: Engine) -> None:
    log = engine.log()
    log.append([SessionHeader(session_id=S, model="m"), said("a"), picture(), said("b")])
    fork_log(engine.logs, S, "branch", before_seq=4)
    branch = engine.again().open("branch")
    assert header(branch) == SessionHeader(session_id="branch", model="m")
    assert [*branch.read()][1:] == [*log.read()][1:3]
    assert branch.append([said("c")]) == Appended(first_seq=4, last_seq=4)
    engine.logs.delete(S)
    assert branch.message(3) == picture().text
    with pytest.raises(NotFound):
        fork_log(engine.logs, S, "other", before_seq=4)
    begin(engine.logs, S)
    before = stored(engine.logs)
    with pytest.raises(Conflict):
        fork_log(engine.logs, S, "branch", before_seq=2)
    assert stored(engine.logs) == before


def test_a_log_is_copied_with_its_numbers_times_media_and_trims(engine: Engine) -> None:
    begin(engine.logs, S).append([said("a"), picture(), said("c"), PinRecord(pin_id="p", text="x")])
    trim(engine.logs.open(S), 1)
    engine.logs.open(S).append([picture(PNG[::-1]), said("d")])
    trim(engine.logs.open(S), 1)
    engine.logs.open(S).append([said("e")])
    engine.logs.open(S).restore_trim()
    trim(engine.logs.open(S), 2)
    records, aside = [*engine.logs.open(S).read()], [*engine.logs.open(S).trims()]
    assert [seqs.trim_seq for seqs in aside] == [11, 6], "the trim that was taken back is none of them"
    for name in ("copy", "copy-of-the-copy"):
        engine.logs.begin(name, records, aside)
        copy = engine.again().open(name)
        assert _comparable(copy.read()) == _comparable(records)
        assert [(seq, _comparable(gone)) for seq, gone in copy.trims()] == [
            (seq, _comparable(gone)) for seq, gone in aside
        ]
        assert copy.outline(trimmed=True) == engine.logs.open(S).outline(trimmed=True)
        records, aside = [*copy.read()], [*copy.trims()]
    for _ in range(2):
        for session in (S, "copy"):
            engine.logs.open(session).restore_trim()
        assert _comparable(engine.logs.open("copy").read()) == _comparable(engine.logs.open(S).read())
    with pytest.raises(NotFound):
        engine.logs.open("copy").restore_trim()


def _comparable(records: Iterable[Record]) -> list[Record]:
    """Records without the names of what an engine has put aside."""
    return [
        replace(record, body=replace(record.body, backup="")) if isinstance(record.body, TrimRecord) else record
        for record in records
    ]


def test_a_copy_has_the_records_of_a_newer_version(engine: Engine) -> None:
    known = [*begin(engine.logs, S).read()]
    text = '{"seq":2,"ts":"2026-11-20T14:32:00.123Z","kind":"mood","deep":{"a":["\\ud83d",1]}}'
    newer = Record(seq=2, ts="2026-11-20T14:32:00.123Z", kind="mood", body=Unknown(kind="mood", text=text))
    engine.logs.begin("copy", [*known, newer])
    assert [*engine.again().open("copy").read()] == [*known, newer]


def test_a_copy_of_half_a_batch_loses_nothing(engine: Engine) -> None:
    log = begin(engine.logs, S)
    log.append([said("a"), said("b"), said("c")])
    log.append([said("d")])
    first, second, *_ = records = [*log.read()]
    assert second.batch_length in (0, 3), "an engine marks a batch at its first record, or does not"
    engine.logs.begin("whole", records)
    engine.logs.begin("half", [first, replace(second, batch_length=3), records[2]])
    whole, half = ([*engine.again().open(name).read()] for name in ("whole", "half"))
    assert (whole, [record.batch_length for record in whole]) == (records, [record.batch_length for record in records])
    assert (half, [record.batch_length for record in half][1:]) == (records[:3], [0, 0])
    assert engine.again().open("half").append([said("e")]).first_seq == 4


def test_a_copy_is_there_as_a_whole_or_not_at_all(engine: Engine) -> None:
    begin(engine.logs, S).append([said("a"), picture()])
    trim(engine.logs.open(S), 1)
    records, aside = [*engine.logs.open(S).read()], [*engine.logs.open(S).trims()]
    with engine.failing(), pytest.raises(StorageFailed):
        engine.logs.begin("copy", records, aside)
    assert not engine.logs.has_remains("copy")
    with pytest.raises(InvalidRequest, match="none of a trim"):
        engine.logs.begin("copy", records[:1], aside)
    assert not engine.logs.has_remains("copy")


def test_sessions_are_found_by_what_their_log_contains(engine: Engine) -> None:
    for name, text in (("a", "quokka"), ("b", "wombat"), ("c", "quokka 周二")):
        begin(engine.logs, name).append([said(text)])
    assert sorted(engine.logs.containing(b"quokka")) == ["a", "c"]
    assert [*engine.again().containing("周二".encode())] == ["c"]
    assert [*engine.logs.containing(b"numbat")] == []


def test_the_end_of_a_log_is_lines_of_json(engine: Engine) -> None:
    log = engine.log()
    assert log.tail(99) == log.tail() == (b"", True)
    log.append([said(str(n)) for n in range(9)])
    raw, is_whole = log.tail()
    assert log.tail(10**6) == (raw, is_whole)
    assert is_whole and [json.loads(line)["seq"] for line in raw.splitlines()] == list(range(1, 11))
    end, is_whole = log.tail(len(raw) // 2)
    assert not is_whole and raw.endswith(end) and json.loads(end.splitlines()[0])["seq"] > 1
    assert log.foreign() is None


def test_each_change_of_a_log_shows_without_a_look_into_it(engine: Engine) -> None:
    log = engine.log()
    assert log.last_change() is None
    seen = list[LogChange]()
    acts: list[Callable[[SessionLog], object]] = [
        lambda it: it.append([said("a"), said("b")]),
        lambda it: it.append([said("c")]),
        lambda it: trim(it, 1),
        lambda it: it.append([said("d")]),
    ]
    for act in acts:
        act(engine.again().open(S, must_exist=False))
        change = log.last_change()
        assert change is not None and change not in seen and log.last_change() == change
        seen.append(change)
    assert [change.at_ns for change in seen] == sorted(change.at_ns for change in seen)
    engine.logs.delete(S)
    assert log.last_change() is None


def test_a_delete_erases_first_what_was_made_of_the_log(engine: Engine) -> None:
    engine.log().append([said("a")])
    seen = list[list[str]]()
    engine.logs.delete(S, first=lambda: seen.append([row.session_id for row in engine.again().list()]))
    assert seen == [[S]]
    engine.log().append([said("a")])
    with pytest.raises(StorageFailed):
        engine.logs.delete(S, first=_fails)
    assert texts(engine.again().open(S)) == ["a"]


def _fails() -> None:
    raise StorageFailed("What was made of it cannot be erased.")


# Erasure.


def test_records_get_other_bodies_and_nothing_else_of_them_changes(engine: Engine) -> None:
    log = engine.log()
    log.append([said("secret"), said("b"), picture(), said("c")])
    before = [*log.read()]
    seen = list[Record]()

    def change(records: Iterable[Record]) -> Mapping[int, Body]:
        seen.extend(records)
        return {2: ErasedRecord(was="message"), 4: ErasedRecord(was="message")}

    engine.logs.rewrite(S, change, first=lambda: None)
    assert [(record.seq, record.kind) for record in seen] == [(record.seq, record.kind) for record in before]
    after = [*engine.again().open(S).read()]
    assert [(record.seq, record.ts) for record in after] == [(record.seq, record.ts) for record in before]
    assert [record.body for record in after if record.kind == "erased"] == [ErasedRecord(was="message")] * 2
    assert (after[0], after[2], after[4]) == (before[0], before[2], before[4])
    assert [*engine.logs.containing(b"secret")] == []
    assert log.append([said("d")]).last_seq == 6


def test_a_rewrite_that_is_refused_changes_nothing(engine: Engine) -> None:
    engine.log().append([said("a")])
    before, called = stored(engine.logs), list[str]()

    def refused(_: Iterable[Record]) -> Mapping[int, Body]:
        raise NotFound("There is no such message.")

    with pytest.raises(NotFound):
        engine.logs.rewrite(S, refused, first=lambda: called.append("first"))
    with pytest.raises(StorageFailed):
        engine.logs.rewrite(S, lambda _: {2: ErasedRecord(was="message")}, first=_fails)
    assert stored(engine.again()) == before and not called


def test_messages_are_erased_with_what_was_made_of_them(engine: Engine) -> None:
    log = engine.log()
    made = Compaction(
        base=None, upto=4, tail_start=4, summary=("secret",), stage="summary", tokens_before=9, tokens_after=1
    )
    log.append([said("secret"), said("b"), said("c"), PinRecord(pin_id="p", target=2), made, said("d")])
    trim(log, 1)
    assert has_messages(log, [2]) and not has_messages(log, [9])
    with pytest.raises(NotFound, match="no message 9"):
        erase_messages(engine.logs, S, [9])
    assert log.outline()[-1][1] == "trimmed", "nothing was taken back for a message that is not there"
    erased = erase_messages(engine.logs, S, [2])
    assert (erased.messages, erased.compactions) == ((2,), (6,))
    assert texts(log) == ["b", "c", "d"]
    assert [body.was for body in bodies(log) if isinstance(body, ErasedRecord)] == ["message", "pin", "compaction"]
    assert [*engine.logs.containing(b"secret")] == [] and not has_messages(log, [2])
    with pytest.raises(NotFound):
        log.restore_trim()


# A storage that takes nothing.

PRIMITIVES: Mapping[str, Callable[[LogStore], object]] = {
    "append": lambda logs: logs.open(S).append([said("b"), picture(b"another" * 99)]),
    "begin": lambda logs: begin(logs, "new"),
    "fork": lambda logs: fork_log(logs, S, "branch", before_seq=3),
    "trim": lambda logs: trim(logs.open(S), 1),
    "restore": lambda logs: logs.open("trimmed").restore_trim(),
    "rewrite": lambda logs: logs.rewrite(S, lambda _: {2: ErasedRecord(was="message")}, first=lambda: None),
    "delete": lambda logs: logs.delete(S),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_storage_that_fails_leaves_a_log_as_it_was(engine: Engine, name: str) -> None:
    engine.log().append([said("a"), picture()])
    begin(engine.logs, "trimmed").append([said("a"), said("b")])
    trim(engine.logs.open("trimmed"), 1)
    before = stored(engine.again())
    with engine.failing(), pytest.raises(StorageFailed):
        PRIMITIVES[name](engine.logs)
    assert stored(engine.logs) == stored(engine.again()) == before
    PRIMITIVES[name](engine.logs)
    assert stored(engine.logs) == stored(engine.again()) != before
