"""Claude's memory tool, through the SDK's own tool runner with a scripted Claude, and beside its own tool on files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.places import Place, needs, run_recipe

needs("anthropic")

from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

from memory_service import ConnectionFailed
from memory_service.integrations.anthropic import AsyncMemoryServiceTool, MemoryServiceTool
from memory_service.testing import Reply, ScriptedServer, ScriptedStep
from tests.integrations.places import DEPLOYS, NO_SERVER

NOTES = "# Shop\n\n- Lena lives in Graz.\n- 周五不部署。\n"


@pytest.fixture
def tool(place: Place) -> MemoryServiceTool:
    return MemoryServiceTool(place.source, place.workspace)


def ask(tool: Any, command: str, **values: Any) -> str:
    """An answer of the tool, or its error, as Claude gets it."""
    try:
        return str(tool.call({"command": command, **values}))
    except ToolError as error:
        return f"error: {error}"


def test_a_file_is_written_found_edited_renamed_and_deleted(tool: MemoryServiceTool, place: Place) -> None:
    assert "/memories" in ask(tool, "view", path="/memories")
    assert "created" in ask(tool, "create", path="/memories/shop/lena.md", file_text=NOTES)
    assert (place.folder / "memory/shop/lena.md").read_text("utf-8") == NOTES
    for query in ("where does Lena live?", "哪天不部署"):
        assert place.service.search(place.workspace, query, limit=1).results[0].path == "memory/shop/lena.md"
    assert "     3\t- Lena lives in Graz." in ask(tool, "view", path="/memories/shop/lena.md")
    assert ask(tool, "view", path="/memories/shop/lena.md", view_range=[4, 4]).splitlines()[1:] == [
        "     4\t- 周五不部署。"
    ]
    edited = ask(tool, "str_replace", path="/memories/shop/lena.md", old_str="Graz", new_str="Linz")
    assert "     3\t- Lena lives in Linz." in edited
    ask(tool, "insert", path="/memories/shop/lena.md", insert_line=3, insert_text="- She has a dog.\n")
    assert (place.folder / "memory/shop/lena.md").read_text("utf-8").splitlines()[3] == "- She has a dog."
    assert place.service.search(place.workspace, "dog", mode="text", limit=1).results
    assert "renamed" in ask(tool, "rename", old_path="/memories/shop", new_path="/memories/people")
    assert [file.path for file in place.service.files(place.workspace)] == ["memory/people/lena.md"]
    assert "deleted" in ask(tool, "delete", path="/memories/people/lena.md")
    assert place.service.search(place.workspace, "dog", mode="text").results == []


def test_answers_are_those_of_the_sdk_s_own_tool(tool: MemoryServiceTool, tmp_path: Path) -> None:
    own = BetaLocalFilesystemMemoryTool(str(tmp_path))
    script: list[tuple[str, dict[str, Any]]] = [
        ("create", {"path": "/memories/a.md", "file_text": "one\ntwo\ntwo\n"}),
        ("create", {"path": "/memories/a.md", "file_text": "again"}),
        ("create", {"path": "/memories/deep/er/b.md", "file_text": "x" * 2_000}),
        ("view", {"path": "/memories/a.md"}),
        ("view", {"path": "/memories/a.md", "view_range": [2, -1]}),
        ("view", {"path": "/memories/none.md"}),
        ("str_replace", {"path": "/memories/a.md", "old_str": "two", "new_str": "2"}),
        ("str_replace", {"path": "/memories/a.md", "old_str": "three", "new_str": "3"}),
        ("str_replace", {"path": "/memories/a.md", "old_str": "one\n", "new_str": ""}),
        ("str_replace", {"path": "/memories/none.md", "old_str": "one", "new_str": ""}),
        ("insert", {"path": "/memories/a.md", "insert_line": 0, "insert_text": "zero"}),
        ("insert", {"path": "/memories/a.md", "insert_line": 9, "insert_text": "nine"}),
        ("view", {"path": "/memories/a.md"}),
        ("rename", {"old_path": "/memories/a.md", "new_path": "/memories/c.md"}),
        ("rename", {"old_path": "/memories/none.md", "new_path": "/memories/d.md"}),
        ("delete", {"path": "/memories/none.md"}),
        ("delete", {"path": "/memories/deep"}),
        ("view", {"path": "/memories/c.md"}),
    ]
    for command, values in script:
        assert ask(tool, command, **values) == ask(own, command, **values), (command, values)
    ours, theirs = (ask(each, "view", path="/memories").splitlines() for each in (tool, own))
    assert ours[0] == theirs[0] and ours[2:] == theirs[2:]


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/memories/../x.md", "/memories/a/../../x.md", "/memories/.hidden.md", "/memoriesx/a.md",
     "/memories/a\\b.md", "/memories/%2e%2e/x.md", "/memories//x.md", "/memories/a\u0000b.md", "memory/x.md", "",
     "/memories/../sessions/s.jsonl", "/memories/" + "x" * 300, "/memories/\ud800.md"],
)  # fmt: skip
def test_no_path_leaves_the_memory(tool: MemoryServiceTool, place: Place, path: str) -> None:
    home = place.service.settings.home
    before = sorted(str(each) for each in home.rglob("*.md"))
    commands: list[tuple[str, dict[str, Any]]] = [
        ("create", {"path": path, "file_text": "out"}), ("view", {"path": path}), ("delete", {"path": path}),
        ("str_replace", {"path": path, "old_str": "a", "new_str": "b"}),
        ("insert", {"path": path, "insert_line": 0, "insert_text": "a"}),
        ("rename", {"old_path": path, "new_path": "/memories/y.md"}),
    ]  # fmt: skip
    for command, values in commands:
        assert ask(tool, command, **values).startswith("error: "), command
    ask(tool, "create", path="/memories/x.md", file_text="in")
    assert ask(tool, "rename", old_path="/memories/x.md", new_path=path).startswith("error: ")
    assert ask(tool, "delete", path="/memories/x.md").startswith("Success")
    assert sorted(str(each) for each in home.rglob("*.md")) == before


def test_links_are_not_followed(tool: MemoryServiceTool, place: Place, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret", "utf-8")
    place.remember(DEPLOYS)
    (place.folder / "memory/out").symlink_to(tmp_path)
    for command, values in [("view", {}), ("create", {"file_text": "x"}), ("delete", {})]:
        assert ask(tool, command, path="/memories/out/secret.md", **values).startswith("error: ")
    assert (tmp_path / "secret.md").read_text("utf-8") == "secret"


def test_a_decomposed_name_on_the_disk_is_edited_renamed_and_deleted(tool: MemoryServiceTool, place: Place) -> None:
    stored = place.folder / "memory" / "cafe\u0301" / "the\u0301.md"
    stored.parent.mkdir(parents=True)
    stored.write_text(NOTES, "utf-8")
    ask(tool, "str_replace", path="/memories/café/thé.md", old_str="Graz", new_str="Linz")
    assert "Linz" in stored.read_text("utf-8")
    assert "renamed" in ask(tool, "rename", old_path="/memories/café", new_path="/memories/tea")
    assert "deleted" not in ask(tool, "delete", path="/memories/café/thé.md")
    assert [file.path for file in place.service.files(place.workspace)] == ["memory/tea/thé.md"]
    assert "deleted" in ask(tool, "delete", path="/memories/tea/the\u0301.md")
    assert place.service.files(place.workspace) == []


def test_the_service_s_own_files_are_edited_and_never_deleted(tool: MemoryServiceTool, place: Place) -> None:
    place.remember(DEPLOYS)
    (file,) = place.service.files(place.workspace)
    day = f"/memories/{file.path.removeprefix('memory/')}"
    ask(tool, "create", path="/memories/MEMORY.md", file_text="- Never on Fridays.\n")
    ask(tool, "create", path="/memories/own.txt", file_text="mine")
    assert {each.path for each in place.service.files(place.workspace)} >= {"MEMORY.md", "memory/own.txt.md"}
    assert DEPLOYS in ask(tool, "view", path=day)
    assert "edited" in ask(tool, "str_replace", path=day, old_str="Tuesdays", new_str="Wednesdays")
    for path in (day, "/memories/MEMORY.md"):
        assert "is not deleted" in ask(tool, "delete", path=path)
        assert "is not renamed" in ask(tool, "rename", old_path=path, new_path="/memories/x.md")
        assert "file of the memory service" in ask(tool, "rename", old_path="/memories/own.txt", new_path=path)
    assert "cannot be deleted" in ask(tool, "delete", path="/memories")
    assert tool.clear_all_memory() == "All memory cleared"
    assert [each.path for each in place.service.files(place.workspace)] == ["MEMORY.md", file.path]


def test_what_a_person_changed_meanwhile_is_not_overwritten(tool: MemoryServiceTool, place: Place) -> None:
    ask(tool, "create", path="/memories/a.md", file_text="one\n")
    kept = tool._memory.put

    def changed(path: str, text: str, **options: Any) -> Any:
        (place.folder / path).write_text("a person's\n", "utf-8")
        return kept(path, text, **options)

    tool._memory.put = changed  # type: ignore[method-assign]
    assert ask(tool, "str_replace", path="/memories/a.md", old_str="one", new_str="two").startswith("error: ")
    assert (place.folder / "memory/a.md").read_text("utf-8") == "a person's\n"


def called(command: str, **values: Any) -> Reply:
    return Reply(tool_call="memory", arguments=json.dumps({"command": command, **values}))


SCRIPT: list[ScriptedStep] = [
    called("view", path="/memories"),
    called("create", path="/memories/lena.md", file_text=NOTES),
    called("str_replace", path="/memories/lena.md", old_str="Vienna", new_str="Linz"),
    "I will remember.",
]


def test_the_sdk_s_runner_uses_it(place: Place) -> None:
    tool = MemoryServiceTool(place.source, place.workspace)
    with (
        ScriptedServer(*SCRIPT) as server,
        Anthropic(base_url=server.url.removesuffix("/v1"), api_key="any", max_retries=0) as client,
    ):
        runner = client.beta.messages.tool_runner(
            model="claude", max_tokens=99, messages=[{"role": "user", "content": "I live in Graz."}], tools=[tool]
        )
        assert "I will remember." in str(runner.until_done().content)
        last = server.requests[-1].body["messages"][-1]["content"][0]
        assert last["is_error"] and "did not appear verbatim" in str(last["content"])
        assert server.requests[0].body["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert (place.folder / "memory/lena.md").read_text("utf-8") == NOTES


def test_the_asynchronous_runner_uses_it(place: Place) -> None:
    tool = AsyncMemoryServiceTool(place.source, place.workspace)

    async def run(server: ScriptedServer) -> None:
        async with AsyncAnthropic(base_url=server.url.removesuffix("/v1"), api_key="any", max_retries=0) as client:
            runner = client.beta.messages.tool_runner(
                model="claude", max_tokens=99, messages=[{"role": "user", "content": "I live in Graz."}], tools=[tool]
            )
            await runner.until_done()
        assert await tool.clear_all_memory() == "All memory cleared"

    with ScriptedServer(*SCRIPT) as server:
        asyncio.run(run(server))
    assert not (place.folder / "memory/lena.md").exists()


def test_a_memory_that_fails_is_told_to_the_model() -> None:
    told = ask(MemoryServiceTool(NO_SERVER), "create", path="/memories/a.md", file_text="x")
    assert told.startswith("error: ") and "was not reached" in told
    with pytest.raises(ConnectionFailed):
        MemoryServiceTool(NO_SERVER).clear_all_memory()


@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_the_recipe(place: Place) -> None:
    with ScriptedServer(*SCRIPT) as server:
        environment = {"ANTHROPIC_BASE_URL": server.url.removesuffix("/v1"), "ANTHROPIC_API_KEY": "any"}
        assert "I will remember." in run_recipe("Claude's memory tool", place, **environment)
    place.service.delete("default", "memory/lena.md")
