"""What holds for every step, whatever the messages are."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.compaction.duplicates import duplicates
from memory_service.compaction.prune_steps import (
    PriorPruning,
    Pruned,
    PruningRules,
    may_prune,
    pruned_view,
    results_of,
    view_tokens,
)
from memory_service.compaction.pruning import _cache_ttl, _to_target, budget, media, media_to_bytes
from memory_service.messages.repair import repair_messages
from memory_service.messages.shapes import Message, is_tool_result, text_of
from memory_service.messages.sizes import Numbered, number_message
from memory_service.messages.units import units_of
from memory_service.text.placeholders import OLD_CLEARED
from tests.memory_service.messages.test_repair import (
    calls,
    result,
    rules_of,
    says,
    sequences,
    user,
    valid_sequences,
    wire,
)
from tests.wire import PROVIDERS, problems

NOW = datetime(2026, 11, 20, tzinfo=UTC)
EAGER = PruningRules(
    min_result_chars=80,
    soft_trim_chars=400,
    head_chars=100,
    tail_chars=100,
    keep_last_assistants=1,
    min_prunable_chars=100,
    protect_turns=1,
    protect_tokens=60,
    budget_gain_tokens=50,
    min_gain_tokens=10,
    stale_after=1,
    keep_image_results=1,
)
FIXED = replace(EAGER, placeholder=OLD_CLEARED, min_result_chars=400)
TINY = replace(EAGER, min_result_chars=0, soft_trim_chars=0, head_chars=4, tail_chars=4, protect_tokens=0)

Step = Callable[[Sequence[Numbered], PruningRules, PriorPruning], Pruned]


def _by_cache_ttl(messages: Sequence[Numbered], rules: PruningRules, prior: PriorPruning) -> Pruned:
    tokens = view_tokens(messages, prior)
    return _cache_ttl(messages, rules, window_tokens=600, tokens=tokens, now=NOW, last_used_at=None, prior=prior)


def _by_to_target(messages: Sequence[Numbered], rules: PruningRules, prior: PriorPruning) -> Pruned:
    tokens = view_tokens(messages, prior)
    return _to_target(messages, rules, tokens=tokens, target_tokens=300, window_tokens=1_000, prior=prior)


STEPS: dict[str, Step] = {
    "duplicates": lambda messages, rules, prior: duplicates(messages, rules, prior=prior),
    "cache_ttl": _by_cache_ttl,
    "budget": lambda messages, rules, prior: budget(messages, rules, prior=prior),
    "to_target": _by_to_target,
    "media": lambda messages, rules, prior: media(messages, prior=prior),
    "media_hard": lambda messages, rules, prior: media(messages, hard=True, prior=prior),
    "media_to_bytes": lambda messages, rules, prior: media_to_bytes(messages, 30, prior=prior),
}


def longer(message: Message, times: int) -> Message:
    """The same message; of a result, its text so many times."""
    content = message.get("content")
    if not is_tool_result(message) or not content:
        return message
    if isinstance(content, str):
        return {**message, "content": (content + " 输出\n") * times}
    return {**message, "content": [{"type": "text", "text": "文字" * times}, *content]}


@st.composite
def views(draw: st.DrawFn) -> list[Numbered]:
    messages = draw(st.one_of(sequences, valid_sequences()))
    times = [draw(st.sampled_from([1, 30, 60, 200])) for _ in messages]
    return [
        number_message(longer(message, by), seq)
        for seq, (message, by) in enumerate(zip(messages, times, strict=True), 1)
    ]


givens = st.builds(
    PriorPruning,
    protected=st.frozensets(st.integers(1, 12), max_size=3),
    pending=st.frozensets(st.sampled_from("abc"), max_size=1),
)


@pytest.mark.parametrize("name", STEPS)
@settings(max_examples=25)
@given(messages=views(), rules=st.sampled_from([EAGER, FIXED, TINY]), settled=givens)
def test_a_step_takes_out_only_what_it_may_and_only_once(
    name: str, messages: list[Numbered], rules: PruningRules, settled: PriorPruning
) -> None:
    before = copy.deepcopy(messages)
    done = STEPS[name](messages, rules, settled)
    after = pruned_view(messages, done.cleared, done.stripped)
    assert messages == before

    assert done.tokens_after <= done.tokens_before
    assert done.tokens_before == sum(each.tokens for each in messages)
    assert done.tokens_after == sum(each.tokens for each in after)
    assert units_of([each.message for each in after]) == units_of([each.message for each in messages])
    for old, new in zip(messages, after, strict=True):
        if new is not old:
            assert old.seq not in settled.protected
            assert new.tokens < old.tokens or name.startswith("media")
            assert new.message.get("tool_call_id") == old.message.get("tool_call_id")
            assert f"log:{old.seq}" in text_of(new.message)
    for seq in done.cleared:
        message = messages[seq - 1].message
        assert is_tool_result(message)
        assert not message.get("is_error")
        assert message.get("tool_call_id") not in settled.pending
        assert any(each.message["role"] == "assistant" for each in messages[seq:])

    again = STEPS[name](messages, rules, settled.after(done))
    assert (again.cleared, again.stripped, again.gain_tokens) == ({}, (), 0)


@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=20)
@given(messages=views(), rules=st.sampled_from([EAGER, FIXED, TINY]))
def test_after_all_steps_no_provider_refuses_the_view(
    provider: str, messages: list[Numbered], rules: PruningRules
) -> None:
    settled = PriorPruning()
    for step in STEPS.values():
        settled = settled.after(step(messages, rules, settled))
    view = [each.message for each in pruned_view(messages, settled.already, settled.stripped)]
    each_provider = next(known for known in PROVIDERS if known == provider)
    sent = repair_messages(view, rules=rules_of(each_provider)).messages
    assert not problems(wire(sent, each_provider), each_provider)


def test_a_valid_conversation_needs_no_repair_after_the_steps() -> None:
    texts = ["读取 " * 400, "b" * 2_000, "c" * 2_000]
    messages = [
        user("go"),
        *(each for at, text in enumerate(texts) for each in (calls(f"c{at}"), result(f"c{at}", text))),
    ]
    view = [
        number_message(message, seq)
        for seq, message in enumerate([*messages, says("done"), user("more"), says("so")], 1)
    ]
    for name in ("cache_ttl", "budget", "to_target"):
        done = STEPS[name](view, EAGER, PriorPruning())
        assert done.cleared, name
        assert not repair_messages([each.message for each in pruned_view(view, done.cleared)]).repairs


def test_a_pattern_is_matched_whatever_the_case_and_denying_wins() -> None:
    allowed = partial(may_prune, allow=("web_*", "读*"), deny=("Web_Secret",))
    assert [allowed(name) for name in ("Web_fetch", "读文件", "WEB_SECRET", "bash", "")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert may_prune("", (), ("skill",))


def test_what_the_model_has_not_read_is_not_found() -> None:
    text = "x" * 2_000
    messages = [user("go"), calls("a"), result("a", text), calls("b", "c"), result("b", text)]
    view = [number_message(message, seq) for seq, message in enumerate(messages, 1)]
    assert [found.numbered.seq for found in results_of(view, EAGER)] == [3]
    assert results_of(view[:3], EAGER) == []
    late = [*view, number_message(says("ok"), 6)]
    assert [found.numbered.seq for found in results_of(late, EAGER)] == [3, 5]


def test_what_stands_for_a_result_comes_in_its_size_and_text() -> None:
    view = [
        number_message(message, seq)
        for seq, message in enumerate([calls("a"), result("a", "x" * 9_000), says("ok")], 1)
    ]
    (found,) = results_of(view, EAGER, PriorPruning(already={2: "y" * 400}))
    assert (found.text, found.tokens) == ("y" * 400, 104)
    assert results_of(view, EAGER, PriorPruning(already={2: "[cleared] log:2"})) == []


def test_what_a_stub_would_make_longer_stays() -> None:
    texts = ["ok", "好", "x" * 300]
    messages = [
        user("go"),
        *(each for at, text in enumerate(texts) for each in (calls(f"c{at}"), result(f"c{at}", text))),
    ]
    view = [number_message(message, seq) for seq, message in enumerate([*messages, says("done")], 1)]
    done = _to_target(view, TINY, tokens=900, target_tokens=0, window_tokens=1_000, force=True)
    assert [*done.cleared] == [7]
