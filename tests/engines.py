"""`pytest --engine postgres`: each home that a test opens is a database of its own, in this process and in others.

The database of a home has a name made of the home's path, so whichever process opens it first makes it. Tests that are
about files themselves are left out: each room with its reason, and a test that fails after it has itself opened, listed
or changed something in the folder of a home. Only the standard library is imported here at first: every child process
of a test loads this.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_service.config import Settings
    from memory_service.storage.base import Storage

# The address of the server on which homes are databases; and of the database that others are copied from.
ADDRESS, TEMPLATE = "TEST_HOMES_DATABASE", "homes_template"
# The homes that were opened in this process.
HOMES = set[str]()
LOOKS_INTO_FILES = "the test itself looks into the files of its home"
_TESTS = str(Path(__file__).parent) + os.sep
_SITE = Path(__file__).with_name("engine_site")
_ENGINES = "memory_service.storage.engines"

# What runs on files alone: beginnings of the names of tests, each with the reason.
EXCUSED: dict[str, str] = {
    "tests/memory_service/storage/": "the contract suites have both engines, or are about the files of one",
    "tests/indexer/": "the index has its own suites for both stores",
    "tests/memory_service/test_old_home.py": "reads a home in files",
    "tests/memory_service/test_extra_paths.py": "folders of a machine are refused on PostgreSQL",
    "tests/memory_service/test_home.py": "is about the folder of a home",
    "tests/memory_service/sync/": "is about a person's own folder",
    "tests/memory_service/service/test_facade.py::test_a_home_that_is_a_file_is_told": "is about the folder of a home",
    "tests/memory_service/service/test_facade.py::test_closing_gives_back_all_files": "is about open files",
    "tests/memory_service/service/test_memory_use_cases.py::test_what_is_forgotten_stands_in_no_answer_that_is_kept": (
        "looks for bytes in the file of records"
    ),
    "tests/memory_service/service/test_nobody.py::test_a_thing_that_is_not_there_is_missed_by_its_name": (
        "expects the folder of the home in a message"
    ),
    "tests/memory_service/service/test_remembering_once.py::": "kills at each call of the file system",
}


def excuse(name: str) -> str:
    """The reason why a test runs on files alone; empty if it runs on both engines."""
    return next((reason for beginning, reason in EXCUSED.items() if name.startswith(beginning)), "")


def address_of(home: Path) -> str:
    """The address of the database of a home, which is made if it is not there."""
    import psycopg
    from psycopg import sql

    server = os.environ[ADDRESS]
    path = os.path.realpath(home)
    name = f"home_{hashlib.sha256(os.fsencode(path)).hexdigest()[:24]}"
    with psycopg.connect(server, autocommit=True) as connection:
        if connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
            # Two copies at once would be refused the template.
            connection.execute("SELECT pg_advisory_lock(hashtext(%s))", [TEMPLATE])
            if connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
                connection.execute(
                    sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(TEMPLATE))
                )
                connection.execute(
                    sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(path))
                )
    return f"{server.rpartition('/')[0]}/{name}"


def drop_homes_below(folder: Path) -> None:
    """Drop the databases of all homes below a folder, of a test that has ended."""
    import psycopg
    from psycopg import sql

    path = os.path.realpath(folder)
    with psycopg.connect(os.environ[ADDRESS], autocommit=True) as connection:
        rows = connection.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE 'home\\_%%' "
            "AND starts_with(shobj_description(oid, 'pg_database') || '/', %s)",
            [f"{path}/"],
        ).fetchall()
        for (name,) in rows:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


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


def install() -> None:
    """Have each storage that this process opens by its settings be the database of the home, unless they name one."""
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
        if not settings.database_url.get_secret_value():
            HOMES.add(os.path.realpath(settings.home))
            from pydantic import SecretStr

            settings = settings.model_copy(update={"database_url": SecretStr(address_of(settings.home))})
        storage: Storage = open_files(settings)
        return storage

    # Files of fixtures are imported before the options are read, and what they import has the function by its name.
    for reader in list(sys.modules.values()):
        if getattr(reader, "open_storage", None) is open_files:
            reader.open_storage = open_storage  # type: ignore[attr-defined]


class FilesOfHomes:
    """Files of homes that a test itself opens, lists or changes: it is about them, whatever else it asks."""

    _EVENTS = frozenset(
        {
            "open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink",
            "os.chmod", "os.walk", "pathlib.Path.glob", "pathlib.Path.rglob",
        }
    )  # fmt: skip
    _OURS = (os.sep + "memory_service" + os.sep, os.sep + "indexer" + os.sep)

    def __init__(self) -> None:
        self._paths = set[str]()
        self._is_installed = False

    def begin(self) -> None:
        """Forget those of the test before."""
        self._paths.clear()
        if not self._is_installed:
            self._is_installed = True
            sys.addaudithook(self._audit)

    def found(self, folder: Path | None) -> bool:
        """True if the test looked for something in the folder of a home; `folder` is its temporary one."""
        homes = [*HOMES, *([os.path.realpath(folder / "home")] if folder else [])]
        return any(
            f"{path}{os.sep}".startswith(home + os.sep) for path in map(os.path.realpath, self._paths) for home in homes
        )

    def _audit(self, event: str, given: tuple[Any, ...]) -> None:
        if event not in self._EVENTS or not given or not isinstance(given[0], str | bytes | os.PathLike):
            return
        frame = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(_TESTS):
                self._paths.add(os.fsdecode(given[0]))
                return
            if any(part in name for part in self._OURS):
                return
            frame = frame.f_back  # type: ignore[assignment]
