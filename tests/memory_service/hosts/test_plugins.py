"""The plugins of opencode and OpenClaw: checked against the types of their hosts, run by node against a real server.

The packages of the hosts come from `npm ci --ignore-scripts --omit=optional` in tests/memory_service/hosts/plugins, or
in a copy of that folder which HOST_PACKAGES names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_service import MemoryClient
from memory_service.hosts.connect import HostTarget, connect
from memory_service.hosts.projects import project_of
from memory_service.service import MemoryService
from tests.serving import running_process

PLAYERS = Path(__file__).parent / "plugins"
PACKAGES = Path(os.environ.get("HOST_PACKAGES") or PLAYERS)
OLDEST_NODE = 20
OPENCLAW_NODE = 24


def node_version() -> int:
    """Major version of the node that is found first; 0 for none."""
    if not shutil.which("node"):
        return 0
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return int(version.strip("v\n").partition(".")[0])


def missing() -> str:
    """Why the plugins cannot be run here; empty if they can."""
    if not (PACKAGES / "node_modules" / "typescript").is_dir():
        return "the hosts' packages are not installed: npm ci in tests/memory_service/hosts/plugins"
    return "" if node_version() >= OLDEST_NODE else f"node {OLDEST_NODE} is not installed"


pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


def ran(*words: str | Path, environment: dict[str, str] | None = None) -> str:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_SERVICE_")}
    done = subprocess.run(
        [*map(str, words)],
        env={**ours, "no_proxy": "127.0.0.1", **(environment or {})},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of somebody who connected both hosts."""
    home = tmp_path_factory.mktemp("user")
    with pytest.MonkeyPatch.context() as person:
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH"):
            person.delenv(name, raising=False)
        person.setenv("HOME", str(home))
        for host in ("opencode", "openclaw"):
            connect(host, HostTarget(folder=home, home=home / "memories"))
        yield home


@pytest.fixture(scope="module")
def compiled(user: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The plugins as they were written to the user's folders, through tsc, which finds nothing wrong with them."""
    source = PACKAGES / ".compiled" / tmp_path_factory.mktemp("source").name
    source.mkdir(parents=True)
    try:
        plugins = {
            "openclaw": user / ".openclaw" / "extensions" / "memory-service" / "index.ts",
            "opencode": user / ".config" / "opencode" / "plugins" / "memory-service.ts",
        }
        for name, plugin in plugins.items():
            shutil.copy(plugin, source / f"{name}.ts")
        options = json.loads((PLAYERS / "tsconfig.json").read_text("utf-8"))
        (source / "tsconfig.json").write_text(json.dumps({**options, "include": ["*.ts"]}), "utf-8")
        ran("node", PACKAGES / "node_modules" / "typescript" / "bin" / "tsc", "-p", source)
        made = tmp_path_factory.mktemp("compiled")
        (made / "package.json").write_text('{"type": "module"}', "utf-8")
        return {name: Path(shutil.copy(source / f"{name}.js", made / f"{name}.js")) for name in plugins}
    finally:
        shutil.rmtree(PACKAGES / ".compiled")


@pytest.fixture(scope="module")
def url(user: Path) -> Iterator[str]:
    with running_process(user / "memories", {}) as address:
        yield address


@pytest.fixture(scope="module")
def openclaw(compiled: dict[str, Path], url: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran("node", PLAYERS / "openclaw.mjs", compiled["openclaw"], url))
    return found


def test_openclaw_gets_an_engine_and_a_memory(openclaw: dict[str, Any]) -> None:
    assert openclaw["id"] == openclaw["info"]["id"] == "memory-service" and openclaw["info"]["ownsCompaction"]
    assert "memory_search" in openclaw["prompt"][1]
    assert openclaw["warnings"] == []


def test_a_first_prompt_is_what_it_was(openclaw: dict[str, Any]) -> None:
    assert openclaw["first"]["messages"] == []


def test_the_tools_of_openclaw_reach_the_memory(openclaw: dict[str, Any]) -> None:
    (found,) = openclaw["found"]["results"]
    assert "Tuesdays" in found["snippet"] and found["path"] == openclaw["stored"]["path"] and found["startLine"] > 0
    assert "周五不部署" in openclaw["read"]["text"]


def test_a_turn_is_stored_once_and_comes_back_as_it_was(openclaw: dict[str, Any], url: str) -> None:
    assert openclaw["commit1"] == openclaw["commit2"] == {"status": "committed"}
    assert openclaw["second"]["same"]
    (memory,) = openclaw["second"]["more"]
    assert memory["role"] == "user" and "Tuesdays" in memory["content"]
    with MemoryClient(url, workspace="openclaw-main") as client:
        said = [message.get("content") for message in client.session("openclaw-s-1").messages("log").messages]
    assert said.count("Where is the shop?") == said.count("In Graz.") == 1
    assert said[-2:] == ["And now?", "Now this."]


def test_names_in_chinese_stay_apart(openclaw: dict[str, Any], user: Path) -> None:
    assert openclaw["ingest"] == {"ingested": True}
    # The agent's workspace is not that of another agent whose letters are as many.
    logs = [path.read_text("utf-8") for path in (user / "memories").glob("openclaw--*/sessions/*.jsonl")]
    assert sorted((log.count("周会"), log.count("晨会")) for log in logs) == [(0, 1), (1, 0)]


def test_a_long_conversation_fits(openclaw: dict[str, Any]) -> None:
    long = openclaw["long"]
    assert long["tokens"] <= 6000 and long["count"] < 244 and long["last"] and long["pairs"]
    assert openclaw["compact"]["ok"] and openclaw["ingest"] == {"ingested": True}


def test_openclaw_goes_on_without_a_server(openclaw: dict[str, Any]) -> None:
    down = openclaw["down"]
    assert down["same"] and down["authority"] == "preassembly_may_overflow"
    assert down["ingest"] == {"ingested": False} and down["commit"] == {"status": "committed"}
    assert down["found"]["unavailable"] and down["warnings"] == 4


@pytest.mark.skipif(node_version() < OPENCLAW_NODE, reason=f"OpenClaw needs node {OPENCLAW_NODE}")
def test_a_compaction_without_a_server_is_openclaw_s_own(compiled: dict[str, Path], tmp_path: Path) -> None:
    # Its own model is asked for, which is none: so far only OpenClaw itself gets.
    (tmp_path / "node_modules").symlink_to(PACKAGES.resolve() / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}', "utf-8")
    plugin = shutil.copy(compiled["openclaw"], tmp_path / "openclaw.js")
    printed = ran("node", PLAYERS / "handover.mjs", plugin, environment={"HOME": str(tmp_path)})
    found = json.loads(printed.splitlines()[-1])
    assert found["answer"]["compacted"] is False and "Unknown model: nobody/unknown" in found["answer"]["reason"]
    assert "the compaction is OpenClaw's own" in found["warnings"][0]


@pytest.fixture(scope="module", params=["server", "command"])
def opencode(
    request: pytest.FixtureRequest,
    compiled: dict[str, Path],
    user: Path,
    url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, Any], Path]:
    """What the plugin did in a project, with a server and with the command that `connect` wrote into it."""
    project = tmp_path_factory.mktemp("项目 one")
    with MemoryService.open(user / "memories") as service:
        service.remember(
            project_of(str(project)).workspace_in(user / "memories"), "Deploys go out on Tuesdays after the stand-up."
        )
    environment = {"MEMORY_SERVICE_URL": url} if request.param == "server" else {}
    words = ("node", PLAYERS / "opencode.mjs", compiled["opencode"], project, f"ses_{request.param}")
    return json.loads(ran(*words, environment=environment)), project


def test_memories_stand_behind_the_words_of_their_turn(opencode: tuple[dict[str, Any], Path]) -> None:
    answers, _ = opencode
    assert answers["first"] == answers["again"]
    (note,) = answers["first"][0]
    assert "Tuesdays" in note["text"] and note["type"] == "text"
    assert "Tuesdays" not in str(answers["first"][1:]), "what was given once is not given again"
    assert answers["subagent"] == []


def test_a_compaction_of_opencode_gets_the_record(opencode: tuple[dict[str, Any], Path]) -> None:
    answers, _ = opencode
    assert "Tuesdays" in "\n".join(answers["compacting"])
    assert "Tuesdays" in answers["compacted"][0]["text"]


def test_what_opencode_said_is_stored_once_also_after_the_server_was_away(
    opencode: tuple[dict[str, Any], Path], user: Path
) -> None:
    _, project = opencode
    (log,) = (user / "memories" / project_of(str(project)).workspace_in(user / "memories") / "sessions").glob(
        "opencode-*.jsonl"
    )
    assert [log.read_text("utf-8").count(words) for words in ("Never on Fridays", '"Noted."', '"a b"')] == [1, 1, 1]


def test_a_command_that_prints_half_an_answer_ends_no_host(compiled: dict[str, Path], tmp_path: Path) -> None:
    half = json.dumps({"command": ["node", "-e", "console.log('{half')"]})
    plugin = tmp_path / "plugin.mjs"
    plugin.write_text(
        re.sub(r"const SETTINGS = .*", f"const SETTINGS = {half};", compiled["opencode"].read_text("utf-8"))
    )
    answers = json.loads(ran("node", PLAYERS / "opencode.mjs", plugin, tmp_path, "ses_half"))
    assert answers["first"] == [[], [], []] and answers["compacting"] == []


def test_a_host_without_a_memory_goes_on(compiled: dict[str, Path], tmp_path: Path) -> None:
    answers = json.loads(
        ran(
            "node",
            PLAYERS / "opencode.mjs",
            compiled["opencode"],
            tmp_path,
            environment={"MEMORY_SERVICE_URL": "http://127.0.0.1:9"},
        )
    )
    assert answers["first"] == [[], [], []] and answers["compacting"] == []
