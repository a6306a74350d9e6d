"""A visit: one request of a person's browser, with what its view needs."""

from __future__ import annotations

import datetime as dt
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from memory_service.errors import Forbidden, InvalidRequest, NotFound, StorageFailed
from memory_service.web.render import HEADERS, Language, page_language, render

if TYPE_CHECKING:
    from memory_service.service import Grant, MemoryService, NeededRole
    from memory_service.web.host import Host

FORM_COOKIE: Final = "page_form"
SIGN_COOKIE: Final = "page_sign_in"
_TOKEN_BYTES: Final = 24
_MOST_FORM_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A request of a page.

    Attributes:
        host: What the server gives the page.
        request: The request.
        workspace: The workspace that its path names; empty for none.
        form: What was sent with it.
        language: The language of the words.
        token: What a form must send back, so that no other site can send one.
        grant: What the visitor may do.
        begun_at: Time of the request: what changes from then on, its page may not show.
    """

    host: Host
    request: Request
    workspace: str
    form: Mapping[str, str]
    language: Language
    token: str
    grant: Grant
    begun_at: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))

    @property
    def service(self) -> MemoryService:
        """The service."""
        return self.host.service

    @property
    def query(self) -> Mapping[str, str]:
        """The query of the address."""
        return self.request.query_params

    @property
    def may_write(self) -> bool:
        """True if the visitor's key may change something."""
        return self.grant.may("write")

    @property
    def sees_home(self) -> bool:
        """True if the visitor may see the settings of the server, and what there is on its machine."""
        is_admin = self.grant.may("admin") and self.grant.is_for_all
        return is_admin and (self.has_signed_in or self.host.shows_home(self.request))

    @property
    def has_signed_in(self) -> bool:
        """True if the visitor has a key, and may sign out."""
        return bool(self.grant.key_id)

    def page(self, template: str, status: int = 200, /, **values: Any) -> Response:
        """A page of this visit."""
        response = render(
            template,
            self.language,
            status,
            visit=self,
            workspace=self.workspace,
            names=self.names(),
            here=str(self.request.url.path),
            **values,
        )
        if self.request.cookies.get(FORM_COOKIE) != self.token:
            response.set_cookie(FORM_COOKIE, self.token, httponly=True, samesite="strict", path="/")
        return response

    def names(self) -> list[str]:
        """The workspaces that the visitor may see."""
        return [name for name in self.service.workspaces() if self.grant.allows(name)]

    def go(self, address: str) -> Response:
        """To another page, after something was done."""
        return RedirectResponse(address, 303, HEADERS)

    def remains_allowed(self) -> bool:
        """True as long as the visitor's key is one with the same rights; for what goes on without a new request."""
        access, cookie = self.service.access, self.request.cookies.get(SIGN_COOKIE, "")
        try:
            if not self.has_signed_in:
                return not access.is_required()
            return (access.signed_grant(cookie) if cookie else access.grant_of_id(self.grant.key_id)) == self.grant
        except StorageFailed:
            # What was known last holds.
            return True

    def number(self, name: str, default: int, most: int) -> int:
        """A number of the query, within limits."""
        number = written_number(self.query.get(name, ""))
        return default if number is None else min(number, most)


def written_number(text: str) -> int | None:
    """A number as an address or a header has it; None for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None


def written_day(text: str) -> dt.date | None:
    """A day as a form or a name of a file has it; None for what is none."""
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def form_token(request: Request) -> str:
    """The token that forms of a browser send back: that of its cookie, or a new one."""
    return request.cookies.get(FORM_COOKIE, "") or secrets.token_urlsafe(_TOKEN_BYTES)


class SignInNeeded(Exception):
    """The visitor has no key yet."""


async def visit_of(host: Host, request: Request, role: NeededRole = "read") -> Visit:
    """The visit of a request that needs a role.

    Raises:
        SignInNeeded: It has no key.
        Forbidden: Its key is not for its workspace, or its form is not one of this page.
        NotFound: There is no such workspace.
    """
    workspace = str(request.path_params.get("workspace", ""))
    grant: Grant | None = getattr(request.state, "grant", None)
    if grant is None:
        signed = partial(host.service.access.signed_grant, request.cookies.get(SIGN_COOKIE, ""))
        grant = await host.run("read", signed, None)
    if grant is None:
        raise SignInNeeded
    grant.check(role)
    if workspace and not grant.allows(workspace):
        raise Forbidden("The key is not for this workspace. Sign in with one of it.")
    token = form_token(request)
    form: dict[str, str] = {}
    if request.method == "POST":
        form = await form_of(request)
        if not hmac.compare_digest(form.get("token", "").encode(), token.encode()):
            raise Forbidden("The form is not one of this page, or it is too old. Open the page again.")
    if workspace and not await host.run("read", partial(host.service.has_workspace, workspace), None):
        raise NotFound(f"There is no workspace {workspace!r}. Remember something in it first.")
    return Visit(
        host=host,
        request=request,
        workspace=workspace,
        form=form,
        language=page_language(request.headers, request.cookies),
        token=token,
        grant=grant,
    )


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form.

    Raises:
        InvalidRequest: It cannot be read.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise InvalidRequest("The form cannot be read. Send it from the page.")
    raw = await request.body()
    if len(raw) > _MOST_FORM_BYTES:
        raise InvalidRequest("The form is too large. Edit the file in an editor.")
    try:
        return dict(parse_qsl(raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), errors="strict"))
    except ValueError:
        raise InvalidRequest("The form cannot be read. Send it from the page.") from None
