"""The OpenAPI document and the page made of it are complete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import Route

from tests.serving import RunningServer

W = "/v1/workspaces/{workspace}"
S = f"{W}/sessions/{{session_id}}"
CONTRACT = {
    ("POST", f"{W}/sessions"),
    ("GET", f"{W}/sessions"),
    ("GET", S),
    ("PATCH", S),
    ("DELETE", S),
    ("GET", f"{S}/search"),
    ("POST", f"{S}/pending"),
    ("POST", f"{S}/trim"),
    ("POST", f"{S}/restore"),
    ("POST", f"{S}/messages"),
    ("GET", f"{S}/messages"),
    ("GET", f"{S}/messages/{{seq}}"),
    ("GET", f"{S}/messages/{{seq}}/media/{{number}}"),
    ("POST", f"{S}/context"),
    ("POST", f"{S}/overflow"),
    ("POST", f"{S}/compact"),
    ("GET", f"{S}/compactions"),
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
    ("POST", f"{W}/memories"),
    ("GET", f"{W}/memories"),
    ("GET", f"{W}/memories/{{path}}"),
    ("PUT", f"{W}/memories/{{path}}"),
    ("DELETE", f"{W}/memories/{{path}}"),
    ("DELETE", f"{W}/entries/{{memory_id}}"),
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
# What is no JSON of ours: text for Prometheus, a stream, what somebody sent as it came.
OTHER_ANSWERS = {"/metrics", f"{S}/events", f"{S}/messages/{{seq}}", f"{S}/messages/{{seq}}/media/{{number}}"}


@pytest.fixture
def document(running_server: RunningServer) -> dict[str, Any]:
    return dict(running_server.http.get("/openapi.json").json())


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def test_every_route_is_documented_and_nothing_else(document: dict[str, Any]) -> None:
    assert {(method, path) for method, path, _ in operations(document)} == CONTRACT


def test_the_page_is_the_only_route_outside_the_document(running_server: RunningServer) -> None:
    hidden = {
        route.path for route in running_server.app.routes if isinstance(route, Route) and not route.include_in_schema
    }
    assert hidden == {"/docs", "/openapi.json"}


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
                assert answer["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorAnswer"), where


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
    assert page.text.index("<main>") < page.text.index("<script")
