"""A fact that was flushed and what was said of it in the session stand in one prompt once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serving import RunningServer

SAID = [
    ("user", "We decided: deploys go out on Tuesdays at 10:00, never on Fridays.", "When do deploys go out?"),
    ("user", "I like green tea.", "What do I like?"),
    ("user", "我住在上海。以后快递都放在门卫室。", "我住在哪里？快递放在哪里？"),
    ("user", "备份每天凌晨三点运行，由林负责。", "备份几点运行？谁负责？"),
    ("user", "Yesterday we moved the staging database to port 5433.", "Which port has the staging database?"),
]


@pytest.mark.parametrize(("role", "text", "question"), SAID)
@pytest.mark.parametrize("of", ["workspace", "session"])
def test_a_prompt_says_it_once(running_server: RunningServer, role: str, text: str, question: str, of: str) -> None:
    http = running_server.http
    talk = [{"role": "user", "content": "hello"}, {"role": role, "content": text}]
    http.post("/v1/workspaces/w/sessions/one/messages", json={"messages": talk}).raise_for_status()
    (memory,) = http.post("/v1/workspaces/w/sessions/one/flush", json={}).json()["written"]
    assert memory["text"].endswith(text) and memory["text"] != text
    given: Any
    if of == "workspace":
        given = http.post("/v1/workspaces/w/context", json={"query": question}).json()
    else:
        other = [{"role": "user", "content": "hi"}]
        http.post("/v1/workspaces/w/sessions/two/messages", json={"messages": other}).raise_for_status()
        given = http.post("/v1/workspaces/w/sessions/two/context", json={"query": question}).json()
        given["block"] = "\n".join(str(each["content"]) for each in given["messages"])
    assert given["block"].count(text) == 1 and f'path="{memory["path"]}"' in given["block"]
    [reason] = [item["reason"] for item in given["receipt"]["omitted"] if item["reason"].startswith("repeats")]
    [line] = [item["start_line"] for item in given["receipt"]["included"] if item["path"] == memory["path"]]
    assert reason == f"repeats {memory['path']}#L{line}"
