"""What settings do, as a caller of the server sees it: those that no use case of its own shows."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from memory_service.llm.base import ChatMessage
from memory_service.runtime.models import Models
from memory_service.service import MemoryService
from memory_service.testing import ScriptedModel
from tests.memory_service.api.talking import begin, ok, say, talk
from tests.memory_service.rooms import calls, result, summary, turn
from tests.serving import RunningServer, W, serving, settings


def today() -> dt.date:
    return dt.datetime.now(dt.UTC).date()


@contextmanager
def served(home: Path, model: ScriptedModel | None = None, **values: object) -> Iterator[RunningServer]:
    models = Models(summaries=model, memories=model)
    given = settings(home, **{"embedding_model": "none", **values})
    with serving(MemoryService(given, embedder=HashEmbedder(), models=models)) as server:
        yield server


def remember(server: RunningServer, text: str, day: dt.date | None = None) -> None:
    ok(server.http.post(f"{W}/memories", json={"text": text, "date": str(day or today())}), 201)


@pytest.mark.parametrize(("weight", "half_life_days"), [(0.3, 30), (2.0, 30), (2.0, 10), (0.0, 30)])
def test_recency_weighs_as_it_is_set(tmp_path: Path, weight: float, half_life_days: float) -> None:
    ranking = {"recency_weight": weight, "half_life_days": half_life_days}
    with served(tmp_path, ranking=ranking) as server:
        day = today()
        before = day - dt.timedelta(days=30)
        remember(server, "The door code of the lab is 4711. 门禁密码。", day)
        remember(server, "The door code of the office is 4712. 门禁密码。", before)
        found = ok(server.http.post(f"{W}/search", json={"query": "door code 密码", "explain": True}))["results"]
        fresh = {each["date"]: each["signals"]["recency"] for each in found}
    # A day may have ended between the write and the search.
    expected = [
        {str(note): weight * 0.5 ** ((asked - note).days / half_life_days) for note in (day, before)}
        for asked in (day, today())
    ]
    assert any(fresh == pytest.approx(values, abs=1e-5) for values in expected)


@pytest.mark.parametrize(("mmr_lambda", "second"), [(1.0, "door"), (0.1, "deploy")])
def test_results_that_repeat_others_move_down(tmp_path: Path, mmr_lambda: float, second: str) -> None:
    with served(tmp_path, ranking={"mmr_lambda": mmr_lambda}) as server:
        remember(server, "The door code of the lab is written on the blue card.")
        remember(server, "The door code of the lab is written on the blue card now.")
        remember(server, "A deploy needs a code review.")
        found = ok(server.http.post(f"{W}/search", json={"query": "door code lab", "limit": 2}))["results"]
    assert [second in each["text"] for each in found] == [second == "door", True]


@pytest.mark.parametrize(("receipt_days", "stays"), [(30, False), (100, True)])
def test_receipts_are_kept_for_so_many_days(tmp_path: Path, receipt_days: int, stays: bool) -> None:
    with served(tmp_path, receipt_days=receipt_days) as server:
        remember(server, "The backup runs at noon.")
        old = tmp_path / "default" / "receipts" / f"{today() - dt.timedelta(days=50)}.jsonl"
        old.parent.mkdir()
        old.write_text("{}\n", "utf-8")
        ok(server.http.post(f"{W}/context", json={"query": "When does the backup run?"}))
    assert old.exists() is stays


@pytest.mark.parametrize(("pruning", "pruned"), [({}, True), ({"allow": ["web_*"]}, False), ({"deny": ["*"]}, False)])
def test_only_results_of_some_tools_are_pruned(tmp_path: Path, pruning: dict[str, object], pruned: bool) -> None:
    numbers: dict[str, float] = {"pruning_soft_trim_chars": 1_000, "pruning_head_chars": 300, "pruning_tail_chars": 200}
    numbers |= {"pruning_keep_last_assistants": 1, "pruning_soft_trim_ratio": 0.01}
    own = {"mode": "cache_ttl", "ttl_seconds": 0, **pruning}
    with served(tmp_path, compaction={"preset": "openclaw", "overrides": numbers}, pruning=own) as server:
        begin(server, context_window=32_000)
        say(server, turn(0, 10))
        for number in range(4):
            say(server, [calls(f"c{number}"), result(f"c{number}", f"{number} 结果 " * 1_200)])
        say(server, turn(9, 10))
        made = ok(server.http.post(f"{W}/sessions/support-42/context", json={"recall": "never"}))
    assert bool(made["compaction"]) is pruned


@pytest.mark.parametrize("most", [1, 2])
def test_so_many_sessions_are_compacted_at_once(tmp_path: Path, most: int) -> None:
    working, peak, changed = [0], [0], threading.Condition()

    def slow(_: Sequence[ChatMessage]) -> str:
        with changed:
            working[0] += 1
            peak[0] = max(peak[0], working[0])
            changed.notify_all()
            changed.wait_for(lambda: peak[0] >= most, 10)
        time.sleep(0.2)  # for one that should wait, and does not
        with changed:
            working[0] -= 1
        return summary()

    own = {"max_concurrent": most, "instructions": "Mind every 订单号."}
    model = ScriptedModel(*[slow] * 30)
    with served(tmp_path, model, compaction=own, flush={"mode": "off"}) as server:
        names = [f"s{number}" for number in range(3)]
        for name in names:
            begin(server, name, context_window=32_000)
            say(server, talk(40), f"{W}/sessions/{name}")

        def compact(name: str) -> None:
            ok(server.http.post(f"{W}/sessions/{name}/compact", json={"force": True, "target_tokens": 2_000}))

        threads = [threading.Thread(target=compact, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert peak[0] == most
    assert all("Mind every 订单号." in str(request) for request in model.requests)


def test_small_windows_are_warned_about_and_smaller_ones_refused(tmp_path: Path) -> None:
    limits = {"refuse_below_tokens": 9_000, "warn_below_tokens": 20_000}
    with served(tmp_path, compaction=limits) as server:
        problems = {}
        for window in (8_000, 16_000, 32_000):
            made = server.http.post(f"{W}/sessions", json={"session_id": f"w{window}", "context_window": window})
            problems[window] = made.json()["context_window"]["problem"] if made.status_code == 201 else "refused"
    assert problems[16_000] == "warn" and problems[32_000] == "" and problems[8_000] in ("refuse", "refused")


@pytest.mark.parametrize(("soft_tokens", "flushed"), [(0, False), (20_000, True)])
def test_a_flush_is_due_so_many_tokens_before_a_compaction(tmp_path: Path, soft_tokens: int, flushed: bool) -> None:
    with served(tmp_path, flush={"mode": "extractive", "soft_tokens": soft_tokens}) as server:
        begin(server, context_window=32_000)
        say(server, talk(100))
        made = ok(server.http.post(f"{W}/sessions/support-42/context", json={"recall": "never"}))
    assert (made["flush"] is not None) is flushed and made["compaction"] is None
