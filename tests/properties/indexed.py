"""Properties of an index: what a search may find, packed or not, and what changes while a file is read, while an
index is rebuilt, and between two uses of a model.

Each property stands in a function of its own, so that a mutant can ask for it alone.
"""

from __future__ import annotations

import builtins
import datetime as dt
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from indexer import Embedder, EmbedderUnavailable, EmbeddingError, Hit, Index, Mode, SearchFilter
from indexer.embeddings.base import CachedEmbedder
from indexer.engine.segments.builder import open_segment, pack_store
from indexer.engine.segments.segment import Segment
from indexer.sources import scan
from indexer.sources.base import Content
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from indexer.types import LineRange, SourceKind, Vectors
from tests.indexer.rebuilds import content, rebuild
from tests.indexer.stores import test_store_contract as stores
from tests.indexer.talks import batches, turns
from tests.indexer.workspace import TODAY, Workspace, make_old

_FIRST = dt.datetime(2026, 3, 1, 1, 0, tzinfo=dt.UTC)
_WORDS = ("wombat", "quokka", "numbat", "袋鼠", "会议", "笔记")
_PAGES = tuple(f"memory/2026-{month:02}-05.md" for month in range(2, 6))
_TALK = "sessions/talk.jsonl"
_DAYS = (None, *(dt.date(2026, *day) for day in ((2, 5), (2, 20), (3, 1), (3, 4), (5, 5))))


def _said(number: int) -> str:
    return f"{_WORDS[number % 6]} {_WORDS[number * 7 % 5]} note{number}"


def _filled(workspace: Workspace, *, items: int, messages: int) -> Workspace:
    """Pages of some days, one of none, and a talk over many days, three messages on each."""
    for number, path in enumerate((*_PAGES, "MEMORY.md")):
        workspace.write_items(path, [_said(items * number + each) for each in range(items)])
    said = turns(*(_said(10_000 + each) for each in range(messages)))
    log = b"".join(batches(*([message] for message in said), at=_FIRST, step=dt.timedelta(hours=8)))
    workspace.write(_TALK, log)
    return workspace


def _index(workspace: Workspace, *, is_packed: bool) -> Index:
    """An index of all there is."""
    index = Index(workspace.root, HashEmbedder(), pack_passages=0 if is_packed else 1_000_000, today=lambda: TODAY)
    index.sync()
    assert bool(index.status().packed) == is_packed
    return index


def _index_but(workspace: Workspace, later: Sequence[str], *, is_packed: bool) -> Index:
    """An index of all there is, some pages of which were written after the packing."""
    pages = {path: (workspace.root / path).read_bytes() for path in later}
    for path in pages:
        (workspace.root / path).unlink()
    index = _index(workspace, is_packed=is_packed)
    for path, text in pages.items():
        workspace.write(path, text)
        index.sync([path])
    return index


def _may_be_found(hit: Hit, kept: SearchFilter) -> bool:
    """What a filter says, word for word."""
    if kept.sources and hit.source not in kept.sources:
        return False
    day = hit.passage.date
    if (kept.since or kept.until) and day is None:
        return False
    if day and not (kept.since or dt.date.min) <= day <= (kept.until or dt.date.max):
        return False
    return hit.path.startswith(kept.path_prefix) and not any(
        hit.path == lines.path and lines.start_line <= hit.passage.start_line and hit.passage.end_line <= lines.end_line
        for lines in kept.without
    )


def _filters() -> Iterator[SearchFilter]:
    for since, until in product(_DAYS, _DAYS):
        yield SearchFilter(since=since, until=until)
    seen = tuple(LineRange(path=path, start_line=2, end_line=4) for path in (_PAGES[1], _TALK, "none"))
    kinds: tuple[tuple[SourceKind, ...], ...] = ((), ("memory",), ("sessions",), ("files",))
    for kind, prefix, until in product(kinds, ("", "memory/2026-03"), (None, _DAYS[4])):
        yield SearchFilter(sources=kind, path_prefix=prefix, until=until, without=seen)


def _places(hits: Sequence[Hit]) -> set[tuple[str, int]]:
    return {(hit.path, hit.passage.start_line) for hit in hits}


def _all_hits(index: Index, mode: Mode, kept: SearchFilter) -> tuple[Hit, ...]:
    return index.search("wombat 袋鼠", limit=1_000, mode=mode, filter=kept).hits


def check_every_filter_keeps_what_it_says(home: Path) -> None:
    """Packed, packed in part or not at all: what days, sources, paths and lines leave is found, and nothing else."""
    modes: tuple[Mode, ...] = ("hybrid", "text", "vector")
    for is_packed, later in ((True, ()), (True, _PAGES[1:3]), (False, ())):
        workspace = _filled(Workspace(home / f"packed-{is_packed}-{len(later)}"), items=5, messages=12)
        index = _index_but(workspace, later, is_packed=is_packed)
        for mode in modes:
            every = _all_hits(index, mode, SearchFilter())
            assert mode == "text" or len(every) == 37
            for kept in _filters():
                expected = _places([hit for hit in every if _may_be_found(hit, kept)])
                assert _places(_all_hits(index, mode, kept)) == expected, (mode, kept)


def check_no_neighbour_passes_a_filter(home: Path) -> None:
    """Also where more rows are allowed than are all looked at, what lies beside the nearest is not found for that."""
    index, log = _index(_filled(Workspace(home / "large"), items=20, messages=2_100), is_packed=True), _TALK
    holes = tuple(LineRange(path=log, start_line=at, end_line=at) for at in range(40, 2_100, 40))
    for kept in (
        SearchFilter(without=holes),
        SearchFilter(sources=("sessions",), without=holes),
        SearchFilter(path_prefix="sessions/", until=dt.date(2028, 1, 20), without=holes),
    ):
        # The message behind the one that is left out, on the same day.
        for question in (_said(10_079), _said(10_199)):
            hits = index.search(question, limit=50, filter=kept).hits
            assert hits[0].passage.text == question
            assert [hit for hit in hits if not _may_be_found(hit, kept)] == []


def check_a_page_written_again_has_its_new_words(home: Path) -> None:
    """Beside a packed part, of a page that is written again and again only what it says now is found."""
    workspace = _filled(Workspace(home / "w"), items=3, messages=3)
    index, path = _index(workspace, is_packed=True), _PAGES[0]
    states = ("river 河流", "forest 森林", "mountain 山脉", "desert 沙漠")
    for state in states:
        workspace.write_items(path, [state, "wombat"])
        index.sync([path])
        assert index.status().packed, "the page is looked at beside the packed part"
        for words in states:
            for word in words.split():
                found = [hit for hit in index.search(word, mode="text").hits if hit.text_score > 0]
                assert [hit.passage.text for hit in found] == ([state] if words == state else []), (state, word)


def check_a_text_search_finds_what_lies_around_its_words(home: Path) -> None:
    """By words alone, a passage beside one that has the word is found, behind it; one far from it is not."""
    for is_packed in (False, True):
        workspace = Workspace(home / f"packed-{is_packed}")
        for name, word in (("en", "platypus"), ("zh", "鸭嘴兽")):
            around = [f"plain line number {at}" if name == "en" else f"普通的第{at}行" for at in range(40)]
            workspace.write_items(f"memory/{name}.md", [*around[:20], word, *around[20:]])
        index = _index(workspace, is_packed=is_packed)
        for name, word in (("en", "platypus"), ("zh", "鸭嘴兽")):
            hits = index.search(word, mode="text", limit=50).hits
            assert hits[0].passage.text == word
            assert {hit.path for hit in hits} == {f"memory/{name}.md"}
            assert {20, 22} <= {hit.passage.start_line for hit in hits} <= set(range(11, 32))


class _Torn:
    """A stream whose file is written over when half of it is read: other bytes, as many."""

    def __init__(self, stream: IO[bytes], path: Path, now: bytes) -> None:
        self._stream, self._path, self._now = stream, path, now

    def __enter__(self) -> _Torn:
        return self

    def __exit__(self, *given: object) -> None:
        self._stream.close()

    def fileno(self) -> int:
        return self._stream.fileno()

    def read(self) -> bytes:
        half = self._stream.read(len(self._now) // 2)
        self._path.write_bytes(self._now)
        return half + self._stream.read()


def _read_while_it_changes(path: Path, now: bytes) -> Content:
    """A file as it is read, when it is written over while it is read for the first time."""
    opened = list[Any]()

    def torn(*given: Any, **named: Any) -> Any:
        opened.append(builtins.open(*given, **named))
        return _Torn(opened[0], path, now) if len(opened) == 1 else opened[-1]

    file = scan.source_file("memory/a.md", os.lstat(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "open", torn, raising=False)
        read = scan.read(path.parent.parent, file, max_bytes=1 << 20)
    assert opened, "the file was read through the stream that changes it"
    return read


def check_what_is_read_is_one_state_of_a_file(home: Path) -> None:
    """A file that changes to as many other bytes between its opening and its closing is read again."""
    for number, (before, now) in enumerate((("old wombat\n", "new quokka\n"), ("旧的笔记\n", "新的会议\n"))):
        path = Workspace(home / str(number)).write("memory/a.md", before * 5_000)
        make_old(path)
        read = _read_while_it_changes(path, (now * 5_000).encode())
        assert (read.text, read.failure) == (now * 5_000, "")
        assert read.file == scan.source_file("memory/a.md", os.lstat(path))


def _pages(workspace: Workspace, count: int) -> Workspace:
    for number in range(count):
        workspace.write_items(f"memory/{number}.md", [f"quokka q{number}x{each}" for each in range(10)])
    return workspace


def check_a_page_that_comes_and_goes_is_no_trouble_for_a_rebuild(home: Path) -> None:
    """It is written and removed while the rebuild catches up, as a page that another process removes is."""
    workspace = _pages(Workspace(home / "w"), 3)
    workspace.synced(HashEmbedder()).close()
    index, other = workspace.index(HashEmbedder(seed=1)), workspace.index(HashEmbedder(seed=1))
    left = ["memory/came.md", "memory/来去.md"]

    def reached(step: str) -> None:
        if step == "caught up" and left:
            path = left.pop()
            workspace.write_items(path, ["wombat"])
            other.sync([path])
            (workspace.root / path).unlink()
            other.sync([path], missing_ok=True)

    assert _failure(lambda: rebuild(index, reached)) is None
    assert not left
    assert len(content(index)) == len(content(other)) == 30
    counts = index.status().counts
    assert index.status().stored == index.fingerprint and counts is not None and counts.files == 3


def _failure(act: Callable[[], object]) -> Exception | None:
    try:
        act()
    except Exception as error:  # whatever it is, the property names it
        return error
    return None


class _Partly(HashEmbedder):
    """A model that is down for some texts."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if any("changed" in text for text in texts):
            raise EmbedderUnavailable("The model is gone. Bring it back.")
        return super().embed_documents(texts)


def check_a_rebuild_that_lost_vectors_is_not_put_in_use(home: Path) -> None:
    """A model that fails for a tenth of the texts or more leaves the index as it was, one that works does not."""
    for changed in (0, 1, 3, 9):
        workspace = _pages(Workspace(home / str(changed)), 10)
        workspace.synced(HashEmbedder()).close()
        for number in range(changed):
            workspace.write_items(f"memory/{number}.md", [f"quokka changed{number}x{each}" for each in range(10)])
        index = workspace.index(_Partly())
        failure = _failure(partial(index.sync, full=True))
        assert isinstance(failure, EmbeddingError) == bool(changed), (changed, failure)
        now = index.status()
        assert now.counts is not None and now.counts.embedded == 100
        assert (now.rebuild is not None) == bool(changed)


class _Changing(HashEmbedder):
    """A model that is exchanged behind its name, as a server's alias may be."""

    def become(self, seed: int) -> None:
        self.fingerprint, self._seed = f"hash-{self.dimensions}-{seed}", seed


def check_no_vector_of_another_model_is_used_again(home: Path) -> None:
    """When the fingerprint of an embedder changes, the cache gives nothing of before, and all of it when it is back."""
    model = _Changing()
    cached: Embedder = CachedEmbedder(model)
    for seed in (0, 1, 2, 0):
        model.become(seed)
        plain, said = HashEmbedder(seed=seed), ["wombat", "袋鼠", f"note{seed}"]
        assert np.array_equal(cached.embed_documents(said), plain.embed_documents(said))
        assert all(np.array_equal(cached.embed_query(text), plain.embed_query(text)) for text in said)


def check_a_vector_is_found_wherever_it_stands(home: Path) -> None:
    """A text has its vector if any file has it."""
    store = SqliteStore(home / "index.sqlite")
    store.begin(stores.MADE)
    stores.check_a_vector_is_found_wherever_it_stands(store)
    store.close()


_PAIRS = (("Ann", "Bob"), ("Cleo", "Bob"), ("小鱼", "李娜"), ("Ann", "Dora"))


def check_a_scrubbed_pack_is_as_one_made_anew(home: Path) -> None:
    """Whatever file is deleted: the packed part without it says what one says that is made of the store as it is."""
    for gone in range(len(_PAIRS)):
        place = home / str(gone)
        (place / "memory").mkdir(parents=True)
        for number, (one, other) in enumerate(_PAIRS):
            lines = [f"- {one}: Hey {other}! word{at} of {number}\n- {other}: 好 {at}\n" for at in range(4)]
            (place / "memory" / f"2026-11-0{number + 1}.md").write_text("".join(lines), "utf-8")
        index = Index(place, HashEmbedder(), pack_passages=10)
        index.sync()
        index.pack()
        (place / "memory" / f"2026-11-0{gone + 1}.md").unlink()
        index.sync()
        index.scrub()
        index.close()
        store = SqliteStore(place / "index.sqlite")
        packed = place / "index.sqlite.pack"
        scrubbed = open_segment(packed, store.head().generation)
        anew = pack_store(store, packed)
        store.close()
        assert scrubbed is not None and anew is not None
        assert len(scrubbed) == 24
        for name, value in _content(anew).items():
            np.testing.assert_array_equal(_content(scrubbed)[name], value, f"{name}, without {_PAIRS[gone]}")


def _content(segment: Segment) -> dict[str, Any]:
    """What a segment says of its rows; not when it was made, nor what its codes were fitted to."""
    rows = np.arange(len(segment))
    ranges = {name: getattr(segment, name) for name in ("pairs", "triples", "windows")}
    words = segment.postings
    return {
        **{name: getattr(segment, name) for name in ("paths", "sources", "files", "starts", "totals", "days", "marks")},
        **{name: getattr(segment, name) for name in ("labels", "greeted", "start_lines", "end_lines")},
        **{f"words.{name}": getattr(words, name) for name in ("terms", "starts", "rows", "repeated", "counts")},
        "words.containing": words.containing,
        "speakers": sorted(segment.speakers),
        "keys": segment.keys(rows),
        # Sections are told apart by their numbers, whatever these are.
        "sections": np.unique(segment.sections, return_inverse=True)[1],
        **{f"{name}.of": reach.of(rows) for name, reach in ranges.items()},
        **{f"{name}.length": reach.length for name, reach in ranges.items()},
    }


CHECKS: tuple[Callable[[Path], None], ...] = (
    check_every_filter_keeps_what_it_says,
    check_no_neighbour_passes_a_filter,
    check_a_page_written_again_has_its_new_words,
    check_a_text_search_finds_what_lies_around_its_words,
    check_what_is_read_is_one_state_of_a_file,
    check_a_page_that_comes_and_goes_is_no_trouble_for_a_rebuild,
    check_a_rebuild_that_lost_vectors_is_not_put_in_use,
    check_no_vector_of_another_model_is_used_again,
    check_a_scrubbed_pack_is_as_one_made_anew,
)
