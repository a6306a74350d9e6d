"""Owns the package litellm: how it is imported, and what its exceptions tell.

Invariants: imported at the first need, quiet and offline; it retries nothing; what an exception tells may quote a
request, so it is read and never shown.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldFailure:
    """What an exception tells.

    Attributes:
        text: What litellm and the provider say.
        status: The HTTP status of the provider's answer; None where there was none.
        wait_seconds: How long its `Retry-After` asks to wait; None where it does not.
    """

    text: str
    status: int | None
    wait_seconds: float | None


def litellm_package() -> Any:
    """The package.

    Raises:
        ImportError: It, or what it needs, is not installed.
    """
    # Without the first it fetches a list of prices when it is imported; without the second it reads a .env file.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    # It takes the 0 that it is given for nothing given. Source: litellm 1.106, llms/openai/openai.py, embedding
    litellm.DEFAULT_MAX_RETRIES = 0
    return litellm


def even_timeout(seconds: float) -> float:
    """A timeout rounded up to one digit, as the package keeps a client with connections for each that it is given.

    What remains until a deadline is another number each time; as it is, no two requests would share a connection.
    """
    unit = 10.0 ** math.floor(math.log10(seconds))
    return math.ceil(seconds / unit) * unit


def told_failure(error: BaseException) -> ToldFailure:
    """What an exception of litellm tells, with those that caused it."""
    chain = list(_chain(error))
    answers = [(one, status) for one in chain if isinstance(status := getattr(one, "status_code", None), int)]
    return ToldFailure(
        text=" | ".join(dict.fromkeys(str(one) for one in (error, *(one for one, _ in answers)))),
        # The last is the provider's own: litellm makes a 429 of another's 413.
        status=answers[-1][1] if answers else None,
        wait_seconds=next((seconds for one in chain if (seconds := _retry_after(one)) is not None), None),
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _retry_after(error: BaseException) -> float | None:
    """Seconds that the headers of an answer ask to wait."""
    response = getattr(error, "response", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        value = headers.get("retry-after") if headers else None
        if value:
            return seconds_until(str(value))
    return None


def seconds_until(value: str) -> float | None:
    """Seconds from a `Retry-After`, a number or a date; None if it is neither."""
    try:
        return max(float(value), 0.0)
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max((moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
