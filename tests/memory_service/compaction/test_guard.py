from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.compaction.prune_steps import GuardRules, _guard_limit_chars, guarded_view
from memory_service.messages.shapes import Message, is_tool_result, text_of
from memory_service.messages.sizes import Numbered, count_tokens, message_tokens, number_message
from memory_service.messages.units import units_of
from memory_service.text.placeholders import OUTPUT_REMOVED, TRUNCATED
from tests.memory_service.messages.test_repair import IMAGE, calls, result, sequences, user

SEED_002 = GuardRules(share=0.25, clear_share=0.5, notice=TRUNCATED)


def view(*messages: Message) -> list[Numbered]:
    return [number_message(message, seq) for seq, message in enumerate(messages, start=1)]


def of_tokens(tokens: int, char: str = "a") -> Message:
    return result("c", char * tokens if char != "a" else char * 4 * tokens)


def test_the_limit_is_a_share_of_the_window_up_to_a_cap() -> None:
    assert _guard_limit_chars(8_000) == 9_600
    assert _guard_limit_chars(8_000, share=0.5) == 16_000
    assert _guard_limit_chars(200_000) == 50_000
    assert _guard_limit_chars(0) == 0


def test_results_within_their_share_are_the_same_objects() -> None:
    messages = view(user("a" * 100_000), calls("c"), of_tokens(2_300), user("so"))
    assert all(new is old for new, old in zip(guarded_view(messages, GuardRules(), 8_000), messages, strict=True))


@pytest.mark.parametrize("char", ["a", "读"])
def test_seed_002_cuts_what_is_large_and_clears_what_is_too_large(char: str) -> None:
    sizes = (2_400, 2_600, 4_900, 5_100)
    guarded = guarded_view(view(*(of_tokens(tokens, char) for tokens in sizes)), SEED_002, 10_000)
    small, large, larger, too_large = (text_of(each.message) for each in guarded)
    assert small == text_of(of_tokens(2_400, char))
    for cut, seq in ((large, 2), (larger, 3)):
        assert cut.startswith(char * 400)
        assert f"\n{TRUNCATED} [... " in cut
        assert cut.endswith(f"left out; log:{seq}]")
    assert too_large == f"{OUTPUT_REMOVED} log:4"
    assert 2_400 <= count_tokens(text_of(guarded[1].message)) + 4 <= 2_510


def test_by_default_a_beginning_is_kept_however_large_a_result_is() -> None:
    (cut,) = guarded_view(view(of_tokens(900_000)), GuardRules(), 200_000)
    assert 12_000 <= cut.tokens <= 12_510


def test_the_newest_result_and_errors_are_cut_too_and_pins_are_not() -> None:
    failed: Message = {**of_tokens(5_000), "is_error": True}
    messages = view(calls("c"), failed, user("now"), calls("c"), of_tokens(5_000))
    cut = guarded_view(messages, GuardRules(), 10_000, protected_numbers={2})
    assert cut[1] is messages[1]
    assert cut[4].tokens < 3_100
    assert guarded_view(messages, GuardRules(), 10_000)[1].message.get("is_error")


def test_media_of_a_cut_result_stay() -> None:
    message: Message = {**result("c"), "content": [{"type": "text", "text": "图" * 9_000}, IMAGE]}
    (cut,) = guarded_view(view(message), GuardRules(), 10_000)
    content = cut.message.get("content")
    assert isinstance(content, list)
    assert content[-1] == IMAGE


@settings(max_examples=40)
@given(sequences, st.integers(0, 3_000), st.sampled_from([GuardRules(), SEED_002, GuardRules(max_chars=40)]))
def test_the_guard_only_makes_results_smaller(messages: list[Message], window: int, rules: GuardRules) -> None:
    long = [
        result(each.get("tool_call_id", ""), text_of(each) * 40) if is_tool_result(each) else each for each in messages
    ]
    before = view(*long)
    once = guarded_view(before, rules, window)
    assert all(new is old or is_tool_result(old.message) for new, old in zip(once, before, strict=True))
    assert all(new.tokens <= old.tokens for new, old in zip(once, before, strict=True))
    assert all(each.tokens == message_tokens(each.message) for each in once)
    assert units_of([each.message for each in once]) == units_of(long)
    assert guarded_view(once, rules, window) == once
