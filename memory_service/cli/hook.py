"""Command `hook`: one hook call of a coding agent, through a running server or on the files.

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
from typing import TYPE_CHECKING, Any

import click

from memory_service.errors import InvalidRequest, MemoryServiceError
from memory_service.hosts import HOSTS

if TYPE_CHECKING:
    from memory_service.cli.warm import Server

# Hosts give a hook 30 seconds or more.
_LIMIT_SECONDS = 20.0


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("host")
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    envvar="MEMORY_SERVICE_HOME",
    help="Folder of the workspaces.  [default: ~/.memory-service]",
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
    call = _HookCommand(host, home, workspace)
    _within(_LIMIT_SECONDS, call.run, call.note)


class _HookCommand:
    """One run of the command."""

    def __init__(self, host: str, home: Path | None, workspace: str | None) -> None:
        self._host: Any = host
        self._home = home
        self._workspace = workspace

    def run(self) -> None:
        """Answer the call on standard input."""
        from memory_service.cli.warm import Unusable, server_for

        raw = sys.stdin.buffer.read()
        try:
            # The --home that `connect` wrote says where the log is, and not that a named server is to be passed over.
            server = server_for(self._home)
            if server:
                self._through(server, raw)
                return
        except Unusable as reason:
            if str(reason):
                self.note(f"the files were used, as {reason}")
        self._on_the_files(raw)

    def _through(self, server: Server, raw: bytes) -> None:
        from memory_service.cli.warm import answer_of

        workspace = self._workspace or (None if server.is_here else _project_workspace(raw))
        named = {"X-Memory-Workspace": workspace} if workspace else {}
        answer = server.ask("POST", f"/v1/hooks/{self._host}", raw, named, seconds=_LIMIT_SECONDS)
        _print(answer_of(answer).raw.strip())

    def _on_the_files(self, raw: bytes) -> None:
        from memory_service.service import open_at_once

        call = _call_of(raw)
        with open_at_once(self._home, embeds=True) as service:
            answered = service.host_event(self._host, call, workspace=self._workspace)
            _print(json.dumps(answered.answer).encode())
            answered.afterwards(lambda: False)

    def note(self, fault: str) -> None:
        """Append a fault to the log of the home."""
        from memory_service.home import home_of
        from memory_service.hosts.progress import note_faults

        note_faults(home_of(self._home), self._host, "", (fault,))


def _print(answer: bytes) -> None:
    if answer != b"{}":
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


def _call_of(raw: bytes) -> dict[str, object]:
    try:
        call = json.loads(raw)
    except (ValueError, RecursionError):
        call = None
    if not isinstance(call, dict):
        raise InvalidRequest("What came on standard input is no JSON object. Let the host start this command.")
    return call


def _project_workspace(raw: bytes) -> str | None:
    """The workspace of a call's project, for a server that does not have its folder."""
    from memory_service.hosts.dialects import read_event
    from memory_service.hosts.projects import project_of

    return project_of(read_event("claude-code", _call_of(raw)).folder).workspace_elsewhere


def _within(seconds: float, work: Callable[[], None], failed: Callable[[str], None]) -> None:
    """Do work for at most so long; a failure is noted, and the process ends with 0."""
    done = threading.Event()

    def run() -> None:
        try:
            work()
        except MemoryServiceError as error:
            failed(str(error))
        except BaseException as error:  # the agent goes on whatever happens here
            failed(f"defect: {type(error).__name__}")
        finally:
            done.set()

    threading.Thread(target=run, daemon=True).start()
    if not done.wait(seconds):
        failed(f"the hook took more than {seconds:g} seconds and was given up")
        sys.stdout.flush()
        os._exit(0)
