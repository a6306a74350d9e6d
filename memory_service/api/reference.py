"""The reference of all routes as a page: parameters, shapes, roles, errors and examples of each operation.

Invariants: the page is whole without a script, which only filters the list at its side; it asks no other host for
anything, and its styles and its script are those of the page for people.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from html import escape
from typing import Any, Final

from memory_service._version import __version__
from memory_service.api.examples import CALLS

OPENAPI_PATH: Final = "/openapi.json"
_ADDRESS: Final = "http://127.0.0.1:8765"
_SHAPES: Final = "shapes"


def reference_page(document: dict[str, Any]) -> str:
    """The reference of an OpenAPI document, as HTML."""
    info, operations = document["info"], _by_tag(document)
    subjects = "".join(_subject(tag, operations[tag["name"]]) for tag in document["tags"])
    shapes = "".join(_shape(*value) for value in sorted(document["components"]["schemas"].items()))
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">
<title>{escape(info["title"])}</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/pico.min.css?{__version__}">
<link rel="stylesheet" href="/static/page.css?{__version__}">
<script src="/static/page.js?{__version__}" defer></script></head>
<body><a class="skip" href="#main">Skip to the content</a>
<header class="container-fluid"><nav aria-label="Server"><ul><li><a class="brand" href="/">memory-service</a></li></ul>
<ul><li><a href="{OPENAPI_PATH}">{OPENAPI_PATH}</a></li></ul></nav></header>
<div class="container-fluid reference"><nav id="contents" aria-label="Contents">
<input type="search" id="q" data-filter="#contents li li" aria-label="Filter the routes" placeholder="Filter" hidden>
<ul>{"".join(_contents(document, operations))}</ul></nav>
<main id="main" tabindex="-1"><h1>{escape(info["title"])} {escape(info["version"])}</h1>
<p>{_prose(info["description"])}</p>{subjects}
<section><h2 id="{_SHAPES}">Shapes</h2>{shapes}</section></main></div>
<dialog id="help" aria-labelledby="help-title"><article><header><h2 id="help-title">Keys</h2></header>
<dl class="keys"><dt><kbd>/</kbd></dt><dd>The filter</dd><dt><kbd>j k</kbd></dt><dd>The next or the last route</dd>
<dt><kbd>?</kbd></dt><dd>This help</dd></dl><footer><form method="dialog"><button>Close</button></form></footer>
</article></dialog>
</body></html>"""


def _contents(document: dict[str, Any], operations: dict[str, list[tuple[str, str, dict[str, Any]]]]) -> Iterator[str]:
    for tag in document["tags"]:
        links = "".join(
            f'<li title="{escape(path)}"><a href="#{_anchor(operation)}">{escape(operation["summary"])}</a> '
            f"<small>{method}</small></li>"
            for method, path, operation in operations[tag["name"]]
        )
        yield f'<li><a href="#{tag["name"]}">{tag["name"]}</a><ul>{links}</ul></li>'
    links = "".join(f'<li><a href="#{name}">{name}</a></li>' for name in sorted(document["components"]["schemas"]))
    yield f'<li><a href="#{_SHAPES}">{_SHAPES}</a><ul>{links}</ul></li>'


def _by_tag(document: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Method, path and operation of the routes of each tag."""
    fields: dict[str, list[tuple[str, str, dict[str, Any]]]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            fields[operation["tags"][0]].append((method.upper(), path, operation))
    return fields


def _subject(tag: dict[str, Any], operations: list[tuple[str, str, dict[str, Any]]]) -> str:
    parts = "".join(_operation(*parts) for parts in operations)
    return f'<section><h2 id="{tag["name"]}">{tag["name"]}</h2><p>{_prose(tag["description"])}</p>{parts}</section>'


def _anchor(operation: dict[str, Any]) -> str:
    return escape(operation["operationId"])


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = [
        _row(item["name"], _place(item), item.get("description", "")) for item in operation.get("parameters", [])
    ]
    body, answers = operation.get("requestBody"), operation["responses"]
    return (
        f'<article data-item id="{_anchor(operation)}"><header><h3>{escape(operation["summary"])}</h3></header>'
        f'<p class="route {method.lower()}"><code>{method} {escape(path)}</code></p>'
        f"<p>{_prose(operation['description'])}</p>"
        f"{_table('Parameters', parameters)}"
        f"{_content('request', 'as below', body) if body else ''}"
        f"{_answers(answers, is_error=False)}"
        f"{_example('curl', _curl(method, path, operation))}{_example('Python', CALLS.get(f'{method} {path}', ''))}"
        f"<details><summary>Errors</summary>{_answers(answers, is_error=True)}</details>"
        "</article>"
    )


def _answers(answers: dict[str, Any], *, is_error: bool) -> str:
    """The answers of an operation that are errors, or the others."""
    return "".join(
        _content(status, answer.get("description", ""), answer)
        for status, answer in answers.items()
        if (status[0] in "45") == is_error
    )


def _place(item: dict[str, Any]) -> str:
    """Where a parameter stands, and its type."""
    needs = ", required" if item["required"] else _default(item["schema"])
    return f"{escape(item['in'])}: {_kind(item['schema'])}{needs}"


def _row(name: str, kind: str, meaning: str) -> str:
    return f'<tr><th scope="row"><code>{escape(name)}</code></th><td>{kind}</td><td>{_prose(meaning)}</td></tr>'


def _table(title: str, rows: list[str]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name in (title, "Type", "Meaning"))
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="scroll" tabindex="0"><table>{body}</table></div>'


def _content(name: str, meaning: str, holder: dict[str, Any]) -> str:
    """A body of a request or an answer: its meaning, its shape, and behind a click its example."""
    content = holder.get("content", {}).get("application/json", {})
    kind = _kind(content["schema"]) if "$ref" in content.get("schema", {}) else ""
    head = f"<b>{escape(name)}</b> {_prose(holder.get('description') or meaning)} {kind}"
    if "example" not in content:
        return f"<div>{head}</div>"
    example = escape(json.dumps(content["example"], indent=2, ensure_ascii=False))
    return f'<div>{head}<details><summary>Example</summary><pre tabindex="0">{example}</pre></details></div>'


def _example(title: str, text: str) -> str:
    return f'<p><b>{title}</b></p><pre tabindex="0">{escape(text)}</pre>' if text else ""


def _example_path(path: str, operation: dict[str, Any]) -> str:
    """A path with the examples of its parameters in the place of their names."""
    examples = {
        item["name"]: item["schema"]["examples"][0] for item in operation.get("parameters", []) if item["in"] == "path"
    }
    return re.sub(r"\{(\w+)\}", lambda match: str(examples[match[1]]), path)


def _curl(method: str, path: str, operation: dict[str, Any]) -> str:
    """The request of an operation as a command."""
    address = _ADDRESS + _example_path(path, operation)
    if any(item["in"] == "query" and item["required"] for item in operation.get("parameters", [])):
        address += "?q=deploy"
    parts = ["curl", *([] if method == "GET" else ["-X", method]), shlex.quote(address)]
    if operation.get("security"):
        parts.append('-H "Authorization: Bearer $KEY"')
    if (body := operation.get("requestBody")) is not None:
        example = json.dumps(body["content"]["application/json"]["example"], ensure_ascii=False)
        parts += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(example)}"]
    return " ".join(parts)


def _shape(name: str, shape: dict[str, Any]) -> str:
    needs = shape.get("required", [])
    rows = [
        _row(field, f"{_kind(schema)}{', required' if field in needs else _default(schema)}", schema["description"])
        for field, schema in shape.get("properties", {}).items()
    ]
    title = f'<h3 id="{escape(name)}"><code>{escape(name)}</code></h3>'
    return f"<article>{title}<p>{_prose(shape.get('description', ''))}</p>{_table('Field', rows)}</article>"


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
