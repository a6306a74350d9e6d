"""Relevance of a folder's passages: an unrelated folder beside it silences no answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from indexer import Index, MiniLM, Mode
from indexer.corpus import folder_number

NOTES = {
    "The kiln fires at cone 6 on Fridays.": "When does the kiln fire?",
    "Members pay 45 euros a month.": "How much do members pay?",
    "Wheel three needs a new belt.": "Which wheel needs a belt?",
    "Die Heizung braucht 1,5 bar Druck.": "Wie viel Druck braucht die Heizung?",
    "Der Ersatzschlüssel liegt bei Frau Kessler.": "Wo liegt der Ersatzschlüssel?",
    "备用轮胎放在地下室。": "备用轮胎放在哪里？",
    "儿子对花生过敏。": "儿子对什么过敏？",
}
# Another one is a few lines of each that have nothing to do with these.
_WORDS = {
    "korean": "서버 배포 문서 검색 회의 일정 예산 보고서 고객 주문 창고 차량 도로 날씨 음악 영화 여행 사진".split(),
    "english": "vault plugin theme canvas graph panel hotkey template sidebar toggle syntax embed anchor".split(),
    "russian": "сервер заказ дорога погода музыка отчёт склад встреча бюджет клиент поездка снимок фильм".split(),
}
_LIMIT = 0.0037


def _lines(words: Sequence[str], count: int) -> str:
    n = len(words)
    return "".join(f"- {words[i % n]} {words[i * 3 % n]} {words[i * 7 % n]} {i}\n" for i in range(count))


def _answers(root: Path) -> dict[tuple[Mode, str], float]:
    index = Index(root, MiniLM())
    modes: tuple[Mode, ...] = ("hybrid", "text")
    try:
        index.sync()
        found = dict[tuple[Mode, str], float]()
        for mode, (note, question) in product(modes, NOTES.items()):
            hits = index.search(question, mode=mode, limit=5).hits
            found[mode, question] = max((hit.relevance or 0.0 for hit in hits if hit.passage.text == note), default=0.0)
        return found
    finally:
        index.close()


@pytest.mark.parametrize("language", [*_WORDS])
def test_an_unrelated_folder_silences_nothing(tmp_path: Path, language: str) -> None:
    own = tmp_path / "own" / "memory"
    own.mkdir(parents=True)
    (own / "notes.md").write_text("".join(f"- {note}\n" for note in NOTES), "utf-8")
    alone = _answers(tmp_path / "own")
    (own / "other").mkdir()
    for number in range(4):
        (own / "other" / f"{number}.md").write_text(_lines(_WORDS[language][number:], 60), "utf-8")
    beside = _answers(tmp_path / "own")
    assert all(relevance >= _LIMIT for relevance in alone.values())
    for asked, relevance in alone.items():
        assert beside[asked] >= min(relevance * 0.8, 0.9), asked


def test_folder_of() -> None:
    assert folder_number("MEMORY.md") == folder_number("memory/2026-11-01.md") == folder_number("sessions/a.jsonl") == 0
    assert folder_number("memory/a/b.md") == folder_number("memory/a/c/d.md") != folder_number("memory/b/b.md")
    assert folder_number("@docs/a.md") == folder_number("@docs/b/c.md") != folder_number("@other/a.md")
