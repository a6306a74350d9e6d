"""The error tree of the service, on both sides of the wire.

```
MemoryServiceError                 status  code
├── InvalidRequest                 422     invalid_request
│   └── InvalidName                400     invalid_name        a name or path that would leave its folder
├── InvalidReference               400     invalid_reference   sealed elsewhere, changed, or its session is gone
├── Unauthorized                   401     unauthorized
├── Forbidden                      403     forbidden
├── NotFound                       404     not_found
├── Conflict                       409     conflict
├── PreconditionFailed             412     precondition_failed a person changed the file meanwhile
├── Incompressible                 422     incompressible      the view cannot be made to fit; names the part
├── TooLarge                       413     too_large
├── UnsupportedMedia               415     unsupported_media   the body is not sent as JSON
├── TooManyRequests                429     too_many_requests
├── UpstreamFailed                 502     upstream_failed     a model provider failed
│   ├── ContextOverflow            502     context_overflow    the prompt does not fit the model's window
│   ├── SummaryFailed              502     summary_failed      a model's summary was refused; nothing has changed
│   └── ModelUnavailable           502     model_unavailable   no package, no key, no money or no such model
├── StorageFailed                  503     storage_failed      disk full, read-only, index damaged or locked
├── Overloaded                     503     overloaded          too many wait already; nothing was done
├── CallCancelled                  503     call_cancelled      the caller ended a model call
├── ServerFailed                   500     internal_error      a defect of the service
└── ConnectionFailed               -       connection_failed   the client reached no server
```

The server turns an error into `{"error": {"code", "message"}}`; the client turns that back into the same
class. Every message says what failed and what to do, and never holds the text of a memory.
"""

from __future__ import annotations

import math


class MemoryServiceError(Exception):
    """Root of everything the service and its clients raise on purpose.

    Attributes:
        retry_after_seconds: Wait after which the same request may succeed; None where waiting is not known to help.
    """

    status = 500
    code = "internal_error"
    retry_after_seconds: float | None = None


class InvalidRequest(MemoryServiceError):
    """A value in the request cannot be used."""

    status = 422
    code = "invalid_request"


class InvalidName(InvalidRequest):
    """A workspace name or a path that is malformed or would leave its folder."""

    status = 400
    code = "invalid_name"


class InvalidReference(MemoryServiceError):
    """A sealed reference, such as a compaction item, that stands for nothing here."""

    status = 400
    code = "invalid_reference"


class Unauthorized(MemoryServiceError):
    """No key, or an unknown one."""

    status = 401
    code = "unauthorized"


class Forbidden(MemoryServiceError):
    """The key is not for this workspace."""

    status = 403
    code = "forbidden"


class NotFound(MemoryServiceError):
    """There is no such workspace, file, entry, receipt or operation."""

    status = 404
    code = "not_found"


class Conflict(MemoryServiceError):
    """The request contradicts one that was already answered."""

    status = 409
    code = "conflict"


class PreconditionFailed(MemoryServiceError):
    """The file is not what the caller last saw."""

    status = 412
    code = "precondition_failed"


class TooLarge(MemoryServiceError):
    """The request's body is over the limit."""

    status = 413
    code = "too_large"


class UnsupportedMedia(MemoryServiceError):
    """The request's body is not sent as JSON."""

    status = 415
    code = "unsupported_media"


class TooManyRequests(MemoryServiceError):
    """The caller has to wait."""

    status = 429
    code = "too_many_requests"
    retry_after_seconds = 5.0


class UpstreamFailed(MemoryServiceError):
    """A model provider failed.

    Attributes:
        kind: What went wrong, by the names of `memory_service.llm.errors.FailureKind`.
        transient: Whether the same call may succeed later.
        retry_after_seconds: How long the provider asks to wait before; None where it does not.
        sent: Whether anything was sent to a provider.
        reason: What the provider said, without secrets and without what it was sent; empty where it said nothing.
    """

    status = 502
    code = "upstream_failed"

    def __init__(
        self,
        message: str = "",
        *,
        kind: str = "other",
        transient: bool = False,
        retry_after_seconds: float | None = None,
        is_sent: bool = True,
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.reason = reason
        self.transient = transient
        self.retry_after_seconds = retry_after_seconds
        self.sent = is_sent

    @property
    def why(self) -> str:
        """The kind of the failure, and what the provider said of it."""
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


class ContextOverflow(UpstreamFailed):
    """The prompt, or prompt and answer, do not fit the model's window.

    Attributes:
        window_tokens: What the model takes, if the provider told it.
        requested_tokens: What was asked of it, if the provider told it.
    """

    code = "context_overflow"

    def __init__(
        self,
        message: str = "",
        *,
        window_tokens: int | None = None,
        requested_tokens: int | None = None,
        reason: str = "",
    ) -> None:
        super().__init__(message, kind="token_overflow", reason=reason)
        self.window_tokens = window_tokens
        self.requested_tokens = requested_tokens


class ModelUnavailable(UpstreamFailed):
    """The model cannot be used as things are; trying again will not help."""

    code = "model_unavailable"


class SummaryFailed(UpstreamFailed):
    """A model wrote no usable summary: none, a cut one, a tool call, or one that says what its source does not.

    Attributes:
        kind: `empty`, `truncated`, `tool_call`, `headings`, `too_long`, `ungrounded`, or that of a provider's failure.
    """

    code = "summary_failed"


class Incompressible(MemoryServiceError):
    """A view cannot be made to fit its window.

    Attributes:
        parts: What each part takes, in tokens, the largest first: `system`, `tools`, `pins`, `summary`, `last_unit`.
    """

    status = 422
    code = "incompressible"

    def __init__(self, message: str = "", *, parts: dict[str, int] | None = None) -> None:
        super().__init__(message)
        self.parts = parts or {}


class StorageFailed(MemoryServiceError):
    """The disk or the index cannot be used."""

    status = 503
    code = "storage_failed"


class Overloaded(MemoryServiceError):
    """Too many requests of one kind wait already; this one was refused, and nothing was done."""

    status = 503
    code = "overloaded"

    def __init__(self, message: str = "", *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class CallCancelled(MemoryServiceError):
    """The caller ended a model call before it answered; no failure, so nothing stands in for the answer."""

    status = 503
    code = "call_cancelled"


class ServerFailed(MemoryServiceError):
    """The server met a defect of its own."""


class ConnectionFailed(MemoryServiceError):
    """The client reached no server."""

    status = 0
    code = "connection_failed"


def key_reused() -> Conflict:
    """The error of an idempotency key that stands for another request."""
    return Conflict("The idempotency key was used for another request. Use a new key for a new request.")


def from_wire(status: int, code: str, message: str, *, retry_after_seconds: float | None = None) -> MemoryServiceError:
    """The error that a server's answer stands for, with the wait that the server asks for."""
    error = _BY_CODE.get(code, _BY_STATUS.get(status, ServerFailed))(message)
    if retry_after_seconds is not None:
        error.retry_after_seconds = retry_after_seconds
    return error


def retry_headers(error: MemoryServiceError) -> dict[str, str]:
    """Header that tells the caller how long to wait, in whole seconds; none where waiting is not known to help."""
    seconds = error.retry_after_seconds
    return {} if seconds is None or error.status not in (429, 503) else {"Retry-After": str(math.ceil(seconds))}


def codes() -> frozenset[str]:
    """All codes that an answer may have."""
    return frozenset(_BY_CODE)


def _below(root: type[MemoryServiceError]) -> list[type[MemoryServiceError]]:
    return [kind for child in root.__subclasses__() for kind in (child, *_below(child))]


_BY_CODE = {kind.code: kind for kind in _below(MemoryServiceError)}
# A parent stands before its children in the list, and is what a bare status means.
_BY_STATUS = {kind.status: kind for kind in reversed(_below(MemoryServiceError))}
