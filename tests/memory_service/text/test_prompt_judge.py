from __future__ import annotations

import math

import pytest

from indexer import multilingual_embedder
from indexer.types import Hit, Passage
from memory_service.text.prompt_judge import PROMPT_FIGURES, PromptJudge, _judged_prompt, _prompt_figures

_EMBEDDER = multilingual_embedder()
JUDGE = PromptJudge(embed=_EMBEDDER.embed_query, embedder=_EMBEDDER.fingerprint, spaces={"e5": "e5"})


def hit(text: str, relevance: float | None, cosine: float | None, words: float, source: str = "memory") -> Hit:
    return Hit(
        path="memory/2026-11-20.md",
        source=source,  # type: ignore[arg-type]
        passage=Passage(text=text, start_line=1, end_line=1),
        ordinal=0,
        snippet=text,
        score=1.0,
        text_score=words,
        vector_score=cosine,
        relevance=relevance,
        answers=relevance,
    )


NEAR = [hit("- Releases go out on Wednesdays.", 0.6, 0.9, 9.0), hit("- Kofi is on call.", 0.01, 0.8, 0.0)]
FAR = [hit("- Releases go out on Wednesdays.", 0.001, 0.78, 0.0), hit("- Kofi is on call.", 0.001, 0.77, 0.0)]


def test_a_prompt_that_a_note_answers_gets_it_and_one_that_nothing_concerns_gets_silence() -> None:
    assert JUDGE.silence("When do our releases go out?", "", NEAR, "e5") == ""
    why = JUDGE.silence("Tell me a joke about penguins.", "", FAR, "e5")
    assert why.startswith("nothing here concerns the prompt: judged 0.0") and "the best relevance is 0.001" in why


def test_what_other_prompts_said_does_not_count_beside_notes() -> None:
    echo = hit("Tell me a joke about penguins, please.", 0.99, 0.97, 30.0, source="sessions")
    assert JUDGE.silence("Tell me a joke about penguins.", "", [echo, *FAR], "e5")


def test_where_nothing_was_found_there_is_nothing_to_judge() -> None:
    assert JUDGE.silence("When do our releases go out?", "", [], "e5") == ""


def test_a_short_prompt_is_judged_with_the_turn_before_it() -> None:
    assert _judged_prompt("and in Graz?", "Which office has parking?") == "Which office has parking? and in Graz?"
    long = "Please compare the three hotels that are nearest to the venue in Graz"
    assert _judged_prompt(long, "Which office has parking?") == long
    assert len(_judged_prompt("x" * 50_000)) <= 601


@pytest.mark.parametrize("space", ["minilm", "e5", ""])
@pytest.mark.parametrize("found", [[], NEAR, FAR, [hit("- a", None, None, 0.0)], NEAR * 20])
def test_figures_are_finite_whatever_is_known(space: str, found: list[Hit]) -> None:
    figures = _prompt_figures("When?", found, space)  # type: ignore[arg-type]
    assert len(figures) == len(PROMPT_FIGURES) and all(map(math.isfinite, figures))
