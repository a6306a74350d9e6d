"""What a view takes: against synthetic tokenizers whose real counts are known."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.compaction.budget import DEFAULT_THRESHOLDS, budget_for, resolve_window
from memory_service.llm.token_anchor import Anchor, Reading, anchor_of, measure_view
from memory_service.llm.token_counter import LEAST_SCALE, MOST_SCALE, _usage_tokens, learned_scale, pairs_of, same_model
from memory_service.messages.sizes import Usage, message_tokens
from tests.growth import at_most_readings

sizes = st.lists(st.integers(0, 20_000), max_size=30)
scales = st.floats(LEAST_SCALE, MOST_SCALE)
calls = st.lists(st.tuples(st.integers(1, 200_000), st.integers(0, 400_000)), max_size=20)


def usage(tokens: int, output: int = 0, model: str | None = None, estimated: int | None = None) -> Usage:
    return Usage(input_tokens=tokens, output_tokens=output, model=model, estimated_tokens=estimated)


# --- one reading ---------------------------------------------------------------------------------------------------


def test_the_provider_s_count_is_taken_and_only_the_rest_estimated() -> None:
    reading = measure_view([100, 200, 50, 30], anchor=Anchor(tokens=1_000, covered_count=2), scale=1.5)
    assert reading == Reading(tokens=1_120, source="usage", scale=1.5)


def test_without_it_all_is_estimated_and_corrected() -> None:
    assert measure_view([100, 200], scale=1.5) == Reading(tokens=450, source="estimate", scale=1.5)


@given(sizes, scales, st.booleans())
def test_what_comes_after_a_count_is_corrected_and_rounded_up(
    estimates: list[int], scale: float, anchored: bool
) -> None:
    anchor = Anchor(tokens=5_000, covered_count=len(estimates) // 2) if anchored else None
    reading = measure_view(estimates, anchor=anchor, scale=scale)
    after = sum(estimates[len(estimates) // 2 :]) if anchored else sum(estimates)
    assert -1e-3 < reading.tokens - 5_000 * anchored - after * scale < 1 + 1e-3


@given(sizes, scales)
def test_a_message_more_is_never_less(estimates: list[int], scale: float) -> None:
    anchor = Anchor(tokens=700, covered_count=min(3, len(estimates)))
    for anchored in (None, anchor):
        before = measure_view(estimates, anchor=anchored, scale=scale)
        assert measure_view([*estimates, 10], anchor=anchored, scale=scale).tokens > before.tokens


# --- which count still holds ---------------------------------------------------------------------------------------

SEQS = (0, 0, 5, 6, 7, 7, 9)


@pytest.mark.parametrize(
    ("counted", "options", "expected"),
    [
        ([], {}, None),
        ([(7, usage(900, 50))], {}, Anchor(tokens=950, covered_count=6)),
        ([(6, usage(800)), (9, usage(990))], {}, Anchor(tokens=990, covered_count=7)),
        ([(8, usage(900))], {}, Anchor(tokens=900, covered_count=6)),
        ([(40, usage(900))], {}, Anchor(tokens=900, covered_count=7)),
        # Counted before the compaction: what it counted is not what stands there now.
        ([(6, usage(900))], {"changed_seq": 6}, None),
        ([(6, usage(900))], {"changed_seq": 8}, None),
        ([(6, usage(90_000)), (9, usage(900))], {"changed_seq": 8}, Anchor(tokens=900, covered_count=7)),
        # Another model counts in other tokens; the one before it still holds.
        ([(6, usage(900, model="gpt-4o")), (9, usage(999, model="claude-haiku-4-5"))], {"model": "openai/gpt-4o"},
         Anchor(tokens=900, covered_count=4)),
        ([(6, usage(900, model="gpt-4o-mini"))], {"model": "gpt-4o"}, None),
        ([(6, usage(900))], {"model": "gpt-4o"}, Anchor(tokens=900, covered_count=4)),
        # A call that failed counted nothing.
        ([(6, usage(900)), (9, usage(0, 10))], {}, Anchor(tokens=900, covered_count=4)),
    ],
)  # fmt: skip
def test_the_last_count_that_holds(
    counted: list[tuple[int, Usage]], options: dict[str, object], expected: Anchor | None
) -> None:
    assert anchor_of(counted, seqs=SEQS, **options) == expected  # type: ignore[arg-type]


def test_what_the_cache_gave_is_part_of_the_prompt() -> None:
    counted = Usage(input_tokens=5, cache_read_tokens=9_000, cache_write_tokens=700, output_tokens=40)
    assert _usage_tokens(counted) == 9_705
    assert anchor_of([(9, counted)], seqs=SEQS) == Anchor(tokens=9_745, covered_count=7)


def test_after_an_undo_the_small_count_of_the_compacted_view_is_not_taken_for_the_full_one() -> None:
    # 50 compacts, 55 is a call on the short view, 60 undoes: the view is the long one again.
    short = [(45, usage(90_000)), (55, usage(9_000))]
    assert anchor_of(short, seqs=range(1, 61), changed_seq=60) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("gpt-4o", "gpt-4o", True),
        ("openai/gpt-4o", "gpt-4o-2024-08-06", True),
        ("anthropic/claude-haiku-4-5", "claude-haiku-4-5-20251001", True),
        ("vertex_ai/claude-haiku-4-5@20251001", "claude-haiku-4-5", True),
        ("mistral/mistral-large-latest", "Mistral-Large", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4", "gpt-4o", False),
        ("claude-haiku-4-5", "claude-haiku-4-6", False),
        ("通义千问-max", "dashscope/通义千问-max", True),
        ("通义千问-max", "通义千问-plus", False),
        (None, "gpt-4o", True),
        ("", None, True),
    ],
)
def test_names_of_one_model(one: str | None, other: str | None, same: bool) -> None:
    assert same_model(one, other) == same_model(other, one) == same


# --- learning ------------------------------------------------------------------------------------------------------


@given(calls)
def test_what_is_learned_has_bounds_and_is_the_same_each_time(pairs: list[tuple[int, int]]) -> None:
    scale = learned_scale(pairs)
    assert LEAST_SCALE <= scale <= MOST_SCALE
    assert learned_scale(iter(pairs)) == scale


def test_nothing_is_learned_from_nothing() -> None:
    assert learned_scale([]) == 1.0
    assert learned_scale([(1_000, 1_900)]) == 1.9


@pytest.mark.parametrize("odd", [12, 900_000])
def test_one_call_that_counted_something_else_does_not_decide(odd: int) -> None:
    # Without its cached part, or with a picture that was estimated as a label.
    pairs = [(10_000, 12_000), (20_000, 24_000), (30_000, odd), (40_000, 48_000), (50_000, 60_000)]
    assert 1.1 < learned_scale(pairs) < 1.45


def test_newer_calls_weigh_more() -> None:
    english, chinese = [(10_000, 9_000)] * 5, [(10_000, 16_000)] * 5
    assert learned_scale(english + chinese) > 1.4
    assert learned_scale(chinese + english) < 1.1


def test_pairs_are_of_one_model_and_complete() -> None:
    counted = [
        (1, usage(100, model="gpt-4o", estimated=90)),
        (2, usage(200, model="gpt-4o")),
        (3, usage(0, model="gpt-4o", estimated=90)),
        (4, usage(300, model="claude-haiku-4-5", estimated=90)),
        (5, usage(400, model="gpt-4o", estimated=0)),
        (6, Usage(input_tokens=5, cache_read_tokens=495, output_tokens=70, estimated_tokens=480)),
    ]
    assert pairs_of(counted, "openai/gpt-4o") == [(90, 100), (480, 500)]
    assert len(pairs_of(counted)) == 3


# --- sessions ------------------------------------------------------------------------------------------------------

ENGLISH = "Deploys go out on Tuesdays after the stand-up. "
CHINESE = "每周二站会之后部署，浇水系统先于灯光。"


@dataclass
class Session:
    """A conversation whose provider counts `ratio` tokens for each one estimated, the system prompt among them."""

    ratio: float
    lead: int
    rng: random.Random

    def readings(self) -> Iterator[tuple[int, Reading, int]]:
        """Each time a call is due: how many were made, what is read, and what it really takes."""
        estimates, counted = [self.lead], list[tuple[int, Usage]]()
        while sum(estimates) * self.ratio < 110_000:
            estimates += [self._message("user") for _ in range(self.rng.randint(1, 4))]
            real = self._real(estimates)
            yield len(counted), self._read(estimates, counted), real
            prompt = sum(estimates)
            estimates.append(self._message("assistant"))
            spoken = usage(real, self._real(estimates) - real, estimated=prompt)
            counted.append((len(estimates) - 1, spoken))

    def _read(self, estimates: list[int], counted: list[tuple[int, Usage]]) -> Reading:
        return measure_view(
            estimates,
            anchor=anchor_of(counted, seqs=range(len(estimates))),
            scale=learned_scale(pairs_of(counted)),
        )

    def _message(self, role: str) -> int:
        text = self.rng.choice((ENGLISH, CHINESE)) * self.rng.randint(1, 200)
        return message_tokens({"role": "assistant" if role == "assistant" else "user", "content": text})

    def _real(self, estimates: list[int]) -> int:
        return sum(round(self.ratio * each) for each in estimates)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.7, 2.0), st.integers(0, 15_000), st.integers(0, 10**6))
def test_after_three_calls_it_is_within_five_percent(ratio: float, lead: int, seed: int) -> None:
    for made, reading, real in Session(ratio, lead, random.Random(seed)).readings():
        if made >= 3:
            assert 0.95 * real <= reading.tokens <= 1.05 * real + 2
            assert reading.source == "usage"


@settings(max_examples=30, deadline=None)
@given(st.floats(0.7, 2.0), st.integers(0, 15_000), st.integers(0, 10**6))
def test_compaction_begins_before_the_window_is_full(ratio: float, lead: int, seed: int) -> None:
    window = resolve_window(session=64_000)
    budget = budget_for(window, DEFAULT_THRESHOLDS)
    for made, reading, real in Session(ratio, lead, random.Random(seed)).readings():
        if made >= 3 and real > window.tokens - budget.reserve_tokens:
            assert budget.pressure(reading.tokens) == "hard"


def test_long_sessions_are_measured_in_linear_time() -> None:
    estimates = list(range(50_000))
    counted = [(at, usage(at + 1, estimated=at)) for at in range(1, 25_000)]
    with at_most_readings(60):
        assert learned_scale(pairs_of(counted)) == pytest.approx(1.0, rel=1e-4)
        anchor = anchor_of(counted, seqs=estimates)
        assert measure_view(estimates, anchor=anchor).source == "usage"


def test_a_hostile_name_of_a_model_takes_no_time() -> None:
    with at_most_readings(500):
        for piece in ("-2024-08-06", "-latest", "/", "@", "模", "-20240806:"):
            same_model(piece * (1_000_000 // len(piece)) + "x", "gpt-4o")
