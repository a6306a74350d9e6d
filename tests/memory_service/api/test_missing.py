"""What is missing comes with the place where it was looked for, which a key for one workspace does not show."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from indexer.testing import HashEmbedder
from memory_service import MemoryClient, NotFound
from memory_service.service import MemoryService
from tests.serving import RunningServer, serving, settings

KEYS = {"key-team": "team", "key-all": "*"}
TEAM = "/v1/workspaces/team"
MISSING = (
    f"{TEAM}/memories/memory/2026-01-01.md",
    f"{TEAM}/sessions/nobody",
    f"{TEAM}/receipts/r20261125-45c20781e1b91c7f",
    f"{TEAM}/operations/nothing",
)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    service = MemoryService(settings(tmp_path_factory.mktemp("keyed"), api_keys=KEYS), embedder=HashEmbedder())
    with serving(service) as server:
        yield server


def message_of(answer: httpx.Response) -> str:
    assert answer.status_code == 404, answer.text
    return str(answer.json()["error"]["message"])


@pytest.mark.parametrize("path", MISSING)
def test_on_this_machine_the_home_is_named(running_server: RunningServer, path: str) -> None:
    message = message_of(running_server.http.get(path))
    assert running_server.place in message
    # Named once, whoever named it.
    assert message.count(running_server.place) == 1


def test_a_proxy_may_bring_anybody(running_server: RunningServer) -> None:
    message = message_of(running_server.http.get(MISSING[0], headers={"X-Forwarded-For": "203.0.113.7"}))
    assert running_server.place not in message
    assert message.endswith("It was looked for in the workspace team of this server.")


@pytest.mark.parametrize("path", MISSING)
def test_a_key_for_one_workspace_shows_no_path(keyed: RunningServer, path: str) -> None:
    message = message_of(keyed.http.get(path, headers={"X-API-Key": "key-team"}))
    assert keyed.place not in message
    assert message.endswith("It was looked for in the workspace team of this server.")
    # Who may see all workspaces may know where they lie.
    assert keyed.place in message_of(keyed.http.get(path, headers={"X-API-Key": "key-all"}))


def test_a_workspace_that_is_missing_is_of_the_server(keyed: RunningServer) -> None:
    answer = keyed.http.delete(f"{TEAM}/entries/m000000000000", headers={"X-API-Key": "key-team"})
    assert message_of(answer).startswith("There is no workspace team in the home of this server. Write a first memory")


def test_other_failures_show_no_path_either(keyed: RunningServer) -> None:
    keyed.home.mkdir(exist_ok=True)
    (keyed.home / "team").write_text("A file in the place of a folder.")
    try:
        for key, shows in (("key-team", False), ("key-all", True)):
            answer = keyed.http.post(f"{TEAM}/memories", json={"text": "x"}, headers={"X-API-Key": key})
            assert answer.status_code == 400
            assert (str(keyed.home) in answer.json()["error"]["message"]) is shows
    finally:
        (keyed.home / "team").unlink()


def test_a_route_that_is_missing_was_looked_for_in_no_home(running_server: RunningServer) -> None:
    assert message_of(running_server.http.get("/v1/nothing")) == "There is no such route. /docs shows all of them."
    assert "looked for" not in message_of(running_server.http.post("/v1/hooks/nobody", json={}))


def test_the_client_tells_what_the_server_tells(keyed: RunningServer) -> None:
    for key, place in (("key-team", "this server."), ("key-all", f"{keyed.place}.")):
        with MemoryClient(keyed.url, workspace="team", api_key=key) as memory:
            with pytest.raises(NotFound, match="There is no file") as raised:
                memory.get("memory/2026-01-01.md")
            assert str(raised.value).endswith(f"It was looked for in the workspace team of {place}")
