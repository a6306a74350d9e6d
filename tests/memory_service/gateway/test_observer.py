"""Reading along: events however they are cut, limits, compressed answers, and what happens to bytes after a fault."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from indexer.testing import HashEmbedder
from memory_service.gateway.base import MOST_KEPT_CHARS
from memory_service.gateway.chat import ChatCompletions
from memory_service.gateway.observer import (
    MOST_READ_BYTES,
    ReadAlong,
    read_whole,
    readable_encoding,
)
from memory_service.gateway.responses import OpenAIResponses
from memory_service.service import EventSplitter, MemoryService, Unreadable
from tests.campaigns.answers import PATHS, Answer, RawUpstream, good_answer, good_events, sse
from tests.campaigns.mutations import written
from tests.serving import RunningServer, W, serving, settings

_EVENTS = "text/event-stream"


@pytest.fixture(name="upstream")
def _upstream() -> Iterator[RawUpstream]:
    with RawUpstream() as upstream:
        yield upstream


@pytest.fixture(name="server")
def _server(tmp_path: Path, upstream: RawUpstream) -> Iterator[RunningServer]:
    base = f"http://127.0.0.1:{upstream.port}"
    named = {
        "openai": {"protocol": "openai", "base_url": f"{base}/v1"},
        "anthropic": {"protocol": "anthropic", "base_url": base},
    }
    values = settings(tmp_path, gateway={"upstreams": named})
    with serving(MemoryService(values, embedder=HashEmbedder())) as server:
        yield server


def asked(server: RunningServer, protocol: str, model: str, *, stream: bool, **fields: Any) -> httpx.Response:
    said = [{"role": "user", "content": "When?"}]
    body = {"model": model, "stream": stream, "input" if protocol == "responses" else "messages": said, **fields}
    return server.http.post(PATHS[protocol], json=body, headers={"X-Memory-Session": "s", "accept-encoding": "gzip"})


def log(server: RunningServer) -> list[dict[str, Any]]:
    answer = server.http.get(f"{W}/sessions/s/messages", params={"view": "log"})
    return list(answer.json()["messages"])


def degraded(server: RunningServer, part: str) -> float:
    lines = server.http.get("/metrics").text.splitlines()
    return sum(float(line.split()[1]) for line in lines if f'degraded_answers_total{{part="{part}"}}' in line)


def test_events_are_the_same_however_they_are_cut() -> None:
    plain = (
        b'\xef\xbb\xbfevent: a\ndata: 1\ndata:2\n\n: note\n\nid: 7\ndata: {"x": "\xc3\xa9"}\n\n\n\ndata\n\ndata: rest'
    )
    for ends in (b"\n", b"\r\n", b"\r"):
        raw = plain.replace(b"\n", ends)
        for size in (1, 2, 3, 7, len(raw)):
            splitter = EventSplitter()
            pieces = (raw[at : at + size] for at in range(0, len(raw), size))
            events = [(event.name, event.text) for piece in pieces for event in splitter.feed(piece)]
            assert events == [("a", "1\n2"), ("", '{"x": "é"}'), ("", "")], (ends, size)
            assert splitter.rest() == b"data: rest" and splitter.rest() == b""


def test_an_event_without_an_end_is_held_up_to_a_limit() -> None:
    reading = ReadAlong(ChatCompletions())
    piece = b"x" * 10_000
    for _ in range(MOST_READ_BYTES // len(piece) + 2):
        assert reading.feed(piece) == piece
    assert "longer than" in reading.fault
    assert reading._events._buffer == b"" and reading.feed(b"data: [DONE]\n\n") == b"data: [DONE]\n\n"
    assert not reading.has_ended and reading.answer(whole=True).messages == ()


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({"choices": "x"}, "its field choices"),
        ({"choices": [7]}, "no object"),
        ({"choices": [{"index": "abc"}]}, "the number of a part"),
        ({"choices": [{"delta": {"content": ["x"]}}]}, "a piece of its text"),
    ],
)
def test_a_fault_ends_the_reading_and_nothing_of_it_is_kept(event: dict[str, Any], why: str) -> None:
    reading, good = ReadAlong(ChatCompletions()), sse(good_events("chat"))
    passed = [reading.feed(piece) for piece in [*good[:2], *sse([event]), *good[2:]]]
    assert b"".join(passed) == b"".join([*good[:2], *sse([event]), *good[2:]])
    assert why in reading.fault and reading.answer(whole=True).messages == ()


def test_what_is_kept_of_an_endless_answer_is_bounded() -> None:
    reading, piece = ReadAlong(ChatCompletions()), "x" * 100_000
    event = sse([{"choices": [{"index": 0, "delta": {"content": piece}}]}])[0]
    for _ in range(60):
        reading.feed(event)
    reading.feed(b"data: [DONE]\n\n")
    [message] = reading.answer(whole=True).messages
    assert MOST_KEPT_CHARS <= len(message["content"]) <= MOST_KEPT_CHARS + len(piece)
    assert reading.has_ended and "only its first" in reading.omission
    calls = ReadAlong(ChatCompletions())
    for number in range(10_002):
        calls.feed(sse([{"choices": [{"index": 0, "delta": {"tool_calls": [{"index": number}]}}]}])[0])
    assert "more than 10,000 parts" in calls.fault


def test_a_stream_with_other_events_goes_on_whole_after_a_fault() -> None:
    good = sse(good_events("responses"))
    bad = b'data: {"type": "response.output_text.delta", "sequence_number": "x", "output_index": "abc"}\n\n'
    reading = ReadAlong(OpenAIResponses(), "", "sealed")
    passed = [reading.feed(piece) for piece in good[:3]]
    rest = b"".join([bad, *good[3:]])
    passed += [reading.feed(rest[at : at + 50]) for at in range(0, len(rest), 50)]
    passed.append(reading.rest())
    told = b"".join(passed)
    assert reading.fault and b'"encrypted_content": "sealed"' in told
    assert told.endswith(rest)


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress])
def test_a_compressed_answer_is_read_and_a_bomb_is_not_inflated(compress: Any) -> None:
    encoding = "gzip" if compress is gzip.compress else "deflate"
    content = written(good_answer("chat"))
    assert read_whole(ChatCompletions(), compress(content), encoding)[1].messages[0]["content"] == "It is Tuesday."
    for plain, why in (
        (b"\0" * 20_000_000, "longer than"),
        (b"[" * 200_000, "RecursionError"),
        (b"[]", "no JSON object"),
    ):
        with pytest.raises(Unreadable, match=why):
            read_whole(ChatCompletions(), compress(plain), encoding)
    reading, flood = ReadAlong(ChatCompletions(), encoding), compress(b": %b\n\n" % (b"x" * 1_000) * 20_000)
    for at in range(0, len(flood), 5_000):
        reading.feed(flood[at : at + 5_000])
    assert "once it is not compressed" in reading.fault
    with pytest.raises(Unreadable, match="encoded as 'br'"):
        read_whole(ChatCompletions(), content, "br")


def test_a_caller_gets_no_encoding_that_cannot_be_read() -> None:
    assert readable_encoding("gzip, deflate, br, zstd") == "gzip, deflate"
    assert readable_encoding("br;q=1.0, GZIP;q=0.5") == "gzip"
    assert readable_encoding("gzip;q=0, br") == readable_encoding("") == readable_encoding("*") == "identity"


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_compressed_answer_goes_on_as_it_came_and_is_kept(
    server: RunningServer, upstream: RawUpstream, protocol: str, stream: bool
) -> None:
    plain = b"".join(sse(good_events(protocol))) if stream else written(good_answer(protocol))
    kind = _EVENTS if stream else "application/json"
    [model] = upstream.named([Answer(name="gzip", pieces=[gzip.compress(plain)], kind=kind, encoding="gzip")])
    answer = asked(server, protocol, model, stream=stream)
    assert answer.headers["content-encoding"] == "gzip" and answer.content == plain
    assert "x-memory-degraded" not in answer.headers
    assert [message["role"] for message in log(server)] == ["user", "assistant"]


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_cannot_be_read_goes_on_and_memory_says_so(
    server: RunningServer, upstream: RawUpstream, protocol: str, stream: bool
) -> None:
    deep = b"[" * 200_000
    good = sse(good_events(protocol))
    pieces = [*good[:2], b"data: " + deep + b"\n\n", *good[2:]] if stream else [deep]
    [model] = upstream.named([Answer(name="deep", pieces=pieces, kind=_EVENTS if stream else "application/json")])
    answer = asked(server, protocol, model, stream=stream)
    assert answer.content == b"".join(pieces) and answer.status_code == 200
    assert [message["role"] for message in log(server)] == ["user"]
    assert degraded(server, "answer") == 1
    if not stream:
        assert answer.headers["x-memory-degraded"].startswith("answer: ")
    # The client sends the answer back with its next call, which keeps it.
    said = [
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": "Then."},
        {"role": "user", "content": "Ok"},
    ]
    fields = {"input" if protocol == "responses" else "messages": said}
    assert asked(server, protocol, "m", stream=stream, **fields).status_code == 200
    assert [message["role"] for message in log(server)] == ["user", "assistant", "user", "assistant"]


def test_a_long_answer_in_one_piece_is_not_collected(server: RunningServer, upstream: RawUpstream) -> None:
    content = json.dumps({"choices": [], "x": "y" * (MOST_READ_BYTES + 10)}).encode()
    [model] = upstream.named([Answer(name="long", pieces=[content], kind="application/json", length=len(content))])
    answer = asked(server, "chat", model, stream=False)
    assert answer.content == content and answer.headers["content-length"] == str(len(content))
    assert "longer than" in answer.headers["x-memory-degraded"]


@pytest.mark.parametrize("stream", [False, True])
def test_what_was_broken_off_is_broken_off(server: RunningServer, upstream: RawUpstream, stream: bool) -> None:
    pieces = sse(good_events("chat"))[:2] if stream else [b'{"choices": [']
    kind = _EVENTS if stream else "application/json"
    [model] = upstream.named([Answer(name="cut", pieces=pieces, kind=kind, is_whole=False)])
    with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
        asked(server, "chat", model, stream=stream)
    assert [message.get("_cut") for message in log(server)] == [None, *(["the upstream broke off"] if stream else [])]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"input": [{"type": ["x"]}]}),
        ("/v1/responses", {"input": [{"type": {"type": "text"}}]}),
        ("/v1/responses", {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "n", "input": ["x", 7]}]}),
        ("/v1/responses/compact", {"input": "\ud800"}),
        ("/v1/chat/completions", {"messages": [{"role": ["user"], "content": "\ud800"}]}),
        ("/v1/messages", {"messages": [{"role": "user", "content": [{"type": ["text"]}]}]}),
    ],
)
def test_fields_of_wrong_types_are_no_defect(server: RunningServer, path: str, body: dict[str, Any]) -> None:
    answer = server.http.post(
        path, content=json.dumps({"model": "m", **body}), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 200, answer.text
    assert degraded(server, "session") == ("x-memory-degraded" in answer.headers)


def test_a_deep_body_is_refused_in_the_shape_of_the_protocol(server: RunningServer) -> None:
    for depth in (160, 900, 100_000):
        body = b'{"model": "m", "messages": ' + b"[" * depth + b"]" * depth + b"}"
        answer = server.http.post("/v1/messages", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 422 and answer.json()["type"] == "error"


def test_headers_and_queries_of_any_bytes_reach_the_upstream(server: RunningServer) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    headers = [(b"x-title", "Jürgen".encode("latin-1"))]
    assert server.http.post("/v1/chat/completions?a=%ff&b=é", json=body, headers=headers).status_code == 200
