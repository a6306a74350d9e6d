"""A context provider of Microsoft's Agent Framework: memories before the new messages, and a log of what was said.

```python
agent = Agent(client=client, context_providers=[MemoryProvider("http://127.0.0.1:8765")])
answer = await agent.run("When do we deploy?", session=agent.create_session(session_id="support-42"))
```

The framework keeps the history itself; the provider adds a message with memories for each run, which no history keeps.

Invariants: those of `memory_service.integrations.base`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from memory_service.client._messages import WireMessage
from memory_service.errors import MemoryServiceError
from memory_service.integrations.base import (
    DEFAULT_BUDGET_TOKENS,
    MemorySource,
    framework_messages,
    keep,
    log_failure,
    memory_of,
    missing,
    recalled_block,
    session_name,
)

try:
    from agent_framework import AgentSession, ContextProvider, Message, SessionContext
except ImportError as error:
    raise missing("agent-framework", error) from error


class MemoryProvider(ContextProvider):
    """A `ContextProvider` on a workspace.

    Args:
        memory: A `MemoryService` in this process, a client, or the URL of a server.
        workspace: Name of the workspace, unless a client is given, which has its own.
        api_key: A key of the server, if a URL is given.
        source_id: What the framework calls the provider.
        budget_tokens: Most tokens of memories in a prompt.
    """

    def __init__(
        self,
        memory: MemorySource,
        workspace: str | None = None,
        *,
        api_key: str | None = None,
        source_id: str = "memory_service",
        budget_tokens: int = DEFAULT_BUDGET_TOKENS,
    ) -> None:
        super().__init__(source_id)
        self._memory = memory_of(memory, workspace, api_key)
        self._budget_tokens = budget_tokens

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add memories for the last words of the user, and keep the new messages."""
        words = next(
            (input_message.text for input_message in reversed(context.input_messages) if input_message.role == "user"),
            "",
        )
        block = await asyncio.to_thread(recalled_block, self._memory, words, self._budget_tokens) if words else ""
        if block:
            context.extend_messages(self, [Message("user", [block])])
        await self._keep(session, context.input_messages, flush=False)

    async def after_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Keep what the agent answered, calls of tools with their results."""
        await self._keep(session, context.response.messages if context.response else (), flush=True)

    async def _keep(self, session: AgentSession, messages: Sequence[Message], *, flush: bool) -> None:
        wire = [part for message in messages for part in _to_wire(message)]
        if not wire:
            return
        name = session_name(session.session_id)
        try:
            await asyncio.to_thread(keep, self._memory, name, [(None, wire)], flush=flush)
        except MemoryServiceError as error:
            log_failure("session", error)


def _to_wire(message: Message) -> list[WireMessage]:
    calls = [
        (content.call_id, content.name, content.arguments)
        for content in message.contents
        if content.type == "function_call"
    ]
    results = [
        (each_content.call_id, str(each_content.result if each_content.exception is None else each_content.exception))
        for each_content in message.contents
        if each_content.type == "function_result"
    ]
    return framework_messages(message.role, message.text, calls, results)
