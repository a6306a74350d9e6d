"""Relevance: a probability that tells what answers from what does not, whatever the limit, the mode and the size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from indexer import Index, MiniLM, Mode, RankingSettings, multilingual_embedder
from indexer.engine.ranking import Fusion
from indexer.engine.relevance import Calibration, Table, Weights
from indexer.testing import HashEmbedder
from indexer.types import SearchResults
from tests.storages import sample_folder

NOTES = (
    "kiln, Skutt: The Skutt kiln fires at cone 6 on Fridays.",
    "dues: Members pay 45 euros a month; students pay 30.",
    "wheel number three: Wheel three needs a new belt, type A-42.",
    "Greenware stands on the shelves near the door.",
    "opening hours: Open Tuesday to Saturday from ten to eight.",
    "洛阳的爸妈住三楼，小区没有电梯。",
    "儿子安安对花生过敏，外面吃饭先问清楚。",
    "糖糖上幼儿园中班，午睡要抱灰兔子。",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("notes")
    (root / "MEMORY.md").write_text("".join(f"- {note}\n" for note in NOTES), "utf-8")
    return root


@pytest.fixture(scope="module")
def notes(folder: Path) -> Iterator[Index]:
    index = Index(folder, MiniLM())
    index.sync()
    yield index
    index.close()


class Foreign(HashEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.calibrated_as = ""


def best(found: SearchResults) -> float:
    assert not found.unjudged
    relevances = [hit.relevance for hit in found.hits]
    assert all(each is not None and 0 <= each <= 1 for each in relevances)
    return max((each for each in relevances if each is not None), default=0.0)


@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
@pytest.mark.parametrize(
    ("answered", "unanswered"),
    [
        ("What do students pay a month?", "What do dentists earn a year?"),
        ("When does the kiln fire?", "Where was Napoleon born?"),
        ("which belt for wheel three", "zebra crossing paint in Peru"),
    ],
)
def test_what_answers_is_told_from_what_does_not(notes: Index, mode: Mode, answered: str, unanswered: str) -> None:
    assert best(notes.search(answered, mode=mode)) > 0.3 > 3 * best(notes.search(unanswered, mode=mode))


def test_chinese_is_told_by_its_characters(notes: Index) -> None:
    assert best(notes.search("安安对什么过敏？")) > 0.3
    assert best(notes.search("股票什么时候分红？")) < 0.1


@pytest.mark.parametrize("slip", ["Skuttt", "Sktut", "Skut"])
def test_a_slip_of_the_pen_still_names_what_a_note_is_about(notes: Index, slip: str) -> None:
    named, other = (notes.search(f"{word} temperature") for word in (slip, "Skate"))
    assert best(named) > 2 * best(other)


def test_the_limit_changes_nothing(notes: Index) -> None:
    few, many = (notes.search("what do students pay", limit=limit) for limit in (1, 8))
    assert few.hits[0].relevance == many.hits[0].relevance


def test_a_packed_index_says_nearly_the_same(tmp_path: Path) -> None:
    said, folder = [], sample_folder(tmp_path, with_session=False)
    for most in (100_000, 50):
        index = Index(folder, MiniLM(), pack_passages=most)
        index.sync()
        index.pack()
        assert bool(index.status().packed) == (most == 50)
        found = index.search("What did our Postgres machine cost per month before we switched?", limit=10)
        said.append({(hit.path, hit.ordinal): hit.relevance for hit in found.hits})
        index.close()
    shared = said[0].keys() & said[1].keys()
    assert len(shared) >= 7
    assert all(abs((said[0][key] or 0) - (said[1][key] or 0)) < 0.1 for key in shared)


def test_another_model_has_no_number_and_a_reason(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_bytes((folder / "MEMORY.md").read_bytes())
    index = Index(tmp_path, Foreign())
    index.sync()
    found = index.search("kiln")
    words = index.search("kiln", mode="text")
    index.close()
    assert found.hits and {hit.relevance for hit in found.hits} == {None}
    assert found.unjudged.startswith("relevance: ") and "hash-64" in found.unjudged
    # By words alone the model makes no difference.
    assert best(words) > 0.3


@pytest.mark.parametrize("fusion", ["blend", "rrf"])
def test_another_ranking_has_no_number_and_a_reason(folder: Path, fusion: Fusion) -> None:
    index = Index(folder, MiniLM(), ranking=RankingSettings(fusion=fusion))
    found = index.search("kiln")
    index.close()
    assert {hit.relevance for hit in found.hits} == {None}
    assert f"ranking.fusion is {fusion}" in found.unjudged


def test_a_table_of_another_version_is_not_used(folder: Path) -> None:
    weights = Weights(intercept=0.0, question={}, passages={})
    table = Table(relevance=weights, answers=weights)
    old = Calibration("evidence-0/terms-1", {MiniLM.fingerprint: {"hybrid": table}})
    index = Index(folder, MiniLM(), calibration=old)
    found = index.search("kiln")
    index.close()
    assert {hit.relevance for hit in found.hits} == {None} and "evidence-0" in found.unjudged


def test_recency_and_variety_change_nothing(folder: Path) -> None:
    said = set()
    for settings in (RankingSettings(), RankingSettings(recency_weight=5.0), RankingSettings(mmr_lambda=0.5)):
        index = Index(folder, MiniLM(), ranking=settings)
        said.add(best(index.search("what do students pay")))
        index.close()
    assert len(said) == 1


def test_there_is_nothing_to_judge_in_an_empty_index(tmp_path: Path) -> None:
    index = Index(tmp_path, HashEmbedder())
    index.sync()
    found = index.search("kiln")
    index.close()
    assert (found.hits, found.unjudged) == ((), "")


@pytest.mark.parametrize("count", [1, 2, 6])
def test_few_notes_in_another_language_are_told_from_what_they_do_not_answer(tmp_path: Path, count: int) -> None:
    notes = (
        "请记住，我的收货地址在成都。", "我养了一只橘猫，叫团团。", "每周三晚上去游泳。",
        "妈妈的生日是五月九号。", "车停在地下二层。", "医生说少吃甜的。",
    )  # fmt: skip
    (tmp_path / "MEMORY.md").write_text("".join(f"- {note}\n" for note in notes[:count]), "utf-8")
    with closing(Index(tmp_path, multilingual_embedder())) as index:
        index.sync()
        asked, unasked = (index.search(text).hits for text in ("请寄到我的收货地址。", "量子力学的基本假设是什么？"))
        assert asked[0].passage.text == notes[0]
        assert asked[0].relevance is not None and asked[0].relevance > 0.03
        assert all(hit.relevance is not None and hit.relevance < 0.003 for hit in unasked)
