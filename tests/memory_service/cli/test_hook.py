"""The command that hosts call: their JSON on stdin, their answer on stdout, and 0 whatever happens."""

from __future__ import annotations

import codecs
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from memory_service import MemoryClient
from memory_service._version import __version__
from memory_service.errors import NotFound
from memory_service.hosts.projects import project_of
from memory_service.hosts.queue import CallQueue, QueuedCall
from memory_service.service import MemoryService
from memory_service.storage.files.disk import WriteLock
from tests.memory_service.cli.commands import PROGRAM, WORDS_ALONE, CommandLine, Run
from tests.memory_service.cli.test_warm import announce
from tests.serving import found_by_home, own_process
from tests.waiting import until

FRIDAY = "We decided: deploys go out on Tuesdays at 10:00, never on Fridays. 周五不部署。"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "花店 shop"
    folder.mkdir()
    line = {"type": "user", "message": {"role": "user", "content": FRIDAY}}
    (folder / "t.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    return folder


def call(project: Path, event: str, **fields: object) -> str:
    base = {"session_id": "s1", "transcript_path": str(project / "t.jsonl"), "cwd": str(project)}
    return json.dumps({**base, "hook_event_name": event, **fields})


def faults(cli: CommandLine) -> list[str]:
    log = cli.home / "hooks.log"
    return log.read_text("utf-8").splitlines() if log.exists() else []


def waiting(cli: CommandLine) -> list[str]:
    """The calls that wait for a worker."""
    return sorted(file.name for file in (cli.home / ".hooks").glob("[0-9]*.json"))


def is_idle(cli: CommandLine) -> bool:
    """True if no worker is at work on the home, and nothing waits for one."""
    with CallQueue(cli.home).worked_on() as alone:
        return alone and not waiting(cli) and not CallQueue(cli.home).indexes()


def workers(cli: CommandLine) -> list[int]:
    """The processes that work on the home."""
    found = list[int]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"memory_service.cli.hook_work" in words and str(cli.home).encode() in words:
                found.append(int(process.name))
    return found


def kept(cli: CommandLine, project: Path, session: str) -> list[object]:
    """What the log of a conversation has."""
    with MemoryService.open(cli.home, embedding_model="none") as service:
        workspace = project_of(str(project)).workspace_in(cli.home)
        with suppress(NotFound):
            return [each["content"] for each in service.messages(workspace, session, "log").messages]
    return []


def told(cli: CommandLine, project: Path) -> str:
    """What a session that begins after another one is told."""
    assert cli.ok("hook", "claude-code", stdin=call(project, "Stop")) == ""
    start, ends = call(project, "SessionStart", session_id="s2", source="startup"), time.monotonic() + 60
    # A server flushes after its answer.
    while not (out := cli.ok("hook", "claude-code", stdin=start)) and time.monotonic() < ends:
        time.sleep(0.1)
    return str(json.loads(out)["hookSpecificOutput"]["additionalContext"])


def test_without_a_server(cli: CommandLine, project: Path) -> None:
    assert "周五不部署" in told(cli, project)
    assert cli.ok("hook", "claude-code", stdin=call(project, "UserPromptSubmit", prompt="ok")) == ""
    assert faults(cli) == []


def test_what_was_given_is_not_given_again(cli: CommandLine, project: Path) -> None:
    assert "周五不部署" in told(cli, project)
    prompt = call(project, "UserPromptSubmit", prompt="When do deploys go out? 什么时候部署？", session_id="s2")
    assert cli.ok("hook", "claude-code", stdin=prompt) == ""
    start = call(project, "SessionStart", session_id="s2", source="clear")
    assert "never on Fridays" in cli.ok("hook", "claude-code", stdin=start)
    assert cli.ok("hook", "claude-code", stdin=prompt) == "" and faults(cli) == []


def test_a_hook_without_a_server_loads_only_what_it_needs(cli: CommandLine, project: Path) -> None:
    program = (
        "import json, sys\nfrom memory_service.cli.root import main\nsys.argv[1:] = ['hook', 'claude-code']\n"
        "try:\n    main()\nexcept SystemExit:\n    print(json.dumps([*sys.modules]), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=call(project, "UserPromptSubmit", prompt="When did we decide to deploy?"),
        env=cli.variables,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(json.loads(done.stderr))
    assert "memory_service.service.facade" in loaded and faults(cli) == []
    never = {
        "asyncio",
        "ssl",
        "httpx",
        "rich",
        "fastapi",
        "memory_service.gateway.translation",
        "memory_service.llm.litellm",
    }
    rarely = {
        f"memory_service.{name}"
        for name in (
            "compaction.extractive",
            "compaction.model_summary",
            "compaction.stateless",
            "flush.model",
            "llm.litellm",
            "gateway.translation",
            "health.measures",
            "conversations.join",
            "health.doctor",
            "gateway.upstreams",
        )
    }
    assert not loaded & (never | rarely)


def test_through_a_server(cli: CommandLine, project: Path) -> None:
    broken = CommandLine(home=cli.home, environment={"MEMORY_SERVICE_EMBEDDING_MODEL": "cannot be used"})
    with found_by_home(cli.home, host_folders=[str(project)]) as url:
        assert "周五不部署" in told(broken, project)
        named = CommandLine(home=cli.home.parent / "away", environment={"MEMORY_SERVICE_URL": url})
        assert "周五不部署" in told(named, project)
        start = call(project, "SessionStart", session_id="s3", source="startup")
        assert "周五不部署" in named.ok("hook", "claude-code", "--home", str(named.home), stdin=start)
    assert faults(cli) == [] and not named.home.exists()


def test_two_agents_of_one_project_while_their_transcripts_are_written(cli: CommandLine, project: Path) -> None:
    said = {name: [f"{name}: 第{number}句 is fact {number}" for number in range(30)] for name in ("a", "b")}

    def write(name: str) -> None:
        with (project / f"{name}.jsonl").open("wb", buffering=0) as opened:
            for text in said[name]:
                line = json.dumps({"type": "user", "message": {"role": "user", "content": text}}, ensure_ascii=False)
                raw = f"{line}\n".encode()
                for at in range(0, len(raw), 17):
                    opened.write(raw[at : at + 17])
                    time.sleep(0.001)

    def agent(name: str) -> None:
        stop = call(project, "Stop", session_id=name, transcript_path=str(project / f"{name}.jsonl")).encode()
        writer = threading.Thread(target=write, args=(name,))
        writer.start()
        while writer.is_alive():
            assert cli.spawn("hook", "claude-code", input=stop) == Run(code=0, out="", err="")
        assert cli.spawn("hook", "claude-code", input=stop) == Run(code=0, out="", err="")

    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    with found_by_home(cli.home) as url:
        with ThreadPoolExecutor() as agents:
            assert list(agents.map(agent, said)) == [None, None]
        with MemoryClient(url, workspace=project_of(str(project)).workspace_in(cli.home)) as client:
            for name, texts in said.items():
                kept = client.session(f"claude-code-{name}").messages("log").messages
                assert [message["content"] for message in kept] == texts
    assert [fault for fault in faults(cli) if "There is no transcript" not in fault] == []


@pytest.mark.skipif(sys.platform != "linux", reason="workers are found in /proc")
def test_a_hook_does_not_wait_and_a_worker_that_is_killed_loses_nothing(cli: CommandLine, project: Path) -> None:
    workspace = cli.home / project_of(str(project)).workspace_in(cli.home)
    with WriteLock(workspace / ".hosts" / "claude-code-s1.lock").hold():
        # Nobody can work on the conversation meanwhile, and the hook ends.
        assert cli.spawn("hook", "claude-code", input=call(project, "Stop").encode()) == Run(code=0, out="", err="")
        until(lambda: bool(workers(cli)) and waiting(cli)[0].endswith(".1.json"))
        for worker in workers(cli):
            os.kill(worker, signal.SIGKILL)
        assert len(waiting(cli)) == 1
    cli.ok("hook", "claude-code", stdin=call(project, "UserPromptSubmit", prompt="thanks!", session_id="s2"))
    until(lambda: is_idle(cli))
    assert kept(cli, project, "claude-code-s1") == [FRIDAY] and faults(cli) == []
    assert list(workspace.glob("memory/*.md"))


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe whose reader is gone is another error there")
def test_hooks_at_once_whose_readers_are_gone_lose_nothing(cli: CommandLine, project: Path) -> None:
    def say(number: int) -> int:
        said = {"conversation_id": f"c{number}", "cwd": str(project), "generation_id": "g1"}
        gone, out = os.pipe()
        os.close(gone)
        prompt = {**said, "hook_event_name": "beforeSubmitPrompt", "prompt": f"Who owns billing {number}?"}
        for each in (prompt, {**said, "hook_event_name": "afterAgentResponse", "text": f"Kim {number}."}):
            done = subprocess.run(
                [*PROGRAM, "hook", "cursor"],
                input=codecs.BOM_UTF8 * 2 + json.dumps(each).encode(),
                stdout=out,
                env=cli.variables,
                check=False,
            )
            assert done.returncode == 0
        os.close(out)
        return number

    cli.run("remember", "--workspace", project_of(str(project)).workspace_in(cli.home), "Kim owns billing.")
    with ThreadPoolExecutor() as agents:
        assert list(agents.map(say, range(3))) == [0, 1, 2]
    until(lambda: is_idle(cli))
    for number in range(3):
        assert kept(cli, project, f"cursor-c{number}") == [f"Who owns billing {number}?", f"Kim {number}."]
    # A machine that has no time for an answer keeps what was said all the same.
    assert [fault for fault in faults(cli) if "was given up" not in fault] == []


def test_a_call_that_the_disk_does_not_take_is_kept_when_there_is_room(cli: CommandLine, project: Path) -> None:
    cli.home.mkdir()
    (cli.home / ".hooks").write_text("in the way")
    said = {"conversation_id": "c1", "cwd": str(project), "hook_event_name": "afterAgentResponse", "text": "Kim."}
    assert cli.ok("hook", "cursor", stdin=json.dumps(said)) == ""
    assert len(faults(cli)) == 1
    (cli.home / ".hooks").unlink()
    # The queue is idle before the call is in it, too.
    until(lambda: is_idle(cli) and bool(kept(cli, project, "cursor-c1")))
    assert kept(cli, project, "cursor-c1") == ["Kim."]


def test_a_call_that_ends_every_worker_is_given_up(tmp_path: Path) -> None:
    queue = CallQueue(tmp_path)
    queue.add(QueuedCall(host="codex", workspace=None, call={"session_id": "\ud800"}, session_id="codex-1"))
    assert queue.holds("codex-1") and not queue.is_empty
    (tmp_path / ".hooks" / "00-half.0.json").write_text('{"host": "co')
    for _ in range(5):
        [found] = queue.calls()
        assert found.call == {"session_id": "\ud800"} and queue.begin(found) is not None
    [found] = queue.calls()
    queue.put_back(found)
    [found] = queue.calls()
    assert queue.begin(found) is not None, "the disk was full: that does not count"
    for _ in range(4):
        assert queue.begin(queue.calls()[0]) is not None
    assert queue.begin(queue.calls()[0]) is None and queue.is_empty


@pytest.mark.parametrize("stdin", ["", "garbage", '{"hook_event_name": "St', "[]", "7", b"\xff\xfe", "[" * 100_000])
def test_garbage_says_nothing_and_ends_with_0(cli: CommandLine, stdin: str | bytes) -> None:
    assert cli.ok("hook", "claude-code", stdin=stdin) == ""
    assert len(faults(cli)) == 1 and "no JSON object" in faults(cli)[0]


def test_an_unknown_event_or_option_says_nothing(cli: CommandLine, project: Path) -> None:
    assert cli.ok("hook", "codex", "--from-tomorrow", stdin=call(project, "Explosion")) == ""
    assert faults(cli) == []


def test_an_unknown_host_is_no_veto(cli: CommandLine) -> None:
    run = cli.run("hook", "emacs", stdin="{}")
    assert run.code == 1 and "claude-code, codex, cursor" in run.err


@pytest.mark.parametrize("variables", [{"MEMORY_SERVICE_COLOUR": "red"}, {"MEMORY_SERVICE_URL": "http://127.0.0.1:1"}])
def test_a_wrong_setting_or_address_is_a_line_of_the_log(
    cli: CommandLine, project: Path, variables: dict[str, str]
) -> None:
    wrong = CommandLine(home=cli.home, environment={**WORDS_ALONE, **variables})
    assert wrong.ok("hook", "claude-code", stdin=call(project, "Stop")) == ""
    until(lambda: len(faults(cli)) == 1)


def test_a_server_of_another_version_or_with_a_wrong_key_is_named_and_not_used(cli: CommandLine, project: Path) -> None:
    cli.home.mkdir()
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        announce(cli.home, f"http://127.0.0.1:{other.getsockname()[1]}", "9.9.9")
        assert "周五不部署" in told(cli, project)
        assert "version 9.9.9" in faults(cli)[0]
    with found_by_home(cli.home, api_keys={"right": "*"}):
        wrong = CommandLine(home=cli.home, environment={**WORDS_ALONE, "MEMORY_SERVICE_API_KEY": "wrong"})
        assert "周五不部署" in told(wrong, project)
    assert "wants another key" in faults(cli)[-1]


def test_a_server_that_does_not_answer_is_given_up_in_time(
    cli: CommandLine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_service.cli.hook._LIMIT_SECONDS", 0.5)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        cli.home.mkdir()
        announce(cli.home, f"http://127.0.0.1:{silent.getsockname()[1]}", __version__)
        ended = list[int]()
        monkeypatch.setattr(os, "_exit", ended.append)
        assert cli.run("hook", "claude-code", stdin=call(project, "Stop")).code == 0
    assert faults(cli)


@pytest.mark.skipif(sys.platform == "win32", reason="nothing can be stopped there")
def test_a_stopped_server_is_given_up_soon_and_what_was_said_is_kept_later(cli: CommandLine, project: Path) -> None:
    with own_process(cli.home, WORDS_ALONE) as (_, process):
        os.kill(process, signal.SIGSTOP)
        try:
            # The server answers nobody until it is let go: the command ends without it.
            assert cli.ok("hook", "claude-code", stdin=call(project, "Stop")) == ""
        finally:
            os.kill(process, signal.SIGCONT)
        [line] = faults(cli)
        assert "did not answer in time" in line
        assert FRIDAY.split(":")[1].strip()[:20] in told(cli, project)


def test_a_server_that_takes_long_and_is_at_work_is_waited_for(cli: CommandLine, project: Path) -> None:
    def serve(listener: socket.socket) -> None:
        slow, _ = listener.accept()
        alive, _ = listener.accept()
        for connection, answer in ((alive, b"{}"), (slow, b'{"slow": true}')):
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        cli.home.mkdir(parents=True, exist_ok=True)
        announce(cli.home, f"http://127.0.0.1:{listener.getsockname()[1]}", __version__)
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        assert json.loads(cli.ok("hook", "claude-code", stdin=call(project, "Stop"))) == {"slow": True}
        thread.join(60)
    assert faults(cli) == []


@pytest.mark.parametrize("body", [b"<html>Please log in</html>", b'{"hookSpecificOutput": {"additional', b"[]"])
def test_what_is_no_whole_answer_is_not_given_to_the_agent(cli: CommandLine, project: Path, body: bytes) -> None:
    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + body)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        cli.home.mkdir(parents=True, exist_ok=True)
        announce(cli.home, f"http://127.0.0.1:{listener.getsockname()[1]}", __version__)
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        assert cli.ok("hook", "claude-code", stdin=call(project, "UserPromptSubmit", prompt="When? 什么时候？")) == ""
        thread.join(60)
    [line] = faults(cli)
    assert "none of memory-service's" in line
