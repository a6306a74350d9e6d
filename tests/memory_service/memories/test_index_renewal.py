"""An index that an older version made is made anew by whoever opens it, and nothing is lost on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from indexer import EmbedderUnavailable
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from memory_service.memories import long_term
from memory_service.memories.indexing import IndexMoves
from memory_service.service import MemoryService
from tests.indexer.rebuilds import write_schema
from tests.indexer.workspace import FailingEmbedder
from tests.serving import W, serving, settings
from tests.waiting import eventually

FILES = 30


def older_home(home: Path) -> Path:
    """A home with an index that an older version made."""
    folder = home / "default" / "memory"
    folder.mkdir(parents=True)
    for number in range(FILES):
        (folder / f"{number}.md").write_text(f"- The shelf {number} holds jar{number}.\n", "utf-8")
    with opened(home) as service:
        service.reindex("default")
    write_schema(home / "default", 1)
    return home


def write_rules(root: Path, rules: str) -> None:
    """Let the index of a folder be one that a version with other rules made."""
    store = SqliteStore(root / "index.sqlite")
    with store._database.writing():
        sql = "UPDATE meta SET value = json_set(value, '$.rules', ?) WHERE name = 'fingerprint'"
        store._database.run(sql, (rules,))
    store.close()


def opened(home: Path, embedder: HashEmbedder | None = None) -> MemoryService:
    return MemoryService(settings(home), embedder=embedder or HashEmbedder())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return older_home(tmp_path / "home")


def test_a_search_has_it_made_anew(home: Path) -> None:
    with opened(home) as service:
        found = service.search("default", "jar7")
        assert found.results[0].text == "The shelf 7 holds jar7."
        assert eventually(lambda: service.search("default", "jar7").degraded == [])
        status = service.status("default")
        assert (status.files, status.embedded, status.degraded) == (FILES, FILES, [])


def test_a_context_and_a_write_do_so_as_well(home: Path) -> None:
    with serving(opened(home)) as server:
        made = server.http.post(f"{W}/context", json={"query": "jar9", "budget_tokens": 400})
        assert "jar9" in made.json()["block"]
    write_schema(home / "default", 1)
    with serving(opened(home)) as server:
        stored = server.http.post(f"{W}/memories", json={"text": "The cellar holds jar99."})
        assert (stored.status_code, stored.json()["degraded"]) == (201, [])
        found = server.http.post(f"{W}/search", json={"query": "jar99"}).json()
        assert found["results"][0]["text"] == "The cellar holds jar99."


def test_words_are_found_before_the_vectors_are_there(home: Path) -> None:
    with opened(home, FailingEmbedder(EmbedderUnavailable("The model is away. Wait for it."))) as service:
        found = service.search("default", "jar7")
        assert found.results[0].text == "The shelf 7 holds jar7."
        assert any("The model is away" in each for each in found.degraded)
        assert service.status("default").embedded == 0
    with opened(home) as service:
        service.bring_up_to_date("default")
        assert service.status("default").embedded == FILES


def test_who_does_not_wait_long_enough_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_term, "_PATIENCE_SECONDS", 0.0)
    with opened(home) as service:
        found = service.search("default", "jar7")
        assert found.results or any("older version made it" in each for each in found.degraded)
        assert eventually(lambda: bool(service.search("default", "jar7").results))


KILLED = """
import os, signal, sys
from pathlib import Path
from indexer import EmbedderUnavailable
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from memory_service.service import MemoryService
from tests.serving import settings

def end(progress):
    if progress.done >= 10:
        os.kill(os.getpid(), signal.SIGKILL)

MemoryService(settings(Path(sys.argv[1])), embedder=HashEmbedder()).bring_up_to_date("default", on_progress=end)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_it_goes_on_where_it_was_killed(home: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, home], capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (home / "default" / "index-2.sqlite").exists()
    (home / "default" / "memory" / "3.md").write_text("- The shelf 3 holds jar300.\n", "utf-8")
    with opened(home) as service:
        service.bring_up_to_date("default")
        assert service.search("default", "jar300").results[0].path == "memory/3.md"
        status = service.status("default")
        assert (status.files, status.embedded, status.dirty, status.degraded) == (FILES, FILES, 0, [])


def test_an_index_of_older_rules_answers_and_is_made_anew_in_the_background(home: Path) -> None:
    with opened(home) as service:
        service.reindex("default")
    write_rules(home / "default", "passages-1/transcripts-1/files-1/terms-1")
    with opened(home) as service:
        found = service.search("default", "jar7")
        assert found.results and ["older version" in each for each in found.degraded] == [True]
        memory = service._workspaces.memory("default")
        with closing(IndexMoves(memory.index, after_seconds=0.0)) as moves:
            moves.note()
            assert eventually(lambda: not memory.index.lags())
        assert service.search("default", "jar7").degraded == []
    write_rules(home / "default", "passages-1/transcripts-1/files-1/terms-1")
    with opened(home) as service:
        service.bring_up_to_date("default")
        assert service.status("default").degraded == []
