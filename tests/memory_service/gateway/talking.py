"""A server with the gateway in front of a scripted provider."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openai

from indexer.testing import HashEmbedder
from memory_service.service import MemoryService
from memory_service.testing import ScriptedServer, ScriptedStep
from tests.serving import RunningServer, W, serving, settings

if TYPE_CHECKING:
    import anthropic


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """The server, the provider behind it, and what each was asked."""

    server: RunningServer
    upstream: ScriptedServer
    clients: ExitStack

    @property
    def url(self) -> str:
        return f"{self.server.url}/v1"

    def openai(self, **headers: str) -> openai.OpenAI:
        # To read the machine's certificates takes longer than most tests.
        http = openai.DefaultHttpxClient(verify=False)
        client = openai.OpenAI(
            base_url=self.url, api_key="any", max_retries=0, default_headers=headers, http_client=http
        )
        return self.clients.enter_context(client)

    def anthropic(self, **headers: str) -> anthropic.Anthropic:
        import anthropic  # not in every environment that has the other client

        http = anthropic.DefaultHttpxClient(verify=False)
        client = anthropic.Anthropic(
            base_url=self.server.url, api_key="any", max_retries=0, default_headers=headers, http_client=http
        )
        return self.clients.enter_context(client)

    def sent(self, call: int = -1) -> dict[str, Any]:
        """The body of a request to the provider."""
        return dict(self.upstream.requests[call].body)

    def sessions(self, workspace: str = "default") -> list[str]:
        answer = self.server.http.get(f"/v1/workspaces/{workspace}/sessions").json()
        return sorted(session["session_id"] for session in answer["sessions"])

    def log(self, session_id: str, workspace: str = "default") -> list[dict[str, Any]]:
        answer = self.server.http.get(
            f"/v1/workspaces/{workspace}/sessions/{session_id}/messages", params={"view": "log"}
        )
        return list(answer.json()["messages"])

    def words(self, session_id: str) -> list[str]:
        """Role and text of each message of a session, in short."""
        return [f"{message['role'][0]}: {message['content']}" for message in self.log(session_id)]

    def remember(self, text: str) -> None:
        assert self.server.http.post(f"{W}/memories", json={"text": text}).status_code == 201


@contextmanager
def gateway(
    home: Path,
    *script: ScriptedStep,
    protocol: str = "openai",
    gateway_values: dict[str, Any] | None = None,
    **values: Any,
) -> Iterator[Gateway]:
    """A gateway whose one upstream is a scripted provider; no model judges what lasts, unless the values have one."""
    with ScriptedServer(*script) as upstream:
        base = upstream.url if protocol != "anthropic" else upstream.url.removesuffix("/v1")
        named = {"upstreams": {"scripted": {"protocol": protocol, "base_url": base}}, **(gateway_values or {})}
        service = MemoryService(
            settings(home, **{"gateway": named, "embedding_model": "none", **values}), embedder=HashEmbedder()
        )
        with serving(service) as server, ExitStack() as clients:
            yield Gateway(server=server, upstream=upstream, clients=clients)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}
