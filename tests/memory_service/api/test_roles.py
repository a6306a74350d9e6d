"""Roles of keys at every door of a server: routes of the document, MCP, hooks, numbers, and the gateway."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from indexer.testing import HashEmbedder
from memory_service import AsyncMemoryClient, Forbidden, MemoryClient, NotFound, Unauthorized
from memory_service.api.auth import role_of
from memory_service.api.server import _check_exposure
from memory_service.errors import InvalidRequest
from memory_service.mcp import tools
from memory_service.schemas.keys import KeyRole, NewKey
from memory_service.service import MemoryService, NeededRole
from memory_service.service import needed_role as role_needed
from memory_service.web import site
from memory_service.web.views.keys import change_keys, keys_page
from tests.memory_service.api.test_document import CONTRACT
from tests.memory_service.cli.commands import CommandLine
from tests.memory_service.client.colours import COLOURS
from tests.memory_service.gateway.talking import gateway, user
from tests.memory_service.mcp.hosts import ENGLISH, answer_of, by_http, by_stdio, failure_of
from tests.serving import NO_TLS, RunningServer, own_process, serving, settings

ROLES: tuple[KeyRole, ...] = ("read", "write", "admin", "gateway")
OPEN = {"/health/live", "/health/ready", "/version"}
GATEWAY = {
    "/v1/chat/completions", "/v1/responses", "/v1/responses/compact", "/v1/messages", "/v1/messages/count_tokens",
    "/v1/models",
}  # fmt: skip
# What is posted, and only read.
QUESTIONS = {"/v1/workspaces/{workspace}/search", "/v1/workspaces/{workspace}/context"}
# Streams and what waits have no end of their own, and models are an upstream's.
ENDLESS = ("/events", "/idle", "/v1/models")
ROUTES = sorted(CONTRACT)
# Longer than a process may know a key.
KNOWN_SECONDS = 1.3


def needed_role(method: str, path: str) -> KeyRole | None:
    """The role that a route needs, as the documentation of keys says."""
    if path in OPEN:
        return None
    if path in GATEWAY:
        return "gateway"
    if path.startswith(("/v1/keys", "/v1/settings", "/v1/hosts")):
        return "admin"
    return "read" if method == "GET" or path in QUESTIONS else "write"


def allows(role: KeyRole, needed: KeyRole | None) -> bool:
    rights: dict[KeyRole, set[KeyRole]] = {
        "read": {"read"},
        "write": {"read", "write", "gateway"},
        "gateway": {"gateway"},
        "admin": set(ROLES),
    }
    return needed is None or needed in rights[role]


class Keyed:
    """A server, and a key of each role."""

    def __init__(self, server: RunningServer, service: MemoryService) -> None:
        self.server, self.service = server, service
        self.keys = {role: service.access.make(NewKey(name=role, role=role)).key for role in ROLES}
        self.some = service.access.make(NewKey(name="some", role="write", workspaces=["team", "team-b"])).key

    def status(self, method: str, path: str, key: str, workspace: str = "default") -> int:
        """The status of a route, with what is in braces filled in."""
        place = re.sub(r"\{\w+\}", "1", path.replace("{workspace}", workspace).replace("{host}", "claude-code"))
        body: dict[str, str] | None = {} if method in ("POST", "PUT", "PATCH") else None
        return self.server.http.request(method, place, headers=bearer(key), json=body).status_code


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    service = MemoryService(settings(tmp_path_factory.mktemp("roles") / "home"), embedder=HashEmbedder())
    service.remember("default", ENGLISH)
    with serving(service) as server:
        yield Keyed(server, service)


def contents(home: Path) -> Mapping[Path, bytes]:
    """All files of a home but the index, and those that tell when a key was last used."""
    files = [path for path in home.rglob("*") if path.is_file() and ".shared" not in path.parts]
    return {path: path.read_bytes() for path in files if not path.name.startswith("index.sqlite")}


@pytest.mark.parametrize("role", ROLES)
def test_a_key_may_do_what_its_role_says_on_every_route(keyed: Keyed, role: KeyRole) -> None:
    for method, path in ROUTES:
        needed = needed_role(method, path)
        if allows(role, needed) and not path.endswith(ENDLESS):
            assert keyed.status(method, path, keyed.keys[role]) not in (401, 403), (method, path)


@pytest.mark.parametrize("role", ROLES)
def test_what_a_role_may_not_do_changes_nothing(keyed: Keyed, role: KeyRole) -> None:
    before, keys = contents(keyed.server.home), [key.key_id for key in keyed.service.access.keys()]
    refused_routes = [(method, path) for method, path in ROUTES if not allows(role, needed_role(method, path))]
    for method, path in refused_routes:
        assert keyed.status(method, path, keyed.keys[role]) == 403, (method, path)
    assert contents(keyed.server.home) == before
    assert [key.key_id for key in keyed.service.access.keys()] == keys
    assert len(refused_routes) >= {"read": 30, "write": 3, "admin": 0, "gateway": 50}[role]


def test_a_refusal_names_both_roles(keyed: Keyed) -> None:
    for place, needed in (("/v1/workspaces/default/memories", "write"), ("/v1/keys", "admin")):
        answer = keyed.server.http.post(place, json={"text": "x"}, headers=bearer(keyed.keys["read"]))
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (403, "forbidden")
        assert f"the role read, and this needs {needed}" in error["message"]


def test_a_path_that_is_written_otherwise_needs_the_same_role(keyed: Keyed) -> None:
    before = contents(keyed.server.home)
    for path in ("/v1/keys/", "/v1//keys", "/v1/workspaces/default/forget/search", "/v1/workspaces/default/search/"):
        answer = keyed.server.http.post(path, json={"name": "x", "query": "x"}, headers=bearer(keyed.keys["read"]))
        assert answer.status_code in (307, 403, 404, 405), (path, answer.text)
    assert contents(keyed.server.home) == before


def test_a_key_of_some_workspaces_opens_those(keyed: Keyed) -> None:
    for workspace, is_allowed in (("team", True), ("team-b", True), ("team-bc", False), ("default", False)):
        for method, path in ROUTES:
            if "{workspace}" in path and not path.endswith(ENDLESS):
                status = keyed.status(method, path, keyed.some, workspace)
                assert (status == 403) != is_allowed and status != 401, (method, path, workspace, status)
    http, headers = keyed.server.http, bearer(keyed.some)
    for workspace in ("team", "team-b", "default"):
        http.post(f"/v1/workspaces/{workspace}/memories", json={"text": "x"}, headers=bearer(keyed.keys["write"]))
    assert http.get("/v1/workspaces", headers=headers).json()["workspaces"] == ["team", "team-b"]
    assert http.get("/metrics", headers=headers).status_code == 403


def test_numbers_are_for_who_reads(keyed: Keyed) -> None:
    statuses = {role: keyed.status("GET", "/metrics", key) for role, key in keyed.keys.items()}
    assert statuses == {"read": 200, "write": 200, "admin": 200, "gateway": 403}


@pytest.mark.parametrize("role", ROLES)
def test_tools_hold_the_role(keyed: Keyed, role: KeyRole) -> None:
    before = contents(keyed.server.home)

    async def use(client: Client) -> tuple[list[str], list[str]]:
        calls: dict[str, dict[str, Any]] = {
            "search": {"query": "deploys"},
            "status": {},
            "remember": {"text": role},
            "forget": {"memory_id": "m0"},
        }
        results = {name: await client.call_tool(name, arguments) for name, arguments in calls.items()}
        done = [name for name, result in results.items() if not result.is_error]
        forbidden = [
            name
            for name, result in results.items()
            if result.is_error and f"the tool {name} needs" in failure_of(result)
        ]
        return done, forbidden

    done, forbidden = by_http(keyed.server.url, use, headers=bearer(keyed.keys[role]))
    writes, reads = ["remember", "forget"], ["search", "status"]
    assert forbidden == {"read": writes, "gateway": reads + writes}.get(role, [])
    assert done == {"read": reads, "gateway": []}.get(role, [*reads, "remember"])
    if role in ("read", "gateway"):
        assert contents(keyed.server.home) == before


def test_a_host_that_starts_the_tools_has_the_rights_of_its_key(cli_home: CommandLine) -> None:
    service = MemoryService(settings(cli_home.home, embedding_model="none"))
    service.remember("default", ENGLISH)
    keys = {role: service.access.make(NewKey(name=role, role=role)) for role in ROLES}
    other = service.access.make(NewKey(name="other", workspaces=["team"]))

    async def use(client: Client) -> tuple[bool, str]:
        found = await client.call_tool("search", {"query": "deploys"})
        stored = await client.call_tool("remember", {"text": "Of a host."})
        if not found.is_error:
            service.access.withdraw(keys["read"].key_id)
            time.sleep(KNOWN_SECONDS)
            found = await client.call_tool("search", {"query": "deploys"})
            return stored.is_error, failure_of(found)
        return stored.is_error, failure_of(found)

    assert by_stdio(cli_home.home, use, "--api-key", keys["gateway"].key)[1].startswith("The key has the role gateway")
    assert "not for this workspace" in by_stdio(cli_home.home, use, "--api-key", other.key)[1]
    is_refused, words = by_stdio(cli_home.home, use, environment={"MEMORY_SERVICE_API_KEY": keys["read"].key})
    assert is_refused and "none of this home" in words, "it was withdrawn while the host was there"
    assert [entry.text for entry in service.entries("default").entries] == [ENGLISH]
    service.close()


def test_tools_hold_the_workspaces_of_a_key(keyed: Keyed) -> None:
    async def remember(client: Client) -> None:
        answer_of(await client.call_tool("remember", {"text": "Of a tool."}))

    for workspace in ("", "team-b"):
        by_http(keyed.server.url, remember, headers=bearer(keyed.some) | {"X-Memory-Workspace": workspace or "team"})
        files = keyed.service.files(workspace or "team")
        assert files, workspace
    answer = keyed.server.http.post("/mcp", json={}, headers=bearer(keyed.some) | {"X-Memory-Workspace": "default"})
    assert answer.status_code == 403


def test_hooks_need_a_key_that_writes(keyed: Keyed) -> None:
    call = {"session_id": "s", "cwd": "/nowhere", "hook_event_name": "SessionStart", "source": "startup"}
    for role, key in keyed.keys.items():
        answer = keyed.server.http.post("/v1/hooks/claude-code", json=call, headers=bearer(key))
        assert answer.status_code == (200 if role in ("write", "admin") else 403), (role, answer.text)


def test_other_paths_of_providers_are_the_gateways(keyed: Keyed, tmp_path: Path) -> None:
    with gateway(tmp_path / "home") as gate:
        key = gate.server.app.state.shared.service.access.make(NewKey(name="x", role="read")).key
        for path in ("/v1/embeddings", "/v1/files", "/v1/audio/speech"):
            answer = gate.server.http.post(path, json={}, headers=bearer(key))
            assert answer.status_code == 403 and "this needs gateway" in answer.text, path
            assert gate.server.http.post(path, json={}).status_code == 401, path
            # Without an upstream there is no such path.
            assert keyed.server.http.post(path, json={}, headers=bearer(keyed.keys["read"])).status_code == 404
            assert keyed.server.http.post(path, json={}).status_code == 401
        assert not gate.upstream.requests


# Routes of the app that the document does not have.
HIDDEN: dict[tuple[str, str], NeededRole] = {
    ("GET", "/openapi.json"): "none",
    ("GET", "/docs"): "none",
    ("GET", "/"): "none",
    # Its views and tools say what each needs.
    ("GET", "/w/{page}"): "none",
    ("POST", "/w/{page}"): "none",
    ("POST", "/mcp"): "any",
}
PROVIDERS = "/v1/{provider_path}"


def test_every_route_of_the_app_has_the_role_that_is_right(tmp_path: Path) -> None:
    with gateway(tmp_path / "home") as gate:
        app = gate.server.app
        seen = set[tuple[str, str]]()
        for route in app.routes:
            path = str(getattr(route, "path_format", None) or getattr(route, "path", ""))
            for method in sorted(getattr(route, "methods", None) or ("GET", "POST")):
                pair = ("GET" if method == "HEAD" else method, path)
                expected = HIDDEN.get(pair) or ("gateway" if path == PROVIDERS else needed_role(*pair) or "none")
                assert role_of(route, method) == expected, (method, path)
                seen.add(pair)
        assert {*ROUTES, *HIDDEN, ("DELETE", PROVIDERS)} <= seen
        assert {pair for pair in seen if pair[1] != PROVIDERS} == {*ROUTES, *HIDDEN}


def test_the_document_and_its_page_tell_the_role_of_each_operation(keyed: Keyed) -> None:
    document, page = keyed.server.http.get("/openapi.json").json(), keyed.server.http.get("/docs").text
    for method, path in ROUTES:
        operation, role = document["paths"][path][method.lower()], needed_role(method, path)
        if role is None:
            assert "security" not in operation and operation["description"].endswith("No key is needed.")
        else:
            assert operation["security"] == [{"HTTPBearer": [role]}, {"APIKeyHeader": [role]}], path
            assert operation["description"].endswith(f"Role of the key: `{role}`."), path
    assert page.count("Role of the key: <code>write</code>.") == sum(needed_role(*pair) == "write" for pair in ROUTES)


def test_every_view_of_the_page_and_every_tool_has_the_role_that_is_right() -> None:
    views = {(method, path): role_needed(view, method) for path, method, view, _ in site._VIEWS}
    assert set(views.values()) == {"read", "write"}
    assert all((role == "write") == (method == "POST") for (method, _), role in views.items())
    assert {role_needed(view, method) for view in (keys_page, change_keys) for method in ("GET", "POST")} == {"admin"}
    roles = {name: tool.role for name, tool in tools.tools().items()}
    assert roles == {
        "search": "read", "get": "read", "fetch": "read", "context": "read", "status": "read", "remember": "write",
        "forget": "write",
    }  # fmt: skip


def test_a_gateway_key_asks_models_and_nothing_else(tmp_path: Path) -> None:
    with gateway(tmp_path / "home", "One.", "Two.", "Three.", api_keys="of-the-settings:default") as gate:
        access = gate.server.app.state.shared.service.access
        statuses = dict[str, tuple[int, int, int]]()
        for role in ROLES:
            headers = bearer(access.make(NewKey(name=role, role=role)).key)
            body = {"model": "scripted/m", "messages": [user("Hello.")]}
            http = gate.server.http
            statuses[role] = (
                http.post("/v1/chat/completions", json=body, headers=headers).status_code,
                http.get("/v1/workspaces/default/sessions", headers=headers).status_code,
                http.post("/v1/workspaces/default/memories", json={"text": "x"}, headers=headers).status_code,
            )
        assert statuses == {
            "read": (403, 200, 403),
            "write": (200, 200, 201),
            "admin": (200, 200, 201),
            "gateway": (200, 403, 403),
        }


@pytest.mark.parametrize("colour", COLOURS, ids=["sync", "async"])
def test_a_client_makes_lists_and_withdraws_keys(
    keyed: Keyed, colour: type[MemoryClient] | type[AsyncMemoryClient]
) -> None:
    with MemoryClient(keyed.server.url, api_key=keyed.keys["write"]) as memory, pytest.raises(Forbidden):
        memory.keys()
    with colour(keyed.server.url, api_key=keyed.keys["admin"]) as memory:  # type: ignore[union-attr]
        made = memory.make_key("help desk", role="read", workspaces=["team"], days=3)
        assert (made.name, made.role, made.workspaces) == ("help desk", "read", ["team"])
        assert made.key_id in [key.key_id for key in memory.keys()]
        with pytest.raises(InvalidRequest, match="list"):
            memory.make_key("x", workspaces="team")
        with MemoryClient(keyed.server.url, workspace="team", api_key=made.key) as reader:
            assert reader.receipts().receipts == []
            with pytest.raises(Forbidden):
                reader.remember("x")
            assert memory.withdraw_key(made.key_id).key_id == made.key_id
            with pytest.raises(Unauthorized):
                reader.status()
        with pytest.raises(NotFound):
            memory.withdraw_key(made.key_id)


def test_the_first_key_locks_a_running_server(cli_home: CommandLine) -> None:
    service = MemoryService(settings(cli_home.home, embedding_model="none"))
    with serving(service) as server:
        assert server.http.get("/v1/workspaces").status_code == 200
        key = cli_home.run("keys", "add", "me", "--role", "admin").out.strip()
        time.sleep(KNOWN_SECONDS)
        assert server.http.get("/v1/workspaces").status_code == 401
        assert server.http.get("/v1/workspaces", headers=bearer(key)).status_code == 200
        cli_home.ok("keys", "withdraw", key.split("_")[1])
        time.sleep(KNOWN_SECONDS)
        assert server.http.get("/v1/workspaces", headers=bearer(key)).status_code == 200, "no key is needed any more"


@pytest.fixture
def cli_home(tmp_path: Path) -> CommandLine:
    return CommandLine(home=tmp_path / "home")


def test_an_open_address_takes_a_made_key(cli_home: CommandLine) -> None:
    values = settings(cli_home.home, host="0.0.0.0", embedding_model="none")
    with pytest.raises(InvalidRequest, match="keys add"):
        _check_exposure(values)
    assert not cli_home.home.exists()
    key = cli_home.run("keys", "add", "me", "--role", "admin").out.strip()
    _check_exposure(values)
    environment = {**cli_home.environment, "MEMORY_SERVICE_HOST": "0.0.0.0"}
    with own_process(cli_home.home, environment) as (url, _), httpx.Client(base_url=url, verify=NO_TLS) as http:
        assert http.get("/v1/workspaces").status_code == 401
        assert http.get("/v1/workspaces", headers=bearer(key)).status_code == 200
        withdrawn = http.delete(f"/v1/keys/{key.split('_')[1]}", headers=bearer(key))
        assert withdrawn.status_code == 200
        time.sleep(KNOWN_SECONDS)
        assert http.get("/v1/workspaces").status_code == 401, "others never get in without a key"
