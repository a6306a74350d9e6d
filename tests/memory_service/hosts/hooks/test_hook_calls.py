"""Hook calls of coding agents on a real home: what the agent gets, what is kept, and what happens when it fails."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from indexer import MiniLM
from indexer.testing import HashEmbedder
from memory_service.compaction.checkpoint import Checkpoint
from memory_service.hooks import Intent
from memory_service.hosts import HOSTS, HostName, transcripts
from memory_service.hosts.dialects import host_chars
from memory_service.hosts.hooks import host_records
from memory_service.hosts.hooks.hook_calls import handle_hook
from memory_service.hosts.places import FileAccess
from memory_service.hosts.projects import project_of
from memory_service.service import MemoryService
from memory_service.text.texts import texts_in
from tests.serving import settings

FRIDAY = "We decided: deploys go out on Tuesdays at 10:00, never on Fridays."
SESSION = "3f9a1b2c-0000-4000-8000-000000000001"


@dataclass
class Agent:
    """A coding agent in a project, with its transcript."""

    service: MemoryService
    project: Path
    session: str = SESSION
    host: HostName = "claude-code"

    @property
    def transcript(self) -> Path:
        return self.project.parent / f"{self.session}.jsonl"

    @property
    def workspace(self) -> str:
        return project_of(str(self.project)).workspace_in(self.service.settings.home)

    def says(self, role: str, content: object, **fields: object) -> None:
        line = {"type": role, "isSidechain": False, "message": {"role": role, "content": content}, **fields}
        with self.transcript.open("a", encoding="utf-8") as opened:
            opened.write(json.dumps(line, ensure_ascii=False) + "\n")

    def hook(self, event: str, *, workspace: str | None = None, access: FileAccess = "all", **fields: object) -> Any:
        call = {
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "hook_event_name": event,
            **fields,
        }
        answered = handle_hook(self.service, self.host, call, workspace=workspace, access=access)
        answered.afterwards(lambda: False)
        return answered.answer

    def given(self, event: str, **fields: Any) -> str:
        answer = self.hook(event, **fields)
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))

    def logged(self) -> list[str]:
        found = self.service.messages(self.workspace, f"{self.host}-{self.session}", "log")
        return [str(message["content"]) for message in found.messages]

    def faults(self) -> list[str]:
        log = self.service.settings.home / "hooks.log"
        return log.read_text("utf-8").splitlines() if log.exists() else []


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with MemoryService(
        settings(tmp_path / "home", pin_rules=True, embedding_model="none"), embedder=HashEmbedder()
    ) as service:
        yield service


@pytest.fixture
def agent(service: MemoryService, tmp_path: Path) -> Agent:
    project = tmp_path / "花店 shop"
    project.mkdir()
    return Agent(service, project)


def test_a_decision_of_one_conversation_is_given_to_the_next(agent: Agent, service: MemoryService) -> None:
    assert agent.given("SessionStart", source="startup") == "", "there is nothing to say yet"
    agent.says("user", FRIDAY)
    agent.says("assistant", "Noted.")
    assert agent.hook("Stop") == {}
    assert [FRIDAY, "Noted."] == agent.logged()
    [written] = [file.path for file in service.files(agent.workspace)]
    assert "never on Fridays" in service.get(agent.workspace, written).text
    other = Agent(service, agent.project, session="other")
    assert "never on Fridays" in other.given("SessionStart", source="startup")
    receipts = "".join(each.model_dump_json() for each in service.receipts(agent.workspace).receipts)
    assert "never on Fridays" in receipts and "<!--" not in receipts
    third = Agent(service, agent.project, session="third")
    assert "never on Fridays" in third.given("UserPromptSubmit", prompt="When do deploys go out?")
    assert agent.faults() == []


def test_a_prompt_that_asks_for_nothing_gets_nothing(agent: Agent) -> None:
    agent.says("user", FRIDAY)
    agent.hook("Stop")
    for prompt in ("thanks!", "好的", "", "ok, go on"):
        assert agent.hook("UserPromptSubmit", prompt=prompt) == {}


def test_a_prompt_recalls_with_the_settings_of_recall(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    with MemoryService(settings(tmp_path / "home", recall={"min_relevance": 0.1}), embedder=MiniLM()) as service:
        agent = Agent(service, tmp_path / "shop")
        agent.says("user", FRIDAY)
        agent.says("user", "送花员的电话号码是 0664 123。")
        agent.hook("Stop")
        first = Agent(service, agent.project, session="first")
        assert "never on Fridays" in first.given("UserPromptSubmit", prompt="When do deploys go out?")
        assert "0664 123" in first.given("UserPromptSubmit", prompt="送花员的电话是多少?")
        assert first.given("UserPromptSubmit", prompt="How do I centre a heading in CSS?") == ""
        assert first.given("UserPromptSubmit", prompt="怎样用正则表达式匹配邮箱地址?") == ""
        assert first.faults() == []


def test_an_end_without_a_word_is_no_fault(agent: Agent) -> None:
    agent.hook("SessionStart", source="startup")
    assert agent.hook("SessionEnd", reason="prompt_input_exit") == {}
    assert agent.faults() == []


def test_a_transcript_is_stored_once_however_often_it_is_read(agent: Agent) -> None:
    for number in range(6):
        agent.says("user", f"第{number}句: fact number {number}")
        agent.hook("Stop")
        agent.hook("Stop")
        agent.hook("PreCompact", trigger="auto")
    agent.hook("SessionEnd", reason="other")
    assert agent.logged() == [f"第{number}句: fact number {number}" for number in range(6)]
    with agent.transcript.open("a") as opened:
        opened.write('{"type": "user", "message": {"role": "user", "content": "half')
    agent.hook("Stop")
    assert len(agent.logged()) == 6 and agent.faults() == []


@pytest.mark.parametrize("how", ["truncated", "replaced", "copied"])
def test_a_transcript_that_was_cut_or_replaced_is_not_stored_twice(agent: Agent, how: str) -> None:
    for number in range(5):
        agent.says("user", f"fact {number}")
    agent.hook("Stop")
    lines = agent.transcript.read_text().splitlines(keepends=True)
    if how == "copied":
        agent.project.with_name("copy.jsonl").write_text("".join(lines))
        agent.hook("Stop", transcript_path=str(agent.project.with_name("copy.jsonl")))
    else:
        agent.transcript.write_text("".join(lines[:3] if how == "truncated" else ["{}\n", *lines]))
        agent.says("user", "fact 5")
        agent.hook("Stop")
        assert how in agent.faults()[0]
    assert agent.logged()[:5] == [f"fact {number}" for number in range(5)]
    assert len(agent.logged()) == (5 if how == "copied" else 6)


def test_a_crash_between_the_log_and_the_progress_stores_nothing_twice(agent: Agent) -> None:
    agent.says("user", "fact 0")
    agent.hook("Stop")
    [file] = (agent.service.settings.home / agent.workspace / ".hosts").glob("*.json")
    before = json.loads(file.read_text())
    agent.says("user", "fact 1")
    agent.hook("Stop")
    after = json.loads(file.read_text())
    file.write_text(json.dumps({**before, "until": after["place"]["offset"]}))
    agent.says("user", "fact 2")
    agent.hook("Stop")
    agent.hook("Stop")
    assert agent.logged() == ["fact 0", "fact 1", "fact 2"]


def test_a_crash_before_the_transcript_was_cut_short_loses_no_line(agent: Agent) -> None:
    agent.says("user", "fact 0")
    agent.hook("Stop")
    [file] = (agent.service.settings.home / agent.workspace / ".hosts").glob("*.json")
    before = json.loads(file.read_text())
    file.write_text(json.dumps({**before, "until": before["place"]["offset"] + 10_000}))
    agent.says("user", "事实 1")
    whole = agent.transcript.read_bytes()
    agent.transcript.write_bytes(whole[:-20])
    agent.hook("Stop")
    agent.transcript.write_bytes(whole)
    agent.hook("Stop")
    assert agent.logged() == ["fact 0", "事实 1"]


def test_the_end_of_a_long_transcript_is_read_behind_a_broken_line(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "_STRETCH_BYTES", 300)
    facts = [f"fact {number} 事实" for number in range(30)]
    for fact in facts:
        agent.says("user", fact)
    lines = agent.transcript.read_bytes().splitlines(keepends=True)
    agent.transcript.write_bytes(b"".join([*lines[:15], b"{broken\n", *lines[15:]]))
    agent.hook("SessionEnd")
    assert agent.logged() == facts
    [fault] = agent.faults()
    assert "1 lines are no JSON objects" in fault


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
def test_a_transcript_that_is_a_pipe_is_a_fault(agent: Agent) -> None:
    os.mkfifo(agent.transcript)
    assert agent.hook("Stop") == {}
    [fault] = agent.faults()
    assert "no regular file" in fault


def test_two_agents_of_one_project_at_once(service: MemoryService, agent: Agent) -> None:
    agents = [Agent(service, agent.project, session=f"s{number}") for number in range(2)]
    for number in range(20):
        agents[number % 2].says("user", f"fact {number}")

    def work(one: Agent) -> None:
        for _ in range(3):
            one.hook("Stop")
            one.given("UserPromptSubmit", prompt="which fact was it?")

    threads = [threading.Thread(target=work, args=(one,)) for one in (*agents, *agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for at, one in enumerate(agents):
        assert one.logged() == [f"fact {number}" for number in range(20) if number % 2 == at]
    assert agent.faults() == []


def test_after_a_compaction_the_agent_gets_pins_summary_and_what_it_forgot(agent: Agent) -> None:
    agent.says("user", f"{FRIDAY} Please build the shop's door step by step.")
    for number in range(45):
        agent.says("assistant", f"Step {number}: wrote src/door_{number}.py. " + "The hinge holds. " * 40)
        agent.says("user", f"Go on with step {number + 1}, and keep the blue paint for room {number}.")
    agent.hook("Stop")
    session_id = f"claude-code-{SESSION}"
    agent.service.pin(agent.workspace, session_id, "Never delete the orders table. 不要删除订单表。")
    assert agent.hook("PreCompact", trigger="auto", custom_instructions="") == {}
    given = agent.given("SessionStart", source="compact")
    assert "Never delete the orders table. 不要删除订单表。" in given
    assert "<summary>" in given and host_chars(given) <= 10_000
    assert agent.given("SessionStart", source="resume") == "", "the conversation has it"
    # What the host itself repeats of it is nothing that anybody said.
    agent.says("user", given)
    before = len(agent.logged())
    agent.hook("Stop")
    assert len(agent.logged()) == before


def test_after_a_compaction_of_a_short_talk_the_agent_gets_what_it_forgot(agent: Agent) -> None:
    agent.says("user", "The hinge of the shop's door is 12 mm wide, and 三号房间用蓝色油漆.")
    agent.says("assistant", "Wrote src/door.py.")
    agent.says("user", "Go on with the hinge, 然后是三号房间。")
    agent.hook("Stop")
    agent.hook("PreCompact", trigger="manual")
    given = agent.given("SessionStart", source="compact")
    assert "Go on with the hinge, 然后是三号房间。" in given and "12 mm" in given and "蓝色油漆" in given
    assert "蓝色油漆" not in agent.given("UserPromptSubmit", prompt="三号房间用什么油漆？"), "it was given just now"
    agent.says("user", "And the handle is made of brass, 门把手是黄铜的。")
    agent.hook("Stop")
    assert "brass" not in agent.given("UserPromptSubmit", prompt="What is the handle made of?"), "it is in view"


def test_what_the_memory_gave_is_not_kept_as_something_that_was_said(agent: Agent) -> None:
    agent.says("user", FRIDAY)
    agent.hook("Stop")
    one = Agent(agent.service, agent.project, session="one")
    block = one.given("UserPromptSubmit", prompt="When do deploys go out? 什么时候部署？")
    assert "never on Fridays" in block
    one.says(
        "user", f"What now?\n<system-reminder>\nUserPromptSubmit hook additional context: {block}\n</system-reminder>"
    )
    one.says("user", [{"type": "text", "text": "现在呢？"}, {"type": "text", "text": f"<x>{block}</x>"}])
    calls = [
        ("t1", "mcp__memory-service__search", {"query": "deploys"}),
        ("t2", "Bash", {"command": f"memory-service search '{FRIDAY[:9]}'"}),
    ]
    one.says(
        "assistant", [{"type": "tool_use", "id": call, "name": name, "input": given} for call, name, given in calls]
    )
    one.hook("Stop")
    results = [{"type": "tool_result", "tool_use_id": call, "content": f"1. {FRIDAY}"} for call in ("t1", "t2", "t3")]
    one.says("user", results)
    one.hook("Stop")
    said = [message["content"] for message in agent.service.messages(one.workspace, "claude-code-one", "log").messages]
    assert said[:2] == ["What now?", [{"type": "text", "text": "现在呢？"}]]
    assert [part["content"] for part in said[3]] == ["[recalled]", "[recalled]", f"1. {FRIDAY}"], "t3 is another tool's"


def test_rules_are_pinned_and_pinned_anew_when_they_change(agent: Agent) -> None:
    rules = agent.project / "AGENTS.md"
    rules.write_text("Run the linter before each commit.")
    assert "Run the linter before each commit." in agent.given("SessionStart", source="startup")
    assert agent.hook("UserPromptSubmit", prompt="thanks!") == {}
    workspace = agent.service.settings.home / agent.workspace
    assert {each.name for each in workspace.glob("*")} <= {".hosts", ".project", "prompts"}, "nothing was said yet"
    rules.write_text("Run the linter and the tests. 提交前先跑测试。")
    assert "提交前先跑测试" in agent.given("UserPromptSubmit", prompt="thanks!")
    agent.says("user", "thanks!")
    agent.hook("Stop")
    pins = agent.service.pins(agent.workspace, f"claude-code-{SESSION}").pins
    assert [pin.text for pin in pins] == ["Rules of AGENTS.md:\nRun the linter and the tests. 提交前先跑测试。"]
    assert "before each commit" not in agent.given("SessionStart", source="compact")
    rules.unlink()
    assert "no more" in agent.given("UserPromptSubmit", prompt="thanks!")
    assert agent.service.pins(agent.workspace, f"claude-code-{SESSION}").pins == []


def test_rules_in_chinese_are_given_and_pinned_with_chinese_words(agent: Agent) -> None:
    rules = agent.project / "AGENTS.md"
    rules.write_text("提交之前先跑测试，周五绝不部署。")
    given = agent.given("SessionStart", source="startup")
    assert "- AGENTS.md 的规则：\n提交之前先跑测试" in given and given.startswith("[置顶：")
    agent.says("user", "帮我看看部署脚本，周五为什么失败？")
    agent.hook("Stop")
    rules.write_text("Run the linter before each commit, and the tests before each deploy.")
    given = agent.given("UserPromptSubmit", prompt="thanks!")
    assert "AGENTS.md 的规则现在是：\nRun the linter" in given
    pins = agent.service.pins(agent.workspace, f"claude-code-{SESSION}").pins
    assert [(pin.text or "").partition("\n")[0] for pin in pins] == ["AGENTS.md 的规则："]
    rules.write_text("不要用制表符。\n" * 3_000)
    given = agent.given("UserPromptSubmit", prompt="thanks!")
    assert given.endswith("[… 其余放不下 …]") and host_chars(given) <= 10_000
    rules.unlink()
    assert "AGENTS.md 的规则不再有了。" in agent.given("UserPromptSubmit", prompt="thanks!")


def test_rules_that_change_within_a_turn_are_given_with_the_next_prompt(agent: Agent) -> None:
    (agent.project / "AGENTS.md").write_text("Use tabs.")
    agent.given("SessionStart", source="startup")
    agent.says("user", "thanks!")
    agent.hook("Stop")
    (agent.project / "AGENTS.md").unlink()
    (agent.project / "CLAUDE.md").write_text("Use spaces. 用空格。")
    agent.hook("Stop")
    given = agent.given("UserPromptSubmit", prompt="thanks!")
    assert "用空格" in given and "AGENTS.md are no more" in given
    assert agent.hook("UserPromptSubmit", prompt="thanks!") == {}


def test_long_rules_never_make_an_answer_longer_than_the_host_takes(agent: Agent) -> None:
    (agent.project / "CLAUDE.md").write_text("规则 & <b>rule</b>\U0001f600\n" * 3_000)
    given = agent.given("SessionStart", source="startup")
    assert "规则" in given and host_chars(given) <= 10_000


def test_rules_are_left_alone_unless_asked_for(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "AGENTS.md").write_text("Run the linter.")
    with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as service:
        assert Agent(service, tmp_path / "shop").given("SessionStart", source="startup") == ""
    assert not list((tmp_path / "home").glob("shop-*"))


def test_a_subagent_is_not_mixed_in(agent: Agent) -> None:
    agent.says("user", "of the subagent", isSidechain=True)
    agent.says("user", "of the main thread")
    assert agent.hook("SubagentStop", agent_id="a1", agent_transcript_path=str(agent.transcript)) == {}
    assert agent.hook("Stop", agent_id="a1") == {}
    assert not (agent.service.settings.home / agent.workspace).exists()
    agent.hook("Stop")
    assert agent.logged() == ["of the main thread"]


def test_cursor_is_kept_by_its_events(agent: Agent) -> None:
    agent.host = "cursor"
    base: dict[str, Any] = {
        "conversation_id": "c1",
        "session_id": None,
        "workspace_roots": [str(agent.project)],
        "cwd": "",
    }
    assert agent.hook("beforeSubmitPrompt", prompt=FRIDAY, generation_id="g1", **base) == {}
    agent.hook("afterAgentResponse", text="Noted.", generation_id="g1", **base)
    agent.hook("afterAgentResponse", text="Noted.", generation_id="g1", **base)
    agent.hook("stop", status="completed", **base)
    agent.session = "c1"
    assert agent.logged() == [FRIDAY, "Noted."]
    other = {**base, "conversation_id": "c2"}
    given = agent.hook("sessionStart", **other)
    assert "never on Fridays" in given["additional_context"]
    other |= {"conversation_id": "c3"}
    given = agent.hook("beforeSubmitPrompt", prompt="When do deploys go out?", generation_id="g2", **other)
    assert given["continue"] is True and "never on Fridays" in given["additional_context"]
    assert agent.hook("beforeSubmitPrompt", prompt="thanks!", generation_id="g3", **other) == {}


@dataclass
class Asking:
    """A host that asks a service started anew for each hook, as the command is."""

    home: Path
    project: Path
    host: HostName = "claude-code"

    @contextmanager
    def service(self) -> Iterator[MemoryService]:
        with MemoryService(settings(self.home), embedder=HashEmbedder()) as service:
            yield service

    @property
    def workspace(self) -> str:
        return project_of(str(self.project)).workspace_in(self.home)

    def remember(self, text: str) -> str:
        with self.service() as service:
            return service.remember(self.workspace, text).memory_id

    def hook(self, event: str, **fields: Any) -> str:
        names = {
            "claude-code": ("SessionStart", "UserPromptSubmit"),
            "codex": ("SessionStart", "UserPromptSubmit"),
            "cursor": ("sessionStart", "beforeSubmitPrompt"),
        }.get(self.host, ("session_start", "prompt"))
        name = dict(zip(("start", "prompt"), names, strict=True)).get(event, event)
        with self.service() as service:
            answer = Agent(service, self.project, host=self.host).hook(name, transcript_path=None, **fields)
        return json.dumps(answer, ensure_ascii=False)

    def prompt(self, text: str = "When do deploys go out? 什么时候部署?") -> str:
        return self.hook("prompt", prompt=text)


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    (tmp_path / "花店 shop").mkdir()
    return Asking(tmp_path / "home", tmp_path / "花店 shop")


@pytest.mark.parametrize("host", HOSTS)
def test_what_was_given_is_not_given_again(asking: Asking, host: HostName) -> None:
    asking.host = host
    asking.remember(FRIDAY)
    asking.remember("周五绝不部署支付服务。")
    started = asking.hook("start", source="startup")
    assert "never on Fridays" in started and "绝不部署" in started
    assert "context" not in asking.prompt(), "the agent has it"
    asking.remember("Deploys are announced in the channel harbour. 部署在港口频道公布。")
    first = asking.prompt()
    assert "harbour" in first and "never on Fridays" not in first and "绝不部署" not in first
    assert "context" not in asking.prompt()


@pytest.mark.parametrize("how", ["compact", "clear", "startup", "PreCompact"])
def test_what_the_view_of_the_host_lost_is_given_again(asking: Asking, how: str) -> None:
    asking.remember(FRIDAY)
    assert "never on Fridays" in asking.prompt() and asking.prompt() == "{}"
    if how == "PreCompact":
        asking.hook(how)
    else:
        assert "never on Fridays" in asking.hook("start", source=how)
        assert asking.prompt() == "{}"
        asking.hook("PreCompact")
    assert "never on Fridays" in asking.prompt()


def test_what_goes_on_has_what_it_was_given(asking: Asking) -> None:
    asking.remember(FRIDAY)
    assert "never on Fridays" in asking.hook("start", source="startup")
    assert asking.hook("start", source="resume") == "{}" and asking.prompt() == "{}"


def test_a_value_that_changed_is_given_and_one_that_came_back_too(asking: Asking) -> None:
    def write(day: str) -> None:
        with asking.service() as service:
            etag = service.get(asking.workspace, "MEMORY.md").etag if day != "Tuesdays" else None
            texts = (f"- Deploys go out on {day}.", "- Lunch is at noon, 部署以后。")
            service.put(asking.workspace, "MEMORY.md", "\n\n".join(texts), if_match=etag, if_none_match=not etag)

    write("Tuesdays")
    assert "Tuesdays" in asking.prompt() and asking.prompt() == "{}"
    write("Mondays")
    assert "Mondays" in asking.prompt() and asking.prompt() == "{}"
    write("Tuesdays ")
    assert "Tuesdays" in asking.prompt()


def test_nothing_is_left_of_what_was_given_and_is_erased(asking: Asking) -> None:
    memory_id = asking.remember("The vault's code is 7443 when deploys go out.")
    assert "7443" in asking.prompt()
    with asking.service() as service:
        service.forget(asking.workspace, memory_id)
    kept = [file for file in asking.home.rglob("*") if file.is_file() and b"7443" in file.read_bytes()]
    assert kept == [] and "7443" not in asking.prompt()


def test_pins_and_summary_are_not_given_again_as_memories(asking: Asking) -> None:
    rule = "Deploys go out on Tuesdays at 10:00 in the morning. 周五绝不部署支付服务。"
    with asking.service() as service:
        agent = Agent(service, asking.project)
        agent.says("user", "hello")
        agent.hook("Stop")
        service.pin(asking.workspace, f"claude-code-{SESSION}", rule)
    assert "in the morning" in asking.hook("start", source="startup")
    asking.remember(rule)
    assert "in the morning" not in asking.prompt()


def test_prompts_at_once_are_given_it_once(asking: Asking) -> None:
    asking.remember(FRIDAY)
    with asking.service() as service:
        agent, given = Agent(service, asking.project), list[str]()
        threads = [
            threading.Thread(target=lambda: given.append(agent.given("UserPromptSubmit", prompt="When do we deploy?")))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(given) == 4 and sum("never on Fridays" in each for each in given) == 1
        assert agent.faults() == []


@pytest.mark.parametrize("host", ["opencode", "openclaw"])
def test_plugins_send_messages_and_each_is_stored_once(agent: Agent, host: HostName) -> None:
    agent.host = host
    first = {"id": "m1", "role": "user", "content": FRIDAY}
    second = {"id": "m2", "role": "assistant", "content": [{"type": "text", "text": "Noted."}]}
    agent.hook("stop", messages=[first], transcript_path=None)
    agent.hook("stop", messages=[first, second, {"role": 7}, "x"], transcript_path=None)
    assert len(agent.logged()) == 2
    assert "1 are in no known shape" in agent.faults()[0]
    agent.service.pin(agent.workspace, f"{host}-{SESSION}", "Never delete the orders table.")
    assert "orders table" in agent.hook("pre_compact", messages=[])["additional_context"]


def test_a_host_on_another_machine_is_kept_by_its_events(agent: Agent) -> None:
    agent.says("user", "in a file that the server must not read")
    agent.hook("UserPromptSubmit", prompt=FRIDAY, workspace="shop", access="none")
    agent.hook("Stop", last_assistant_message="Noted.", workspace="shop", access="none")
    found = agent.service.messages("shop", f"claude-code-{SESSION}", "log").messages
    assert [message["content"] for message in found] == [FRIDAY, "Noted."]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(
    "call",
    [
        {},
        {"hook_event_name": "Explosion", "session_id": "s"},
        {"hook_event_name": "Stop"},
        {"hook_event_name": ["Stop"], "session_id": {}},
        {"hook_event_name": "Stop", "session_id": "../../etc", "cwd": "/no/such/folder"},
        {"hook_event_name": "stop", "session_id": "s", "cwd": 7, "transcript_path": "/etc/passwd\0"},
        {"hook_event_name": "SessionStart", "session_id": "s" * 5_000, "cwd": "relative"},
        {"hook_event_name": "UserPromptSubmit", "session_id": "\ud800", "cwd": "/", "prompt": "\ud800"},
        {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/tmp/\ud800", "prompt": "Who owns it?"},
        {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/a" * 50_000, "prompt": "Who owns it?"},
        {"hook_event_name": "Stop", "session_id": "s", "cwd": "/", "transcript_path": "/" + "x" * 100_000},
        {"hook_event_name": "Stop", "session_id": "s", "cwd": "/", "transcript_path": "/tmp/\ud800"},
    ],
)
def test_no_call_breaks_the_agent(agent: Agent, host: HostName, call: dict[str, object]) -> None:
    answered = handle_hook(agent.service, host, call)
    answered.afterwards(lambda: False)
    assert answered.answer == {}
    assert all(fault not in "\n".join(agent.faults()) for fault in ("defect", "Traceback"))


def test_a_fault_is_a_line_of_the_log_without_what_was_said(agent: Agent) -> None:
    agent.says("user", "My secret is hunter2.")
    agent.hook("Stop", transcript_path=str(agent.transcript.with_name("nothing.jsonl")))
    agent.hook("Stop", cwd="/no/such/folder", session_id="another")
    assert len(agent.faults()) == 2, agent.faults()
    first, second = agent.faults()
    assert "claude-code Stop: There is no transcript nothing.jsonl" in first
    assert "There is no folder '/no/such/folder'" in second
    assert "hunter2" not in first + second


def test_a_start_after_a_compaction_has_request_end_and_memories_whatever_the_length(agent: Agent) -> None:
    for number in range(60):
        agent.says("user", f"Please note for shelf {number}: it holds {number} pots and Kimk{number} owns it.")
        agent.says(
            "assistant", f"Shelf {number} is noted: {number} pots, owner Kimk{number}, checked at the east wall."
        )
    agent.says("user", "Now print the label of shelf 7, and keep it under two lines.")
    agent.service.remember(agent.workspace, "The label of shelf 7 is printed on the machine called Heron.")
    agent.hook("PreCompact", trigger="auto")
    summary = agent.service.compactions(agent.workspace, f"claude-code-{SESSION}").compactions[0]
    assert summary.applied
    given = agent.given("SessionStart", source="compact")
    assert "Now print the label of shelf 7" in given.partition("<current-request")[2].partition("</current-request>")[0]
    assert "Heron" in given.partition("[End of checkpoint]")[2] and host_chars(given) <= 10_000


def test_a_long_summary_gives_way_to_request_and_end(agent: Agent) -> None:
    texts = texts_in("en")
    for size in (0, 3_000, 9_300, 9_500, 9_700, 30_000):
        summary = "Shelf & <pot> is noted.\n" * (size // 24)
        parts = Checkpoint(summary=summary, request="Print the label.", request_seq=7, texts=texts)
        text = host_records._rendered_record([("Never on Fridays.", None)], parts, 9_800)
        assert host_chars(text) <= 9_800 and text.endswith(texts.checkpoint_end)
        assert "Print the label." in text and "Never on Fridays." in text
        assert size < 9_000 or host_chars(text) > 9_000


def test_a_summary_that_met_other_work_is_made_when_that_has_ended(agent: Agent) -> None:
    for number in range(60):
        agent.says("user", f"Please note for shelf {number}: it holds {number} pots and Kimk{number} owns it.")
        agent.says("assistant", f"Shelf {number} is noted: {number} pots, owner Kimk{number}, by the east wall.")
    call = {"session_id": SESSION, "transcript_path": str(agent.transcript), "cwd": str(agent.project)}
    session, held, release = f"claude-code-{SESSION}", threading.Event(), threading.Event()

    @agent.service.hooks.before_flush
    def wait(_: Intent) -> None:
        held.set()
        release.wait(60)

    other = threading.Thread(target=agent.hook, args=("Stop",))
    other.start()
    held.wait(60)
    answered = handle_hook(agent.service, "claude-code", {**call, "hook_event_name": "PreCompact"})
    answered.afterwards(lambda: True)
    assert agent.service.compactions(agent.workspace, session).compactions == []
    release.set()
    other.join()
    assert [each.applied for each in agent.service.compactions(agent.workspace, session).compactions] == [True]
    agent.hook("Stop")
    assert len(agent.service.compactions(agent.workspace, session).compactions) == 1


def test_memories_go_into_the_file_of_the_day_on_which_they_were_said(agent: Agent) -> None:
    agent.says("user", FRIDAY, timestamp="2026-01-17T10:00:00.000Z")
    agent.says("assistant", "Noted.", timestamp="2026-01-17T10:00:07.000Z")
    agent.hook("Stop")
    assert [file.path for file in agent.service.files(agent.workspace)] == ["memory/2026-01-17.md"]


def test_a_conversation_that_went_back_goes_on_in_a_branch(agent: Agent) -> None:
    agent.says("user", "Plan the shop.", uuid="u1", parentUuid=None)
    agent.says("assistant", "Which database?", uuid="a1", parentUuid="u1")
    agent.says("user", "Use MySQL for the shop.", uuid="u2", parentUuid="a1")
    agent.hook("Stop")
    agent.says("assistant", "MySQL it is.", uuid="a2", parentUuid="u2")
    agent.says("user", "Use PostgreSQL for the shop.", uuid="u3", parentUuid="a1")
    agent.hook("Stop")
    agent.says("assistant", "PostgreSQL it is.", uuid="a3", parentUuid="u3")
    agent.hook("Stop")
    assert agent.logged() == ["Plan the shop.", "Which database?", "Use MySQL for the shop."]
    [branch] = [
        each.session_id
        for each in agent.service.list_sessions(agent.workspace).sessions
        if each.session_id != f"claude-code-{SESSION}"
    ]
    said = [each["content"] for each in agent.service.messages(agent.workspace, branch, "log").messages]
    assert said == ["Plan the shop.", "Which database?", "Use PostgreSQL for the shop.", "PostgreSQL it is."]
    assert agent.faults() == []
    assert "MySQL" not in agent.given("SessionStart", source="compact").partition("<relevant_context>")[0]


def test_memories_of_what_is_in_view_are_not_given_again(agent: Agent) -> None:
    agent.says("user", "Question 2: who owns billing?")
    agent.says("assistant", "That is Kim, and the key lies in the blue cupboard.")
    agent.hook("Stop")
    agent.service.remember(agent.workspace, "Billing moves to the harbour office, 账单 in May.")
    seqs = agent.service.messages(agent.workspace, f"claude-code-{SESSION}", "log").seqs
    assert seqs is not None
    first, last = seqs
    fields = f"id=m1 session=claude-code-{SESSION} messages={first}-{last} origin=agent"
    path, text = "memory/2026-11-20.md", f"<!-- memory {fields} -->\n- Billing is owned by Kim since spring.\n"
    written = agent.service.put(agent.workspace, path, text, if_none_match=True)
    prompt = "Who owns billing, and where is it? 账单?"
    given = agent.given("UserPromptSubmit", prompt=prompt)
    assert "harbour office" in given and "by Kim" not in given
    other = Agent(agent.service, agent.project, session="other")
    assert "by Kim" in other.given("UserPromptSubmit", prompt=prompt)
    text = text.replace("origin=agent", "origin=agent hash=000000000000").replace("Kim", "Kimberley")
    agent.service.put(agent.workspace, path, text, if_match=written.etag)
    assert "Kimberley" in agent.given("UserPromptSubmit", prompt=prompt), "somebody has edited it"


def test_lines_of_a_newer_host_are_named_once(agent: Agent) -> None:
    for _ in range(2):
        agent.says("user", FRIDAY)
        with agent.transcript.open("a") as opened:
            opened.write('{"type": "dream", "message": {"role": "user", "content": "hm"}}\n')
        agent.hook("Stop")
    [fault] = agent.faults()
    assert "'dream'" in fault and agent.logged() == [FRIDAY, FRIDAY]
