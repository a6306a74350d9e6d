"""A database of PostgreSQL: transactions, what its errors say, and migrations; on a real server."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest

from indexer.errors import StoreError, StoreOutdated, StoreReadOnly
from indexer.stores.postgres.migrations import (
    INDEX_TABLES,
    Migration,
    Tables,
    applied_steps,
    migrate_tables,
    require_tables,
)
from indexer.stores.postgres.postgres_address import is_address, passwords_of, place_of
from indexer.stores.postgres.postgres_database import INCARNATION, PostgresDatabase
from indexer.stores.postgres.postgres_errors import DatabaseUnreachable
from tests.postgres import NO_SERVER, PostgresServer, is_installed

pytestmark = pytest.mark.skipif(not is_installed(), reason=NO_SERVER)


@pytest.fixture
def database(empty_database: str) -> Iterator[PostgresDatabase]:
    made = PostgresDatabase(empty_database)
    yield made
    made.close()


def _numbers(database: PostgresDatabase) -> list[int]:
    with database.transaction(read_only=True) as transaction:
        return [number for (number,) in transaction.rows("SELECT n FROM numbers ORDER BY n")]


def _make_numbers(database: PostgresDatabase) -> None:
    with database.transaction() as transaction:
        transaction.execute("CREATE TABLE numbers (n int PRIMARY KEY)")


def test_a_transaction_is_there_as_a_whole_or_not_at_all(database: PostgresDatabase) -> None:
    _make_numbers(database)
    with database.transaction() as transaction:
        transaction.execute("INSERT INTO numbers VALUES (1)")
        transaction.execute("INSERT INTO numbers VALUES (2)")
    with pytest.raises(ZeroDivisionError), database.transaction() as transaction:
        transaction.execute("INSERT INTO numbers VALUES (3)")
        raise ZeroDivisionError
    assert _numbers(database) == [1, 2]


def test_one_within_another_is_undone_alone_and_lasts_with_it(database: PostgresDatabase) -> None:
    _make_numbers(database)
    with database.transaction() as outer:
        outer.execute("INSERT INTO numbers VALUES (1)")
        with pytest.raises(StoreError), database.transaction() as inner:
            inner.execute("INSERT INTO numbers VALUES (2)")
            inner.execute("INSERT INTO numbers VALUES (1)")
        with database.transaction() as inner:
            inner.execute("INSERT INTO numbers VALUES (3)")
    assert _numbers(database) == [1, 3]
    with pytest.raises(ZeroDivisionError), database.transaction():
        with database.transaction() as inner:
            inner.execute("INSERT INTO numbers VALUES (4)")
        raise ZeroDivisionError
    assert _numbers(database) == [1, 3]


def test_a_reader_sees_one_state(database: PostgresDatabase) -> None:
    _make_numbers(database)
    with database.transaction(read_only=True) as reader:
        assert reader.rows("SELECT n FROM numbers") == []
        writer = Thread(target=lambda: _insert(database, 1))
        writer.start()
        writer.join()
        assert reader.rows("SELECT n FROM numbers") == []
    assert _numbers(database) == [1]
    with pytest.raises(StoreReadOnly), database.transaction(read_only=True) as reader:
        reader.execute("INSERT INTO numbers VALUES (2)")


def _insert(database: PostgresDatabase, number: int) -> None:
    with database.transaction() as transaction:
        transaction.execute("INSERT INTO numbers VALUES (%s)", [number])


def test_the_settings_of_a_transaction_end_with_it(database: PostgresDatabase) -> None:
    asked = "SELECT current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')"
    with database.transaction() as transaction:
        assert transaction.row(asked) == ("30s", "25s")
    with database.transaction(read_only=True) as transaction:
        assert transaction.row(asked) == ("30s", "0")
    with database.pool.connection() as connection:
        assert connection.execute(asked).fetchone() == ("0", "0")
    _make_numbers(database)
    _insert(database, 1)
    with database.transaction() as holder:
        holder.execute("UPDATE numbers SET n = 2")
        thread_error = list[Exception]()

        def waits() -> None:
            try:
                with database.transaction() as transaction:
                    transaction.execute("SET LOCAL lock_timeout = '100ms'")
                    transaction.execute("UPDATE numbers SET n = 3")
            except StoreError as error:
                thread_error.append(error)

        waiter = Thread(target=waits)
        waiter.start()
        waiter.join()
        assert [str(error).partition(". ")[2] for error in thread_error] == [
            "Another transaction kept a lock too long: try again."
        ]


def test_a_server_that_was_killed_is_found_again_without_an_error() -> None:
    server = PostgresServer(is_durable=True)
    database = PostgresDatabase(server.address())
    try:
        _make_numbers(database)
        with database.transaction(read_only=True) as transaction:
            incarnation = transaction.row(f"SELECT {INCARNATION}")
        _insert(database, 1)
        server.kill()
        with pytest.raises(DatabaseUnreachable, match="Start it, or correct database_url"):
            _insert(database, 2)
        server.start()
        _insert(database, 3)
        assert _numbers(database) == [1, 3]
        with database.transaction(read_only=True) as transaction:
            assert transaction.row(f"SELECT {INCARNATION}") != incarnation
    finally:
        database.close()
        server.close()


def test_one_statement_is_a_transaction_of_its_own_or_a_part_of_one(database: PostgresDatabase) -> None:
    _make_numbers(database)
    asked = "SELECT current_setting('app.ws', true), current_setting('lock_timeout')"
    assert database.run(asked, workspace=7, read_only=True).fetchall() == [("7", "30s")]
    assert database.run(asked).fetchall() == [("0", "30s")]
    database.run("INSERT INTO numbers VALUES (1)")
    with pytest.raises(StoreError):
        database.run("INSERT INTO numbers VALUES (2), (1)")
    with pytest.raises(ZeroDivisionError), database.transaction():
        database.run("INSERT INTO numbers VALUES (3)")
        assert database.run("SELECT n FROM numbers", read_only=True).fetchall() == [(1,), (3,)]
        raise ZeroDivisionError
    with database.transaction():
        with pytest.raises(StoreError):
            database.run("INSERT INTO numbers VALUES (1)")
        database.run("INSERT INTO numbers VALUES (4)")
    assert _numbers(database) == [1, 4]


def test_one_statement_behind_a_restart_is_run_once_and_without_an_error() -> None:
    server = PostgresServer(is_durable=True)
    database = PostgresDatabase(server.address())
    try:
        _make_numbers(database)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: database.run("INSERT INTO numbers VALUES (%s)", [n]), range(8)))
        server.kill()
        server.start()
        database.run("INSERT INTO numbers VALUES (8)")
        assert _numbers(database) == list(range(9))
    finally:
        database.close()
        server.close()


@pytest.mark.parametrize(
    "address", ["postgresql://eve:s3cr%20et@127.0.0.1:1/x", "postgresql://127.0.0.1:1/x?password=s3cr%20et"]
)
def test_no_error_holds_a_password(address: str) -> None:
    database = PostgresDatabase(address)
    with pytest.raises(DatabaseUnreachable) as raised, database.transaction() as transaction:
        transaction.execute("SELECT 1")
    assert "127.0.0.1:1/x" in str(raised.value)
    assert "s3cr" not in str(raised.value)
    assert raised.value.__suppress_context__


@pytest.mark.parametrize(
    ("address", "place", "secrets"),
    [
        ("postgresql://eve:s3#cret@db:5432/x", "db:5432/x", {"s3#cret"}),
        ("postgres://eve:s3%40cr%2Fet@db/x", "db/x", {"s3%40cr%2Fet", "s3@cr/et"}),
        ("postgresql://one:1,two:2/x?target_session_attrs=read-write", "one:1,two:2/x", set()),
        ("postgresql://[::1]:5432/x?password=a+b%20c", "[::1]:5432/x", {"a+b%20c", "a+b c"}),
        ("postgresql:///x?host=%2Frun%2Fpg&user=eve", "/run/pg/x", set()),
        ("postgresql://", "of the environment (PGHOST, PGDATABASE)", set()),
    ],
)
def test_of_an_address_messages_have_the_place(address: str, place: str, secrets: set[str]) -> None:
    assert is_address(address) and place_of(address) == place
    assert set(passwords_of(address)) == secrets


@pytest.mark.parametrize(
    "address", ["postgresql://eve:s3/cret@db/x", "postgresql://eve:s3@cret@db/x", "postgresql://db?password=s3@cret"]
)
def test_an_address_whose_parts_can_be_mistaken_is_none(address: str) -> None:
    assert not is_address(address)
    assert "s3" not in place_of(address) and "cret" not in place_of(address)


def test_each_refusal_has_a_remedy_of_its_own(empty_database: str) -> None:
    base, _, name = empty_database.rpartition("/")
    host = base.rpartition("@")[2]
    for address, remedy in (
        (f"{base}/{name}_x", "Create that database"),
        (f"postgresql://no_such_role@{host}/{name}", "Correct user and password"),
        (f"{empty_database}?sslmode=require", "Set sslmode"),
        (f"{empty_database}?no_such_option=1", "Correct database_url."),
        ("postgresql://127.0.0.1:1/x", "Start it"),
    ):
        database = PostgresDatabase(address)
        with pytest.raises(DatabaseUnreachable) as raised, database.transaction() as transaction:
            transaction.execute("SELECT 1")
        assert remedy in str(raised.value) and "connection to server" not in str(raised.value)
        database.close()


def test_a_role_without_rights_is_told_what_to_do(database: PostgresDatabase, empty_database: str) -> None:
    _make_numbers(database)
    with database.transaction() as transaction:
        transaction.execute("DROP ROLE IF EXISTS nobody_at_all")
        transaction.execute("CREATE ROLE nobody_at_all LOGIN")
    base, _, rest = empty_database.rpartition("@")
    other = PostgresDatabase(f"postgresql://nobody_at_all@{rest}")
    assert base
    with pytest.raises(StoreReadOnly, match="lacks rights"):
        _numbers(other)
    other.close()
    with database.transaction() as transaction:
        transaction.execute("DROP ROLE nobody_at_all")


def test_a_database_without_tables_is_given_them_and_one_that_is_newer_is_refused(database: PostgresDatabase) -> None:
    require_tables(database, [INDEX_TABLES])
    require_tables(database, [INDEX_TABLES])
    assert database.number("none") is None
    made = database.number("some", make=True)
    assert made is not None
    assert database.number("some") == made
    assert migrate_tables(database, [INDEX_TABLES]) == []
    with database.transaction() as transaction:
        transaction.execute("INSERT INTO schema_migrations VALUES ('index', 9999, 'later', 'x')")
    with pytest.raises(StoreOutdated, match="a newer program made"):
        require_tables(database, [INDEX_TABLES])


@pytest.mark.parametrize("table", ["workspaces (id int)", "schema_migrations (version text)"])
def test_tables_of_another_program_are_left_alone(empty_database: str, table: str) -> None:
    database = PostgresDatabase(empty_database)
    with database.connect() as admin:
        admin.execute(f"CREATE TABLE {table}".encode())
    for act in (require_tables, migrate_tables):
        with pytest.raises(StoreOutdated, match=r"another program's\. Name a database"):
            act(database, [INDEX_TABLES])
    assert database.run("SELECT count(*) FROM pg_class WHERE relname = 'index_files'").fetchall() == [(0,)]
    database.close()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_every_text_is_refused(
    database: PostgresDatabase, empty_database: str, encoding: str
) -> None:
    name = f"{empty_database.rpartition('/')[2]}_e"
    with database.connect() as admin:
        admin.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0".encode()
        )
    other = PostgresDatabase(f"{empty_database}_e")
    try:
        for act in (require_tables, migrate_tables):
            with pytest.raises(StoreError, match=f"has the encoding {encoding}, which cannot hold every text"):
                act(other, [INDEX_TABLES])
    finally:
        other.close()
        with database.connect() as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_a_step_that_fails_leaves_nothing_and_the_next_try_goes_on(
    database: PostgresDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "some_tables"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "0001_first.sql").write_text("CREATE TABLE first (n int);")
    (package / "0002_second.sql").write_text("CREATE TABLE second (n int); SELECT 1 / 0;")
    monkeypatch.syspath_prepend(tmp_path)
    part = Tables("some", "some_tables", 1)
    with pytest.raises(StoreError):
        migrate_tables(database, [part])
    with database.transaction(read_only=True) as transaction:
        assert list(applied_steps(transaction)) == [("some", 1)]
        assert transaction.row("SELECT to_regclass('second')") == (None,)
    (package / "0002_second.sql").write_text("-- online\nCREATE INDEX CONCURRENTLY ON first (n);\n")
    assert migrate_tables(database, [part]) == ["some 0002 second"]
    assert part.migrations()[1] == Migration(2, "second", "-- online\nCREATE INDEX CONCURRENTLY ON first (n);\n")
    (package / "0001_first.sql").write_text("CREATE TABLE first (n bigint);")
    with pytest.raises(StoreOutdated, match="is not the one of this program"):
        migrate_tables(database, [part])


def test_reads_and_writes_of_many_threads_share_a_few_connections(empty_database: str) -> None:
    """The end of a read is not waited for; whoever waits for a connection has it all the same."""
    database = PostgresDatabase(empty_database, connections=2)
    _make_numbers(database)

    def work(first: int) -> None:
        for number in range(first, first + 20):
            _insert(database, number)
            assert number in _numbers(database)

    threads = [Thread(target=work, args=(first,)) for first in range(0, 160, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _numbers(database) == list(range(160))
    database.close()


@pytest.mark.parametrize("named", ["", "?tcp_user_timeout=7000"])
def test_a_server_that_vanished_without_a_word_is_given_up(empty_database: str, named: str) -> None:
    database = PostgresDatabase(f"{empty_database}{named}")
    with database.transaction() as transaction, socket.socket(fileno=os.dup(transaction.connection.fileno())) as line:
        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        timeout = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        assert timeout == (7_000 if named else 30_000), "what an address says itself comes first"
    database.close()
