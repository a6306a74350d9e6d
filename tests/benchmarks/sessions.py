"""The speed and the size of sessions, against what the disk and the machine do in the same run.

`python -m tests.benchmarks.sessions [--messages 2000] [--rounds 20]`

- `append`: one message appended through the service, beside a bare append and fsync of the same bytes.
- `plan`: a compaction planned without a model, by the whole session.
- `context`: a prompt with recall, on a session that was compacted before, once the index has caught up; beside it,
  without recall.
- `search`: a search of the workspace with nothing new, right after an append, which waits until that is indexed, and
  how many times as long as the first the second takes.
- `growth`: the log after so many compactions, beside the messages themselves, and the view after each.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from memory_service.config import Settings
from memory_service.runtime.base import CompactionCall
from memory_service.schemas.compaction import CompactRequest, SessionContextRequest
from memory_service.service import MemoryService
from memory_service.service.short_term import WorkspaceSessions

_TOPICS = ("invoice", "greenhouse", "courier", "website", "supplier", "refund", "newsletter", "pots", "watering")


def messages(count: int, first: int = 0) -> list[dict[str, object]]:
    """Turns of an agent's work: a request, two tool calls with results, a decision, small talk."""
    chance = random.Random(first)
    made: list[dict[str, object]] = []
    for turn in range(first, first + count):
        topic, kind = chance.choice(_TOPICS), turn % 8
        if kind == 0:
            text = f"Please look at the {topic} of order ORD-{4000 + turn} and keep it below {turn % 90 + 5} EUR."
            made.append({"role": "user", "content": text})
        elif kind in (1, 3):
            arguments = json.dumps({"command": f"grep -n {topic} notes/{topic}-{turn}.md"})
            call = {"id": f"call{turn}", "type": "function", "function": {"name": "bash", "arguments": arguments}}
            made.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif kind in (2, 4):
            lines = "\n".join(f"{n}: the {topic} line {chance.randrange(10**6)} of the file" for n in range(25))
            made.append({"role": "tool", "tool_call_id": f"call{turn - 1}", "content": f"{lines}\nexit code 0"})
        elif kind == 5:
            text = (
                f"Done: the {topic} of ORD-{4000 + turn - 5} is settled. We decided on way {turn} since it is quicker."
            )
            made.append({"role": "assistant", "content": text})
        elif kind == 6:
            made.append({"role": "user", "content": f"Good. And what about the {topic}? " + "It was a long day. " * 8})
        else:
            made.append({"role": "assistant", "content": f"The {topic} can wait. " + "There is time for it. " * 10})
    return made


def _times(work: Callable[[int], object], count: int) -> dict[str, float]:
    times = []
    for number in range(count):
        started = time.perf_counter()
        work(number)
        times.append((time.perf_counter() - started) * 1000)
    return {"p50_ms": round(statistics.median(times), 2), "p95_ms": round(sorted(times)[int(count * 0.95)], 2)}


def _bare(folder: Path, raw: bytes, count: int) -> dict[str, float]:
    with (folder / "bare").open("ab", buffering=0) as file:

        def append(_: int) -> None:
            file.write(raw)
            os.fsync(file.fileno())

        return _times(append, count)


def _append(sessions: WorkspaceSessions, folder: Path, count: int) -> dict[str, object]:
    message = messages(1)[0]
    raw = json.dumps(message).encode() + b"\n"
    bare = _bare(folder, raw, count)
    ours = _times(lambda _: sessions.store.append("speed", [message]), count)
    return {"append": ours, "bare_fsync": bare, "above_fsync_ms": round(ours["p50_ms"] - bare["p50_ms"], 2)}


def _search(service: MemoryService, sessions: WorkspaceSessions, count: int) -> dict[str, object]:
    """Both in turn, no question twice, so that what else the machine does falls on both."""
    laps = dict[str, list[float]](quiet=[], after_append=[])
    for number in range(2 * count):
        kind = "after_append" if number % 2 else "quiet"
        if number % 2:
            sessions.store.append("speed", messages(1, 8 * number))
        started = time.perf_counter()
        found = service.search("bench", f"What was decided about the {_TOPICS[number % 9]} of ORD-{5000 + number}?")
        laps[kind].append((time.perf_counter() - started) * 1000)
        if found.degraded:
            raise RuntimeError(f"A search did without something: {found.degraded[0]}")
    quiet, after = (statistics.median(laps[kind]) for kind in ("quiet", "after_append"))
    return {
        "quiet_p50_ms": round(quiet, 2),
        "after_append_p50_ms": round(after, 2),
        "ratio": round(after / quiet, 2),
    }


def _growth(service: MemoryService, rounds: int) -> dict[str, object]:
    sessions = service.sessions("growth", make=True)
    sessions.store.create("grown", context_window=16_000)
    said, views, at = 0, list[int](), 0
    made = 0
    while made < rounds:
        batch = messages(16, at)
        at += 16
        said += sum(len(json.dumps(message, ensure_ascii=False).encode()) for message in batch)
        sessions.store.append("grown", batch)
        answer = sessions.context("grown", SessionContextRequest(memory_budget_tokens=0))
        if answer.compaction is not None and answer.compaction.stage != "prune":
            made += 1
            views.append(answer.compaction.tokens_after)
    folder = service.settings.home / "growth" / "sessions"
    kept = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {
        "rounds": made,
        "messages": at,
        "messages_bytes": said,
        "kept_bytes": kept,
        "ratio": round(kept / said, 3),
        "view_after_tokens": [views[0], views[len(views) // 2], views[-1]],
    }


def main() -> None:
    """Run all of them and print one line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, MemoryService(Settings(home=Path(home))) as service:
        sessions = service.sessions("bench", make=True)
        sessions.store.create("speed", context_window=1_000_000)
        sessions.store.append("speed", messages(arguments.messages))
        print(json.dumps(_append(sessions, Path(home), 200)))
        sessions.store.create("long", context_window=400_000)
        sessions.store.append("long", messages(arguments.messages))
        plan = CompactionCall(request=CompactRequest(mode="plan"))
        due = CompactionCall(request=CompactRequest(mode="plan", trigger="overflow"))
        sessions.compactions.compact("long", plan)
        print(json.dumps({"plan": _times(lambda _: sessions.compactions.compact("long", plan), 30)}))
        print(json.dumps({"plan_with_pruning": _times(lambda _: sessions.compactions.compact("long", due), 30)}))
        started = time.perf_counter()
        receipt = sessions.compactions.compact("long", CompactionCall())
        seconds = round(time.perf_counter() - started, 2)
        print(
            json.dumps({"compaction_seconds": seconds, "before": receipt.tokens_before, "after": receipt.tokens_after})
        )

        def ask(number: int) -> object:
            sessions.store.append("long", messages(1, 8 * number))
            query = f"What was decided about the {_TOPICS[number % len(_TOPICS)]} of ORD-{4000 + 8 * number}?"
            return sessions.context("long", SessionContextRequest(query=query))

        # What is still being embedded in the background would be measured with it.
        service.reindex("bench")
        ask(0)
        print(json.dumps({"append_and_context_with_recall": _times(ask, 60)}))
        recall = SessionContextRequest(query="What was decided about the courier?")
        print(json.dumps({"context_with_recall": _times(lambda _: sessions.context("long", recall), 60)}))
        bare = SessionContextRequest(memory_budget_tokens=0)
        print(json.dumps({"context_without_recall": _times(lambda _: sessions.context("speed", bare), 30)}))
        print(json.dumps({"search": _search(service, sessions, 60)}))
        print(json.dumps({"growth": _growth(service, arguments.rounds)}))


if __name__ == "__main__":
    main()
