"""Root command: the commands by name, the modules that they come from, and exit codes.

Invariants: a command's module is imported when it is run or listed, never before, and imports the service inside its
functions, so `--help` costs no model and no server.
"""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path

import click

from memory_service.cli.options import Place, with_place
from memory_service.home import home_of, nearest, server_of

_COMMANDS = {
    "demo": "demo",
    "serve": "root",
    "mcp": "root",
    "connect": "hosts",
    "disconnect": "hosts",
    "reindex": "index",
    "search": "memories",
    "context": "memories",
    "get": "memories",
    "remember": "memories",
    "entries": "entries",
    "edit": "entries",
    "forget": "entries",
    "sessions": "sessions",
    "hook": "hook",
    "workspaces": "homes",
    "join": "homes",
    "sync": "sync",
    "status": "index",
    "doctor": "index",
}


class _Commands(click.Group):
    """Commands by name, each from its own module."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See click; a name that is none is told with the one that is like it."""
        name = args[0]
        if not name.startswith("-") and name not in _COMMANDS:
            ctx.fail(f"No such command {name!r}.{nearest(name, _COMMANDS)}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"memory_service.cli.{_COMMANDS[cmd_name]}"), cmd_name)
        return command


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="memory-service", message="%(prog)s %(version)s")
def root() -> None:
    """Memory for AI agents: Markdown files in, an exact, budgeted block in the prompt out.

    Memories are plain Markdown below <home>/<workspace>/. Edit them with any editor; the index beside
    them is derived and may be deleted at any time.

    \b
    Try it:        memory-service demo
    Your notes:    memory-service remember "Deploys go out on Tuesdays."
                   memory-service search "when do we deploy?"
    In a service:  memory-service serve
    """  # noqa: D301  (click reads the character, not the escape)


def main() -> None:
    """Run the command line; exit 0 for done, 1 for a failure told in one line, 2 for wrong usage."""
    from memory_service.cli.output import print_error, wanted_colour
    from memory_service.errors import MemoryServiceError, StorageFailed

    _printable()
    try:
        root(prog_name="memory-service", standalone_mode=True, color=wanted_colour())
    except MemoryServiceError as error:
        sys.exit(print_error(error))
    except BrokenPipeError:
        # The reader of our output has gone, as `| head` does.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        # The service tells its own in its own words; what is left is where the output goes, as to a full disk.
        place, reason = error.filename or "The output", error.strerror or error
        sys.exit(
            print_error(StorageFailed(f"{place} cannot be written ({reason}). Check the disk and its permissions."))
        )


def run() -> None:
    """Run the command line as a process of its own, which ends with it."""
    try:
        main()
    except SystemExit as end:
        _leave(end)
        raise


def _leave(end: SystemExit) -> None:
    """End the process here, if nothing runs behind it and all of its output has left; else return.

    Python would take every module apart first: a sixth of a second once the service is loaded.
    Source: our measurement; mypy:mypy/util.py, hard_exit
    """
    if not all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate()):
        return
    atexit._run_exitfuncs()
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        return
    os._exit(end.code if isinstance(end.code, int) else int(end.code is not None))


def _printable() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@click.command()
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="MEMORY_SERVICE_HOME",
    help="Folder of the workspaces.  [default: ~/.memory-service]",
)
@click.option("--host", help="Address to listen on; other than loopback needs api_keys.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 picks a free one.  [default: 8765]")
@click.option("--watch/--no-watch", default=True, show_default=True, help="Index what changes on disk at once.")
def serve(home: Path | None, host: str | None, port: int | None, watch: bool) -> None:
    """Serve the HTTP API. Its documentation page is at /docs.

    Every setting can also be given as MEMORY_SERVICE_<NAME> or in <home>/memory-service.toml.
    """
    from memory_service.api.server import serve as run
    from memory_service.config import load_settings
    from memory_service.errors import InvalidRequest
    from memory_service.home import PREFIX

    settings = load_settings(home=home_of(home), host=host, port=port)
    if os.environ.get(f"{PREFIX}API_KEY") and not settings.api_keys:
        raise InvalidRequest(
            f"{PREFIX}API_KEY is the key of a client, and the server would serve without any. "
            f"Set {PREFIX}API_KEYS=key:workspace, or unset it."
        )
    run(settings, watch=watch)


def _workspace_of(project: str, place: Place, url: str | None) -> str:
    """The workspace of a project in the home at hand, or in that of a server elsewhere."""
    from memory_service.hosts.projects import project_of

    found_project, home = project_of(os.path.abspath(project)), home_of(place.home)
    server = server_of(home)
    is_here = not url or (server is not None and server.url.rstrip("/") == url.rstrip("/"))
    return found_project.workspace_in(home) if is_here else found_project.workspace_elsewhere


@click.command()
@click.option("--url", envvar="MEMORY_SERVICE_URL", help="Address of a running server to use instead of the home.")
@click.option("--api-key", envvar="MEMORY_SERVICE_API_KEY", help="Key for that server; better in the environment.")
@click.option("--project", help="Folder of a project, whose own memory it is; --workspace is then without meaning.")
@with_place
def mcp(place: Place, url: str | None, api_key: str | None, project: str | None) -> None:
    """Serve a workspace to an MCP host, on standard input and output.

    The host starts this command. It works on the home, beside a server too; with --url it goes through that server.
    """
    if sys.stdin.isatty():
        click.echo("An MCP host starts this command and speaks on its input. Ctrl-C ends it.", err=True)
    if threading.current_thread() is threading.main_thread():
        # Ctrl-C ends the process as SIGTERM does: the thread that reads its input cannot be woken otherwise.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    workspace = _workspace_of(project, place, url) if project else place.workspace
    if url:
        key = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        from memory_service.mcp.protocol import forward_stdio

        forward_stdio(url, {"X-Memory-Workspace": workspace, **key})
    else:
        from memory_service.mcp.stdio import serve_stdio

        serve_stdio(place.home, workspace)
