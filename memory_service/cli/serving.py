"""The commands `serve` and `mcp`: the HTTP API, and a workspace for an MCP host."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import click

from memory_service.cli.options import Place, with_place
from memory_service.home import home_of, server_of
from memory_service.service import without_collector


@click.command()
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="MEMORY_SERVICE_HOME",
    help="Folder of the workspaces.  [default: ~/.memory-service]",
)
@click.option("--host", help="Address to listen on; other than loopback needs a key.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 picks a free one.  [default: 8765]")
@click.option("--watch/--no-watch", default=True, show_default=True, help="Index what changes on disk at once.")
def serve(home: Path | None, host: str | None, port: int | None, watch: bool) -> None:
    """Serve the HTTP API. Its documentation page is at /docs.

    Every setting can also be given as MEMORY_SERVICE_<NAME> or in <home>/memory-service.toml.
    """
    with without_collector():
        from memory_service.api.server import serve as run
        from memory_service.config import load_settings

    run(load_settings(home=home_of(home), host=host, port=port), watch=watch)


def _workspace_of(project: str, place: Place, url: str | None) -> str:
    """The workspace of a project in the home at hand, or in that of a server elsewhere."""
    from memory_service.hosts.projects import project_of

    found_project, home = project_of(os.path.abspath(project)), home_of(place.home)
    server = server_of(home)
    is_here = not url or (server is not None and server.url.rstrip("/") == url.rstrip("/"))
    if not is_here:
        return found_project.workspace_elsewhere
    from memory_service.config import load_settings

    return found_project.workspace_for(load_settings(home=home))


@click.command()
@click.option("--url", envvar="MEMORY_SERVICE_URL", help="Address of a running server to use instead of the home.")
@click.option(
    "--api-key",
    envvar="MEMORY_SERVICE_API_KEY",
    help="Key for that server, or for the home if it has keys; better in the environment.",
)
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
        with without_collector():
            from memory_service.mcp.protocol import forward_stdio

        forward_stdio(url, {"X-Memory-Workspace": workspace, **key})
    else:
        with without_collector():
            from memory_service.mcp.stdio import serve_stdio

        serve_stdio(place.home, workspace, api_key or "")
