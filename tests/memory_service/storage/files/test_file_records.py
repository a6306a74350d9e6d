"""Keys of a home in files: what an earlier version left in the shared database is moved once; kills and lost files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from memory_service.errors import NotFound, StorageFailed
from memory_service.schemas.keys import NewKey
from memory_service.service import MemoryService
from memory_service.storage.files.file_storage import FileStorage
from memory_service.storage.files.shared_database import DatabaseRecords, SharedDatabase
from memory_service.storage.record_store import RecordKind
from tests.disk import check_durable, recorded
from tests.kills import killed_at
from tests.serving import settings

SHARED = ".shared"
KEYS = ".keys"
LOCKS = (".lock", ".moved.lock")


def opened(home: Path) -> MemoryService:
    return MemoryService(settings(home, embedding_model="none"))


def works(home: Path, key: str) -> bool:
    """True if another process takes a key."""
    with opened(home) as service:
        return service.access.grant(key) is not None


def key_made(home: Path, name: str = "x") -> str:
    with opened(home) as service:
        return service.access.make(NewKey(name=name)).key


def withdraw_key(home: Path, key: str) -> None:
    with opened(home) as service:
        service.access.withdraw(id_of(key))


def id_of(key: str) -> str:
    return key.split("_")[1]


def old_home(home: Path, count: int = 3) -> list[str]:
    """A home as the version before files left it, all of whose keys stand in the shared database; gives the keys."""
    keys = [key_made(home, str(number)) for number in range(count)]
    database = SharedDatabase(home)
    earlier = DatabaseRecords(database, "")
    for path in (home / KEYS).glob("*.json"):
        earlier.put(RecordKind.KEY, path.stem, path.read_bytes())
    database.close()
    shutil.rmtree(home / KEYS)
    return keys


def lost(home: Path) -> None:
    shutil.rmtree(home / SHARED)


def torn(home: Path) -> None:
    for path in (home / SHARED).iterdir():
        path.write_bytes(b"no database" * 1_000)


@pytest.mark.parametrize("harm", [lost, torn])
def test_keys_need_nothing_that_processes_share(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    home = tmp_path / "home"
    key, withdrawn = key_made(home, "a"), key_made(home, "b")
    with opened(home) as service:
        service.access.grant(key)
        service.access.withdraw(id_of(withdrawn))
    assert (home / SHARED).is_dir(), "the last use stands there"
    harm(home)
    with opened(home) as service:
        assert service.access.is_required()
        assert service.access.grant(key) is not None and service.access.grant(withdrawn) is None
        assert [listed.name for listed in service.access.keys()] == ["a"]
        other = service.access.make(NewKey(name="c")).key
        assert service.access.withdraw(id_of(key)).name == "a"
    assert not works(home, key) and works(home, other)


def test_old_keys_are_moved_when_one_is_looked_at(tmp_path: Path) -> None:
    home = tmp_path / "home"
    keys = old_home(home)
    before = tmp_path / "before"
    shutil.copytree(home / SHARED, before)
    assert works(home, keys[0])
    lost(home)
    assert all(works(home, key) for key in keys)
    withdraw_key(home, keys[1])
    shutil.rmtree(home / SHARED, ignore_errors=True)
    shutil.copytree(before, home / SHARED)
    assert [works(home, key) for key in keys] == [True, False, True], "an old copy brings no key back"
    with opened(home) as service:
        assert len(service.access.keys()) == 2


def test_the_database_has_none_after_the_move(tmp_path: Path) -> None:
    home = tmp_path / "home"
    old_home(home)
    with opened(home) as service:
        assert len(service.access.keys()) == 3
    database = SharedDatabase(home)
    assert list(DatabaseRecords(database, "").keys(RecordKind.KEY)) == []
    database.close()
    assert b'"hash"' not in b"".join(path.read_bytes() for path in (home / SHARED).iterdir())


def test_a_home_that_cannot_be_written_keeps_its_old_keys(tmp_path: Path) -> None:
    home = tmp_path / "home"
    keys = old_home(home)
    (home / KEYS).write_text("a file in the place of the folder")
    with opened(home) as service:
        assert all(service.access.grant(key) for key in keys) and len(service.access.keys()) == 3
        with pytest.raises(StorageFailed, match=KEYS):
            service.access.withdraw(id_of(keys[0]))
        with pytest.raises(StorageFailed, match=KEYS):
            service.access.make(NewKey(name="y"))
        assert service.access.grant(keys[0]) is not None


def test_a_torn_database_that_may_hold_keys_opens_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    old_home(home)
    torn(home)
    with opened(home) as service, pytest.raises(StorageFailed, match="damaged"):
        service.access.is_required()


def test_files_are_their_owners_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    key_made(home)
    modes = {path.name.lstrip("."): path.stat().st_mode & 0o777 for path in [home / KEYS, *(home / KEYS).iterdir()]}
    assert modes.pop("keys") == 0o700 and set(modes.values()) == {0o600}
    storage = FileStorage(home)
    draft = home / KEYS / ".0123456789ab.json.0123456789abcdef.tmp"
    draft.write_bytes(b"half")
    assert storage.records.leftovers() == [f"{KEYS}/{draft.name}"]
    storage.sweep("default")
    assert storage.records.leftovers() == []
    storage.close()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"hash": "0"}', "\udcff"])
def test_a_damaged_key_opens_nothing_and_can_be_withdrawn(tmp_path: Path, content: str) -> None:
    home = tmp_path / "home"
    key, other = key_made(home), key_made(home, "y")
    with opened(home) as service:
        token = service.access.sign(id_of(key))
        (home / KEYS / f"{id_of(key)}.json").write_bytes(content.encode("utf-8", "surrogateescape"))
        assert service.access.grant(key) is service.access.signed_grant(token) is None
        assert service.access.is_required() and service.access.grant(other) is not None
        [damaged, _] = service.access.keys()
        assert (damaged.key_id, damaged.workspaces) == (id_of(key), []) and "withdraw" in damaged.name
        service.access.withdraw(id_of(key))
        assert len(service.access.keys()) == 1


def test_a_key_that_was_shown_works_wherever_its_making_is_killed(tmp_path: Path) -> None:
    empty, told = tmp_path / "empty", tmp_path / "told"
    key_made(empty, "first")

    def make() -> None:
        told.write_text(key_made(home))

    for source in (tmp_path / "nothing", empty):
        for last in range(1, 500):
            home = tmp_path / f"{source.name}-{last}"
            if source.exists():
                shutil.copytree(source, home)
            told.unlink(missing_ok=True)
            was_done, _ = killed_at(home, last, make)
            assert not told.exists() or works(home, told.read_text()), last
            # Whoever makes one then is not disturbed by what was left.
            assert works(home, key_made(home, "then")), last
            if was_done:
                break
        else:
            pytest.fail("it took more steps than were tried")
        assert last > 10


def test_a_key_that_was_withdrawn_stays_so_wherever_that_is_killed(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    keys = {old: old_home(old), new: [key_made(new, str(number)) for number in range(3)]}
    for source, (withdrawn, *others) in keys.items():
        for last in range(1, 500):
            home = tmp_path / f"{source.name}-{last}"
            shutil.copytree(source, home)
            withdraw = partial(withdraw_key, home, withdrawn)
            was_done, _ = killed_at(home, last, withdraw)
            was_gone = not works(home, withdrawn)
            assert was_gone or not was_done, last
            assert all(works(home, key) for key in others), last
            if was_gone:
                with pytest.raises(NotFound):
                    withdraw()
            else:
                withdraw()
            # The database of before comes back, as after a power cut.
            shutil.rmtree(home / SHARED, ignore_errors=True)
            if (source / SHARED).exists():
                shutil.copytree(source / SHARED, home / SHARED)
            assert not works(home, withdrawn) and all(works(home, key) for key in others), last
            if was_done:
                break
        else:
            pytest.fail("it took more steps than were tried")
        assert last > 5


def test_a_key_is_durable_when_it_is_shown_and_when_it_is_gone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    key_made(home)
    with opened(home) as service:
        for number in range(2):
            with recorded(home) as making:
                key = service.access.make(NewKey(name=str(number)))
            with recorded(home) as withdrawing:
                service.access.withdraw(key.key_id)
            for tape in (making, withdrawing):
                # Locks make sure of their folder, which is there.
                tape.calls = [call for call in tape.calls if call.name != "mkdir"]
                check_durable(tape, volatile=LOCKS)
                assert tape.names("fsync")


def test_a_key_record_is_of_no_session(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path / "home")
    records = storage.records
    assert list(records.keys(RecordKind.KEY)) == [] and records.erase(RecordKind.KEY) == 0
    assert records.get(RecordKind.KEY, "k") is None and not storage.workspaces()
    raw = json.dumps({"hash": "0"}).encode()
    first = records.put(RecordKind.KEY, "k", raw, expected=None)
    assert first is not None and records.put(RecordKind.KEY, "k", b"2", expected=None) is None
    found = records.get(RecordKind.KEY, "k")
    assert found is not None and (found.raw, found.version, found.session) == (raw, first, "")
    assert records.version(RecordKind.KEY, "k") == first
    assert records.erase(RecordKind.KEY, session="k") == 0
    assert records.erase(RecordKind.KEY, key="k") == 1 and list(records.keys(RecordKind.KEY)) == []
    storage.close()
