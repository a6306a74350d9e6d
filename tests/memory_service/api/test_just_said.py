"""Messages that were appended a moment ago: found by the next search of their workspace, or named."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

from indexer.testing import HashEmbedder
from indexer.types import Vectors
from memory_service.memories import indexing, long_term
from memory_service.service import MemoryService
from tests.serving import RunningServer, W, serving, settings
from tests.waiting import until


def said(server: RunningServer, *texts: str, session: str = "talk") -> None:
    messages = [{"role": "user", "content": text} for text in texts]
    answer = server.http.post(f"{W}/sessions/{session}/messages", json={"messages": messages})
    assert answer.is_success, answer.text


def asked(server: RunningServer, query: str, **more: object) -> dict[str, Any]:
    found: dict[str, Any] = server.http.post(f"{W}/search", json={"query": query, **more}).json()
    return found


def test_what_was_just_said_is_found_at_once(running_server: RunningServer) -> None:
    for number in range(12):
        text, query = (
            (f"The locker {number}x has the code ab{number}.", f"code of locker {number}x")
            if number % 2
            else (f"第{number}号柜子的密码在袋鼠{number}那里。", f"袋鼠{number}")
        )
        said(running_server, text, session=f"talk{number % 3}")
        found = asked(running_server, query)
        assert found["results"][0]["text"] == text, number
        assert found["degraded"] == []
    block = running_server.http.post(f"{W}/context", json={"query": "locker 11x"}).json()
    assert "ab11" in block["block"] and block["degraded"] == []


class Patient(HashEmbedder):
    """Waits for the test before it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go = threading.Event()
        self.asked = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.asked.set()
        assert self.may_go.wait(60)
        return super().embed_documents(texts)


@pytest.fixture
def slow_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[RunningServer, Patient]]:
    monkeypatch.setattr(long_term, "_PATIENCE_SECONDS", 0.2)
    model = Patient()
    with serving(MemoryService(settings(tmp_path), embedder=model)) as server:
        yield server, model
        model.may_go.set()


def test_what_takes_longer_is_named_and_nobody_waits_twice(slow_server: tuple[RunningServer, Patient]) -> None:
    server, model = slow_server
    model.may_go.set()
    server.http.post(f"{W}/memories", json={"text": "The harbour opens at six."})
    model.may_go.clear()
    said(server, "The wombat digs.")
    assert asked(server, "wombat", mode="vector")["degraded"] == [indexing.BEING_SAID]
    assert asked(server, "wombat")["degraded"] == [indexing.FOUND_BY_WORDS]
    assert min(asked(server, "wombat")["took_ms"] for _ in range(20)) < 150, "it has been waited for"
    assert asked(server, "harbour", sources=["memory"])["degraded"] == [], "no session was asked for"
    model.may_go.set()
    until(lambda: asked(server, "wombat")["degraded"] == [])
    found = asked(server, "wombat")
    assert (found["results"][0]["text"], found["degraded"]) == ("The wombat digs.", [])


def test_what_takes_longer_is_found_by_its_words(slow_server: tuple[RunningServer, Patient]) -> None:
    server, model = slow_server
    model.may_go.set()
    server.http.post(f"{W}/memories", json={"text": "The wombat sleeps at the harbour."})
    said(server, "The harbour opens at six.", "The quokka eats.")
    assert asked(server, "harbour")["degraded"] == []
    model.may_go.clear()
    said(server, "The wombat digs.", "Nothing else.", session="talk")
    said(server, "袋熊在挖洞。", session="other")
    for query, text in (("wombat digs", "The wombat digs."), ("袋熊", "袋熊在挖洞。")):
        found = asked(server, query, explain=True)
        assert (found["results"][0]["text"], found["degraded"]) == (text, [indexing.FOUND_BY_WORDS])
        scores = [hit["score"] for hit in found["results"]]
        assert scores == sorted(scores, reverse=True)
        assert [hit["text"] for hit in found["results"]].count(text) == 1
    found = asked(server, "wombat digs", limit=2)
    assert {hit["source"] for hit in found["results"]} == {"memory", "sessions"} and len(found["results"]) == 2
    first = asked(server, "wombat digs", order="memory_first")["results"]
    assert [hit["source"] for hit in first] == sorted(hit["source"] for hit in first)
    digging = {"The wombat digs.", "袋熊在挖洞。"}
    for kept, left in (
        ({"sources": ["memory"]}, set()),
        ({"path_prefix": "sessions/other"}, {"袋熊在挖洞。"}),
        ({"since": "2999-01-01"}, set()),
        ({"until": "2000-01-01"}, set()),
        ({"since": "2000-01-01"}, digging),
    ):
        assert {hit["text"] for hit in asked(server, "wombat digs 袋熊", **kept)["results"]} & digging == left, kept
    block = server.http.post(f"{W}/context", json={"query": "wombat digs"}).json()
    assert "The wombat digs." in block["block"] and indexing.FOUND_BY_WORDS in block["degraded"]


def test_of_several_searches_at_once_none_waits_for_what_was_just_said(
    slow_server: tuple[RunningServer, Patient], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, model = slow_server
    monkeypatch.setattr(long_term, "_PATIENCE_SECONDS", 5.0)
    model.may_go.set()
    said(server, "The harbour opens at six.")
    assert asked(server, "harbour")["degraded"] == []
    model.may_go.clear()
    model.asked.clear()
    said(server, "The wombat digs.", "袋熊在挖洞。")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(asked, server, "harbour")
        assert model.asked.wait(60)
        for query, text in (("wombat digs", "The wombat digs."), ("袋熊", "袋熊在挖洞。")):
            found = asked(server, query)
            assert (found["results"][0]["text"], found["degraded"]) == (text, [indexing.FOUND_BY_WORDS])
            assert not first.done(), "the model answers nobody yet"
        model.may_go.set()
        assert first.result()["degraded"] == []
    said(server, "The quokka eats.")
    assert asked(server, "quokka")["degraded"] == [indexing.FOUND_BY_WORDS], "others have just searched too"
    assert asked(server, "quokka", mode="vector")["degraded"] == [], "it has no words to be found by"
    time.sleep(indexing._CROWD_SECONDS)
    said(server, "The dingo sings.")
    found = asked(server, "dingo")
    assert (found["results"][0]["text"], found["degraded"]) == ("The dingo sings.", [])


def test_what_another_process_appended_is_found(tmp_path: Path) -> None:
    with serving(MemoryService(settings(tmp_path), embedder=HashEmbedder())) as server:
        said(server, "The wombat digs.")
        with MemoryService(settings(tmp_path), embedder=HashEmbedder()) as other:
            assert other.search("default", "wombat").results[0].text == "The wombat digs."


def test_erasing_a_file_or_a_session_tells_where_it_looked(running_server: RunningServer) -> None:
    http, checked = running_server.http, ["files", "rows", "full text", "vectors"]
    http.put(
        f"{W}/memories/memory/keys.md",
        json={"text": "- The key hangs behind the door.\n- 备用钥匙在花盆下面。\n"},
        headers={"If-None-Match": "*"},
    )
    said(running_server, "The wombat digs.")
    said(running_server, "袋熊在挖洞。")
    assert asked(running_server, "wombat")["results"][0]["text"] == "The wombat digs."
    for place, passages in (("memories/memory/keys.md", 2), ("sessions/talk", 2)):
        gone = http.delete(f"{W}/{place}").json()
        del gone["erased"]["pending"]
        assert (gone["erased"], gone["degraded"]) == ({"passages": passages, "checked": checked}, []), place
    assert asked(running_server, "wombat key 袋熊 钥匙")["results"] == []


def test_what_stays_somewhere_is_not_called_gone(running_server: RunningServer) -> None:
    made = running_server.http.post(f"{W}/memories", json={"text": "The spare key is under the pot."}).json()
    # As if the removal met other terms than were stored.
    database = apsw.Connection(str(running_server.home / "default" / "index.sqlite"))
    database.execute("INSERT INTO terms (rowid, body) SELECT key, 'pot pot spare' FROM passages")
    database.close()
    gone = running_server.http.delete(f"{W}/entries/{made['memory_id']}").json()
    assert gone["erased"]["checked"] == ["files", "rows", "vectors"]
    assert "still in full text" in gone["degraded"][0]


def test_forgetting_tells_where_it_looked(running_server: RunningServer) -> None:
    made = running_server.http.post(f"{W}/memories", json={"text": "备用钥匙 the spare key is under the pot."}).json()
    running_server.http.post(f"{W}/memories", json={"text": "Bins go out on Mondays."})
    gone = running_server.http.delete(f"{W}/entries/{made['memory_id']}").json()
    del gone["erased"]["pending"]
    assert gone["erased"] == {"passages": 1, "checked": ["files", "rows", "full text", "vectors"]}
    assert gone["degraded"] == [] and asked(running_server, "spare key pot")["results"][0]["text"].startswith("Bins")
