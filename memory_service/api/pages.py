"""The pages for people: `/`, which says what this is, and `/docs`, the reference of all routes.

Invariants: a page asks no other host for anything, which its Content-Security-Policy holds; `/docs` can be read before
a script has run and without any; with scripts RapiDoc takes its place, which has a search and sends requests.

Source: RapiDoc 9.3.8 (MIT), `dist/rapidoc-min.js` as npm has it; a browser checks it against `_RAPIDOC_HASH`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route

from memory_service._version import __version__
from memory_service.api.auth import role_of
from memory_service.api.examples import REQUESTS
from memory_service.api.requests import AppState
from memory_service.service import needs

_RAPIDOC_PATH: Final = "/docs/rapidoc.js"
_RAPIDOC: Final = Path(__file__).parent / "rapidoc" / "rapidoc-min.js"
_RAPIDOC_HASH: Final = "sha384-szzoYhqSJqZH8X90KwbBjYL1CMLEa3U7xl/oAZg4ViKpYEY5GVhM+peBQB4u7ANM"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer"}
_OPENAPI_PATH: Final = "/openapi.json"
_HEAD: Final = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">'
)
# The page shows what the server wrote while RapiDoc is no known element, and where it has no room for its contents.
_STYLE: Final = """<style>
body{margin:0;font:15px/1.5 system-ui,sans-serif;color:#1c2430;background:#fff}
main{max-width:60rem;margin:0 auto;padding:1rem}
h1{font-size:1.6rem;margin:.5rem 0}h2{margin:2.5rem 0 .5rem;border-bottom:1px solid #d5dbe3}h3{margin:1.6rem 0 .2rem}
a{color:#0b5cad}code,pre{font:13px/1.45 ui-monospace,monospace;overflow-wrap:anywhere}code{background:#f1f4f8}
pre{background:#f1f4f8;padding:.6rem;margin:.3rem 0;white-space:pre-wrap;max-height:24rem;overflow:auto}
ul{padding-left:1.2rem;margin:.3rem 0}summary{cursor:pointer;color:#0b5cad}
rapi-doc{height:100vh;width:100%}rapi-doc:not(:defined),rapi-doc:defined~main{display:none}
@media(max-width:768px){rapi-doc{display:none!important}rapi-doc:defined~main{display:block}}
</style>"""


@needs("none")
async def _home(request: Request) -> Response:
    headers = {"Vary": "Accept"}
    if "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(_home_page(), headers=_HEADERS | headers)
    links = {"docs": "/docs", "openapi": _OPENAPI_PATH, "health": "/health/ready"}
    return JSONResponse({"name": "memory-service", "version": __version__} | links, headers=headers)


@needs("none")
async def _docs(request: Request) -> Response:
    app_state: AppState = request.app.state.shared
    page = await app_state.pools.queues.of("health").run(partial(_page_of, request.app))
    return HTMLResponse(page, headers=_HEADERS)


def _page_of(app: FastAPI) -> str:
    """The reference of an app, made once."""
    docs_page: str | None = getattr(app.state, "docs_page", None)
    if docs_page is None:
        docs_page = app.state.docs_page = _docs_page(app.openapi())
    return docs_page


@needs("none")
async def _rapidoc(request: Request) -> Response:
    return FileResponse(_RAPIDOC, media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})


# The pages, and the script of the reference.
PAGES: Final = (
    Route("/", _home, include_in_schema=False),
    Route("/docs", _docs, include_in_schema=False),
    Route(_RAPIDOC_PATH, _rapidoc, include_in_schema=False),
)


def with_requests(document: dict[str, Any]) -> dict[str, Any]:
    """The document, with an example of each request in it."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if "requestBody" in operation:
                content = operation["requestBody"]["content"]["application/json"]
                content["example"] = REQUESTS[f"{method.upper()} {path}"]
    return document


def with_roles(document: dict[str, Any], routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """The document, with the role that each of these routes needs.

    Source: OpenAPI 3.1, "Security Requirement Object": the list of a scheme may hold the names of roles.
    """
    for route in routes:
        if not isinstance(route, APIRoute) or not route.include_in_schema:
            continue
        for method in route.methods or ():
            operation, role = document["paths"][route.path_format][method.lower()], role_of(route, method)
            if role == "none":
                operation["description"] += "\n\nNo key is needed."
            else:
                operation["description"] += f"\n\nRole of the key: `{role}`."
                operation["security"] = [{scheme: [role]} for scheme in document["components"]["securitySchemes"]]
    return document


def _home_page() -> str:
    return f"""{_HEAD}<title>memory-service</title>{_STYLE}</head><body><main>
<h1>memory-service {escape(__version__)}</h1>
<p>Hybrid memory for AI agents: Markdown files in, an exact, budgeted block in the prompt out. This is its server.</p>
<ul>
<li><a href="/docs">All routes</a>, with examples; the same <a href="{_OPENAPI_PATH}">for programs</a></li>
<li><a href="/health/ready">Its health</a>, <a href="/version">its version</a></li>
</ul>
<p>On a terminal beside it:</p>
<pre>memory-service remember "Deploys go out on Tuesdays."
memory-service search "when do we deploy?"
memory-service connect claude-code
memory-service --help</pre>
</main></body></html>"""


def _docs_page(document: dict[str, Any]) -> str:
    title = escape(document["info"]["title"])
    return (
        f"{_HEAD}<title>{title}</title>{_STYLE}</head><body>"
        f'<rapi-doc spec-url="{_OPENAPI_PATH}" render-style="read" theme="light" primary-color="#0b5cad" '
        'nav-item-spacing="compact" schema-description-expanded="true" default-schema-tab="example" load-fonts="false" '
        'regular-font="system-ui, sans-serif" mono-font="ui-monospace, monospace" show-header="false" '
        'allow-server-selection="false" show-method-in-nav-bar="as-colored-text" use-path-in-nav-bar="false">'
        f"</rapi-doc><main>{''.join(_reference(document))}</main>"
        f'<script src="{_RAPIDOC_PATH}" integrity="{_RAPIDOC_HASH}" defer></script></body></html>'
    )


def _reference(document: dict[str, Any]) -> Iterator[str]:
    info, operations = document["info"], _by_tag(document)
    yield f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{_prose(info['description'])}</p>"
    yield f'<p>For programs: <a href="{_OPENAPI_PATH}">{_OPENAPI_PATH}</a></p><h2>Contents</h2><ul>'
    for tag in document["tags"]:
        links = (f'<a href="#{_anchor(*parts)}">{escape(parts[2]["summary"])}</a>' for parts in operations[tag["name"]])
        yield f'<li><a href="#{tag["name"]}">{tag["name"]}</a>: {" · ".join(links)}</li>'
    yield '<li><a href="#shapes">shapes</a></li></ul>'
    for tag in document["tags"]:
        yield f'<h2 id="{tag["name"]}">{tag["name"]}</h2><p>{_prose(tag["description"])}</p>'
        yield from (_operation(*parts) for parts in operations[tag["name"]])
    yield '<h2 id="shapes">Shapes</h2>'
    yield from (_shape(*value) for value in sorted(document["components"]["schemas"].items()))


def _by_tag(document: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Method, path and operation of the routes of each tag."""
    fields: dict[str, list[tuple[str, str, dict[str, Any]]]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            fields[operation["tags"][0]].append((method.upper(), path, operation))
    return fields


def _anchor(method: str, path: str, operation: dict[str, Any]) -> str:
    return escape(operation["operationId"])


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = "".join(
        f"<li><code>{escape(item['name'])}</code> ({escape(item['in'])}): {_prose(item.get('description', ''))}</li>"
        for item in operation.get("parameters", [])
    )
    body, answers = operation.get("requestBody"), operation["responses"].items()
    return (
        f'<h3 id="{_anchor(method, path, operation)}"><code>{method} {escape(path)}</code></h3>'
        f"<p><b>{escape(operation['summary'])}.</b> {_prose(operation['description'])}</p><ul>{parameters}</ul>"
        f"{_content('request', 'as below', body) if body else ''}"
        f"{''.join(_content(status, answer.get('description', ''), answer) for status, answer in answers)}"
    )


def _content(name: str, meaning: str, holder: dict[str, Any]) -> str:
    """A body of a request or an answer: its meaning, its shape, and behind a click its example."""
    content = holder.get("content", {}).get("application/json", {})
    kind = _kind(content["schema"]) if "$ref" in content.get("schema", {}) else ""
    head = f"<b>{escape(name)}</b> {_prose(holder.get('description') or meaning)} {kind}"
    if "example" not in content:
        return f"<div>{head}</div>"
    example = escape(json.dumps(content["example"], indent=2, ensure_ascii=False))
    return f"<details><summary>{head}</summary><pre>{example}</pre></details>"


def _shape(name: str, shape: dict[str, Any]) -> str:
    needs = shape.get("required", [])
    fields = "".join(
        f"<li><code>{escape(field)}</code> ({_kind(schema)}{', required' if field in needs else _default(schema)}): "
        f"{_prose(schema['description'])}</li>"
        for field, schema in shape.get("properties", {}).items()
    )
    title = f'<h3 id="{escape(name)}"><code>{escape(name)}</code></h3>'
    return f"{title}<p>{_prose(shape.get('description', ''))}</p><ul>{fields}</ul>"


def _default(schema: dict[str, Any]) -> str:
    value = schema.get("default")
    return "" if value in (None, "", []) else f", default {escape(json.dumps(value))}"


def _kind(schema: dict[str, Any]) -> str:
    """The type of a value in words, with a link where it is a shape."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}"><code>{name}</code></a>'
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if "items" in schema:
        return f"list of {_kind(schema['items'])}"
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    return " or ".join(escape(str(value)) for value in values) or escape(
        schema.get("format", schema.get("type", "any"))
    )


def _prose(text: str) -> str:
    """A text of the document, whose backticks are code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
