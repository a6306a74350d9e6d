"""Who may do what: keys with roles, as the settings name them and as they are made while the service runs.

Invariants: of a made key only a hash is stored; hashes are compared, in the same time for every wrong key; a key that
was withdrawn, or has expired, is none within `_KNOWN_SECONDS` in every process of the home.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar

from memory_service.errors import Forbidden, NotFound, StorageFailed
from memory_service.home import check_workspace
from memory_service.schemas.keys import EVERY_WORKSPACE, AccessKey, KeyRole, MadeKey, NewKey
from memory_service.storage.record_store import RecordKind, RecordStore

_PREFIX: Final = "ms"
_SECRET_BYTES: Final = 24
_KNOWN_SECONDS: Final = 1.0
_SIGNED_IN_SECONDS: Final = 12 * 3600
# The time of the last use is stored so often at most.
_NOTED_SECONDS: Final = 300.0
# In the place of a key that a disk or a person has damaged: it opens nothing, and can be withdrawn.
_UNREADABLE: Final[Mapping[str, Any]] = {
    "hash": "", "name": "cannot be read; withdraw it", "role": "read", "workspaces": (), "created_at": None,
    "expires_at": "1970-01-01T00:00:00+00:00",
}  # fmt: skip
# What a request needs: a role, any key (who answers looks closer), or none.
NeededRole: TypeAlias = KeyRole | Literal["any", "none"]
# What a role includes.
_MAY: Final[Mapping[KeyRole, frozenset[KeyRole]]] = {
    "read": frozenset({"read"}),
    "write": frozenset({"read", "write", "gateway"}),
    "admin": frozenset({"read", "write", "gateway", "admin"}),
    "gateway": frozenset({"gateway"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The rights of a request.

    Attributes:
        role: The role of its key.
        workspaces: The workspaces of its key; `*` alone is all.
        key_id: Its key; empty where none is needed.
    """

    role: KeyRole = "admin"
    workspaces: tuple[str, ...] = (EVERY_WORKSPACE,)
    key_id: str = ""

    @property
    def is_for_all(self) -> bool:
        """True if it is for every workspace."""
        return self.workspaces == (EVERY_WORKSPACE,)

    def allows(self, workspace: str) -> bool:
        """True if it is for a workspace."""
        return self.is_for_all or workspace in self.workspaces

    def may(self, role: NeededRole) -> bool:
        """True if its role includes another one."""
        return role in ("any", "none") or role in _MAY[self.role]

    def check(self, role: NeededRole, what: str = "this") -> None:
        """Refuse what another role is needed for.

        Raises:
            Forbidden: Its role does not include that one.
        """
        if not self.may(role):
            raise Forbidden(f"The key has the role {self.role}, and {what} needs {role}. Use a key that has it.")


# Of a request that needs no key.
ALL_RIGHTS: Final = Grant()
_Answerer = TypeVar("_Answerer", bound=Callable[..., Any])
_ROLE: Final = "needed_role"


def needs(role: NeededRole) -> Callable[[_Answerer], _Answerer]:
    """Decorator of a function that answers requests, at any door: what these need."""

    def decorate(answerer: _Answerer) -> _Answerer:
        setattr(answerer, _ROLE, role)
        return answerer

    return decorate


def needed_role(answerer: object, method: str) -> NeededRole:
    """The role that a request needs: that of its answerer; without one `read` to look, `write` for other methods."""
    role: NeededRole | None = getattr(answerer, _ROLE, None)
    return role or ("read" if method in ("GET", "HEAD") else "write")


class AccessControl:
    """The keys of a home.

    Args:
        records: The small records of the home.
        settings_keys: The setting `api_keys`: the workspace of each key.
        secret: Gives the random bytes of the home that sign who has signed in.
        now: Gives the time.
    """

    def __init__(
        self,
        records: RecordStore,
        settings_keys: Mapping[str, str],
        *,
        secret: Callable[[], bytes],
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        self._records = records
        self._secret = secret
        self._now = now
        self._records_by_id: dict[str, tuple[float, dict[str, Any] | None]] = {}
        self._use_times: dict[str, float] = {}
        self._key_check: tuple[float, bool] | None = None
        self._is_always_required = False
        self.configure(settings_keys)

    def configure(self, settings_keys: Mapping[str, str]) -> None:
        """Take these keys of the settings from the next request on."""
        self._settings_keys = [
            (_hash_of(key), _configured_key(key, workspace)) for key, workspace in settings_keys.items()
        ]

    def require(self) -> None:
        """Have every request need a key from now on, with the last one withdrawn too."""
        self._is_always_required = True

    def knows(self, key: str | None = None) -> bool:
        """True if `is_required`, or what a key allows, is told without a look into the storage."""
        if key is None:
            return (
                self._is_always_required
                or bool(self._settings_keys)
                or (self._key_check is not None and time.monotonic() - self._key_check[0] < _KNOWN_SECONDS)
            )
        key_id = _id_in(key)
        record = self._records_by_id.get(key_id)
        is_noted = time.monotonic() - self._use_times.get(key_id, -_NOTED_SECONDS) < _NOTED_SECONDS
        return not key_id or (record is not None and time.monotonic() - record[0] < _KNOWN_SECONDS and is_noted)

    def is_required(self) -> bool:
        """True if requests need a key: as soon as there is one.

        Raises:
            StorageFailed: Nobody knows, as nothing could be read yet.
        """
        if self._is_always_required or self._settings_keys:
            return True
        now = time.monotonic()
        if self._key_check is None or now - self._key_check[0] > _KNOWN_SECONDS:
            try:
                has_keys = next(iter(self._records.keys(RecordKind.KEY)), None) is not None
            except StorageFailed:
                # What was known last holds, so that a storage that fails opens nothing.
                if self._key_check is None:
                    raise
                has_keys = self._key_check[1]
            self._key_check = now, has_keys
        return self._key_check[1]

    def grant(self, key: str) -> Grant | None:
        """The grant of a key; None for one that is unknown, withdrawn or has expired."""
        grant, key_hash = None, _hash_of(key)
        # No early end: how long this takes must not tell how much of a key was right, or how long one is.
        for settings_hash, access_key in self._settings_keys:
            if hmac.compare_digest(settings_hash, key_hash):
                grant = _grant_of(access_key)
        key_id = _id_in(key)
        fields = self._fields(key_id) if key_id else None
        stored_hash = str(fields["hash"]) if fields else "0" * 64
        if hmac.compare_digest(stored_hash, key_hash) and fields is not None:
            grant = self._valid(key_id, fields)
        if grant is not None:
            self._note_use(grant.key_id)
        return grant

    def grant_of_id(self, key_id: str) -> Grant | None:
        """The grant of a key that somebody has signed in with, by its id."""
        for _, access_key in self._settings_keys:
            if access_key.key_id == key_id:
                return _grant_of(access_key)
        fields = self._fields(key_id)
        return self._valid(key_id, fields) if fields else None

    def sign(self, key_id: str) -> str:
        """The token that a browser keeps of a person who has signed in with a key; it is none after some hours."""
        ends = int(self._now().timestamp()) + _SIGNED_IN_SECONDS
        return f"{key_id}.{ends}.{self._signature(key_id, str(ends))}"

    def signed_grant(self, token: str) -> Grant | None:
        """The grant of a person who has signed in; None for who has not, or whose key was withdrawn."""
        key_id, _, rest = token.partition(".")
        ends, _, signature = rest.partition(".")
        if not hmac.compare_digest(self._signature(key_id, ends).encode(), signature.encode("utf-8", "replace")):
            return None
        return self.grant_of_id(key_id) if int(ends) > self._now().timestamp() else None

    def _signature(self, key_id: str, ends: str) -> str:
        return hmac.new(self._secret(), f"{key_id}.{ends}".encode("utf-8", "replace"), "sha256").hexdigest()

    def make(self, new: NewKey) -> MadeKey:
        """Make a key, which its answer alone tells.

        Raises:
            InvalidName: A workspace has a name that none has.
            StorageFailed: It cannot be stored.
        """
        workspaces = (EVERY_WORKSPACE,) if EVERY_WORKSPACE in new.workspaces else tuple(dict.fromkeys(new.workspaces))
        for name in workspaces:
            if name != EVERY_WORKSPACE:
                check_workspace(name)
        # Signs who signs in with it, and makes the home where nobody has written to it.
        self._secret()
        key_id = secrets.token_hex(6)
        key = f"{_PREFIX}_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        now = self._now()
        expires = now + dt.timedelta(days=new.days) if new.days else None
        fields = {
            "hash": _hash_of(key),
            "name": new.name,
            "role": new.role,
            "workspaces": list(workspaces),
            "created_at": now.isoformat(timespec="seconds"),
            "expires_at": expires.isoformat(timespec="seconds") if expires else None,
        }
        self._records.put(RecordKind.KEY, key_id, json.dumps(fields, ensure_ascii=False).encode(), expected=None)
        self._key_check = None
        return MadeKey(**dict(_access_key(key_id, fields, None)), key=key)

    def keys(self) -> list[AccessKey]:
        """All keys, by name; those of the settings first."""
        made_keys = list[AccessKey]()
        for key_id in self._records.keys(RecordKind.KEY):
            if fields := self._read(key_id):
                made_keys.append(_access_key(key_id, fields, self._last_use(key_id)))
        return [*(key for _, key in self._settings_keys), *sorted(made_keys, key=lambda key: (key.name, key.key_id))]

    def withdraw(self, key_id: str) -> AccessKey:
        """Make a key none any more; gives what it was.

        Raises:
            NotFound: There is no such key, or it is one of the settings.
        """
        fields = self._read(key_id)
        if fields is None or not self._records.erase(RecordKind.KEY, key=key_id):
            raise NotFound(f"There is no made key {key_id[:80]!r}. `memory-service keys list` shows all of them.")
        with suppress(StorageFailed):
            self._records.erase(RecordKind.KEY_USE, key=key_id)
        self._records_by_id.pop(key_id, None)
        self._key_check = None
        return _access_key(key_id, fields, None)

    def _fields(self, key_id: str) -> dict[str, Any] | None:
        now = time.monotonic()
        record = self._records_by_id.get(key_id)
        if record is None or now - record[0] > _KNOWN_SECONDS:
            if len(self._records_by_id) > 10_000:
                # What others made up is not kept.
                self._records_by_id.clear()
            record = self._records_by_id[key_id] = now, self._read(key_id)
        return record[1]

    def _read(self, key_id: str) -> dict[str, Any] | None:
        record = self._records.get(RecordKind.KEY, key_id) if _is_key_id(key_id) else None
        if record is None:
            return None
        with suppress(ValueError):
            fields = json.loads(record.raw)
            if isinstance(fields, dict) and fields.keys() >= _UNREADABLE.keys():
                return fields
        return {**_UNREADABLE}

    def _last_use(self, key_id: str) -> str | None:
        """The time of the last use; None where none is known, as when what the processes share was lost."""
        with suppress(StorageFailed):
            if use := self._records.get(RecordKind.KEY_USE, key_id):
                return use.raw.decode()
        return None

    def _valid(self, key_id: str, fields: Mapping[str, Any]) -> Grant | None:
        expires = fields["expires_at"]
        if expires is not None and dt.datetime.fromisoformat(expires) <= self._now():
            return None
        return Grant(role=fields["role"], workspaces=tuple(fields["workspaces"]), key_id=key_id)

    def _note_use(self, key_id: str) -> None:
        """The time of a use, stored now and then; a key does its work where that cannot be stored."""
        now = time.monotonic()
        if _is_key_id(key_id) and now - self._use_times.get(key_id, -_NOTED_SECONDS) >= _NOTED_SECONDS:
            self._use_times[key_id] = now
            with suppress(StorageFailed):
                self._records.put(RecordKind.KEY_USE, key_id, self._now().isoformat(timespec="seconds").encode())


def _id_in(key: str) -> str:
    """The id in a made key; empty in others."""
    prefix, _, rest = key.partition("_")
    key_id, _, _ = rest.partition("_")
    return key_id if prefix == _PREFIX and _is_key_id(key_id) else ""


def _is_key_id(text: str) -> bool:
    return len(text) == 12 and set(text) <= set("0123456789abcdef")


def _hash_of(key: str) -> str:
    # A made key has 192 random bits: no slow hash is needed to keep it from being guessed.
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def _configured_key(key: str, workspace: str) -> AccessKey:
    # Of its hash alone, so that an id tells nothing of the key.
    key_id = "settings-" + _hash_of(key)[:8]
    return AccessKey(key_id=key_id, name="setting api_keys", role="write", workspaces=[workspace], is_configured=True)


def _grant_of(key: AccessKey) -> Grant:
    return Grant(role=key.role, workspaces=tuple(key.workspaces), key_id=key.key_id)


def _access_key(key_id: str, fields: Mapping[str, Any], last_used_at: str | None) -> AccessKey:
    shown_fields = {name: value for name, value in fields.items() if name != "hash"}
    return AccessKey.model_validate({**shown_fields, "key_id": key_id, "last_used_at": last_used_at})
