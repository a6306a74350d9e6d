"""Keys of the server in errors of an upstream: no form of them reaches a caller."""

from __future__ import annotations

import base64
import html
import json
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

from indexer.testing import HashEmbedder
from memory_service.gateway.masking import KeyMask
from memory_service.service import MemoryService
from memory_service.testing import Failure, ScriptedServer
from tests.memory_service.gateway.talking import user
from tests.serving import RunningServer, serving, settings

KEY = "sk-proj-Ab3dE6fGh9jKlMn0pQrStUvWx-Yz_12345"
CALLERS = "caller-key-0123456789"
FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda key: f"boom Bearer {key}.",
    "json": lambda key: json.dumps({"error": {"message": f"bad key {key}"}}),
    "unicode escapes": lambda key: json.dumps({"error": "".join(f"\\u{ord(char):04x}" for char in key)}),
    "escaped twice": lambda key: json.dumps(json.dumps({"error": f'"{key}" /'.replace("/", "\\/")})),
    "URL": lambda key: f"?key={quote(key, safe='')}&x=1",
    "URL, each character": lambda key: "".join(f"%{ord(char):02X}" for char in key),
    "URL, twice": lambda key: quote("".join(f"%{ord(char):02x}" for char in key)),
    "HTML": lambda key: "".join(f"&#{ord(char)};" for char in key) + html.escape(key),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "basic": lambda key: "Basic " + base64.b64encode(f"user:{key}".encode()).decode(),
    "base64 for URLs": lambda key: base64.urlsafe_b64encode(f"Bearer {key}".encode()).decode().rstrip("="),
    "base64, shifted": lambda key: base64.b64encode(f"x{key}".encode()).decode(),
    "hexadecimal": lambda key: key.encode().hex(),
    "capitals": str.upper,
    "first half": lambda key: f"starts with {key[:20]}",
    "last half": lambda key: f"ends with {key[-16:]}",
    "asterisks": lambda key: f"Incorrect API key provided: {key[:8]}********{key[-4:]}.",
    "dots": lambda key: f"invalid key {key[:6]}...{key[-5:]} was sent",
    "in two": lambda key: f"{key[:15]} {key[15:]}",
}


def shown(text: str) -> bool:
    """True if a text shows six characters in a row of the key, as they stand or in base64 or hexadecimal digits."""
    forms = [KEY, *(base64.b64encode(f"{lead}{KEY}".encode()).decode() for lead in ("", "x", "xy")), KEY.encode().hex()]
    return any(form[at : at + 12].lower() in text.lower() for form in forms for at in range(len(form) - 11))


@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_a_key_is_left(form: str) -> None:
    written = FORMS[form](KEY)
    masked = KeyMask([KEY]).text(f"before {written} after")
    assert masked.startswith("before ") and masked.endswith(" after") and "***" in masked
    assert not shown(masked) and KEY[:6] not in masked and KEY[-5:] not in masked, masked
    if form in ("json", "unicode escapes", "escaped twice"):
        json.loads(KeyMask([KEY]).text(written))


def test_what_is_no_key_stays_as_it_is() -> None:
    mask = KeyMask([KEY, "true", "k"])
    for text in ("maximum context length is 8192 tokens", "k", "a***b", "…", '{"é": "\\u00e9 100%"}', "sk-proj"):
        assert mask.text(text) == text and mask.content(text.encode()) == text.encode()
    assert not KeyMask(["", "abc"]) and KeyMask(["abc123"]).text("abc123, xabc123") == "***, xabc123"


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_a_key_in_an_error_of_a_stream_is_masked_however_it_is_cut(size: int) -> None:
    token = b'data: {"choices": [{"delta": {"content": "hello"}}]}\n\n'
    stream = token * 3 + b"event: error\ndata: " + json.dumps({"message": KEY, "error": KEY}).encode() + b"\n\n" + token

    async def read() -> bytes:
        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(stream), size):
                yield stream[at : at + size]

        return b"".join([piece async for piece in KeyMask([KEY]).lines(pieces())])

    made = anyio.run(read)
    assert made == stream.replace(KEY.encode(), b"***")


@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
@pytest.mark.parametrize("mode", ["on", "off"])
def test_an_error_of_an_upstream_reaches_its_caller_without_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, path: str, mode: str
) -> None:
    caplog.set_level(logging.DEBUG, "memory_service")
    monkeypatch.setenv("UPSTREAM_SECRET_NAME", KEY)
    text = json.dumps({"error": {"message": " | ".join(form(KEY) for form in FORMS.values()), "code": CALLERS}})
    failures = [Failure(status=status, body=text, headers={"x-request-id": KEY}) for status in (400, 401, 500)]
    protocol = "anthropic" if path == "messages" else "openai"
    with ScriptedServer(*failures) as upstream:
        base = upstream.url.removesuffix("/v1") if path == "messages" else upstream.url
        named = {"protocol": protocol, "base_url": base, "api_key_env": "UPSTREAM_SECRET_NAME"}
        given = settings(tmp_path / "home", gateway={"upstreams": {"scripted": named}}, api_keys=f"{CALLERS}:default")
        with serving(MemoryService(given, embedder=HashEmbedder())) as server:
            check_failures(server, path, mode, failures)
        assert KEY in str(upstream.requests[-1].headers), "the upstream had the key to repeat"
    assert KEY not in caplog.text
    assert all(KEY.encode() not in each.read_bytes() for each in (tmp_path / "home").rglob("*") if each.is_file())


def check_failures(server: RunningServer, path: str, mode: str, failures: list[Failure]) -> None:
    """Each failure reaches the caller with its status, and without a key."""
    body = {"model": "gpt-4o", "max_tokens": 9, "messages": [user("hello")], "input": "hello"}
    for failure in failures:
        headers = {"Authorization": f"Bearer {CALLERS}", "X-Memory-Mode": mode}
        answer = server.http.post(f"/v1/{path}", json=body, headers=headers)
        assert answer.status_code == failure.status, answer.text
        told = answer.text + str(answer.headers)
        assert "***" in told and not shown(told) and CALLERS not in told, told
