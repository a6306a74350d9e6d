"""Calls as values, answers parsed, failures told apart: the part that both clients share. No I/O.

Invariants: a name or path of a caller stays one part of the URL; a call is repeated only where that does nothing
twice; every failure leaves as an error of `memory_service.errors`.
"""

from __future__ import annotations

import json
import re
import secrets
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from memory_service import schemas
from memory_service._version import __version__
from memory_service.errors import (
    Conflict,
    ConnectionFailed,
    InvalidName,
    InvalidRequest,
    MemoryServiceError,
    ServerFailed,
    StorageFailed,
    from_wire,
)

DEFAULT_URL = "http://127.0.0.1:8765"
DEFAULT_TIMEOUT_SECONDS = 30.0
# Waits before a call is repeated.
RETRY_DELAYS_SECONDS = (0.1, 0.5)
# A server that asks for a longer wait is asked again after this one.
_LONGEST_WAIT_SECONDS = 10.0
# The server breaks the silence of a stream every 15 seconds.
_SILENCE_SECONDS = 45.0
_SECONDS = re.compile(r"[0-9]{1,6}")
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
_UNREACHED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)

_A = TypeVar("_A", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[_A]):
    """One request and the shape of its answer.

    Attributes:
        path: Encoded, from the base URL on.
        safe: True if sending it twice does no more than sending it once.
        least_seconds: Least wait for the answer, however short the client's timeout.
    """

    method: str
    path: str
    answer: type[_A]
    body: schemas.Request | None = None
    params: Mapping[str, str | float | list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    safe: bool = False
    least_seconds: float = 0.0


class HttpxArguments(TypedDict):
    """Arguments of either httpx client."""

    base_url: str
    headers: dict[str, str]
    timeout: float
    trust_env: bool
    verify: ssl.SSLContext | bool


def httpx_arguments(base_url: str, api_key: str | None, timeout: float) -> HttpxArguments:
    """Arguments for making either httpx client.

    Raises:
        InvalidRequest: The URL is none, or the key cannot stand in a header.
    """
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError):
        raise InvalidRequest(f"The base URL {base_url!r} is malformed. Give one such as {DEFAULT_URL}.") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidRequest(f"The base URL {base_url!r} is no address of a server. Give one such as {DEFAULT_URL}.")
    headers = {"User-Agent": f"memory-service/{__version__}"}
    if api_key is not None:
        headers["Authorization"] = f"Bearer {_visible('API key', api_key)}"
    return {
        "base_url": base_url,
        "headers": headers,
        "timeout": timeout,
        # A proxy for the way to one's own machine is never meant.
        "trust_env": url.host not in _LOCAL_HOSTS,
        # To read the authorities takes some 50 ms, and plain HTTP asks none: it gets a context that trusts nobody.
        "verify": url.scheme == "https" or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
    }


def request_arguments(call: Call[Any], timeout: httpx.Timeout) -> dict[str, Any]:
    """The call as the arguments of `httpx.Client.request`; `timeout` is the client's own."""
    arguments: dict[str, Any] = {"method": call.method, "url": call.path, "headers": dict(call.headers)}
    if call.params:
        arguments["params"] = dict(call.params)
    if call.body is not None:
        arguments["content"] = _json(call.body)
        arguments["headers"]["Content-Type"] = "application/json"
    if timeout.read is not None and call.least_seconds > timeout.read:
        arguments["timeout"] = httpx.Timeout(
            call.least_seconds, connect=timeout.connect, write=timeout.write, pool=timeout.pool
        )
    return arguments


def parse(call: Call[_A], response: httpx.Response) -> _A:
    """The answer, in its shape.

    Raises:
        MemoryServiceError: It tells of a failure, in the class that the server meant.
    """
    if not response.is_success:
        raise failure(response)
    try:
        return _read(call.answer, response.content)
    except (ValueError, RecursionError):
        raise ServerFailed(
            f"{_place(response.request)} gave an answer that is none of memory-service's. "
            "Check the URL, and that client and server are of one version."
        ) from None


def unreachable_error(error: httpx.RequestError, base_url: str) -> ConnectionFailed:
    """A transport error as `ConnectionFailed`."""
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return ConnectionFailed(
            f"The server at {base_url} did not answer in time. Try again, or give a longer timeout."
        )
    reason = str(error) or type(error).__name__
    return ConnectionFailed(
        f"The server at {base_url} was not reached ({reason}). Start it with `memory-service serve`, or check the URL."
    )


def retry_delay(call: Call[Any], attempt: int, outcome: httpx.Response | httpx.RequestError) -> float | None:
    """Wait before a call is sent again; None if it must not be.

    What the server refused with a wait, it has not done: any call is sent again then, once, after that wait.

    Args:
        call: The call.
        attempt: Number of repetitions so far.
        outcome: The response or the error.
    """
    value = _asked_wait(outcome) if isinstance(outcome, httpx.Response) else None
    if value is not None:
        return min(value, _LONGEST_WAIT_SECONDS) if attempt == 0 else None
    if not call.safe or attempt >= len(RETRY_DELAYS_SECONDS):
        return None
    has_failed = (
        isinstance(outcome, _UNREACHED) if isinstance(outcome, httpx.RequestError) else outcome.status_code == 503
    )
    return RETRY_DELAYS_SECONDS[attempt] if has_failed else None


def report_of_operation(operation: schemas.Operation) -> schemas.ReindexReport | None:
    """Report of an operation; None while it runs.

    Raises:
        StorageFailed: It failed.
        Conflict: Somebody cancelled it.
    """
    if operation.state == "failed":
        raise StorageFailed(operation.error or "The reindex failed. See the server's log.")
    if operation.state == "cancelled":
        done_text = f"{operation.done} of {operation.total} passages"
        raise Conflict(operation.error or f"The reindex was cancelled after {done_text}. Start it again to go on.")
    return operation.report if operation.state == "done" else None


def failure(response: httpx.Response) -> MemoryServiceError:
    """The error in an answer."""
    try:
        error = schemas.ErrorAnswer.model_validate_json(response.content).error
    except ValidationError:
        return ServerFailed(
            f"{_place(response.request)} answered {response.status_code} without saying why. "
            "Check the URL: this may be another server, or a proxy."
        )
    return from_wire(response.status_code, error.code, error.message, retry_after_seconds=_asked_wait(response))


def _asked_wait(response: httpx.Response) -> float | None:
    """Seconds after which a refused call may be sent again; None if it was not refused so."""
    header = response.headers.get("retry-after", "")
    return float(header) if response.status_code in (429, 503) and _SECONDS.fullmatch(header) else None


def _json(body: schemas.Request) -> str:
    try:
        return body.model_dump_json(exclude_unset=True)
    except ValueError:
        pass
    # Half a surrogate pair, which a message may hold, can be named in JSON but not encoded.
    try:
        return json.dumps(body.model_dump(exclude_unset=True))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"The request cannot be written as JSON: {error}. Give plain values.") from None


def _read(shape: type[_A], content: bytes) -> _A:
    try:
        return shape.model_validate_json(content)
    except ValidationError:
        # It may be such a half, which this reads and pydantic does not.
        return shape.model_validate(json.loads(content))


def _place(request: httpx.Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc.decode()}"


def segment(text: str) -> str:
    """A text as one part of a path; "." and ".." would be taken for steps.

    Raises:
        InvalidName: It cannot be encoded.
    """
    try:
        encoded_quote = quote(text.encode("utf-8"), safe="")
    except UnicodeEncodeError:
        raise InvalidName(f"The name {text!r} holds half a surrogate pair. Leave such characters out.") from None
    return encoded_quote.replace(".", "%2E") if text in (".", "..") else encoded_quote


def workspace_root(workspace: str) -> str:
    """The path of everything in a workspace."""
    return f"/v1/workspaces/{segment(workspace)}"


class Routes:
    """Maker of calls below one path.

    Args:
        root: The path, encoded.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def _get(
        self,
        path: str,
        answer: type[_A],
        params: Mapping[str, str | float | list[str]] | None = None,
        least_seconds: float = 0.0,
    ) -> Call[_A]:
        return Call(
            method="GET",
            path=f"{self._root}{path}",
            answer=answer,
            params=params or {},
            safe=True,
            least_seconds=least_seconds,
        )

    def _post(
        self, path: str, answer: type[_A], body: schemas.Request, key: str | None = None, least_seconds: float = 0.0
    ) -> Call[_A]:
        # What is posted without a key only reads.
        headers = {"Idempotency-Key": _visible("idempotency key", key)} if key is not None else {}
        return Call(
            method="POST",
            path=f"{self._root}{path}",
            answer=answer,
            body=body,
            headers=headers,
            safe=True,
            least_seconds=least_seconds,
        )

    def _delete(self, path: str, answer: type[_A], *, safe: bool = False) -> Call[_A]:
        return Call(method="DELETE", path=f"{self._root}{path}", answer=answer, safe=safe)

    def events(self, after: str) -> Call[schemas.SessionEvent]:
        """The call for the events of what it is made for, to be read as a stream."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        return Call(
            method="GET",
            path=f"{self._root}/events",
            answer=schemas.SessionEvent,
            headers=headers,
            least_seconds=_SILENCE_SECONDS,
        )


def settings_call() -> Call[schemas.SettingValues]:
    """The call for the settings of the server."""
    return Call(method="GET", path="/v1/settings", answer=schemas.SettingValues, safe=True)


def hosts_call() -> Call[schemas.ConnectedHosts]:
    """The call for the connected hosts."""
    return Call(method="GET", path="/v1/hosts", answer=schemas.ConnectedHosts, safe=True)


class FileCalls(Routes):
    """The calls of the memory files of a workspace."""

    def files(self) -> Call[schemas.MemoryFiles]:
        """The call for the list of files."""
        return self._get("/memories", schemas.MemoryFiles)

    def get(self, path: str, start_line: int, lines: int | None, version: str | None) -> Call[schemas.FileText]:
        """The call for lines of a file, or of a version of it."""
        params: dict[str, Any] = {"start_line": start_line, "lines": lines, "version": version}
        given_params = {name: value for name, value in params.items() if value is not None}
        return self._get(f"/{_file(path)}", schemas.FileText, given_params)

    def versions(self, path: str) -> Call[schemas.FileVersions]:
        """The call for the versions of a file."""
        return self._get(f"/{_file(path, 'versions')}", schemas.FileVersions)

    def erase_versions(self, path: str) -> Call[schemas.ErasedVersions]:
        """The call that erases the versions of a file."""
        return self._delete(f"/{_file(path, 'versions')}", schemas.ErasedVersions)

    def put(self, path: str, text: str, etag: str | None) -> Call[schemas.WrittenFile]:
        """The call for a file's new text."""
        headers = {"If-None-Match": "*"} if etag is None else {"If-Match": _quote_etag(etag)}
        body = schemas.make_request(schemas.FileWrite, text=text)
        return Call(
            method="PUT", path=f"{self._root}/{_file(path)}", answer=schemas.WrittenFile, body=body, headers=headers
        )

    def delete(self, path: str, etag: str | None) -> Call[schemas.ErasedFile]:
        """The call that erases a file."""
        return replace(
            self._delete(f"/{_file(path)}", schemas.ErasedFile),
            headers={} if etag is None else {"If-Match": _quote_etag(etag)},
        )


class Calls(FileCalls):
    """Maker of the calls for one workspace.

    Args:
        workspace: Its name.
    """

    def __init__(self, workspace: str) -> None:
        super().__init__(workspace_root(workspace))

    def remember(
        self,
        text: str,
        tags: Collection[str],
        day: date | None,
        origin: schemas.Origin | None,
        session_id: str | None,
        idempotency_key: str | None,
    ) -> Call[schemas.StoredMemory]:
        """The call for a new memory; with its key it can be sent again."""
        body = schemas.make_request(
            schemas.NewMemory,
            text=text,
            tags=list_of_texts("tags", tags),
            date=day,
            origin=origin,
            session_id=session_id,
        )
        return self._post("/memories", schemas.StoredMemory, body, idempotency_key or new_key())

    def entries(self, **options: Any) -> Call[schemas.MemoryEntries]:
        """The call for a list of entries."""
        tags = list_of_texts("tags", options.pop("tags"))
        given_fields = {name: str(value) for name, value in options.items() if value is not None}
        return self._get("/entries", schemas.MemoryEntries, given_fields | ({"tag": tags} if tags else {}))

    def entry(self, memory_id: str) -> Call[schemas.MemoryEntry]:
        """The call for one entry."""
        return self._get(f"/entries/{segment(memory_id)}", schemas.MemoryEntry)

    def edit(self, memory_id: str, etag: str | None, **change: object) -> Call[schemas.ChangedEntry]:
        """The call that changes an entry; what is None stays."""
        given_fields = {name: value for name, value in change.items() if value is not None}
        return Call(
            method="PATCH",
            path=f"{self._root}/entries/{segment(memory_id)}",
            answer=schemas.ChangedEntry,
            body=schemas.make_request(schemas.EntryChange, **given_fields),
            headers={} if etag is None else {"If-Match": _quote_etag(etag)},
        )

    def forget(self, memory: str | None, query: str | None, dry_run: bool) -> Call[schemas.ForgottenMemory]:
        """The call that erases what is named; with its key it can be sent again."""
        body = schemas.make_request(schemas.ForgetRequest, memory=memory, query=query, dry_run=dry_run)
        return self._post("/forget", schemas.ForgottenMemory, body, new_key())

    def search(self, query: str, **options: object) -> Call[schemas.SearchResults]:
        """The call for a search."""
        return self._post(
            "/search", schemas.SearchResults, schemas.make_request(schemas.SearchRequest, query=query, **options)
        )

    def context(self, query: str, **options: object) -> Call[schemas.Context]:
        """The call for a context."""
        return self._post(
            "/context", schemas.Context, schemas.make_request(schemas.ContextRequest, query=query, **options)
        )

    def receipts(self, session_id: str | None, limit: int) -> Call[schemas.ReceiptList]:
        """The call for the newest receipts."""
        session = {"session_id": session_id} if session_id is not None else {}
        return self._get("/receipts", schemas.ReceiptList, {**session, "limit": str(limit)})

    def changed_facts(self, limit: int) -> Call[schemas.ChangedFacts]:
        """The call for the facts that changed."""
        return self._get("/facts", schemas.ChangedFacts, {"limit": str(limit)})

    def distinguish(self, first: str, second: str) -> Call[schemas.StoredMemory]:
        """The call that says that two statements are not the same."""
        body = schemas.make_request(schemas.Distinction, first=first, second=second)
        return self._post("/facts/distinctions", schemas.StoredMemory, body, new_key())

    def keys(self) -> Call[schemas.AccessKeys]:
        """The call for the keys of the server."""
        return Call(method="GET", path="/v1/keys", answer=schemas.AccessKeys, safe=True)

    def make_key(
        self, name: str, role: schemas.KeyRole, workspaces: Collection[str], days: int | None
    ) -> Call[schemas.MadeKey]:
        """The call that makes a key."""
        names = list_of_texts("workspaces", workspaces)
        body = schemas.make_request(schemas.NewKey, name=name, role=role, workspaces=names, days=days)
        return Call(method="POST", path="/v1/keys", answer=schemas.MadeKey, body=body)

    def withdraw_key(self, key_id: str) -> Call[schemas.AccessKey]:
        """The call that withdraws a key."""
        return Call(method="DELETE", path=f"/v1/keys/{segment(key_id)}", answer=schemas.AccessKey)

    def receipt(self, receipt_id: str) -> Call[schemas.Receipt]:
        """The call for a receipt."""
        return self._get(f"/receipts/{segment(receipt_id)}", schemas.Receipt)

    def start_reindex(self, paths: Collection[str], full: bool) -> Call[schemas.OperationRef]:
        """The call that starts a reindex; with its key it can be sent again."""
        body = schemas.make_request(schemas.ReindexRequest, full=full, paths=list_of_texts("paths", paths))
        return self._post("/reindex", schemas.OperationRef, body, new_key())

    def operation(self, operation_id: str) -> Call[schemas.Operation]:
        """The call for the state of an operation."""
        return self._get(f"/operations/{segment(operation_id)}", schemas.Operation)

    def operations(self) -> Call[schemas.OperationList]:
        """The call for all operations."""
        return self._get("/operations", schemas.OperationList)

    def cancel(self, operation_id: str) -> Call[schemas.Operation]:
        """The call that cancels an operation."""
        return self._delete(f"/operations/{segment(operation_id)}", schemas.Operation, safe=True)

    def status(self) -> Call[schemas.Status]:
        """The call for the status."""
        return self._get("/status", schemas.Status)

    def version(self) -> Call[schemas.Version]:
        """The call for the version of the server."""
        return Call(method="GET", path="/version", answer=schemas.Version, safe=True)


def new_key() -> str:
    """A fresh idempotency key."""
    return secrets.token_urlsafe(18)


def list_of_texts(name: str, values: Collection[str]) -> list[str]:
    # A lone string would be taken for its letters.
    if isinstance(values, str):
        raise InvalidRequest(f"The field {name!r} takes a list of texts, not one text. Put it into a list.")
    return list(values)


def _file(path: str, below: str = "memories") -> str:
    return "/".join((below, *(segment(part) for part in path.split("/"))))


def _quote_etag(etag: str) -> str:
    bare = etag.strip('"')
    return bare if bare == "*" else f'"{_visible("etag", bare)}"'


def _visible(name: str, value: str) -> str:
    if not _VISIBLE.fullmatch(value):
        raise InvalidRequest(f"The {name} cannot be sent in a header. Use visible ASCII characters, without spaces.")
    return value
