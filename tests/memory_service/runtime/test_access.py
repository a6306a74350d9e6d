"""Keys with roles: made, expired and withdrawn, in one service and in two on one home; what is stored of them."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_service.errors import InvalidName, NotFound
from memory_service.runtime.access import ALL_RIGHTS, AccessControl, Grant
from memory_service.schemas.keys import KeyRole, NewKey
from memory_service.service import MemoryService
from tests.serving import settings

# What each role includes.
ROLES: dict[KeyRole, set[KeyRole]] = {
    "read": {"read"},
    "write": {"read", "write", "gateway"},
    "admin": {"read", "write", "admin", "gateway"},
    "gateway": {"gateway"},
}
# Longer than a process may know a key.
KNOWN_SECONDS = 1.3
# A key of the settings.
SETTINGS_KEY = "key-of-the-settings"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with MemoryService(settings(tmp_path / "home", embedding_model="none")) as service:
        yield service


def access_at(service: MemoryService, now: Callable[[], dt.datetime], **settings_keys: str) -> AccessControl:
    """The keys of a home, by another clock."""
    return AccessControl(
        service.storage.records, settings_keys, secret=lambda: service.storage.secret("signing.key", 32), now=now
    )


@pytest.mark.parametrize("role", ROLES)
def test_a_role_includes_these_and_no_others(service: MemoryService, role: KeyRole) -> None:
    grant = service.access.grant(service.access.make(NewKey(name="x", role=role)).key)
    assert grant is not None and grant.role == role
    assert {other for other in ROLES if grant.may(other)} == ROLES[role]


def test_without_keys_none_is_needed_and_with_the_first_one_is(service: MemoryService) -> None:
    assert not service.access.is_required() and service.access.keys() == []
    key = service.access.make(NewKey(name="first"))
    assert service.access.is_required()
    service.access.withdraw(key.key_id)
    assert not service.access.is_required()
    service.access.require()
    assert service.access.is_required() and service.access.knows(), "an open address needs one without any, too"


def test_a_key_is_for_its_workspaces(service: MemoryService) -> None:
    some = service.access.make(NewKey(name="some", workspaces=["team", "team-b", "team"]))
    every = service.access.make(NewKey(name="every", workspaces=["team", "*"]))
    assert (some.workspaces, every.workspaces) == (["team", "team-b"], ["*"])
    grants = [service.access.grant(key.key) for key in (some, every)]
    names = ("team", "team-b", "tea", "team-bc", "*", "")
    assert [[grant.allows(name) for name in names] for grant in grants if grant] == [
        [True, True, False, False, False, False],
        [True] * len(names),
    ]
    assert [grant.is_for_all for grant in grants if grant] == [False, True]
    with pytest.raises(InvalidName):
        service.access.make(NewKey(name="x", workspaces=["No/Where"]))


def test_a_key_ends_with_its_days(service: MemoryService) -> None:
    begins = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
    now = [begins]
    access = access_at(service, lambda: now[0])
    key = access.make(NewKey(name="guest", days=2))
    assert key.created_at == begins and key.expires_at == begins + dt.timedelta(days=2)
    token = access.sign(key.key_id)
    now[0] = begins + dt.timedelta(hours=11)
    assert access.grant(key.key) == access.signed_grant(token) == access.grant_of_id(key.key_id) != None  # noqa: E711
    now[0] = begins + dt.timedelta(days=2, seconds=-1)
    assert access.grant(key.key) is not None
    now[0] = begins + dt.timedelta(days=2)
    assert access.grant(key.key) is access.grant_of_id(key.key_id) is None
    assert access.is_required(), "a key that has expired opens nothing for others"


def test_what_is_no_key_has_no_grant(service: MemoryService) -> None:
    key = service.access.make(NewKey(name="x", role="admin"))
    other = service.access.make(NewKey(name="y", role="read"))
    secret = key.key.split("_", 2)[2]
    wrong = [
        "",
        "ms",
        "ms_",
        "ms__",
        f"ms_{key.key_id}",
        f"ms_{key.key_id}_",
        key.key[:-1],
        key.key + "x",
        key.key.upper(),
        f" {key.key}",
        f"ms_{other.key_id}_{secret}",
        f"ms_000000000000_{secret}",
        f"ms_../../{key.key_id}_{secret}",
        f"ms_{key.key_id}_{secret}\udcff",
        "ms_" + "é" * 12 + "_x",
        key.key_id,
    ]
    assert [text for text in wrong if service.access.grant(text) is not None] == []
    assert service.access.grant(key.key) == Grant(role="admin", key_id=key.key_id)


def test_a_withdrawn_key_is_none(service: MemoryService) -> None:
    key = service.access.make(NewKey(name="x"))
    token = service.access.sign(key.key_id)
    assert service.access.grant(key.key) == service.access.signed_grant(token)
    withdrawn = service.access.withdraw(key.key_id)
    assert withdrawn.name == "x"
    assert service.access.grant(key.key) is service.access.signed_grant(token) is None
    assert service.access.keys() == []
    for key_id in (key.key_id, "", "000000000000", "../signing.key", "settings-00000000", "x" * 10_000):
        with pytest.raises(NotFound, match="keys list"):
            service.access.withdraw(key_id)


def test_keys_of_the_settings_write_and_are_listed_first(service: MemoryService) -> None:
    access = access_at(service, lambda: dt.datetime.now(dt.UTC), **{SETTINGS_KEY: "team"})
    made = access.make(NewKey(name="a"))
    configured, listed = access.keys()
    assert (configured.role, configured.workspaces, configured.is_configured) == ("write", ["team"], True)
    assert listed.key_id == made.key_id and not listed.is_configured
    assert SETTINGS_KEY not in configured.model_dump_json()
    grant = access.grant(SETTINGS_KEY)
    assert grant == access.signed_grant(access.sign(configured.key_id)) == access.grant_of_id(configured.key_id)
    assert grant is not None and (grant.role, grant.workspaces) == ("write", ("team",))
    with pytest.raises(NotFound):
        access.withdraw(configured.key_id)
    access.configure({})
    assert access.grant(SETTINGS_KEY) is access.grant_of_id(configured.key_id) is None


def test_the_last_use_is_listed(service: MemoryService) -> None:
    first, second = (service.access.make(NewKey(name=name)) for name in ("b", "a"))
    service.access.grant(first.key)
    service.access.grant(second.key + "x")
    a, b = service.access.keys()
    assert (a.name, a.last_used_at, b.name) == ("a", None, "b")
    assert b.last_used_at is not None and abs(b.last_used_at - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=1)


def test_the_home_has_only_hashes(service: MemoryService) -> None:
    keys = [service.access.make(NewKey(name="x", role=role)).key for role in ROLES]
    for key in keys:
        service.access.grant(key)
        service.access.sign(key.split("_")[1])
    service.remember("default", "A memory beside the keys.")
    files = [path for path in service.settings.home.rglob("*") if path.is_file()]
    contents = [path.read_bytes() for path in files]
    assert any(b'"hash"' in content for content in contents), "the keys are below the home"
    secrets = [key.split("_", 2)[2].encode() for key in keys]
    assert [path for path, content in zip(files, contents, strict=True) if any(map(content.count, secrets))] == []


@pytest.mark.parametrize("change", ["id", "end", "signature", "cut", "nothing"])
def test_a_forged_token_signs_nobody_in(service: MemoryService, change: str) -> None:
    reader, admin = (service.access.make(NewKey(name=role, role=role)) for role in ("read", "admin"))
    key_id, ends, signature = service.access.sign(reader.key_id).split(".")
    forged = {
        "id": f"{admin.key_id}.{ends}.{signature}",
        "end": f"{key_id}.{int(ends) + 1}.{signature}",
        "signature": f"{key_id}.{ends}.{signature[::-1]}é",
        "cut": f"{key_id}.{ends}",
        "nothing": "",
    }[change]
    assert service.access.signed_grant(forged) is None
    assert service.access.signed_grant(f"{key_id}.{ends}.{signature}") is not None


def test_a_token_ends_after_hours(service: MemoryService) -> None:
    now = [dt.datetime(2026, 11, 20, tzinfo=dt.UTC)]
    access = access_at(service, lambda: now[0])
    token = access.sign(access.make(NewKey(name="x")).key_id)
    now[0] += dt.timedelta(hours=11, minutes=59)
    assert access.signed_grant(token) is not None
    now[0] += dt.timedelta(minutes=2)
    assert access.signed_grant(token) is None


def test_two_services_on_one_home_have_the_same_keys(service: MemoryService) -> None:
    with MemoryService(service.settings) as other:
        assert not other.access.is_required()
        key = service.access.make(NewKey(name="x"))
        time.sleep(KNOWN_SECONDS)
        assert other.access.is_required()
        grant = other.access.grant(key.key)
        assert grant == service.access.grant(key.key) and grant not in (None, ALL_RIGHTS)
        token = other.access.sign(key.key_id)
        assert service.access.signed_grant(token) == grant
        other.access.withdraw(key.key_id)
        time.sleep(KNOWN_SECONDS)
        assert service.access.grant(key.key) is service.access.signed_grant(token) is None
        assert not service.access.is_required()
