"""What exceptions of failed calls tell, whatever they are made of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from memory_service.client._refusals import refusal_of
from memory_service.llm.errors import classify


class Told(Exception):
    """An exception with whatever attributes."""

    def __init__(self, text: str = "", **attributes: Any) -> None:
        super().__init__(text)
        vars(self).update(attributes)


class Broken(Exception):
    """One that cannot be read at all."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __getattr__(self, name: str) -> object:
        raise RuntimeError("no attribute")


def test_a_bare_http_client_names_the_status_and_its_body_the_reason() -> None:
    request = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")
    response = httpx.Response(400, text='{"error": "prompt is too long: 9 tokens > 8 maximum"}', request=request)
    with pytest.raises(httpx.HTTPStatusError) as caught:
        response.raise_for_status()
    refusal = refusal_of(caught.value)
    assert refusal.status == 400
    assert classify(refusal.text, status=refusal.status).kind == "token_overflow"
    stream = httpx.Response(400, stream=httpx.ByteStream(b"x"), request=request)
    assert refusal_of(httpx.HTTPStatusError("Bad", request=request, response=stream)).text == "Bad"


def test_a_body_that_the_text_has_is_not_said_twice() -> None:
    error = Told('400: {"a": "超长"}', status_code=400, body='{"a": "超长"}', response=SimpleNamespace(text=""))
    assert refusal_of(error).text == '400: {"a": "超长"}'
    assert refusal_of(Told("400", body={"message": "Prompt 超长"})).text == '400\n{"message": "Prompt 超长"}'
    assert refusal_of(Told("400", body={"x": object()})).text == "400"


@pytest.mark.parametrize(
    ("attributes", "status"),
    [
        ({"status_code": 429}, 429),
        ({"status": 503}, 503),
        ({"code": 404}, 404),
        ({"response": SimpleNamespace(status_code=413)}, 413),
        ({"code": "context_length_exceeded"}, None),
        ({"status_code": 7}, None),
        ({"status_code": True}, None),
        ({}, None),
    ],
)
def test_the_status(attributes: dict[str, Any], status: int | None) -> None:
    assert refusal_of(Told("x", **attributes)).status == status


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        (httpx.Headers({"RETRY-AFTER": "3"}), 3.0),
        ({"retry-after": format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "-1"}, None),
        ("retry-after: 2", None),
        (None, None),
    ],
)
def test_how_long_to_wait(headers: object, seconds: float | None) -> None:
    assert refusal_of(Told("x", response=SimpleNamespace(headers=headers))).retry_after_seconds == seconds
    assert refusal_of(Told("x", response=None, headers=headers)).retry_after_seconds == seconds


def test_a_date_to_wait_for() -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    wait = refusal_of(Told("x", headers={"retry-after": at})).retry_after_seconds
    assert wait is not None
    assert 55 < wait <= 60


@pytest.mark.parametrize(
    ("error", "kind"),
    [(TimeoutError(), "timeout"), (ConnectionResetError(), "unavailable"), (httpx.ReadTimeout(""), "timeout")],
)
def test_an_exception_without_words_is_understood(error: Exception, kind: str) -> None:
    assert classify(refusal_of(error).text).kind == kind


def test_nothing_makes_reading_fail() -> None:
    assert refusal_of(Broken()).text == "Broken"
    assert refusal_of("半个 \ud800").text == "半个 ?"
    long = refusal_of(Told("甲" * 500_000 + "乙" * 500_000)).text
    assert len(long) < 200_010
    assert (long[0], long[-1]) == ("甲", "乙")
