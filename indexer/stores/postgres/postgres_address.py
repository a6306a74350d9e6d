"""Addresses of PostgreSQL databases: what of them messages may tell, and how connections to them are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

CONNECT_SECONDS = 5
# A server that vanished without a word, with its machine or its network, is given up after so long; what an address
# says itself comes first.
_SILENT_SECONDS = 30
_KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": _SILENT_SECONDS * 1_000,
}


def place_of(address: str) -> str:
    """An address for messages: without user, password and options."""
    parts = urlsplit(address)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


def passwords_of(address: str) -> Iterator[str]:
    """The password of an address, in each way that it may be written."""
    parts = urlsplit(address)
    for password in [parts.netloc.rpartition("@")[0].partition(":")[2], *parse_qs(parts.query).get("password", ())]:
        yield from filter(None, {password, unquote(password)})


def connection_options(address: str, *, through_pooler: bool) -> dict[str, Any]:
    """Options of connections to an address, which may be that of a pooler in transaction mode."""
    named = parse_qs(urlsplit(address).query, keep_blank_values=True)
    return {
        "autocommit": True,
        # Statements that are prepared by name are not those of the next transaction's connection.
        "prepare_threshold": None if through_pooler else 5,
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "memory-service",
        **{name: value for name, value in _KEEPALIVES.items() if name not in named},
    }
