"""Answers to failures: `{"error": {"code", "message"}}` with the status.

Invariants: a message says what failed and what to do; nothing of the request is repeated but the name of a field; a
defect of the service is answered without details and logged with its traceback.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.types import Scope

from memory_service.api.examples import ERRORS
from memory_service.errors import (
    CallCancelled,
    Incompressible,
    InvalidRequest,
    MemoryServiceError,
    NotFound,
    Overloaded,
    ServerFailed,
    retry_headers,
)
from memory_service.home import SearchedPlace
from memory_service.schemas.base import fault_in
from memory_service.schemas.memories import ErrorAnswer, ErrorBody

_log = logging.getLogger("memory_service.api")
_MAX_NAME_CHARS = 80
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}}
_SCHEMA = "#/components/schemas/{model}"
_MEANINGS = {
    400: "A name or path is malformed, or would leave its folder.",
    401: "The key is missing or unknown.",
    403: "The key is not for this workspace, or the request comes from another site.",
    404: "There is no such workspace, session, file, entry, receipt or operation.",
    409: "The request contradicts one that was already answered, or what somebody else did meanwhile.",
    412: "The file is not what the caller last saw.",
    413: "The body is over the limit.",
    415: "The body is not sent as JSON.",
    422: "A value in the request cannot be used; the message names it.",
    429: "Others work on the session, or too many work at once. Try again after a while.",
    502: "A model failed, and nothing stands in for it. Nothing was changed.",
    503: "Too many such requests wait already, and nothing was done: send it again after `Retry-After` seconds. Or the "
    "disk or the index cannot be used.",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Failures of a route, for its documentation, each with an example; see `error_schemas`.

    They name the shape instead of bringing the model, of which FastAPI would make a validator for each status of each
    route: several hundred, a tenth of the start of a server.
    """
    return {
        status: {
            "description": _MEANINGS[status],
            "content": {
                "application/json": {
                    "schema": {"$ref": _SCHEMA.format(model="ErrorAnswer")},
                    "example": ERRORS[status].model_dump(exclude_none=True),
                }
            },
        }
        # Where a body may be too large, it may be of another kind.
        for status in sorted({*statuses, *([415] if 413 in statuses else [])})
    }


def error_schemas() -> dict[str, Any]:
    """The shape of a failure, for the schemas of the document."""
    whole = ErrorAnswer.model_json_schema(ref_template=_SCHEMA, mode="serialization")
    inner: dict[str, Any] = whole.pop("$defs")
    return {"ErrorAnswer": whole, **inner}


def error_answer(
    error: MemoryServiceError,
    headers: Mapping[str, str] | None = None,
    *,
    message: str = "",
    scope: Scope | None = None,
) -> Response:
    """Answer to an error of the service, with its own message unless another is given.

    Args:
        error: The error.
        headers: Of the answer.
        message: In the place of its own.
        scope: The request: one for a provider's path is answered in that provider's shape.
    """
    if scope is not None and (shaped_value := scope["app"].state.in_provider_shape(scope, error)) is not None:
        response: Response = shaped_value
        response.headers.update({**_HEADERS.get(error.status, {}), **(headers or {})})
        return response
    parts = error.parts if isinstance(error, Incompressible) and error.parts else None
    return _answer(error.status, error.code, message or str(error), {**retry_headers(error), **(headers or {})}, parts)


def defect_answer() -> Response:
    """Answer to a request that met a defect of the service."""
    return error_answer(
        ServerFailed("The server met a defect. Its log has the details, below the X-Request-ID of this answer.")
    )


def install(app: FastAPI, place_of: Callable[[Request], SearchedPlace]) -> None:
    """Have an app answer every failure in the one shape.

    Args:
        app: The app.
        place_of: Where a request is answered from, as far as who asks may know.
    """

    async def on_ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, MemoryServiceError)
        # Those are counted: a line for each would be the next thing to be too much.
        if error.status >= 500 and not isinstance(error, Overloaded | CallCancelled):
            _log.warning("%s: %s", error.code, error)
        return error_answer(error, message=place_of(request).error_message(error))

    app.add_exception_handler(MemoryServiceError, on_ours)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


def _explain_validation(error: Mapping[str, Any]) -> str:
    """A validation error of pydantic in plain words, without the value."""
    place, *names = (str(part) for part in error["loc"])
    name = repr(".".join(names)[:_MAX_NAME_CHARS])
    kind, (_, reason) = error["type"], fault_in(error)
    if kind == "json_invalid":
        fault = error["ctx"]["error"].removesuffix(" at")
        return f"The body is no JSON: {fault} at character {names[0]}. Send a JSON object."
    if not names:
        return "The body is no JSON object. Send one, with the header Content-Type: application/json."
    if kind == "missing":
        return f"The {_PLACES[place]} {name} is missing. Send it; /docs shows what this route takes."
    if kind == "extra_forbidden":
        return f"The {_PLACES[place]} {name} is unknown. Leave it out; /docs shows what this route takes."
    return f"The {_PLACES[place]} {name} cannot be used: {reason}. Send another value."


_PLACES = {"body": "field", "query": "query parameter", "path": "path parameter", "header": "header"}


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return error_answer(InvalidRequest(_explain_validation(error.errors()[0])))


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _refused_method(request) if error.status_code == 405 else _http_answer(error)


def _http_answer(error: HTTPException) -> Response:
    if error.status_code == 404:
        return error_answer(NotFound("There is no such route. /docs shows all of them."))
    if error.status_code == 400:
        return error_answer(InvalidRequest("The body cannot be read. Send a JSON object in UTF-8."))
    return _answer(
        error.status_code, "http_error", f"{error.detail}. /docs shows what this route takes.", error.headers
    )


def _refused_method(request: Request) -> JSONResponse:
    """Answer with the methods of all routes of the path; starlette names those of the first one alone."""
    matching = (route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE)
    allowed_text = ", ".join(sorted({method for route in matching for method in getattr(route, "methods", ())}))
    message = f"This route does not take {request.method[:20]}. It takes {allowed_text}; /docs shows all routes."
    return _answer(405, "method_not_allowed", message, {"Allow": allowed_text})


def _answer(
    status: int, code: str, message: str, headers: Mapping[str, str] | None, parts: dict[str, int] | None = None
) -> JSONResponse:
    # Half a surrogate pair can be named but not encoded.
    body = ErrorAnswer(error=ErrorBody(code=code, message=message.encode("utf-8", "replace").decode(), parts=parts))
    return JSONResponse(
        body.model_dump(exclude_none=True), status, headers={**_HEADERS.get(status, {}), **(headers or {})}
    )
