"""The contract of `RecordStore`, on every implementation."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from indexer.stores import PostgresDatabase
from memory_service.errors import StorageFailed
from memory_service.storage.files.file_storage import FileStorage
from memory_service.storage.files.shared_database import DatabaseRecords, SharedDatabase
from memory_service.storage.postgres.postgres_records import ExpiredRecords, PostgresRecords
from memory_service.storage.record_store import ANY, RecordKind, RecordStore
from tests.memory_service.storage.in_memory_records import MemoryRecords

NOW = dt.datetime.now(dt.UTC)
LATER, BEFORE = NOW + dt.timedelta(hours=1), NOW - dt.timedelta(hours=1)
# Of a workspace; several calls give stores of the same records, as of several processes.
Records = Callable[[str], RecordStore]


@pytest.fixture(params=["files", "memory", "postgres"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Records]:
    if request.param == "memory":
        kept = dict[str, MemoryRecords]()
        yield lambda workspace: kept.setdefault(workspace, MemoryRecords())
        return
    if request.param == "postgres":
        yield from _records_of_a_database(request.getfixturevalue("migrated_database"))
        return
    storages = list[FileStorage]()

    def opened(workspace: str) -> RecordStore:
        storages.append(FileStorage(tmp_path))
        storages[-1].make(workspace)
        return storages[-1].workspace(workspace).records

    yield opened
    for storage in storages:
        storage.close()


def _records_of_a_database(address: str) -> Iterator[Records]:
    databases = list[PostgresDatabase]()

    def opened(workspace: str) -> RecordStore:
        databases.append(database := PostgresDatabase(address, connections=2))
        return PostgresRecords(database, workspace, ExpiredRecords())

    yield opened
    for database in databases:
        database.close()


def test_what_is_stored_is_there_for_all(records: Records) -> None:
    one, other = records("deploys"), records("deploys")
    assert one.get(RecordKind.REPLY, "钥匙") is None and list(one.keys(RecordKind.REPLY)) == []
    version = one.put(RecordKind.REPLY, "钥匙", b"\0\xff", session="s", expires=LATER)
    found = other.get(RecordKind.REPLY, "钥匙")
    assert found is not None and (found.raw, found.version) == (b"\0\xff", version)
    assert found.session == "s" and found.expires is not None and abs(found.expires - LATER).total_seconds() < 5
    assert other.version(RecordKind.REPLY, "钥匙") == version
    assert list(other.keys(RecordKind.REPLY)) == ["钥匙"]


def test_kinds_keys_and_workspaces_are_apart(records: Records) -> None:
    records("a").put(RecordKind.REPLY, "k", b"1")
    assert records("b").get(RecordKind.REPLY, "k") is None
    assert records("a").get(RecordKind.OPERATION, "k") is None
    assert records("a").get(RecordKind.REPLY, "K") is None
    assert records("a").version(RecordKind.REPLY, "k ") is None


def test_a_put_that_names_a_version_replaces_that_one_alone(records: Records) -> None:
    store = records("w")
    first = store.put(RecordKind.OPERATION, "op", b"1", expected=None)
    assert first not in (None, ANY)
    assert store.put(RecordKind.OPERATION, "op", b"2", expected=None) is None
    second = store.put(RecordKind.OPERATION, "op", b"3", expected=first)
    assert second not in (None, first)
    assert store.put(RecordKind.OPERATION, "op", b"4", expected=first) is None
    found = store.get(RecordKind.OPERATION, "op")
    assert found is not None and found.raw == b"3"
    assert store.put(RecordKind.OPERATION, "op", b"3") not in (None, first, second)


def test_a_record_that_is_stored_again_has_another_version(records: Records) -> None:
    store = records("w")
    first = store.put(RecordKind.REPLY, "k", b"same")
    store.erase(RecordKind.REPLY, key="k")
    assert store.put(RecordKind.REPLY, "k", b"other", expected=first) is None
    assert store.put(RecordKind.REPLY, "k", b"same", expected=None) != first


def test_of_several_claims_one_is_granted(records: Records) -> None:
    stores = [records("w") for _ in range(4)]
    for number in range(20):
        with ThreadPoolExecutor(4) as threads:
            asked = [threads.submit(each.put, RecordKind.REPLY, str(number), b"", expected=None) for each in stores]
        assert sum(each.result() is not None for each in asked) == 1


def test_what_has_expired_is_gone(records: Records) -> None:
    store = records("w")
    store.put(RecordKind.REPLY, "old", b"1", expires=BEFORE)
    store.put(RecordKind.REPLY, "new", b"2", expires=LATER)
    assert store.get(RecordKind.REPLY, "old") is None and store.version(RecordKind.REPLY, "old") is None
    assert list(store.keys(RecordKind.REPLY)) == ["new"]
    assert store.put(RecordKind.REPLY, "old", b"3", expected=None, expires=LATER) is not None


def test_records_are_erased_by_key_by_session_and_by_kind(records: Records) -> None:
    store = records("w")
    for key, session in (("1", "a"), ("2", "a"), ("3", "b"), ("4", "")):
        store.put(RecordKind.SESSION_REPLY, key, b"x", session=session)
        store.put(RecordKind.REPLY, key, b"x", session=session)
    assert store.erase(RecordKind.SESSION_REPLY, session="a") == 2
    assert list(store.keys(RecordKind.SESSION_REPLY)) == ["3", "4"]
    assert store.erase(RecordKind.SESSION_REPLY, key="4") == 1 and store.erase(RecordKind.SESSION_REPLY, key="4") == 0
    assert store.erase(RecordKind.SESSION_REPLY, key="3", session="a") == 0
    assert store.erase(RecordKind.SESSION_REPLY) == 1
    assert list(store.keys(RecordKind.REPLY)) == ["1", "2", "3", "4"]


def test_the_oldest_are_trimmed(records: Records) -> None:
    store = records("w")
    for number in range(8):
        store.put(RecordKind.REPLY, str(number), b"x" * 100, expires=BEFORE if number == 7 else LATER)
    store.put(RecordKind.REPLY, "2", b"y" * 100)
    store.trim(RecordKind.REPLY, most=5, most_bytes=10**6)
    assert sorted(store.keys(RecordKind.REPLY)) == ["2", "3", "4", "5", "6"]
    store.trim(RecordKind.REPLY, most=5, most_bytes=350)
    assert sorted(store.keys(RecordKind.REPLY)) == ["2", "5", "6"]
    store.trim(RecordKind.OPERATION, most=0, most_bytes=0)
    assert sorted(store.keys(RecordKind.REPLY)) == ["2", "5", "6"]


def receipt(number: int, words: str = "where?") -> tuple[str, bytes]:
    key = f"r20261120-{number:016x}"
    return key, json.dumps({"receipt_id": key, "query": words}).encode()


def test_receipts_are_found_and_erased_with_their_session(records: Records) -> None:
    one, other = records("w"), records("w")
    for number, session in enumerate(("a", "b", "", "a")):
        key, raw = receipt(number, f'quoting {{"receipt_id": "{receipt(9)[0]}"')
        assert one.put(RecordKind.RECEIPT, key, raw, session=session, expires=LATER) is not None
    found = other.get(RecordKind.RECEIPT, receipt(1)[0])
    assert found is not None and json.loads(found.raw)["query"].startswith("quoting")
    assert (found.raw, found.session) == (receipt(1, json.loads(found.raw)["query"])[1], "b")
    unnamed = other.get(RecordKind.RECEIPT, receipt(2)[0])
    assert unnamed is not None and unnamed.session == "" and json.loads(unnamed.raw)["receipt_id"] == receipt(2)[0]
    assert other.version(RecordKind.RECEIPT, receipt(1)[0]) == found.version
    assert sorted(other.keys(RecordKind.RECEIPT)) == [receipt(number)[0] for number in range(4)]
    assert [key for key, _ in other.newest(RecordKind.RECEIPT)] == [receipt(number)[0] for number in (3, 2, 1, 0)]
    of_one = [record.raw for _, record in other.newest(RecordKind.RECEIPT, session="b")]
    assert of_one == [found.raw]
    for key in (receipt(9)[0], "r20261120-", "r20269999-0000000000000000", "../../etc"):
        assert other.get(RecordKind.RECEIPT, key) is None
    assert other.erase(RecordKind.RECEIPT, session="a") == 2
    assert sorted(one.keys(RecordKind.RECEIPT)) == [receipt(1)[0], receipt(2)[0]]
    assert one.get(RecordKind.RECEIPT, receipt(0)[0]) is None
    assert other.erase(RecordKind.RECEIPT, key=receipt(2)[0]) == 1
    assert other.erase(RecordKind.RECEIPT) == 1 and list(one.keys(RecordKind.RECEIPT)) == []


def test_the_last_stored_come_first(records: Records) -> None:
    store = records("w")
    for number in range(230):
        session = f"talk-{number % 2}"
        store.put(RecordKind.OPERATION, f"operation-{number:03}", b"%d" % number, session=session)
    store.put(RecordKind.REPLY, "reply", b"x")
    everything = list(store.newest(RecordKind.OPERATION))
    assert [key for key, _ in everything] == [f"operation-{number:03}" for number in reversed(range(230))]
    assert {key: (record.raw, record.session) for key, record in everything} == {
        f"operation-{number:03}": (b"%d" % number, f"talk-{number % 2}") for number in range(230)
    }
    of_one = [key for key, _ in store.newest(RecordKind.OPERATION, session="talk-1")]
    assert of_one == [key for key, record in everything if record.session == "talk-1"]
    assert everything[0][1].version == store.version(RecordKind.OPERATION, "operation-229")
    store.erase(RecordKind.OPERATION)
    assert list(store.newest(RecordKind.OPERATION)) == []


@pytest.mark.parametrize("kind", [RecordKind.PROMPT, RecordKind.PROGRESS])
def test_prompts_are_replaced_by_version(records: Records, kind: RecordKind) -> None:
    one, other = records("w"), records("w")
    assert one.version(kind, "talk") is None and one.get(kind, "talk") is None
    first = one.put(kind, "talk", b"1", expected=None, session="talk")
    assert first is not None and other.version(kind, "talk") == first
    assert other.put(kind, "talk", b"2", expected=None, session="talk") is None
    second = other.put(kind, "talk", b"22", expected=first, session="talk")
    assert second is not None and one.put(kind, "talk", b"3", expected=first, session="talk") is None
    found = one.get(kind, "talk")
    assert found is not None and (found.raw, found.version) == (b"22", second)
    one.put(kind, "other", b"4", session="other")
    assert list(one.keys(kind)) in (["other", "talk"], ["talk", "other"])
    assert one.erase(kind, session="talk") == 1 and one.erase(kind, key="talk") == 0
    assert one.erase(kind) == 1 and list(other.keys(kind)) == []


def test_nothing_is_left_over(records: Records) -> None:
    store = records("w")
    store.put(RecordKind.PROMPT, "talk", b"1")
    store.sweep()
    assert store.leftovers() == [] and store.get(RecordKind.PROMPT, "talk") is not None


def test_what_a_killed_writer_left_is_named_and_swept(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    storage.make("w")
    store = storage.workspace("w").records
    store.put(RecordKind.PROMPT, "talk", b"1")
    (tmp_path / "w/prompts/.talk.json.0123456789abcdef.tmp").write_bytes(b"half")
    assert store.leftovers() == ["prompts/.talk.json.0123456789abcdef.tmp"]
    store.sweep()
    assert store.leftovers() == []


@pytest.mark.parametrize("inside", [b"", b"a folder"])
def test_a_prompt_that_cannot_be_read_is_a_fault_of_the_storage(tmp_path: Path, inside: bytes) -> None:
    storage = FileStorage(tmp_path)
    storage.make("w")
    place = tmp_path / "w/prompts/talk.json"
    if inside:
        (place / "deep").mkdir(parents=True)
    else:
        place.parent.mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match="Remove it"):
        storage.workspace("w").records.get(RecordKind.PROMPT, "talk")


def test_no_byte_of_what_was_erased_is_left_in_a_file(tmp_path: Path) -> None:
    database = SharedDatabase(tmp_path)
    store = DatabaseRecords(database, "w")
    for number in range(50):
        store.put(RecordKind.SESSION_REPLY, str(number), b"the word is heliotrope " * 400, session="s")
    store.erase(RecordKind.SESSION_REPLY, session="s")
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert files and not any(b"heliotrope" in raw for raw in files)
    database.close()


def test_reading_makes_nothing(tmp_path: Path) -> None:
    store = DatabaseRecords(SharedDatabase(tmp_path / "home"), "w")
    assert store.get(RecordKind.REPLY, "k") is None and store.version(RecordKind.REPLY, "k") is None
    assert list(store.keys(RecordKind.REPLY)) == [] and store.erase(RecordKind.REPLY) == 0
    assert not (tmp_path / "home").exists()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / ".shared").mkdir()
    (tmp_path / ".shared/records.sqlite").write_bytes(b"no database" * 1000)
    store = DatabaseRecords(SharedDatabase(tmp_path), "w")
    with pytest.raises(StorageFailed, match="remove it"):
        store.put(RecordKind.REPLY, "k", b"")
    with pytest.raises(StorageFailed, match="remove it"):
        store.get(RecordKind.REPLY, "k")


def test_a_file_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    database = SharedDatabase(tmp_path)
    store = DatabaseRecords(database, "w")
    store.put(RecordKind.REPLY, "k", b"1")
    for file in (tmp_path / ".shared").iterdir():
        file.unlink()
    assert store.get(RecordKind.REPLY, "k") is None
    store.put(RecordKind.REPLY, "k", b"2")
    found = store.get(RecordKind.REPLY, "k")
    assert found is not None and found.raw == b"2"
    database.close()


def test_a_mark_of_an_erasure_is_stored_once(records: Records) -> None:
    one, other = records("deploys"), records("deploys")
    assert one.put(RecordKind.ERASURE, "erasing", b"", expected=None)
    assert other.put(RecordKind.ERASURE, "erasing", b"", expected=None) is None
    assert other.version(RecordKind.ERASURE, "erasing") and list(other.keys(RecordKind.ERASURE)) == ["erasing"]
    assert not list(records("garden").keys(RecordKind.ERASURE))
    assert other.erase(RecordKind.ERASURE, key="erasing") == 1
    assert one.version(RecordKind.ERASURE, "erasing") is None and one.get(RecordKind.ERASURE, "erasing") is None
