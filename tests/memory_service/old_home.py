"""Writes a small home with everything that a home can hold, over HTTP and so by any version, for `test_old_home`.

`python -m tests.memory_service.old_home` writes it with the code that is here, over the committed one. Only when a home
of the version before is meant to be rebuilt: then name that in CHANGELOG.md.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from indexer import Index
from indexer.embeddings.bundled import MiniLM
from memory_service.service import MemoryService
from tests.serving import W, serving, settings

ARCHIVE = Path(__file__).with_name("old_home.tar.xz")
ANSWERS = "answers.json"
S = f"{W}/sessions/desk"
PACKED_FROM = 10

NOTES: tuple[tuple[str, str, list[str]], ...] = (
    ("2026-11-10", "We decided to ship the Austrian orders with the green parcel service.", ["decision"]),
    ("2026-11-10", "卖得最好的是绿萝，上周卖出九十六盆。", ["销售"]),
    ("2026-11-12", "Mara's direct phone extension is 4417; she answers before ten.", ["people"]),
    ("2026-11-12", "退款一律由李梅审批，金额超过 200 元要两个人签字。", ["规则"]),
    ("2026-11-15", "The greenhouse door code was changed to B-7719 after the repair.", []),
    ("2026-11-15", "温室的浇水时间改到早上六点半。", ["温室"]),
    ("2026-11-18", "Never ship live plants over a weekend.", ["rule"]),
    ("2026-11-18", "供应商的发票每月五号之前必须核对完。", []),
)
LONG_TERM = """# Long-term memory

## Shop

- The shop sells house plants from Graz; the owner is Mara Lindqvist.
- 仓库在城西，钥匙由老周保管。

## Customers

- Hotel Alpenblick orders forty ferns each quarter, invoice to Ms Brandt.
- 客户王先生对花粉过敏，只要观叶植物。
"""


def ask(http: httpx.Client, method: str, path: str, **more: Any) -> Any:
    """The answer to a request that has to succeed."""
    answer = http.request(method, path, **more)
    assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer.json()


def talk() -> list[dict[str, object]]:
    """Turns of a session in two languages, each with a tool call, its result and a decision."""
    said: list[dict[str, object]] = [{"role": "system", "content": "You are the assistant of a plant shop."}]
    for turn in range(12):
        order, chinese = f"ORD-{4100 + turn}", turn % 2
        question = f"Please check order {order} for Hotel Alpenblick and keep the freight below {20 + turn} EUR."
        answer = f"We decided to send {order} on Tuesday with the green parcel service; the freight is {15 + turn} EUR."
        if chinese:
            question = f"请查一下订单 {order}，运费不要超过 {20 + turn} 元，周末不发货。"
            answer = f"我们决定 {order} 周二用绿色包裹发货，运费 {15 + turn} 元。"
        call = {"name": "lookup_order", "arguments": json.dumps({"order": order})}
        result = [f"line {n}: pot {n * 7 % 13} of {order}, state packed, weight {n * 31 % 97} g" for n in range(14)]
        said += [
            {"role": "user", "content": question},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": "\n".join(result)},
            {"role": "assistant", "content": answer},
        ]
    return said


def write(http: httpx.Client) -> dict[str, Any]:
    """Fill a home; gives what a service answers that has it."""
    for day, text, tags in NOTES:
        ask(http, "POST", f"{W}/memories", json={"text": text, "tags": tags, "date": day})
    ask(http, "PUT", f"{W}/memories/MEMORY.md", json={"text": LONG_TERM}, headers={"If-None-Match": "*"})
    ask(http, "POST", f"{W}/sessions", json={"session_id": "desk", "context_window": 16_000})
    said = talk()
    for at in range(0, len(said), 8):
        ask(http, "POST", f"{S}/messages", json={"messages": said[at : at + 8]})
    ask(http, "POST", f"{S}/pins", json={"text": "Order ORD-4103 must not be split. 订单 ORD-4103 不可拆分。"})
    ask(http, "POST", f"{S}/pins", json={"seq": 2})
    before = ask(http, "GET", f"{S}/messages", params={"view": "model"})
    ask(http, "POST", f"{S}/flush")
    ask(http, "POST", f"{S}/context", json={"query": "What is Mara's phone extension?", "memory_budget_tokens": 400})
    compaction = ask(http, "POST", f"{S}/compact", json={"force": True, "target_tokens": 2000})
    ask(http, "POST", f"{S}/messages", json={"messages": [{"role": "user", "content": "Thanks. 谢谢，明天继续。"}]})
    context = ask(http, "POST", f"{W}/context", json={"query": "谁审批退款？", "budget_tokens": 300})
    return {
        "view_before": before,
        **answers(http, compaction["compaction_id"], context["receipt"]["receipt_id"]),
        "status": _settled(http),
    }


def answers(http: httpx.Client, compaction_id: str, receipt_id: str) -> dict[str, Any]:
    """What a service answers that has the home, whenever it is asked."""
    paths = {
        "view": f"{S}/messages?view=model",
        "log": f"{S}/messages?view=log",
        "pins": f"{S}/pins",
        "session": S,
        "compaction": f"{S}/compactions/{compaction_id}",
        "receipt": f"{W}/receipts/{receipt_id}",
        "files": f"{W}/memories",
    }
    return {name: ask(http, "GET", path) for name, path in paths.items()}


def reindexed(http: httpx.Client) -> dict[str, Any]:
    """What a reindex has done, once it is through."""
    operation = ask(http, "POST", f"{W}/reindex", json={})["operation_id"]
    while (now := ask(http, "GET", f"{W}/operations/{operation}"))["state"] in ("queued", "running"):
        time.sleep(0.05)
    report: dict[str, Any] = now["report"]
    return report


def _settled(http: httpx.Client) -> dict[str, Any]:
    """The status, once everything is embedded."""
    reindexed(http)
    status: dict[str, Any] = ask(http, "GET", f"{W}/status")
    assert (status["coverage"], status["dirty"], status["degraded"]) == (1.0, 0, []), status
    return status


def _nameless(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main() -> None:
    """Write a home and its answers into the archive."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        with MemoryService(settings(home, embedding_model="minilm")) as service, serving(service) as server:
            answered = json.dumps(write(server.http), ensure_ascii=False, indent=0).encode()
        with closing(Index(home / "default", MiniLM(), pack_passages=PACKED_FROM)) as index:
            assert index.pack() == () and index.status().packed > PACKED_FROM
        with tarfile.open(ARCHIVE, "w:xz") as archive:
            archive.add(home, "home", filter=_nameless)
            entry = tarfile.TarInfo(ANSWERS)
            entry.size = len(answered)
            archive.addfile(entry, io.BytesIO(answered))


if __name__ == "__main__":
    main()
