"""Keys: who has signed in, and for an admin all of them, made and withdrawn."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from memory_service.errors import InvalidRequest
from memory_service.schemas.base import make_request
from memory_service.schemas.keys import AccessKey, MadeKey, NewKey
from memory_service.service import needs
from memory_service.web.visit import Visit


@needs("admin")
def keys_page(visit: Visit) -> Response:
    """All keys, and a form for a new one."""
    return _page(visit)


@needs("admin")
def change_keys(visit: Visit) -> Response:
    """Make a key, which this page alone shows, or withdraw one."""
    if key_id := visit.form.get("withdraw", ""):
        visit.service.access.withdraw(key_id)
        return visit.go("/keys")
    if visit.form.get("known", "") != _key_ids(visit.service.access.keys()):
        # The form was sent twice, or somebody else was faster: a key more that nobody sees would be a risk.
        return _page(
            visit, 409, message="The keys have changed since this form was opened, and none was made by it now."
        )
    days = visit.form.get("days", "").strip()
    if days and not (days.isascii() and days.isdigit() and len(days) < 6):
        raise InvalidRequest("The days of a key are a number. Leave them out for a key without an end.")
    new = make_request(
        NewKey,
        name=visit.form.get("name", ""),
        role=visit.form.get("role", "write"),
        workspaces=visit.form.get("workspaces", "").replace(",", " ").split() or ["*"],
        days=int(days) if days else None,
    )
    return _page(visit, new_key=visit.service.access.make(new))


def _page(visit: Visit, status: int = 200, *, new_key: MadeKey | None = None, message: str = "") -> Response:
    keys = visit.service.access.keys()
    return visit.page("keys", status, keys=keys, known=_key_ids(keys), new_key=new_key, message=message)


def _key_ids(keys: Sequence[AccessKey]) -> str:
    """The keys that a form was drawn beside."""
    return " ".join(sorted(key.key_id for key in keys))
