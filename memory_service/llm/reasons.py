"""Reason that a provider gives for a refusal, in its own words. Pure.

Invariants: it has at most 300 characters on one line, no secret, and no stretch of what the call had sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from indexer.common import lazy_regex
from memory_service.text.secrets import REDACTED, redact

MOST_REASON_CHARS = 300
# Of a longer text, so much is looked at.
_READ_CHARS = 4_000
# More is not looked at: what does not fit is cut off anyway.
_SAID_CHARS = 600
# A stretch of so many characters that was sent is a quotation; shorter ones are words that anybody uses.
_QUOTED_CHARS = 20
_LEFT_OUT = "[…]"
# Source: litellm 1.106, "litellm.BadRequestError: OpenAIException - …", "Error code: 400 - {…}".
_WRAPPING = lazy_regex(r"^(?:litellm\.)?\w+(?:Error|Exception|Timeout): |^\w+Exception - |^Error code: \d{3} - ")
_BODY = lazy_regex(r"[{\[].*[}\]]", re.DOTALL)
_NAMES = ("message", "msg", "detail", "error_description", "error")


def provider_reason(text: str, sent_texts: Iterable[str] = (), keys: Iterable[str] = ()) -> str:
    """A provider's own words, fit to be shown.

    Args:
        text: The text of its error, as a client library gives it.
        sent_texts: The texts of the call.
        keys: Keys and passwords of the caller, which no form may tell.
    """
    said_key = redact(_unwrap(text[:_READ_CHARS].split(" | ")[0]))
    for key in filter(None, keys):
        said_key = said_key.replace(key, REDACTED)
    words = " ".join(_without(said_key[:_SAID_CHARS], sent_texts).split())
    return words if len(words) <= MOST_REASON_CHARS else f"{words[: MOST_REASON_CHARS - 1].rstrip()}…"


def _unwrap(text: str) -> str:
    """The message of the provider's body, or the text without what libraries put before it."""
    text = text.strip()
    while (shorter := _WRAPPING.sub("", text)) != text:
        text = shorter.strip()
    body = _BODY.search(text)
    try:
        message = next(_messages(json.loads(body[0])), "") if body else ""
    except (ValueError, RecursionError):
        message = ""
    return message or text


def _messages(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each_value in value:
            yield from _messages(each_value)
    elif isinstance(value, dict):
        for name in _NAMES:
            yield from _messages(value.get(name))


def _without(text: str, sent_texts: Iterable[str]) -> str:
    """A text without the stretches that were sent."""
    for given_text in sent_texts:
        at = 0
        while at + _QUOTED_CHARS <= len(text):
            if text[at : at + _QUOTED_CHARS] not in given_text:
                at += 1
                continue
            start, end = at, at + _QUOTED_CHARS
            while start > 0 and text[start - 1 : end] in given_text:
                start -= 1
            while end < len(text) and text[start : end + 1] in given_text:
                end += 1
            text = f"{text[:start]}{_LEFT_OUT}{text[end:]}"
            at = start + len(_LEFT_OUT)
    return text
