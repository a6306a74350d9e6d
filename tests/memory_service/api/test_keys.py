"""Every kind of key on every route, and every host and page: who may do what, before anything is read."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from memory_service.service import MemoryService
from tests.memory_service.api.test_document import CONTRACT
from tests.serving import RunningServer, serving, settings

# Names that begin with each other, so that no part of a name is taken for it.
KEYS = {"key-a": "team", "key-ab": "team-b", "key": "te", "key-abc": "*"}
OPEN = {"/health/live", "/health/ready", "/version"}
# What any known key may ask.
SHARED = {"/v1/workspaces", "/v1/compact"}
ROUTES = sorted(CONTRACT)
# Streams and what waits have no end of their own.
ENDLESS = {"events", "idle"}
GIVEN: dict[str, dict[str, str]] = {
    "none": {},
    "wrong": {"Authorization": "Bearer key-x"},
    "begins like one": {"Authorization": "Bearer ke"},
    "goes on behind one": {"Authorization": "Bearer key-abcd"},
    "a workspace": {"X-API-Key": "team"},
    "a star": {"X-API-Key": "*"},
}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    service = MemoryService(
        settings(tmp_path_factory.mktemp("keyed") / "home", api_keys=KEYS, max_body_bytes=4096),
        embedder=HashEmbedder(),
    )
    with serving(service) as server:
        yield server


def asked(server: RunningServer, method: str, path: str, workspace: str, headers: dict[str, str]) -> int:
    """The status of a route, with what is in braces filled in."""
    filled = re.sub(r"\{\w+\}", "1", path.replace("{workspace}", workspace))
    body: dict[str, str] | None = {} if method in ("POST", "PUT", "PATCH") else None
    return server.http.request(method, filled, headers=headers, json=body).status_code


def check_no_key_opens_another_workspace(server: RunningServer) -> None:
    """Each key on each route of each workspace: 403 for all but its own."""
    for method, path in ROUTES:
        if "{workspace}" not in path or path.rpartition("/")[2] in ENDLESS:
            continue
        for workspace in ("te", "team", "team-b", "team-bc", "*", "t"):
            for key, granted in KEYS.items():
                status = asked(server, method, path, workspace, {"Authorization": f"Bearer {key}"})
                assert status != 401
                assert (status == 403) == (granted not in ("*", workspace)), (method, path, workspace, key, status)


def test_no_key_opens_another_workspace(keyed: RunningServer) -> None:
    check_no_key_opens_another_workspace(keyed)


def check_what_is_no_key_opens_nothing(server: RunningServer) -> None:
    """No key, a wrong one, and what is like one, on each route."""
    for given, headers in GIVEN.items():
        for method, path in ROUTES:
            status = asked(server, method, path, "team", headers)
            assert (status in (200, 503)) if path in OPEN else status == 401, (given, method, path, status)


def test_what_is_no_key_opens_nothing(keyed: RunningServer) -> None:
    check_what_is_no_key_opens_nothing(keyed)


def test_routes_without_a_workspace_follow_the_key(keyed: RunningServer) -> None:
    for key, granted in KEYS.items():
        headers = {"X-API-Key": key}
        assert keyed.http.get("/metrics", headers=headers).status_code == (200 if granted == "*" else 403)
        for path in sorted(SHARED):
            assert keyed.http.request("GET" if path.endswith("s") else "POST", path, headers=headers).status_code < 500
        told = keyed.http.get("/v1/workspaces", headers=headers).json()["workspaces"]
        assert granted == "*" or set(told) <= {granted}


HOSTS = ["127.0.0.1", "127.8.8.8:80", "[::1]:8765", "localhost", "LOCALHOST:1"]
FOREIGN_HOSTS = [
    "evil-localhost",
    "localhost.evil.example",
    "evil.localhost",
    "localhost.",
    "notlocalhost:8765",
    "127.0.0.1.evil.example",
    "testserver",
    "testserver:80",
    "[::1",
    "0.0.0.0",
    "",
]
FOREIGN_ORIGINS = [
    "http://[",
    "http://[::1",
    "https://{host}",
    "chrome-extension://{host}",
    "file://{host}",
    "//{host}",
    "{host}",
    "http://{host}.evil.example",
    "http://evil-{host}",
    "http://user@{host}",
    "http://testserver",
    "http://localhost",
    "null",
    "",
]


def check_foreign_names_are_turned_away(server: RunningServer) -> None:
    """What may be a name of this machine passes, and nothing else."""
    own = server.url.removeprefix("http://")
    for host in HOSTS:
        assert server.http.get("/v1/workspaces", headers={"Host": host}).status_code == 200, host
    for host in FOREIGN_HOSTS:
        assert server.http.get("/v1/workspaces", headers={"Host": host}).status_code == 403, host
    for origin in FOREIGN_ORIGINS:
        answer = server.http.get("/v1/workspaces", headers={"Origin": origin.format(host=own)})
        assert answer.status_code == 403, (origin, answer.text)
    assert server.http.get("/v1/workspaces", headers={"Origin": f"http://{own}"}).status_code == 200


def test_foreign_names_are_turned_away(running_server: RunningServer) -> None:
    check_foreign_names_are_turned_away(running_server)


def pieces(server: RunningServer, key: str, *given: bytes, end: bool = True) -> bytes:
    """Send a body of unknown length in pieces; gives the beginning of the answer, as soon as there is one."""
    head = (
        "POST /v1/workspaces/team/memories HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        f"X-API-Key: {key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(head.encode())
        for piece in given:
            # Apart, so that the server gets them one by one.
            time.sleep(0.05)
            connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        if end:
            connection.sendall(b"0\r\n\r\n")
        return connection.recv(65536)[:13]


def check_a_body_in_pieces_has_a_limit(server: RunningServer) -> None:
    """Pieces that are each below the limit of 4,096 bytes, and over it together."""
    memory = b'{"text": "x"}'
    assert pieces(server, "key-a", memory, b" " * 2000, b" " * 2000, b" " * 2000) == b"HTTP/1.1 413 "
    assert pieces(server, "key-a", memory, b" " * 2000, b" " * 2000) == b"HTTP/1.1 201 "
    rest = 4096 - len(memory)
    assert pieces(server, "key-a", memory, b" " * rest) == b"HTTP/1.1 201 ", "exactly the limit passes"
    assert pieces(server, "key-a", memory, b" " * (rest + 1)) == b"HTTP/1.1 413 "


def check_an_announced_body_has_a_limit(server: RunningServer) -> None:
    """A body whose length is told first: up to the very limit of 4,096 bytes it passes, and no further."""
    for more, status in ((-1, 201), (0, 201), (1, 413)):
        body = b'{"text": "x"}'.ljust(4096 + more)
        headers = {"X-API-Key": "key-a", "Content-Type": "application/json"}
        answer = server.http.post("/v1/workspaces/team/memories", content=body, headers=headers)
        assert answer.status_code == status, (more, answer.text)


def check_the_key_comes_before_the_body(server: RunningServer) -> None:
    """Without a key nothing of a body is waited for, not even one that is over the limit."""
    assert pieces(server, "wrong", end=False) == b"HTTP/1.1 401 "
    for key, status in (("wrong", 401), ("key-a", 413)):
        answer = server.http.post("/v1/workspaces/team/memories", content=b" " * 9000, headers={"X-API-Key": key})
        assert answer.status_code == status


def test_a_body_in_pieces_has_a_limit(keyed: RunningServer) -> None:
    check_a_body_in_pieces_has_a_limit(keyed)


def test_an_announced_body_has_a_limit(keyed: RunningServer) -> None:
    check_an_announced_body_has_a_limit(keyed)


def test_the_key_comes_before_the_body(keyed: RunningServer) -> None:
    check_the_key_comes_before_the_body(keyed)


def test_no_lock_is_made_behind_a_link(running_server: RunningServer, tmp_path: Path) -> None:
    check_no_lock_is_made_behind_a_link(running_server, tmp_path)


def check_no_lock_is_made_behind_a_link(running_server: RunningServer, tmp_path: Path) -> None:
    """What is refused leaves nothing outside of its workspace."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    running_server.http.post("/v1/workspaces/default/memories", json={"text": "a workspace"})
    (running_server.home / "default/sessions").symlink_to(elsewhere)
    for method, path in (("POST", "messages"), ("POST", "trim"), ("DELETE", "")):
        body = {"messages": [{"role": "user", "content": "hi"}]} if path == "messages" else {}
        place = f"/v1/workspaces/default/sessions/s/{path}".rstrip("/")
        answer = running_server.http.request(method, place, json=body)
        assert answer.status_code in (400, 404), answer.text
    assert list(elsewhere.iterdir()) == []
