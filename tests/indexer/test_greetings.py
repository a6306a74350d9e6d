from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer import Index
from indexer.corpus import find_greetings
from indexer.engine.reader_manager import PACK_PASSAGES
from indexer.testing import HashEmbedder
from tests.indexer.talks import log_of, message
from tests.indexer.workspace import TODAY, Workspace

_ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 0, 7])), max_size=6)
_TALK = ("Elise: Hey Kate! How is work?", "Emi: I work at the harbour") * 2
_HAN_TALK = ("小红：嗨，小鱼！工作怎么样？", "李娜：我在港口工作") * 2


@given(st.lists(_ROWS, max_size=4))
def test_greetings_against_loops(files: list[list[tuple[int, int]]]) -> None:
    """Rows of (label, greeted name), file by file."""
    expected, row = list[tuple[int, int, int]](), 0
    for file in files:
        speakers = {label for label, _ in file if label}
        for label, name in file:
            if label and name and len(speakers) == 2:
                expected.append((row, label, sum(speakers) - label))
            row += 1
    every = [each for file in files for each in file]
    found = find_greetings(
        np.cumsum([0, *map(len, files)]),
        np.array([label for label, _ in every], np.int64),
        np.array([name for _, name in every], np.int64),
    )
    assert list(zip(found.rows.tolist(), found.speakers.tolist(), found.others.tolist(), strict=True)) == expected
    assert Counter(found.with_names({7: "kate"})) == Counter((label, other, "kate") for _, label, other in expected)
    assert list(found.with_names({})) == []
    assert list(found.with_names({7: "kate"}, np.zeros(row, bool))) == []


@pytest.fixture(params=["in memory", "packed"])
def index(workspace: Workspace, request: pytest.FixtureRequest) -> Iterator[Index]:
    """An index that `refreshed` packs, or that is never packed."""
    most = 0 if request.param == "packed" else PACK_PASSAGES
    index = Index(workspace.root, HashEmbedder(), today=lambda: TODAY, pack_passages=most)
    yield index
    index.close()


def refreshed(index: Index) -> None:
    index.sync()
    if index.status().slow:
        index.pack()
        assert index.status().packed


def named(index: Index, question: str) -> set[str | None]:
    """Whose passages have the bonus for a speaker who is named."""
    hits = index.search(question, explain=True, limit=50).hits
    return {hit.passage.label for hit in hits if hit.signals and hit.signals["speaker"] > 0}


def write_talks(workspace: Workspace, talk: Sequence[str]) -> None:
    """The same on two days: each greeting stands there four times."""
    for day in (1, 2):
        workspace.write_items(f"memory/2026-11-0{day}.md", [f"{line} {number}" for number, line in enumerate(talk)])


@pytest.mark.parametrize(
    ("talk", "question", "other"), [(_TALK, "Where does Kate work?", "Emi"), (_HAN_TALK, "小鱼在哪里工作", "李娜")]
)
def test_a_name_that_the_other_one_greets_with_names_the_speaker(
    workspace: Workspace, index: Index, talk: Sequence[str], question: str, other: str
) -> None:
    workspace.write_items("memory/2026-11-01.md", talk)
    refreshed(index)
    assert named(index, question) == set(), "greeted twice: it may be somebody else"
    write_talks(workspace, talk)
    index.sync()
    assert named(index, question) == {other}
    refreshed(index)
    assert named(index, question) == {other}


def test_a_name_goes_with_the_greetings(workspace: Workspace, index: Index) -> None:
    write_talks(workspace, _TALK)
    refreshed(index)
    (workspace.root / "memory/2026-11-02.md").unlink()
    index.sync()
    assert named(index, "Where does Kate work?") == set()
    (workspace.root / "memory/2026-11-01.md").unlink()
    workspace.write_items("memory/2026-11-03.md", ["Ann: work", "Bob: works", "Ann: working", "Bob: worked"])
    index.sync()
    index.scrub()
    for file in workspace.root.glob("*index*"):
        assert not file.is_file() or b"kate" not in file.read_bytes(), file.name


@pytest.mark.parametrize("greeting", ["Hey man!", "Hi There!", "Hello World!", "Thanks Guys!", "hey kate!"])
def test_what_anybody_is_called_names_nobody(workspace: Workspace, index: Index, greeting: str) -> None:
    write_talks(workspace, [f"Elise: {greeting} How is work?", "Emi: I work at the harbour"] * 2)
    refreshed(index)
    assert named(index, f"Does a {greeting.split()[1].strip('!')} work in the world?") == set()


def test_where_more_than_two_speak_nobody_knows_who_is_greeted(workspace: Workspace, index: Index) -> None:
    write_talks(workspace, (*_TALK, "Bob: work", "Bob: works"))
    refreshed(index)
    assert named(index, "Where does Kate work?") == set()


def test_a_greeted_third_person_who_speaks_elsewhere_is_that_one(workspace: Workspace, index: Index) -> None:
    write_talks(workspace, _TALK)
    workspace.write_items("memory/2026-11-03.md", ["Kate: I work", "Bob: no work", "Kate: works", "Bob: worked"])
    refreshed(index)
    assert named(index, "Where does Kate work?") == {"Kate"}


def test_one_nickname_of_two_is_both(workspace: Workspace, index: Index) -> None:
    write_talks(workspace, _TALK)
    others = ["Ida: Hey Kate! Do you work?", "Katharina: my work is done"] * 3
    workspace.write_items("memory/2026-11-03.md", others)
    refreshed(index)
    assert named(index, "Where does Kate work?") == {"Emi", "Katharina"}


def test_speakers_of_a_session_are_greeted_too(workspace: Workspace, index: Index) -> None:
    said = [("Hey Kate! How is work?", "Elise"), ("I work at the harbour", "Emi")] * 3
    (workspace.root / "sessions").mkdir()
    talk = log_of(*(message(f"{text} {number}", name=name) for number, (text, name) in enumerate(said)))
    (workspace.root / "sessions" / "talk.jsonl").write_bytes(talk)
    refreshed(index)
    assert named(index, "Where does Kate work?") == {"Emi"}
    assert named(index, "Where does Elise work?") == {"Elise"}
