"""The OpenAPI document is the one that is committed beside this file: what the routes promise changes on purpose alone.

`python -m tests.memory_service.api.test_openapi` writes today's document into `openapi.json`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi.routing import APIRoute

from memory_service.api.app import create_app
from memory_service.service import MemoryService
from tests.serving import settings

SNAPSHOT = Path(__file__).with_name("openapi.json")
RENEW = "python -m tests.memory_service.api.test_openapi"


def document(home: Path) -> dict[str, Any]:
    """Today's document, without the number of the version, which changes with every release."""
    with MemoryService(settings(home)) as service:
        made: dict[str, Any] = json.loads(json.dumps(create_app(service).openapi()))
    del made["info"]["version"]
    return made


def differences(promised: Any, made: Any, path: str = "") -> Iterator[str]:
    """Each place where two documents differ, as a path from the root."""
    if isinstance(promised, dict) and isinstance(made, dict):
        for key in sorted(promised.keys() | made.keys()):
            if key not in made:
                yield f"{path}/{key} is gone"
            elif key not in promised:
                yield f"{path}/{key} is new"
            else:
                yield from differences(promised[key], made[key], f"{path}/{key}")
    elif isinstance(promised, list) and isinstance(made, list) and len(promised) == len(made):
        for number, (before, after) in enumerate(zip(promised, made, strict=True)):
            yield from differences(before, after, f"{path}/{number}")
    elif type(promised) is not type(made) or promised != made:
        yield f"{path} was {promised!r:.200} and is {made!r:.200}"


def test_the_document_is_the_one_that_is_committed(tmp_path: Path) -> None:
    found = list(differences(json.loads(SNAPSHOT.read_text(encoding="utf-8")), document(tmp_path)))
    assert not found, (
        f"The OpenAPI document is not that of {SNAPSHOT.name} any more, in {len(found)} places:\n"
        + "\n".join(found[:20])
        + f"\nIf that is meant, run `{RENEW}`, read the difference, and name it in CHANGELOG.md."
    )


def test_the_routes_are_built_once(tmp_path: Path) -> None:
    """To build them takes .25 s, which the first request of every server would wait for."""
    with MemoryService(settings(tmp_path)) as service:
        apps = create_app(service), create_app(service)
    routes, others = ([route for route in app.routes if isinstance(route, APIRoute)] for app in apps)
    shared = {route.path for route in routes if any(route is other for other in others)}
    assert "/v1/workspaces/{workspace}/search" in shared
    own = {route.path for route in routes} - shared
    assert own == {route.path for route in routes if "gateway" in route.tags}


def undescribed(document: dict[str, Any]) -> Iterator[str]:
    """Each field of a shape, and each parameter of a route, of which the document does not say what it means."""
    for name, shape in document["components"]["schemas"].items():
        for field, schema in shape.get("properties", {}).items():
            if len(schema.get("description", "")) < 10:
                yield f"{name}.{field}"
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for parameter in operation.get("parameters", []):
                if len(parameter.get("description", "")) < 10:
                    yield f"{method.upper()} {path} {parameter['name']}"


def test_every_field_and_parameter_is_described() -> None:
    promised = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    assert list(undescribed(promised)) == [], "Say what it means, its unit, and what null stands for."
    shape, operation = {"a": {"type": "string"}}, {"parameters": [{"name": "b", "description": "B"}]}
    bare = {"components": {"schemas": {"Bare": {"properties": shape}}}, "paths": {"/p": {"get": operation}}}
    assert list(undescribed(bare)) == ["Bare.a", "GET /p b"]


def test_what_differs_is_named_by_its_path() -> None:
    before = {"paths": {"/a": 1, "/b": [1, {"type": "string"}]}, "old": None}
    after = {"paths": {"/a": True, "/b": [1, {"type": "integer"}]}, "fresh": None}
    assert list(differences(before, after)) == [
        "/fresh is new",
        "/old is gone",
        "/paths//a was 1 and is True",
        "/paths//b/1/type was 'string' and is 'integer'",
    ]


def main() -> None:
    """Write today's document over the committed one, one value a line."""
    with tempfile.TemporaryDirectory() as home:
        made = json.dumps(document(Path(home)), ensure_ascii=False, indent=0, sort_keys=True)
    SNAPSHOT.write_text(made + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
