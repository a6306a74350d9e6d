"""Requests as values of the service, the state that routes share, and the running of requests that change something.

Invariants: the answer to a repeated request is the first one's, byte for byte, and says so in a header; answers are
turned into JSON in the thread that made them, never in the event loop.
"""

from __future__ import annotations

import inspect
import json
import logging
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Header, Path, Request, Response

from memory_service.api.admission import KIND_ATTRIBUTE, WorkKind
from memory_service.api.idempotency import KeyedRequest, RepeatedRequests, Reply
from memory_service.api.metrics import Metrics
from memory_service.api.pools import Pools
from memory_service.errors import InvalidName, InvalidRequest, MemoryServiceError
from memory_service.schemas.base import SESSION_ID, Answer

if TYPE_CHECKING:
    from memory_service.service import MemoryService

_ETAG = re.compile(r'(?:W/)?"([^"\s]+)"|([^",\s]+)')

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="A value of your own for this request: sent again with it, it does nothing again and gets the same "
        "answer.",
    ),
]
IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description="The etag of the text that is replaced; not for a new file."),
]
IfNoneMatch = Annotated[
    str | None,
    Header(
        alias="If-None-Match",
        description="`*`: there must be no such file yet. One of the two conditions is needed.",
        examples=["*"],
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Condition for writing a file."""

    if_match: str | None
    if_none_match: bool


async def well_encoded(request: Request) -> None:
    """Refuse a path that is no UTF-8, as it may stand for several.

    Raises:
        InvalidName: It is none.
    """
    try:
        unquote_to_bytes(request.scope.get("raw_path", b"")).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidName("The path of the request is not UTF-8. Percent-encode each name as UTF-8.") from None


def condition(if_match: str | None, if_none_match: str | None) -> Condition:
    """The condition of two headers.

    Raises:
        InvalidRequest: One of them cannot be read.
    """
    if if_none_match not in (None, "*"):
        raise InvalidRequest("The header If-None-Match cannot be used. Send `If-None-Match: *` to create a file.")
    etag = _ETAG.fullmatch(if_match.strip()) if if_match is not None else None
    if if_match is not None and etag is None:
        raise InvalidRequest('The header If-Match cannot be read. Send the one etag you last saw: `If-Match: "…"`.')
    return Condition(if_match=(etag[1] or etag[2]) if etag else None, if_none_match=if_none_match == "*")


_log = logging.getLogger("memory_service.api")


class WarmUp:
    """Background loading of the model, so that the first search does not wait for it."""

    def __init__(self) -> None:
        self.loading = False
        self.failure = ""

    def start(self, load: Callable[[], None], afterwards: Callable[[], None]) -> None:
        """Begin; returns at once.

        Args:
            load: Loads the model.
            afterwards: Loads what the first search does not wait for.
        """
        self.loading = True
        threading.Thread(target=self._run, args=(load, afterwards), name="warm-up", daemon=True).start()

    def _run(self, load: Callable[[], None], afterwards: Callable[[], None]) -> None:
        try:
            load()
        except MemoryServiceError as error:
            self.failure = f"vector: {error}"
            _log.warning("%s", self.failure)
        finally:
            self.loading = False
        afterwards()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """State that the routes of one app share."""

    service: MemoryService
    metrics: Metrics
    pools: Pools
    watches: bool = False
    repeated: RepeatedRequests
    warm_up: WarmUp = field(default_factory=WarmUp)

    def end(self) -> None:
        """End streams of events and calls of models, which do not end by themselves; returns at once."""
        self.pools.close()
        self.service.events.close()


async def _state(request: Request) -> AppState:
    state: AppState = request.app.state.shared
    return state


Shared = Annotated[AppState, Depends(_state)]


_REPLAYED = {"Idempotency-Replayed": "true"}

Act = Callable[[], Answer]


class RequestRunner:
    """Runner of one request that changes something.

    Args:
        request: The request; a repetition must have the same body.
        shared: State of the app.
        key: Its idempotency key.
    """

    def __init__(self, request: Request, shared: AppState, key: str | None) -> None:
        self._request = request
        self._shared = shared
        self._key = key

    async def run_queued(self, kind: WorkKind, act: Act) -> Response:
        """Run a call in the queue of its kind.

        Raises:
            Overloaded: Too many of that kind wait already.
            CallCancelled: The client has gone, or the server ends.
        """
        queue, receive = self._shared.pools.queues.of(kind), self._request.receive
        return await self._once(act, lambda job: queue.run(job, receive=receive))

    async def slow(self, act: Act) -> Response:
        """Run a call that may wait for a model or for others, in a separate pool of threads.

        Raises:
            TooManyRequests: No thread was free in time.
            CallCancelled: The server ends.
        """
        return await self._once(act, self._shared.pools.work.run)

    async def _once(self, act: Act, run: Callable[[Callable[[], Reply]], Awaitable[Reply]]) -> Response:
        if self._key is None:
            answer = await run(lambda: (self._json_answer(act), False))
            assert answer is not None
        else:
            path_params, path = self._request.path_params, self._request.url.path
            # The path names the workspace, which the key of the request may use; without one, the key's own counts.
            own = "" if "workspace" in path_params else ",".join(self._request.state.grant.workspaces)
            request = KeyedRequest(
                workspace=path_params.get("workspace", ""),
                place=f"{self._request.method} {own}{path}",
                key=self._key,
                content=await self._request.body(),
                session_id=path_params.get("session_id", ""),
            )
            answer = await self._shared.repeated.once(request, lambda: self._json_answer(act), run)
        content, is_replayed = answer
        return _response(content, self._request.scope["route"].status_code or 200, replayed=is_replayed)

    def _json_answer(self, act: Act) -> bytes:
        answer = act()
        self._shared.metrics.count_degraded(getattr(answer, "degraded", ()))
        return _json_of(answer)


def json_response(answer: Answer, status: int = 200, *, replayed: bool = False) -> Response:
    """An answer as a finished response, which FastAPI neither validates again nor moves to another thread."""
    return _response(_json_of(answer), status, replayed=replayed)


def _response(content: bytes, status: int, *, replayed: bool) -> Response:
    return Response(content, status, _REPLAYED if replayed else {}, "application/json")


def _json_of(answer: Answer) -> bytes:
    try:
        return answer.model_dump_json().encode()
    except ValueError:
        # Half a surrogate pair, which a message may hold, can be named in JSON but not encoded.
        return json.dumps(answer.model_dump(), default=str).encode()


async def _job(request: Request, shared: Shared, key: IdempotencyKey = None) -> RequestRunner:
    return RequestRunner(request, shared, key)


Once = Annotated[RequestRunner, Depends(_job)]


def in_queue(kind: WorkKind) -> Callable[[Callable[..., Response | Answer]], Callable[..., Awaitable[Response]]]:
    """Decorator of a route's function: it runs in a thread, once it is its turn in the queue of its kind.

    The function has a parameter `shared`, the state of its app. It gives an answer, or a response that it has made
    itself; an answer becomes one in that thread, with the headers of its parameter `response` if it has one.
    """

    def decorate(act: Callable[..., Response | Answer]) -> Callable[..., Awaitable[Response]]:
        signature = inspect.signature(act)

        @wraps(act)
        async def run(_request: Request, **values: Any) -> Response:
            app_state: AppState = values["shared"]
            queue = app_state.pools.queues.of(kind)
            return await queue.run(
                lambda: _as_response(act(**values), values.get("response")), receive=_request.receive
            )

        own = inspect.Parameter("_request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in signature.parameters.values()
        ]
        setattr(run, KIND_ATTRIBUTE, kind)
        # FastAPI reads it, to know what the function takes.
        run.__signature__ = signature.replace(parameters=[own, *parameters])  # type: ignore[attr-defined]
        return run

    return decorate


def _as_response(made: Response | Answer, told: Response | None) -> Response:
    if isinstance(made, Response):
        return made
    answer = json_response(made, (told and told.status_code) or 200)
    if told is not None:
        answer.headers.update(told.headers)
    return answer


SessionId = Annotated[
    str,
    Path(description="Id of the session.", examples=["support-42"], json_schema_extra={"pattern": SESSION_ID}),
]
