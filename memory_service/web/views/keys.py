"""Keys: who has signed in, and for an admin all of them, made and withdrawn."""

from __future__ import annotations

from starlette.responses import Response

from memory_service.errors import InvalidRequest
from memory_service.schemas.base import make_request
from memory_service.schemas.keys import NewKey
from memory_service.service import needs
from memory_service.web.visit import Visit


@needs("admin")
def keys_page(visit: Visit) -> Response:
    """All keys, and a form for a new one."""
    return visit.page("keys", keys=visit.service.access.keys(), new_key=None)


@needs("admin")
def change_keys(visit: Visit) -> Response:
    """Make a key, which this page alone shows, or withdraw one."""
    if key_id := visit.form.get("withdraw", ""):
        visit.service.access.withdraw(key_id)
        return visit.go("/keys")
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
    new_key = visit.service.access.make(new)
    return visit.page("keys", keys=visit.service.access.keys(), new_key=new_key)
