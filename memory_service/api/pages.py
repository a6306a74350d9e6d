"""The addresses `/`, which says to programs what this is, and `/docs`, the reference of all routes.

Invariants: a page asks no other host for anything, which its Content-Security-Policy holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route

from memory_service._version import __version__
from memory_service.api.auth import role_of
from memory_service.api.examples import REQUESTS
from memory_service.api.reference import OPENAPI_PATH, reference_page
from memory_service.api.requests import AppState
from memory_service.service import needs

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer"}


@needs("none")
async def _home(request: Request) -> Response:
    links = {"docs": "/docs", "openapi": OPENAPI_PATH, "health": "/health/ready"}
    return JSONResponse({"name": "memory-service", "version": __version__} | links, headers={"Vary": "Accept"})


@needs("none")
async def _docs(request: Request) -> Response:
    app_state: AppState = request.app.state.shared
    page = await app_state.pools.queues.of("health").run(partial(_page_of, request.app))
    return HTMLResponse(page, headers=_HEADERS)


def _page_of(app: FastAPI) -> str:
    """The reference of an app, made once."""
    docs_page: str | None = getattr(app.state, "docs_page", None)
    if docs_page is None:
        docs_page = app.state.docs_page = reference_page(app.openapi())
    return docs_page


# A browser is shown the page for people at `/`.
PAGES: Final = (Route("/", _home, include_in_schema=False), Route("/docs", _docs, include_in_schema=False))


def with_requests(document: dict[str, Any]) -> dict[str, Any]:
    """The document, with an example of each request in it."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if "requestBody" in operation:
                content = operation["requestBody"]["content"]["application/json"]
                content["example"] = REQUESTS[f"{method.upper()} {path}"]
    return document


def with_roles(document: dict[str, Any], routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """The document, with the role that each of these routes needs.

    Source: OpenAPI 3.1, "Security Requirement Object": the list of a scheme may hold the names of roles.
    """
    for route in routes:
        if not isinstance(route, APIRoute) or not route.include_in_schema:
            continue
        for method in route.methods or ():
            operation, role = document["paths"][route.path_format][method.lower()], role_of(route, method)
            if role == "none":
                operation["description"] += "\n\nNo key is needed."
            else:
                operation["description"] += f"\n\nRole of the key: `{role}`."
                operation["security"] = [{scheme: [role]} for scheme in document["components"]["securitySchemes"]]
    return document
