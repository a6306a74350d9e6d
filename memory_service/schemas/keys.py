"""Values of keys: what a key may do, for which workspaces, and until when; the key itself is told once."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

from pydantic import Field

from memory_service.schemas.base import Answer, Request

KeyRole = Literal["read", "write", "admin", "gateway"]
EVERY_WORKSPACE = "*"

KeyId = Annotated[str, Field(description="Id of the key; `DELETE /v1/keys/{key_id}` withdraws it.")]
_Role = Annotated[
    KeyRole,
    Field(
        description="`read`: sees; `write`: changes, too; `admin`: makes and withdraws keys, too; `gateway`: asks "
        "models through the gateway, and nothing else."
    ),
]
_Workspaces = Annotated[
    list[str],
    Field(description="Names of the workspaces that it is for; `*` alone is all of them.", examples=[["support"]]),
]


class NewKey(Request):
    """A key to make."""

    name: str = Field(
        min_length=1, max_length=80, description="Whose it is, or what for.", examples=["the agent of the help desk"]
    )
    role: _Role = "write"
    workspaces: Annotated[list[str], Field(min_length=1, max_length=100)] = Field(
        default=["*"], description="Names of the workspaces that it is for; `*` is all of them."
    )
    days: int | None = Field(
        default=None, ge=1, le=36_500, description="After so many days it is no key any more; null for never."
    )


class AccessKey(Answer):
    """A key without its secret."""

    key_id: KeyId
    name: str = Field(description="Whose it is, or what for.")
    role: _Role
    workspaces: _Workspaces
    created_at: dt.datetime | None = Field(
        default=None, description="Time at which it was made; null for one of the setting `api_keys`."
    )
    expires_at: dt.datetime | None = Field(default=None, description="Time from which on it is no key; null for never.")
    last_used_at: dt.datetime | None = Field(
        default=None, description="Time of its last use, to some minutes; null where none is known."
    )
    is_configured: bool = Field(default=False, description="Whether it is one of the setting `api_keys`.")


class MadeKey(AccessKey):
    """A key that was made."""

    key: str = Field(description="The key itself. It is told this once: only its hash is stored.")


class AccessKeys(Answer):
    """All keys, by name."""

    keys: list[AccessKey] = Field(description="The keys; an empty list where requests need none.")
