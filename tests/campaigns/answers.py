"""Answers of upstreams that are wrong in many ways, and a server on a loopback port that gives them byte for byte.

The kind of an answer is the model that is asked for: `kind-17`; any other model gets a good one.
"""

from __future__ import annotations

import gzip
import json
import random
import socketserver
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.campaigns.mutations import BAD_VALUES, places_of, written

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
_EVENTS = "text/event-stream"
_JSON = "application/json"
_DEEP = 200_000
_Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer.

    Attributes:
        name: Its kind.
        pieces: Its bytes, as they are sent.
        kind: The type that it says it has; empty to say none.
        status: Its status.
        encoding: That of its content; empty for none.
        length: The length that it announces; None for chunks.
        is_whole: Whether it comes to its end, and is not broken off.
    """

    name: str
    pieces: Sequence[bytes]
    kind: str
    status: int = 200
    encoding: str = ""
    length: int | None = None
    is_whole: bool = True

    def sent(self) -> Iterator[bytes]:
        """What goes over the wire."""
        head = [f"HTTP/1.1 {self.status} Whatever", "Connection: close"]
        head += [f"Content-Type: {self.kind}"] if self.kind else []
        head += [f"Content-Encoding: {self.encoding}"] if self.encoding else []
        head += ["Transfer-Encoding: chunked" if self.length is None else f"Content-Length: {self.length}"]
        yield ("\r\n".join(head) + "\r\n\r\n").encode()
        for piece in self.pieces:
            yield piece if self.length is not None else b"%x\r\n%b\r\n" % (len(piece), piece)
        if self.is_whole and self.length is None:
            yield b"0\r\n\r\n"


def good_events(protocol: str, text: str = "It is Tuesday.") -> list[_Json | str]:
    """The events of a good answer; a text is data that is no JSON."""
    usage = {"input_tokens": 5, "output_tokens": 3}
    if protocol == "chat":
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        deltas: list[_Json] = [{"role": "assistant", "content": ""}, {"content": text}]
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
        deltas.append({"tool_calls": [call]})
        events: list[_Json | str] = [
            {**head, "choices": [{"index": 0, "delta": each, "finish_reason": None}]} for each in deltas
        ]
        end = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
        counted = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
        return [*events, end, {**head, "choices": [], "usage": counted}, "[DONE]"]
    if protocol == "messages":
        message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
        tool = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
        return [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": tool},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
            {"type": "message_stop"},
        ]
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    called = {"type": "function_call", "id": "fc", "call_id": "call_1", "name": "look", "arguments": "{}"}
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": [item, called], "usage": usage}
    return [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": text},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 1, "item": called},
        {"type": "response.completed", "response": response},
    ]


def good_answer(protocol: str) -> _Json:
    """A good answer in one piece."""
    text, usage = "It is Tuesday.", {"input_tokens": 5, "output_tokens": 3}
    if protocol == "chat":
        call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        message = {"role": "assistant", "content": text, "tool_calls": [call]}
        counted = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": counted}
    if protocol == "messages":
        blocks = [{"type": "text", "text": text}, {"type": "tool_use", "id": "t_1", "name": "look", "input": {}}]
        head = {"id": "m", "type": "message", "role": "assistant", "model": "m"}
        return {**head, "content": blocks, "stop_reason": "tool_use", "usage": usage}
    return dict(good_events("responses")[-1]["response"])  # type: ignore[index,arg-type]


def sse(events: Sequence[_Json | str | bytes]) -> list[bytes]:
    """Events as they go over the wire; bytes go as they are."""
    made = list[bytes]()
    for event in events:
        match event:
            case bytes():
                made.append(event)
            case str():
                made.append(f"data: {event}\n\n".encode())
            case _:
                name = (
                    f"event: {event['type']}\n" if isinstance(event.get("type"), str) and "." in event["type"] else ""
                )
                made.append(name.encode("utf-8", "replace") + b"data: " + written(event) + b"\n\n")
    return made


def answers(protocol: str, *, stream: bool, count: int, seed: int) -> list[Answer]:
    """So many kinds of answers that are wrong, or hard to read, each different from the others."""
    rng = random.Random(f"{seed} {protocol} {stream}")
    made = list(_streams(protocol) if stream else _wholes(protocol))
    while len(made) < count:
        made.append(_changed_stream(protocol, rng) if stream else _changed_whole(protocol, rng))
    return made[:count]


def _changed_stream(protocol: str, rng: random.Random) -> Answer:
    events = json.loads(json.dumps(good_events(protocol)))
    at = rng.choice([number for number, event in enumerate(events) if isinstance(event, dict)])
    container, key = rng.choice(list(places_of(events[at])))
    value = container[key] = rng.choice(BAD_VALUES)
    return Answer(name=f"event {at}, {key}: {value!r:.40}", pieces=sse(events), kind=_EVENTS)


def _changed_whole(protocol: str, rng: random.Random) -> Answer:
    answer = json.loads(json.dumps(good_answer(protocol)))
    container, key = rng.choice(list(places_of(answer)))
    value = container[key] = rng.choice(BAD_VALUES)
    content = written(answer)
    return Answer(name=f"{key}: {value!r:.40}", pieces=[content], kind=_JSON, length=len(content))


def _streams(protocol: str) -> Iterator[Answer]:
    good = sse(good_events(protocol))
    plain = b"".join(good)
    for name, event in _EVENT_TEXTS.items():
        for place in (0, 2):
            yield Answer(name=f"{name} at {place}", pieces=[*good[:place], event, *good[place:]], kind=_EVENTS)
    for name, pieces in {
        "good": good,
        "CRLF": [plain.replace(b"\n", b"\r\n")],
        "CR": [plain.replace(b"\n", b"\r")],
        "byte by byte": [plain[at : at + 1] for at in range(len(plain))],
        "no end": good[:-1],
        "no last blank line": [plain[:-2]],
        "nothing": [],
        "end alone": good[-1:],
        "twice": good * 2,
        "backwards": good[::-1],
        "an endless line": [*good[:2], *[b"x" * 10_000] * 1_000, b"\n\n", *good[2:]],
        "endless lines": [*good[:2], *[b"data: x\n" * 1_000] * 500, b"\n", *good[2:]],
        "endless blank lines": [*good[:2], *[b"\n" * 10_000] * 200, *good[2:]],
        "endless comments": [*good[:2], *[b": still here\n\n" * 500] * 200, *good[2:]],
    }.items():
        yield Answer(name=name, pieces=pieces, kind=_EVENTS)
    for at in (0, 1, len(good) // 2, len(good)):
        yield Answer(name=f"cut after {at} events", pieces=good[:at], kind=_EVENTS, is_whole=False)
    yield Answer(name="cut in an event", pieces=[plain[: len(plain) // 2]], kind=_EVENTS, is_whole=False)
    yield Answer(name="shorter than announced", pieces=[plain], kind=_EVENTS, length=len(plain) + 9, is_whole=False)
    for kind in ("", "text/plain", "TEXT/Event-Stream; charset=latin-1", "application/octet-stream", _JSON):
        yield Answer(name=f"type {kind!r}", pieces=good, kind=kind)
    content = written(good_answer(protocol))
    yield Answer(name="one piece", pieces=[content], kind=_JSON, length=len(content))
    yield from _encoded(plain, _EVENTS)
    for status in (204, 206, 299, 302, 304, 400, 404, 429, 500, 503, 529, 599):
        pieces = [] if status in (204, 304) else good
        yield Answer(name=f"status {status}", pieces=pieces, kind=_EVENTS, status=status)


def _wholes(protocol: str) -> Iterator[Answer]:
    content = written(good_answer(protocol))
    for name, text in {
        "good": content,
        "nothing": b"",
        "half": content[: len(content) // 2],
        "page": b"<html>Log in</html>",
        "twice": content * 2,
        "list": b"[" + content + b"]",
        "deep": b"[" * _DEEP,
        "deep and closed": b'{"choices":' * 5_000 + b"1" + b"}" * 5_000,
        "deep inside": content[:-1] + b',"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        "BOM": b"\xef\xbb\xbf" + content,
        "no UTF-8": content.replace(b"Tuesday", b"\xff\xfe\xc3\x28"),
        "surrogate": content.replace(b"Tuesday", b"\\ud800"),
        "raw surrogate": content.replace(b"Tuesday", b"\xed\xa0\x80"),
        "NUL": b"\0" * 100,
        "UTF-16": content.decode().encode("utf-16"),
        "digits": content[:-1] + b',"n":' + b"9" * 10_000 + b"}",
        "12 MB of blanks": content[:-1] + b" " * 12_000_000 + b"}",
        "12 MB of text": content.replace(b"Tuesday", b"Tuesday " * 1_500_000),
        "many objects": b'{"choices":[' + b"{}," * 500_000 + b"{}]}",
        "empty keys": b'{"":{"":{"":""}},"":1}',
        "null": b"null", "number": b"7", "text": b'"no"', "true": b"true", "an error": b'{"error":{"message":"no"}}',
        "an error of texts": b'{"error":["no"],"type":7}',
    }.items():  # fmt: skip
        yield Answer(name=name, pieces=[text], kind=_JSON, length=len(text))
        yield Answer(name=f"{name}, chunks", pieces=[text[:10], text[10:]] if len(text) > 10 else [], kind=_JSON)
    for at in (0, 1, len(content) // 2, len(content)):
        yield Answer(name=f"cut at {at}", pieces=[content[:at]] if at else [], kind=_JSON, is_whole=False)
        yield Answer(
            name=f"{at} of more", pieces=[content[:at]], kind=_JSON, length=len(content) + 5, is_whole=False
        )  # fmt: skip
    for kind in ("", "text/html", "application/problem+json", "text/plain; charset=latin-1", _EVENTS):
        yield Answer(name=f"type {kind!r}", pieces=[content], kind=kind, length=len(content))
    yield from _encoded(content, _JSON)
    for status in (204, 206, 299, 302, 304, 400, 403, 413, 429, 500, 502, 503, 529, 599):
        body = b"" if status in (204, 304) else content
        yield Answer(name=f"status {status}", pieces=[body], kind=_JSON, status=status, length=len(body))
        page = b"" if status in (204, 304) else b"<html>no</html>"
        yield Answer(name=f"page {status}", pieces=[page], kind="text/html", status=status, length=len(page))


def _encoded(plain: bytes, kind: str) -> Iterator[Answer]:
    small, bomb = gzip.compress(plain), gzip.compress(plain + b"\0" * 50_000_000, 1)
    for name, content, encoding in (
        ("gzip", small, "gzip"),
        ("deflate", zlib.compress(plain), "deflate"),
        ("half a gzip", small[: len(small) // 2], "gzip"),
        ("no gzip", plain, "gzip"),
        ("gzip twice", gzip.compress(small), "gzip, gzip"),
        ("gzip and more", small + b"more", "gzip"),
        ("br", b"\x0b\x02\x80abc\x03", "br"),
        ("zstd", b"\x28\xb5\x2f\xfd\x00", "zstd"),
        ("a bomb", bomb, "gzip"),
    ):
        yield Answer(name=name, pieces=[content[:300], content[300:]], kind=kind, encoding=encoding)


_EVENT_TEXTS: Mapping[str, bytes] = {
    "no JSON": b"data: {nope\n\n",
    "half JSON": b'data: {"choices": [{"ind\n\n',
    "null": b"data: null\n\n",
    "list": b"data: []\n\n",
    "number": b"data: 7\n\n",
    "empty data": b"data:\n\n",
    "no data": b"event: x\n\n",
    "no field": b"hello\n\n",
    "many fields": b"id: 1\nretry: 5\nfoo: bar\n: comment\ndata: {}\n\n",
    "choices that are a text": b'data: {"choices":"x"}\n\n',
    "choices of texts": b'data: {"choices":["x"]}\n\n',
    "an index that is a text": b'data: {"type":"content_block_delta","index":"z"}\n\n',
    "an output_index that is a text": b'data: {"output_index":"abc","type":"response.output_text.delta"}\n\n',
    "a type that is a list": b'data: {"type":["message_start"]}\n\n',
    "a type that is an object": b'data: {"type":{"type":"text"}}\n\n',
    "deep": b"data: " + b"[" * _DEEP + b"\n\n",
    "deep and closed": b'data: {"delta":' + b"[" * 5_000 + b"]" * 5_000 + b"}\n\n",
    "digits": b'data: {"index":' + b"9" * 10_000 + b"}\n\n",
    "infinity": b'data: {"type":"content_block_delta","output_index":1e999,"index":1e999}\n\n',
    "NaN": b'data: {"index":NaN}\n\n',
    "a surrogate": b'data: {"type":"response.output_text.delta","delta":"\\ud800"}\n\n',
    "no UTF-8": b'data: {"a":"\xff\xfe"}\n\n',
    "NUL": b"\0\0data: \0\n\n",
    "1 MB": b'data: {"a":"' + b"x" * 1_000_000 + b'"}\n\n',
    "many lines": b"data: 1\n" * 20_000 + b"\n",
    "an error": b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"no"}}\n\n',
    "an error of texts": b'data: {"error":"no","type":"error"}\n\n',
    "a failure of texts": b'data: {"type":"response.failed","response":"x"}\n\n',
    "an item that is a text": b'data: {"type":"response.output_item.done","output_index":0,"item":"x"}\n\n',
    "an item of no kind": b'data: {"type":"response.output_item.done","item":{"type":["x"],"call_id":"c"}}\n\n',
    "a delta that is a list": b'data: {"type":"content_block_delta","index":0,"delta":["x"]}\n\n',
    "a call of texts": b'data: {"choices":[{"delta":{"tool_calls":["x",7,{"function":"f"}]}}]}\n\n',
    "usage that is a text": b'data: {"type":"message_delta","usage":"x","delta":7}\n\n',
}


class RawUpstream:
    """The server; it runs while its `with` block does."""

    def __init__(self) -> None:
        self._kinds: dict[str, Answer] = {}
        upstream = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                upstream._serve(self)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Say nothing of callers that went away."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> RawUpstream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def named(self, kinds: Sequence[Answer]) -> list[str]:
        """The models that stand for answers."""
        begin = len(self._kinds)
        names = [f"kind-{begin + at}" for at in range(len(kinds))]
        self._kinds.update(zip(names, kinds, strict=True))
        return names

    def _serve(self, connection: socketserver.StreamRequestHandler) -> None:
        path = connection.rfile.readline().split()[1].decode("latin-1")
        length = 0
        while (line := connection.rfile.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        answer = self._answer(path.partition("?")[0], connection.rfile.read(length))
        for piece in answer.sent():
            connection.wfile.write(piece)
        connection.wfile.flush()

    def _answer(self, path: str, content: bytes) -> Answer:
        try:
            body = json.loads(content or b"{}")
        except (ValueError, RecursionError):
            body = {}
        model = body.get("model") if isinstance(body, dict) else None
        if isinstance(model, str) and model in self._kinds:
            return self._kinds[model]
        protocol = next((name for name, place in PATHS.items() if path.endswith(place.removeprefix("/v1"))), "")
        if not protocol:
            shown = b'{"object":"list","data":[{"id":"m"}],"input_tokens":5}'
            return Answer(name="other", pieces=[shown], kind=_JSON, length=len(shown))
        if isinstance(body, dict) and body.get("stream") is True:
            return Answer(name="good", pieces=sse(good_events(protocol)), kind=_EVENTS)
        whole = written(good_answer(protocol))
        return Answer(name="good", pieces=[whole], kind=_JSON, length=len(whole))
