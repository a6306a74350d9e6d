"""The base of all shapes on the wire: bodies that the API takes and gives, and the fields that many of them have.

Invariants: frozen; a request with an unknown field is refused, an answer with one is accepted, so that an older client
works with a newer server.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memory_service.errors import InvalidRequest

# In the document alone: what does not match is answered with what to do.
SESSION_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
MAX_QUERY_CHARS = 10_000
MAX_BUDGET_TOKENS = 200_000
Pressure = Literal["ok", "soft", "hard"]
MAX_TOKENS = 1_000_000_000
SessionName = Annotated[str, Field(description="Id of the session.", examples=["support-42"])]
ModelName = Annotated[
    str | None,
    Field(
        max_length=200,
        description="The model of the session's agent; it decides the context window where nothing else does.",
        examples=["gpt-4o"],
    ),
]
Degraded = Annotated[list[str], Field(description="Parts that were missing from this answer, each with the reason.")]


class Request(BaseModel):
    """A body that the API takes. A value of another type is refused, never converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


R = TypeVar("R", bound=BaseModel)


def make_request(shape: type[R], **values: object) -> R:
    """A request with these values.

    Raises:
        InvalidRequest: It cannot hold one of them, as the server would answer.
    """
    plain = {
        name: list(value) if isinstance(value, tuple | set | frozenset) else value for name, value in values.items()
    }
    try:
        return shape.model_validate(plain)
    except ValidationError as error:
        name, reason = fault_in(error.errors()[0])
        raise InvalidRequest(f"The field {name!r} cannot be used: {reason}. Give another value.") from None


def fault_in(error: Mapping[str, Any]) -> tuple[str, str]:
    """The name of a field that pydantic refuses, and why in a clause, without the value."""
    reason = str(error["msg"]).removeprefix("Value error, ").rstrip(".")
    return ".".join(map(str, error["loc"])), f"{reason[:1].lower()}{reason[1:]}"


class Answer(BaseModel):
    """The answer of a use case, and a body of the API."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class PendingErasure(Answer):
    """A place that still holds what was erased, where nobody is answered from it."""

    place: str = Field(description="Where it is still, in a few words.")
    until: dt.datetime | None = Field(
        default=None, description="When it is gone from there at the latest; null where that is not ours to say."
    )


class Erased(Answer):
    """The proof of an erasure: what a look at the index shows after it."""

    passages: int = Field(description="How many passages are gone.")
    checked: list[str] = Field(description="Where they were looked for and not found.")
    pending: list[PendingErasure] = Field(
        default=[], description="Where a database still holds it; empty where everything is in files."
    )


Proof = Annotated[
    Erased | None, Field(description="What a look at the index showed afterwards; null where it could not be read.")
]
