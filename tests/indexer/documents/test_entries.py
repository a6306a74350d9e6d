"""Comments of entries: whose word a line is, when it was written, and its tags."""

from __future__ import annotations

import datetime as dt

import pytest

from indexer.documents.entries import fold_words, short_hash, tags_of
from indexer.documents.markdown import split_markdown
from indexer.types import Passage, has_tags

TEXT = "Deploys go out on Tuesdays. #ops"


def _page(text: str, *fields: str) -> list[Passage]:
    comment = f"<!-- memory id=m0123456789ab {' '.join(fields)} -->"
    return split_markdown(f"# 2026-11-20\n\n## 14:32\n{comment}\n- {text}\n- By hand.\n", path="memory/2026-11-20.md")


def test_a_text_that_is_no_longer_the_noted_one_is_the_user_s() -> None:
    noted = f"hash={short_hash(fold_words(TEXT))}"
    as_noted, by_hand = _page(TEXT, "origin=agent", noted)
    assert (as_noted.role, as_noted.noted, by_hand.role, by_hand.noted) == ("agent", True, "user", False)
    assert _page(TEXT.replace(" go", "\n  go"), "origin=agent", noted)[0].role == "agent"
    assert _page(TEXT.replace("Tues", "Thurs"), "origin=agent", noted)[0].role == "user"
    assert _page(f"{TEXT}\n  - And on Fridays.", "origin=agent", noted)[0].role == "user"
    # Entries of earlier versions have no hash, and keep their origin.
    assert _page(TEXT.replace("Tues", "Thurs"), "origin=tool")[0].role == "tool"


@pytest.mark.parametrize(
    ("at", "written"),
    [
        ("at=2026-11-20T13:32:07.412Z", dt.datetime(2026, 11, 20, 13, 32, 7, 412_000, tzinfo=dt.UTC)),
        ("at=2026-11-20T14:32:07+01:00", dt.datetime(2026, 11, 20, 13, 32, 7, tzinfo=dt.UTC)),
        # Of another day, without a zone, or none: the hour of the heading counts.
        ("at=2026-03-01T13:32:07Z", dt.datetime(2026, 11, 20, 14, 32)),
        ("at=2026-11-20T14:32:07", dt.datetime(2026, 11, 20, 14, 32)),
        ("at=yesterday", dt.datetime(2026, 11, 20, 14, 32)),
        ("origin=agent", dt.datetime(2026, 11, 20, 14, 32)),
    ],
)
def test_the_moment_of_an_entry_is_read_to_the_millisecond(at: str, written: dt.datetime) -> None:
    assert _page(TEXT, at)[0].written == written


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("a b #Ops #ops #team/浇水", ("ops", "team/浇水")),
        ("#one, (#two) and #three.", ("one", "two", "three")),
        ("部署在周二。#运维，下周。", ("运维",)),
        ("x #हिन्दी", ("हिन्दी",)),
        ("C# and a#b and http://x/#c and # d and ##e and #<f>", ()),
        ("`#include` and\n```\n#define x\n```\n#real", ("real",)),
    ],
)
def test_tags_are_words_behind_a_mark(text: str, tags: tuple[str, ...]) -> None:
    assert tags_of(text) == tags


def test_the_tags_of_an_entry_are_those_of_each_of_its_passages() -> None:
    long = " ".join(f"Step {number} of the deploy is written down here." for number in range(60))
    parts = _page(f"{long} #ops/deploy", "origin=agent")
    assert len(parts) > 2
    assert [part.tags for part in parts] == [("ops/deploy",)] * (len(parts) - 1) + [()]
    nested = split_markdown("- Deploys #ops\n  - On Tuesdays. #weekly\n", path="memory/2026-11-20.md")
    assert [passage.tags for passage in nested] == [("ops",), ("weekly",)]


def test_a_tag_finds_those_below_it() -> None:
    assert has_tags(("ops/deploy", "web"), ("ops", "web")) and has_tags(("ops",), ())
    assert not has_tags(("opsy",), ("ops",)) and not has_tags(("ops",), ("ops", "web"))
