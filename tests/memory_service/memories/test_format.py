from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indexer.documents.entries import fold_words, short_hash
from indexer.documents.markdown import split_markdown
from memory_service.errors import InvalidRequest
from memory_service.memories.drafts import EntryDraft, Page, entry_draft
from memory_service.memories.format import (
    blank_spans,
    cut_spans,
    day_of,
    derive_id,
    find_entries,
    is_blank_page,
    spans_of,
    split_lines,
)
from memory_service.schemas import MAX_TEXT_CHARS
from tests.growth import assert_grows_at_most

DAY = dt.date(2026, 11, 20)
SAMPLE = Path(__file__).parents[3] / "data" / "default"
MARKDOWN = st.lists(
    st.sampled_from(
        [
            "# Heading", "## 09:00", "---", "===", "- item", "  - nested", "1. one", "```", "```python", "~~~", "", " ",
            "<!-- memory id=m0123456789ab origin=agent -->", "<!--", "-->", "> quote", "| a | b |", "\ttab", "text",
            "    code", "\u3000", "浇水 💧", "a\u2028b", "* * *", "- [x] done", "#tag",
        ]
    ),
    min_size=1,
    max_size=6,
).map("\n".join)  # fmt: skip
TEXTS = st.one_of(MARKDOWN, st.text(max_size=60)).filter(lambda text: bool(_clean(text)))


def _clean(text: str) -> str:
    try:
        return entry_draft(text).text
    except InvalidRequest:
        return ""


def _without(text: str, memory_id: str, day: dt.date | None) -> str | None:
    """A file without an entry; None if it has none of that id."""
    spans = spans_of(text, memory_id, day)
    return cut_spans(text, spans) if spans else None


def _append(content: str, new: EntryDraft, clock: str = "14:32") -> tuple[str, str]:
    """The page with the memory on it, and its id; as the page was if it stands there already."""
    page = Page(DAY, content)
    known = page.find(new)
    if known:
        return content, known.memory_id
    addition = page.plan(new, clock)
    return content + addition.text, addition.entry.memory_id


def _page_of(texts: list[str]) -> tuple[str, list[str]]:
    content, ids = "", []
    for text in texts:
        content, memory_id = _append(content, entry_draft(text))
        ids.append(memory_id)
    return content, ids


def _written(content: str, start: int, end: int) -> str:
    return "\n".join(line.rstrip("\r\n")[2:] for line in split_lines(content)[start - 1 : end])


def test_an_entry_has_the_form_of_the_contract() -> None:
    new = entry_draft(
        "Deploys go out on Tuesdays after the 10:00 stand-up.", session_id="support-42", messages=(12, 48)
    )
    content, memory_id = _append("", new)
    assert content == (
        "# 2026-11-20\n\n## 14:32\n"
        f"<!-- memory id={memory_id} session=support-42 messages=12-48 origin=agent "
        f"hash={short_hash(new.folded)} -->\n"
        "- Deploys go out on Tuesdays after the 10:00 stand-up.\n"
    )
    assert memory_id == derive_id(DAY, new.text)


@pytest.mark.parametrize(
    ("before", "head"),
    [
        ("# Day\n", "# Day\n\n## 14:32\n"),
        ("# Day\n\n", "# Day\n\n## 14:32\n"),
        ("# Day\n  \n", "# Day\n  \n## 14:32\n"),
        ("a note", "a note\n\n## 14:32\n"),
        ("a\r\nb\r\n", "a\r\nb\r\n\r\n## 14:32\r\n"),
        ("a\r\nb", "a\r\nb\r\n\r\n## 14:32\r\n"),
        ("old\rmac\r", "old\rmac\r\r## 14:32\r"),
    ],
)
def test_an_entry_stands_below_one_blank_line_with_the_line_ends_of_its_file(before: str, head: str) -> None:
    page = Page(DAY, before)
    addition = page.plan(entry_draft("one\ntwo"), "14:32")
    after = before + addition.text
    assert after.startswith(head)
    assert find_entries(after, DAY)[-1] == addition.entry
    assert _written(after, addition.entry.start_line, addition.entry.end_line) == "one\ntwo"


def test_tags_are_visible_once_and_never_break_a_code_block() -> None:
    assert entry_draft("a b", tags=("ops", "ops", "team/浇水")).text == "a b #ops #team/浇水"
    assert entry_draft("about #ops here", tags=("ops",)).text == "about #ops here"
    assert entry_draft("```\ncode\n```", tags=("ops",)).text == "```\ncode\n```\n#ops"
    assert entry_draft("x", tags=("हिन्दी",)).text == "x #हिन्दी"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        (" \n\t\u3000", {}),
        ("\0\x1b\ud800", {}),
        ("x" * (MAX_TEXT_CHARS + 1), {}),
        ("x", {"tags": ("a b",)}),
        ("x", {"tags": ("#a",)}),
        ("x", {"tags": ("-->",)}),
        ("x", {"tags": ("",)}),
        ("x", {"tags": ("/a",)}),
        ("x", {"tags": ("a" * 65,)}),
        ("x", {"tags": tuple(f"t{n}" for n in range(17))}),
        ("x", {"tags": "ops"}),
        ("x", {"session_id": "a --> b"}),
        ("x", {"session_id": ""}),
        ("x", {"session_id": "../a"}),
        ("x", {"messages": (5, 4)}),
        ("x", {"messages": (-1, 4)}),
        ("x", {"origin": "somebody"}),
    ],
)
def test_what_cannot_be_stored_is_refused(text: str, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        entry_draft(text, **fields)


@given(TEXTS)
def test_what_is_written_is_read_back(text: str) -> None:
    page = Page(DAY, "")
    checked = entry_draft(text)
    addition = page.plan(checked, "14:32")
    read = _written(addition.text, addition.entry.start_line, addition.entry.end_line)
    assert [line.rstrip(" \t") for line in read.split("\n")] == [
        line.rstrip(" \t") for line in checked.text.split("\n")
    ]
    assert fold_words(read) == checked.folded


@given(st.lists(TEXTS, min_size=1, max_size=4))
@example(["---\n# Heading"])
@example(["- -\n# Heading"])
@example(["|---|\n# Heading"])
@example([":-\n# Heading"])
@example(["- a\n> quote\n# Heading"])
@example(["* * *\n> quote\n# Heading"])
def test_no_text_makes_another_entry_or_heading(texts: list[str]) -> None:
    content, ids = _page_of(texts)
    assert [entry.memory_id for entry in find_entries(content, DAY)] == list(dict.fromkeys(ids))
    for passage in split_markdown(content, path="memory/2026-11-20.md"):
        # Behind these stand labels and items of the text itself.
        assert passage.heading[:2] in (("2026-11-20", "14:32"), ("2026-11-20",))
        assert passage.date == DAY


@given(
    st.lists(TEXTS, min_size=2, max_size=5, unique_by=lambda text: fold_words(_clean(text))), st.data(), st.booleans()
)
def test_forgetting_one_leaves_what_would_be_without_it(texts: list[str], data: st.DataObject, crlf: bool) -> None:
    start = "# 2026-11-20\r\n\r\nBy hand.\r\n" if crlf else ""
    at = data.draw(st.integers(0, len(texts) - 1))
    with_it = without_it = start
    for index, text in enumerate(texts):
        with_it, memory_id = _append(with_it, entry_draft(text))
        if index == at:
            gone = memory_id
        else:
            without_it, _ = _append(without_it, entry_draft(text))
    assert _without(with_it, gone, DAY) == without_it


@given(st.lists(TEXTS, max_size=3), MARKDOWN)
@example(["# Heading\n```"], "<!-- memory id=m0123456789ab origin=agent -->\n```")
def test_a_page_of_a_person_never_hides_or_loses_entries(texts: list[str], by_hand: str) -> None:
    content = by_hand
    for text in texts:
        before = content
        content, memory_id = _append(content, entry_draft(text))
        assert content.startswith(before)
        assert memory_id in [entry.memory_id for entry in find_entries(content, DAY)]
        assert _append(content, entry_draft(f"  {text}\n")) == (content, memory_id)


@given(st.text(st.sampled_from("-*+ \t\n\r#`~1.ab<!>\u3000\ufeff|"), max_size=200))
def test_any_page_can_be_read(content: str) -> None:
    last = 0
    for entry in find_entries(content, DAY):
        assert last < entry.first_line <= entry.start_line <= entry.end_line <= len(split_lines(content))
        last = entry.end_line


def test_the_same_text_is_found_in_whatever_form_a_person_wrote_it() -> None:
    by_hand = "# 2026-11-20\n\n* Deploys go\n  out  on Tuesdays.\n* other\n"
    page = Page(DAY, by_hand)
    found = page.find(entry_draft("Deploys go out on Tuesdays."))
    assert found is not None
    assert (found.start_line, found.end_line) == (3, 4)
    assert _without(by_hand, found.memory_id, DAY) == "# 2026-11-20\n\n* other\n"
    assert _without(by_hand, found.memory_id, None) is None


def test_an_edited_entry_keeps_its_id_and_its_old_text_is_new_again() -> None:
    content, first = _append("", entry_draft("The door code is 1234"))
    edited = content.replace("1234", "5678")
    assert _append(edited, entry_draft("The door code is 5678")) == (edited, first)
    again, second = _append(edited, entry_draft("The door code is 1234"))
    assert second != first
    assert _without(again, first, DAY) == again.replace(edited.removeprefix("# 2026-11-20\n\n") + "\n", "")


COMMENT = "<!-- memory id=mfeedfeedfeed origin=agent -->\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Its heading stays with what else stands below it.
        (f"## 14:32\n{COMMENT}- x\n- mine\n", "## 14:32\n- mine\n"),
        (f"## 14:32\n{COMMENT}- x\n\n### more\n", "## 14:32\n\n### more\n"),
        (f"## 14:32\n\n{COMMENT}- x\n\n## 15:00\n- y\n", "## 15:00\n- y\n"),
        (f"## Decisions\n{COMMENT}- x\n", "## Decisions\n"),
        (f"# d\n\n{COMMENT}- x\n\npara\n", "# d\n\npara\n"),
        # Nested and continued lines go with it, others stay.
        (f"{COMMENT}- x\n  more\n\n  still\n\t- nested\nmine\n", "mine\n"),
        (f"{COMMENT}- x\n\nmine\n", "mine\n"),
        (f"{COMMENT}- x\n\n mine\n", " mine\n"),
        # Turned into a paragraph or a code block by a person.
        (f"a\n\n{COMMENT}x\ny\n\nb\n", "a\n\nb\n"),
        (f"a\n\n{COMMENT}x\n# b\n", "a\n\n# b\n"),
        (f"a\n\n{COMMENT}```\nx\n\ny\n```\nb\n", "a\n\nb\n"),
        # The text is gone, and what follows is not its text.
        (f"a\n\n{COMMENT}\n- mine\n", "a\n\n- mine\n"),
        (f"a\n\n{COMMENT}## b\n- mine\n", "a\n\n## b\n- mine\n"),
        (f"a\n\n{COMMENT}", "a\n"),
        (f"{COMMENT}{COMMENT.replace('feed', 'beef')}- mine\n", f"{COMMENT.replace('feed', 'beef')}- mine\n"),
        # Copies go too; line ends and the missing last one stay.
        (f"{COMMENT}- x\n\nb\n\n{COMMENT}- x\n", "b\n"),
        (f"a\r\n\r\n{COMMENT}- x\r\n\r\nb", "a\r\n\r\nb"),
        # A code block hides no entry: what is asked for is found.
        (f"```\n{COMMENT}- x\n```\n", "```\n```\n"),
    ],
)
def test_erasing_takes_the_entry_and_nothing_else(before: str, after: str) -> None:
    assert _without(before, "mfeedfeedfeed", DAY) == after
    assert _without(after, "mfeedfeedfeed", DAY) is None


def test_a_formatter_may_part_the_comment_from_its_item() -> None:
    content, memory_id = _append("", entry_draft("x y"))
    parted = content.replace(" -->\n", " -->\n\n") + "\n- mine\n"
    assert _without(parted, memory_id, DAY) == "# 2026-11-20\n\n## 14:32\n\n- mine\n"


def test_items_in_code_blocks_and_indented_items_are_not_taken_for_memories() -> None:
    content = "```\n- shown\n```\n- real\n  - nested\n\n`````\n- after an unclosed fence\n"
    folded = [derive_id(DAY, text) for text in ("real - nested", "after an unclosed fence")]
    assert [entry.memory_id for entry in find_entries(content, DAY)] == folded


def test_the_sample_is_read() -> None:
    for file in sorted((SAMPLE / "memory").glob("*.md")):
        content = file.read_text(encoding="utf-8")
        marked = [line.split("id=")[1].split()[0] for line in content.splitlines() if line.startswith("<!-- memory")]
        entries = find_entries(content, None)
        assert [entry.memory_id for entry in entries] == marked
        assert all(split_lines(content)[entry.start_line - 1].startswith("- ") for entry in entries)
        for memory_id in marked:
            content = _without(content, memory_id, day_of(file.name)) or ""
        assert "<!--" not in content and "## 1" not in content


@pytest.mark.parametrize(
    "content",
    ["```a\n" * 20_000, "".join(f"{'`' * (3 + n % 200)}a\n" for n in range(20_000)), f"{COMMENT}\n" * 20_000,
     "- a\n\n\n" * 20_000, "- a\n" + " \n" * 40_000, "<!-- memory" + " a=b" * 40_000 + "\n", COMMENT * 20_000],
)  # fmt: skip
def test_reading_is_linear(content: str) -> None:
    assert_grows_at_most(10, lambda size: find_entries(content[:size], DAY), len(content) // 4, len(content))


def test_days_and_blank_pages() -> None:
    assert day_of("memory/2026-11-20.md") == day_of("memory/archive/2026-11-20.MD") == DAY
    assert day_of("memory/2026-13-20.md") is day_of("memory/notes.md") is day_of("memory/a2026-11-20.md") is None
    assert is_blank_page("\ufeff# 2026-11-20\r\n\r\n", DAY) and is_blank_page("", DAY)
    assert not is_blank_page("# 2026-11-20\nx", DAY) and not is_blank_page("", None)


@given(texts=st.lists(TEXTS, min_size=1, max_size=4), at=st.integers(0, 3), by_hand=st.booleans())
def test_a_blanked_entry_is_gone_as_a_removed_one_is(texts: list[str], at: int, by_hand: bool) -> None:
    page, ids = _page_of(texts)
    if by_hand:
        page += "- mine, 自己写的\r\n"
        ids.append(find_entries(page, DAY)[-1].memory_id)
    memory_id = ids[at % len(ids)]
    rest = _without(page, memory_id, DAY)
    assert rest is not None
    wordless, gone = blank_spans(page, spans_of(page, memory_id, DAY))
    assert len(page.encode()) == len(wordless.encode()) == len(gone.encode())
    kept = [(entry.memory_id, entry.text_hash) for entry in find_entries(rest, DAY)]
    assert [(entry.memory_id, entry.text_hash) for entry in find_entries(gone, DAY)] == kept
    assert [line.strip() for line in split_lines(gone) if line.strip()] == [
        line.strip() for line in split_lines(rest) if line.strip()
    ]
    found = [entry.memory_id for entry in find_entries(wordless, DAY)]
    assert memory_id in found or f"memory id={memory_id}" not in page
    assert spans_of(page, "m000000000000", DAY) == []
