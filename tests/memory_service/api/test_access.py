"""Keys, other sites' pages, repeated requests, many writers at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from indexer.testing import HashEmbedder
from memory_service.api.server import _check_exposure
from memory_service.errors import InvalidRequest
from memory_service.service import MemoryService
from tests.serving import RunningServer, W, serving, settings

KEYS = {"key-of-default": "default", "key-of-team": "team", "master": "*"}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    service = MemoryService(settings(tmp_path_factory.mktemp("keyed"), api_keys=KEYS), embedder=HashEmbedder())
    with serving(service) as server:
        yield server


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_a_key_opens_its_workspace_alone(keyed: RunningServer) -> None:
    place = f"{W}/memories"
    assert keyed.http.post(place, json={"text": "x"}, headers=bearer("key-of-default")).status_code == 201
    assert keyed.http.post(place, json={"text": "y"}, headers={"X-API-Key": "key-of-default"}).status_code == 201
    assert keyed.http.post(place, json={"text": "z"}, headers=bearer("master")).status_code == 201
    denied = keyed.http.post(place, json={"text": "z"}, headers=bearer("key-of-team"))
    assert (denied.status_code, denied.json()["error"]["code"]) == (403, "forbidden")
    # What a key may not see, it may not probe for either.
    assert keyed.http.get("/v1/workspaces/nowhere/status", headers=bearer("key-of-team")).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("wrong"),
        bearer("x"),
        {"Authorization": "Basic bWFzdGVy"},
        {"X-API-Key": "master " + "x"},
        bearer("MASTER"),
        bearer("maste"),
    ],
)
def test_without_a_known_key_nothing_is_told(keyed: RunningServer, headers: dict[str, str]) -> None:
    for path in (f"{W}/status", "/v1/workspaces", "/metrics", "/nowhere"):
        answer = keyed.http.get(path, headers=headers)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "unauthorized"
        assert answer.headers["www-authenticate"] == "Bearer"
    assert keyed.http.post(f"{W}/memories", content=b"{", headers=headers).status_code == 401


def test_some_routes_need_no_key(keyed: RunningServer) -> None:
    for path in ("/", "/health/live", "/version", "/docs", "/openapi.json"):
        assert keyed.http.get(path).status_code == 200


def test_numbers_and_lists_follow_the_key(keyed: RunningServer) -> None:
    for workspace in ("default", "team"):
        keyed.http.post(f"/v1/workspaces/{workspace}/memories", json={"text": "x"}, headers=bearer("master"))
    assert keyed.http.get("/metrics", headers=bearer("master")).status_code == 200
    assert keyed.http.get("/metrics", headers=bearer("key-of-team")).status_code == 403
    for key, names in (("key-of-team", ["team"]), ("master", ["default", "team"])):
        listed = keyed.http.get("/v1/workspaces", headers=bearer(key)).json()
        assert listed["workspaces"] == [each["workspace"] for each in listed["details"]] == names


def test_a_key_in_hand_any_host_name_will_do(keyed: RunningServer) -> None:
    headers = bearer("master") | {"Host": "memory.example.com", "Origin": "https://app.example.com"}
    assert keyed.http.get("/v1/workspaces", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "10.0.0.1", "", "localhost.evil"]
)
def test_a_rebound_host_name_is_turned_away(running_server: RunningServer, host: str) -> None:
    answer = running_server.http.get("/v1/workspaces", headers={"Host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


def test_a_page_of_another_site_is_turned_away(running_server: RunningServer) -> None:
    for origin in ("https://evil.example", "null", "http://localhost:3000", "http://127.0.0.1"):
        answer = running_server.http.post(f"{W}/memories", json={"text": "x"}, headers={"Origin": origin})
        assert answer.status_code == 403
    assert not running_server.home.exists()
    own = running_server.http.post(f"{W}/memories", json={"text": "x"}, headers={"Origin": running_server.url})
    assert own.status_code == 201


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "127.8.8.8:80", "[::1]:8765", "LOCALHOST"])
def test_this_machines_own_names_are_fine(running_server: RunningServer, host: str) -> None:
    assert running_server.http.get("/v1/workspaces", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", "testserver", ""])
def test_an_open_address_needs_a_key(tmp_path: Path, host: str) -> None:
    with pytest.raises(InvalidRequest, match="API key"):
        _check_exposure(settings(tmp_path, host=host))
    _check_exposure(settings(tmp_path, host=host, api_keys=KEYS))


def test_a_repeated_memory_gets_the_first_answer(running_server: RunningServer) -> None:
    headers = {"Idempotency-Key": "key-1"}
    first = running_server.http.post(f"{W}/memories", json={"text": "once"}, headers=headers)
    again = running_server.http.post(f"{W}/memories", json={"text": "once"}, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    other = running_server.http.post(f"{W}/memories", json={"text": "another"}, headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")


def test_a_repeated_reindex_is_one_operation(running_server: RunningServer) -> None:
    running_server.http.post(f"{W}/memories", json={"text": "x"})
    headers = {"Idempotency-Key": "key-1"}
    first = running_server.http.post(f"{W}/reindex", json={}, headers=headers)
    again = running_server.http.post(f"{W}/reindex", json={}, headers=headers)
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    other = running_server.http.post(f"{W}/reindex", json={"full": True}, headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
    assert running_server.http.post(f"{W}/reindex", json={}).json() != first.json()


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "ä"])
def test_a_key_that_cannot_be_kept_is_refused(running_server: RunningServer, key: str) -> None:
    raw = [(b"Idempotency-Key", key.encode("latin-1"))]
    for route, body in (("memories", {"text": "x"}), ("reindex", {})):
        answer = running_server.http.post(f"{W}/{route}", json=body, headers=httpx.Headers(raw))
        assert answer.status_code == 422
        assert "Idempotency-Key" in answer.json()["error"]["message"]


def test_eight_writers_at_once_lose_nothing(running_server: RunningServer) -> None:
    def write(number: int) -> dict[str, object]:
        body = {"text": f"Writer number{number} was here.", "date": "2026-11-20"}
        answer = running_server.http.post(f"{W}/memories", json=body)
        assert answer.status_code == 201, answer.text
        found = running_server.http.post(f"{W}/search", json={"query": f"number{number}", "mode": "text"}).json()
        assert f"number{number} " in found["results"][0]["text"]
        return dict(answer.json())

    with ThreadPoolExecutor(8) as pool:
        stored = list(pool.map(write, range(64)))
    text = (running_server.home / "default/memory/2026-11-20.md").read_text("utf-8")
    lines = text.splitlines()
    for number, memory in enumerate(stored):
        assert lines[int(str(memory["start_line"])) - 1] == f"- Writer number{number} was here."
    assert running_server.http.get(f"{W}/status").json()["passages"] == 64
