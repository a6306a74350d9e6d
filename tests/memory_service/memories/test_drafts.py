"""An entry reworded: what it keeps, whose word it becomes, and what is refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from indexer.documents.markdown import split_markdown
from memory_service.errors import Conflict, InvalidRequest
from memory_service.memories.drafts import Page, checked_change, entry_draft, reword_entry
from memory_service.memories.format import entry_text, find_entries, split_lines
from memory_service.schemas import EntryChange, Origin

DAY = dt.date(2026, 11, 20)
AT = dt.datetime(2026, 11, 20, 13, 32, 7, tzinfo=dt.UTC)


def _page(text: str, *, origin: Origin = "agent", newline: str = "\n") -> str:
    before = newline.join(["# 2026-11-20", "", "- Before.", ""])
    draft = entry_draft(text, origin=origin, session_id="s-1")
    return before + Page(DAY, before).plan(draft, "14:32", AT).text + f"{newline}- After.{newline}"


def _changed(page: str, at: int = 1, **change: Any) -> str:
    wanted = checked_change(EntryChange.model_validate(change))
    return reword_entry(page, find_entries(page, DAY)[at], wanted, DAY)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_new_words_are_the_user_s_and_all_else_stays(newline: str) -> None:
    page = _page("Deploys on Tuesdays. #ops", newline=newline)
    after = _changed(page, text="Deploys on Wednesdays.\n\n```\nmake deploy\n```")
    before, now = find_entries(page, DAY)[1], find_entries(after, DAY)[1]
    assert now.memory_id == before.memory_id and now.start_line == before.start_line
    assert entry_text(split_lines(after), now) == "Deploys on Wednesdays.\n\n```\nmake deploy\n```\n#ops"
    kept = {"session", "at"}
    assert {name: now.fields[name] for name in kept} == {name: before.fields[name] for name in kept}
    assert (before.role, now.role, now.fields["origin"]) == ("agent", "user", "user")
    assert after.startswith(page[: page.index("<!--")]) and after.endswith(page[page.index("- After.") :])
    # The library reads the same of it.
    [passage, *_] = [each for each in split_markdown(after, path="memory/2026-11-20.md") if each.noted]
    assert (passage.role, passage.written) == ("user", AT)


def test_tags_are_a_field_of_their_own() -> None:
    page = _page("Deploys on Tuesdays. #ops #web")

    def text(**change: Any) -> str:
        after = _changed(page, **change)
        return entry_text(split_lines(after), find_entries(after, DAY)[1])

    assert text(text="On Wednesdays.") == "On Wednesdays. #ops #web"
    assert text(text="On Wednesdays. #new") == "On Wednesdays. #new"
    assert text(tags=["infra", "ops"]) == "Deploys on Tuesdays. #infra #ops"
    assert text(tags=[]) == "Deploys on Tuesdays."
    assert text(text="On Wednesdays.", tags=["x"]) == "On Wednesdays. #x"
    # Whose word it is, tags alone do not change.
    assert find_entries(_changed(page, tags=["x"], origin="user"), DAY)[1].role == "agent"
    # And an entry that a person had edited does not become the agent's again.
    edited = page.replace("Tuesdays", "Mondays")
    assert find_entries(_changed(edited, tags=["x"], origin="agent"), DAY)[1].role == "user"


def test_what_was_written_by_hand_keeps_its_id_and_its_mark() -> None:
    page = "# 2026-11-20\n\n1. one\n2. two\n   more"
    [_, second] = find_entries(page, DAY)
    after = _changed(page, text="three\nlines")
    assert after == f"# 2026-11-20\n\n1. one\n{after.splitlines()[3]}\n2. three\n   lines"
    assert (find_entries(after, DAY)[1].memory_id, find_entries(after, DAY)[1].role) == (second.memory_id, "user")


def test_an_entry_whose_text_is_gone_gets_one() -> None:
    page = "# 2026-11-20\n\n<!-- memory id=mfeedfeedfeed origin=agent -->\n\n# Next\n"
    assert "-->\n- new\n\n# Next\n" in _changed(page, at=0, text="new")


def test_a_lower_authority_changes_no_words() -> None:
    page = _page("Deploys on Tuesdays.", origin="user")
    with pytest.raises(Conflict, match="the user's word, which no agent changes"):
        _changed(page, text="Deploys on Sundays.", origin="agent")
    assert "#x" in _changed(page, tags=["x"], origin="agent")
    assert find_entries(_changed(_page("a"), text="b", origin="agent"), DAY)[1].role == "agent"


def test_what_cannot_be_is_refused() -> None:
    page = _page("a")
    with pytest.raises(Conflict, match="says just that"):
        _changed(page, text="Before.")
    with pytest.raises(InvalidRequest, match="Nothing is to be changed"):
        _changed(page)
    for change in ({"text": " \n "}, {"tags": ["two words"]}):
        with pytest.raises(InvalidRequest):
            _changed(page, **change)


def test_a_text_is_news_again_once_another_one_said_otherwise() -> None:
    page = Page(dt.date(2026, 11, 20), "")
    for text, is_new in (
        ("Pots are blue.", True),
        ("Pots are blue.", False),
        ("Pots are green.", True),
        ("The shop opens at nine.", True),
        ("Pots are blue.", True),
        ("Pots are blue.", False),
        ("The shop opens at nine.", False),
    ):
        draft = entry_draft(text)
        assert (page.find(draft) is None) is is_new, text
        if is_new:
            page.add(page.plan(draft, "10:00"))
