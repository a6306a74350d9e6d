from __future__ import annotations

import base64
import datetime as dt
import json
import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.compaction.record import PinRecord
from memory_service.errors import InvalidName, InvalidRequest, NotFound, StorageFailed
from memory_service.messages.shapes import Json
from memory_service.messages.sizes import Usage
from memory_service.runtime.session import OpenSession
from memory_service.sessions.records import (
    FlushRecord,
    MessageRecord,
    SessionHeader,
    TrimRecord,
    Unknown,
    Unpin,
)
from memory_service.storage.files.jsonl_log import JsonlLog
from memory_service.storage.files.log_folder import LogFolder
from memory_service.storage.logs import LogStatus
from tests.growth import at_most_readings
from tests.memory_service.storage.log_steps import begin, bodies, header, kinds, said, seqs, texts, trim

ROOT = Path(__file__).parents[4]
IN_CHILD = """
import os, sys, json
from pathlib import Path
from memory_service.errors import *
from memory_service.storage.files.jsonl_log import JsonlLog
from memory_service.sessions.records import *
path = Path(sys.argv[1])
log = JsonlLog(path)
def say(text): os.write(1, (text + "\\n").encode())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "support-42.jsonl"


@pytest.fixture
def log(path: Path) -> JsonlLog:
    return JsonlLog(path)


def beside(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir() if file.is_file())


def child(code: str, path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", IN_CHILD + textwrap.dedent(code), str(path), *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return out


# What goes in comes out.


def test_the_log_is_json_lines_that_anybody_can_read(log: JsonlLog, path: Path) -> None:
    log.append([SessionHeader(session_id="support-42"), said("Hello"), Unpin(pin_id="p")])
    lines = [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
    assert [line["seq"] for line in lines] == list(range(1, 4))
    assert lines[1]["message"] == {"role": "user", "content": "Hello"}


def test_what_stands_beside_a_message_is_short(path: Path) -> None:
    moment = dt.datetime(2026, 11, 20, 15, 32, 0, 123_999, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    log = JsonlLog(path, now=lambda: moment)
    log.append([said("你好")])
    log.append([said("b")])
    log.append(
        [
            PinRecord(pin_id="p", text="x"),
            said("c\n"),
            MessageRecord(text='{\n"content":"d"}', usage=Usage(input_tokens=1)),
        ]
    )
    lines = path.read_text("utf-8").split("\n")
    ts = '"ts":"2026-11-20T14:32:00.123Z"'
    assert lines[0].startswith(f'{{"seq":1,"batch":2,{ts},"kind":"session","session_id":"support-42"')
    assert lines[1] == f'{{"seq":2,{ts},"message":{{"role":"user","content":"你好"}}}}'
    assert lines[2] == f'{{"seq":3,{ts},"message":{{"role":"user","content":"b"}}}}'
    assert lines[3] == f'{{"seq":4,"batch":3,{ts},"kind":"pin","pin_id":"p","text":"x","target":null}}'
    assert lines[4] == f'{{"seq":5,{ts},"message":{{"role":"user","content":"c\\n"}}}}'
    assert lines[5].startswith(f'{{"seq":6,{ts},"usage":{{"input_tokens":1}},')
    assert lines[5].endswith(r',"text":"{\n\"content\":\"d\"}"}')
    assert lines[6:] == [""]


def test_a_log_that_is_not_there_is_empty_and_reading_makes_nothing(log: JsonlLog, tmp_path: Path) -> None:
    assert (log.status(), list(log.read())) == (LogStatus(last_seq=0, size_bytes=0), [])
    with pytest.raises(NotFound, match="no message 1"):
        log.message(1)
    assert list(tmp_path.iterdir()) == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=()))
    | st.binary(max_size=90).map(lambda raw: "data:image/png;base64," + base64.b64encode(raw).decode()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.dictionaries(st.text(), JSON, max_size=4), min_size=1, max_size=3), ascii_only=st.booleans())
def test_any_message_comes_back_to_the_byte(values: list[dict[str, Json]], ascii_only: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        given_texts = [json.dumps(value, ensure_ascii=ascii_only, indent=len(value) % 2 or None) for value in values]
        log = JsonlLog(Path(folder, "a.jsonl"))
        log.append([MessageRecord(text=text) for text in given_texts])
        again = JsonlLog(Path(folder, "a.jsonl"))
        assert [again.message(seq) for seq in range(2, len(values) + 2)] == given_texts
        assert [body.text for body in bodies(again) if isinstance(body, MessageRecord)] == given_texts
        assert again.status().repairs == ()


# Order, and compare-and-swap.


def test_processes_lose_nothing_and_compare_and_swap(path: Path) -> None:
    code = """
        done = 0
        while done < 25:
            seen = log.status().last_seq
            try:
                text = json.dumps({"content": f"{sys.argv[2]}.{done}"})
                log.append([MessageRecord(text=text)] * 2, expected_last_seq=seen)
                done += 1
            except Conflict:
                pass
        """
    children = [child(code, path, str(number)) for number in range(2)]
    for process in children:
        finish(process)
    found = texts(JsonlLog(path))
    assert len(found) == 100
    assert all(found.count(f"{number}.{i}") == 2 for number in range(2) for i in range(25))
    assert seqs(JsonlLog(path)) == list(range(1, 102))


def test_a_reader_during_writes_sees_whole_batches_in_order(log: JsonlLog, path: Path) -> None:
    log.append([said("0")])
    process = child(
        """
        for number in range(150):
            log.append([MessageRecord(text='{"content":"%s"}' % ("x" * 3000))] * 4)
        """,
        path,
    )
    reader = JsonlLog(path)
    looks = 0
    while process.poll() is None:
        found = seqs(reader)
        assert found == list(range(1, len(found) + 1))
        assert (len(found) - 2) % 4 == 0
        looks += 1
    finish(process)
    assert looks
    assert (reader.status().last_seq, reader.status().repairs) == (602, ())


# Crashes, power cuts, full disks.


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A log with a torn end in a folder that nobody may write into."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "support-42.jsonl")
        JsonlLog(path).append([said("a")])
        with path.open("ab") as file:
            file.write(b"torn")
        path.chmod(0o444)
        path.parent.chmod(0o555)
        yield path
        path.parent.chmod(0o755)


def test_a_torn_batch_of_any_length_is_cut_and_kept(log: JsonlLog, path: Path) -> None:
    log.append([said("a")])
    whole = path.read_bytes()
    log.append([said("b"), PinRecord(pin_id="p", text="ü"), said("c")])
    full = path.read_bytes()
    for size in range(len(whole), len(full) + 1):
        path.write_bytes(full[:size])
        again = JsonlLog(path)
        is_whole = size == len(full)
        assert texts(again) == (["a", "b", "c"] if is_whole else ["a"])
        again.append([said("d")], expected_last_seq=5 if is_whole else 2)
        assert texts(JsonlLog(path))[-1] == "d"
        assert path.read_bytes().startswith(full if is_whole else whole)
        torn = path.with_name(f"{path.name}.torn")
        assert kinds(again) == ([] if size in (len(whole), len(full)) else ["torn"])
        if again.status().repairs:
            assert torn.read_bytes() == full[len(whole) : size]
            torn.unlink()


@pytest.mark.parametrize(
    "end", [b"\0" * 700, b"\0" * 50 + b"\n", b"garbage\nmore\n", b"\xff\xfe", b"{}", b'{"seq":9\n']
)
def test_rubbish_at_the_end_is_cut_and_kept(log: JsonlLog, path: Path, end: bytes) -> None:
    log.append([said("a")])
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(end)
    again = JsonlLog(path)
    assert texts(again) == ["a"]
    assert path.read_bytes() == whole
    assert path.with_name(f"{path.name}.torn").read_bytes() == end
    assert [repair.kind for repair in again.status().repairs] == ["torn"]
    assert str(len(end)) in again.status().repairs[0].message


@pytest.mark.parametrize("rubbish", [b"\0\0\0", b'"\n"', b'""x'])
def test_rubbish_in_the_last_line_takes_its_batch_and_elsewhere_only_its_line(
    log: JsonlLog, path: Path, rubbish: bytes
) -> None:
    log.append([said("a")])
    log.append([said("b"), said("c"), said("d")])
    raw = path.read_bytes()
    for word, left in ((b'"b"', ["a", "c", "d"]), (b'"c"', ["a", "b", "d"]), (b'"d"', ["a"])):
        path.write_bytes(raw.replace(word, rubbish))
        again = JsonlLog(path)
        assert texts(again) == left
        assert again.append([said("e")]).last_seq == (6 if len(left) > 1 else 3)
        assert texts(JsonlLog(path)) == [*left, "e"]
        assert set(kinds(again)) == ({"damaged"} if len(left) > 1 else {"torn"})


@pytest.mark.parametrize("count", [2, 3, 4, 7, 10**17])
def test_a_damaged_count_hides_nothing_that_was_appended_later(path: Path, count: int) -> None:
    moments = iter(dt.datetime(2026, 11, 20, 12, second, tzinfo=dt.UTC) for second in range(9))
    log = JsonlLog(path, now=lambda: next(moments))
    log.append([said("a"), said("b")])
    log.append([said("c")])
    log.append([said("d")])
    raw = path.read_bytes().replace(b'{"seq":1,"batch":3,', b'{"seq":1,"batch":%d,' % count)
    path.write_bytes(raw)
    again = JsonlLog(path, now=lambda: next(moments))
    assert texts(again) == list("abcd")
    assert again.append([said("e")], expected_last_seq=5).last_seq == 6
    assert path.read_bytes().startswith(raw)


def test_a_batch_begins_where_one_is_told_whatever_an_earlier_count_says(path: Path) -> None:
    log = JsonlLog(path, now=lambda: dt.datetime(2026, 11, 20, tzinfo=dt.UTC))
    log.append([said("a"), said("b")])
    log.append([said("c"), said("d")])
    path.write_bytes(path.read_bytes().replace(b'{"seq":1,"batch":3,', b'{"seq":1,"batch":9,'))
    assert texts(JsonlLog(path)) == list("abcd")


def test_damage_before_a_torn_batch_is_told_too(log: JsonlLog, path: Path) -> None:
    log.append([said("a")])
    log.append([said("b")])
    log.append([said("c"), said("d")])
    path.write_bytes(path.read_bytes().replace(b'"b"', b"\0\0")[:-9])
    again = JsonlLog(path)
    assert texts(again) == ["a"]
    assert kinds(again) == ["damaged", "torn"]


def test_a_record_whose_kind_is_damaged_is_no_message(log: JsonlLog, path: Path) -> None:
    log.append([said("a")])
    log.append([PinRecord(pin_id="p", text='{"role":"user","content":"no message"}')])
    log.append([said("b")])
    path.write_bytes(path.read_bytes().replace(b'"kind":"pin"', b'"kimd":"pin"'))
    again = JsonlLog(path)
    assert texts(again) == ["a", "b"]
    assert kinds(again) == ["damaged"]


def test_batches_of_one_moment_stay_apart(path: Path) -> None:
    log = JsonlLog(path, now=lambda: dt.datetime(2026, 11, 20, tzinfo=dt.UTC))
    log.append([said("a")])
    log.append([said("b"), said("c")])
    log.append([said("d")])
    log.append([said("e"), said("f"), said("g")])
    raw = path.read_bytes()
    end = raw.index(b'{"seq":6,')
    for size in range(end, len(raw)):
        path.write_bytes(raw[:size])
        again = JsonlLog(path)
        assert texts(again) == list("abcd")
        assert path.read_bytes() == raw[:end]


def test_a_batch_that_was_trimmed_is_no_torn_one(log: JsonlLog, path: Path) -> None:
    log.append([PinRecord(pin_id="p", text="keep"), said("a"), said("b")])
    log.append([said("c"), PinRecord(pin_id="q", text="keep"), said("d")])
    trim(log, 0)
    again = JsonlLog(path)
    assert seqs(again) == [1, 2, 6, 8]
    assert again.append([said("e")]).last_seq == 9
    assert again.status().repairs == ()


def test_a_log_of_nothing_but_a_torn_line_is_empty(log: JsonlLog, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"seq":1,"batch":2,"ts":"2026')
    assert (log.status().last_seq, kinds(log)) == (0, ["torn"])
    assert log.append([said("a")]).last_seq == 2


def test_torn_ends_do_not_overwrite_each_other(path: Path) -> None:
    for number in range(3):
        JsonlLog(path).append([said(str(number))])
        with path.open("ab") as file:
            file.write(f"torn {number}".encode())
    JsonlLog(path).append([said("end")])
    names = [f"{path.name}.torn", f"{path.name}.torn-2", f"{path.name}.torn-3"]
    assert [path.with_name(name).read_text() for name in names] == ["torn 0", "torn 1", "torn 2"]


@pytest.mark.parametrize("damage", [b"", b"x\n", b'{"seq":1,"ba\0', b"{}\n"])
def test_a_lost_header_is_rebuilt(log: JsonlLog, path: Path, damage: bytes) -> None:
    log.append([said("a"), said("b")])
    first, _, rest = path.read_bytes().partition(b"\n")
    assert first
    path.write_bytes(damage + (b"\n" if damage.endswith(b"\0") else b"") + rest)
    again = JsonlLog(path)
    assert header(again) == SessionHeader(session_id="support-42", rebuilt=True)
    assert "header" in kinds(again)
    assert texts(again) == texts(JsonlLog(path)) == ["a", "b"]
    assert seqs(again) == [2, 3, 4]
    assert "header" not in kinds(JsonlLog(path))
    assert rest in path.read_bytes()


def test_a_header_with_nonsense_in_it_is_rebuilt(log: JsonlLog, path: Path) -> None:
    log.append([SessionHeader(session_id="support-42")])
    log.append([said("a")])
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":"'))
    again = JsonlLog(path)
    assert header(again) == SessionHeader(session_id="support-42", rebuilt=True)
    assert texts(again) == ["a"]
    assert again.append([said("b")]).last_seq == 4


@pytest.mark.parametrize("line", [b"\0\0\0\0", b"not ours", b'{"type":"session"}', b"", b"\xff"])
def test_a_damaged_line_in_the_middle_is_skipped_and_stays(log: JsonlLog, path: Path, line: bytes) -> None:
    for text in "abc":
        log.append([said(text)])
    lines = path.read_bytes().split(b"\n")
    lines[2] = line
    damaged = b"\n".join(lines)
    path.write_bytes(damaged)
    again = JsonlLog(path)
    assert texts(again) == ["a", "c"]
    assert kinds(again) == ["damaged"]
    with pytest.raises(NotFound):
        again.message(3)
    assert again.append([said("d")]).last_seq == 5
    assert path.read_bytes().startswith(damaged)
    assert texts(JsonlLog(path)) == texts(again) == ["a", "c", "d"]


def test_damage_that_only_reading_shows_is_skipped_and_reported(log: JsonlLog, path: Path) -> None:
    for text in "abc":
        log.append([said(text)])
    path.write_bytes(path.read_bytes().replace(b'"content":"b"', b'"content":"b,'))
    again = JsonlLog(path)
    assert texts(again) == texts(again) == ["a", "c"]
    assert kinds(again) == ["damaged"]
    with pytest.raises(NotFound):
        again.message(3)
    assert texts(log) == ["a", "c"]


def test_a_record_of_a_newer_version_is_kept_and_told_apart(log: JsonlLog, path: Path) -> None:
    log.append([said("a")])
    line = b'{"seq":3,"ts":"2027-01-01T00:00:00Z","kind":"hologram","depth":{"message":[1]}}'
    with path.open("ab") as file:
        file.write(line + b"\n")
    assert bodies(log)[2] == Unknown(kind="hologram", text=line.decode())
    assert log.append([said("b")]).last_seq == 4
    assert line in path.read_bytes()
    with pytest.raises(InvalidRequest, match="hologram"):
        log.append([bodies(log)[2]])


def test_the_log_of_another_program_is_left_alone(log: JsonlLog, path: Path) -> None:
    path.parent.mkdir()
    raw = b'{"type":"session","version":3}\n{"type":"message","id":"1"}\n'
    path.write_bytes(raw)
    assert (texts(log), log.status().last_seq) == ([], 0)
    assert "foreign" in kinds(log)
    with pytest.raises(StorageFailed, match="no log"):
        log.append([said("a")])
    assert path.read_bytes() == raw
    assert beside(path) == [path.name]


def test_kill_at_random_moments(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    chance = random.Random(11)
    code = """
        for number in range(10**6):
            batch = [MessageRecord(text='{"content":"%s"}' % ("y" * 5000)), PinRecord(pin_id=str(number), text="x")]
            say(str(log.append(batch).last_seq))
        """
    acknowledged = 0
    for _ in range(7):
        process = child(code, path)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        out, _ = process.communicate(timeout=240)
        numbers = [int(line) for line in out.splitlines() if line]
        acknowledged = max([acknowledged, *numbers[:-1]])
        log = JsonlLog(path)
        found = seqs(log)
        assert found == list(range(1, len(found) + 1))
        assert len(found) >= acknowledged
        assert len(found) % 2 == 1


def test_a_full_disk_leaves_the_log_as_it_was(path: Path) -> None:
    out = finish(
        child(
            """
            import resource
            log.append([MessageRecord(text='{"content":"first"}')])
            before = path.read_bytes()
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            try:
                log.append([MessageRecord(text='{"content":"%s"}' % ("z" * 1000))] * 5)
            except StorageFailed as error:
                say(str(error))
            assert path.read_bytes() == before
            assert log.status().last_seq == 2
            log.append([MessageRecord(text='{"content":"small"}')], expected_last_seq=2)
            try:
                log.append([MessageRecord(text='{"content":"data:image/png;base64,%s"}' % ("A" * 9000))])
            except StorageFailed as error:
                say(str(error))
            assert not [file for file in path.parent.rglob("blobs/*/*")]
            """,
            path,
        )
    )
    assert out.count("larger than the system allows") == 2
    assert texts(JsonlLog(path)) == ["first", "small"]


def test_a_new_log_that_does_not_fit_leaves_no_file(path: Path) -> None:
    finish(
        child(
            """
            import resource
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
            try:
                log.append([MessageRecord(text='{"content":"%s"}' % ("z" * 1000))])
            except StorageFailed:
                assert not path.exists()
            else:
                raise AssertionError
            """,
            path,
        )
    )


def test_a_read_only_folder_can_be_read(read_only: Path) -> None:
    out = finish(
        child(
            """
            import filelock  # it imports what another user may not read, where Python is root's own
            if os.geteuid() == 0:
                os.seteuid(65534)  # root may write everywhere
            say(str([record.seq for record in log.read()]) + log.status().repairs[0].kind)
            try:
                log.append([PinRecord(pin_id="p", text="x")])
            except StorageFailed as error:
                say(str(error))
            """,
            read_only,
        )
    )
    assert out.startswith("[1, 2]unrepaired\n")
    assert "permission was denied" in out


def test_a_log_that_cannot_be_mended_is_read_as_it_is(log: JsonlLog, path: Path) -> None:
    log.append([said("a")])
    with path.open("ab") as file:
        file.write(b"torn")
    (path.parent / ".locks").rename(path.parent / "elsewhere")
    (path.parent / ".locks").write_text("")
    again = JsonlLog(path)
    assert texts(again) == ["a"]
    assert kinds(again) == ["unrepaired"]
    with pytest.raises(StorageFailed, match=r"\.locks"):
        again.append([said("b")])


def test_a_log_that_was_rolled_back_and_went_on_is_read_afresh(log: JsonlLog, path: Path) -> None:
    log.append([said("a")])
    whole = path.read_bytes()
    log.append([said("taken back")])
    assert log.status().last_seq == 3
    path.write_bytes(whole)
    JsonlLog(path).append([said("b"), said("c"), said("d")])
    assert texts(log) == ["a", "b", "c", "d"]
    assert log.status().repairs == ()


def test_a_log_that_is_deleted_meanwhile_begins_anew(log: JsonlLog, path: Path) -> None:
    log.append([said("a")])
    path.unlink()
    assert log.status().last_seq == 0
    assert log.append([said("b")]).last_seq == 2


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_only_a_regular_file_is_a_log(log: JsonlLog, path: Path, tmp_path: Path, kind: str) -> None:
    path.parent.mkdir()
    outside = tmp_path / "outside"
    outside.write_text("{}\n")
    match kind:
        case "link":
            path.symlink_to(outside)
        case "folder":
            path.mkdir()
        case _:
            os.mkfifo(path)
    with pytest.raises(InvalidName):
        log.append([said("a")])
    with pytest.raises(InvalidName):
        list(log.read())
    assert outside.read_text() == "{}\n"


def test_a_linked_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "sessions").symlink_to(tmp_path / "real")
    with pytest.raises(InvalidName, match="symbolic link"):
        JsonlLog(tmp_path / "sessions" / "a.jsonl").append([said("a")])
    with pytest.raises(InvalidName, match="symbolic link"):
        LogFolder(tmp_path / "sessions").list()
    assert not list((tmp_path / "real").glob("*.jsonl"))


# Trims.


def test_a_trim_keeps_the_last_lines_and_what_the_view_needs(log: JsonlLog, path: Path) -> None:
    log.append([said("a"), PinRecord(pin_id="p", text="keep"), said("b"), Usage(input_tokens=1), said("c"), said("d")])
    before = path.read_bytes()
    backup = path.with_name(trim(log, 2))
    assert backup.read_bytes() == before
    assert backup.name == "support-42.jsonl.bak"
    assert texts(log) == ["c", "d"]
    assert seqs(log) == seqs(JsonlLog(path)) == [1, 3, 6, 7, 8]
    assert bodies(log)[-1] == TrimRecord(backup=backup.name, lines=3)
    assert log.message(6) == JsonlLog(path).message(6)
    assert log.append([said("e")]).last_seq == 9
    assert set(path.read_bytes().split(b"\n")[:-3]) <= set(before.split(b"\n"))


def test_a_trim_that_was_taken_back_twice_after_a_crash(log: JsonlLog, path: Path) -> None:
    log.append([said("a"), said("b")])
    backup = path.with_name(trim(log, 0))
    kept = backup.read_bytes()
    log.restore_trim()
    once = path.read_bytes()
    backup.write_bytes(kept)
    log.restore_trim()
    assert path.read_bytes() == once


def test_a_trim_names_no_file_elsewhere(log: JsonlLog, path: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret\n")
    log.append([said("a"), TrimRecord(backup="../outside", lines=1), TrimRecord(backup="other.jsonl", lines=1)])
    path.with_name("other.jsonl").write_text("secret\n")
    with pytest.raises(NotFound):
        log.restore_trim()


def test_a_flush_that_told_the_ids_of_its_memories_can_be_read(log: JsonlLog, path: Path) -> None:
    log.append([said("a"), FlushRecord(from_seq=2, to_seq=2, method="rules", written=2, reason="soft")])
    path.write_bytes(path.read_bytes().replace(b'"written":2', b'"written":["m1","m2"]'))
    again = JsonlLog(path)
    (flush,) = [record.body for record in again.read() if isinstance(record.body, FlushRecord)]
    assert (flush.written, flush.to_seq, again.status().repairs) == (2, 2, ())


def test_a_trim_whose_line_is_damaged_does_not_keep_others_from_being_taken_back(log: JsonlLog, path: Path) -> None:
    log.append([said("a"), TrimRecord(backup="lost", lines=1), said("b"), said("c")])
    trim(log, 1)
    path.write_bytes(path.read_bytes().replace(b'"backup":"lost","lines":1', b'"backup":"lost","lines":,'))
    again = JsonlLog(path)
    again.restore_trim()
    assert texts(again) == ["a", "b", "c"]


def test_a_trim_by_hand_can_be_read(log: JsonlLog, path: Path) -> None:
    log.append([said("a"), said("b"), said("c")])
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[-2:]))
    again = JsonlLog(path)
    assert texts(again) == ["b", "c"]
    assert kinds(again) == ["header"]


def test_a_trim_of_a_large_log_takes_little_memory(log: JsonlLog, path: Path) -> None:
    for number in range(40):
        log.append([MessageRecord(text=json.dumps({"role": "user", "content": f"{number} " + "word " * 40_000}))])
    before = path.read_bytes()
    assert len(before) > 8_000_000
    session = OpenSession(log)
    session.state()
    tracemalloc.start()
    session.trim(3)
    assert path.stat().st_size < 1_000_000
    log.restore_trim()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 6_000_000
    assert path.read_bytes().startswith(before)


# The folder.


@pytest.fixture
def logs(tmp_path: Path) -> LogFolder:
    return LogFolder(tmp_path / "sessions")


BAD = [
    "",
    ".",
    "..",
    "../a",
    "a/b",
    "a\\b",
    ".a",
    "-a",
    "_a",
    "a\0",
    "a\n",
    "a b",
    "ä",
    "a%2f",
    "x" * 129,
    "/etc/passwd",
    "a:b",
]


@pytest.mark.parametrize("session_id", BAD)
def test_ids_that_are_none_are_refused(logs: LogFolder, tmp_path: Path, session_id: str) -> None:
    for act in (begin, LogFolder.open, LogFolder.delete):
        with pytest.raises(InvalidName):
            act(logs, session_id)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_log_is_not_listed(logs: LogFolder, tmp_path: Path) -> None:
    begin(logs, "x" * 128)
    folder = tmp_path / "sessions"
    (folder / "link.jsonl").symlink_to(folder / f"{'x' * 128}.jsonl")
    (folder / "folder.jsonl").mkdir()
    (folder / ".hidden.jsonl").write_text("")
    (folder / "a.jsonl.bak").write_text("")
    (folder / "by hand.jsonl").write_text("")
    assert [file.session_id for file in logs.list()] == ["x" * 128]
    with pytest.raises(InvalidName):
        list(logs.open("link").read())
    with pytest.raises(InvalidName):
        logs.delete("link")


def test_deleting_takes_what_lies_beside_and_nothing_else(logs: LogFolder, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    begin(logs, "a").append([said("1"), said("2")])
    trim(logs.open("a"), 1)
    with (folder / "a.jsonl").open("ab") as file:
        file.write(b"torn")
    others = ["a.jsonl", "a.jsonl.bak", "a.jsonl.torn-2", "ab"]
    for name in others:
        begin(logs, name)
    logs.delete("a")
    assert sorted(beside(folder / "a")) == sorted(f"{name}.jsonl" for name in others)


@pytest.mark.parametrize("raw", [b"torn", b'{"type":"other"}\n', b""])
def test_what_cannot_be_mended_can_be_deleted(logs: LogFolder, tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "sessions" / "a.jsonl"
    begin(logs, "b")
    path.write_bytes(raw)
    logs.delete("a")
    assert beside(path) == ["b.jsonl"]


def test_a_log_in_memory_is_16_bytes_a_record(path: Path) -> None:
    JsonlLog(path).append([said("word " * 200)] * 3000)
    log = JsonlLog(path)
    tracemalloc.start()
    try:
        assert log.status().last_seq == 3001
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 100_000 < path.stat().st_size


def test_a_list_does_not_read_whole_logs(logs: LogFolder, tmp_path: Path) -> None:
    path = tmp_path / "sessions" / "big.jsonl"
    begin(logs, "big").append([said("a")])
    line = path.read_bytes().splitlines(keepends=True)[1]
    with path.open("wb") as file:
        file.truncate(4 * 1024**3)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + line)
    with at_most_readings(40):
        assert [file.last_seq for file in logs.list()] == [2]


def test_rights_of_a_log_stay_after_a_trim(log: JsonlLog, path: Path) -> None:
    log.append([said("a")])
    path.chmod(0o600)
    trim(log, 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_threads_open_one_log_at_once(path: Path) -> None:
    JsonlLog(path).append([said("a")])
    with path.open("ab") as file:
        file.write(b"torn")
    log = JsonlLog(path)
    start = threading.Barrier(4)

    def look(_: int) -> list[str]:
        start.wait()
        return texts(log)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(look, range(4))) == [["a"]] * 4
