"""Small records in a database whose connections break in the middle of a change, and whose clock is another one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from indexer.stores import PostgresDatabase
from memory_service.errors import StorageFailed
from memory_service.storage.postgres.postgres_records import ExpiredRecords, PostgresRecords
from memory_service.storage.record_store import RecordKind
from tests.memory_service.storage.postgres_workspaces import PostgresWorkspaces
from tests.memory_service.storage.postgres_workspaces import postgres_workspaces as postgres_workspaces

REPLY = RecordKind.REPLY


def records_of(workspaces: PostgresWorkspaces, name: str = "w") -> PostgresRecords:
    return PostgresRecords(workspaces.database(), name, ExpiredRecords())


@pytest.mark.parametrize(
    "act",
    [
        lambda records: records.put(REPLY, "k", b"2"),
        lambda records: records.put(REPLY, "k", b"2", expected=records.version(REPLY, "k")),
        lambda records: records.put(REPLY, "new", b"2", expected=None),
        lambda records: records.erase(REPLY, key="k"),
        lambda records: records.trim(REPLY, most=0, most_bytes=0),
    ],
)
@pytest.mark.parametrize("step", [1, 2])
def test_a_change_whose_connection_is_cut_is_none(
    postgres_workspaces: PostgresWorkspaces, act: Callable[[PostgresRecords], object], step: int
) -> None:
    records = records_of(postgres_workspaces)
    version = records.put(REPLY, "k", b"1", session="s")
    with postgres_workspaces.cutting(step), pytest.raises(StorageFailed, match="the same again will do then"):
        act(records)
    found = records.get(REPLY, "k")
    assert found is not None and (found.raw, found.version, found.session) == (b"1", version, "s")
    assert list(records.keys(REPLY)) == ["k"]
    act(records)


def test_the_clock_of_the_caller_does_not_matter(postgres_workspaces: PostgresWorkspaces) -> None:
    """What counts is how long a record is to be there, by the clock of the database alone."""
    records = records_of(postgres_workspaces)
    records.put(REPLY, "k", b"1", expires=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1))
    database: PostgresDatabase = postgres_workspaces.database()
    number = database.number("w")
    assert number is not None
    with database.transaction(number) as transaction:
        row = transaction.row("SELECT extract(epoch FROM expires - clock_timestamp())::float FROM records")
        assert row is not None and 3500 < row[0] <= 3600
        transaction.execute("UPDATE records SET expires = clock_timestamp()")
    assert records.get(REPLY, "k") is None and list(records.keys(REPLY)) == []
    with database.transaction(number) as transaction:
        assert transaction.row("SELECT count(*) FROM records") == (1,)
    # Another process, on a day of its own, makes room.
    records_of(postgres_workspaces).put(REPLY, "other", b"2", expires=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1))
    with database.transaction(number) as transaction:
        assert transaction.row("SELECT count(*) FROM records") == (1,)


def test_of_the_claims_of_many_processes_each_is_granted_once(postgres_workspaces: PostgresWorkspaces) -> None:
    stores = [records_of(postgres_workspaces) for _ in range(4)]
    for store in stores:
        store.keys(REPLY)

    def claims(store: PostgresRecords) -> list[int]:
        granted = [number for number in range(40) if store.put(REPLY, str(number), b"mine", expected=None)]
        return granted + [
            100 + number
            for number in range(10)
            if (found := store.get(REPLY, str(number)))
            and found.raw == b"mine"
            and store.put(REPLY, str(number), b"again", expected=found.version)
        ]

    with ThreadPoolExecutor(4) as threads:
        numbers = [number for granted in threads.map(claims, stores) for number in granted]
    assert sorted(numbers) == [*range(40), *range(100, 110)]


@pytest.mark.parametrize("key", ["a\0b", "half \ud800", "\N{PILE OF POO}", "x" * 2000])
def test_a_key_of_any_characters_is_a_key(postgres_workspaces: PostgresWorkspaces, key: str) -> None:
    records = records_of(postgres_workspaces)
    assert records.get(REPLY, key) is None
    records.put(REPLY, key, b"\0\xff", session=key[:3])
    found = records.get(REPLY, key)
    assert found is not None and found.raw == b"\0\xff" and list(records.keys(REPLY)) == [key]
    assert records.erase(REPLY, session=key[:3]) == 1
