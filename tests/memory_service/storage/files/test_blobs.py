from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.errors import InvalidName, NotFound, StorageFailed
from memory_service.messages.shapes import Json
from memory_service.sessions.media import attach, describe, detach, media_of
from memory_service.sessions.records import MessageRecord
from memory_service.storage.files.blobs import Blobs
from memory_service.storage.files.jsonl_log import JsonlLog
from memory_service.storage.files.log_folder import LogFolder
from tests.memory_service.storage.log_steps import begin, trim

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
WRITTEN = base64.b64encode(PNG).decode()
URL = f"data:image/png;base64,{WRITTEN}"


@pytest.fixture
def logs(tmp_path: Path) -> LogFolder:
    return LogFolder(tmp_path / "sessions")


def message(content: Json) -> MessageRecord:
    return MessageRecord(text=json.dumps({"role": "user", "content": content}))


def stored(folder: Path) -> list[Path]:
    return sorted(file for file in (folder / "sessions" / "blobs").rglob("*") if file.is_file())


OUT_OF_LINE: dict[str, tuple[Json, str]] = {
    "openai": ([{"type": "image_url", "image_url": {"url": URL}}], "image/png"),
    "openai, small": ([{"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlh"}}], "image/gif"),
    "parameters": (f"data:text/plain;charset=utf-8;base64,{WRITTEN}", "text/plain"),
    "in a text": (f"![a]({URL}) and more", "image/png"),
    "anthropic": (
        [{"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": WRITTEN}}],
        "image/jpeg",
    ),
    "audio": ([{"type": "input_audio", "input_audio": {"data": WRITTEN, "format": "wav"}}], "audio/wav"),
    "gemini": ([{"inline_data": {"mime_type": "image/webp", "data": WRITTEN}}], "image/webp"),
    "no name": (
        [{"source": {"type": "base64", "media_type": '" onload=x', "data": WRITTEN}}],
        "application/octet-stream",
    ),
    "long": ("QUJD" * 3000, "application/octet-stream"),
    "long, unusual": ("QUJ_" * 3000 + "Q", "application/octet-stream"),
}


@pytest.mark.parametrize("name", OUT_OF_LINE)
def test_media_go_beside_the_log_and_come_back(logs: LogFolder, tmp_path: Path, name: str) -> None:
    content, mime = OUT_OF_LINE[name]
    given_message = message(content)
    log = begin(logs, "a")
    log.append([given_message])
    line = (tmp_path / "sessions" / "a.jsonl").read_bytes()
    assert len(stored(tmp_path)) == 1
    assert len(line) < 700
    for same in (log, JsonlLog(tmp_path / "sessions" / "a.jsonl")):
        assert same.message(2) == given_message.text
        short = same.message(2, media=False)
        assert json.loads(short)
        assert f"[{mime}, {len(same.content(2, 1))} bytes, ref=log:2#1]" in short
        assert len(short) < 400
        *_, record = same.read()
        assert isinstance(record.body, MessageRecord)
        assert record.body.text == given_message.text
        assert [(medium.mime, medium.handle) for medium in record.body.media] == [(mime, "log:2#1")]
        *_, record = same.read(media=False)
        assert isinstance(record.body, MessageRecord)
        assert record.body.text == short


@pytest.mark.parametrize(
    "content",
    [
        "Write data:image/png;base64,AAAA into the page.",
        "data:image/png;base64,",
        "data:image/svg+xml;utf8,<svg/>",
        "word " * 4000,
        "x" * 8000,
        {"type": "base64", "data": "AA=="},
        {"type": "text", "data": WRITTEN},
    ],
)
def test_what_is_no_medium_stays_in_the_line(logs: LogFolder, tmp_path: Path, content: Json) -> None:
    log = begin(logs, "a")
    log.append([message(content)])
    assert stored(tmp_path) == []
    assert log.message(2) == log.message(2, media=False) == message(content).text


def test_escaped_slashes_come_back_escaped(logs: LogFolder, tmp_path: Path) -> None:
    raw = b"\xff\xff\xff" * 3000
    url = "data:image/png;base64," + base64.b64encode(raw).decode()
    source = base64.b64encode(raw + b"x").decode()
    text = json.dumps({"content": [url, {"type": "base64", "data": source}]}).replace("/", "\\/")
    log = begin(logs, "a")
    log.append([MessageRecord(text=text)])
    assert len(stored(tmp_path)) == 2
    assert log.message(2) == text


def test_the_same_content_is_stored_once(logs: LogFolder, tmp_path: Path) -> None:
    for name in ("a", "b"):
        begin(logs, name).append([message([URL, URL]), message({"type": "base64", "data": WRITTEN})])
    (file,) = stored(tmp_path)
    assert file.read_bytes() == PNG
    assert file.parent.name == file.name[:2]
    assert logs.open("a").content(2, 2) == PNG
    assert "ref=log:2#2" in logs.open("a").message(2, media=False)


def test_a_message_cannot_pretend_to_hold_what_others_keep(logs: LogFolder, tmp_path: Path) -> None:
    begin(logs, "a").append([message(URL)])
    sha256 = stored(tmp_path)[0].name
    text = json.dumps({"media": [{"at": 0, "sha256": sha256}], "content": f"ref=log:2#1 {sha256}"})
    log = begin(logs, "b")
    log.append([MessageRecord(text=text)])
    assert log.message(2) == log.message(2, media=False) == text
    for number in (0, 1, 2, -1):
        with pytest.raises(NotFound):
            log.content(2, number)


def test_deleting_keeps_what_another_session_names(logs: LogFolder, tmp_path: Path) -> None:
    own = "data:image/png;base64," + base64.b64encode(b"only in a" * 200).decode()
    begin(logs, "a").append([message(URL), message(own)])
    begin(logs, "b").append([message(URL)])
    assert len(stored(tmp_path)) == 2
    logs.delete("a")
    assert [file.read_bytes() for file in stored(tmp_path)] == [PNG]
    assert logs.open("b").message(2) == message(URL).text
    trim(logs.open("b"), 0)
    begin(logs, "c").append([message("no media")])
    logs.delete("c")
    logs.open("b").restore_trim()
    assert logs.open("b").message(2) == message(URL).text
    logs.delete("b")
    assert stored(tmp_path) == []


def test_a_delete_takes_along_what_a_crash_left(logs: LogFolder, tmp_path: Path) -> None:
    for name in ("a", "b"):
        begin(logs, name).append([message(URL)])
    Blobs(tmp_path / "sessions" / "blobs").put(b"left by a crash")
    logs.delete("b")
    assert [file.read_bytes() for file in stored(tmp_path)] == [PNG]
    assert logs.open("a").message(2) == message(URL).text


KILLED = """
import os, signal, sys
from pathlib import Path
from memory_service.storage.files.log_folder import LogFolder

def killed(event, values):
    if event == "os.remove" and sys.argv[2] in str(values[0]):
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(killed)
LogFolder(Path(sys.argv[1])).delete("a")
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize("at", ["/blobs/", "a.jsonl"])
def test_a_delete_that_is_killed_can_be_repeated_and_leaves_nothing(logs: LogFolder, tmp_path: Path, at: str) -> None:
    begin(logs, "a").append([message(URL)])
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "sessions"), at], check=False)
    assert done.returncode == -signal.SIGKILL
    again = LogFolder(tmp_path / "sessions")
    again.delete("a")
    assert stored(tmp_path) == [] and again.list() == []


def test_deleting_and_appending_the_same_content_at_once(logs: LogFolder, tmp_path: Path) -> None:
    def come_and_go() -> None:
        for number in range(15):
            begin(logs, f"x{number}").append([message(URL)])
            logs.delete(f"x{number}")

    log = begin(logs, "stays")
    thread = threading.Thread(target=come_and_go)
    thread.start()
    while thread.is_alive():
        last = log.append([message(URL)]).last_seq
        assert log.message(last) == message(URL).text
    thread.join()
    again = LogFolder(tmp_path / "sessions").open("stays")
    assert all(
        body.text == message(URL).text for r in again.read(since_seq=1) if isinstance(body := r.body, MessageRecord)
    )
    assert again.status().repairs == ()


def test_lost_and_damaged_contents_are_told(logs: LogFolder, tmp_path: Path) -> None:
    log = begin(logs, "a")
    log.append([message(URL), message("after")])
    (file,) = stored(tmp_path)
    file.write_bytes(b"rubbish")
    with pytest.raises(StorageFailed, match="damaged"):
        log.message(2)
    file.unlink()
    with pytest.raises(StorageFailed, match="gone"):
        log.message(2)
    records = list(log.read())
    assert [record.seq for record in records] == [1, 2, 3]
    assert "ref=log:2#1" in str(records[1].body)
    assert [repair.kind for repair in log.status().repairs] == ["media"]
    assert "ref=log:2#1" in log.message(2, media=False)


def test_a_damaged_content_is_stored_again(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    sha256, is_new = blobs.put(PNG)
    assert is_new
    (tmp_path / "blobs" / sha256[:2] / sha256).write_bytes(b"")
    assert blobs.put(PNG) == (sha256, True)
    assert blobs.put(PNG) == (sha256, False)
    assert blobs.get(sha256) == PNG
    assert list(blobs.hashes()) == [sha256]
    blobs.remove(sha256)
    blobs.remove(sha256)
    assert list(blobs.hashes()) == []


@pytest.mark.parametrize("name", ["", "..", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_only_hashes_are_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFound):
        Blobs(tmp_path).get(name)


@pytest.mark.parametrize("level", ["blobs", "folder", "file"])
def test_links_are_refused(tmp_path: Path, level: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    sha256, _ = Blobs(outside).put(PNG)
    folder = tmp_path / "blobs"
    if level == "blobs":
        folder.symlink_to(outside)
    elif level == "folder":
        folder.mkdir()
        (folder / sha256[:2]).symlink_to(outside / sha256[:2])
    else:
        (folder / sha256[:2]).mkdir(parents=True)
        (folder / sha256[:2] / sha256).symlink_to(outside / sha256[:2] / sha256)
    for act in (lambda: Blobs(folder).get(sha256), lambda: Blobs(folder).put(PNG)):
        with pytest.raises(InvalidName):
            act()


BASE64 = st.binary(min_size=1, max_size=120).map(lambda raw: base64.b64encode(raw).decode())
PIECE = st.one_of(
    st.text(max_size=20),
    BASE64,
    BASE64.map(lambda written: f"data:image/png;base64,{written}"),
    BASE64.map(lambda written: f'say \\"data:a/b;base64,{written * 40}'),
    st.sampled_from(["QUJD" * 2100, "data:image/png;base64,====", "data:;base64,AAAA", '"data:a/b;base64,QUJD"']),
)
VALUE = st.recursive(
    PIECE,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.fixed_dictionaries({"type": st.just("base64"), "data": BASE64})
        | st.fixed_dictionaries({"format": PIECE, "data": PIECE})
        | st.dictionaries(PIECE, inner, max_size=3)
    ),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(max_size=5), VALUE, max_size=4), slashes=st.booleans())
def test_taking_out_and_putting_back_changes_nothing(value: dict[str, Json], slashes: bool) -> None:
    text = json.dumps(value)
    text = text.replace("/", "\\/") if slashes else text
    taken = detach(text, json.loads(text))
    contents = dict(zip(taken.parts, taken.contents, strict=True))
    assert attach(taken.text, taken.parts, contents.__getitem__) == text
    assert isinstance(json.loads(taken.text), dict)
    assert isinstance(json.loads(describe(taken.text, media_of(taken.parts, 1), taken.parts)), dict)
