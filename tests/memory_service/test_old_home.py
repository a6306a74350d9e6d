"""A home that an earlier version wrote goes on: opened as it is, found in, talked on, undone, and sound.

`old_home.tar.xz` was written by `old_home.py`; what the service answered then is beside the home.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from indexer import Index
from indexer.embeddings.bundled import MiniLM, MultilingualE5
from indexer.types import Vectors
from memory_service.service import MemoryService
from tests.memory_service.cli.commands import CommandLine
from tests.memory_service.old_home import ANSWERS, ARCHIVE, PACKED_FROM, S, answers, ask, reindexed
from tests.serving import W, serving, settings

FOUND = (
    ("Mara's direct phone extension", "4417"),
    ("Who drives to Hotel Alpenblick for the ferns?", "forty ferns"),
    ("温室 浇水 时间", "早上六点半"),
    ("退款由谁审批", "李梅"),
    ("green parcel service freight ORD-4110", "ORD-4110"),
)
STANDING = ("files", "passages", "embedded", "coverage", "dirty", "failed", "rebuild", "degraded")
MODES = ("hybrid", "vector", "text")


class Counted(MiniLM):
    """The bundled model, which also keeps what it was asked to embed, questions aside."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return super().embed_documents(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class OldHome:
    """The home, and what the version that wrote it answered last."""

    folder: Path
    answered: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The home as today's code serves it."""

    http: httpx.Client
    answered: dict[str, Any]
    embedder: Counted

    def embedded(self) -> list[str]:
        """The texts that were embedded, but for the one by which a server loads its model."""
        return [text for text in self.embedder.embedded if text != "warm"]


@pytest.fixture
def old(tmp_path: Path) -> OldHome:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return OldHome(folder=tmp_path / "home", answered=json.loads((tmp_path / ANSWERS).read_text(encoding="utf-8")))


@pytest.fixture
def opened(old: OldHome) -> Iterator[Opened]:
    embedder = Counted()
    # Its receipts are as old as it is.
    kept = settings(old.folder, receipt_days=36_500)
    with MemoryService(kept, embedder=embedder) as service, serving(service) as server:
        yield Opened(http=server.http, answered=old.answered, embedder=embedder)


def test_its_index_is_used_as_it_is(opened: Opened) -> None:
    status, before = ask(opened.http, "GET", f"{W}/status"), opened.answered["status"]
    assert status["fingerprint"] == before["fingerprint"] == status["current_fingerprint"], (
        "Every home would be read and embedded anew. If that is meant, name it in CHANGELOG.md and write the home of "
        "this version: python -m tests.memory_service.old_home"
    )
    assert status["rebuild"] is None
    # A home that was copied is read once more, since its files are others to the disk, and found to say the same.
    report = reindexed(opened.http)
    assert (report["added"], report["changed"], report["removed"], report["embedded"]) == (0, 0, 0, 0)
    assert opened.embedded() == []
    now = ask(opened.http, "GET", f"{W}/status")
    assert {name: now[name] for name in STANDING} == {name: before[name] for name in STANDING}


def beside_facts(answer: dict[str, Any]) -> list[str]:
    """What is missing from an answer, but for facts: rules that were changed since read them at the next sync."""
    return [missing for missing in answer["degraded"] if not missing.startswith("facts: ")]


@pytest.mark.parametrize("mode", MODES)
def test_what_it_holds_is_found(opened: Opened, mode: str) -> None:
    for query, expected in FOUND:
        asked = {"query": query, "mode": mode, "limit": 5 if mode != "vector" else 15}
        found = ask(opened.http, "POST", f"{W}/search", json=asked)
        assert beside_facts(found) == []
        assert any(expected in hit["text"] for hit in found["results"]), (query, found["results"])
    reindexed(opened.http)
    assert ask(opened.http, "POST", f"{W}/search", json={"query": FOUND[0][0], "mode": mode})["degraded"] == []
    assert opened.embedded() == []


def test_its_packed_part_is_read(old: OldHome) -> None:
    embedder = Counted()
    with closing(Index(old.folder / "default", embedder, pack_passages=PACKED_FROM)) as index:
        assert index.status().packed > PACKED_FROM
        assert "4417" in index.search("Mara's phone extension").hits[0].passage.text
        assert index.status().packed > PACKED_FROM
    assert embedder.embedded == []


def test_it_answers_as_the_version_that_wrote_it(opened: Opened) -> None:
    before = opened.answered
    now = answers(opened.http, before["compaction"]["compaction_id"], before["receipt"]["receipt_id"])
    for file in [*now["files"]["files"], *before["files"]["files"]]:
        del file["modified_at"]  # of the file in the archive, to the second
    # Which session a receipt is of was not told then; this one is of none.
    assert now["receipt"].pop("session_id") is None
    for name, answer in now.items():
        assert answer == before[name], f"{name} is another one than before"


def test_its_session_goes_on(opened: Opened) -> None:
    before = opened.answered
    more = {"role": "user", "content": "And ORD-4112? 还有 ORD-4112 呢？"}
    added = ask(opened.http, "POST", f"{S}/messages", json={"messages": [more]})
    assert added["first_seq"] > before["session"]["last_seq"]
    view = ask(opened.http, "GET", f"{S}/messages", params={"view": "model"})
    assert view["messages"] == [*before["view"]["messages"], more]
    prompt = ask(opened.http, "POST", f"{S}/context", json={"query": "What is Mara's phone extension?"})
    assert beside_facts(prompt) == [] and "4417" in json.dumps(prompt["messages"])


def test_its_compaction_can_be_undone(opened: Opened) -> None:
    before = opened.answered
    ask(opened.http, "POST", f"{S}/compactions/{before['compaction']['compaction_id']}/undo")
    view = ask(opened.http, "GET", f"{S}/messages", params={"view": "model"})
    assert view["messages"][: len(before["view_before"]["messages"])] == before["view_before"]["messages"]
    assert view["messages"][-1]["content"] == "Thanks. 谢谢，明天继续。"


def test_the_doctor_finds_nothing(old: OldHome) -> None:
    cli = CommandLine(home=old.folder, environment={})
    cli.ok("reindex")
    lines = cli.ok("doctor").splitlines()
    assert lines and [line for line in lines if not line.startswith("ok ")] == []


def test_it_moves_to_the_other_model_without_loss(old: OldHome) -> None:
    with MemoryService(settings(old.folder, receipt_days=36_500)) as service:
        before = service.status("default")
        assert before.fingerprint is not None and before.fingerprint.model == MiniLM.fingerprint
        notes = "".join(f"- 第{number}批绿萝在星期二下午送到城西的仓库，由老周签收。\n" for number in range(60))
        (old.folder / "default" / "memory" / "deliveries.md").write_text(notes, "utf-8")
        service.bring_up_to_date("default")
        now = service.status("default")
        assert now.fingerprint is not None and now.fingerprint.model == MultilingualE5.fingerprint
        assert now.embedding_choice is not None and now.embedding_choice.startswith("multilingual-e5-small, as ")
        assert (now.passages, now.embedded) == (before.passages + 60, before.passages + 60)
        for query, expected in FOUND:
            found = service.search("default", query, limit=5)
            assert any(expected in hit.text for hit in found.results), (query, found.results)
        assert service.search("default", "谁在仓库签收绿萝？", limit=1).results[0].path == "memory/deliveries.md"
