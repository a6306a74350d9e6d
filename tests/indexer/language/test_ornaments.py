"""Readers that fail: what passes through, what is counted and logged, and texts that once made one fail or hang."""

from __future__ import annotations

import logging

import pytest

from indexer import Index, QueryInvalid, SyncCancelled
from indexer.language.fact_words import leads_with_day, leads_with_time
from indexer.language.facts import facts_of, is_named
from indexer.language.ornaments import FAILURES, ornament
from indexer.sync.run import Sync
from tests.growth import assert_grows_at_most
from tests.indexer.workspace import Workspace

pytestmark = pytest.mark.failing_readers
POISON = (
    "The editor is Vim with a long list of plugins that nobody has ever read in full.",
    "A virtual environment is a self-contained Python environment that allows you to isolate things.",
    "Our documentation site is Obsidian Publish and version control is managed via a public repository.",
    "Our database is Postgres and the cache is Redis and the queue is RabbitMQ and logs go to Loki",
    "数据库是 Postgres，里面有一长串从来没有人从头到尾完整读过一遍的很长很长很长很长很长很长很长很长很长的表。",
    "Unsere Datenbank ist Postgres mit einer langen Liste von Erweiterungen, die niemand je ganz gelesen hat.",
)


def count_of(reader: str) -> int:
    return FAILURES.counts().get(reader, 0)


def test_a_failure_is_counted_and_its_first_one_logged_without_the_text(caplog: pytest.LogCaptureFixture) -> None:
    before = count_of("facts")
    for text in ("quokka 1", "quokka 2", "quokka 3"):
        assert ornament("facts", 7, int, text) == 7
    assert ornament("facts", 7, int, "8") == 8
    assert count_of("facts") == before + 3
    [line] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "facts" in line and "ValueError" in line and "quokka" not in line


@pytest.mark.parametrize(
    "error", [QueryInvalid("Ask."), SyncCancelled("Stopped."), OSError("disk"), MemoryError(), KeyboardInterrupt()]
)
def test_what_says_more_than_that_a_reader_is_at_fault_passes(error: BaseException) -> None:
    def read() -> None:
        raise error

    before = FAILURES.counts()
    with pytest.raises(type(error)):
        ornament("facts", None, read)
    assert FAILURES.counts() == before


@pytest.mark.parametrize("text", POISON)
def test_no_sentence_is_too_long_for_its_facts(text: str) -> None:
    facts_of(text, (), None, "memory/2026-01-02.md")


@pytest.mark.parametrize("reads", [leads_with_day, leads_with_time])
def test_a_long_number_before_a_day_takes_no_longer_than_its_length(reads: object) -> None:
    assert callable(reads)
    assert_grows_at_most(20, lambda size: reads(f"{'5' * size}% of 1; Monday at 10:30"), 20, 200)


def test_a_line_number_of_any_length_is_read() -> None:
    assert not is_named(f"memory/a.md#L{'9' * 5_000}", "memory/a.md", 1, 3, "text")
    assert is_named("memory/a.md#L2", "memory/a.md", 1, 3, "text")


def test_a_workspace_that_a_sentence_had_stopped_heals(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise IndexError("list index out of range")

    workspace.write_items("memory/2026-11-20.md", ["The kettle is new.", POISON[0]])
    index = Index(workspace.root, None)
    with monkeypatch.context() as patch:
        # As if nothing caught it: the sync ends where it used to end.
        patch.setattr(Sync, "_store_batch", stop)
        with pytest.raises(IndexError):
            index.sync()
    assert index.sync().added == 1
    assert index.search("which editor?").hits[0].passage.text == POISON[0]
    index.close()


def test_a_file_whose_reading_meets_a_defect_is_named_and_the_others_go_on(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        workspace.write_items(f"memory/{name}.md", [f"The {name} kettle is new."])
    index, real = Index(workspace.root, None), Sync._compare

    def compared(sync: Sync, grown: object, path: str, before: object) -> object:
        if path == "memory/b.md":
            raise RuntimeError("quokka")
        return real(sync, grown, path, before)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Sync, "_compare", compared)
        report = index.sync()
    assert (report.added, [failure.path for failure in report.failed]) == (2, ["memory/b.md"])
    assert "quokka" not in report.failed[0].reason
    assert [failure.path for failure in index.status().failed] == ["memory/b.md"]
    assert {hit.path for hit in index.search("kettle").hits} == {"memory/a.md", "memory/c.md"}
    assert index.sync().failed == ()
    assert index.status().failed == ()
    assert len(index.search("kettle").hits) == 3
    index.close()
