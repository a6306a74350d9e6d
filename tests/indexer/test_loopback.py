"""A server whose answers are a test's own: what its users rely on."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from indexer.testing import Exchange, LoopbackServer


class Played(LoopbackServer):
    def __init__(self, act: Callable[[Exchange], None]) -> None:
        super().__init__()
        self.act = act

    def answer(self, exchange: Exchange) -> None:
        self.act(exchange)


def asked(server: Played, body: object, *, timeout: float = 20) -> tuple[int, str, str]:
    """Status, content, and the header of a test's own."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=timeout)
    with closing(connection):
        connection.request("POST", "/v1/any", json.dumps(body), {"X-Any": "yes"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), f"{answer.headers['x-one']} {answer.headers['content-type']}"


def test_a_request_is_recorded_before_it_is_answered() -> None:
    seen: list[int] = []

    def act(exchange: Exchange) -> None:
        seen.append(len(server.requests))
        exchange.send(201, json.dumps({"got": exchange.request.body}), {"x-one": "1"})

    with Played(act) as server:
        status, text, headers = asked(server, {"a": "茶"})
        assert (status, json.loads(text), headers) == (201, {"got": {"a": "茶"}}, "1 application/json")
    assert seen == [1] and server.requests[0].headers["x-any"] == "yes"


def test_a_connection_may_break_and_a_wait_ends_with_the_server() -> None:
    with Played(lambda exchange: exchange.hang_up()) as server, pytest.raises(http.client.RemoteDisconnected):
        asked(server, {})
    # Longer than a test may take: it fails if it is waited for.
    with Played(lambda exchange: exchange.hang_up(after_seconds=3600)) as server:
        with pytest.raises(TimeoutError):
            asked(server, {}, timeout=0.2)
