"""`connect` and `disconnect`: what each host reads, where it reads it, and what of it is ours.

Source: code.claude.com/docs (hooks, mcp, skills, settings); developers.openai.com/codex (hooks, config, skills);
cursor.com/docs (hooks, mcp, skills); opencode.ai/docs (config, plugins, mcp, skills); docs.openclaw.ai (plugins,
context engine), and the published packages of Codex 0.169, opencode 1.18, Claude Code 2.1 and OpenClaw 2026.9.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

from memory_service.config import load_settings
from memory_service.errors import InvalidRequest
from memory_service.home import DEFAULT_HOME, PREFIX, SETTINGS_FILE, home_of
from memory_service.hosts import HOSTS, HostName
from memory_service.hosts.connections import ConnectionNotes, carry_out
from memory_service.hosts.places import user_folder
from memory_service.hosts.settings_files import NAME, Change, FileNote, HostFile, OwnEntry, connect_file, restore_file
from memory_service.schemas.status import ConnectedHost

# Stands for the folder of any project.
_NOWHERE = Path(os.path.abspath(os.sep)) / "nowhere" / "project"
Scope: TypeAlias = Literal["user", "project"]

# Longer than the command lets a hook last.
_HOOK_SECONDS = 30
_DATA = files("memory_service.hosts") / "data"
_PLUGIN_SETTINGS = "const SETTINGS: Settings = {}"
_CLAUDE_EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "StopFailure", "PreCompact", "SessionEnd")
_CODEX_EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact")
_CURSOR_EVENTS = ("sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "stop", "preCompact", "sessionEnd")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTarget:
    """Whose settings a host gets, and the memory that they lead to.

    Attributes:
        folder: Where the command runs; a project is the top folder of its working tree.
        home: Folder of the workspaces; None for the default.
        workspace: The one memory of all projects; empty for one of each.
        url: Address of the server that plugins call.
    """

    scope: Scope = "user"
    folder: Path
    home: Path | None = None
    workspace: str = ""
    url: str = ""

    @property
    def root(self) -> Path:
        """The folder that the settings of a project lie in."""
        here = Path(os.path.abspath(self.folder))
        return next((path for path in (here, *here.parents) if (path / ".git").exists()), here)

    def memory_options(self, *, project: str) -> list[str]:
        """The options of a command that choose home and workspace."""
        own = DEFAULT_HOME if self.scope == "project" else home_of(DEFAULT_HOME)
        home = str(own) if self.home is None else os.path.abspath(self.home.expanduser())
        chosen_texts = ["--workspace", self.workspace] if self.workspace else ["--project", project] if project else []
        return ["--home", home, *chosen_texts]

    @property
    def program(self) -> str:
        """The command `memory-service` as a host finds it.

        What a project shares with others has no path of this machine, if the command is known without one.
        """
        if self.scope == "project" and shutil.which(NAME):
            return NAME
        beside = Path(sys.executable).parent / (f"{NAME}.exe" if os.name == "nt" else NAME)
        return str(beside) if beside.exists() else shutil.which(NAME) or NAME

    def hook_command(self, host: HostName) -> str:
        """The command line of a hook, for a shell."""
        words = [self.program, "hook", host, *self.memory_options(project="")]
        return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)

    def mcp_command(self, project: str = ".") -> list[str]:
        """The command of the MCP server, in words."""
        return [self.program, "mcp", *self.memory_options(project=project)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedFile:
    """A file of a host, and what was done to it."""

    path: str
    action: Literal["created", "changed", "deleted", "unchanged"]
    note: str
    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConnection:
    """The work of `connect` or `disconnect`, done or only planned.

    Attributes:
        home: Folder of the memories; empty after `disconnect`.
        memories: Where the memories are: that folder, or a database in its place.
        see: How to see it work.
        notes: What else is to be known.
    """

    host: HostName
    scope: Scope
    connected: bool
    dry_run: bool
    files: tuple[ConnectedFile, ...]
    home: str = ""
    memories: str = ""
    see: str = ""
    notes: tuple[str, ...] = ()


def connect(host: HostName, target: HostTarget, *, dry_run: bool = False) -> HostConnection:
    """Put the memory into a host's own settings; a second time changes only what is different now.

    Raises:
        InvalidRequest: A file is not fit for it, or the host has no settings of that scope; nothing was written.
        StorageFailed: A file could not be written; nothing was changed.
    """
    with ConnectionNotes.hold() if not dry_run else nullcontext(ConnectionNotes.load()) as notes:
        files = [connect_file(file, notes.files.get(file.path)) for file in _files(host, target)]
        changes = [change for change, _ in files]
        if not dry_run and any(change.action != "unchanged" for change in changes):
            _put_in(files, notes)
    home = Path(target.memory_options(project="")[1]).expanduser()
    return HostConnection(
        host=host,
        scope=target.scope,
        connected=True,
        dry_run=dry_run,
        files=_connected_files(changes),
        home=str(home),
        memories=_memories(home),
        see=_HOSTS[host].see,
        notes=(*_HOSTS[host].notes(target), *_twice(host, target, notes), *_of_database(host, home)),
    )


def connected_hosts() -> Iterator[ConnectedHost]:
    """The hosts that are connected for this user, by the notes of connections.

    Raises:
        InvalidRequest: The notes cannot be read.
    """
    noted_paths = set(ConnectionNotes.load().files)
    for host in HOSTS:
        own = [file.path for file in _possible_files(host, HostTarget(folder=Path.cwd())) if file.path in noted_paths]
        noted_paths -= {*own}
        if own:
            yield ConnectedHost(host=host, files=[str(path) for path in own])
        # Of projects, the files are known by where they lie in one.
        inner = [
            file.path.relative_to(_NOWHERE)
            for file in _possible_files(host, HostTarget(scope="project", folder=_NOWHERE))
            if file.path.is_relative_to(_NOWHERE)
        ]
        roots = {_root_of(path, name) for path in noted_paths for name in inner} - {None}
        for root in sorted(filter(None, roots)):
            paths = [root / name for name in inner if root / name in noted_paths]
            noted_paths -= {*paths}
            yield ConnectedHost(host=host, project=str(root), files=[str(path) for path in paths])


def _possible_files(host: HostName, target: HostTarget) -> list[HostFile]:
    """The files of a host; none where it has no settings of that scope."""
    try:
        return _files(host, target)
    except InvalidRequest:
        return []


def _root_of(path: Path, name: Path) -> Path | None:
    """The folder that a file with such a name lies in; None for a file of another name."""
    parts = name.parts
    return Path(*path.parts[: -len(parts)]) if path.parts[-len(parts) :] == parts else None


def _put_in(planned_pairs: list[tuple[Change, FileNote]], notes: ConnectionNotes) -> None:
    before = dict(notes.files)
    notes.files |= {change.path: note for change, note in planned_pairs}
    notes.save()
    try:
        notes.folders |= carry_out(change for change, _ in planned_pairs)
    except BaseException:
        notes.files = before
        raise
    finally:
        notes.save()


def disconnect(host: HostName, target: HostTarget, *, dry_run: bool = False) -> HostConnection:
    """Take the memory out of a host's settings again; all else in them stays as it is. Memories stay too.

    Raises:
        InvalidRequest: A file cannot be read, or the host has no settings of that scope; nothing was written.
        StorageFailed: A file could not be written; nothing was changed.
    """
    with ConnectionNotes.hold() if not dry_run else nullcontext(ConnectionNotes.load()) as notes:
        files = _files(host, target)
        changes = [restore_file(file, notes.files.get(file.path)) for file in files]
        if not dry_run:
            carry_out(changes)
            for file in files:
                notes.files.pop(file.path, None)
            notes.leave()
            notes.save()
    return HostConnection(
        host=host, scope=target.scope, connected=False, dry_run=dry_run, files=_connected_files(changes)
    )


def _twice(host: HostName, target: HostTarget, notes: ConnectionNotes) -> Iterator[str]:
    """Warn of a host that has the memory from the other scope too: it runs the hooks of both."""
    if host == "openclaw":
        return
    other_target = replace(target, scope="user" if target.scope == "project" else "project")
    # In the user's own folder both are the same files.
    own = {file.path for file in _files(host, target)}
    if any(file.path in notes.files and file.path not in own for file in _files(host, other_target)):
        kind, option = (
            ("Your own settings have", "") if other_target.scope == "user" else ("This project has", " --project")
        )
        yield f"{kind} it too, and both run here. Keep one: memory-service disconnect {host}{option}"


def _memories(home: Path) -> str:
    """The place of the memories of a home: itself, unless settings that can be used name a database."""
    try:
        return load_settings(home=home).place
    except InvalidRequest:
        return str(home)


def _of_database(host: HostName, home: Path) -> Iterator[str]:
    """Warn of a database that only the environment of this command names: the host starts hooks in its own."""
    if os.environ.get(f"{PREFIX}DATABASE_URL"):
        yield (
            f"The database is named by {PREFIX}DATABASE_URL, which {host} may be started without. Write database_url "
            f"into {home / SETTINGS_FILE}"
        )


def _connected_files(changes: list[Change]) -> tuple[ConnectedFile, ...]:
    return tuple(
        ConnectedFile(path=str(change.path), action=change.action, note=change.note, diff=change.diff)
        for change in changes
        if change.before is not None or change.after is not None
    )


def _files(host: HostName, target: HostTarget) -> list[HostFile]:
    return list(_HOSTS[host].files(target))


def _packaged_text(*names: str) -> str:
    return _DATA.joinpath(*names).read_text("utf-8")


def _skill(folder: Path) -> HostFile:
    return HostFile(path=folder / NAME / "SKILL.md", dialect="text", text=_packaged_text("SKILL.md"))


def _hook_groups(events: tuple[str, ...], command: str) -> tuple[OwnEntry, ...]:
    """Hooks in groups, as Claude Code and Codex have them."""
    hook = {"type": "command", "command": command, "timeout": _HOOK_SECONDS}
    return tuple(OwnEntry(keys=("hooks", event), value={"hooks": [hook]}, is_listed=True) for event in events)


def _server(command: list[str], **more: str) -> dict[str, object]:
    return {**more, "command": command[0], "args": command[1:]}


def _claude_code(target: HostTarget) -> Iterator[HostFile]:
    if target.scope == "project":
        folder, servers = target.root / ".claude", target.root / ".mcp.json"
    else:
        folder = user_folder("CLAUDE_CONFIG_DIR", ".claude")
        servers = (folder if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home()) / ".claude.json"
    hooks = _hook_groups(_CLAUDE_EVENTS, target.hook_command("claude-code"))
    server = OwnEntry(keys=("mcpServers", NAME), value=_server(target.mcp_command(), type="stdio"))
    yield HostFile(path=folder / "settings.json", entries=hooks)
    yield HostFile(path=servers, entries=(server,))
    yield _skill(folder / "skills")


def _codex(target: HostTarget) -> Iterator[HostFile]:
    project = target.scope == "project"
    folder = target.root / ".codex" if project else user_folder("CODEX_HOME", ".codex")
    command = target.mcp_command()
    # Every JSON string and list of strings is one of TOML.
    program, options = (json.dumps(value, ensure_ascii=False) for value in (command[0], command[1:]))
    table = f"[mcp_servers.{NAME}]\ncommand = {program}\nargs = {options}\n"
    yield HostFile(path=folder / "hooks.json", entries=_hook_groups(_CODEX_EVENTS, target.hook_command("codex")))
    yield HostFile(path=folder / "config.toml", dialect="toml", text=table)
    yield _skill((target.root if project else Path.home()) / ".agents" / "skills")


def _cursor(target: HostTarget) -> Iterator[HostFile]:
    folder = (target.root if target.scope == "project" else Path.home()) / ".cursor"
    hook = {"command": target.hook_command("cursor"), "timeout": _HOOK_SECONDS}
    hooks = tuple(OwnEntry(keys=("hooks", event), value=hook, is_listed=True) for event in _CURSOR_EVENTS)
    # A server of the user is not started in the folder of the project.
    server = _server(target.mcp_command("${workspaceFolder}"))
    yield HostFile(path=folder / "hooks.json", entries=hooks, text='{\n  "version": 1\n}\n')
    yield HostFile(path=folder / "mcp.json", entries=(OwnEntry(keys=("mcpServers", NAME), value=server),))
    yield _skill(folder / "skills")


def _opencode(target: HostTarget) -> Iterator[HostFile]:
    if target.scope == "project":
        top, folder = target.root, target.root / ".opencode"
    else:
        top = folder = user_folder("XDG_CONFIG_HOME", ".config") / "opencode"
    server = {"type": "local", "command": target.mcp_command(), "enabled": True}
    paths = (path for path in (top / "opencode.json", top / "opencode.jsonc") if os.path.lexists(path))
    yield HostFile(
        path=next(paths, top / "opencode.json"),
        entries=(OwnEntry(keys=("mcp", NAME), value=server),),
        text='{\n  "$schema": "https://opencode.ai/config.json"\n}\n',
    )
    yield HostFile(path=folder / "plugins" / f"{NAME}.ts", dialect="text", text=_opencode_plugin(target))
    yield _skill(folder / "skills")


def _opencode_plugin(target: HostTarget) -> str:
    command = [target.program, "hook", "opencode", *target.memory_options(project="")]
    settings = json.dumps({"url": target.url, "command": command} if target.url else {"command": command})
    source = _packaged_text("opencode.ts")
    return source.replace(_PLUGIN_SETTINGS, f"{_PLUGIN_SETTINGS[:-2]}{settings}")


def _openclaw(target: HostTarget) -> Iterator[HostFile]:
    if target.scope == "project":
        raise InvalidRequest("OpenClaw has one settings file for all projects. Leave out --project.")
    folder = user_folder("OPENCLAW_STATE_DIR", ".openclaw")
    plugin = folder / "extensions" / NAME
    options = {"url": target.url, "workspace": target.workspace}
    config = {name: value for name, value in options.items() if value}
    yield HostFile(
        path=user_folder("OPENCLAW_CONFIG_PATH", str(folder), "openclaw.json"),
        dialect="json5",
        entries=(
            OwnEntry(keys=("plugins", "slots", "contextEngine"), value=NAME),
            OwnEntry(keys=("plugins", "slots", "memory"), value=NAME),
            # Its tools have the same names.
            OwnEntry(keys=("plugins", "entries", "memory-core", "enabled"), value=False),
            # Who lists the plugins that may run has no others.
            OwnEntry(keys=("plugins", "allow"), value=NAME, is_listed=True, if_there=True),
            OwnEntry(
                keys=("plugins", "entries", NAME), value={"enabled": True, **({"config": config} if config else {})}
            ),
        ),
    )
    for name in ("openclaw.plugin.json", "package.json", "index.ts"):
        yield HostFile(path=plugin / name, dialect="text", text=_packaged_text("openclaw", name))
    yield _skill(plugin / "skills")


def _hook_notes(target: HostTarget) -> Iterator[str]:
    if target.url:
        yield "No plugin calls the server here: hooks find it by MEMORY_SERVICE_URL, or where it runs on their home."
    yield from _shared_notes(target)


def _shared_notes(target: HostTarget) -> Iterator[str]:
    if target.scope == "project" and not target.home:
        yield "Who else works on this project needs the command memory-service too."


def _codex_notes(target: HostTarget) -> Iterator[str]:
    yield "Codex runs new hooks only once you trusted them: it asks when it starts, and /hooks lists them."
    yield from _hook_notes(target)


def _server_notes(target: HostTarget) -> Iterator[str]:
    yield f"The plugin calls a server: memory-service serve --home {target.memory_options(project='')[1]}"
    yield "If the server wants a key, start the host with it in MEMORY_SERVICE_API_KEY."


def _opencode_notes(target: HostTarget) -> Iterator[str]:
    home = target.memory_options(project="")[1]
    yield f"The plugin is faster with a server: memory-service serve --home {home}"
    yield from _shared_notes(target)


@dataclass(frozen=True, slots=True)
class _Host:
    """A host: its files with what is ours in them, and what a person is told."""

    files: Callable[[HostTarget], Iterator[HostFile]]
    see: str
    notes: Callable[[HostTarget], Iterator[str]] = _hook_notes


_HOSTS: dict[HostName, _Host] = {
    "claude-code": _Host(_claude_code, "start claude; /hooks and /mcp list memory-service"),
    "codex": _Host(_codex, "codex mcp list names memory-service; /hooks in codex lists its hooks", _codex_notes),
    "cursor": _Host(_cursor, "restart Cursor; Settings > Hooks and Settings > MCP list memory-service"),
    "opencode": _Host(_opencode, "opencode mcp list names memory-service", _opencode_notes),
    "openclaw": _Host(_openclaw, "openclaw plugins inspect memory-service; then restart the gateway", _server_notes),
}
