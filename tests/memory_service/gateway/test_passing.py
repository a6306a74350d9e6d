"""The whole base URL: paths that are no conversation answer through the gateway as the provider itself does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import openai
import pytest

from indexer.testing import HashEmbedder
from memory_service.schemas.keys import NewKey
from memory_service.service import MemoryService
from tests.serving import NO_TLS, RunningServer, serving, settings

_STREAM = b'data: {"n": 1}\n\ndata: [DONE]\n\n'


@dataclass
class Provider:
    """A provider that answers every path with what it was asked."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def provider() -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length") or 0))
            asked = {
                "method": self.command, "path": self.path, "body": content,
                "headers": {name.lower(): value for name, value in self.headers.items()},
            }  # fmt: skip
            found.asked.append(asked)
            status = 404 if "missing" in self.path else 200
            told: dict[str, Any] = {"path": self.path, "method": self.command, "chars": len(content)}
            if "embeddings" in self.path:
                one = {"object": "embedding", "index": 0, "embedding": [0.5]}
                told = {"object": "list", "model": "e", "data": [one], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
            raw = _STREAM if "stream=true" in self.path else json.dumps(told).encode()
            self.send_response(status)
            self.send_header("content-type", "text/event-stream" if raw is _STREAM else "application/json")
            self.send_header("content-length", str(len(raw)))
            self.send_header("x-request-id", "req_1")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(raw)

        do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = do_HEAD = answer  # names of http.server

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Provider(f"http://127.0.0.1:{server.server_address[1]}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def gate(home: Path, theirs: Provider, **values: Any) -> Iterator[RunningServer]:
    upstreams = {
        "openai": {"protocol": "openai", "base_url": f"{theirs.url}/v1"},
        "anthropic": {"protocol": "anthropic", "base_url": theirs.url},
    }
    service = MemoryService(settings(home, gateway={"upstreams": upstreams}, **values), embedder=HashEmbedder())
    with serving(service) as server:
        yield server


PATHS = [
    ("POST", "/v1/embeddings"), ("GET", "/v1/models/gpt-4o"), ("GET", "/v1/responses/resp_1"),
    ("DELETE", "/v1/responses/resp_1"), ("GET", "/v1/responses/resp_1/input_items?limit=2"),
    ("POST", "/v1/responses/input_tokens"), ("POST", "/v1/responses/resp_1/cancel"),
    ("GET", "/v1/responses/resp_1?stream=true"), ("GET", "/v1/files"), ("POST", "/v1/files"),
    ("GET", "/v1/files/file_1/content"), ("DELETE", "/v1/files/file_1"), ("POST", "/v1/batches"),
    ("GET", "/v1/batches/b_1"), ("POST", "/v1/moderations"), ("POST", "/v1/audio/transcriptions"),
    ("POST", "/v1/images/generations"), ("GET", "/v1/conversations/conv_1"), ("POST", "/v1/conversations"),
    ("GET", "/v1/chat/completions"), ("POST", "/v1/chat/completions/c_1"), ("POST", "/v1/completions"),
    ("GET", "/v1/models/meta%2Fllama"), ("GET", "/v1/missing"), ("HEAD", "/v1/files/file_1"),
    ("POST", "/v1/messages/batches"), ("GET", "/v1/messages/batches/b_1/results"),
    ("DELETE", "/v1/messages/batches/b_1"), ("POST", "/v1/vector_stores/vs_1/search"), ("PATCH", "/v1/anything"),
]  # fmt: skip


def test_every_path_answers_as_directly(tmp_path: Path) -> None:
    body = b'{"model": "gpt-4o",   "input": "as it was written"}'
    with provider() as theirs, gate(tmp_path, theirs) as server, httpx.Client(timeout=60, verify=NO_TLS) as http:
        for method, path in PATHS:
            content = body if method in ("POST", "PATCH") else b""
            headers = {"authorization": "Bearer sk-own", "content-type": "application/json", "openai-beta": "x=1"}
            direct = http.request(method, theirs.url + path, content=content, headers=headers)
            through = http.request(method, server.url + path, content=content, headers=headers)
            assert (through.status_code, through.content) == (direct.status_code, direct.content), path
            assert through.headers["content-type"] == direct.headers["content-type"]
            assert through.headers["x-request-id"] == "req_1"
            first, second = theirs.asked[-2:]
            assert [first[name] for name in ("method", "path", "body")] == [
                second[name] for name in ("method", "path", "body")
            ]
            assert second["headers"]["authorization"] == "Bearer sk-own" and second["headers"]["openai-beta"] == "x=1"


def test_a_form_and_a_real_client(tmp_path: Path) -> None:
    with provider() as theirs, gate(tmp_path, theirs) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="sk-own", http_client=httpx.Client(verify=False))
        with client:
            made = client.embeddings.create(model="openai/e", input="hello", encoding_format="float")
            assert made.data[0].embedding == [0.5] and json.loads(theirs.asked[-1]["body"])["model"] == "e"
            client.files.with_raw_response.create(file=("a.jsonl", b"{}"), purpose="batch")
            assert theirs.asked[-1]["headers"]["content-type"].startswith("multipart/form-data; boundary=")
            assert b"a.jsonl" in theirs.asked[-1]["body"]
            client.models.with_raw_response.retrieve("openai/gpt-4o")
            assert theirs.asked[-1]["path"] == "/v1/models/gpt-4o"


def test_anthropics_version_says_whose_a_path_is(tmp_path: Path) -> None:
    with provider() as openai_side, provider() as anthropic_side:
        upstreams = {
            "openai": {"protocol": "openai", "base_url": f"{openai_side.url}/v1"},
            "anthropic": {"protocol": "anthropic", "base_url": anthropic_side.url},
        }
        service = MemoryService(settings(tmp_path, gateway={"upstreams": upstreams}), embedder=HashEmbedder())
        with serving(service) as server:
            httpx.get(f"{server.url}/v1/files", headers={"anthropic-version": "2023-06-01"})
            httpx.get(f"{server.url}/v1/files")
            httpx.get(f"{server.url}/v1/messages/batches")
        assert [each["path"] for each in anthropic_side.asked] == ["/v1/files", "/v1/messages/batches"]
        assert [each["path"] for each in openai_side.asked] == ["/v1/files"]


def test_errors_of_ours_have_the_shape_of_the_provider(tmp_path: Path) -> None:
    with provider() as theirs, gate(tmp_path, theirs, api_keys={"sk-team": "team"}, max_body_bytes=2_000) as server:
        large, team = {"x": "y" * 3_000}, {"authorization": "Bearer sk-team"}
        for path in ("/v1/chat/completions", "/v1/responses", "/v1/embeddings"):
            refused = httpx.post(server.url + path, json={})
            assert refused.status_code == 401 and refused.json()["error"]["type"] == "authentication_error"
            assert httpx.post(server.url + path, json=large, headers=team).json()["error"]["param"] is None
        for path in ("/v1/messages", "/v1/messages/batches"):
            refused = httpx.post(server.url + path, json={})
            assert refused.status_code == 401 and refused.json()["type"] == "error"
            over = httpx.post(server.url + path, json=large, headers=team)
            assert over.status_code == 413 and over.json()["error"]["type"] == "request_too_large"
        ours = httpx.post(f"{server.url}/v1/compact", json={})
        assert ours.status_code == 401 and set(ours.json()["error"]) == {"code", "message"}
        assert not theirs.asked


@pytest.mark.parametrize("path", ["/v1/files", "/v1/responses/resp_1", "/v1/embeddings/../files"])
def test_a_key_of_one_workspace_sees_nothing_that_others_stored(tmp_path: Path, path: str) -> None:
    with provider() as theirs, gate(tmp_path, theirs, api_keys={"sk-team": "team", "sk-all": "*"}) as server:
        url = httpx.URL(server.url).copy_with(raw_path=path.encode())
        answer = httpx.get(url, headers={"authorization": "Bearer sk-team"})
        assert answer.status_code in (403, 422) and not theirs.asked
        httpx.post(f"{server.url}/v1/embeddings", json={}, headers={"authorization": "Bearer sk-team"})
        assert len(theirs.asked) == 1


def test_a_key_of_this_server_goes_to_no_provider(tmp_path: Path) -> None:
    with provider() as theirs, gate(tmp_path, theirs) as server:
        key = server.app.state.shared.service.access.make(NewKey(name="chats", role="gateway")).key
        calls = [("POST", "/v1/chat/completions"), ("POST", "/v1/messages"), ("GET", "/v1/models"), *PATHS]
        for method, path in calls:
            for headers in ({"authorization": f"Bearer {key}", "x-api-key": "x"}, {"x-api-key": key}):
                content = b'{"model": "m", "messages": [{"role": "user", "content": "Hello."}]}'
                answer = server.http.request(
                    method, path, content=content, headers={"content-type": "application/json", **headers}
                )
                assert answer.status_code not in (401, 403), (path, answer.text)
        assert len(theirs.asked) >= 2 * len(calls)
        assert [each for each in theirs.asked if {"authorization", "x-api-key"} & {*each["headers"]}] == []
        assert key not in repr(theirs.asked)


def test_paths_of_this_server_are_never_passed_on(tmp_path: Path) -> None:
    with provider() as theirs, gate(tmp_path, theirs) as server:
        assert server.http.get("/v1/workspaces/default/nothing").status_code == 404
        assert server.http.get("/v1/compact").status_code == 405
        assert server.http.post("/v1/workspaces/default/search", content=b"x").status_code == 415
        assert not theirs.asked


def test_a_body_of_forty_megabytes_goes_through(tmp_path: Path) -> None:
    with provider() as theirs, gate(tmp_path, theirs) as server:
        answer = httpx.post(f"{server.url}/v1/files", content=b"x" * (40 << 20), timeout=120)
        assert answer.json()["chars"] == 40 << 20


_CALLED = re.compile(r'self\._(get|post|put|patch|delete|get_api_list)\(\s*(?:path_template\(\s*)?f?"(/[^"?]+)([^"]*)"')
# Conversations, and the list of models of all upstreams: what this server answers itself.
_OURS = {
    "post /chat/completions", "post /responses", "post /responses/compact", "get /models",
    "post /v1/messages", "post /v1/messages/count_tokens", "get /v1/models",
}  # fmt: skip


def paths_of(package: str) -> list[tuple[str, str]]:
    """Method and path of every call that a client's package makes, with an id in each gap."""
    found = set[tuple[str, str]]()
    for file in files(package).joinpath("resources").rglob("*.py"):  # type: ignore[attr-defined]  # a folder on the disk
        for method, path, query in _CALLED.findall(file.read_text("utf-8")):
            verb = "get" if method == "get_api_list" else method
            if f"{verb} {path}" not in _OURS:
                found.add((verb, re.sub(r"\{[^}]*\}", "id-1", path) + query))
    return sorted(found)


@pytest.mark.parametrize(("package", "least"), [("openai", 150), ("anthropic", 30)])
def test_every_path_of_a_client_answers_as_directly(tmp_path: Path, package: str, least: int) -> None:
    paths = paths_of(package)
    assert len(paths) >= least, "the client's package is read"
    headers = {"anthropic-version": "2023-06-01", "x-api-key": "any"} if package == "anthropic" else {}
    root = "" if package == "anthropic" else "/v1"
    with provider() as theirs, gate(tmp_path, theirs) as server:
        for method, path in paths:
            content = b"" if method in ("get", "delete") else b'{ "asked":  1}'
            kind = {"content-type": "application/json"}
            ours = server.http.request(method, f"{root}{path}", headers={**headers, **kind}, content=content)
            asked = theirs.asked[-1]
            assert (asked["method"], asked["path"]) == (method.upper(), f"{root}{path}")
            assert asked["body"] == content
            if "embeddings" not in path and "stream=true" not in path:
                told = {"path": asked["path"], "method": asked["method"], "chars": len(asked["body"])}
                assert (ours.status_code, ours.json()) == (200, told), f"{method} {path}"
