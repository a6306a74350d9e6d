"""Addresses of PostgreSQL databases: what of them messages may tell, and how connections to them are made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

# libpq reads more than this: where a password has an "@", "/" or "?" that is not written as %40, %2F or %3F, it takes a
# part of that for a host, a port or a name, and so would messages.
_HOST = r"(?:\[[^]@/?\s]*\]|[^]\[:@/?,\s]*)(?::\d*)?"
_ADDRESS = re.compile(
    rf"postgres(?:ql)?://(?:[^:@/?\s]*(?::(?P<password>[^@/?\s]*))?@)?(?P<hosts>{_HOST}(?:,{_HOST})*)"
    r"(?P<name>/[^@?\s]*)?(?:\?(?P<options>[^@\s]*))?"
)
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
CONNECT_SECONDS = 5
# A server that vanished without a word, with its machine or its network, is given up after so long; what an address
# says itself comes first.
_SILENT_SECONDS = 30
_OWN_OPTIONS = {
    "connect_timeout": CONNECT_SECONDS,
    "application_name": "memory-service",
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": _SILENT_SECONDS * 1_000,
}


def is_address(text: str) -> bool:
    """True if a text is the address of a database, `postgresql://…`, no part of which can be mistaken for another one.

    Source: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS
    """
    return _ADDRESS.fullmatch(text) is not None and _PERCENT.search(text) is None


def place_of(address: str) -> str:
    """An address for messages: without user, password and options."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return "at an address that cannot be read"
    hosts = match["hosts"] or unquote(_options(address).get("host", ""))
    return f"{hosts}{match['name'] or ''}" or "of the environment (PGHOST, PGDATABASE)"


def passwords_of(address: str) -> Iterator[str]:
    """The password of an address, in each way that it may be written."""
    if (match := _ADDRESS.fullmatch(address)) is not None:
        for password in (match["password"] or "", _options(address).get("password", "")):
            yield from filter(None, {password, unquote(password)})


def _options(address: str) -> dict[str, str]:
    """The options of an address by name, as they are written there."""
    match = _ADDRESS.fullmatch(address)
    pairs = ((match["options"] or "") if match else "").split("&")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def connection_options(address: str, *, through_pooler: bool) -> dict[str, Any]:
    """Options of connections to an address, which may be that of a pooler in transaction mode."""
    named = _options(address)
    return {
        "autocommit": True,
        "client_encoding": "utf8",
        # Statements that are prepared by name are not those of the next transaction's connection.
        "prepare_threshold": None if through_pooler else 5,
        **{name: value for name, value in _OWN_OPTIONS.items() if name not in named},
    }
