"""Every part is used; every fault gives its line, with what mends it; nothing is left behind."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from indexer import EmbedderUnavailable, Index, SyncCancelled
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from memory_service.schemas import Check
from memory_service.service import MemoryService
from memory_service.storage.engines import open_storage
from tests.indexer.workspace import FailingEmbedder, run_unprivileged, watched_statements
from tests.serving import settings
from tests.storages import write_documents

W = "default"
PARTS = ["home", "model", "round trip", "index", "files", "retrieval", "readers"]


def parts(home: Path) -> list[str]:
    """The parts that are looked at, with those of the storage's engine."""
    with closing(open_storage(settings(home))) as storage:
        return ["home", *(check.name for check in storage.checks()), *PARTS[1:]]


class AlikeEmbedder(HashEmbedder):
    """Gives every text the same vector."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.tile(self.embed_query("x"), (len(texts), 1))


class NotANumberEmbedder(HashEmbedder):
    """Gives vectors of no numbers."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return super().embed_documents(texts) * np.float32(np.nan)


class MiscountingEmbedder(HashEmbedder):
    """Gives one vector for all texts."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return super().embed_documents(texts[:1])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that all is well with."""
    with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as service:
        for day in range(1, 13):
            text = f"On day {day} the quokka number{day} was seen behind the greenhouse."
            service.put(W, f"memory/2026-11-{day:02}.md", f"# Day\n\n- {text}\n", if_none_match=True)
        service.remember(W, "Deploys go out on Tuesdays after the 10:00 stand-up, never on Fridays.")
        service.reindex(W)
    return tmp_path / "home"


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """A folder that others may walk down to: pytest takes that right from its own at every start."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def examined(home: Path, embedder: HashEmbedder | None = None, **values: object) -> dict[str, Check]:
    with MemoryService(settings(home, **values), embedder=embedder or HashEmbedder()) as service:
        return {finding.name: finding for finding in service.examine(W)}


def wrong(findings: dict[str, Check]) -> dict[str, Check]:
    found = {name: finding for name, finding in findings.items() if not finding.ok}
    assert all(finding.detail and finding.remedy for finding in found.values())
    return found


def below(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() if path.is_file() else b"" for path in home.rglob("*")}


def test_a_sound_home_is_sound_in_every_part(home: Path) -> None:
    before = below(home)
    findings = examined(home)
    assert list(findings) == parts(home)
    assert wrong(findings) == {}
    assert findings["index"].detail == "13 passages of 13 files, undamaged"
    assert findings["retrieval"].detail == "10 of 10 files are found by a line of theirs"
    assert all(finding.detail and not finding.remedy for finding in findings.values())
    assert below(home) == before, "it leaves no trace"


def test_without_a_model_all_is_well_too(home: Path) -> None:
    with MemoryService(settings(home, embedding_model="none")) as service:
        service.reindex(W, full=True)
        findings = {finding.name: finding for finding in service.examine(W)}
    assert wrong(findings) == {}
    assert "by words alone" in findings["model"].detail


def test_the_bundled_model_is_sound(home: Path) -> None:
    with MemoryService(settings(home)) as service:
        service.reindex(W, full=True)
        assert [finding for finding in service.examine(W) if not finding.ok] == []


def test_a_home_that_is_not_there_yet_is_not_made(tmp_path: Path) -> None:
    findings = examined(tmp_path / "none")
    assert list(findings) == [*parts(tmp_path / "none")[:-4], "workspace", "readers"]
    assert wrong(findings) == {}
    assert findings["workspace"].detail == "there is none of the name default yet; a first memory makes it"
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_index(home: Path) -> None:
    for path in (home / W).glob("index.sqlite*"):
        path.unlink()
    (home / W / "index.sqlite").write_bytes(os.urandom(20_000))
    before = below(home)
    found = wrong(examined(home))
    assert set(found) == {"index", "files", "retrieval"}
    assert "is damaged" in found["index"].detail
    assert found["index"].remedy == "Delete it and run `memory-service reindex`; no memory is lost."
    assert below(home) == before


def test_no_index(home: Path) -> None:
    for path in (home / W).glob("index.sqlite*"):
        path.unlink()
    before = below(home)
    found = wrong(examined(home))
    assert found["index"].detail == "there is no index yet"
    assert found["index"].remedy == "Run `memory-service reindex`."
    assert below(home) == before


def test_an_index_of_another_model(home: Path) -> None:
    found = wrong(examined(home, HashEmbedder(seed=1)))
    assert found["index"].detail == "another model or version made the index"
    assert found["index"].remedy == "Run `memory-service reindex --full`."


def test_a_rebuild_that_was_interrupted(home: Path) -> None:
    index = Index(home / W, HashEmbedder(seed=1))
    with pytest.raises(SyncCancelled):
        index.sync(full=True, cancelled=stopping_after(8))
    index.close()
    found = wrong(examined(home, HashEmbedder(seed=1)))["index"]
    assert re.fullmatch(r"a rebuild was interrupted at \d+% \(index-2\.sqlite\)", found.detail)
    assert found.remedy == "Run `memory-service reindex --full`. It goes on from there."
    found = wrong(examined(home))["index"]
    assert found.detail == "index-2.sqlite is left of a rebuild for another model or version"
    assert found.remedy == "Run `memory-service reindex --full`. It is deleted then."
    with MemoryService(settings(home), embedder=HashEmbedder()) as service:
        service.reindex(W, full=True)
    assert wrong(examined(home)) == {}


def test_a_rebuild_that_runs_is_no_fault(home: Path) -> None:
    seen: list[Check] = []
    index = Index(home / W, HashEmbedder(seed=1))
    index.sync(full=True, on_progress=lambda _: seen.append(examined(home, HashEmbedder(seed=1))["index"]))
    index.close()
    assert all(finding.ok for finding in seen)
    shares = [re.fullmatch(r"it is being made anew: (\d+)% of the files are done", finding.detail) for finding in seen]
    assert all(shares) and examined(home, HashEmbedder(seed=1))["index"].ok


def stopping_after(times: int) -> Callable[[], bool]:
    """Says no so many times, and then yes."""
    asked = iter(range(times))
    return lambda: next(asked, None) is None


def test_passages_without_a_vector(home: Path) -> None:
    failing = FailingEmbedder(EmbedderUnavailable("The model is gone. Install it."))
    with MemoryService(settings(home), embedder=failing) as service:
        service.remember(W, "written while the model was gone")
    found = wrong(examined(home))
    assert found["index"].detail == "1 of 14 passages have no vector"
    assert found["index"].remedy.endswith("then search, or run `memory-service reindex`.")


def test_a_file_that_is_not_utf_8(home: Path) -> None:
    (home / W / "memory/bad.md").write_bytes(b"- caf\xe9\n")
    with MemoryService(settings(home), embedder=HashEmbedder()) as service:
        service.reindex(W)
    found = wrong(examined(home))
    assert set(found) == {"files"}
    assert found["files"].detail.startswith("memory/bad.md is not indexed: it is not UTF-8 (byte 0xe9 in line 1)")
    assert found["files"].remedy == "Save it as UTF-8. Then run `memory-service reindex`."


def test_a_folder_named_like_a_note(home: Path) -> None:
    (home / W / "memory/folder.md").mkdir()
    assert wrong(examined(home)) == {}


def test_files_that_changed(home: Path) -> None:
    write_documents(home, {"memory/new.md": "- new\n"})
    with closing(open_storage(settings(home))) as storage:
        assert storage.workspace(W).documents.remove("memory/2026-11-01.md")
    found = wrong(examined(home))
    assert set(found) == {"files"}
    assert found["files"].detail == "2 files changed since the last reindex"
    assert found["files"].remedy == "Run `memory-service reindex`."


def test_files_that_are_not_found_by_their_own_words(home: Path) -> None:
    texts = {day: f"Something else altogether, about wombats and item{day} of the list." for day in range(1, 13)}
    write_documents(home, {f"memory/2026-11-{day:02}.md": f"- {text}\n" for day, text in texts.items()})
    found = wrong(examined(home))
    assert set(found) == {"files", "retrieval"}
    assert found["retrieval"].detail.endswith("of 10 files are found by a line of theirs")


def test_a_page_in_one_line_is_no_fault(home: Path) -> None:
    line = "The quokka came to the greenhouse and ate all of the basil. " * 400
    write_documents(home, {"memory/2026-11-30.md": f"{line}\n"})
    with MemoryService(settings(home), embedder=HashEmbedder()) as service:
        service.reindex(W)
    assert wrong(examined(home)) == {}


@pytest.mark.parametrize(
    ("embedder", "detail"),
    [
        (AlikeEmbedder(), "hash does not tell likeness from unlikeness"),
        (NotANumberEmbedder(), "hash gives vectors that are not finite or have no length"),
        (MiscountingEmbedder(), "The model hash gave 1 vectors for 3 texts"),
        (FailingEmbedder(EmbedderUnavailable("The model is gone. Install it.")), "The model is gone"),
    ],
    ids=["alike", "not a number", "miscounting", "gone"],
)
def test_a_model_that_is_no_good(home: Path, embedder: HashEmbedder, detail: str) -> None:
    before = below(home)
    findings = examined(home, embedder)
    assert list(findings) == parts(home), "the other parts are looked at all the same"
    assert wrong(findings)["model"].detail == detail
    assert findings["round trip"].detail == "a memory was written, found by words, and erased", "it is named once"
    assert findings["home"].ok
    assert below(home) == before


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    found = wrong(examined(tmp_path / "home"))
    assert set(found) == {"home", "round trip"}
    assert all("choose another --home" in finding.remedy for finding in found.values())


UNWRITABLE = """
from pathlib import Path
from memory_service.service import MemoryService
from memory_service.storage.engines import open_storage
from tests.serving import settings
from tests.storages import write_documents
home = Path(sys.argv[1])
service = MemoryService(settings(home), embedder=HashEmbedder())
list(service.examine("default"))
drop()
for finding in service.examine("default"):
    print(finding.name, finding.ok, finding.detail, finding.remedy, sep="|")
"""


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_home_that_cannot_be_written(own_folder: Path, home: Path) -> None:
    home = home.rename(own_folder / "home")
    for place in home.rglob("*"):  # by another user, whom they do not shut out
        if not place.is_symlink():
            place.chmod(0o755 if place.is_dir() else 0o644)
    for folder in (home, home / W, home / W / "memory"):
        folder.chmod(0o555)
    before = below(home)
    try:
        lines = [line.split("|") for line in run_unprivileged(UNWRITABLE, home).splitlines()]
    finally:
        for folder in (home, home / W, home / W / "memory"):
            folder.chmod(0o755)
    findings = {name: Check(name=name, ok=ok == "True", detail=d, remedy=r) for name, ok, d, r in lines}
    assert list(findings) == PARTS
    found = wrong(findings)
    assert set(found) - {"files"} == {"home", "round trip"}, "a file whose mode changed may have changed"
    assert found["home"].detail == f"{home} cannot be used: it cannot be written"
    assert found["home"].remedy == "Mend that, or choose another --home."
    assert found["round trip"].detail.endswith("cannot be used (Permission denied)")
    assert below(home) == before


def test_a_home_that_cannot_even_be_looked_at(tmp_path: Path) -> None:
    """As below a folder that may not be searched."""
    findings = examined(tmp_path / ("a" * 300))
    assert set(wrong(findings)) >= {"home", "workspace"}
    assert "model" in findings


@pytest.mark.parametrize("note", ["- Bins out Monday.", "备用钥匙在花盆下。", "# Day\n\n- tea\n- milk"])
def test_retrieval_is_tried_in_a_workspace_of_one_short_note(tmp_path: Path, note: str) -> None:
    write_documents(tmp_path / "home", {"memory/2026-11-20.md": f"{note}\n"})
    with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as service:
        service.reindex(W)
    (found,) = [each for each in examined(tmp_path / "home").values() if each.name == "retrieval"]
    assert (found.ok, found.detail) == (True, "1 of 1 files are found by a line of theirs")


def test_a_workspace_with_nothing_to_ask_for_says_so(tmp_path: Path) -> None:
    write_documents(tmp_path / "home", {"memory/2026-11-20.md": "# Day\n"})
    with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as service:
        service.reindex(W)
    found = examined(tmp_path / "home")["retrieval"]
    assert found.ok and "no memory file has a line to ask for" in found.detail


def test_the_doctor_asks_sqlite_vec(home: Path) -> None:
    with watched_statements() as statements:
        assert examined(home)["index"].ok
    assert sum("embedding MATCH" in statement for statement in statements) == 5
