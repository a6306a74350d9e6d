"""An index of a source that is no folder finds what it holds, as one of files does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer import Index, SearchFilter, SourceMissing
from indexer.sources.base import Content, SourceFile
from indexer.testing import HashEmbedder
from tests.indexer.memory_source import MemorySource
from tests.indexer.talks import batches, turns
from tests.indexer.workspace import STORE_NAMES, TODAY, NamedStores, texts

FILES = {
    "MEMORY.md": "- The deploy is on Tuesdays.\n- 部署在周二。\n",
    "memory/2026-11-19.md": "# Thursday\n\n- Ann moved to Graz.\n- The fern needs water.\n",
    "@wiki/ports.md": "The staging port is 8443.\n",
    "sessions/talk.jsonl": b"".join(batches(turns("The parcel is on its way.", "Which parcel?"))).decode(),
}
QUESTIONS = ("when is the deploy?", "部署", "where does Ann live?", "staging port", "parcel", "nothing of it")


@pytest.fixture(params=STORE_NAMES)
def index(request: pytest.FixtureRequest, tmp_path: Path, stores: NamedStores) -> Iterator[Index]:
    store = stores.open(request.param, tmp_path)
    made = Index(MemorySource(FILES), HashEmbedder(), store=store, today=lambda: TODAY)
    made.sync()
    yield made
    made.close()


def source_of(index: Index) -> MemorySource:
    assert isinstance(index.source, MemorySource)
    return index.source


def test_it_finds_what_one_of_files_finds(index: Index, tmp_path: Path) -> None:
    root = tmp_path / "folder"
    own = {path: text for path, text in FILES.items() if not path.startswith("@")}
    for path, text in own.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    source_of(index).remove("@wiki/ports.md")
    assert index.sync().removed == 1
    of_files = Index(root, HashEmbedder(), today=lambda: TODAY)
    of_files.sync()
    for question in QUESTIONS:
        assert index.search(question).hits == of_files.search(question).hits
    of_files.close()


def test_it_follows_the_changes(index: Index) -> None:
    source = source_of(index)
    assert texts(index, "staging port", kept=SearchFilter(sources=("files",))) == ["The staging port is 8443."]
    assert (index.status().pending, index.sync().unchanged) == (0, 4)
    source.write("MEMORY.md", "- The deploy is on Fridays.\n")
    source.remove("memory/2026-11-19.md")
    source.write("memory/new.md", "- A cactus came.\n")
    plan = index.plan()
    assert [file.path for file in (*plan.added, *plan.suspects)] == ["memory/new.md", "MEMORY.md"]
    assert (plan.removed, plan.unchanged) == (("memory/2026-11-19.md",), 2)
    report = index.sync(["memory/new.md"])
    assert (report.added, report.changed, report.removed) == (1, 0, 0)
    report = index.sync(full=True)
    assert index.status().pending == 0 and not report.failed
    assert "The deploy is on Fridays." in texts(index, "deploy") and "The fern needs water." not in texts(index, "fern")


def test_a_file_that_cannot_be_read_is_named(index: Index) -> None:
    source_of(index).write("memory/bytes.md", b"\xff")
    (failure,) = index.sync().failed
    assert failure.path == "memory/bytes.md" and "UTF-8" in failure.reason


def test_a_source_that_is_lost_leaves_the_index_as_it_is(index: Index) -> None:
    source_of(index).is_lost = True
    with pytest.raises(SourceMissing):
        index.sync()
    assert texts(index, "staging port")[0] == "The staging port is 8443."


class _Erasing(MemorySource):
    """A source of which a page is erased in the moment in which it was read."""

    def read(self, file: SourceFile, *, max_bytes: int) -> Content:
        content = super().read(file, max_bytes=max_bytes)
        if "wombat" in content.text:
            self.remove(file.path)
        return content


@pytest.mark.parametrize("store", STORE_NAMES)
def test_what_is_erased_while_it_is_read_is_taken_back(store: str, tmp_path: Path, stores: NamedStores) -> None:
    source = _Erasing({**FILES, "memory/secret.md": "- The word is wombat.\n"})
    index = Index(source, HashEmbedder(), store=stores.open(store, tmp_path), today=lambda: TODAY)
    index.sync()
    assert index.passages_of(["memory/secret.md"]) == () and "wombat" not in "".join(texts(index, "wombat"))
    assert index.status().pending == 0
    index.close()
