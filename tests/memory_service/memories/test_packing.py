from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.memories.block import (
    Offer,
    Packed,
    RelevanceLimits,
    candidates_for,
    pack,
)
from memory_service.memories.block_text import Span, _block_text, line_range, render_block
from memory_service.messages.sizes import count_tokens, quarters
from tests.memory_service.memories.test_memory_service_block import lines_in, read_back

PATHS = ("MEMORY.md", "memory/2026-11-19.md", "memory/2026-11-20.md", "memory/浇水.md")
WORDS = ("deploy", "stand-up", "on", "Tuesdays", "浇水", "每周二站会之后", "<b>", "&", "a" * 40)


@st.composite
def offers(draw: st.DrawFn) -> list[Offer]:
    """Files of passages, of which some are offered; some stand on lines that touch, some do not."""
    made = []
    for path in draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=4)):
        line = draw(st.integers(1, 120))
        for ordinal in range(draw(st.integers(1, 12))):
            height = draw(st.integers(1, 3))
            text = " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12)))
            score = draw(st.floats(-4, 4))
            offer = Offer(
                path=path,
                ordinal=ordinal,
                start_line=line,
                end_line=line + height - 1,
                text=_block_text(text),
                score=score,
            )
            line += height + draw(st.integers(0, 1))
            if draw(st.integers(0, 3)):
                made.append(offer)
    return sorted(made, key=lambda offer: -offer.score)


def rendered(chosen: Sequence[Offer]) -> str:
    spans: dict[str, list[Span]] = {}
    for offer in sorted(chosen, key=lambda offer: offer.ordinal):
        span = Span(ordinal=offer.ordinal, start_line=offer.start_line, end_line=offer.end_line, text=offer.text)
        spans.setdefault(offer.path, []).append(span)
    return render_block(spans) if chosen else ""


def of(packed: Packed, offered: Sequence[Offer]) -> list[Offer]:
    return [offered[i] for i in packed.chosen]


@settings(max_examples=80)
@given(offers(), st.integers(0, 500))
def test_a_block_is_within_its_budget_and_full(offered: list[Offer], budget_tokens: int) -> None:
    packed = pack(offered, budget_tokens)
    assert quarters(packed.block) <= 4 * budget_tokens
    assert count_tokens(packed.block) <= budget_tokens
    assert list(packed.chosen) == sorted(set(packed.chosen))
    assert set(packed.chosen) <= set(range(len(offered)))
    assert packed == pack(offered, budget_tokens)
    chosen = of(packed, offered)
    assert packed.block == rendered(chosen)
    for left in offered:
        if left not in chosen:
            # The estimate gives each passage a place of its own in the list of lines, with a comma before it;
            # beside a neighbour it may do without, and between two it spares one of theirs as well.
            slack = 2 * (1 + len(line_range(left.start_line, left.end_line))) if chosen else 0
            assert quarters(rendered([*chosen, left])) + slack > 4 * budget_tokens


@settings(max_examples=40)
@given(offers())
def test_with_room_for_all_of_them_all_are_chosen(offered: list[Offer]) -> None:
    packed = pack(offered, 10**6)
    assert len(packed.chosen) == len(offered)
    assert packed.block == rendered(offered)


def test_no_offer_makes_no_block() -> None:
    assert pack([], 1000) == Packed(chosen=(), block="")


def test_neighbours_are_told_as_one_stretch() -> None:
    near = [
        Offer(path="MEMORY.md", ordinal=n, start_line=10 + n, end_line=10 + n, text=f"item {n}", score=float(-n))
        for n in (2, 0, 1, 5)
    ]
    packed = pack(near, 1000)
    (file,) = read_back(packed.block)
    assert file.lines == "10-12,15"
    assert lines_in(file.lines) == [10, 11, 12, 15]
    assert file.body == "item 0\nitem 1\nitem 2\n…\nitem 5\n"


def test_room_that_melting_ranges_of_lines_leave_is_used() -> None:
    near = [
        Offer(path="MEMORY.md", ordinal=n, start_line=1000 + n, end_line=1000 + n, text="x" * 30, score=-n / 100)
        for n in range(100)
    ]
    for budget_tokens in range(300, 400, 7):
        chosen = of(pack(near, budget_tokens), near)
        assert quarters(rendered([*chosen, near[len(chosen)]])) + len(",1000") > 4 * budget_tokens


def test_what_stands_in_a_file_that_is_told_already_costs_less() -> None:
    def offer(path: str, ordinal: int, score: float) -> Offer:
        line = 3 * ordinal + 1
        return Offer(path=path, ordinal=ordinal, start_line=line, end_line=line, text="浇水" * 20, score=score)

    long = f"memory/{'x' * 150}.md"
    offered = [offer(long, 0, 9.0), offer("MEMORY.md", 0, 1.02), offer(long, 7, 1.0)]
    least = count_tokens(pack([offered[0], offered[2]], 10**6).block)
    assert pack(offered, least + 20).chosen == (0, 2), "either would fit"


def test_more_is_offered_for_a_larger_budget_within_bounds() -> None:
    counts = [candidates_for(budget) for budget in (0, 100, 1024, 2000, 8000, 200_000)]
    assert counts == [100, 100, 100, 125, 500, 1000]


def test_the_better_one_wins_where_one_alone_fits() -> None:
    best, worst = (
        Offer(path=path, ordinal=0, start_line=1, end_line=1, text="x" * 100, score=score)
        for path, score in (("memory/b.md", 2.0), ("memory/a.md", -2.0))
    )
    budget_tokens = count_tokens(rendered([best]))
    assert of(pack([best, worst], budget_tokens), [best, worst]) == [best]


def naive(offered: Sequence[Offer], budget_tokens: int) -> list[Offer]:
    """By score alone: take each that still fits."""
    chosen: list[Offer] = []
    for offer in offered:
        if count_tokens(rendered([*chosen, offer])) <= budget_tokens:
            chosen.append(offer)
    return chosen


@pytest.mark.parametrize("budget_tokens", [100, 200, 400])
def test_it_packs_more_worth_than_a_fill_by_score_alone(budget_tokens: int) -> None:
    source = random.Random(budget_tokens)
    ours = theirs = 0.0
    for _ in range(40):
        offered = [
            Offer(
                path=path,
                ordinal=ordinal,
                start_line=ordinal + 1,
                end_line=ordinal + 1,
                text=" ".join(source.choices(WORDS[:6], k=source.randint(2, 40))),
                score=source.random() * 4,
            )
            for path in PATHS
            for ordinal in range(10)
        ]
        offered.sort(key=lambda offer: -offer.score)
        ours += sum(offer.score for offer in of(pack(offered, budget_tokens), offered))
        theirs += sum(offer.score for offer in naive(offered, budget_tokens))
    assert ours >= theirs


def judged(*chances: tuple[float, float]) -> list[Offer]:
    """Lines of one length, best first, with their relevance and the chance that they answer."""
    return [
        Offer(
            path="a.md",
            ordinal=3 * n,
            start_line=9 * n + 1,
            end_line=9 * n + 1,
            text="x" * 200,
            score=-float(n),
            relevance=relevance,
            answers=answers,
        )
        for n, (relevance, answers) in enumerate(chances)
    ]


def test_a_gain_is_the_less_the_surer_the_block_answers_already() -> None:
    sure, unsure = judged((0.9, 0.9), (0.5, 0.02)), judged((0.5, 0.05), (0.5, 0.02))
    limits = RelevanceLimits(min_gain=0.01)
    assert pack(sure, 10_000, limits).chosen == (0,)
    assert pack(unsure, 10_000, limits).chosen == (0, 1)
    ((place, gain),) = pack(sure, 10_000, limits).unpaid.items()
    assert place == 1 and 0 < gain < 0.01


def test_a_strong_second_piece_of_evidence_stays() -> None:
    assert pack(judged((0.9, 0.8), (0.9, 0.8), (0.9, 0.7)), 10_000, RelevanceLimits(min_gain=0.01)).chosen == (0, 1, 2)


@pytest.mark.parametrize(("best", "chosen"), [(0.3, (0, 1)), (0.29, ())])
def test_nothing_is_chosen_where_no_offer_has_the_least_relevance_of_the_best(
    best: float, chosen: tuple[int, ...]
) -> None:
    assert pack(judged((best, 0.2), (0.01, 0.01)), 10_000, RelevanceLimits(min_best=0.3)).chosen == chosen


def test_what_stands_above_several_passages_is_told_once() -> None:
    title, columns = "# Packing materials", "| Item | On hand |"
    above = (f"{title}\n{columns}", f"{title}\n{columns}", title, f"{title}\n{columns}", f"# Scales\n{columns}")
    texts = ("| Box S | 820 |", "| Box L | 145 |", "300 more were ordered.", "| Roll | 31 |", "| Front | 40 g |")
    near = [
        Offer(path="MEMORY.md", ordinal=n, start_line=n + 1, end_line=n + 1, text=text, above=above[n], score=-n / 10)
        for n, text in enumerate(texts)
    ]
    for budget_tokens in (70, 200):
        packed = pack(near, budget_tokens)
        assert quarters(packed.block) <= 4 * budget_tokens
    (file,) = read_back(packed.block)
    assert file.body.splitlines() == [
        *(title, columns, *texts[:3], columns, texts[3]),
        *("# Scales", columns, texts[4]),
    ]
