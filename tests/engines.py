"""`pytest --engine postgres`: each home that a test opens is a database of its own, in this process and in others.

The database of a home has a name made of the home's path, so whichever process opens it first makes it. Which tests are
left out, `tests/engine_run.py` says. Only the standard library is imported here at first: every child process of a test
loads this.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

    from memory_service.config import Settings
    from memory_service.storage.base import Storage

# The address of the server on which homes are databases; and of the database that others are copied from.
ADDRESS, TEMPLATE = "TEST_HOMES_DATABASE", "homes_template"
# The homes that were opened in this process, and how often one was.
HOMES, OPENINGS = set[str](), [0]
# The databases of homes that this process knows to be there.
_MADE, _MAKING = set[str](), threading.Lock()
_SITE = Path(__file__).with_name("engine_site")
_ENGINES = "memory_service.storage.engines"


def address_of(home: Path) -> str:
    """The address of the database of a home, which is made if it is not there."""
    from psycopg import sql

    path = os.path.realpath(home)
    name = f"home_{hashlib.sha256(os.fsencode(path)).hexdigest()[:24]}"
    with _MAKING:
        if name not in _MADE:
            connection = _server()
            exists, copy = (
                "SELECT FROM pg_database WHERE datname = %s",
                "CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy",
            )
            if connection.execute(exists, [name]).fetchone() is None:
                # Two copies at once would be refused the template.
                connection.execute("SELECT pg_advisory_lock(hashtext(%s))", [TEMPLATE])
                try:
                    if connection.execute(exists, [name]).fetchone() is None:
                        connection.execute(sql.SQL(copy).format(sql.Identifier(name), sql.Identifier(TEMPLATE)))
                        comment = sql.SQL("COMMENT ON DATABASE {} IS {}")
                        connection.execute(comment.format(sql.Identifier(name), sql.Literal(path)))
                finally:
                    connection.execute("SELECT pg_advisory_unlock(hashtext(%s))", [TEMPLATE])
            _MADE.add(name)
    return f"{os.environ[ADDRESS].rpartition('/')[0]}/{name}"


def homes_below(folder: Path) -> dict[str, str]:
    """The databases of all homes below a folder, with the path of each."""
    found = _server().execute(
        "SELECT datname, shobj_description(oid, 'pg_database') FROM pg_database WHERE datname LIKE 'home\\_%%' "
        "AND starts_with(shobj_description(oid, 'pg_database') || '/', %s)",
        [f"{os.path.realpath(folder)}/"],
    )
    return dict(found.fetchall())


def drop_homes_below(folder: Path) -> None:
    """Drop the databases of all homes below a folder, of a test that has ended."""
    from psycopg import sql

    for name in homes_below(folder):
        _server().execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        _MADE.discard(name)


@cache
def _server() -> psycopg.Connection[Any]:
    """The connection of this process by which databases are made and dropped."""
    import psycopg

    connection = psycopg.connect(os.environ[ADDRESS], autocommit=True)
    atexit.register(connection.close)
    return connection


@contextmanager
def homes_in_databases() -> Iterator[None]:
    """A server on which homes are databases, until the block ends, for this process and those that it starts."""
    import psycopg

    from tests.postgres import databases
    from tests.postgres_tables import make_tables

    with databases() as made:
        base = made.empty()
        os.environ[ADDRESS] = base
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_SITE), os.environ.get("PYTHONPATH", ""))))
        with psycopg.connect(base, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {TEMPLATE}".encode())
            connection.execute(f"CREATE DATABASE {TEMPLATE}".encode())
        make_tables(f"{base.rpartition('/')[0]}/{TEMPLATE}")
        yield


def child_environment() -> dict[str, str]:
    """The variables by which homes are databases in a process that does not get all of the environment."""
    return {name: os.environ[name] for name in (ADDRESS, "PYTHONPATH") if ADDRESS in os.environ and name in os.environ}


def install() -> None:
    """Have each storage that this process opens be a database, where homes are databases; and count the storages."""
    if _ENGINES in sys.modules:
        _replace(sys.modules[_ENGINES])
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds the module that opens storages, and gives it another way to open them."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """See `importlib`."""
        spec = PathFinder.find_spec(name, path, target) if name == _ENGINES else None
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _replace(module)

            loader.exec_module = exec_module
        return spec


def _replace(module: ModuleType) -> None:
    open_files = module.open_storage

    def open_storage(settings: Settings) -> Storage:
        OPENINGS[0] += 1
        if ADDRESS in os.environ and not settings.database_url.get_secret_value():
            HOMES.add(os.path.realpath(settings.home))
            from pydantic import SecretStr

            settings = settings.model_copy(update={"database_url": SecretStr(address_of(settings.home))})
        storage: Storage = open_files(settings)
        return storage

    # Files of fixtures are imported before the options are read, and what they import has the function by its name.
    for reader in list(sys.modules.values()):
        if getattr(reader, "open_storage", None) is open_files:
            reader.open_storage = open_storage  # type: ignore[attr-defined]
