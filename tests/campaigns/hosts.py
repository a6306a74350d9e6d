"""Coding agents as they are today play a scripted talk through gateway and hooks; `.ci/hosts` installs and starts them.

`python -m tests.campaigns.hosts FOLDER [--hosts claude-code,codex,opencode] [--note docs/hosts.md] [--keep HOME]`

FOLDER has the agents' own programs (`node_modules/.bin`). Each is connected by `memory-service connect` in a home of
its own, and sends its calls to the gateway of a real server, behind which a scripted provider speaks all protocols. In
a repository with rules of its own it is asked for 40 calls of tools, then to search the memory by MCP, to compact, to
resume in a new process, and to work in a worktree; then the same in another repository with other rules. Nobody needs
an account.

What is checked: each prompt is in a log of its project's memory; no call and no log of one repository has words of the
other; no conversation was parted, as nobody went back in one; no word that a host inserted is among passages, memories,
goals and ledgers. A step that an agent of some version cannot be asked for without a terminal or an account is named,
and is no failure.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from indexer.testing import Exchange, Request
from memory_service.compaction.checkpoint import is_checkpoint
from memory_service.schemas.compaction import BRANCH_MARK
from memory_service.testing import Reply, ScriptedServer, ScriptedStep
from tests.benchmarks.gateway import gateway_process

TOOL_CALLS = 40
_STEP_SECONDS = 240
_WORK = re.compile(r"\[work (\d+)\]")
_SEARCH = "[search memory]"
_SEARCHED = "Harvest plan"
# Tools of hosts that run a command of the shell, and how each is told it.
_SHELLS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "Bash": lambda line: {"command": line, "description": "A step of the work"},
    "bash": lambda line: {"command": line, "description": "A step of the work"},
    "shell": lambda line: {"command": ["bash", "-lc", line]},
    "local_shell": lambda line: {"command": ["bash", "-lc", line]},
    "shell_command": lambda line: {"command": line},
    "exec_command": lambda line: {"cmd": line},
}
_INSERTED = (
    "<relevant_context>",
    "<system-reminder>",
    "<environment_context>",
    "# AGENTS.md instructions",
    "claudeMd",
    "gitStatus:",
)
_LINE = re.compile(r"^(?:Last passed on|No run has passed) .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository with words of its own.

    Attributes:
        rule: A word of its rules, which the host inserts.
        word: A word of what its user says.
    """

    folder: Path
    rule: str
    word: str

    @classmethod
    def made(cls, folder: Path, rule: str, word: str) -> Repository:
        """A new one with a first commit."""
        folder.mkdir(parents=True)
        for name in ("CLAUDE.md", "AGENTS.md"):
            folder.joinpath(name).write_text(f"# Rules\n\nThe password of the gate is {rule}. Never write tests.\n")
        folder.joinpath("plan.txt").write_text("plant, water, harvest\n")
        for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", f"First of {folder.name}"]):
            subprocess.run(
                ["git", "-c", "user.name=n", "-c", "user.email=n@localhost", *command], cwd=folder, check=True
            )
        return cls(folder=folder, rule=rule, word=word)

    def worktree(self) -> Path:
        """A worktree of it beside it."""
        place = self.folder.with_name(f"{self.folder.name}-tree")
        subprocess.run(["git", "worktree", "add", "-q", "-b", "tree", str(place)], cwd=self.folder, check=True)
        return place


class ScriptedProvider(ScriptedServer):
    """A provider that does what the last prompt of a list asks for: calls of a shell, a search, or an answer."""

    def __init__(self) -> None:
        super().__init__()
        self._counting = threading.Lock()
        self._count = 0

    def answer(self, exchange: Exchange) -> None:
        """Play a step, with an id of its own for each answer: Claude Code takes those of one id for one message."""
        with self._counting:
            self._count += 1
            number = self._count
        super().answer(_Renamed(exchange, number))

    def step(self, request: Request) -> ScriptedStep:
        """The answer to a list."""
        body = request.body
        texts = [json.dumps(each, ensure_ascii=False) for each in body.get("messages") or body.get("input") or []]
        asked = max((at for at, text in enumerate(texts) if _is_prompt(text)), default=-1)
        results = sum(map(_results_in, texts[asked + 1 :])) if asked >= 0 else 0
        tools = list(_tools_of(body))
        number = self._count
        wanted = _WORK.search(texts[asked]) if asked >= 0 else None
        if wanted and results < int(wanted[1]) and (shell := next((name for name in tools if name in _SHELLS), "")):
            arguments = _SHELLS[shell](f"echo step {results + 1} of {number}")
            return Reply(tool_call=shell, arguments=json.dumps(arguments))
        if asked >= 0 and _SEARCH in texts[asked] and results < 2:
            if search := next((name for name in tools if "memory" in name and name.endswith("search")), ""):
                # Once: the second round says what was found.
                return (
                    Reply(tool_call=search, arguments='{"query": "the harvest plan"}')
                    if not _used(texts, search)
                    else _DONE
                )
            if "ToolSearch" in tools and not results:
                return Reply(tool_call="ToolSearch", arguments='{"query": "select:mcp__memory-service__search"}')
            if "ToolSearch" in tools:
                return Reply(tool_call="mcp__memory-service__search", arguments='{"query": "the harvest plan"}')
        return _DONE


class _Renamed(Exchange):
    """An exchange whose answers have ids of their own."""

    def __init__(self, exchange: Exchange, number: int) -> None:
        self.__dict__.update(vars(exchange))
        self._number = number

    def send(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        """Answer in one piece."""
        super().send(status, self._named(text), headers or {})

    def stream(self, pieces: Iterable[str], *, pause_seconds: float = 0.0, whole: bool = True) -> bool:
        """Answer in pieces."""
        return super().stream(map(self._named, pieces), pause_seconds=pause_seconds, whole=whole)

    def _named(self, text: str) -> str:
        return text.replace('"msg_1"', f'"msg_{self._number}"').replace('"chatcmpl-1"', f'"chatcmpl-{self._number}"')


_DONE = Reply(text="Done, all of it is in order.")


def _is_prompt(text: str) -> bool:
    return '"role": "user"' in text and ("[work " in text or "[step " in text)


def _results_in(text: str) -> int:
    return text.count('"tool_result"') or int('"role": "tool"' in text or '_call_output"' in text)


def _used(texts: Sequence[str], tool: str) -> bool:
    return any(f'"name": "{tool}"' in text for text in texts)


def _tools_of(body: Mapping[str, Any]) -> Iterator[str]:
    for tool in body.get("tools") or []:
        if isinstance(tool, dict):
            inner = [f"{tool.get('name', '')}{each.get('name', '')}" for each in tool.get("tools") or []]
            yield from inner
            yield str(tool.get("name") or (tool.get("function") or {}).get("name") or tool.get("type") or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """An agent: its program, its settings, and how it is asked.

    Attributes:
        settings: Writes what lets it use the gateway of a server, into its home.
        ask: The command for a prompt in a new conversation.
        resume: The same in the last conversation of the folder.
        compact: The command that compacts that; None where it has none without a terminal.
        environment: What its processes need.
    """

    name: str
    program: str
    settings: Callable[[Path, str], None]
    ask: Callable[[str, str], list[str]]
    resume: Callable[[str, str], list[str]]
    compact: Callable[[str], list[str]] | None
    environment: Callable[[str], dict[str, str]]


def _claude(url: str, *more: str) -> list[str]:
    return ["--model", "claude-sonnet-4-5", "--dangerously-skip-permissions", *more]


def _codex_provider(url: str) -> list[str]:
    provider = f'{{name="OpenAI", base_url="{url}/v1", wire_api="responses", env_key="OPENAI_API_KEY"}}'
    return ["-c", 'model_provider="memory"', "-c", f"model_providers.memory={provider}", "-m", "gpt-5"]


_CODEX = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"]


def _opencode_settings(home: Path, url: str) -> None:
    place = home / ".config/opencode/opencode.json"
    settings = json.loads(place.read_text()) if place.exists() else {}
    model = {"name": "scripted", "limit": {"context": 200_000, "output": 8_000}, "tool_call": True}
    settings["provider"] = {
        "memory": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "memory",
            "options": {"baseURL": f"{url}/v1", "apiKey": "any"},
            "models": {"scripted": model},
        }
    }
    settings |= {"autoupdate": False, "permission": {"*": "allow"}}
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(settings, indent=2))


HOSTS: tuple[Host, ...] = (
    Host(
        name="claude-code",
        program="claude",
        settings=lambda home, url: None,
        ask=lambda url, prompt: _claude(url, "-p", prompt),
        resume=lambda url, prompt: _claude(url, "--continue", "-p", prompt),
        compact=lambda url: _claude(url, "--continue", "-p", "/compact"),
        environment=lambda url: {
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "any", "IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    ),
    Host(
        name="codex",
        program="codex",
        settings=lambda home, url: None,
        ask=lambda url, prompt: ["exec", *_codex_provider(url), *_CODEX, prompt],
        resume=lambda url, prompt: ["exec", *_codex_provider(url), *_CODEX, "resume", "--last", prompt],
        compact=None,
        environment=lambda url: {"OPENAI_API_KEY": "any"},
    ),
    Host(
        name="opencode",
        program="opencode",
        settings=_opencode_settings,
        ask=lambda url, prompt: ["run", "--model", "memory/scripted", "--title", "work", "--auto", prompt],
        resume=lambda url, prompt: ["run", "--model", "memory/scripted", "--continue", "--auto", prompt],
        compact=None,
        environment=lambda url: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    ),
)  # fmt: skip


@dataclass(slots=True)
class Findings:
    """What became of one host's talk: its version, the steps that it could not be asked for, and what was wrong."""

    version: str = ""
    left_out: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    calls: int = 0


@dataclass(slots=True, kw_only=True)
class _Play:
    """One host at play.

    Attributes:
        asked: The prompts so far, each with its repository.
        upto: How many calls the provider had had before each repository was left.
    """

    host: Host
    programs: Path
    home: Path
    url: str
    server: ScriptedProvider
    found: Findings
    asked: list[tuple[Repository, str]] = field(default_factory=list)
    calls_of: list[tuple[Repository, list[Request]]] = field(default_factory=list)

    def talk(self, repository: Repository) -> None:
        """Everything that is asked in one repository."""
        host, url, before = self.host, self.url, len(self.server.requests)
        word = repository.word
        self._step(repository, repository.folder, host.ask, f"{word} needs water, says Kim. [work {TOOL_CALLS}]")
        self._step(repository, repository.folder, host.resume, f"What does {word} need? [step 2] {_SEARCH}")
        if host.compact is None:
            self._leave_out("a compaction on command needs a terminal")
        else:
            self._run(repository.folder, host.compact(url), "compaction")
        self._step(repository, repository.folder, host.resume, f"And then {word} needs sun. [step 3]")
        tree = repository.worktree()
        self._step(repository, tree, host.ask, f"In the worktree {word} is cut back. [step 4]")
        self.calls_of.append((repository, self.server.requests[before:]))

    def _leave_out(self, why: str) -> None:
        if why not in self.found.left_out:
            self.found.left_out.append(why)

    def _step(
        self, repository: Repository, folder: Path, command: Callable[[str, str], list[str]], prompt: str
    ) -> None:
        self.asked.append((repository, prompt))
        self._run(folder, command(self.url, prompt), prompt)

    def _run(self, folder: Path, arguments: list[str], what: str) -> None:
        program = str(self.programs / self.host.program)
        environment = environment_of(self.home) | self.host.environment(self.url)
        try:
            done = subprocess.run(
                [program, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, timeout=_STEP_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.found.wrong.append(f"{what}: it took over {_STEP_SECONDS} seconds")
            return
        if done.returncode:
            said = " ".join(f"{done.stderr} {done.stdout}".split())[-400:]
            self.found.wrong.append(f"{what}: it ended with {done.returncode}: {said}")


def environment_of(home: Path) -> dict[str, str]:
    """The environment of a person with this home, who has no account anywhere."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return kept | {"HOME": str(home), "PATH": path, "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


def play(host: Host, programs: Path, home: Path) -> Findings:
    """One host from its connection to the checks."""
    found, memory = Findings(), home / ".memory-service"
    home.mkdir(parents=True, exist_ok=True)
    environment = environment_of(home)
    told = subprocess.run(
        [programs / host.program, "--version"], env=environment, capture_output=True, text=True, check=True
    )
    version = re.search(r"\d+\.\d+[\w.-]*", told.stdout)
    found.version = version[0] if version else told.stdout.strip()
    subprocess.run(
        [sys.executable, "-m", "memory_service", "connect", host.name], env=environment, capture_output=True, check=True
    )
    with ScriptedProvider() as server, gateway_process(memory, server.url) as (url, _):
        host.settings(home, url)
        repositories = (
            Repository.made(home / "work/garden", "MAGNOLIAGATE", "Quincetree"),
            Repository.made(home / "work/harbour", "ZEPHYRGATE", "Lobsterboat"),
        )
        playing = _Play(host=host, programs=programs, home=home, url=url, server=server, found=found)
        for repository in repositories:
            playing.talk(repository)
        found.calls = sum(1 for request in server.requests if request.body)
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:
            found.wrong += _checked(http, memory, playing, repositories)
    return found


def _checked(http: httpx.Client, memory: Path, playing: _Play, repositories: Sequence[Repository]) -> Iterator[str]:
    for repository, other in (repositories, repositories[::-1]):
        for request in next((calls for of, calls in playing.calls_of if of is repository), []):
            body = json.dumps(request.body, ensure_ascii=False)
            yield from (
                f"a call in {repository.folder.name} has {word}" for word in (other.rule, other.word) if word in body
            )
    logs = {name: list(_logged(http, name)) for name in _workspaces(memory)}
    for repository, prompt in playing.asked:
        holding = {name for name, said in logs.items() if any(prompt in text for text in said)}
        if len(holding) != 1:
            yield f"{prompt!r} is kept in {sorted(holding) or 'no memory'}"
        elif not next(iter(holding)).startswith(repository.folder.name):
            yield f"{prompt!r} is kept in {sorted(holding)}"
    for name in logs:
        parted = [session for session in _sessions(http, name) if BRANCH_MARK in session]
        yield from (f"{name}: a conversation was parted: {session}" for session in parted)
        yield from _inserted(http, memory, name, [repository.rule for repository in repositories])


def _workspaces(memory: Path) -> list[str]:
    return sorted(each.name for each in memory.iterdir() if each.is_dir() and not each.name.startswith("."))


def _logged(http: httpx.Client, workspace: str) -> Iterator[str]:
    """The user's messages of all sessions, as texts."""
    for session in _sessions(http, workspace):
        place = f"/v1/workspaces/{workspace}/sessions/{session}/messages"
        for message in http.get(place, params={"view": "log"}).json()["messages"]:
            if message["role"] == "user":
                content = message["content"]
                parts = [part.get("text", "") for part in content] if isinstance(content, list) else [content]
                yield "\n".join(map(str, parts))


def _sessions(http: httpx.Client, workspace: str) -> list[str]:
    listed = http.get(f"/v1/workspaces/{workspace}/sessions").json()["sessions"]
    return [session["session_id"] for session in listed]


def _inserted(http: httpx.Client, memory: Path, workspace: str, rules: Sequence[str]) -> Iterator[str]:
    """Where words of a host's are taken for somebody's: passages, memories, records of compactions."""
    words = (*rules, *_INSERTED)
    for word in words:
        asked = {"query": f"what is {word} about?", "limit": 50, "mode": "hybrid"}
        found = http.post(f"/v1/workspaces/{workspace}/search", json=asked).json().get("results", [])
        places = sorted({each["path"] for each in found if word in each["text"]})
        yield from (f"{workspace}: a passage has {word}: {place}" for place in places)
    for file in sorted((memory / workspace).rglob("*.md")):
        text = file.read_text("utf-8", "replace")
        yield from (f"{workspace}/{file.name}: a memory has {word}" for word in words if word in text)
    for session in _sessions(http, workspace):
        place = f"/v1/workspaces/{workspace}/sessions/{session}/messages"
        shown = [message["content"] for message in http.get(place).json()["messages"]]
        records = [text for text in shown if isinstance(text, str) and is_checkpoint(text)]
        for word in words:
            if any(word in record for record in records):
                yield f"{workspace}/{session}: its record has {word}"


def note(page: Path, findings: Mapping[str, Findings]) -> None:
    """Write into a page which versions passed, and when."""
    names = {"claude-code": "Claude Code", "codex": "Codex", "opencode": "opencode"}
    versions = ", ".join(f"{names[name]} {found.version}" for name, found in findings.items())
    line = f"Last passed on {dt.datetime.now(dt.UTC):%Y-%m-%d} with {versions}."
    text = page.read_text("utf-8")
    assert _LINE.search(text), f"{page} has no line to write to"
    page.write_text(_LINE.sub(line, text), "utf-8")


def main() -> int:
    """Play all hosts and print what was found; the exit code is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hosts", default=",".join(host.name for host in HOSTS))
    parser.add_argument("--note", type=Path)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    wanted, findings = given.hosts.split(","), dict[str, Findings]()
    programs = (given.folder / "node_modules/.bin").resolve()
    with tempfile.TemporaryDirectory() as scratch:
        for host in HOSTS:
            if host.name in wanted:
                found = findings[host.name] = play(host, programs, (given.keep or Path(scratch)) / host.name)
                print(f"{host.name} {found.version}: {found.calls} calls, {len(found.wrong)} wrong", flush=True)
                for line in (*(f"not asked: {why}" for why in found.left_out), *found.wrong):
                    print(f"  {line}", flush=True)
    passed = not any(found.wrong for found in findings.values())
    if passed and given.note and len(findings) == len(HOSTS):
        note(given.note, findings)
    print("passed" if passed else "failed")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
