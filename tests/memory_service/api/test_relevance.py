"""Relevance at the doors: it stands in results and receipts, and what has too little of it stays out and is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from memory_service import MemoryClient
from memory_service.errors import InvalidRequest
from memory_service.schemas.compaction import SessionContextRequest
from memory_service.schemas.sessions import NewSession
from memory_service.service import MemoryService
from tests.serving import RunningServer, W, serving, settings

NOTES = (
    "kiln, Skutt: The Skutt kiln fires at cone 6 on Fridays.",
    "dues: Members pay 45 euros a month; students pay 30.",
    "wheel number three: Wheel three needs a new belt, type A-42.",
    "opening hours: Open Tuesday to Saturday from ten to eight.",
    "陶艺课：初学者的课一共八个晚上，最多九个人。",
)
HEARD = "The heron flew over the pond at noon."
ASKED_OF_IT = "What flew over the pond at noon?"
ANSWERED, UNANSWERED = "What do students pay a month?", "Where was Napoleon born?"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    recall = {"min_relevance": 0.0038, "min_gain": 0.003}
    with serving(MemoryService(settings(tmp_path_factory.mktemp("home"), recall=recall))) as running:
        text = "".join(f"- {note}\n" for note in NOTES)
        made = running.http.put(f"{W}/memories/MEMORY.md", json={"text": text}, headers={"If-None-Match": "*"})
        assert made.is_success
        running.http.post(f"{W}/sessions", json={"session_id": "talk"})
        yield running


def answer(server: RunningServer, path: str, **body: object) -> dict[str, Any]:
    got = server.http.post(f"{W}/{path}", json=body)
    assert got.is_success, got.text
    return dict(got.json())


def test_results_below_the_least_relevance_stay_out(server: RunningServer) -> None:
    found = answer(server, "search", query=ANSWERED)
    relevances = [result["relevance"] for result in found["results"]]
    assert found["degraded"] == [] and all(0 <= each <= 1 for each in relevances)
    cut = sorted(relevances)[-2]
    some = answer(server, "search", query=ANSWERED, min_relevance=cut)
    assert [result["relevance"] for result in some["results"]] == [each for each in relevances if each >= cut]
    assert answer(server, "search", query=UNANSWERED, min_relevance=0.5)["results"] == []
    assert answer(server, "search", query=UNANSWERED)["results"] != []


def test_what_stays_out_takes_no_place(server: RunningServer) -> None:
    # The order is that of the scores: of these, not all that are relevant come before all that are not.
    found = answer(server, "search", query=ANSWERED, limit=len(NOTES))["results"]
    least = max(after["relevance"] for before, after in pairwise(found) if after["relevance"] > before["relevance"])
    wanted = [result["citation"] for result in found if result["relevance"] >= least]
    some = answer(server, "search", query=ANSWERED, limit=len(wanted), min_relevance=least)
    assert [result["citation"] for result in some["results"]] == wanted
    one = answer(server, "search", query=ANSWERED, limit=1, min_relevance=least)
    assert [result["citation"] for result in one["results"]] == wanted[:1]


def test_a_least_score_is_asked_of_all_kinds(server: RunningServer) -> None:
    server.http.post(f"{W}/sessions/chat/messages", json={"messages": [{"role": "user", "content": HEARD}]})
    found = answer(server, "search", query=ASKED_OF_IT, order="memory_first", limit=20)["results"]
    assert found[-1]["text"] == HEARD
    best = answer(server, "search", query=ASKED_OF_IT, order="memory_first", limit=1, min_score=found[-1]["score"])
    assert [result["text"] for result in best["results"]] == [HEARD]
    server.http.delete(f"{W}/sessions/chat")


@pytest.mark.parametrize(("question", "told"), [(ANSWERED, "students pay 30"), ("陶艺课最多几个人？", "最多九个人")])
def test_a_block_holds_what_is_relevant_and_the_receipt_names_the_rest(
    server: RunningServer, question: str, told: str
) -> None:
    made = answer(server, "context", query=question, min_relevance=0.3)
    receipt = made["receipt"]
    assert told in made["block"] and all(item["relevance"] >= 0.3 for item in receipt["included"])
    assert receipt["omitted"] and len(receipt["included"]) + receipt["omitted_count"] == len(NOTES)
    for item in receipt["omitted"]:
        assert item["reason"].startswith("relevance .") and item["reason"].endswith(" < .30")
    assert len(answer(server, "context", query=question)["receipt"]["included"]) == len(NOTES)
    kept = server.http.get(f"{W}/receipts/{receipt['receipt_id']}").json()
    assert kept["omitted"] == receipt["omitted"]


def test_an_empty_block_costs_nothing_and_says_why(server: RunningServer) -> None:
    made = answer(server, "context", query=UNANSWERED, min_relevance=0.5, system_prompt="Be kind.")
    assert (made["block"], made["tokens"], made["system_prompt"]) == ("", 0, "Be kind.")
    assert made["receipt"]["reason"].startswith("nothing relevant: the best of ")
    assert made["receipt"]["reason"].endswith(" < .50")


def test_packing_stops_where_nothing_pays(server: RunningServer) -> None:
    whole, small, none = (answer(server, "context", query=ANSWERED, min_gain=gain) for gain in (0, 0.3, 100))
    assert 0 < small["tokens"] < whole["tokens"] and "students pay 30" in small["block"]
    assert all(
        re.fullmatch(r"gain: \.\d+ < \.30 for 100 tokens", item["reason"]) for item in small["receipt"]["omitted"]
    )
    assert (none["tokens"], none["receipt"]["included"]) == (0, [])
    assert none["receipt"]["reason"].startswith("nothing worth its tokens: ")


def test_a_session_has_its_own_least_relevance(server: RunningServer) -> None:
    path = "sessions/talk/context"
    own = answer(server, path, query=UNANSWERED)
    assert own["tokens"]["memory"] == 0 and own["receipt"]["reason"]
    assert answer(server, path, query=ANSWERED)["tokens"]["memory"] > 0
    strict = answer(server, path, query=ANSWERED, min_relevance=1.0)
    assert strict["tokens"]["memory"] == 0 and strict["receipt"]["omitted"]


@pytest.mark.parametrize("question", [ANSWERED, "陶艺课最多几个人？"])
def test_a_session_is_silent_or_recalls_more_than_the_best(tmp_path: Path, question: str) -> None:
    def recalled(least: float, asked: float | None = None) -> tuple[str, list[float]]:
        recall = {"min_relevance": least, "min_gain": 0}
        with MemoryService(settings(tmp_path, recall=recall)) as service:
            made = service.session_context(
                "default", "talk", SessionContextRequest(query=question, min_relevance=asked)
            )
        assert made.receipt is not None
        return made.receipt.reason, [item.relevance or 0.0 for item in made.receipt.included]

    with MemoryService(settings(tmp_path)) as service:
        for note in (*NOTES, "陶艺课的学费一共九百元。"):
            service.remember("default", note)
        service.create_session("default", NewSession(session_id="talk"))
    reason, found = recalled(0)
    best, second = sorted(found)[:-3:-1]
    between = (best + second) / 2
    # A strong second piece of evidence stays, and so does all else that pays for its tokens.
    assert (reason, recalled(between)) == ("", ("", found))
    # Who asks for the relevant ones alone gets those.
    assert recalled(0, between) == ("", [best])
    reason, found = recalled(min(1.0, best + 0.0001))
    assert reason.startswith("nothing relevant: the best of ") and found == []


@pytest.mark.parametrize("path", ["search", "context", "sessions/talk/context"])
@pytest.mark.parametrize("least", [-0.01, 1.01, "much", True])
def test_what_is_no_probability_is_refused(server: RunningServer, path: str, least: object) -> None:
    got = server.http.post(f"{W}/{path}", json={"query": "x", "min_relevance": least})
    assert got.status_code == 422 and "min_relevance" in got.json()["error"]["message"]


def test_the_client_has_it_all(server: RunningServer) -> None:
    with MemoryClient(server.url) as memory:
        assert memory.search(ANSWERED, min_relevance=0.3).results[0].relevance
        assert memory.context(ANSWERED, min_relevance=1.0, min_gain=0.1).tokens == 0
        assert memory.session("talk").context(ANSWERED, min_relevance=1.0).tokens.memory == 0
        with pytest.raises(InvalidRequest, match="min_relevance"):
            memory.search(ANSWERED, min_relevance=2.0)


def test_another_ranking_leaves_nothing_out_and_says_so(tmp_path: Path) -> None:
    with MemoryService(settings(tmp_path, ranking={"fusion": "rrf"})) as service:
        service.remember("default", NOTES[0])
        found = service.search("default", UNANSWERED, min_relevance=0.9)
        made = service.context("default", UNANSWERED, min_relevance=0.9)
        with pytest.raises(InvalidRequest, match="min_relevance"):
            service.context("default", UNANSWERED, min_relevance=1.5)
        with pytest.raises(InvalidRequest, match="min_relevance"):
            service.search("default", UNANSWERED, min_relevance=-1)
    assert [result.relevance for result in found.results] == [None]
    assert made.block and made.receipt.included[0].relevance is None
    for degraded in (found.degraded, made.degraded):
        assert degraded[0].startswith("relevance: ") and "ranking.fusion is rrf" in degraded[0]
