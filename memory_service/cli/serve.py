"""The command that runs the HTTP API: serve."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="MEMORY_SERVICE_HOME",
    help="Folder of the workspaces.  [default: ./data]",
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

    run(load_settings(home=home, host=host, port=port), watch=watch)
