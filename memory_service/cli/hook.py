"""Command `hook`: one hook call of a coding agent, through a running server or on the files.

On the files the command does what the answer needs, and ends: what a call brings, flushes, summaries and the index are
left to a worker process that the host does not wait for, by a queue in the home; see `memory_service.hosts.queue`.

Invariants: the agent is never kept from its work: whatever goes wrong, the command ends with 0 and says nothing to the
agent, within the time that hosts give; the fault is a line of `hooks.log` in the home; a host that does not read the
answer loses nothing of what its call brings.
"""

from __future__ import annotations

import codecs
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_service.errors import ConnectionFailed, InvalidRequest, MemoryServiceError
from memory_service.hosts import HOSTS

if TYPE_CHECKING:
    from memory_service.cli.warm import Server
    from memory_service.hosts.dialects import HostEvent
    from memory_service.hosts.queue import CallQueue, HookWork

# Hosts give a hook 30 seconds or more.
_LIMIT_SECONDS = 20.0
# Of Windows: no console of the host's, and no end with its group.
_DETACHED = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)


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
        click.echo(f"error: there is no host {host[:80]!r}. Use {', '.join(HOSTS)}.", err=True)
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
        from memory_service.cli.warm import ServerUnusable, server_for

        raw = sys.stdin.buffer.read()
        try:
            # The --home that `connect` wrote says where the log is, and not that a named server is to be passed over.
            server = server_for(self._home)
            if server:
                self._through(server, raw)
                return
        except ServerUnusable as reason:
            if str(reason):
                self.note(f"the server was not used, as {reason}")
        self._on_the_files(raw)

    def _through(self, server: Server, raw: bytes) -> None:
        from memory_service.cli.warm import answer_of

        workspace = self._workspace or (None if server.is_here else _project_workspace(raw))
        named_fields = {"X-Memory-Workspace": workspace} if workspace else {}
        try:
            answer = server.ask("POST", f"/v1/hooks/{self._host}", raw, named_fields, seconds=_LIMIT_SECONDS)
        except ConnectionFailed:
            if not server.is_named:
                # A server of the home that hangs: what the call brings is kept beside it, which does nothing twice.
                self._leave_beside(raw)
            raise
        _print(answer_of(answer).raw.strip())

    def _leave_beside(self, raw: bytes) -> None:
        from memory_service.hosts.dialects import read_event

        call = _call_of(raw)
        event = read_event(self._host, call)
        if event.kind not in ("other", "session_start"):
            self._leave(self._queue(), event, call, "keep" if event.most_chars else "all")

    def _on_the_files(self, raw: bytes) -> None:
        from memory_service.hosts.dialects import read_event, rendered_answer

        call = _call_of(raw)
        event = read_event(self._host, call)
        if event.kind == "other":
            return
        # Before a compaction what was said so far has to be stored: what comes next is given what the host forgets.
        if not event.most_chars and (event.kind != "pre_compact" or not event.transcript):
            self._leave(self._queue(), event, call, "all")
            _print(json.dumps(rendered_answer(event, "", is_stored=True)).encode())
        else:
            self._answer(event, call)

    def _answer(self, event: HostEvent, call: dict[str, object]) -> None:
        """Answer here and now, and leave the rest."""
        from memory_service.hosts.hooks.hook_calls import handle_hook
        from memory_service.service import open_at_once

        queue, brings = self._queue(), not event.transcript and bool(event.messages or event.spoken)
        # A prompt is kept before it is answered, which a slow machine may have no time for. What a conversation said
        # before waits, so what it says now waits behind it.
        keeps = not brings or (event.kind != "prompt" and not queue.holds(event.session_id))
        if not keeps:
            self._leave(queue, event, call, "keep", starts=False)
        with open_at_once(self._home, embeds=bool(event.most_chars), rests=True) as service:
            answered_handle_hook = handle_hook(service, self._host, call, workspace=self._workspace, keeps=keeps)
            answer = {
                **answered_handle_hook.answer,
                **({"stored": True} if not keeps and event.host == "opencode" else {}),
            }
            if not answered_handle_hook.is_kept:
                self._leave(queue, event, call, "keep", starts=False)
            elif event.kind == "pre_compact" and keeps:
                self._leave(queue, event, call, "after", starts=False)
            if answered_handle_hook.workspace and service.is_behind(answered_handle_hook.workspace):
                with suppress(MemoryServiceError):
                    queue.add_index(answered_handle_hook.workspace)
            _print(json.dumps(answer).encode())
        if queue.indexes() or not queue.is_empty:
            _start_worker(queue.home)

    def _queue(self) -> CallQueue:
        from memory_service.home import home_of
        from memory_service.hosts.queue import CallQueue

        return CallQueue(home_of(self._home).absolute())

    def _leave(
        self, queue: CallQueue, event: HostEvent, call: dict[str, object], work: HookWork, *, starts: bool = True
    ) -> None:
        """Leave a call to a worker; where the disk does not take it, in the worker's memory."""
        from memory_service.hosts.queue import QueuedCall

        queued_call = QueuedCall(
            host=self._host, workspace=self._workspace, call=call, work=work, session_id=event.session_id
        )
        try:
            queue.add(queued_call)
        except MemoryServiceError as error:
            self.note(str(error))
            _start_worker(queue.home, queued_call.encode())
        else:
            if starts:
                _start_worker(queue.home)

    def note(self, fault: str) -> None:
        """Append a fault to the log of the home."""
        from memory_service.home import home_of
        from memory_service.hosts.progress import note_faults

        note_faults(home_of(self._home), self._host, "", (fault,))


def _start_worker(home: Path, unqueued: bytes = b"") -> None:
    """Start a process that does what waits in a home, and that no host waits for.

    Args:
        home: The home, as an absolute path.
        unqueued: A call that the disk did not take.
    """
    # Not in the folder of the project, where a module of any name may lie.
    code = Path(__file__).parents[2]
    worker = subprocess.Popen(
        [sys.executable, "-m", "memory_service.cli.hook_work", str(home)],
        cwd=code,
        stdin=subprocess.PIPE if unqueued else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=_DETACHED,
    )
    if worker.stdin is not None:
        with suppress(OSError), worker.stdin as given_stdin:
            given_stdin.write(unqueued)
    # It outlives this process; without this, Python would wait for news of it.
    worker.returncode = 0


def _print(answer: bytes) -> None:
    if answer == b"{}":
        return
    try:
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()
    except OSError:
        # The host has gone. What is still in the buffer must not be written once more when the process ends.
        sys.stdout = open(os.devnull, "w")


def _call_of(raw: bytes) -> dict[str, object]:
    try:
        # Cursor on Windows was seen to send two marks of the byte order.
        call = json.loads(raw.lstrip(codecs.BOM_UTF8))
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
    done_event = threading.Event()

    def run() -> None:
        try:
            work()
        except MemoryServiceError as error:
            failed(str(error))
        except BaseException as error:  # the agent goes on whatever happens here
            failed(f"defect: {type(error).__name__}")
        finally:
            done_event.set()

    threading.Thread(target=run, daemon=True).start()
    if not done_event.wait(seconds):
        failed(f"the hook took more than {seconds:g} seconds and was given up")
        sys.stdout.flush()
        os._exit(0)
