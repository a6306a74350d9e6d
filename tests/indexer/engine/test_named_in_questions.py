from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from indexer import Embedder, Index, MiniLM

TODAY = dt.date(2026, 11, 26)
MINILM = MiniLM()
TICKETS = [f"- PLAT-{number}: rewrite the export of the shop" for number in range(1000, 1200)]


def first(folder: Path, files: Mapping[str, str], question: str, embedder: Embedder | None = None) -> list[str]:
    for name, text in files.items():
        path = folder / "memory" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    with closing(Index(folder, embedder, today=lambda: TODAY)) as index:
        index.sync()
        return [hit.passage.text for hit in index.search(question, limit=3).hits]


@pytest.fixture(scope="module", params=[None, MINILM])
def tickets(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """An index of many tickets, without vectors and with them."""
    folder = tmp_path_factory.mktemp("tickets")
    (folder / "memory").mkdir()
    (folder / "memory" / "tickets.md").write_text("\n".join([*TICKETS, "- PLAT-10421: paint the shed"]), "utf-8")
    with closing(Index(folder, request.param, today=lambda: TODAY)) as index:
        index.sync()
        yield index


@pytest.mark.parametrize("question", ["PLAT-1042", "who owns plat-1042?", "PLAT-1042是谁的？"])
def test_an_identifier_stands_before_its_neighbours(tickets: Index, question: str) -> None:
    assert tickets.search(question, limit=3).hits[0].passage.text.startswith("PLAT-1042:")


@pytest.mark.parametrize("embedder", [None, MINILM])
@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What happened yesterday?", "Fixed the tap."),
        ("Was war vorgestern?", "Sold the kayak."),
        ("what happened recently?", "Fixed the tap."),
        ("最近做了什么", "Fixed the tap."),
        ("What happened on March 18?", "Dentist appointment, drilled tooth 36."),
        ("3月18日发生了什么？", "Dentist appointment, drilled tooth 36."),
        ("三月十八日发生了什么？", "Dentist appointment, drilled tooth 36."),
        ("3월 18일에 뭐 했어?", "Dentist appointment, drilled tooth 36."),
    ],
)
def test_the_asked_day_comes_first(tmp_path: Path, question: str, text: str, embedder: Embedder | None) -> None:
    files = {
        "2026-03-08.md": "- Market Wrap delivered at 18:00.",
        "2026-03-18.md": "- Dentist appointment, drilled tooth 36.",
        "2026-11-23.md": "- Painted the fence.",
        "2026-11-24.md": "- Sold the kayak.",
        "2026_11_25.md": "- Fixed the tap.",
    }
    assert first(tmp_path, files, question, embedder)[0] == text


def test_the_number_of_days_is_no_word(tmp_path: Path) -> None:
    files = {"2026-10-26.md": "- module 10 done", "2026-11-20.md": "- watered the tulips"}
    assert first(tmp_path, files, "in the last 10 days") == ["watered the tulips"]


def test_the_newest_that_says_what_is_asked_for(tmp_path: Path) -> None:
    files = {"2026-11-01.md": "- Fixed bug 3.", "2026-11-10.md": "- Fixed bug 4.", "2026-11-25.md": "- Baked bread."}
    assert first(tmp_path, files, "latest bug fixed") == ["Fixed bug 4.", "Fixed bug 3."]


def test_a_day_that_a_text_states_is_found_in_another_spelling(tmp_path: Path) -> None:
    files = {"plans.md": "- 十一月二十五日: the boiler is inspected\n- 11月26日: the chimney is swept\n"}
    assert first(tmp_path, files, "11月25日")[0].endswith("inspected")


def test_what_was_on_the_asked_day_stands_before_what_replaced_it(tmp_path: Path) -> None:
    files = {
        "2026-03-18.md": "- The market was open until 20:00.",
        "2026-10-01.md": "- The market was open until 21:00.",
    }
    assert first(tmp_path, files, "What happened on March 18?")[0].endswith("20:00.")
    assert first(tmp_path, files, "How long was the market open?")[0].endswith("21:00.")


def test_a_filter_holds_for_what_is_named(tmp_path: Path) -> None:
    first(tmp_path, {"a.md": "- PLAT-1042: paint", "2026-11-25.md": "- Fixed the tap."}, "tap")
    with closing(Index(tmp_path, None, today=lambda: TODAY)) as index:
        from indexer import SearchFilter

        assert not index.search("PLAT-1042", filter=SearchFilter(path_prefix="memory/2026")).hits
        assert not index.search("yesterday", filter=SearchFilter(path_prefix="memory/a")).hits


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Łukasz likes tea", "Lukasz"),
        ("Søren plays chess", "Soren"),
        ("Soeren plays chess", "Søren"),
        ("Đặng has a boat", "Dang"),
        ("le cœur de la ville", "coeur"),
        ("a trip to Diyarbakır", "DIYARBAKIR"),
        ("kapı means door", "KAPI"),
        ("Müller has the key", "Mueller"),
        ("Mueller has the key", "Müller"),
        ("die Straße ist gesperrt", "STRASSE"),
        ("しりとりが好き", "シリトリ"),
        ("髙橋さんは庭師", "高橋"),
        ("渡邊さんは庭師", "渡辺"),
        ("ＡＣＭＥ pumps", "acme"),
        ("party 🎉 at the barn", "🎉"),
    ],
)
def test_words_in_other_letters(tmp_path: Path, text: str, question: str) -> None:
    assert first(tmp_path, {"a.md": f"- the barn is painted\n- {text}\n- bricks were ordered"}, question)[0] == text


def test_korean_words_of_asking_find_nothing(tmp_path: Path) -> None:
    files = {"a.md": "- ACME 서버는 지하실에 있다.", "b.md": "- 열쇠가 어디 있는지 모르겠다. 어디가 맞을까."}
    assert first(tmp_path, files, "ACME 서버 중 어디가 고장났어?")[0].startswith("ACME")


@pytest.mark.parametrize("tickets", [MINILM], indirect=True)
@pytest.mark.parametrize("question", ["PLAT-1042", "who owns plat-1042?"])
def test_an_identifier_is_found_by_vectors_alone(tickets: Index, question: str) -> None:
    hits = tickets.search(question, limit=3, mode="vector").hits
    assert hits[0].passage.text.startswith("PLAT-1042:")
    # Words that are no identifier count no more than before.
    assert "words" not in tickets.search(question, limit=1, mode="vector", explain=True).hits[0].signals


PROPERTIES = {
    "Lathe.md": "---\naliases: [turner, big one]\n---\n\nIt stands in the cellar.\n\nOil it on Sundays.\n",
    "Other.md": "- Oil is in the shed.\n- On Sundays we rest.\n",
}


@pytest.mark.parametrize("embedder", [None, MINILM])
def test_another_name_of_a_file_brings_its_text_and_not_its_properties(
    tmp_path: Path, embedder: Embedder | None
) -> None:
    assert first(tmp_path, PROPERTIES, "when do we oil the turner?", embedder)[0] == "Oil it on Sundays."
    # Who asks for the name alone gets the properties.
    assert first(tmp_path, PROPERTIES, "turner", embedder)[0].startswith("aliases: turner")
