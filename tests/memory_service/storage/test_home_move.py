"""A home moved from one storage to another: all is there, byte for byte; a move that is killed goes on."""

from __future__ import annotations

import base64
import datetime as dt
import itertools
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from memory_service.errors import Conflict, InvalidRequest
from memory_service.sessions.records import MessageRecord
from memory_service.storage.base import SEALING_KEY, Storage
from memory_service.storage.documents import VERSION_AGE, DocumentVersion
from memory_service.storage.files.file_storage import FileStorage
from memory_service.storage.home_move import HOME, HomeMove, MovePart, move_home
from memory_service.storage.postgres.postgres_storage import PostgresStorage
from memory_service.storage.record_store import RecordKind
from tests.disk import Call, recorded
from tests.memory_service.old_home import ARCHIVE
from tests.memory_service.storage.log_steps import begin, said, texts, trim
from tests.postgres import TestDatabases

NOW = dt.datetime.now(dt.UTC)
LATER = NOW + dt.timedelta(days=1)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
RECEIPT = f"r{NOW:%Y%m%d}-0123456789abcdef"
OLD_RECEIPT = "r20200101-0123456789abcdef"
# Opens the same place again, as another process does.
Place = Callable[[], Storage]


class Killed(BaseException):
    """The end of a process."""


@pytest.fixture
def closes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def files(folder: Path, closes: ExitStack) -> Place:
    """A place for a home in files."""

    def opened() -> Storage:
        return closes.enter_context(closing(FileStorage(folder)))

    return opened


def fill(storage: Storage) -> None:
    """Puts something of each kind into a home."""
    for name in ("default", "team"):
        storage.make(name)
        documents = storage.workspace(name).documents
        documents.replace(
            "MEMORY.md", f"# {name}\n\n- 绿萝 ferns\r\n\x00\xff".encode("utf-8", "replace"), expected=None
        )
        documents.replace("memory/2026-11-20.md", b"- Deploys go out on Tuesdays.\n" * 99, expected=None)
        documents.replace("memory/deep/er/empty.md", b"", expected=None)
        documents.set_time("MEMORY.md", dt.datetime(2024, 2, 29, 23, 59, 59, 123457, dt.UTC))
        url = "data:image/png;base64," + base64.b64encode(PNG + name.encode()).decode()
        image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
        log = begin(storage.workspace(name).logs, "support-42")
        log.append([said("one"), MessageRecord(text=json.dumps(image)), said("three \ud800")])
        trim(log, 1)
        log.append([said("four"), said("x" * 100_000)])
        trim(log, 1)
        begin(storage.workspace(name).logs, "other").append([said("five")])
        records = storage.workspace(name).records
        for key, session in ((RECEIPT, "support-42"), (OLD_RECEIPT, "")):
            raw = json.dumps({"receipt_id": key, "query": "绿萝?"}, ensure_ascii=False).encode()
            records.put(RecordKind.RECEIPT, key, raw, session=session)
        records.put(RecordKind.PROMPT, "support-42", b'{"entries":[]}', session="support-42")
        records.put(RecordKind.PROGRESS, "support-42", b'{"read":3}', session="support-42")
        records.put(RecordKind.REPLY, "k/1", b"\0\xff", expires=LATER)
        records.put(RecordKind.SESSION_REPLY, "k2", b"quotes", session="support-42", expires=LATER)
        records.put(RecordKind.REPLY, "soon gone", b"x", expires=NOW + dt.timedelta(minutes=5))
    storage.records.put(RecordKind.REPLY, "of the home", b"y", expires=LATER)
    storage.secret(SEALING_KEY, 32)


def move(source: Place, target: Place) -> HomeMove:
    """Moves all, as a process of its own does."""
    return move_home(source(), target(), receipt_days=30)


def counts(result: HomeMove) -> dict[tuple[str, str], tuple[int, int]]:
    """How many items each part has, and how many were copied."""
    return {(part.workspace, part.part.value): (part.items, part.copied_items) for part in result.parts}


def rows(request: pytest.FixtureRequest, folder: Path, closes: ExitStack) -> Place:
    """A place for a home in a database."""
    address = request.getfixturevalue("migrated_database")

    def opened() -> Storage:
        return closes.enter_context(closing(PostgresStorage(address, home=folder)))

    return opened


@pytest.fixture(params=["files to files", "files to rows", "rows to files"])
def places(request: pytest.FixtureRequest, tmp_path: Path, migrated_database: str) -> Iterator[tuple[Place, Place]]:
    with ExitStack() as closes:
        source, target = (
            files(tmp_path / name, closes) if kind == "files" else rows(request, tmp_path / name, closes)
            for kind, name in zip(request.param.split(" to "), ("source", "target"), strict=True)
        )
        fill(source())
        yield source, target


def test_all_is_in_the_target_as_it_was_in_the_source(places: tuple[Place, Place]) -> None:
    source, target = places
    result = move(source, target)
    assert result.is_complete and not result.was_finished and not result.remains
    per_workspace = {"documents": (3, 3), "sessions": (2, 2), "records": (5, 5)}
    expected = {(name, part): count for name in ("default", "team") for part, count in per_workspace.items()}
    assert counts(result) == expected | {(HOME, "records"): (1, 1), (HOME, "secrets"): (1, 1)}
    one, other = source(), target()
    assert one.stored_secret(SEALING_KEY) == other.stored_secret(SEALING_KEY) is not None
    for name in ("default", "team"):
        here, there = one.workspace(name), other.workspace(name)
        times = [{p: d.modified_at for p, d in each.documents.scan().documents.items()} for each in (here, there)]
        assert times[0] == times[1] and len(times[0]) == 3
        for path in times[0]:
            assert there.documents.read(path).raw == here.documents.read(path).raw
        assert list(there.logs.open("other").read()) == list(here.logs.open("other").read())
        log, copy = here.logs.open("support-42"), there.logs.open("support-42")
        assert copy.outline(trimmed=True) == log.outline(trimmed=True)
        copy.restore_trim()
        copy.restore_trim()
        assert texts(copy)[::2] == ["one", "three \ud800", "x" * 100_000]
        assert PNG + name.encode() == copy.content(3, 1)
        receipt, reply = (there.records.get(kind, key) for kind, key in
                          ((RecordKind.RECEIPT, RECEIPT), (RecordKind.SESSION_REPLY, "k2")))  # fmt: skip
        assert receipt is not None and receipt.session == "support-42"
        assert reply is not None and reply.session == "support-42" and reply.expires is not None
        assert abs(reply.expires - LATER) < dt.timedelta(seconds=5)
        assert there.records.get(RecordKind.RECEIPT, OLD_RECEIPT) is None


def test_a_home_that_went_into_a_database_and_back_has_the_same_bytes(
    request: pytest.FixtureRequest, tmp_path: Path, closes: ExitStack
) -> None:
    source, rows_between = files(tmp_path / "source", closes), rows(request, tmp_path / "rows", closes)
    fill(source())
    assert move(source, rows_between).is_complete
    assert move(rows_between, files(tmp_path / "back", closes)).is_complete
    one, other = (
        {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "source", tmp_path / "back")
    )
    kept = {name for name in one if not any(part.startswith(".") for part in Path(name).parts)}
    # A receipt that has ended is not moved.
    kept -= {name for name in kept if OLD_RECEIPT[1:9] in name.replace("-", "")}
    assert kept == {name for name in other if not any(part.startswith(".") for part in Path(name).parts)}
    for name in kept:
        assert one[name].read_bytes() == other[name].read_bytes(), name
    assert b'"batch":2' in other["team/sessions/support-42.jsonl.bak-2"].read_bytes()
    times = [{p: d.modified_at for p, d in place().workspace("team").documents.scan().documents.items()}
             for place in (source, files(tmp_path / "back", closes))]  # fmt: skip
    assert times[0] == times[1]


def test_a_history_goes_from_database_to_database_and_a_folder_keeps_none(
    request: pytest.FixtureRequest, tmp_path: Path, closes: ExitStack, postgres_databases: TestDatabases
) -> None:
    source, address = rows(request, tmp_path / "rows", closes), postgres_databases.migrated()

    def target() -> Storage:
        return closes.enter_context(closing(PostgresStorage(address, home=tmp_path / "others")))

    fill(source())
    documents = source().workspace("team").documents
    for number in range(4):
        raw = b"%d \xff\n" % number
        documents.replace("MEMORY.md", raw, expected=documents.revision("MEMORY.md"))
    old = DocumentVersion("00" * 7 + "07", dt.datetime.now(dt.UTC) - VERSION_AGE + dt.timedelta(minutes=30), 1)
    documents.add_version("MEMORY.md", old, b"x")
    first = move(source, target)
    assert first.is_complete and counts(first)["team", "versions"] == (4, 4), "one that goes within an hour is left"
    there = target().workspace("team").documents
    versions = [version for version in documents.versions("MEMORY.md") if version != old]
    assert list(there.versions("MEMORY.md")) == versions and len(versions) == 4
    for version in versions:
        assert there.version("MEMORY.md", version.version_id) == documents.version("MEMORY.md", version.version_id)
    there.erase_versions(lambda _, raw: raw.startswith(b"1"))
    assert [part.part for part in move(source, target).parts if not part.is_equal] == [MovePart.VERSIONS]
    back = move(source, files(tmp_path / "back", closes))
    assert back.is_complete and back.remains == ("team: 5 earlier versions of memory files, as folders keep none",)


def test_a_move_that_is_finished_is_compared_and_copies_nothing(places: tuple[Place, Place]) -> None:
    source, target = places
    move(source, target)
    again = move(source, target)
    assert again.is_complete and again.was_finished and all(part.copied_items == 0 for part in again.parts)
    documents = target().workspace("team").documents
    documents.replace("MEMORY.md", b"changed", expected=documents.revision("MEMORY.md"))
    changed = move(source, target)
    assert not changed.is_complete
    assert [(part.workspace, part.part) for part in changed.parts if not part.is_equal] == [
        ("team", MovePart.DOCUMENTS)
    ]
    assert documents.read("MEMORY.md").raw == b"changed"


def test_what_is_written_meanwhile_is_named_and_the_next_run_takes_it(places: tuple[Place, Place]) -> None:
    source, target = places
    documents, written = source().workspace("team").documents, list[str]()

    def write(workspace: str, *_: int) -> None:
        if workspace == "team" and not written:
            written.append(workspace)
            documents.append("MEMORY.md", b"more\n", expected=documents.revision("MEMORY.md"))
            documents.remove("memory/deep/er/empty.md")
            source().workspace("team").logs.delete("other")
            source().workspace("team").records.erase(RecordKind.REPLY, key="k/1")
            source().make("new")

    first = move_home(source(), target(), receipt_days=30, progress=write)
    assert not first.is_complete
    assert first.changes == (
        "team: MEMORY.md",
        "team: memory/deep/er/empty.md",
        "team: the reply k/1",
        "team: the session other",
    )
    second = move(source, target)
    assert second.is_complete and not second.was_finished
    assert counts(second)["team", "documents"] == (2, 1), "its content was copied as it was then, its time as before"
    assert [row.session_id for row in target().workspace("team").logs.list()] == ["support-42"]
    assert move(source, target).was_finished


def test_a_target_with_something_else_is_refused(
    places: tuple[Place, Place], tmp_path: Path, closes: ExitStack
) -> None:
    source, target = places
    other = files(tmp_path / "other", closes)
    with pytest.raises(InvalidRequest, match="nothing to move"):
        move(other, target)
    other().make("own")
    other().workspace("own").documents.replace("MEMORY.md", b"mine", expected=None)
    with pytest.raises(Conflict, match="memories already, as in the workspace own"):
        move(source, other)
    move(source, target)
    with pytest.raises(Conflict, match="what was moved from"):
        move(other, target)
    with pytest.raises(InvalidRequest, match="where it is"):
        move(source, source)
    keyed = files(tmp_path / "keyed", closes)
    keyed().secret(SEALING_KEY, 32)
    with pytest.raises(Conflict, match="secret of its own"):
        move(source, keyed)


def test_an_erasure_that_was_broken_off_is_finished_first(places: tuple[Place, Place]) -> None:
    source, target = places
    source().workspace("team").records.put(RecordKind.ERASURE, "erasing", b"")
    with pytest.raises(Conflict, match="erasure in the workspace team"):
        move(source, target)


def test_a_move_that_is_killed_at_any_step_goes_on(tmp_path: Path, closes: ExitStack) -> None:
    source = files(tmp_path / "source", closes)
    fill(source())
    with recorded(tmp_path / "whole") as tape:
        assert move(source, files(tmp_path / "whole", closes)).is_complete
    steps, fewer = len(tape.calls), 0
    for step in [*range(1, steps, steps // 23), steps - 1]:
        target, left = files(tmp_path / f"{step}", closes), itertools.count(step, -1)

        def kill(_: Call, left: Iterator[int] = left) -> None:
            # All that the process would have tidied up comes too late.
            if next(left) <= 0:
                raise Killed

        with recorded(tmp_path / f"{step}", kill), pytest.raises(Killed):
            move(source, target)
        result = move(source, target)
        assert result.is_complete, step
        fewer += sum(part.copied_items for part in result.parts) < sum(part.items for part in result.parts)
        _same_files(tmp_path / f"{step}", tmp_path / "whole")
        shutil.rmtree(tmp_path / f"{step}")
    assert fewer > 9, "what was copied before is not copied again"


def _same_files(one: Path, other: Path) -> None:
    """Compares what the service wrote, but for locks, and drafts of killed writers, which the next start sweeps."""

    def contents(folder: Path) -> dict[str, bytes]:
        there = (path for path in folder.rglob("*") if path.is_file())
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in there
            if not any(part.startswith(".") for part in path.relative_to(folder).parts)
        }

    assert contents(one) == contents(other)


def test_a_home_of_an_older_version_is_moved(tmp_path: Path, closes: ExitStack) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "old", filter="data")
    home = next(path for path in (tmp_path / "old", *(tmp_path / "old").iterdir()) if (path / "default").is_dir())
    result = move(files(home, closes), files(tmp_path / "new", closes))
    assert result.is_complete and sum(part.items for part in result.parts) > 8
