"""Bad input and faults as users meet them: a named state, answers from what is there, a doctor who knows what to do."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer import Embedder, Index
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from memory_service import schemas
from memory_service.schemas import Check
from memory_service.service import MemoryService
from tests.indexer.test_faults import small_disk
from tests.indexer.workspace import run_python
from tests.memory_service.cli.commands import CommandLine
from tests.serving import RunningServer, serving, settings
from tests.serving import W as ROUTE
from tests.waiting import until

NAME = "default"
FACT = "The quokka sleeps behind the greenhouse near the blue door."
DAYS = 12


def write(home: Path, path: str, text: str) -> Path:
    file = home / NAME / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with an index that is packed."""
    folder = tmp_path / "home"
    write(folder, "MEMORY.md", f"- {FACT}\n")
    for day in range(1, DAYS + 1):
        write(folder, f"memory/2026-11-{day:02}.md", f"- On day {day} the wombat number{day} dug beside the fence.\n")
    index = Index(folder / NAME, HashEmbedder(), pack_passages=0)
    index.sync()
    assert index.status().packed == DAYS + 1
    index.close()
    return folder


def opened(home: Path, embedder: Embedder | None = None, **values: object) -> MemoryService:
    return MemoryService(settings(home, **values), embedder=embedder or HashEmbedder())


def searched(server: RunningServer, query: str = FACT) -> schemas.SearchResults:
    answer = server.http.post(f"{ROUTE}/search", json={"query": query})
    assert answer.status_code == 200, answer.text
    return schemas.SearchResults.model_validate(answer.json())


def status_of(server: RunningServer) -> schemas.Status:
    return schemas.Status.model_validate(server.http.get(f"{ROUTE}/status").json())


def wrong(service: MemoryService) -> dict[str, Check]:
    found = {finding.name: finding for finding in service.examine(NAME) if not finding.ok}
    assert all(finding.detail and finding.remedy for finding in found.values())
    return found


class Spoiled(HashEmbedder):
    """Does something to the vectors of documents."""

    def __init__(self, spoil: Callable[[Vectors], Vectors]) -> None:
        super().__init__()
        self._spoil = spoil

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._spoil(super().embed_documents(texts))


SPOILED: dict[str, tuple[Callable[[Vectors], Vectors], str, str]] = {
    "not a number": (lambda rows: rows * np.float32(np.nan), "not finite or have no length", "not finite or have no"),
    "no length": (lambda rows: rows * np.float32(0), "not finite or have no length", "not finite or have no length"),
    "endless": (lambda rows: rows * np.float32(np.inf), "not finite or have no length", "not finite or have no length"),
    "shorter": (
        lambda rows: rows[:, :-1],
        "gave vectors of 63 numbers",
        "gave vectors of 63 numbers, and of 64 before",
    ),
    "too few": (lambda rows: rows[:-1], "gave 0 vectors for 1 texts", "gave 2 vectors for 3 texts"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_model_that_gives_no_vectors(home: Path, name: str) -> None:
    spoil, told, diagnosis = SPOILED[name]
    with serving(opened(home, Spoiled(spoil))) as server:
        stored = server.http.post(f"{ROUTE}/memories", json={"text": "The bandicoot hides at noon."})
        assert stored.status_code == 201
        assert told in stored.json()["degraded"][0]
        assert any("bandicoot" in result.text for result in searched(server, "bandicoot at noon").results)
        assert searched(server).results[0].text == FACT
        status = status_of(server)
        assert (status.passages, status.embedded) == (DAYS + 2, DAYS + 1)
    with opened(home, Spoiled(spoil)) as service:
        found = wrong(service)
        assert diagnosis in found["model"].detail
        assert "embedding_model" in found["model"].remedy
        assert found["index"].detail == f"1 of {DAYS + 2} passages have no vector"
    with opened(home) as service:
        assert service.reindex(NAME).degraded == []
        assert wrong(service) == {}


def test_a_model_folder_that_is_gone_at_the_next_start(home: Path, tmp_path: Path) -> None:
    gone = f"sentence-transformers/{tmp_path / 'models/mine'}"
    with serving(MemoryService(settings(home, embedding_model=gone))) as server:
        found = searched(server)
        assert (found.mode, found.results[0].text) == ("text", FACT)
        (told,) = found.degraded
        assert told.startswith("vector: ")
        assert "mine" in told
        status = status_of(server)
        assert (status.embedded, status.degraded) == (DAYS + 1, [told]), "the vectors wait for the model to come back"
        stored = server.http.post(f"{ROUTE}/memories", json={"text": "The bandicoot hides at noon."})
        assert (stored.status_code, bool(stored.json()["degraded"])) == (201, True)
        assert "bandicoot" in searched(server, "bandicoot").results[0].text
    with MemoryService(settings(home, embedding_model=gone)) as service:
        findings = wrong(service)
        assert "mine" in findings["model"].detail
        assert service.reindex(NAME).degraded
        assert service.status(NAME).updated_at is not None
    with opened(home) as service:
        service.reindex(NAME)
        assert wrong(service) == {}


@pytest.mark.parametrize("what", ["index.sqlite", "index*", "*.pack"])
def test_an_index_that_is_deleted_while_it_is_served(home: Path, what: str) -> None:
    with serving(opened(home)) as server:
        assert searched(server).results[0].text == FACT
        for file in (home / NAME).glob(what):
            file.unlink()
        found = searched(server)
        assert (found.results[0].text, found.degraded) == (FACT, []), "it is made anew before the answer"
        assert server.http.post(f"{ROUTE}/memories", json={"text": "A bandicoot came."}).json()["degraded"] == []
        assert "bandicoot" in searched(server, "bandicoot").results[0].text
        status = status_of(server)
        assert (status.passages, status.dirty, status.degraded) == (DAYS + 2, 0, [])


def test_a_larger_index_that_is_deleted_while_it_is_served_is_named(home: Path) -> None:
    for number in range(30):
        write(home, f"memory/more-{number}.md", f"- Kettle number{number}k {'whistles a long tune ' * 60}\n")
    with serving(opened(home)) as server:
        assert run_operation(server, full=False).state == "done"
        assert searched(server).results
        assert status_of(server).dirty == 0
        for file in (home / NAME).glob("index*"):
            file.unlink()
        found = searched(server)
        assert found.results == []
        assert found.degraded[0].startswith(f"index: {DAYS + 31} changed files")
        assert found.degraded[0].endswith("wait. Run `memory-service reindex`.")
        status = status_of(server)
        assert (status.passages, status.dirty, status.updated_at) == (0, DAYS + 31, None)
    with opened(home) as service:
        assert wrong(service)["index"].detail == "there is no index yet"
        service.reindex(NAME)
        assert wrong(service) == {}


def test_a_workspace_that_is_deleted_while_it_is_served(home: Path) -> None:
    with serving(opened(home)) as server:
        assert searched(server).results
        shutil.rmtree(home / NAME)
        assert searched(server).results == []
        assert server.http.get(f"{ROUTE}/status").json()["files"] == 0
        assert not (home / NAME).exists()
        stored = server.http.post(f"{ROUTE}/memories", json={"text": "The bandicoot hides at noon."})
        assert (stored.status_code, stored.json()["degraded"]) == (201, [])
        found = searched(server, "bandicoot or quokka")
        assert [result.text for result in found.results] == ["The bandicoot hides at noon."], "nothing of the old one"


def test_a_clock_that_goes_back(home: Path) -> None:
    ahead, then = dt.timedelta(days=4000), (2**31, 2**31)
    os.utime(home / NAME / "MEMORY.md", then)
    write(home, "memory/2044-05-01.md", "- In May the numbat will count to number77.\n")
    with opened(home) as service:
        now = [service.settings.now() + ahead]
        memory = service._workspaces.memory(NAME)
        memory.files.notes._now = lambda: now[0]
        first = service.remember(NAME, "Written while the clock was wrong.")
        now[0] -= ahead
        second = service.remember(NAME, "Written when it was set right.")
        assert first.degraded == second.degraded == []
        assert first.path > second.path
        for query in ("clock was wrong", "set right", "numbat number77", FACT):
            found = service.search(NAME, query, limit=1)
            assert (found.degraded, bool(found.results)) == ([], True), query
        # Of the same size, with the time of the old one, which is still to come.
        write(home, "MEMORY.md", f"- {FACT.replace('quokka', 'potoro')}\n")
        os.utime(home / NAME / "MEMORY.md", then)
        assert service.reindex(NAME).changed == 1
        assert "potoro" in service.search(NAME, "potoro", limit=1).results[0].text
        service.forget(NAME, first.memory_id)
        assert wrong(service) == {}


def test_thousands_of_files_in_one_folder(home: Path) -> None:
    for number in range(2_000):
        write(home, f"memory/many/n-{number}.md", f"- Kettle number{number}k is on shelf {number % 7}.\n")
    with MemoryService(settings(home, embedding_model="none")) as service:
        report = service.reindex(NAME, full=True)
        assert (report.added, report.failed) == (DAYS + 1 + 2_000, [])
        assert "number1718k" in service.search(NAME, "kettle number1718k", limit=1).results[0].text
        (home / NAME / "memory/many/n-1718.md").unlink()
        assert service.reindex(NAME).removed == 1
        assert wrong(service) == {}


HUGE = """
import resource, sys
HUGE_BYTES = 3 << 26
from pathlib import Path
from memory_service.errors import NotFound, TooLarge
from memory_service.service import MemoryService
from tests.serving import settings
from indexer.testing import HashEmbedder
home, beside = Path(sys.argv[1]), sys.argv[2]
day = settings(home).now().date()
service = MemoryService(settings(home, extra_paths=[f"beside={beside}"]), embedder=HashEmbedder())
service.search("default", "quokka")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in (home / "default/memory/2026-11-30.md", Path(beside) / "big.txt", home / "default/sessions/s.jsonl"):
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as stream:
        stream.truncate(HUGE_BYTES)
report = service.reindex("default")
print(*(failure.path for failure in report.failed))
print(service.search("default", "the quokka behind the greenhouse", limit=1).results[0].path)
print(max(file.bytes for file in service.files("default")))
try:
    service.get("default", "memory/2026-11-30.md", start_line=1, lines=1)
except TooLarge as error:
    print(error)
try:
    service.forget("default", "nosuchmemory")
except NotFound:
    print("not found")
print(*(finding.name for finding in service.examine("default") if not finding.ok))
(home / "default/memory/2026-11-30.md").rename(home / f"default/memory/{day}.md")
try:
    service.remember("default", "one more")
except TooLarge as error:
    print("too large")
service.close()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files there are not sparse")
def test_a_huge_file_is_named_and_never_held_in_memory(home: Path, tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    lines = run_python(HUGE, home, tmp_path / "beside").splitlines()
    assert lines[0] == "@beside/big.txt memory/2026-11-30.md sessions/s.jsonl"
    assert lines[1:3] == ["MEMORY.md", str(3 << 26)]
    assert "has 201,326,592 bytes" in lines[3]
    assert lines[3].endswith("Split it.")
    assert lines[4:7] == ["not found", "files", "too large"]
    assert int(lines[7]) < 100 * (1 if sys.platform == "linux" else 1024), "MB"


@contextmanager
def restless(file: Path) -> Iterator[None]:
    """A file that grows all the time, and begins anew."""
    over = threading.Event()

    def scribble() -> None:
        while not over.is_set():
            with file.open("w", encoding="utf-8") as stream:
                for number in range(200):
                    stream.write(f"- The restless numbat counted {number}.\n")
                    stream.flush()

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)


def test_a_file_that_never_rests(home: Path) -> None:
    file = write(home, "memory/2026-11-20.md", "- The restless numbat.\n")
    with serving(opened(home)) as server, opened(home) as service:
        with restless(file):
            for _ in range(5):
                report = service.reindex(NAME)
                assert [failure.path for failure in report.failed] in ([], ["memory/2026-11-20.md"])
                assert all("changes while it is read" in failure.reason for failure in report.failed)
                assert searched(server).results[0].text == FACT
        service.reindex(NAME)
        found = service.search(NAME, "restless numbat counted 199", limit=1).results[0]
        assert found.text == "The restless numbat counted 199."
        assert wrong(service) == {}


def test_a_disk_that_runs_full_while_it_is_rebuilt(tmp_path: Path) -> None:
    # Room for two indexes and their logs, whenever these are written back.
    with small_disk(tmp_path / "disk", megabytes=16) as disk:
        home = disk / "home"
        write(home, "MEMORY.md", f"- {FACT}\n")
        write(home, "memory/2026-11-01.md", "".join(f"- wombat number{number} dug here\n" for number in range(900)))
        with serving(opened(home)) as server:
            run_operation(server, full=False)
            assert status_of(server).passages == 901
            filler = disk / "filler"
            filler.write_bytes(b"x" * (shutil.disk_usage(disk).free - 200_000))
            done = run_operation(server, full=True)
            assert done.state == "failed"
            assert done.error is not None
            assert "free" in done.error.lower()
            assert "reindex --full" in done.error
            assert searched(server).results[0].text == FACT
            assert (status_of(server).passages, status_of(server).rebuild) == (901, None)
            filler.unlink()
            again = run_operation(server, full=True)
            assert again.state == "done", again.error
            assert searched(server).results[0].text == FACT


def run_operation(server: RunningServer, *, full: bool) -> schemas.Operation:
    begun = server.http.post(f"{ROUTE}/reindex", json={"full": full}).json()["operation_id"]
    route = f"{ROUTE}/operations/{begun}"
    until(lambda: server.http.get(route).json()["state"] not in ("queued", "running"))
    return schemas.Operation.model_validate(server.http.get(route).json())


def test_a_large_index_without_its_packed_part_is_named_and_mended_from_another_process(tmp_path: Path) -> None:
    cli = CommandLine(home=tmp_path / "home")
    for file in range(3):
        lines = [f"- Kettle number{file}n{number} whistles." for number in range(7_000)]
        cli.write(f"memory/2026-11-0{file + 1}.md", lines)
    cli.ok("reindex")
    place = cli.workspace / "index.sqlite.pack"
    assert place.exists()
    service = MemoryService(settings(cli.home, embedding_model="none"))
    with serving(service) as server:
        assert searched(server, "number2n6999").results[0].text == "Kettle number2n6999 whistles."
        place.write_bytes(place.read_bytes()[:-100])
        told = "is packed, so searches are slower, as index.sqlite.pack is damaged, or of another index"
        run = cli.run("status")
        assert run.code == 0
        assert told in run.err
        (finding,) = [one for one in service.examine(NAME) if not one.ok]
        assert (finding.name, finding.remedy) == ("index", "Run `memory-service reindex`.")
        assert told in finding.detail
        assert searched(server, "number2n6999").results[0].text == "Kettle number2n6999 whistles."
        mended = cli.spawn("reindex")
        assert (mended.code, "21000 passages" in cli.ok("doctor")) == (0, True)
        assert status_of(server).degraded == []
        assert searched(server, "number1n17").results[0].text == "Kettle number1n17 whistles."
        damaged = bytearray(place.read_bytes())
        damaged[-5_000] ^= 1
        place.write_bytes(damaged)
        found = wrong(service)["index"]
        assert found.detail.endswith("of the index is damaged")
        assert found.remedy == "Delete it and run `memory-service reindex`; no memory is lost."


def test_a_home_that_takes_nothing_is_not_ready(tmp_path: Path) -> None:
    def health(home: Path) -> tuple[int, str]:
        with serving(opened(home)) as server:
            while "being loaded" in (answer := server.http.get("/health/ready")).text:
                time.sleep(0.05)
            return answer.status_code, "".join(answer.json()["degraded"])

    assert health(tmp_path / "not/yet") == (200, "")
    with small_disk(tmp_path / "disk") as disk:
        assert health(disk / "home") == (200, "")
        (disk / "filler").write_bytes(b"x" * (shutil.disk_usage(disk).free - 64 * 1024))
        status, told = health(disk / "home")
        assert (status, "the disk is full" in told, str(disk) in told) == (503, True, False)
        (disk / "filler").unlink()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        status, told = health(disk / "home")
        assert (status, "read-only" in told, str(disk) in told) == (503, True, False)


def _damaged(index: Path, elsewhere: Path) -> None:
    index.write_bytes(b"SQLite format 3\0" + b"no index " * 2_000)


def _of_something_else(index: Path, elsewhere: Path) -> None:
    index.unlink()
    index.mkdir()


def _link(index: Path, elsewhere: Path) -> None:
    index.rename(elsewhere / "index-elsewhere.sqlite")
    index.symlink_to(elsewhere / "index-elsewhere.sqlite")


@pytest.mark.parametrize("spoil", [_damaged, _of_something_else, _link], ids=lambda each: each.__name__.strip("_"))
def test_no_answer_names_where_the_home_lies(home: Path, tmp_path: Path, spoil: Callable[[Path, Path], None]) -> None:
    for beside in (home / NAME).glob("index.sqlite*"):
        if beside.name != "index.sqlite":
            beside.unlink()
    spoil(home / NAME / "index.sqlite", tmp_path)
    answers = list[str]()
    with serving(opened(home)) as server:
        for method, path, body in (
            ("POST", "search", {"query": "wombat"}),
            ("POST", "context", {"query": "wombat"}),
            ("POST", "memories", {"text": "The bandicoot hides."}),
            ("GET", "status", None),
            ("POST", "sessions/s/messages", {"messages": [{"role": "user", "content": "hi"}]}),
            ("DELETE", "sessions/s", None),
        ):
            answers.append(server.http.request(method, f"{ROUTE}/{path}", json=body).text)
    assert any("index" in answer for answer in answers)
    assert not [answer for answer in answers if str(tmp_path) in answer]


def grown(disk: Path) -> Path:
    """A file that takes all the room there is."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as stream, suppress(OSError):
        while stream.write(b"x" * 4096):
            pass
    return filler


def holding(home: Path, text: str) -> list[str]:
    return [str(file) for file in home.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


def test_what_is_erased_on_a_full_disk_is_gone_from_files_and_answers(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk, serving(opened(disk / "home")) as server:
        texts = [
            f"The {word} hides behind greenhouse {at}." for at, word in enumerate(("bilby", "袋鼯在岸边", "koala"))
        ]
        ids = [server.http.post(f"{ROUTE}/memories", json={"text": text}).json()["memory_id"] for text in texts]
        said = {"messages": [{"role": "user", "content": f"The numbat counts {at}."} for at in range(4)]}
        server.http.post(f"{ROUTE}/sessions/s/messages", json=said)
        note = {"text": "- A dingo.\n"}
        assert server.http.put(f"{ROUTE}/memories/memory/n.md", json=note, headers={"If-None-Match": "*"}).is_success
        assert len(searched(server, "greenhouse").results) >= 3
        filler = grown(disk)
        for path in (f"entries/{ids[0]}", f"entries/{ids[1]}", "sessions/s", "memories/memory/n.md"):
            gone = server.http.delete(f"{ROUTE}/{path}")
            assert (gone.status_code, "is full" in gone.json()["degraded"][0]) == (200, True), gone.text
        gone_words = ("bilby", "袋鼯", "numbat", "dingo")
        left = [file for word in gone_words for file in holding(disk / "home", word)]
        assert all("index.sqlite" in file for file in left), left
        for word in gone_words:
            found = searched(server, word)
            assert [one.text for one in found.results if word in one.text] == []
            assert any("is full" in told for told in found.degraded)
        assert server.http.delete(f"{ROUTE}/entries/{ids[0]}").status_code == 404
        filler.unlink()
        until(lambda: not searched(server, "greenhouse").degraded)
        assert [searched(server, "koala").results[0].text] == texts[2:], "what stays is found"
        assert [file for word in gone_words for file in holding(disk / "home", word)] == []
        assert server.http.post(f"{ROUTE}/memories", json={"text": texts[0]}).status_code == 201


def test_a_full_disk_takes_no_prompt_and_no_block_away(tmp_path: Path) -> None:
    def asked(text: str) -> dict[str, Any]:
        answer = server.http.post(f"{ROUTE}/sessions/talk/context", json={"query": text})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    with small_disk(tmp_path / "disk") as disk, serving(opened(disk / "home")) as server:
        kept = server.http.post(f"{ROUTE}/memories", json={"text": "The bilby code of the greenhouse is 77."}).json()
        server.http.post(f"{ROUTE}/memories", json={"text": "The koala eats beside the fence."})
        said = {"messages": [{"role": "user", "content": "The bilby code?"}]}
        server.http.post(f"{ROUTE}/sessions/talk/messages", json=said)
        for session in ("talk", "idle"):
            server.http.post(f"{ROUTE}/sessions/{session}/messages", json=said)
            made = server.http.post(f"{ROUTE}/sessions/{session}/context", json={"query": "The bilby code?"}).json()
            assert "is 77." in str(made["messages"])
        filler = grown(disk)
        full = asked("Where does the koala eat?")
        assert "koala eats" in str(full["messages"])
        assert [told for told in full["degraded"] if told.startswith("prompt: ") and "is full" in told]
        assert server.http.delete(f"{ROUTE}/entries/{kept['memory_id']}").status_code == 200
        assert [file for file in holding(disk / "home", "code of the greenhouse") if "prompts" in file] == []
        assert "is 77." not in str(asked("The bilby code?")["messages"])
        filler.unlink()
        again = asked("Where does the koala eat?")
        assert "koala eats" in str(again["messages"])
        assert not [told for told in again["degraded"] if told.startswith(("prompt: ", "receipt: "))]
