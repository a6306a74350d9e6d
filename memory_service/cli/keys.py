"""Commands of keys: make one, list them, withdraw one, in the home or by its server.

In the home they need no key, as whoever may write there needs none; a running server takes notice within a second. A
server that is named by its address wants the key of an admin.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import click

from memory_service.cli.columns import columns
from memory_service.cli.options import Place, examples, named_url, with_place, with_server
from memory_service.cli.output import emit_json

if TYPE_CHECKING:
    from memory_service.cli.warm import Server
    from memory_service.schemas import AccessKey, KeyRole, MadeKey, NewKey
    from memory_service.schemas.base import Answer
    from memory_service.service import AccessControl

_A = TypeVar("_A", bound="Answer")
_SECONDS = 60.0


class _ServerAccess:
    """The keys of a server elsewhere, with the methods of `AccessControl` that commands use."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def make(self, new: NewKey) -> MadeKey:
        """See `AccessControl`."""
        from memory_service.schemas import MadeKey

        return self._ask(MadeKey, "POST", "", new.model_dump_json().encode())

    def keys(self) -> list[AccessKey]:
        """See `AccessControl`."""
        from memory_service.schemas import AccessKeys

        return self._ask(AccessKeys, "GET").keys

    def withdraw(self, key_id: str) -> AccessKey:
        """See `AccessControl`."""
        from memory_service.schemas import AccessKey

        return self._ask(AccessKey, "DELETE", f"/{quote(key_id, safe='', errors='surrogatepass')}")

    def _ask(self, shape: type[_A], method: str, path: str = "", body: bytes = b"") -> _A:
        from memory_service.cli.warm import answer_of
        from memory_service.schemas import make_request

        return make_request(shape, **answer_of(self._server.ask(method, f"/v1/keys{path}", body, seconds=_SECONDS)))


@contextmanager
def _access(place: Place, url: str | None, api_key: str | None) -> Iterator[AccessControl | _ServerAccess]:
    """The keys of the server that was named, else of the home."""
    from memory_service.cli.warm import Server

    if address := named_url(place, url):
        yield _ServerAccess(Server(address.rstrip("/"), api_key=api_key or ""))
    else:
        with place.service(embeds=False) as service:
            yield service.access


@click.group(
    epilog=examples(
        'keys add "my own" --role admin',
        'keys add "help desk" --role read -k support',
        "keys withdraw 0123456789ab",
        "keys list --url https://memory.example.com",
    )
)
def keys() -> None:
    """Make keys for the server, list and withdraw them.

    They are those of the home, or with --url of a server elsewhere, which wants the key of an admin. With the first key
    every request to the server needs one. Roles: read sees; write changes, too; admin makes keys,
    too; gateway asks models through the gateway, and nothing else. Keys of the setting api_keys go on as write.
    """


@keys.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["read", "write", "admin", "gateway"]),
    default="write",
    show_default=True,
    help="What it may do.",
)
@click.option(
    "-k",
    "--for",
    "workspaces",
    multiple=True,
    help="A workspace that it is for; may be given several times.  [default: all]",
)
@click.option("--days", type=click.IntRange(1, 36_500), help="After so many days it is no key any more.")
@with_server
@with_place
def add(
    place: Place,
    url: str | None,
    api_key: str | None,
    name: str,
    role: KeyRole,
    workspaces: tuple[str, ...],
    days: int | None,
) -> None:
    """Make a key, and print it: this once, as only its hash is stored.

    NAME says whose it is, or what for.
    """
    from memory_service.schemas import NewKey, make_request

    new = make_request(NewKey, name=name, role=role, workspaces=list(workspaces) or ["*"], days=days)
    with _access(place, url, api_key) as access:
        new_key = access.make(new)
    if place.as_json:
        emit_json(new_key)
    else:
        click.echo(new_key.key)
        click.echo(
            f"{new_key.role} for {', '.join(new_key.workspaces)}; withdraw it: keys withdraw {new_key.key_id}", err=True
        )


@keys.command("list")
@with_server
@with_place
def list_keys(place: Place, url: str | None, api_key: str | None) -> None:
    """List all keys, without their secrets."""
    from memory_service.schemas import AccessKeys

    with _access(place, url, api_key) as access:
        listing = AccessKeys(keys=access.keys())
    if place.as_json:
        emit_json(listing)
        return
    if not listing.keys:
        click.echo("no keys: requests of this machine need none", err=True)
    for line in columns((key.key_id, _key_line(key)) for key in listing.keys):
        click.echo(line)


def _key_line(key: AccessKey) -> str:
    ends = f"until {key.expires_at:%Y-%m-%d}" if key.expires_at else ""
    use_text = f"used {key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else ""
    return "  ".join(filter(None, [key.role, ",".join(key.workspaces), key.name, ends, use_text]))


@keys.command("withdraw")
@click.argument("key_id")
@with_server
@with_place
def withdraw(place: Place, url: str | None, api_key: str | None, key_id: str) -> None:
    """Withdraw a key that was made; KEY_ID is its id, as the list has it."""
    with _access(place, url, api_key) as access:
        access.withdraw(key_id)
    if place.as_json:
        click.echo("{}")
    else:
        click.echo(f"withdrawn  {key_id}")
