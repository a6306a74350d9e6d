"""Root command: the commands by name, the modules that they come from, and exit codes.

Invariants: a command's module is imported when it is run or listed, never before, and imports the service inside its
functions, so `--help` costs no model and no server.
"""

from __future__ import annotations

import io
import sys
from importlib import import_module

import click

from memory_service.home import nearest

_COMMANDS = {
    "demo": "demo",
    "serve": "serving",
    "mcp": "serving",
    "connect": "hosts",
    "disconnect": "hosts",
    "hosts": "hosts",
    "reindex": "index",
    "search": "memories",
    "context": "memories",
    "get": "memories",
    "history": "memories",
    "remember": "memories",
    "entries": "entries",
    "receipts": "receipts",
    "facts": "facts",
    "distinguish": "facts",
    "edit": "entries",
    "forget": "entries",
    "sessions": "sessions",
    "hook": "hook",
    "workspaces": "homes",
    "join": "homes",
    "sync": "sync",
    "migrate": "migrate",
    "keys": "keys",
    "operations": "status",
    "settings": "status",
    "status": "status",
    "doctor": "status",
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


def _printable() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
