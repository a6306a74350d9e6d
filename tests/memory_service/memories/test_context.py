from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from indexer import Hit, Passage
from indexer.types import Statement
from memory_service.memories.block import build_context
from memory_service.memories.block_text import Span, _block_text, is_block, render_block
from memory_service.messages.sizes import count_tokens
from memory_service.schemas import Context, Receipt
from memory_service.text.texts import CHINESE, ENGLISH
from tests.memory_service.memories.test_memory_service_block import lines_in, read_back

NOW = dt.datetime(2026, 11, 20, 14, 32, tzinfo=dt.UTC)
OMITTED = 20


def hit(text: str, *, path: str = "MEMORY.md", ordinal: int = 0, line: int | None = None, score: float = 0.0) -> Hit:
    line = ordinal + 1 if line is None else line
    passage = Passage(start_line=line, end_line=line + text.count("\n"), text=text)
    return Hit(
        path=path,
        source="memory",
        passage=passage,
        ordinal=ordinal,
        snippet=text,
        score=score,
        text_score=1.5,
        vector_score=0.25,
    )


@st.composite
def hit_lists(draw: st.DrawFn) -> list[Hit]:
    paths = draw(st.lists(st.sampled_from(["MEMORY.md", "memory/a.md", "memory/b.md"]), unique=True, max_size=3))
    texts = st.text("ab 浇<&\u202e", min_size=1, max_size=60) | st.just("x" * 400)
    found = [
        hit(draw(texts), path=path, ordinal=ordinal, score=draw(st.floats(-3, 3)))
        for path in paths
        for ordinal in range(draw(st.integers(1, 15)))
    ]
    return sorted(found, key=lambda hit: -hit.score)


def context_of(
    hits: Sequence[Hit], budget_tokens: int, degraded: tuple[str, ...] = (), *, query: str = "what?", language: str = ""
) -> Context:
    return build_context(
        hits,
        query=query,
        language=language,
        budget_tokens=budget_tokens,
        receipt_id="r20261120-0123456789abcdef",
        created_at=NOW,
        degraded=degraded,
    )


def places(hits: Sequence[Hit]) -> list[tuple[str, int]]:
    return [(hit.path, hit.passage.start_line) for hit in hits]


def with_one_more(receipt: Receipt, hits: Sequence[Hit], more: Hit) -> str:
    """The block of what is included, and one passage more."""
    included = {(item.path, item.start_line) for item in receipt.included}
    spans: dict[str, list[Span]] = {}
    for found in sorted(hits, key=lambda hit: hit.ordinal):
        place = found.passage
        if (found.path, place.start_line) in included or found is more:
            span = Span(
                ordinal=found.ordinal,
                start_line=place.start_line,
                end_line=place.end_line,
                text=_block_text(place.text),
            )
            spans.setdefault(found.path, []).append(span)
    return render_block(spans)


@settings(max_examples=200)
@given(hit_lists(), st.integers(0, 400))
def test_the_receipt_tells_the_truth(hits: list[Hit], budget_tokens: int) -> None:
    made = context_of(hits, budget_tokens)
    receipt = made.receipt
    assert receipt.tokens == count_tokens(made.block) <= budget_tokens
    assert len(receipt.included) + receipt.omitted_count == len(hits)
    assert len(receipt.omitted) == min(OMITTED, receipt.omitted_count)
    told = [(item.path, item.start_line) for item in (*receipt.included, *receipt.omitted)]
    assert len(set(told)) == len(told) and set(told) <= set(places(hits))
    if receipt.omitted_count <= OMITTED:
        assert set(told) == set(places(hits))
    in_block = (
        {(file.path, line) for file in read_back(made.block) for line in lines_in(file.lines)} if made.block else set()
    )
    assert in_block == {
        (item.path, line) for item in receipt.included for line in range(item.start_line, item.end_line + 1)
    }
    by_place = dict(zip(places(hits), hits, strict=True))
    for item in (*receipt.included, *receipt.omitted):
        found = by_place[item.path, item.start_line]
        assert item.tokens == count_tokens(_block_text(found.passage.text))
        assert (item.text_score, item.vector_score) == (1.5, 0.25) and item.score >= found.score
    kept = {f"{item.path}#L{item.start_line}": item for item in receipt.included}
    for item in receipt.omitted:
        if item.reason.startswith("repeats "):
            # What says the same stands there, worth as much as the better of both; or it had to go in its turn.
            stands = kept.get(item.reason.removeprefix("repeats "))
            assert stands is None or stands.score >= item.score
            continue
        needed = count_tokens(with_one_more(receipt, hits, by_place[item.path, item.start_line]))
        # Whether the list of lines grows by a place of its own is estimated: three tokens at most.
        assert needed + 3 > budget_tokens
        spare = budget_tokens - receipt.tokens
        if item.tokens > spare:
            assert item.reason == f"budget: needs {item.tokens} tokens and its wrapper, {spare} are left"
        else:
            assert f"more than the {spare - item.tokens} tokens" in item.reason


@given(hit_lists(), st.integers(0, 60))
def test_an_empty_block_says_what_would_do(hits: list[Hit], budget_tokens: int) -> None:
    made = context_of(hits, budget_tokens)
    if made.block:
        assert made.receipt.reason == ""
        return
    assert made.receipt.tokens == 0 and made.receipt.included == []
    if not hits:
        assert made.receipt.reason == "nothing found: no memory matches the query and its filters"
        return
    told = re.fullmatch(
        r"budget too small: (\d+) tokens, and the smallest of (\d+) passages needs (\d+) with its wrapper",
        made.receipt.reason,
    )
    assert told
    assert (int(told[1]), int(told[2])) == (budget_tokens, len(hits))
    enough = int(told[3])
    assert enough > budget_tokens
    assert context_of(hits, enough).block
    assert not context_of(hits, enough - 1).block


def test_of_many_left_out_the_best_are_told_and_all_are_counted() -> None:
    hits = [hit("x" * 100, path=f"memory/{n:03}.md", score=-float(n)) for n in range(100)]
    receipt = context_of(hits, 100).receipt
    assert receipt.included and receipt.omitted_count == 100 - len(receipt.included)
    left = [path for path, _ in places(hits) if path not in {item.path for item in receipt.included}]
    assert [item.path for item in receipt.omitted] == left[:OMITTED]


def test_a_context_hands_on_what_was_missing() -> None:
    made = context_of([hit("x")], 100, degraded=("vector: gone",))
    assert made.degraded == made.receipt.degraded == ["vector: gone"]
    assert (made.receipt.query, made.receipt.budget_tokens, made.receipt.created_at) == ("what?", 100, NOW)


def test_a_name_that_hides_signs_is_marked_wherever_the_block_has_it() -> None:
    path = "memory/a\ufe0f\ufe0f.md"
    by = Statement(path=path, start_line=3, end_line=3, date=None, text="x", about="x")
    block = context_of([replace(hit("Ana lives in Lisbon.", path=path), replaced_by=by)], 1_000).block
    assert block.count("memory/a\ufe0f\ufffd.md") == 2, "a name must not turn into that of another file"


def test_the_first_line_of_a_block_is_in_the_language_of_the_question() -> None:
    notes = [hit("周二部署，周五不部署。")]

    def first(query: str, language: str = "") -> str:
        made = build_context(notes, query=query, budget_tokens=80, receipt_id="r", created_at=NOW, language=language)
        assert made.tokens == count_tokens(made.block) <= 80 and is_block(made.block)
        return made.block.splitlines()[1]

    assert first("什么时候部署到生产环境？") == CHINESE.block_note
    assert first("When do we deploy to production next time?") == ENGLISH.block_note
    # Too short to tell: as what was found. And a talk that is Chinese stays so.
    assert first("部署？") == first("deploy?") == CHINESE.block_note
    assert first("When do we deploy to production next time?", "zh") == CHINESE.block_note
    assert first("什么时候部署到生产环境？", "en") == ENGLISH.block_note
