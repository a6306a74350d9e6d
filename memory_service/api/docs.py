"""Owns the page at /docs: Swagger UI where the browser can load it, else a plain reference. Pure.

Invariants: the reference stands in the page itself and needs neither network nor scripts; Swagger UI, which
comes from a public CDN, takes its place once it is there.
"""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi.openapi.docs import get_swagger_ui_html

_MOUNT = '<div id="swagger-ui">'
_STYLE = "<style>main{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}pre{overflow:auto}</style>"


def docs_page(document: dict[str, Any], openapi_url: str) -> str:
    """The page for an OpenAPI document."""
    title = document["info"]["title"]
    page = bytes(get_swagger_ui_html(openapi_url=openapi_url, title=title, swagger_favicon_url="data:,").body).decode()
    return page.replace(_MOUNT, f"{_MOUNT}{_STYLE}<main>{_reference(document, openapi_url)}</main>", 1)


def _reference(document: dict[str, Any], openapi_url: str) -> str:
    info = document["info"]
    sections = [
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}</p>",
        f'<p>All shapes: <a href="{escape(openapi_url)}">{escape(openapi_url)}</a></p>',
    ]
    for path, methods in document["paths"].items():
        sections += [_operation(method, path, operation) for method, operation in methods.items()]
    return "\n".join(sections)


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = "".join(
        f"<li><code>{escape(p['name'])}</code> ({escape(p['in'])}): {escape(p.get('description', ''))}</li>"
        for p in operation.get("parameters", [])
    )
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    name = body.get("$ref", "").rpartition("/")[2]
    answers = ", ".join(
        f"{escape(status)} {escape(answer.get('description', ''))}" for status, answer in operation["responses"].items()
    )
    return (
        f"<h3><code>{method.upper()} {escape(path)}</code></h3>"
        f"<p><b>{escape(operation['summary'])}.</b> {escape(operation['description'])}</p><ul>{parameters}"
        f"{f'<li>body: <code>{escape(name)}</code></li>' if name else ''}<li>answers: {answers}</li></ul>"
    )
