"""Commands of keys: make one, list them, withdraw one; a running server takes notice within a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memory_service.cli.columns import columns
from memory_service.cli.options import Place, examples, with_place
from memory_service.cli.output import emit_json

if TYPE_CHECKING:
    from memory_service.schemas import AccessKey, KeyRole


@click.group(
    epilog=examples(
        'keys make "my own" --role admin', 'keys make "help desk" --role read -k support', "keys withdraw 0123456789ab"
    )
)
def keys() -> None:
    """Make keys for the server, list and withdraw them.

    With the first key every request to the server needs one. Roles: read sees; write changes, too; admin makes keys,
    too; gateway asks models through the gateway, and nothing else. Keys of the setting api_keys go on as write.
    """


@keys.command("make")
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
@with_place
def make(place: Place, name: str, role: KeyRole, workspaces: tuple[str, ...], days: int | None) -> None:
    """Make a key, and print it: this once, as only its hash is stored.

    NAME says whose it is, or what for.
    """
    from memory_service.schemas import NewKey, make_request

    with place.service(embeds=False) as service:
        new_key = service.access.make(
            make_request(NewKey, name=name, role=role, workspaces=list(workspaces) or ["*"], days=days)
        )
    if place.as_json:
        emit_json(new_key)
    else:
        click.echo(new_key.key)
        click.echo(
            f"{new_key.role} for {', '.join(new_key.workspaces)}; withdraw it: keys withdraw {new_key.key_id}", err=True
        )


@keys.command("list")
@with_place
def list_keys(place: Place) -> None:
    """List all keys, without their secrets."""
    from memory_service.schemas import AccessKeys

    with place.service(embeds=False) as service:
        listing = AccessKeys(keys=service.access.keys())
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
@with_place
def withdraw(place: Place, key_id: str) -> None:
    """Withdraw a key that was made; KEY_ID is its id, as the list has it."""
    with place.service(embeds=False) as service:
        service.access.withdraw(key_id)
    if place.as_json:
        click.echo("{}")
    else:
        click.echo(f"withdrawn  {key_id}")
