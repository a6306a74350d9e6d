"""Whose it is: each route of the document, with each kind of key, asked for what another workspace has.

The routes come from the document of the app, so that a new one is asked too, or fails for want of a body.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_service.hosts.projects import project_of
from tests.memory_service.gateway.talking import Gateway, gateway
from tests.serving import RunningServer

KEYS = {"key-of-alpha": "alpha", "key-of-beta": "beta", "key-of-all": "*"}
# Stands in all that alpha has, and in nothing that beta sends.
SECRET = "NIGHTINGALE-7731"
REPEATED = "idempotency-of-alpha"
CHAT = {"model": "gpt-4o", "messages": [{"role": "user", "content": "what did we say before?"}]}
RESPONSES = {"model": "gpt-4o", "input": "what did we say before?"}
MANY_REPLIES = ["Fine."] * 500
# Streams and what waits have no end of their own.
ENDLESS = ("/events", "/idle")
# Needed by nobody who may not ask.
OPEN = frozenset({"/health/live", "/health/ready", "/version"})


def key(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {name}"}


@dataclass(frozen=True, kw_only=True)
class Alpha:
    """What one workspace has, by the names of parameters of routes."""

    places: dict[str, str]
    response_id: str
    sealed: dict[str, Any]


@pytest.fixture(scope="module")
def upstreamed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    home = tmp_path_factory.mktemp("whose") / "home"
    with gateway(home, *MANY_REPLIES, api_keys=KEYS) as running:
        yield running


@pytest.fixture(scope="module")
def alpha(upstreamed: Gateway) -> Alpha:
    """Everything that is remembered for a caller, made with the key of alpha."""
    http = upstreamed.server.http
    place = "/v1/workspaces/alpha"

    def posted(path: str, body: dict[str, Any], **headers: str) -> Any:
        answer = http.post(path, json=body, headers={**key("key-of-alpha"), **headers})
        assert answer.is_success, (path, answer.text)
        return answer.json()

    note = f"The code of the safe is {SECRET}."
    stored = posted(f"{place}/memories", {"text": note}, **{"Idempotency-Key": REPEATED})
    session = f"{place}/sessions/s1"
    said = [{"role": role, "content": f"{note} {number}"} for number in range(30) for role in ("user", "assistant")]
    posted(f"{session}/messages", {"messages": said}, **{"Idempotency-Key": REPEATED})
    receipt = posted(f"{place}/context", {"query": "the code of the safe"})["receipt"]["receipt_id"]
    pin = posted(f"{session}/pins", {"text": note}, **{"Idempotency-Key": REPEATED})["pin_id"]
    compacted = posted(f"{session}/compact", {"mode": "apply", "force": True}, **{"Idempotency-Key": REPEATED})
    operation = posted(f"{place}/reindex", {}, **{"Idempotency-Key": REPEATED})["operation_id"]
    call = {"session_id": "shared", "hook_event_name": "prompt", "prompt": note}
    posted("/v1/hooks/opencode", {**call, "messages": [{"id": "a1", "role": "user", "content": note}]})
    answered = posted("/v1/responses", {"model": "gpt-4o", "input": note}, **{"X-Memory-Session": "s2"})
    item = posted("/v1/responses/compact", {"model": "gpt-4o", "input": note})["output"][-1]
    places = {
        "session_id": "s1",
        "path": stored["path"],
        "memory_id": stored["memory_id"],
        "receipt_id": receipt,
        "operation_id": operation,
        "compaction_id": compacted["compaction_id"] or "c1",
        "pin_id": pin,
        "seq": "1",
        "number": "1",
        "host": "opencode",
        "key_id": "0123456789ab",
    }
    return Alpha(places=places, response_id=answered["id"], sealed=item)


def bodies(alpha: Alpha) -> dict[str, list[dict[str, Any]]]:
    """Bodies by the end of a route, each of which names what alpha has, where one can."""
    follows: list[dict[str, Any]] = [
        {**RESPONSES, "previous_response_id": alpha.response_id},
        {**RESPONSES, "conversation": "s2"},
        {**RESPONSES, "conversation": {"id": "s2"}},
        {**RESPONSES, "input": [alpha.sealed, {"role": "user", "content": "go on"}]},
        {**RESPONSES, "metadata": {"session_id": "s2", "user_id": "s2"}, "prompt_cache_key": "s2", "user": "s2"},
    ]
    hooks = [
        {"session_id": "shared", "hook_event_name": name, "prompt": "what is the code?", "source": "resume"}
        for name in ("session_start", "prompt", "stop", "pre_compact", "session_end")
    ]
    messages = {"messages": [{"role": "user", "content": "hello"}]}
    return {
        "/sessions": [{}, {"session_id": "s1"}],
        "/sessions/{session_id}": [{"model": "gpt-4o"}],
        "/pending": [{"call_ids": ["call-1"]}],
        "/branches": [{"seq": 2}],
        "/trim": [{"keep_last": 1}],
        "/restore": [{}],
        "/sessions/{session_id}/messages": [messages],
        "/sessions/{session_id}/context": [{"query": "the code of the safe"}],
        "/conversation": [messages],
        "/overflow": [{"error": "maximum context length is 10 tokens"}],
        "/sessions/{session_id}/compact": [{"mode": "apply", "force": True}, {"mode": "plan"}],
        "/undo": [{}],
        "/flush": [{}],
        "/pins": [{"text": "mine"}, {"seq": 1}],
        "/v1/compact": [{**messages, "context_window": 16_000}],
        "/memories": [{"text": "of beta"}],
        "/memories/{path}": [{"text": "of beta"}],
        "/entries/{memory_id}": [{"text": "of beta"}],
        "/forget": [
            {"query": "the code of the safe", "dry_run": True},
            {"memory": alpha.places["memory_id"], "dry_run": True},
            {"memory": f"{alpha.places['path']}#L5"},
            {"memory": "sessions/s1.jsonl#L2", "dry_run": True},
            {"memory": "sessions/s1.jsonl#L2"},
        ],
        "/v1/keys": [{"name": "of beta", "role": "admin"}],
        "/facts/distinctions": [{"first": "the code of the safe", "second": "of beta"}],
        "/search": [{"query": "the code of the safe"}],
        "/{workspace}/context": [{"query": "the code of the safe"}],
        "/reindex": [{}],
        "/chat/completions": [CHAT, {**CHAT, "user": "s2", "metadata": {"session_id": "s2"}}],
        "/v1/messages": [{**CHAT, "max_tokens": 100, "metadata": {"user_id": "s2"}}],
        "/count_tokens": [{**CHAT, "max_tokens": 100}],
        "/v1/responses": follows,
        "/responses/compact": follows,
        "/hooks/{host}": [*hooks, {**hooks[1], "messages": [{"id": "b1", "role": "user", "content": "of beta"}]}],
    }


def operations(server: RunningServer) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in server.app.openapi()["paths"].items():
        for method, operation in methods.items():
            if not path.endswith(ENDLESS) and path not in OPEN and path != "/metrics":
                yield method.upper(), path, operation


def requests(server: RunningServer, alpha: Alpha, workspace: str) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """Each route, filled in with what alpha has, and each of its bodies."""
    known = bodies(alpha)
    for method, path, operation in operations(server):
        names = re.findall(r"\{(\w+)\}", path)
        assert {*names} <= {*alpha.places, "workspace"}, f"{path} names something new: put alpha's into the fixture."
        filled = path.format(**{**alpha.places, "workspace": workspace})
        ends = [end for end in known if path.endswith(end)]
        if "requestBody" in operation or method in ("POST", "PUT", "PATCH"):
            assert ends, f"{method} {path} is new: say in `bodies` how it could name what another workspace has."
            for body in known[max(ends, key=len)]:
                yield method, filled, body
        else:
            yield method, filled, None


def files_of(home: Path, *, without: str) -> dict[str, bytes]:
    """What a home holds of all workspaces but one; an index is made of it, and what processes share is of all."""
    kept = (
        each for each in home.rglob("*") if each.is_file() and "index" not in each.name and ".lock" not in each.name
    )
    return {
        str(each.relative_to(home)): each.read_bytes()
        for each in kept
        if not {without, ".shared"} & {*each.relative_to(home).parts}
    }


VARIANTS: list[dict[str, str]] = [
    {},
    {"Idempotency-Key": REPEATED},
    {"X-Memory-Session": "s2"},
    {"X-Memory-Mode": "read-only"},
    {"X-Memory-Mode": "off"},
    {"X-Memory-Workspace": "alpha"},
]


def sent(server: RunningServer, method: str, path: str, body: object, headers: dict[str, str]) -> httpx.Response:
    return server.http.request(method, path, json=body, headers={"If-None-Match": "*", **headers})


def test_nobody_without_a_known_key_is_told_anything(upstreamed: Gateway, alpha: Alpha) -> None:
    before = files_of(upstreamed.server.home, without="nowhere")
    for given in ({}, key("wrong"), key("key-of-alph"), {"X-API-Key": ""}):
        for method, path, body in requests(upstreamed.server, alpha, "alpha"):
            answer = sent(upstreamed.server, method, path, body, given)
            assert answer.status_code == 401 and SECRET not in answer.text, (given, method, path)
    assert files_of(upstreamed.server.home, without="nowhere") == before


def test_the_key_of_another_workspace_gets_nothing_and_changes_nothing(upstreamed: Gateway, alpha: Alpha) -> None:
    server = upstreamed.server
    before, asked = files_of(server.home, without="beta"), len(upstreamed.upstream.requests)
    let_in = list[object]()
    for workspace in ("alpha", "beta"):
        for method, path, body in requests(server, alpha, workspace):
            for variant in VARIANTS if method != "GET" else VARIANTS[:1]:
                answer = sent(server, method, path, body, {**key("key-of-beta"), **variant})
                told = answer.text + str(answer.headers)
                named = "X-Memory-Workspace" in variant and "/workspaces" not in path and path != "/v1/compact"
                refused = workspace == "alpha" and "/workspaces/" in path
                if SECRET in told or answer.status_code >= 500 or (refused and answer.status_code != 403):
                    let_in.append((method, path, variant, body, answer.status_code, answer.text[:200]))
                if named and method == "POST" and answer.status_code != 403:
                    let_in.append((method, path, variant, answer.status_code))
                if "idempotency-replayed" in answer.headers and SECRET in told:
                    let_in.append((method, path, "replayed"))
    assert let_in == []
    assert all(SECRET not in json.dumps(each.body) for each in upstreamed.upstream.requests[asked:])
    # What could not be done for the other key stands in the log of the home, by the name of its own workspace.
    after = {name: content for name, content in files_of(server.home, without="beta").items() if name != "gateway.log"}
    assert after == before


def test_the_key_of_all_finds_what_alpha_has(upstreamed: Gateway, alpha: Alpha) -> None:
    """The same questions, asked by one who may: that they are good ones."""
    server = upstreamed.server
    found = [
        path
        for method, path, body in requests(server, alpha, "alpha")
        if method == "GET" and SECRET in sent(server, method, path, body, key("key-of-all")).text
    ]
    assert len(found) >= 5, found
    asked = [f"/v1/workspaces/alpha/{part}" for part in ("receipts/{receipt_id}", "operations/{operation_id}")]
    for path in asked:
        assert server.http.get(path.format(**alpha.places), headers=key("key-of-all")).is_success


@pytest.mark.parametrize("first", ["key-of-all", "key-of-beta"])
def test_two_keys_in_one_conversation_of_a_host_have_a_session_each(
    upstreamed: Gateway, tmp_path: Path, first: str
) -> None:
    server, conversation = upstreamed.server, f"hijack-{first}"
    victim, attacker = "key-of-all", "key-of-beta"
    workspace = project_of(str(tmp_path)).workspace_in(server.home)

    def hook(name: str, number: str, content: str) -> None:
        message = {"id": number, "role": "user", "content": content}
        call = {"session_id": conversation, "hook_event_name": "prompt", "cwd": str(tmp_path), "prompt": "p"}
        answer = server.http.post("/v1/hooks/opencode", json={**call, "messages": [message]}, headers=key(name))
        assert answer.json()["stored"] is True, answer.text

    def words(name: str) -> list[str]:
        path = f"/v1/workspaces/{name}/sessions/opencode-{conversation}/messages?view=log"
        return [said["content"] for said in server.http.get(path, headers=key("key-of-all")).json()["messages"]]

    for name in (first, victim, attacker):
        hook(name, f"v0-{name}", f"begun by {name}")
    hook(attacker, "v1", "attacker's words")
    hook(victim, "v2", "VICTIMSECRET")
    hook(victim, "v1", "VICTIMLOST")
    assert words(workspace)[-2:] == ["VICTIMSECRET", "VICTIMLOST"]
    assert words("beta") == [f"begun by {attacker}", "attacker's words"]


def test_a_conversation_stays_where_calls_without_a_name_began_it(upstreamed: Gateway, tmp_path: Path) -> None:
    server = upstreamed.server
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    workspace = project_of(str(tmp_path / "one")).workspace_in(server.home)
    for number, folder in enumerate(("one", "two", "missing")):
        message = {"id": f"m{number}", "role": "user", "content": folder}
        call = {"session_id": "moving", "hook_event_name": "prompt", "cwd": str(tmp_path / folder), "prompt": "p"}
        answer = server.http.post("/v1/hooks/opencode", json={**call, "messages": [message]}, headers=key("key-of-all"))
        assert answer.json()["stored"] is True
    path = f"/v1/workspaces/{workspace}/sessions/opencode-moving/messages?view=log"
    found = server.http.get(path, headers=key("key-of-all")).json()["messages"]
    assert [message["content"] for message in found] == ["one", "two", "missing"]


@pytest.mark.parametrize("mode", ["on", "off", "read-only"])
@pytest.mark.parametrize("name", ["../alpha", "a b", "Alpha", ".x", "a" * 65, "alpha/../beta", "%2e"])
def test_a_name_that_is_none_is_not_even_repeated(upstreamed: Gateway, mode: str, name: str) -> None:
    headers = {**key("key-of-all"), "X-Memory-Workspace": name, "X-Memory-Mode": mode}
    for path, body in (("/v1/chat/completions", CHAT), ("/v1/hooks/opencode", {"hook_event_name": "other"})):
        answer = upstreamed.server.http.post(path, json=body, headers=headers)
        assert answer.status_code == 400 and "x-memory-workspace" not in answer.headers, answer.text
        assert "no name of a workspace" in answer.json()["error"]["message"]


SENT_AS = [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jsonp",
    "",
]


def test_each_body_has_to_be_json(upstreamed: Gateway, alpha: Alpha) -> None:
    server = upstreamed.server
    before = files_of(server.home, without="nowhere")
    for method, path, body in requests(server, alpha, "alpha"):
        # What no key here may do is refused before its body is looked at.
        for kind in SENT_AS if method in ("POST", "PUT", "PATCH") and path != "/v1/keys" else ():
            headers = {**key("key-of-all"), **({"Content-Type": kind} if kind else {})}
            answer = server.http.request(method, path, content=json.dumps(body), headers=headers)
            assert answer.status_code == 415 and "application/json" in answer.json()["error"]["message"], path
            own = "type" in answer.json()["error"]
            assert own == any(path.startswith(f"/v1/{part}") for part in ("chat", "responses", "messages")), path
    assert files_of(server.home, without="nowhere") == before
    assert server.http.post("/mcp", content="{}", headers=key("key-of-all")).status_code == 415
    assert server.http.post("/v2/none", content="{}", headers=key("key-of-all")).status_code == 404
    odd = {**key("key-of-all"), "Content-Type": "application/vnd.api+json; charset=utf-8"}
    assert server.http.post("/v1/workspaces/alpha/search", content='{"query": "x"}', headers=odd).is_success
    empty = server.http.post("/v1/workspaces/alpha/sessions/s1/flush", headers=key("key-of-all"))
    assert empty.is_success, "a request without a body needs no type of one"
