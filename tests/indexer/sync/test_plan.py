from __future__ import annotations

import datetime as dt
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from indexer.documents.markdown import split_markdown
from indexer.language.breadcrumbs import embedded_text
from indexer.language.search_terms import passage_terms
from indexer.sources.base import Scan, SourceFile
from indexer.sources.scan import is_settled, packed_stat
from indexer.stores.base import FileState, StoredPassage
from indexer.sync.plan import PassageDiff, _plan_sync, compare, text_hash
from indexer.types import FileFailure, Passage


def source(path: str, *, size_bytes: int = 1) -> SourceFile:
    return SourceFile(path=path, source="memory", size_bytes=size_bytes, version=packed_stat(size_bytes, 1, 1, 1))


def state(path: str, *, failure: str = "", checked_ns: int = 10**12) -> FileState:
    return FileState(
        path=path,
        source="memory",
        size_bytes=1,
        version=packed_stat(1, 1, 1, 1),
        checked_ns=checked_ns,
        content_hash="h",
        failure=failure,
        revision=3,
    )


PATH = "memory/2026-11-20.md"


def known_of(passages: list[Passage]) -> list[StoredPassage]:
    return [
        StoredPassage(
            key=100 + at,
            path=PATH,
            source="memory",
            ordinal=at,
            passage=passage,
            text_hash=text_hash(embedded_text(passage, PATH)),
        )
        for at, passage in enumerate(passages)
    ]


def test_plan_tells_what_to_read_and_what_to_forget() -> None:
    scan = Scan(
        files={path: source(path) for path in ("same", "new", "doubtful", "failing")}
        | {"changed": source("changed", size_bytes=2)},
        failures=(FileFailure(path="memory/closed", reason="closed"),),
        unchanged=7,
    )
    states = {path: state(path) for path in ("same", "changed", "gone", "memory/closed/kept")}
    states |= {"doubtful": state("doubtful", checked_ns=5), "failing": state("failing", failure="bad")}
    plan = _plan_sync(scan, states, is_settled, wanted=lambda path: True)
    assert [file.path for file in plan.added] == ["new"]
    assert {file.path for file in plan.suspects} == {"changed"}
    assert [file.path for file in plan.unsure] == ["doubtful"]
    assert plan.removed == ("gone",)
    assert plan.unchanged == 8
    assert {failure.path for failure in plan.failures} == {"memory/closed", "failing"}


def test_plan_looks_at_what_is_wanted_alone() -> None:
    scan = Scan(files={"a": source("a"), "b": source("b")}, failures=())
    plan = _plan_sync(scan, {"c": state("c"), "d": state("d")}, is_settled, wanted=lambda path: path in "bd")
    assert ([file.path for file in plan.added], plan.removed) == (["b"], ("d",))


def applied(known: list[StoredPassage], diff: PassageDiff) -> list[Passage]:
    """What an index holds after a diff, in order."""
    gone = {stored.key for stored in diff.removed}
    held = {stored.key: (stored.ordinal, stored.passage) for stored in known if stored.key not in gone}
    held |= {key: (ordinal, passage) for key, ordinal, passage in diff.moved}
    both = [*held.values(), *diff.inserted]
    assert sorted(ordinal for ordinal, _ in both) == list(range(len(both)))
    return [passage for _, passage in sorted(both, key=lambda pair: pair[0])]


LINES = st.lists(
    st.sampled_from(["- one\n", "- two\n", "- one\n\n", "# A\n\n", "# B 2026-11-02\n\n", "text\n\n"]), max_size=12
)


@given(LINES, LINES)
def test_a_diff_makes_the_new_file_of_the_old(before: list[str], after: list[str]) -> None:
    old, new = (split_markdown("".join(lines), path=PATH) for lines in (before, after))
    known = known_of(old)
    diff = compare(new, known, path=PATH)
    assert applied(known, diff) == new
    if before == after:
        assert diff == PassageDiff(inserted=(), moved=(), removed=())
    # A passage that stays keeps what its terms and its vector's columns were made of.
    stayed = {stored.key: stored.passage for stored in known}
    for key, _, passage in diff.moved:
        assert (passage_terms(passage, PATH), passage.date) == (
            passage_terms(stayed[key], PATH),
            stayed[key].date,
        )


def test_what_is_pushed_down_is_moved_and_not_made_anew() -> None:
    old = split_markdown("- one\n- two\n", path=PATH)
    new = split_markdown("- zero\n- one\n- two\n", path=PATH)
    diff = compare(new, known_of(old), path=PATH)
    assert [passage.text for _, passage in diff.inserted] == ["zero"]
    assert [(key, ordinal, passage.start_line) for key, ordinal, passage in diff.moved] == [(100, 1, 2), (101, 2, 3)]
    assert diff.removed == ()


def test_another_day_or_title_makes_a_passage_anew() -> None:
    old = [Passage(start_line=1, end_line=1, text="x", heading=("A",), opens_section=True, date=dt.date(2026, 1, 1))]
    for changed in (replace(old[0], date=dt.date(2026, 1, 2)), replace(old[0], heading=("B",))):
        assert len(compare([changed], known_of(old), path=PATH).inserted) == 1
    assert len(compare([replace(old[0], heading=("10:30", "A"))], known_of(old), path=PATH).moved) == 1


def test_another_title_further_up_makes_a_passage_anew() -> None:
    old = [Passage(start_line=1, end_line=1, text="x", heading=("Y", "A"))]
    assert len(compare([replace(old[0], heading=("Z", "A"))], known_of(old), path=PATH).inserted) == 1


def test_a_row_that_is_only_written_otherwise_is_made_anew() -> None:
    old = [Passage(start_line=3, end_line=3, text="| a | b |", columns="| x | y |")]
    assert len(compare([replace(old[0], text="|a|b|")], known_of(old), path=PATH).inserted) == 1


def test_terms_are_those_of_the_text_and_of_all_that_stands_above_it() -> None:
    passage = Passage(start_line=1, end_line=1, text="red fish", heading=("Top", "Sea"), columns="| name |")
    assert passage_terms(passage, "memory/2026-11-20.md") == ("top", "sea", "name", "red", "fish")
    assert passage_terms(replace(passage, columns=""), "memory/Old Boat.md") == (
        *("top", "sea", "old", "boat", "red", "fish"),
    )


def test_an_hour_is_a_term_of_the_passage_that_it_opens_alone() -> None:
    passage = Passage(start_line=1, end_line=1, text="red", heading=("14:32",), opens_section=True)
    assert passage_terms(passage, PATH) == ("14", "32", "red")
    assert passage_terms(replace(passage, opens_section=False), PATH) == ("red",)


def test_any_text_has_a_hash() -> None:
    assert len(text_hash("\ud800")) == len(text_hash("")) == 16
    assert text_hash("a") != text_hash("b")
