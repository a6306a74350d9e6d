"""What was said in passing is still there after compactions: in view, or one search away; and the view stays small."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from memory_service.messages.shapes import text_of
from memory_service.runtime.base import CompactionCall
from memory_service.schemas.compaction import CompactRequest, SessionContextRequest
from tests.evals.needles import Language, conversation, in_rounds, measured, opened, turn

LANGUAGES: tuple[Language, ...] = ("en", "zh")
RULES = {"en": "Never deploy on Fridays, not even a hotfix.", "zh": "周五绝不部署，热修复也不行。"}


@pytest.mark.parametrize(("language", "seed"), [("en", 1), ("zh", 2)])
def test_facts_are_in_view_or_one_search_away(tmp_path: Path, language: Language, seed: int) -> None:
    with opened(tmp_path, embedder=HashEmbedder()) as service:
        score = measured(service.sessions("default", make=True), language, seed=seed)
    assert score.share >= 0.95, score
    assert len(score.in_view) >= 5, "the view alone tells most of them"
    assert len(score.view_tokens) == 5 and max(score.view_tokens) < 4_000


@pytest.mark.parametrize("language", LANGUAGES)
def test_pinned_rules_stand_in_every_view_and_prompt(tmp_path: Path, language: Language) -> None:
    _, turns = conversation(random.Random(7), language)
    with opened(tmp_path, embedder=None) as service:
        sessions = service.sessions("default", make=True)
        sessions.append("s", turn(random.Random(0), language, 99))
        said = sessions.append("s", [{"role": "user", "content": f"规矩 rule: {RULES[language]}"}]).first_seq
        sessions.store.pin("s", seq=said)
        sessions.store.pin("s", text=f"(text) {RULES[language]}")
        for messages in in_rounds(turns, 8):
            for start in range(0, len(messages), 8):
                sessions.append("s", messages[start : start + 8])
                shown = "\n".join(
                    map(text_of, sessions.context("s", SessionContextRequest(recall="never")).prompt.messages)
                )
                assert RULES[language] in shown and f"(text) {RULES[language]}" in shown
            sessions.compactions.compact("s", CompactionCall(request=CompactRequest(force=True)))
            view = "\n".join(map(text_of, sessions.snapshot("s").view().messages))
            assert f"rule: {RULES[language]}" in view and f"(text) {RULES[language]}" in view


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_view_does_not_grow_over_twenty_rounds(tmp_path: Path, language: Language) -> None:
    rng, sizes = random.Random(11), list[int]()
    with opened(tmp_path, embedder=None) as service:
        sessions = service.sessions("default", make=True)
        for done in range(20):
            for number in range(8 * done, 8 * done + 8):
                sessions.append("s", turn(rng, language, number))
            sessions.compactions.compact("s", CompactionCall(request=CompactRequest(force=True)))
            sizes.append(sessions.snapshot("s").view().tokens)
    assert max(sizes[-5:]) <= 1.15 * max(sizes[2:7]), sizes
