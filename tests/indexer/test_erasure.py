"""What is erased leaves every generation, also one that is being made or whose making was interrupted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from indexer import Index, SyncCancelled
from indexer.language import terms
from indexer.stores.sqlite_generations import Generations
from indexer.sync import run
from indexer.testing import HashEmbedder
from tests.indexer.rebuilds import is_whole, rebuild
from tests.indexer.workspace import Workspace, every_store, watched_statements


@pytest.fixture
def partial(filled: Workspace) -> Iterator[Index]:
    """An index beside which a rebuild was stopped."""
    index = filled.index(HashEmbedder(seed=1))
    filled.write_items("memory/secret.md", ["the combination is 4711 wombats"])
    index.sync()

    def stop(step: str) -> None:
        if step == "filled":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(index, stop)
    yield index
    index.close()


def on_disk(workspace: Workspace, word: bytes) -> bool:
    return any(word in file.read_bytes() for file in workspace.root.glob("*index*") if file.is_file())


def test_what_is_erased_goes_from_an_interrupted_rebuild_too(filled: Workspace, partial: Index) -> None:
    assert on_disk(filled, b"4711")
    (filled.root / "memory/secret.md").unlink()
    partial.sync()
    partial.scrub()
    assert not on_disk(filled, b"4711")
    state = partial.status().rebuild
    assert state is not None and state.files == 5, "the rest of it is kept"
    partial.sync(full=True)
    is_whole(filled, partial)


@pytest.mark.parametrize("step", ["link put", "switched"])
def test_what_is_erased_goes_from_a_former_generation_too(filled: Workspace, step: str) -> None:
    index = filled.index(HashEmbedder(seed=1))
    filled.write_items("memory/secret.md", ["the combination is 4711 wombats"])
    index.sync()

    def stop(now: str) -> None:
        if now == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(index, stop)
    (filled.root / "memory/secret.md").unlink()
    index.sync()
    assert on_disk(filled, b"4711"), "the former generation was left"
    index.scrub()
    assert not on_disk(filled, b"4711")
    is_whole(filled, index)


def test_what_is_erased_goes_from_a_rebuild_that_is_cancelled(filled: Workspace) -> None:
    index = filled.index(HashEmbedder(seed=1))
    filled.write_items("memory/secret.md", ["the combination is 4711 wombats"])
    index.sync()

    def stop(step: str) -> None:
        if step == "filled":
            (filled.root / "memory/secret.md").unlink()
            index.sync(["memory/secret.md"])
            index.scrub()
            raise SyncCancelled("Enough. Go on.")

    with pytest.raises(SyncCancelled):
        rebuild(index, stop)
    assert not on_disk(filled, b"4711")
    assert Generations(filled.root / "index.sqlite").partial() is not None


def test_a_partial_rebuild_of_another_model_keeps_no_secret(filled: Workspace, partial: Index) -> None:
    filled.index(HashEmbedder(seed=2)).scrub()
    assert Generations(filled.root / "index.sqlite").partial() is None


@every_store
@pytest.mark.parametrize("embedder", [HashEmbedder(), None])
def test_what_other_rules_stored_is_erased(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, embedder: HashEmbedder | None
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(terms, "TERM_RULES", "terms-0")
        earlier.setattr(run, "passage_terms", lambda passage, path: [f"{word}ly" for word in passage.text.split()])
        workspace.write_items("memory/a.md", ["quokka vaultword vaultword", "tea", "密码 opens"])
        workspace.write_items("memory/gone.md", ["another vaultword"])
        workspace.synced(embedder).close()
    assert on_disk(workspace, b"vaultwordly") is workspace.keeps_files
    index = workspace.index(embedder)
    before = index.passages_of(["memory/a.md", "memory/gone.md"])
    workspace.write_items("memory/a.md", ["tea"])
    (workspace.root / "memory/gone.md").unlink()
    assert index.sync().changed == 1
    assert index.scrub()
    found = index.erased_passages(before, ["memory/a.md", "memory/gone.md"])
    assert (found.passages, found.left) == (3, ())
    assert not on_disk(workspace, b"vaultword") and not on_disk(workspace, "密码".encode())
    index.check()
    index.close()


def test_the_terms_of_many_files_are_looked_for_at_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        workspace.write_items(f"memory/{number}.md", ["quokka", f"wombat {number}"])
    with monkeypatch.context() as earlier:
        earlier.setattr(terms, "TERM_RULES", "terms-0")
        workspace.synced().close()
    for number in range(40):
        path = workspace.root / f"memory/{number}.md"
        path.unlink() if number % 2 else workspace.write_items(f"memory/{number}.md", ["quokka"])
    with watched_statements() as statements:
        workspace.synced().close()
    assert len([each for each in statements if each.startswith("SELECT DISTINCT term FROM postings")]) == 2
