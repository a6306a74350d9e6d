"""A fact that contradicts an earlier one: both are stored, and the later one stands behind the earlier one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.runtime.models import Models
from memory_service.service import MemoryService
from memory_service.testing import ScriptedModel
from tests.memory_service.api.talking import ok, say, talking
from tests.serving import RunningServer, serving, settings

NAMES = count()
PAIRS = (
    ("Never ship live plants over the weekend to Austria.", "Always ship live plants over the weekend to Austria."),
    ("Mara prefers the blue pots for the window.", "Mara prefers the green pots for the window."),
    ("We decided to store the orders in Postgres.", "We decided to store the orders in MySQL."),
    ("The staging server listens on port 8443.", "The staging server listens on port 9443."),
    ("We decided to move the archive from Linz to Graz.", "We decided to move the archive from Graz to Linz."),
    ("I prefer deliveries on Tuesday mornings.", "I prefer deliveries on Thursday mornings."),
    ("我们决定用红色包装盒发货。", "我们决定用蓝色包装盒发货。"),
    ("周五必须备份订单数据库。", "周五不必备份订单数据库。"),
    ("我们决定把仓库从杭州搬到苏州。", "我们决定把仓库从苏州搬到杭州。"),
    ("我喜欢周二上午收货。", "我喜欢周四上午收货。"),
)
FILLER = (
    ("Which pump did we look at?", "The small one from the catalogue, with the long hose."),
    ("今天的报表看过了吗？", "看过了，数字和上周差不多。"),
    ("Could you draft a reply to the nursery?", "Here is a draft that thanks them for the seedlings."),
)
Json = dict[str, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with talking(tmp_path_factory.mktemp("contradictions")) as running:
        yield running


def user(text: str) -> Json:
    return {"role": "user", "content": text}


LONG = [user("Tell me about seedlings. " + "word " * 300), {"role": "assistant", "content": "Water them. " * 90}]


def conversation(older: str, newer: str, messages: int, *more: str) -> list[Json]:
    """A talk of so many messages, in which facts are told one after the other."""
    told = [older, newer, *more]
    said: list[Json] = []
    for turn in range(messages // 2):
        asked, answer = FILLER[turn % len(FILLER)]
        place, due = divmod(turn * len(told), messages // 2)
        said.append(user(told[place] if due < len(told) else asked))
        said.append({"role": "assistant", "content": answer})
    assert [each["content"] for each in said if each["content"] in told] == told
    return said


def begun(server: RunningServer, messages: list[Json]) -> tuple[str, str]:
    """A workspace of its own with a session in it; the paths of both."""
    workspace = f"/v1/workspaces/w{next(NAMES)}"
    session = f"{workspace}/sessions/talk"
    ok(server.http.post(f"{workspace}/sessions", json={"session_id": "talk", "context_window": 32_000}), 201)
    say(server, messages, session)
    return workspace, session


def stored(server: RunningServer, workspace: str, path: str) -> str:
    return server.http.get(f"{workspace}/memories/{path}").text


def bare(text: str) -> str:
    return text.rstrip(".。")


def says_both(text: str, older: str, newer: str) -> bool:
    """True if the newer fact stands with what it was before, or behind the older one."""
    before, after = text.find(bare(older)), text.find(bare(newer))
    corrected = re.search(r"\(previously: |（此前：", text[after:before]) if after < before else None
    return min(before, after) >= 0 and (before < after or corrected is not None)


@pytest.mark.parametrize("messages", [4, 24])
@pytest.mark.parametrize(("older", "newer"), PAIRS)
def test_both_are_stored_and_it_is_clear_which_is_the_newer_one(
    server: RunningServer, older: str, newer: str, messages: int
) -> None:
    workspace, session = begun(server, conversation(older, newer, messages))
    made = ok(server.http.post(f"{session}/flush"))
    assert says_both("\n".join(each["text"] for each in made["written"]), older, newer) and made["duplicates"] == 0, (
        made
    )
    assert says_both(stored(server, workspace, made["path"]), older, newer)


@pytest.mark.parametrize(("older", "newer"), PAIRS)
def test_search_and_context_show_both(server: RunningServer, older: str, newer: str) -> None:
    workspace, session = begun(server, conversation(older, newer, 24))
    ok(server.http.post(f"{session}/flush"))
    found = ok(server.http.post(f"{workspace}/search", json={"query": older, "sources": ["memory"]}))
    text = "\n".join(hit["text"] for hit in found["results"])
    assert bare(older) in text and bare(newer) in text
    block = ok(server.http.post(f"{workspace}/context", json={"query": older, "budget_tokens": 600}))["block"]
    assert says_both(block, older, newer), block


@pytest.mark.parametrize(("older", "newer"), PAIRS)
def test_what_the_view_says_does_not_hide_the_newer_one(server: RunningServer, older: str, newer: str) -> None:
    workspace, session = begun(server, [user(older), {"role": "assistant", "content": "Noted."}, user(bare(older))])
    ok(server.http.post(f"{workspace}/memories", json={"text": newer}), 201)
    ok(server.http.post(f"{workspace}/memories", json={"text": older}), 201)
    made = ok(server.http.post(f"{session}/context", json={"recall": "always"}))
    block = "".join(text for each in made["messages"] if "<relevant_context>" in (text := str(each["content"])))
    assert bare(newer) in block
    assert bare(older) not in block, "the view says it already"


@pytest.mark.parametrize(("older", "newer"), PAIRS)
def test_a_summary_by_rules_keeps_the_newer_one(server: RunningServer, older: str, newer: str) -> None:
    _, session = begun(server, conversation(older, newer, 4) + LONG * 8)
    summary = ok(server.http.post(f"{session}/compact", json={"preset": "turns", "force": True}))["summary"]
    assert bare(newer) in summary
    assert bare(older) not in summary or summary.index(bare(older)) < summary.index(bare(newer))


@pytest.mark.parametrize(("older", "newer"), [PAIRS[1], PAIRS[6]])
def test_what_is_said_again_stands_behind_what_it_takes_back(server: RunningServer, older: str, newer: str) -> None:
    workspace, session = begun(server, conversation(older, newer, 24, bare(older) + " "))
    made = ok(server.http.post(f"{session}/flush"))
    page = stored(server, workspace, made["path"])
    last = page.rindex(bare(older))
    # It is the value: behind what it takes back, or in front of "previously".
    assert (last > page.find(bare(newer)) or says_both(page, newer, older)) and made["duplicates"] == 0, page


@pytest.mark.parametrize(("older", "newer"), [PAIRS[0], PAIRS[2], PAIRS[6]])
def test_a_summary_by_rules_ends_with_what_holds(server: RunningServer, older: str, newer: str) -> None:
    _, session = begun(server, conversation(older, newer, 6, older + " ") + LONG * 8)
    summary = ok(server.http.post(f"{session}/compact", json={"preset": "turns", "force": True}))["summary"]
    assert summary.rindex(bare(older)) > summary.find(bare(newer))


@pytest.mark.parametrize(("older", "newer"), PAIRS)
def test_an_agents_notes_keep_both(server: RunningServer, older: str, newer: str) -> None:
    _, session = begun(server, conversation(older, newer, 4))
    reply = f"- {older}\n- {newer}\n- The user said that {older}\n"
    made = ok(server.http.post(f"{session}/flush", json={"reply": reply}))
    assert len(made["written"]) == 2 and bare(newer) in {bare(each["text"]) for each in made["written"]}


@pytest.mark.parametrize(("older", "newer"), PAIRS)
def test_a_models_notes_keep_both(tmp_path: Path, older: str, newer: str) -> None:
    model = ScriptedModel(f"- {older} (log:2)\n- {newer} (log:4)")
    service = MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder(), models=Models(memories=model))
    with serving(service) as server:
        _, session = begun(server, conversation(older, newer, 4))
        made = ok(server.http.post(f"{session}/flush"))
    assert made["method"] == "model"
    assert [bare(each["text"]) for each in made["written"]] == [bare(older), bare(newer)]


@pytest.mark.parametrize(("older", "newer"), PAIRS)
def test_a_memory_is_a_duplicate_of_the_same_text_alone(server: RunningServer, older: str, newer: str) -> None:
    workspace, session = begun(server, conversation(newer, older, 4))
    first = ok(server.http.post(f"{workspace}/memories", json={"text": older}), 201)
    second = ok(server.http.post(f"{workspace}/memories", json={"text": newer}), 201)
    assert first["memory_id"] != second["memory_id"]
    made = ok(server.http.post(f"{session}/flush", json={"reply": f"- {newer.upper()}"}))
    assert (made["written"], made["duplicates"]) == ([], 1)
