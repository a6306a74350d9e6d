from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.llm.errors import OVERFLOWS, PASSING, classify, is_compaction_failure
from tests.growth import assert_costs_at_most

TABLE: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "provider_errors.json").read_text(encoding="utf-8")
)

NUMBERS = {
    "window_tokens": "window",
    "requested_tokens": "requested",
    "input_tokens": "input",
    "max_output_tokens": "max_output",
    "limit_bytes": "limit_bytes",
    "requested_bytes": "requested_bytes",
    "retry_after_seconds": "retry_after",
}
# Named in the wording of their overflows alone, without a URL or a class name.
NAMED = {
    "openrouter",
    "copilot",
    "bedrock",
    "vertex",
    "mistral",
    "xai",
    "zhipu",
    "moonshot",
    "minimax",
    "qianfan",
    "ark",
}


def row_id(row: dict[str, Any]) -> str:
    return f"{row.get('provider', 'look-alike')}-{row['text'][:50]}"


@pytest.mark.parametrize("row", TABLE["errors"], ids=row_id)
def test_real_errors_are_understood(row: dict[str, Any]) -> None:
    failure = classify(row["text"], status=row.get("status"))
    assert failure.kind == row["kind"]
    assert {name: getattr(failure, name) for name in NUMBERS} == {name: row.get(key) for name, key in NUMBERS.items()}
    assert failure.transient == row.get("transient", failure.kind in PASSING)
    assert failure.provider in (row["provider"], None)


@pytest.mark.parametrize("row", TABLE["look_alikes"], ids=row_id)
def test_what_looks_like_an_overflow_and_is_none(row: dict[str, Any]) -> None:
    failure = classify(row["text"], status=row.get("status"))
    assert failure.kind == row["kind"]
    assert failure.kind not in OVERFLOWS
    assert failure.window_tokens is None


def test_the_table_covers_the_field() -> None:
    assert len(TABLE["errors"]) >= 80
    assert len(TABLE["look_alikes"]) >= 25
    overflowing = {row["provider"] for row in TABLE["errors"] if row["kind"] == "token_overflow"}
    assert len(overflowing - {None}) >= 25
    hinted = {row["provider"] for row in TABLE["errors"] if classify(row["text"], status=row.get("status")).provider}
    assert hinted >= NAMED


@pytest.mark.parametrize("row", [row for row in TABLE["errors"] if row["kind"] == "token_overflow"], ids=row_id)
def test_a_failed_compaction_is_no_overflow_whatever_it_quotes(row: dict[str, Any]) -> None:
    for text in (f"Summarization failed: {row['text']}", f"Compaction failed: 400 {row['text']}"):
        assert is_compaction_failure(text)
        assert classify(text, status=400).kind not in OVERFLOWS
    assert not is_compaction_failure(row["text"])


@pytest.mark.parametrize("row", [row for row in TABLE["errors"] if row["kind"] == "token_overflow"], ids=row_id)
def test_clients_and_proxies_wrap_texts(row: dict[str, Any]) -> None:
    message = json.dumps({"error": {"message": row["text"]}})
    for text in (message, f"litellm.BadRequestError: OpenAIException - {row['text']}", f"Error code: 400 - {message}"):
        failure = classify(text)
        assert (failure.kind, failure.window_tokens) == ("token_overflow", row.get("window")), text


def test_413_means_bytes_unless_the_text_speaks_of_tokens() -> None:
    assert classify("Too big.", status=413).kind == "byte_overflow"
    assert classify("prompt is too long: 210000 tokens > 200000 maximum", status=413).kind == "token_overflow"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "auth"), (402, "quota"), (403, "auth"), (404, "unsupported"), (408, "timeout"), (409, "unavailable"),
        (413, "byte_overflow"), (429, "rate_limit"), (500, "unavailable"), (503, "unavailable"), (529, "unavailable"),
        (400, "other"), (422, "other"), (None, "other"),
    ],
)  # fmt: skip
def test_where_the_text_says_nothing_the_status_does(status: int | None, kind: str) -> None:
    assert classify("No.", status=status).kind == kind


def test_a_status_in_the_text_counts() -> None:
    assert classify("HTTP 503: <html>down</html>").kind == "unavailable"
    assert classify("Error code: 413 - {'error': {'message': 'no'}}").kind == "byte_overflow"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 21m30s.", 1290.0),
        ("try again in 350ms", 0.35),
        ("try again in 1h2m", 3720.0),
        ("Please retry after 22 seconds.", 22.0),
        ('{"retryDelay": "37s"}', 37.0),
        ("retry-after: 4", 4.0),
        ("请在 15 秒后重试", 15.0),
        ("Please retry in 43.394069735s.", 43.394069735),
        ("try again later", None),
    ],
)
def test_waits(text: str, seconds: float | None) -> None:
    assert classify(f"Rate limit reached. {text}", status=429).retry_after_seconds == pytest.approx(seconds)


def test_one_request_over_the_allowance_of_a_minute_does_not_pass_by_waiting() -> None:
    text = "Rate limit reached on tokens per min (TPM): Limit {}, Requested {}."
    assert classify(text.format("30,000", "2,000"), status=429).transient
    assert not classify(text.format("30,000", "95,722"), status=429).transient


def test_a_quoted_prompt_does_not_hide_what_is_said() -> None:
    text = "prompt is too long: 210000 tokens > 200000 maximum"
    quoted = "word " * 200_000
    assert classify(f"{text}. Input was: {quoted}", status=400).window_tokens == 200_000
    assert classify(f"Input was: {quoted} {text}", status=400).window_tokens == 200_000


@pytest.mark.parametrize(
    "text",
    [
        "maximum context length is {} tokens",
        "context size: {}k",
        "limit: {}, requested: 3",
        "payload too large, limit of {} bytes",
        "try again in {}s",
    ],
)
def test_a_number_without_end_is_read(text: str) -> None:
    for number in ("9" * 5_000, "9" + ",999" * 3_000, "1.2.3", "9" * 500):
        failure = classify(text.format(number), status=400)
        assert failure.retry_after_seconds is None or failure.retry_after_seconds < 1e20


@pytest.mark.parametrize(
    "piece",
    ["1", "1,234,", "context ", "maximum context length is ", "\\u8d85", "\\", "model ", "tokens (", "prompt ("],
)
def test_no_text_takes_much_longer_than_another(piece: str) -> None:
    prose, hostile = "Something went wrong, and nobody can tell what it was. " * 2_000, piece * (100_000 // len(piece))
    assert_costs_at_most(25, lambda: classify(hostile, status=400), lambda: classify(prose, status=400))


@given(st.text(), st.sampled_from([None, 200, 400, 413, 429, 500]))
def test_any_text_is_classified(text: str, status: int | None) -> None:
    failure = classify(text, status=status)
    assert failure == classify(text, status=status)
    assert not failure.transient or failure.kind in PASSING
