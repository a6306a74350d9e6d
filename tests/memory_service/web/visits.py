"""A person's visit of the page in tests: one browser without a screen, which keeps cookies and sends forms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import httpx

from memory_service.hosts.connect import HostTarget, connect
from memory_service.hosts.progress import note_faults
from tests.serving import NO_TLS, RunningServer, W

HTML = {"Accept": "text/html", "Accept-Language": "en"}
VIEWS = (
    "",
    "/search",
    "/search?q=deploy",
    "/files",
    "/files/MEMORY.md",
    "/files/MEMORY.md?as=source",
    "/edit/MEMORY.md",
    "/history/MEMORY.md",
    "/sessions",
    "/sessions/s1",
    "/sessions/s1?branch=2",
    "/prompts",
    "/prompts?session=s1",
    "/facts",
    "/facts?q=live",
    "/review",
    "/review?since=2026-01-01",
    "/operations",
    "/health",
    "/health?checks=yes",
)
# Elements without an end.
_VOID = frozenset("area base br col embed hr img input link meta source track wbr rect".split())


class Reader(HTMLParser):
    """Reads a page, and notes its elements, its attributes, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = list[tuple[str, dict[str, str]]]()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    """A page, read."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


@dataclass(kw_only=True)
class Person:
    """Somebody with a browser."""

    server: RunningServer
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = httpx.Client(
            base_url=self.server.url, headers=HTML, timeout=60, trust_env=False, verify=NO_TLS, follow_redirects=True
        )

    def close(self) -> None:
        """Close the browser."""
        self.http.close()

    def opens(self, path: str, status: int = 200) -> str:
        """The page at a path."""
        answer = self.http.get(path)
        assert answer.status_code == status, answer.text
        return answer.text

    def sends(self, path: str, status: int = 200, **fields: str) -> str:
        """What a form of the last page answers."""
        token = fields.pop("token", self.http.cookies.get("page_form", ""))
        origin = {"Origin": self.server.url}
        answer = self.http.post(path, data={"token": token, **fields}, headers=origin)
        assert answer.status_code == status, answer.text
        return answer.text


def field_of(page: str, name: str) -> str:
    """The value of a field of a form."""
    for tag, attributes in read(page).elements:
        if tag == "input" and attributes.get("name") == name:
            return attributes["value"]
    raise AssertionError(f"no field {name}")


def area_of(page: str, name: str) -> str:
    """The text of a text area."""
    found = re.search(rf'<textarea name="{name}"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL)
    assert found
    return unescape(found[1])


def write_hostile_texts(server: RunningServer, hostile: Sequence[str], project: Path) -> list[str]:
    """Hostile texts in every place that a workspace has for a text; gives the views that show them.

    Args:
        server: The server of the workspace.
        hostile: The texts.
        project: A folder in which there is to be a connected project with a hostile name.
    """
    note_faults(server.home, "cursor", "stop", (*hostile,))
    connect("cursor", HostTarget(scope="project", folder=project / "<img src=x onerror=window.__ran=1>"))
    folder = server.home / "default" / "memory"
    (folder / "2026-10-01.md").write_text("\n\n".join(f"- {text}" for text in hostile), "utf-8")
    (folder / "<img src=x onerror=window.__ran=1>.md").write_text("# x\n", "utf-8")
    assert server.http.post(f"{W}/reindex", json={}).is_success
    said = [{"role": "user", "content": text} for text in hostile]
    session = {"session_id": "bad", "title": hostile[4], "context_window": 32_000}
    assert server.http.post(f"{W}/sessions", json=session).status_code == 201
    assert server.http.post(f"{W}/sessions/bad/messages", json={"messages": said}).status_code == 200
    place = f"{W}/sessions/bad"
    assert server.http.post(f"{place}/compact", json={"force": True, "target_tokens": 4_000}).json()["applied"]
    for text in hostile[::40]:
        assert server.http.post(f"{place}/pins", json={"text": text}).is_success
        memory = {"text": text, "origin": "agent", "session_id": "bad"}
        assert server.http.post(f"{W}/memories", json=memory).is_success
        prompt = {"recall": "always", "query": text[:1_000], "system_prompt": text}
        assert server.http.post(f"{place}/context", json=prompt).is_success
    for text in hostile[:40]:
        server.http.post(f"{W}/context", json={"query": text[:1_000]})
    views = [*VIEWS, "/files/memory/2026-10-01.md", "/files/memory/2026-10-01.md?as=source", "/sessions/bad",
             "/edit/memory/2026-10-01.md", "/search?q=script", "/prompts?session=bad"]  # fmt: skip
    return [*views, *(f"/sessions/bad?until={number}" for number in range(100, len(hostile), 100))]
