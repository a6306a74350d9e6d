"""The facade: names, errors, what is missing, and two processes on one home."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from indexer import EmbedderUnavailable, SyncProgress
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from memory_service.errors import InvalidName, InvalidRequest, MemoryServiceError, NotFound, StorageFailed
from memory_service.messages.sizes import count_tokens
from memory_service.runtime.models import make_embedder
from memory_service.service import MemoryService
from tests.indexer.workspace import FailingEmbedder
from tests.serving import settings
from tests.storages import write_documents

ROOT = Path(__file__).parents[3]
W = "default"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def opened(home: Path, embedder: HashEmbedder | None = None, **values: object) -> MemoryService:
    return MemoryService(settings(home, **values), embedder=embedder or HashEmbedder())


def texts(service: MemoryService, query: str, workspace: str = W) -> list[str]:
    return [hit.text for hit in service.search(workspace, query).results]


def below(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_opening_reads_and_makes_nothing(home: Path) -> None:
    with MemoryService.open(home, embedding_model="none") as service:
        assert service.workspaces() == []
        assert service.ready() == ()
    assert not home.exists()


def test_a_memory_is_searchable_at_once_and_in_a_context(home: Path) -> None:
    with opened(home) as service:
        done = service.remember(W, "Deploys go out on Tuesdays.", tags=("ops",))
        assert done.degraded == []
        (hit,) = service.search(W, "when do deploys go out?").results
        assert (hit.path, hit.start_line) == (done.path, done.start_line)
        made = service.context(W, "when do deploys go out?", budget_tokens=100)
        assert "Deploys go out on Tuesdays. #ops" in made.block
        assert made.receipt.tokens == count_tokens(made.block) <= 100
        assert service.receipt(W, made.receipt.receipt_id) == made.receipt
    with opened(home) as service:
        assert service.receipt(W, made.receipt.receipt_id) == made.receipt
        assert service.workspaces() == [W]


def test_workspaces_do_not_see_each_other(home: Path) -> None:
    with opened(home) as service:
        entry = service.remember("a", "the quokka sleeps")
        service.remember("b", "the wombat digs")
        assert texts(service, "quokka", "a") == ["the quokka sleeps"]
        assert "the quokka sleeps" not in texts(service, "quokka", "b")
        receipt_id = service.context("a", "quokka").receipt.receipt_id
        for act in (
            lambda: service.receipt("b", receipt_id),
            lambda: service.forget("b", entry.memory_id),
            lambda: service.get("b", "memory/none.md"),
        ):
            with pytest.raises(NotFound):
                act()
        assert service.workspaces() == ["a", "b"]


def test_what_is_not_there_is_not_found_and_not_made(home: Path) -> None:
    with opened(home) as service:
        with pytest.raises(NotFound, match="There is no workspace none"):
            service.delete("none", "MEMORY.md")
        with pytest.raises(NotFound, match="There is no workspace none"):
            service.forget("none", "m1")
        service.remember(W, "x")
        for act in (
            lambda: service.get(W, "memory/none.md"),
            lambda: service.delete(W, "memory/none.md"),
            lambda: service.reindex(W, ["memory/none"]),
        ):
            with pytest.raises(NotFound):
                act()
    assert not (home / "none").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "A", "-a", ".hidden", "a" * 65, "a\n", "a\x00", "浇水"])
def test_bad_names_are_refused(home: Path, name: str) -> None:
    with opened(home) as service:
        for act in (
            lambda: service.remember(name, "x"),
            lambda: service.search(name, "x"),
            lambda: service.receipt(name, "r20261120-0000000000000000"),
            lambda: list(service.examine(name)),
        ):
            with pytest.raises(InvalidName):
                act()
    assert not home.exists()


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x.md", "memory/../../x.md", "notes.md", "memory/.hidden.md"])
def test_bad_paths_are_refused(home: Path, path: str) -> None:
    with opened(home) as service:
        service.remember(W, "x")
        before = set(below(home))
        for act in (
            lambda: service.get(W, path),
            lambda: service.put(W, path, "x", if_none_match=True),
            lambda: service.delete(W, path),
            lambda: service.reindex(W, [path]),
            lambda: service.plan(W, [path]),
            lambda: service.start_reindex(W, [path]),
        ):
            with pytest.raises(InvalidName):
                act()
        assert set(below(home)) == before


def test_bad_questions_are_refused(home: Path) -> None:
    with opened(home) as service:
        service.remember(W, "x")
        for act in (
            lambda: service.search(W, "  "),
            lambda: service.search(W, "x" * 20_000),
            lambda: service.search(W, "x", limit=0),
            lambda: service.context(W, ""),
            lambda: service.context(W, "x", budget_tokens=-1),
        ):
            with pytest.raises(InvalidRequest):
                act()
        assert service.context(W, "x", budget_tokens=0).block == ""


def test_a_filter_that_keeps_nothing_gives_an_empty_block_with_its_reason(home: Path) -> None:
    with opened(home) as service:
        service.remember(W, "the quokka sleeps")
        made = service.context(W, "quokka", path_prefix="memory/1999")
        assert (made.block, made.receipt.tokens, made.receipt.included) == ("", 0, [])
        assert made.receipt.reason.startswith("nothing found")
        small = service.context(W, "quokka", budget_tokens=5)
        assert small.receipt.reason.startswith("budget too small: 5 tokens")
        assert small.receipt.omitted_count == 1


def test_without_a_model_words_find(home: Path) -> None:
    with MemoryService(settings(home, embedding_model="none")) as service:
        assert service.embedding_model == "none"
        service.warm_up()
        assert service.remember(W, "周二站会之后部署 deploys").degraded == []
        for query in ("deploys", "部署"):
            found = service.search(W, query)
            assert (found.mode, found.degraded, len(found.results)) == ("text", [], 1)
            assert found.results[0].vector_score is None
        made = service.context(W, "deploys")
        assert made.block and made.receipt.degraded == []
        status = service.status(W)
        assert status.fingerprint == status.current_fingerprint
        assert status.current_fingerprint.model == ""


def test_a_model_that_is_not_known_is_refused(home: Path) -> None:
    with pytest.raises(InvalidRequest, match="'gpt' is unknown"):
        MemoryService.open(home, embedding_model="gpt")
    assert make_embedder(settings(home, embedding_model="none")) is None


def test_a_model_that_is_gone_is_named_in_every_answer(home: Path) -> None:
    with opened(home) as service:
        service.remember(W, "the quokka sleeps")
    reason = "vector: The model is gone. Install it."
    with opened(home, FailingEmbedder(EmbedderUnavailable("The model is gone. Install it."))) as service:
        found = service.search(W, "quokka")
        assert (found.mode, found.degraded) == ("text", [reason])
        assert [hit.text for hit in found.results] == ["the quokka sleeps"]
        made = service.context(W, "quokka")
        assert "quokka" in made.block and made.receipt.degraded == [reason]
        assert service.receipt(W, made.receipt.receipt_id).degraded == [reason]
        assert service.remember(W, "the wombat digs").degraded == [reason]
    with opened(home) as service:
        assert texts(service, "wombat")[0] == "the wombat digs"
        assert service.search(W, "wombat").degraded == []


def damaged(home: Path) -> None:
    for path in (home / W).glob("index.sqlite-*"):
        path.unlink()
    (home / W / "index.sqlite").write_bytes(b"SQLite format 3\x00" + b"\x00\xff" * 4000)


def test_a_damaged_index_stops_searches_with_a_remedy_and_no_write(home: Path) -> None:
    with opened(home) as service:
        first = service.remember(W, "the quokka sleeps")
    damaged(home)
    with opened(home) as service:
        before = {name: content for name, content in below(home).items() if name.endswith(".md")}
        for act in (
            lambda: service.search(W, "quokka"),
            lambda: service.context(W, "quokka"),
            lambda: service.status(W),
            lambda: service.reindex(W),
        ):
            with pytest.raises(StorageFailed, match="Delete it and run `memory-service reindex`; no memory is lost"):
                act()
        assert {name: content for name, content in below(home).items() if name.endswith(".md")} == before
        done = service.remember(W, "the wombat digs")
        assert "Delete it and run `memory-service reindex`" in done.degraded[0]
        assert service.get(W, done.path, start_line=done.start_line).text == "- the wombat digs\n"
        gone = service.forget(W, first.memory_id)
        assert gone.degraded and "quokka" not in service.get(W, done.path).text
        (home / W / "index.sqlite").unlink()
        assert service.reindex(W).added == 1
        assert texts(service, "wombat")[0] == "the wombat digs"


def test_a_index_that_is_deleted_while_the_service_is_open_comes_back(home: Path) -> None:
    with opened(home) as service:
        service.remember(W, "the quokka sleeps")
        assert texts(service, "quokka") == ["the quokka sleeps"]
        for path in (home / W).glob("index.sqlite*"):
            path.unlink()
        time.sleep(1.1)
        assert texts(service, "quokka") == ["the quokka sleeps"]
        assert service.status(W).dirty == 0


def test_a_workspace_that_is_deleted_while_the_service_is_open(home: Path) -> None:
    with opened(home) as service:
        service.remember(W, "the quokka sleeps")
        (home / W).rename(home / "moved")
        assert texts(service, "quokka") == []
        service.remember(W, "the wombat digs")
        assert texts(service, "wombat quokka") == ["the wombat digs"]
        assert texts(service, "quokka", "moved") == ["the quokka sleeps"]


def test_files_by_hand_and_by_the_service(home: Path) -> None:
    with opened(home) as service:
        etag = service.put(W, "MEMORY.md", "- one quokka\n", if_none_match=True).etag
        assert texts(service, "quokka") == ["one quokka"]
        done = service.put(W, "MEMORY.md", "- two wombats\n", if_match=etag)
        assert (texts(service, "quokka wombats"), done.degraded) == (["two wombats"], [])
        assert service.get(W, "MEMORY.md").etag == done.etag
        assert [file.path for file in service.files(W)] == ["MEMORY.md"]
        gone = service.delete(W, "MEMORY.md").erased
        assert gone is not None and gone.passages == 1 and "files" in gone.checked
        assert texts(service, "wombats") == []


def test_erasing_leaves_no_bytes_anywhere(home: Path) -> None:
    with opened(home) as service:
        service.remember(W, "harmless")
        entry = service.remember(W, "the password is xyzzyplugh", tags=("grueword",))
        assert "xyzzyplugh" in service.context(W, "password").block
        service.forget(W, entry.memory_id)
        left = [name for name, raw in below(home).items() if b"xyzzyplugh" in raw or b"grueword" in raw]
        assert left == []
        assert "xyzzyplugh" not in service.context(W, "password").block


def test_a_write_to_a_file_that_has_to_be_there_makes_no_workspace(home: Path) -> None:
    with opened(home) as service:
        with pytest.raises(NotFound):
            service.put("none", "MEMORY.md", "- x\n", if_match="*")
        assert not (home / "none").exists()


def test_a_plan_changes_nothing_and_a_reindex_does_it(home: Path) -> None:
    with opened(home) as service:
        service.remember(W, "the quokka sleeps")
        write_documents(home, {"memory/extra.md": "- the wombat digs\n"})
        before = below(home)
        assert service.plan(W).added == 1
        with pytest.raises(NotFound, match=r"'MEMORY\.md'"):
            service.plan(W, ["MEMORY.md"])
        assert below(home).keys() == before.keys()
        told: list[SyncProgress] = []
        report = service.reindex(W, ["memory/"], on_progress=told.append)
        assert report.added == 1 and told
        full = service.reindex(W, full=True)
        assert (full.added, full.failed) == (2, [])


def test_a_reindex_after_a_change_of_model_makes_the_index_anew(home: Path) -> None:
    with opened(home) as service:
        service.remember(W, "the quokka sleeps")
    with MemoryService(settings(home), embedder=HashEmbedder(seed=1)) as service:
        done = service.remember(W, "the wombat digs")
        assert len(done.degraded) == 1 and "reindex --full" in done.degraded[0]
        assert service.search(W, "wombat").results[0].text == "the wombat digs", "found by words meanwhile"
        assert service.reindex(W, ["memory/"]).embedded == 0, "of some files nothing is made anew"
        told: list[SyncProgress] = []
        report = service.reindex(W, on_progress=told.append)
        assert (report.embedded, report.degraded) == (2, []) and told
        found = service.search(W, "wombat")
        assert (found.mode, found.degraded) == ("hybrid", [])
        assert service.remember(W, "the numbat runs").degraded == []


def test_a_rebuild_in_the_background_is_followed_and_cancelled(home: Path) -> None:
    with opened(home) as service:
        notes = {number: "".join(f"- quokka {number} {n}\n" for n in range(20)) for number in range(40)}
        write_documents(home, {f"memory/{number}.md": text for number, text in notes.items()})
        service.reindex(W)
    with MemoryService(settings(home), embedder=Slow(seed=1)) as service:
        operation = service.start_reindex(W, full=True)
        seen = service.operation(W, operation.operation_id)
        while not seen.rate:
            assert seen.state in ("queued", "running"), seen.error
            time.sleep(0.01)
            seen = service.operation(W, operation.operation_id)
        rebuild = service.status(W).rebuild
        assert rebuild is not None and rebuild.state == "running" and 0 < rebuild.passages < 800
        assert seen.total == 800 and seen.eta_seconds and seen.eta_seconds > 0
        assert service.search(W, "quokka 7").results
        service.cancel(W, operation.operation_id)
        while service.operation(W, operation.operation_id).state == "running":
            time.sleep(0.01)
        assert service.operation(W, operation.operation_id).state == "cancelled"
        rebuild = service.status(W).rebuild
        assert rebuild is not None and rebuild.state == "interrupted"
    with MemoryService(settings(home), embedder=HashEmbedder(seed=1)) as service:
        assert 0 < service.reindex(W, full=True).embedded < 800, "it went on from there"
        assert service.status(W).rebuild is None and service.search(W, "quokka 7").mode == "hybrid"


class Slow(HashEmbedder):
    """Takes a while for every batch."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        time.sleep(0.3)
        return super().embed_documents(texts)


def test_many_workspaces_are_more_than_are_kept_open(home: Path) -> None:
    with MemoryService(settings(home, embedding_model="none")) as service:
        for number in range(260):
            service.storage.make(f"w{number}")
        service.put("w0", "memory/a.md", "- the quokka sleeps\n", if_none_match=True)
        assert texts(service, "quokka", "w0") == ["the quokka sleeps"]
        for number in range(1, 260):
            assert service.files(f"w{number}") == []
        assert texts(service, "quokka", "w0") == ["the quokka sleeps"]


def test_a_home_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with opened(tmp_path / "home") as service:
        assert "is not a folder" in service.ready()[0]
        with pytest.raises(MemoryServiceError):
            service.remember(W, "x")


WRITING = """
import sys
from pathlib import Path
from indexer.testing import HashEmbedder
from memory_service.service import MemoryService
from tests.serving import settings
name = sys.argv[2]
with MemoryService(settings(Path(sys.argv[1])), embedder=HashEmbedder()) as service:
    for number in range(6):
        text = f"{name}{number} was here"
        done = service.remember("default", text)
        assert done.degraded == [], done.degraded
        found = service.search("default", f"{name}{number}")
        assert found.degraded == [], found.degraded
        assert found.results[0].text == text, (text, [hit.text for hit in found.results])
        assert service.context("default", text, budget_tokens=200).receipt.degraded == []
"""


def test_two_processes_on_one_home_lose_nothing(home: Path) -> None:
    names = ("anna", "bert")
    commands = [[sys.executable, "-W", "error", "-c", WRITING, str(home), name] for name in names]
    children = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for command in commands]
    ended = [(child.communicate(timeout=240)[1], child.returncode) for child in children]
    assert ended == [("", 0)] * 2
    with opened(home) as service:
        lines = service.get(W, service.files(W)[0].path).text.splitlines()
        said = sorted(line for line in lines if line.startswith("- "))
        assert said == sorted(f"- {name}{number} was here" for name in names for number in range(6))
        status = service.status(W)
        assert (status.passages, status.embedded, status.dirty) == (12, 12, 0)
        assert len(service.receipts(W).receipts) == 12


def test_what_one_process_writes_the_other_finds(home: Path) -> None:
    with opened(home) as one, opened(home) as other:
        one.remember(W, "the quokka sleeps")
        assert texts(other, "quokka") == ["the quokka sleeps"]
        entry = other.remember(W, "the wombat digs")
        assert texts(one, "wombat")[0] == "the wombat digs"
        one.forget(W, entry.memory_id)
        assert texts(other, "wombat quokka") == ["the quokka sleeps"]


def test_closing_gives_back_all_files(home: Path) -> None:
    def held() -> list[str]:
        links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        return [target for link in links if os.path.lexists(link) and str(home) in (target := os.readlink(link))]

    if not Path("/proc/self/fd").exists():
        pytest.skip("there is no list of open files here")
    service = opened(home)
    service.remember(W, "the quokka sleeps")
    service.context(W, "quokka")
    assert held()
    service.close()
    assert held() == []
