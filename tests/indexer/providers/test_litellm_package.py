"""What an exception of litellm tells, without the package; with it, the tests of both its users."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from indexer.providers.litellm_package import ProviderMessage, _even_timeout, _seconds_until, provider_message


class Answered(Exception):
    """An HTTP error as litellm and the clients below it raise them."""

    def __init__(self, text: str, status: int, **headers: str) -> None:
        super().__init__(text)
        self.status_code = status
        self.litellm_response_headers = {name.replace("_", "-"): value for name, value in headers.items()}


def raised_from(error: Exception, cause: Exception) -> Exception:
    try:
        raise error from cause
    except Exception as raised:
        return raised


def test_retry_after_may_be_a_date() -> None:
    assert 50 < (_seconds_until(format_datetime(datetime.now(UTC) + timedelta(seconds=60))) or 0) <= 60
    assert _seconds_until("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert _seconds_until("-5") == 0
    assert [_seconds_until(value) for value in ("soon", "nan", "inf", "1e999")] == [None] * 4


def test_the_status_is_the_providers_own_and_the_wait_that_of_whoever_tells_it() -> None:
    own = Answered("Request too large.", 413, retry_after="7")
    told = provider_message(raised_from(Answered("RateLimitError", 429), own))
    assert told == ProviderMessage(text="RateLimitError | Request too large.", status=413, wait_seconds=7.0)


@pytest.mark.parametrize(
    "error", [OSError("Connection reset"), raised_from(OSError("Connection reset"), KeyError("x"))]
)
def test_no_answer_has_no_status(error: Exception) -> None:
    assert provider_message(error) == ProviderMessage(text="Connection reset", status=None, wait_seconds=None)


@pytest.mark.parametrize(
    ("seconds", "even"), [(9.98, 10), (10, 10), (0.31, 0.4), (0.3, 0.3), (31, 40), (299.9, 300), (0.001, 0.001)]
)
def test_a_timeout_is_rounded_up_to_one_digit(seconds: float, even: float) -> None:
    assert _even_timeout(seconds) == pytest.approx(even)
