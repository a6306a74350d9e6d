"""The OpenAPI document and the page made of it are complete."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from html import escape, unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError
from starlette.routing import Route

from memory_service import schemas
from memory_service._version import __version__
from memory_service.api.examples import CALLS, REQUESTS
from memory_service.client import MemoryClient
from memory_service.errors import Conflict, NotFound
from memory_service.schemas.base import Request
from tests.serving import RunningServer

W = "/v1/workspaces/{workspace}"
S = f"{W}/sessions/{{session_id}}"
CONTRACT = {
    ("GET", "/v1/keys"),
    ("POST", "/v1/keys"),
    ("DELETE", "/v1/keys/{key_id}"),
    ("GET", "/v1/settings"),
    ("GET", "/v1/hosts"),
    ("GET", f"{W}/receipts"),
    ("GET", f"{W}/operations"),
    ("GET", f"{W}/events"),
    ("GET", f"{W}/facts"),
    ("POST", f"{W}/facts/distinctions"),
    ("GET", f"{W}/versions/{{path}}"),
    ("DELETE", f"{W}/versions/{{path}}"),
    ("POST", f"{W}/sessions"),
    ("GET", f"{W}/sessions"),
    ("GET", S),
    ("PATCH", S),
    ("DELETE", S),
    ("GET", f"{S}/search"),
    ("POST", f"{S}/pending"),
    ("POST", f"{S}/branches"),
    ("POST", f"{S}/trim"),
    ("POST", f"{S}/restore"),
    ("POST", f"{S}/messages"),
    ("GET", f"{S}/messages"),
    ("GET", f"{S}/messages/{{seq}}"),
    ("GET", f"{S}/messages/{{seq}}/media/{{number}}"),
    ("POST", f"{S}/context"),
    ("POST", f"{S}/conversation"),
    ("POST", f"{S}/overflow"),
    ("POST", f"{S}/compact"),
    ("GET", f"{S}/compactions"),
    ("GET", f"{S}/prompts"),
    ("GET", f"{S}/compactions/{{compaction_id}}"),
    ("POST", f"{S}/compactions/{{compaction_id}}/undo"),
    ("POST", f"{S}/flush"),
    ("GET", f"{S}/flush-prompt"),
    ("POST", f"{S}/pins"),
    ("GET", f"{S}/pins"),
    ("DELETE", f"{S}/pins/{{pin_id}}"),
    ("GET", f"{S}/events"),
    ("GET", f"{S}/idle"),
    ("POST", "/v1/compact"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/responses/compact"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"),
    ("GET", "/v1/models"),
    ("POST", "/v1/hooks/{host}"),
    ("DELETE", f"{S}/messages/{{seq}}"),
    ("POST", f"{W}/memories"),
    ("GET", f"{W}/memories"),
    ("GET", f"{W}/memories/{{path}}"),
    ("PUT", f"{W}/memories/{{path}}"),
    ("DELETE", f"{W}/memories/{{path}}"),
    ("GET", f"{W}/entries"),
    ("GET", f"{W}/entries/{{memory_id}}"),
    ("PATCH", f"{W}/entries/{{memory_id}}"),
    ("DELETE", f"{W}/entries/{{memory_id}}"),
    ("POST", f"{W}/forget"),
    ("POST", f"{W}/search"),
    ("POST", f"{W}/context"),
    ("GET", f"{W}/receipts/{{receipt_id}}"),
    ("POST", f"{W}/reindex"),
    ("GET", f"{W}/operations/{{operation_id}}"),
    ("DELETE", f"{W}/operations/{{operation_id}}"),
    ("GET", f"{W}/status"),
    ("GET", "/v1/workspaces"),
    ("GET", "/health/live"),
    ("GET", "/health/ready"),
    ("GET", "/version"),
    ("GET", "/metrics"),
}
# Answers that are no JSON of ours: text for Prometheus, a stream, a message as it came, a provider's.
OTHER_ANSWERS = {
    "/metrics",
    f"{W}/events",
    f"{S}/events",
    f"{S}/messages/{{seq}}",
    f"{S}/messages/{{seq}}/media/{{number}}",
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/responses/compact",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/models",
    "/v1/hooks/{host}",
}


@pytest.fixture
def document(running_server: RunningServer) -> dict[str, Any]:
    return dict(running_server.http.get("/openapi.json").json())


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def test_every_route_is_documented_and_nothing_else(document: dict[str, Any]) -> None:
    assert {(method, path) for method, path, _ in operations(document)} == CONTRACT


def test_pages_and_mcp_are_the_only_routes_outside_the_document(running_server: RunningServer) -> None:
    hidden = {
        route.path for route in running_server.app.routes if isinstance(route, Route) and not route.include_in_schema
    }
    assert hidden == {"/", "/docs", "/openapi.json", "/mcp"}


def test_every_operation_says_what_it_does_and_gives(document: dict[str, Any]) -> None:
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    for method, path, operation in operations(document):
        where = f"{method} {path}"
        assert operation["summary"], where
        assert len(operation["description"]) > 20, where
        assert set(operation["tags"]) <= tags and operation["tags"], where
        assert all(parameter["description"] for parameter in operation.get("parameters", [])), where
        [success] = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
        assert success["description"], where
        if path not in OTHER_ANSWERS:
            content = success["content"]["application/json"]
            assert content["schema"]["$ref"] and content["example"], where
        if path.startswith("/v1"):
            assert {"401", "403", "503"} <= set(operation["responses"]), where
            assert operation["security"], where
        for status, answer in operation["responses"].items():
            if status[0] in "45" and path != "/health/ready":
                content = answer["content"]["application/json"]
                assert content["schema"]["$ref"].endswith("/ErrorAnswer"), where
                assert {"code", "message"} == content["example"]["error"].keys(), where


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if "$ref" in node:
                assert node["$ref"].rpartition("/")[2] in document["components"]["schemas"]
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(document)
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))


def test_the_page_can_be_read_without_scripts_or_network(running_server: RunningServer) -> None:
    page = running_server.http.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    for method, path in CONTRACT:
        assert f"<code>{method} {path}</code>" in page.text
    for name, shape in running_server.http.get("/openapi.json").json()["components"]["schemas"].items():
        assert f'<h3 id="{name}">' in page.text
        for field, schema in shape["properties"].items():
            meaning = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(schema["description"]))
            assert re.search(rf"<code>{field}</code></th><td>.*</td><td>{re.escape(meaning)}</td>", page.text)
    assert "<code>limit</code></th><td>integer, default 6</td>" in page.text
    anchors, links = re.findall(r' id="([^"]+)"', page.text), re.findall(r'href="#([^"]+)"', page.text)
    assert set(links) <= set(anchors) and len(anchors) == len(set(anchors))
    assert "Role of the key: <code>admin</code>" in page.text and "curl -X POST http://127.0.0.1:8765/v1/" in page.text


def test_the_page_has_contents_by_subject_and_examples(running_server: RunningServer, document: dict[str, Any]) -> None:
    page = running_server.http.get("/docs").text
    contents = page.partition('<nav id="contents"')[2].partition("</nav>")[0]
    for tag in document["tags"]:
        assert f'<a href="#{tag["name"]}">{tag["name"]}</a>' in contents and f'<h2 id="{tag["name"]}">' in page
    for _, _, operation in operations(document):
        assert f'<a href="#{operation["operationId"]}">{escape(operation["summary"])}</a>' in contents
        for body in [operation.get("requestBody", {}), *operation["responses"].values()]:
            example = body.get("content", {}).get("application/json", {}).get("example")
            assert example is None or escape(json.dumps(example, indent=2, ensure_ascii=False)) in page
    assert "`" not in re.sub(r"(?s)<pre.*?</pre>", "", page)


def test_every_request_has_an_example_that_its_shape_takes(document: dict[str, Any]) -> None:
    used = set()
    for method, path, operation in operations(document):
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]["application/json"]
            used.add(f"{method} {path}")
            schema = content["schema"]
            references = [each["$ref"] for each in [schema, *schema.get("anyOf", [])] if "$ref" in each]
            for reference in references:
                shape = getattr(schemas, reference.rpartition("/")[2])
                assert shape.model_validate_json(json.dumps(content["example"]))
            assert references or content["example"]
    assert used == set(REQUESTS)


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_ask_no_other_host(running_server: RunningServer, path: str) -> None:
    page = running_server.http.get(path, headers={"Accept": "text/html,*/*;q=0.8"})
    policy = dict(each.strip().split(" ", 1) for each in page.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    sources = {word for value in policy.values() for word in value.split()}
    assert sources <= {"'none'", "'self'", "data:"} and policy["script-src"] == "'self'"
    assert not re.findall(r'(?:src|href|action)="(?:https?:)?//', page.text)
    assert "<script>" not in page.text and "@import" not in page.text


class _Refusals(BaseHTTPRequestHandler):
    """A server that has nothing, and notes what it is asked for."""

    requests: ClassVar[list[str]] = []

    def _refuse(self) -> None:
        self.requests.append(f"{self.command} {self.path.partition('?')[0]}")
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        # A session is there already, so that what is said of it is asked for.
        status, code = (409, "conflict") if self.path.endswith("/sessions") else (404, "not_found")
        body = json.dumps({"error": {"code": code, "message": "The example is refused."}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _refuse

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


def test_the_calls_of_the_reference_ask_its_routes(document: dict[str, Any]) -> None:
    """Each example by the client sends the request that it stands beside."""
    routes = {f"{method} {path}": operation for method, path, operation in operations(document)}
    assert set(CALLS) <= set(routes)
    without = {route for route in routes if route.partition(" ")[2].startswith(W) and route not in CALLS}
    assert without == {
        f"DELETE {W}/entries/{{memory_id}}",
        f"GET {S}/compactions/{{compaction_id}}",
        f"GET {S}/messages/{{seq}}/media/{{number}}",
    }
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusals) as refusals:
        thread = threading.Thread(target=refusals.serve_forever)
        thread.start()
        with MemoryClient(f"http://127.0.0.1:{refusals.server_port}") as memory:
            for route, call in CALLS.items():
                _Refusals.requests.clear()
                with suppress(NotFound, Conflict):
                    exec(call, {"memory": memory})
                expected = re.sub(r"\\{path\\}", ".+", re.escape(route))
                expected = re.sub(r"\\{\w+\\}", "[^/]+", expected)
                assert any(re.fullmatch(expected, request) for request in _Refusals.requests), (
                    route,
                    _Refusals.requests,
                )
        refusals.shutdown()
        thread.join(60)


def test_the_root_answers_people_and_programs(running_server: RunningServer) -> None:
    page = running_server.http.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert page.headers["content-type"].startswith("text/html") and "Accept" in page.headers["vary"]
    assert "memory-service remember" in page.text
    for link in re.findall(r'href="(/[^"]*)"', page.text):
        assert running_server.http.get(unescape(link), follow_redirects=True).status_code == 200
    for accept in ("*/*", "application/json"):
        answer = running_server.http.get("/", headers={"Accept": accept})
        assert answer.json() == {
            "name": "memory-service",
            "version": __version__,
            "docs": "/docs",
            "openapi": "/openapi.json",
            "health": "/health/ready",
        }


# What the schema of a field says, and a value of another type that pydantic would turn into one.
CONVERTIBLE: dict[str, list[object]] = {
    "boolean": [0, 1, "true"],
    "integer": ["5", True, 5.0],
    "number": ["0.5", True],
    "string": [5, True],
}


def test_no_value_of_another_type_is_taken_for_one() -> None:
    """Every field of every body: what its schema does not allow is refused, and never converted."""
    tried = 0
    for shape in _below(Request):
        for name, field in shape.model_json_schema()["properties"].items():
            kinds = {kind.get("type") for kind in [field, *field.get("anyOf", [])]}
            for kind in kinds & CONVERTIBLE.keys():
                wrong: list[object] = [value for value in CONVERTIBLE[kind] if _type_of(value) not in kinds]
                for value in wrong + ([0, "0", "1700000000", 1.5] if "date" in str(field) else []):
                    assert name in _refused_fields(shape, {name: value}), (shape.__name__, name, value)
                    tried += 1
    assert tried > 80


def _below(root: type[Request]) -> list[type[Request]]:
    return [kind for child in root.__subclasses__() for kind in (child, *_below(child))]


def _type_of(value: object) -> str:
    return {bool: "boolean", int: "integer", float: "number", str: "string"}[type(value)]


def _refused_fields(shape: type[Request], values: dict[str, object]) -> set[object]:
    try:
        shape.model_validate(values)
    except ValidationError as error:
        return {each["loc"][0] for each in error.errors() if each["type"] != "missing"}
    return set()


@pytest.mark.parametrize("score", ["NaN", "1e400", "-1e400", "Infinity"])
def test_a_score_is_a_number(running_server: RunningServer, score: str) -> None:
    running_server.http.post("/v1/workspaces/default/memories", json={"text": "there"})
    body = f'{{"query": "there", "min_score": {score}}}'
    place, headers = "/v1/workspaces/default/search", {"Content-Type": "application/json"}
    answer = running_server.http.post(place, content=body, headers=headers)
    assert answer.status_code == 422
    assert "min_score" in answer.json()["error"]["message"]


NAMES = {
    "workspace": (["default", "a" * 64], ["", "A", "-x", "..", "a b", "a/b", "ä", "a" * 65]),
    "session_id": (["support-42", "A" * 128], ["", "-x", ".x", "a b", "a/b", "会", "a" * 129]),
    "path": (
        ["MEMORY.md", "USER.md", "memory/2026-11-20.md", "memory/a/会议.MD"],
        ["", "memory/", "a.md", "memory/a.txt", "memory/.a.md", "memory/../a.md", "/memory/a.md", "memory//a.md"],
    ),
}


def test_names_and_paths_have_patterns(document: dict[str, Any]) -> None:
    seen = set()
    for _, where, operation in operations(document):
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path" and parameter["name"] in NAMES:
                fits, fails = NAMES[parameter["name"]]
                pattern = parameter["schema"]["pattern"]
                assert all(re.search(pattern, each) for each in fits), (where, pattern)
                assert not any(re.search(pattern, each) for each in fails), (where, pattern)
                seen.add(parameter["name"])
    assert seen == set(NAMES)
    bodies = document["components"]["schemas"]
    assert all("pattern" in bodies[each]["properties"]["session_id"] for each in ("NewMemory", "NewSession"))


def test_the_item_of_a_stream_is_described(document: dict[str, Any]) -> None:
    [stream] = [each for _, path, each in operations(document) if path == f"{S}/events"]
    item = stream["responses"]["200"]["content"]["text/event-stream"]["itemSchema"]
    assert set(item["required"]) == {"id", "event", "data"}
    assert "session_id" in item["properties"]["data"]["contentSchema"]["properties"]


def test_a_refused_method_is_told_all_others(running_server: RunningServer) -> None:
    by_path: dict[str, set[str]] = {}
    for method, path in CONTRACT:
        by_path.setdefault(path, set()).add(method)
    for path, methods in by_path.items():
        answer = running_server.http.request("TRACE", re.sub(r"\{\w+\}", "1", path))
        assert answer.status_code == 405
        assert set(answer.headers["Allow"].split(", ")) == methods, path
        assert answer.headers["Allow"] in answer.json()["error"]["message"]
