from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from indexer.documents.incremental import Splitter
from indexer.documents.markdown import split_markdown
from indexer.types import Passage

PATH = "memory/2026-11-20.md"
ENTRY = "## 14:{n:02}\n<!-- memory id=m{n} origin=agent -->\n- Item number {n} of the day.\n"

PIECES = st.sampled_from(
    [
        "# 2026-11-20\n", "# Other 2026-01-02\n", "## 14:32\n", "## 15:00 ##\n", "### deep\n", "##\n", "## \n", "\n",
        "<!-- memory id=m1 -->\n", "<!-- open\n", "-->\n", "- Mara: yes\n", "- Mara: no?\n", "- Jonas: once\n",
        "- item\n", "  more\n", "text\n", "---\n", "===\n", "```\n", "~~~\n", "> quote\n", "| a | b |\n", "    code\n",
        "## 14:32\r\n", "## 2026-10-01 dated\n", "long " * 400 + "\n", "- Mara: " + "word " * 400 + "\n", "no newline",
        "title: x\n", "date: 2020-02-02\n", "`<!--`\n", "a <!-- b\n",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=12).map("".join)


def test_a_file_that_grows_is_split_as_if_from_the_top() -> None:
    splitter = Splitter()
    text = "# 2026-11-20\n"
    for n in range(30):
        text += "\n" + ENTRY.format(n=n)
        assert splitter.split(text, PATH) == split_markdown(text, path=PATH)


@settings(max_examples=120)
@given(st.lists(TEXTS, min_size=1, max_size=6))
@example(["# a\n## b\n- x\n", "- y\n", "<!-- z\n", "-->\n## c\n- x\n"])
@example(["## a\n- Mara: x\n", "## b\n- Mara: y\n"])
@example(["---\ntitle: x\n# 2026-11-20\n## 14:32\n", "---\n"])
def test_growing_by_anything_gives_what_the_whole_gives(parts: list[str]) -> None:
    splitter, text = Splitter(), ""
    for part in parts:
        text += part
        assert splitter.split(text, PATH) == split_markdown(text, path=PATH)


@settings(max_examples=120)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=5))
def test_changes_behind_a_common_beginning_give_what_the_whole_gives(versions: list[tuple[str, str]]) -> None:
    splitter = Splitter()
    common = versions[0][0]
    for _, tail in versions:
        assert splitter.split(common + tail, PATH) == split_markdown(common + tail, path=PATH)


@settings(max_examples=100)
@given(st.lists(st.tuples(TEXTS, TEXTS, st.booleans()), min_size=2, max_size=6))
@example([("# a\n## b\n", "- Mara: x\n", True), ("", "- Mara: x\n- Mara: y\n", True), ("", "- z\n", True)])
def test_what_an_index_holds_and_what_is_read_anew_are_the_whole(versions: list[tuple[str, str, bool]]) -> None:
    splitter, common = Splitter(), versions[0][0]
    held, stored_hash = list[Passage](), ""
    for number, (_, tail, is_stored) in enumerate(versions):
        text, content_hash = common + tail, f"content {number}"
        growth = splitter.read(text, PATH, content_hash=content_hash, stored_hash=stored_hash)
        assert held[: growth.first] + growth.passages == split_markdown(text, path=PATH)
        if is_stored:
            held, stored_hash = split_markdown(text, path=PATH), content_hash


def test_a_file_that_grew_at_its_end_is_compared_there_only() -> None:
    splitter, text, before = Splitter(), "# 2026-11-20\n", ""
    for n in range(30):
        text += "\n" + ENTRY.format(n=n)
        growth = splitter.read(text, PATH, content_hash=str(n), stored_hash=before)
        assert (growth.first, len(growth.passages)) == (n, 1)
        before = str(n)


def test_a_passage_that_stays_is_the_same_object_whoever_is_named_in_it() -> None:
    splitter = Splitter()
    text = "# 2026-11-20\n" + "".join(f"\n## 14:{n:02}\n- Client {n} 说: number {n}\n" for n in range(50))
    before = splitter.split(text, PATH)
    for name in ("Anna", "Client 3 说", "Anna"):
        text += f"\n## 15:00\n- {name}: one more\n"
        after = splitter.split(text, PATH)
        assert after == split_markdown(text, path=PATH)
        made = [new for new, old in zip(after, before, strict=False) if new is not old]
        assert len(made) <= 1 + (name == "Client 3 说" or name == "Anna"), name
        before = after


def test_files_do_not_mix() -> None:
    splitter = Splitter()
    for path in ("memory/2026-11-19.md", PATH, "MEMORY.md"):
        text = f"# t\n\n## a\n- {path}\n"
        assert splitter.split(text, path) == split_markdown(text, path=path)
        assert splitter.split(text + "\n## b\n- more\n", path) == split_markdown(text + "\n## b\n- more\n", path=path)
