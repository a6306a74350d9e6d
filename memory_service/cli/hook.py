"""Command `hook`: one hook call of a coding agent.

Invariants: the agent is never kept from its work: whatever goes wrong, the command ends with 0 and says nothing to the
agent, within the time that hosts give; the fault is a line of `hooks.log` in the home.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from memory_service.hosts import HOSTS

# Hosts give a hook 30 seconds or more.
_LIMIT_SECONDS = 20.0


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("host")
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    envvar="MEMORY_SERVICE_HOME",
    help="Folder of the workspaces.  [default: ./data]",
)
@click.option(
    "--workspace", "-w", envvar="MEMORY_SERVICE_WORKSPACE", help="One isolated memory.  [default: the project's own]"
)
@click.option("--json", "as_json", is_flag=True, help="The answer is JSON anyhow.")
def hook(host: str, home: Path | None, workspace: str | None, as_json: bool) -> None:
    """Answer one hook call of a coding agent. HOST is claude-code, codex, cursor, opencode or openclaw.

    The host starts this command, with its JSON on standard input, and reads the answer on standard output. `connect`
    writes that into the host's settings.
    """
    if host not in HOSTS:
        click.echo(f"error: there is no host {host[:80]!a}. Use {', '.join(HOSTS)}.", err=True)
        # Not 2: hosts take that for a veto of what the agent was about to do.
        sys.exit(1)
    _within(_LIMIT_SECONDS, lambda: _answer(host, home, workspace), lambda fault: _note(home, host, fault))


def _answer(host: Any, home: Path | None, workspace: str | None) -> None:
    from memory_service.service import MemoryService

    call = json.loads(sys.stdin.buffer.read())
    if not isinstance(call, dict):
        raise ValueError("no object")
    with MemoryService.open(home) as service:
        answered = service.host_event(host, call, workspace=workspace)
        if answered.answer:
            sys.stdout.write(json.dumps(answered.answer) + "\n")
        sys.stdout.flush()
        answered.afterwards()


def _within(seconds: float, work: Callable[[], None], failed: Callable[[str], None]) -> None:
    """Do work for at most so long, and end the process with 0."""
    done = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # the agent goes on whatever happens here
            failed(_explained(error))
        finally:
            done.set()

    threading.Thread(target=run, daemon=True).start()
    if not done.wait(seconds):
        failed(f"the hook took more than {seconds:g} seconds and was given up")
        sys.stdout.flush()
        os._exit(0)


def _explained(error: BaseException) -> str:
    from memory_service.errors import MemoryServiceError

    if isinstance(error, MemoryServiceError):
        return str(error)
    if isinstance(error, ValueError):
        return "what came on standard input is no JSON object; a host sends one"
    return f"defect: {type(error).__name__}"


def _note(home: Path | None, host: str, fault: str) -> None:
    from memory_service.config import home_of
    from memory_service.hosts.progress import note_faults

    note_faults(home_of(home), host, "", (fault,))
