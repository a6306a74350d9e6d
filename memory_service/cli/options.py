"""Options that every command has, and the service that they open."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from memory_service.home import LOOKED_FOR, PREFIX, answers, database_of, home_of, id_of_title, is_title, server_of

if TYPE_CHECKING:
    from memory_service.cli.warm import ServerMemory
    from memory_service.service import MemoryService


def _day(ctx: click.Context, parameter: click.Parameter, given: str | None) -> date | None:
    try:
        return date.fromisoformat(given) if given else None
    except ValueError:
        raise click.BadParameter(f"{given!r} is no day. Write one such as 2026-11-20.", ctx, parameter) from None


def day_option(name: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option whose value is a day."""
    return click.option(name, metavar="YYYY-MM-DD", callback=_day, help=help)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Home, workspace and output format of a command."""

    home: Path | None
    workspace: str
    as_json: bool
    home_named: bool = False
    workspace_named: bool = False

    def __str__(self) -> str:
        """Where it looks, for people."""
        from memory_service.config import load_settings

        url = "" if self.home_named else os.environ.get(f"{PREFIX}URL")
        return f"the workspace {self.workspace} of {url or load_settings(home=home_of(self.home)).place}"

    @contextmanager
    def service(self, *, embeds: bool = False) -> Iterator[MemoryService]:
        """The service on this home, closed afterwards; for a command that embeds, the model is loaded at once."""
        from memory_service.service import open_at_once

        # The home of the environment says nothing beside a server of the environment.
        is_named = self.home_named or not os.environ.get(f"{PREFIX}URL")
        with open_at_once(self.home if is_named else None, embeds=embeds) as service:
            server = None if service.settings.database_url else server_of(service.settings.home)
            if server and server.storage and answers(server.url):
                note = f"the server at {server.url} has its memories in a database, and this command takes the files"
                click.secho(f"note: {note} of {service.settings.home}: set database_url", dim=True, err=True)
            yield service

    @contextmanager
    def memory(self, *, embeds: bool = True, waits: bool | None = None) -> Iterator[MemoryService | ServerMemory]:
        """The memories of this home, or of the server that was named: through a server if one runs, else as above.

        Args:
            embeds: Whether the command asks the embedding model.
            waits: Whether it waits until all that changed is indexed, or takes what is there; None where it asks for
                nothing that is indexed.
        """
        from memory_service.cli.warm import ServerMemory, ServerUnusable, server_for

        try:
            server = server_for(self.home, on_files=self.home_named)
        except ServerUnusable as reason:
            server = None
            self._tell_cold(str(reason))
        if server:
            yield ServerMemory(
                server, functools.partial(self._prepare_service, embeds, waits), self._tell_cold, waits=bool(waits)
            )
            return
        with self._prepare_service(embeds, waits) as service:
            yield service

    def _tell_cold(self, reason: str) -> None:
        if reason:
            place = "database was" if database_of(home_of(self.home)) else "files were"
            click.secho(f"note: the {place} used, as {reason}", dim=True, err=True)

    @contextmanager
    def _prepare_service(self, embeds: bool, waits: bool | None) -> Iterator[MemoryService]:
        """The service on this home, its index as the command wants it."""
        from memory_service.cli.output import INDEXED_FIRST, progress_bar

        with self.service(embeds=embeds) as service:
            begins = waits is None and not service.settings.home.exists()
            if waits:
                with progress_bar(INDEXED_FIRST) as show:
                    service.bring_up_to_date(self.workspace, on_progress=show)
            elif waits is not None:
                service.leave_changes(self.workspace)
            yield service
            if begins and service.settings.home.exists():
                for join in service.other_homes():
                    click.secho(f"note: this begins a memory in {service.settings.home}; {join}", dim=True, err=True)


def _is_named(option: str) -> bool:
    """True if an option stands on the command line itself."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


def _workspace_is_named() -> bool:
    """True if somebody chose the workspace, on the command line or in the environment."""
    return click.get_current_context().get_parameter_source("workspace") is not ParameterSource.DEFAULT


def named_url(place: Place, url: str | None) -> str:
    """The address of `with_server` that a command uses; empty for none: a home on the command line counts for more.

    Raises:
        InvalidRequest: It is no address.
    """
    from memory_service.cli.warm import checked_address

    is_used = bool(url) and (_is_named("url") or not place.home_named)
    return checked_address(url, "The address of the server") if url and is_used else ""


def with_server(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --url and --api-key to a command, which gets `url` and `api_key`."""
    command = click.option(
        "--api-key", envvar="MEMORY_SERVICE_API_KEY", help="Key for that server; better in the environment."
    )(command)
    return click.option("--url", envvar="MEMORY_SERVICE_URL", help="Address of the server.  [default: the home's]")(
        command
    )


def examples(*lines: str) -> str:
    """Examples below the help of a command, line by line."""
    return "\n".join(("\b", "Examples:", *(f"  memory-service {line}" for line in lines)))


def with_place(command: Callable[..., Any], *, workspace_shown: str = "default") -> Callable[..., Any]:
    """Add --home, --workspace and --json to a command; it gets them as its first argument.

    Args:
        command: The command.
        workspace_shown: What its help says that it takes without --workspace.
    """

    @click.option(
        "--home",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="MEMORY_SERVICE_HOME",
        help="Folder of the workspaces.  [default: ~/.memory-service]",
    )
    @click.option(
        "--workspace",
        "-w",
        default="default",
        envvar="MEMORY_SERVICE_WORKSPACE",
        help=f"One isolated memory.  [default: {workspace_shown}]",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
    @functools.wraps(command)
    def wrapper(home: Path | None, workspace: str, as_json: bool, **arguments: Any) -> Any:
        place = Place(
            home=home,
            workspace=workspace,
            as_json=as_json,
            home_named=_is_named("home"),
            workspace_named=_workspace_is_named(),
        )
        with _naming_the_home(place):
            return command(place, **arguments)

    return wrapper


@contextmanager
def _naming_the_home(place: Place) -> Iterator[None]:
    """A block whose errors about what is not there say where it was looked for."""
    from memory_service.errors import NotFound

    try:
        yield
    except NotFound as error:
        if LOOKED_FOR in str(error) or str(home_of(place.home)) in str(error):
            raise
        raise NotFound(f"{error} {LOOKED_FOR} {place}.") from error


class _Session(click.ParamType[str, str]):
    """Id of a session, or its title, whose id is made from it."""

    name = "session"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return id_of_title(value) if is_title(value) else value


session_argument = click.argument("session_id", type=_Session())


def with_order(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --order to a command."""
    return click.option(
        "--order",
        type=click.Choice(["score", "memory_first"]),
        default="score",
        show_default=True,
        help="The best first, or memories and files before sessions.",
    )(command)


SHARE = click.FloatRange(0, 1)


def with_min_relevance(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --min-relevance to a command."""
    return click.option(
        "--min-relevance",
        type=SHARE,
        default=0.0,
        show_default=True,
        help="Leave out what bears on QUERY with less than this probability.",
    )(command)


def with_tags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --tag as a filter to a command."""
    return click.option(
        "--tag", "tags", multiple=True, help="Only what has this tag; given several times, all of them."
    )(command)


def with_wait(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --no-wait to a command, which gets `wait`."""
    return click.option(
        "--wait/--no-wait",
        default=True,
        show_default=True,
        help="Wait until what changed is indexed, or answer with what there is.",
    )(command)


def with_filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the filters of a search to a command, by the names that `MemoryService.search` gives them."""
    command = day_option("--until", "Only memories of this day or earlier.")(command)
    command = day_option("--since", "Only memories of this day or later.")(command)
    command = click.option(
        "--path", "path_prefix", default="", help="Only files whose path begins so, such as memory/2026-11."
    )(command)
    command = with_tags(command)
    return click.option(
        "--source", "sources", multiple=True, type=click.Choice(["memory", "sessions", "files"]), help="Kind of source."
    )(command)
