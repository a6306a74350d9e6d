"""Errors of a PostgreSQL database: of each, the error of the index library, and what to do.

Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from indexer.errors import StoreCorrupt, StoreError, StoreFull, StoreLocked, StoreOutdated, StoreReadOnly

_UNREACHABLE = "Start it, or correct database_url; the same again will do then."
_LOGIN = "Correct user and password in database_url."
_DATABASE = "Create that database, or correct its name in database_url."
_ADDRESS = "Correct database_url."
OWN_DATABASE = "Name a database in database_url that memory-service has to itself."


class DatabaseUnreachable(StoreError):
    """The database does not answer, or the connection to it broke."""


# By SQLSTATE, or by the class of it.
_KINDS: Final[Mapping[str, tuple[type[StoreError], str]]] = {
    "53100": (StoreFull, "Give its disk more room, and try again."),
    "53300": (StoreError, "It has too few connections: raise its max_connections, or put a pooler before it."),
    "25006": (StoreReadOnly, "It takes no writes, as a standby does: set database_url to the primary."),
    "25P03": (StoreLocked, "The process was stopped for too long within a change: try again."),
    "42501": (
        StoreReadOnly,
        "Its role lacks rights: `memory-service doctor` names what the owner of the tables has to grant; to make and "
        "change tables, run `memory-service migrate` as that owner.",
    ),
    "55P03": (StoreLocked, "Another transaction kept a lock too long: try again."),
    "57014": (StoreLocked, "A statement took too long: try again."),
    "40": (StoreLocked, "Another transaction was faster: try again."),
    "42P01": (StoreOutdated, "Its tables are of another version: run `memory-service migrate`."),
    "42P07": (StoreOutdated, f"A table of that name is another program's. {OWN_DATABASE}"),
    "42703": (StoreOutdated, "Its tables are of another version: run `memory-service migrate`."),
    "23503": (StoreLocked, "What it belongs to is gone: try again."),
    "08": (DatabaseUnreachable, _UNREACHABLE),
    "28": (DatabaseUnreachable, _LOGIN),
    "3D": (DatabaseUnreachable, _DATABASE),
    "57": (DatabaseUnreachable, _UNREACHABLE),
    "XX": (StoreCorrupt, "Look into its log, and restore a backup."),
}

# Where it was tried is the place of the database, which a message has, and who may not know it is not told.
_OF_CONNECTING = re.compile(
    r"connection (?:failed|is bad): "
    r"(?:connection to server (?:at|on socket) \S+(?: \([^)]*\))?(?:, port \d+)? failed: )?"
)

# By what a server or a pooler says to one that it does not let in, which comes as text alone.
_REFUSALS: Final[Mapping[str, tuple[type[StoreError], str]]] = {
    "connection slots": _KINDS["53300"],
    "connections for role": (StoreError, "Raise the limit of connections that the role has."),
    "too many ": _KINDS["53300"],
    "authentication failed": (DatabaseUnreachable, _LOGIN),
    "no password supplied": (DatabaseUnreachable, "Write the password into database_url."),
    "pg_hba.conf": (DatabaseUnreachable, "Let this machine, user and database in there, or correct database_url."),
    "FATAL:  role ": (DatabaseUnreachable, _LOGIN),
    "FATAL:  database ": (DatabaseUnreachable, _DATABASE),
    **dict.fromkeys(
        ("SSL was required", "SSL negotiation", "certificate"),
        (DatabaseUnreachable, "Set sslmode and certificates in database_url as the server has TLS."),
    ),
    "during recovery": _KINDS["25006"],
    "session is read-only": _KINDS["25006"],
    "statement pooling mode": (DatabaseUnreachable, "Set the pooler to pool_mode = transaction."),
    "URI query parameter": (DatabaseUnreachable, _ADDRESS),
    "connection option": (DatabaseUnreachable, _ADDRESS),
    "sslmode value": (DatabaseUnreachable, _ADDRESS),
}


def explain_error(error: Exception, state: str) -> tuple[type[StoreError], str, str]:
    """The class of an error of the database in the index library, its reason, and what to do.

    Args:
        error: The error of the driver.
        state: Its SQLSTATE; empty where no server answered.
    """
    kind, remedy = _KINDS.get(state) or _KINDS.get(state[:2]) or (StoreError, "See the log of the database.")
    if not state:
        # A refused connection, or one that broke.
        kind, remedy = DatabaseUnreachable, _UNREACHABLE
    reason = _OF_CONNECTING.sub("", str(error).strip().partition("\n")[0]) or type(error).__name__
    if state[:2] in ("", "08", "0A"):
        kind, remedy = next((refusal for text, refusal in _REFUSALS.items() if text in reason), (kind, remedy))
    return kind, reason, remedy
