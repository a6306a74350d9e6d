"""A memory block of LlamaIndex: memories in the prompt, and what leaves the short-term memory kept in a session.

```python
block = MemoryServiceBlock("http://127.0.0.1:8765")
memory = Memory.from_defaults(session_id="support-42", memory_blocks=[block])
answer = await agent.run("When do we deploy?", memory=memory)
```

LlamaIndex hands its blocks what no longer fits its queue. Those messages are appended to the session of that name, and
its facts are written to memory files.

Invariants: those of `memory_service.integrations.base`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from memory_service.client._messages import WireMessage
from memory_service.errors import MemoryServiceError
from memory_service.integrations.base import (
    DEFAULT_BUDGET_TOKENS,
    Memory,
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
    from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.memory import BaseMemoryBlock
except ImportError as error:
    raise missing("llama-index", error) from error


class MemoryServiceBlock(BaseMemoryBlock[str]):
    """Memories for the last words of the user, in LlamaIndex's `Memory`.

    Args:
        memory: A `MemoryService` in this process, a client, or the URL of a server.
        workspace: Name of the workspace, unless a client is given, which has its own.
        api_key: A key of the server, if a URL is given.
        fields: Fields of every block: `name`, `description`, `priority`, `accept_short_term_memory`.
    """

    name: str = Field(default="memories")
    budget_tokens: int = Field(default=DEFAULT_BUDGET_TOKENS, description="Most tokens of memories in a prompt.")
    _memory: Memory = PrivateAttr()

    def __init__(
        self, memory: MemorySource, workspace: str | None = None, *, api_key: str | None = None, **fields: Any
    ) -> None:
        super().__init__(**fields)
        self._memory = memory_of(memory, workspace, api_key)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        message = next((each_message for each_message in reversed(messages or []) if each_message.role == "user"), None)
        if message is None:
            return ""
        return await asyncio.to_thread(recalled_block, self._memory, message.content or "", self.budget_tokens)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        try:
            await asyncio.to_thread(self._keep, messages)
        except MemoryServiceError as error:
            log_failure("session", error)

    def _keep(self, messages: Sequence[ChatMessage]) -> None:
        for session, iterator in groupby(
            messages, key=lambda value: str(value.additional_kwargs.get("session_id") or "")
        ):
            wire = [part for message in iterator for part in _to_wire(message)]
            if wire:
                keep(self._memory, session_name(session or self.name), [(None, wire)])


def _to_wire(message: ChatMessage) -> list[WireMessage]:
    text = "\n".join(_text(block) for block in message.blocks if not isinstance(block, ToolCallBlock))
    if message.role == "tool":
        return framework_messages(
            "tool", "", results=[(str(message.additional_kwargs.get("tool_call_id") or ""), text)]
        )
    calls = [
        (block.tool_call_id or block.tool_name, block.tool_name, block.tool_kwargs)
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]
    return framework_messages("user" if message.role == "user" else "assistant", text, calls)


def _text(block: Any) -> str:
    return block.text if isinstance(block, TextBlock) else f"[{block.block_type}]"
