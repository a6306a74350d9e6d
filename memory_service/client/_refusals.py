"""Refusals of providers, read from the errors of any client library. Pure.

Invariants: no package of a provider is imported; no exception, however made, makes its reading fail.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# Of a longer text, so much of each end is kept: what an error says itself stands there.
_END_CHARS = 100_000
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,6})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Error of a provider.

    Attributes:
        text: Text of the exception, and of the body behind it.
        status: The HTTP status; None without one.
        retry_after_seconds: Wait that its headers ask for; None without one.
    """

    text: str
    status: int | None = None
    retry_after_seconds: float | None = None


def refusal_of(error: BaseException | str) -> Refusal:
    """The error in an exception, or in a text."""
    if isinstance(error, str):
        return Refusal(text=_sendable_text(error))
    response = _attribute(error, "response")
    said_text, body = _error_text(error), _body(error, response)
    # The exceptions of bare HTTP clients name the status alone; what matters stands in the body.
    text = f"{said_text}\n{body}" if body and body not in said_text else said_text
    return Refusal(
        text=_sendable_text(text), status=_status(error, response), retry_after_seconds=_wait(error, response)
    )


def _error_text(error: BaseException) -> str:
    try:
        text = str(error).strip()
    except Exception:
        text = ""
    if text:
        return text
    if isinstance(error, TimeoutError):
        return "Request timed out."
    return "Connection error." if isinstance(error, ConnectionError) else type(error).__name__


def _body(error: BaseException, response: object) -> str:
    text = _attribute(response, "text")
    if isinstance(text, str) and text.strip():
        return text.strip()
    body = _attribute(error, "body")
    try:
        return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False) if body else ""
    except (TypeError, ValueError, RecursionError):
        return ""


def _status(error: BaseException, response: object) -> int | None:
    attributes = [_attribute(error, name) for name in ("status_code", "status", "code")]
    for status in (*attributes, _attribute(response, "status_code"), _attribute(response, "status")):
        if isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 599:
            return int(status)
    return None


def _wait(error: BaseException, response: object) -> float | None:
    for holder in (response, error):
        headers = _attribute(holder, "headers") or _attribute(holder, "response_headers")
        for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            header = _header(headers, name)
            if header is not None and (seconds := _seconds(header, scale)) is not None:
                return seconds
    return None


def _header(headers: object, name: str) -> str | None:
    get = _attribute(headers, "get")
    if not callable(get):
        return None
    for spelling in (name, name.title()):
        try:
            value = get(spelling)
        except Exception:
            return None
        if isinstance(value, str | int | float):
            return str(value)
    return None


def _seconds(text: str, scale: float) -> float | None:
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text) * scale
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    left = (at - datetime.now(UTC)).total_seconds()
    return max(left, 0.0) if math.isfinite(left) else None


def _attribute(value: object, name: str) -> object:
    """An attribute; None if it is missing or reading it fails, as for a body that was never read."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def _sendable_text(text: str) -> str:
    if len(text) > 2 * _END_CHARS:
        text = f"{text[:_END_CHARS]}\n…\n{text[-_END_CHARS:]}"
    return text.encode("utf-8", "replace").decode("utf-8")
