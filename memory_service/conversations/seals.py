"""Sealed references: a place in a session as a text that clients keep and send back, such as a compaction item.

```
memory-service.1.<what it refers to, base64url of JSON>.<HMAC-SHA256 with the key of the home, base64url>
```
Invariants: what was changed, or sealed with another home's key, is refused; what does not have the form is nobody's
of ours; the key is made once, by whichever process needs it first, and only its owner can read it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass
from functools import cached_property

from memory_service.errors import InvalidReference
from memory_service.storage.base import SEALING_KEY, Storage

_MARK = "memory-service.1."
_KEY_BYTES = 32
_REMEDY = "Send the conversation without it, or use the home that it was made in, with its file sealing.key."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A place in a session.

    Attributes:
        last_seq: The last message that it stands for.
        digest: That of this message, in hexadecimal digits.
        compaction_id: The compaction that was made there; empty if there was nothing to compact.
    """

    workspace: str
    session_id: str
    last_seq: int
    digest: str
    compaction_id: str = ""


def is_sealed_here(text: object) -> bool:
    """True if a text has the form of a sealed reference, whoever wrote it."""
    return isinstance(text, str) and text.startswith(_MARK)


class Seals:
    """The seal of one home.

    Args:
        storage: The storage of the home; the key is made in it when it is needed first.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def seal(self, reference: Reference) -> str:
        """A reference as a text."""
        written_text = _MARK + _base64(json.dumps(asdict(reference), separators=(",", ":")).encode())
        return f"{written_text}.{self._code(written_text)}"

    def open(self, text: str) -> Reference:
        """The reference that a text is.

        Raises:
            InvalidReference: It was changed, or sealed elsewhere.
            StorageFailed: The key cannot be read.
        """
        written_text, _, code = text.rpartition(".")
        if not hmac.compare_digest(self._code(written_text).encode(), code.encode("utf-8", "replace")):
            raise InvalidReference(f"A compaction item was changed, or another server made it. {_REMEDY}")
        try:
            return Reference(**json.loads(base64.urlsafe_b64decode(written_text.removeprefix(_MARK) + "==")))
        except (ValueError, TypeError, binascii.Error) as error:
            raise InvalidReference(f"A compaction item is of another version of the service. {_REMEDY}") from error

    def _code(self, written_text: str) -> str:
        return _base64(hmac.digest(self._key, written_text.encode("utf-8", "replace"), hashlib.sha256))

    @cached_property
    def _key(self) -> bytes:
        return self._storage.secret(SEALING_KEY, _KEY_BYTES)


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
