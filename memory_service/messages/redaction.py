"""Messages on their way to a file, a summary or a model that reads for the service: without their secrets.

Invariants: pure; the log and the view of recent messages keep what was said; a text is judged as a whole, before it is
cut into lines; redacting twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memory_service.messages.shapes import with_texts
from memory_service.messages.sizes import Numbered
from memory_service.text.secrets import redacted


def without_secrets(messages: Iterable[Numbered]) -> tuple[Numbered, ...]:
    """The messages with `[redacted]` in the place of each secret; what went through before is not read again."""
    return tuple(
        each if each.redacted else replace(each, message=with_texts(each.message, redacted), redacted=True)
        for each in messages
    )
