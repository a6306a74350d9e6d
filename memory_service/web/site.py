"""The site: which address shows which view, and what a failure looks like."""

from __future__ import annotations

import datetime as dt
import hmac
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote, urlsplit

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from memory_service.errors import Forbidden, MemoryServiceError
from memory_service.service import needed_role
from memory_service.web.host import Host, PageWork
from memory_service.web.render import HEADERS, LANGUAGE_COOKIE, page_language, render
from memory_service.web.views import (
    facts,
    files,
    health,
    history,
    keys,
    overview,
    receipt_pages,
    review,
    search_page,
    sessions,
)
from memory_service.web.visit import (
    FORM_COOKIE,
    SIGN_COOKIE,
    SignInNeeded,
    Visit,
    form_of,
    form_token,
    visit_of,
    written_number,
)

_log = logging.getLogger("memory_service.web")
_STATIC: Final = Path(__file__).parent / "static"
_YEAR_SECONDS: Final = 365 * 24 * 3600
# Of the year 5138, which clocks know.
_LAST_MS: Final = 10**14

_View: TypeAlias = Callable[[Visit], Response]

# Path below a workspace, methods, view, and the kind of its work in the server's queues.
_VIEWS: Final[tuple[tuple[str, str, _View, PageWork], ...]] = (
    ("", "GET", overview.overview_page, "read"),
    ("/search", "GET", search_page.search_page, "search"),
    ("/files", "GET", files.file_list, "read"),
    ("/files", "POST", files.note_memory, "append"),
    ("/files/{path:path}", "GET", files.file_page, "read"),
    ("/files/{path:path}", "POST", files.save_file, "append"),
    ("/edit/{path:path}", "GET", files.edit_page, "read"),
    ("/history/{path:path}", "GET", history.history_page, "read"),
    ("/history/{path:path}", "POST", history.restore_version, "append"),
    ("/forget", "GET", files.forget_page, "read"),
    ("/forget", "POST", files.forget_memory, "append"),
    ("/sessions", "GET", sessions.session_list, "read"),
    ("/sessions/{session_id}", "GET", sessions.session_page, "read"),
    ("/sessions/{session_id}/undo", "POST", sessions.undo_compaction, "append"),
    ("/sessions/{session_id}/branches", "POST", sessions.branch_session, "append"),
    ("/sessions/{session_id}/pins", "POST", sessions.pin_text, "append"),
    ("/sessions/{session_id}/unpin", "POST", sessions.remove_pin, "append"),
    ("/prompts", "GET", receipt_pages.receipt_list, "read"),
    ("/prompts/{receipt_id}", "GET", receipt_pages.receipt_page, "read"),
    ("/facts", "GET", facts.facts_page, "search"),
    ("/facts", "POST", facts.part_facts, "append"),
    ("/review", "GET", review.review_page, "read"),
    ("/review", "POST", review.review_entry, "append"),
    ("/operations", "GET", health.operation_list, "status"),
    ("/operations", "POST", health.cancel_operation, "append"),
    ("/health", "GET", health.health_page, "status"),
    ("/health", "POST", health.start_reindex, "append"),
)


class _Static(StaticFiles):
    """The scripts and styles, which a browser keeps: their addresses hold the version."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        """See Starlette."""
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = f"public, max-age={_YEAR_SECONDS}, immutable"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


def make_site(host: Host) -> Starlette:
    """The site of a server."""
    routes = [
        Route(f"/w/{{workspace}}{path}", _endpoint(host, view, kind), methods=[method])
        for path, method, view, kind in _VIEWS
    ]
    return Starlette(
        routes=[
            Route("/", _endpoint(host, overview.workspace_list, "read"), methods=["GET"]),
            Route("/keys", _endpoint(host, keys.keys_page, "read"), methods=["GET"]),
            Route("/keys", _endpoint(host, keys.change_keys, "append"), methods=["POST"]),
            Route("/sign-in", partial(_sign_in, host), methods=["GET", "POST"]),
            Route("/sign-out", _sign_out, methods=["POST"]),
            Route("/w/{workspace}/", _without_slash, methods=["GET"]),
            Route("/static/language", _set_language, methods=["GET"]),
            Mount("/static", _Static(directory=_STATIC)),
            Route("/w/{workspace}/events", partial(_events, host), methods=["GET"]),
            *routes,
        ],
        middleware=[Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=1)],
        exception_handlers={SignInNeeded: _to_sign_in, MemoryServiceError: _failure, 404: _missing, 405: _missing},
    )


def _endpoint(host: Host, view: _View, kind: PageWork) -> Callable[[Request], object]:
    async def answer(request: Request) -> Response:
        visit = await visit_of(host, request, needed_role(view, request.method))
        response: Response = await host.run(kind, partial(view, visit), request.receive)
        return response

    return answer


async def _events(host: Host, request: Request) -> Response:
    """The changes of a workspace as they happen, from the moment on at which a page was made."""
    visit = await visit_of(host, request)
    last_id, made_ms = written_number(request.headers.get("last-event-id", "")), visit.number("since", 0, _LAST_MS)
    since = dt.datetime.fromtimestamp(made_ms / 1000, dt.UTC) if made_ms and last_id is None else None
    subscribe = partial(host.service.workspace_events, visit.workspace, last_id, since=since)
    return host.stream(await host.run("read", subscribe, None), visit.remains_allowed)


async def _without_slash(request: Request) -> Response:
    return RedirectResponse(request.url.path.rstrip("/"), 308)


async def _set_language(request: Request) -> Response:
    """The language that a person chose, and back to where that was: a script may have changed the address."""
    language_name = "zh" if request.query_params.get("to") == "zh" else "en"
    origin = urlsplit(request.headers.get("referer", ""))
    back = f"{origin.path}?{origin.query}" if origin.query else origin.path
    response = RedirectResponse(_own_path(back), 303, HEADERS)
    response.set_cookie(LANGUAGE_COOKIE, language_name, max_age=_YEAR_SECONDS, samesite="lax", path="/")
    return response


def _own_path(address: str) -> str:
    """An address if it is a path of this server; `//host` would lead to another one."""
    is_own = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_own else "/"


async def _to_sign_in(request: Request, _: Exception) -> Response:
    path, query = request.url.path, request.url.query
    here = (f"{path}?{query}" if query else path) if request.method == "GET" else "/"
    return RedirectResponse(f"/sign-in?next={quote(here)}", 303, HEADERS)


async def _sign_in(host: Host, request: Request) -> Response:
    """The form for a key; with a good one, to where the visitor wanted to go."""
    language = page_language(request.headers, request.cookies)
    token = form_token(request)
    target, message, status = _own_path(request.query_params.get("next", "/")), "", 200
    if request.method == "POST":
        form = await form_of(request)
        target = _own_path(form.get("next", "/"))
        grant = await host.run("read", partial(host.service.access.grant, form.get("key", "").strip()), None)
        if not hmac.compare_digest(form.get("token", "").encode(), token.encode()):
            message, status = "The form is too old. Try again.", 403
        elif grant is None or not grant.may("read"):
            message, status = "This is no key that may see anything. Ask whoever runs the server for one.", 401
        else:
            response: Response = RedirectResponse(target, 303, HEADERS)
            sign_token = await host.run("read", partial(host.service.access.sign, grant.key_id), None)
            is_secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
            response.set_cookie(SIGN_COOKIE, sign_token, httponly=True, samesite="strict", secure=is_secure, path="/")
            return response
    response = render("sign_in", language, status, token=token, next=target, message=message)
    response.set_cookie(FORM_COOKIE, token, httponly=True, samesite="strict", path="/")
    return response


async def _sign_out(request: Request) -> Response:
    """Forget who has signed in."""
    # A key that may change nothing, and one that is withdrawn, can sign out too.
    form, token = await form_of(request), request.cookies.get(FORM_COOKIE, "")
    if not token or not hmac.compare_digest(form.get("token", "").encode(), token.encode()):
        raise Forbidden("The form is not one of this page, or it is too old. Open the page again.")
    response = RedirectResponse("/sign-in", 303, HEADERS)
    response.delete_cookie(SIGN_COOKIE, path="/")
    return response


async def _failure(request: Request, error: Exception) -> Response:
    assert isinstance(error, MemoryServiceError)
    language = page_language(request.headers, request.cookies)
    # What the storage or too much work hinders is tried again by the page itself.
    again = error.status == 503 and request.method == "GET"
    return render("failure", language, error.status, message=str(error), status=error.status, again=again)


async def _missing(request: Request, _: Exception) -> Response:
    language = page_language(request.headers, request.cookies)
    message = "There is no such page. Begin at the overview."
    return render("failure", language, 404, message=message, status=404, again=False)
