from __future__ import annotations

import json

import pytest

from memory_service.llm.reasons import MOST_REASON_CHARS, provider_reason

SENT = "Lisbeth keeps the key of the orchard gate under the blue stone beside the well."
KEY = "sk-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("litellm.BadRequestError: OpenAIException - bad request boom", "bad request boom"),
        ('Error code: 400 - {"error": {"message": "Unknown model.", "type": "x"}}', "Unknown model."),
        (json.dumps({"detail": [{"loc": ["body"], "msg": "extra_forbidden"}]}), "extra_forbidden"),
        ("litellm.APIError: APIError: OpenAIException - busy | busy", "busy"),
        ("模型不可用", "模型不可用"),
        ("a\n  b\tc", "a b c"),
        ("{not json", "{not json"),
        ("", ""),
    ],
)
def test_the_providers_own_words_are_found(text: str, reason: str) -> None:
    assert provider_reason(text) == reason


def test_no_secret_and_nothing_that_was_sent_is_in_a_reason() -> None:
    said = provider_reason(f"The key {KEY} may not ask: “{SENT}” was blocked.", [f"Before. {SENT} After."])
    assert KEY not in said and "Lisbeth" not in said and "stone" not in said
    assert said.startswith("The key ") and said.endswith("was blocked.")


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_a_short_quotation_at_any_place_is_left_out(before: str) -> None:
    assert "vault" not in provider_reason(f"{before} the vault opens with 4711.", ["the vault opens with 4711"])


def test_keys_of_any_form_are_left_out() -> None:
    assert provider_reason("Bad key: open-sesame.", keys=["", "open-sesame"]) == "Bad key: [redacted]."


def test_a_reason_is_short() -> None:
    assert len(provider_reason("word " * 10_000)) <= MOST_REASON_CHARS
    assert len(provider_reason("x" * 10_000, ["x" * 100])) <= MOST_REASON_CHARS
