"""A memory store of Strands: memories in the prompt and behind tools, and a log of what was said.

```python
store = StrandsStore("http://127.0.0.1:8765", session_id="support-42", extraction=True)
agent = Agent(model=model, memory_manager=MemoryManager(stores=[store]))
```

Strands searches before each call of the model, and with its tool. With `extraction` it hands over the messages of some
turns at a time; facts are found here, without a call of the agent's model.

Invariants: a message of one agent is kept once, however often Strands sends it; a failed write is an error, which
Strands logs and tries again.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import TYPE_CHECKING, Any

from indexer.language import FOUND_HERE
from memory_service.client._messages import WireMessage
from memory_service.errors import InvalidRequest
from memory_service.integrations.base import (
    MemorySource,
    framework_messages,
    keep,
    key_of,
    memory_of,
    missing,
    recalled_passages,
    session_name,
)
from memory_service.text.injected import said_messages

try:
    from strands.memory import MemoryEntry, MemoryStore
except ImportError as error:
    raise missing("strands", error) from error

if TYPE_CHECKING:
    from strands.memory.extraction.types import ExtractionConfig
    from strands.memory.types import AddMessagesContext, SearchOptions
    from strands.types.content import ContentBlock, Message

_DEFAULT_RESULTS = 5


class StrandsStore(MemoryStore):
    """A `MemoryStore` of Strands on a workspace.

    Args:
        memory: A `MemoryService` in this process, a client, or the URL of a server.
        workspace: Name of the workspace, unless a client is given, which has its own.
        api_key: A key of the server, if a URL is given.
        session_id: Name of the conversation that messages are kept in; a new one unless given.
        name: What tools call the store.
        description: What stands in it, for the descriptions of the tools.
        max_search_results: Most passages of a search that names no number.
        writable: Whether anything is written.
        extraction: Whether messages are kept, and when; Strands' own values.
    """

    def __init__(
        self,
        memory: MemorySource,
        workspace: str | None = None,
        *,
        api_key: str | None = None,
        session_id: str | None = None,
        name: str = "memories",
        description: str | None = "What is known from earlier conversations and from notes.",
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = extraction
        self._memory = memory_of(memory, workspace, api_key)
        # Strands counts messages from 0 for each agent.
        self._run = uuid.uuid4().hex
        self._asked_keys = set[str]()
        self.session_id = session_name(session_id or f"strands-{self._run}")

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Passages for a query, best first; none for small talk, and none if the memory fails, which the log says."""
        limit = (options or {}).get("max_search_results") or self.max_search_results or _DEFAULT_RESULTS
        results = await asyncio.to_thread(recalled_passages, self._memory, query, limit)
        return [
            MemoryEntry(content=result.text, metadata={"source": result.citation, "score": result.score, **FOUND_HERE})
            for result in results
        ]

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> str:
        """Remember something; gives its id. The same text is written once. Metadata is not kept but for `tags`."""
        self._check_writable()
        given_tags = (metadata or {}).get("tags") or ()
        tags = [given_tags] if isinstance(given_tags, str) else [str(tag) for tag in given_tags]
        return (await asyncio.to_thread(self._memory.remember, content, tags=tags)).memory_id

    async def add_messages(self, messages: list[Message], context: AddMessagesContext | None = None) -> None:
        """Append messages to the session, each once for its sequence number, and write down their memories."""
        self._check_writable()
        numbers = context.sequence_numbers if context else None
        pairs = [
            (key_of(self._run, numbers[at], wire) if numbers else None, wire)
            for at, message in enumerate(messages)
            if (wire := said_messages(_to_wire(message), self._asked_keys))
        ]
        if pairs:
            await asyncio.to_thread(keep, self._memory, self.session_id, pairs)

    def _check_writable(self) -> None:
        if not self.writable:
            raise InvalidRequest(f"The store {self.name} is read-only. Make it with writable=True.")


def _to_wire(message: Message) -> list[WireMessage]:
    content = message["content"]
    text = "\n".join(_text(block) for block in content if not ("toolUse" in block or "toolResult" in block))
    calls = [(use["toolUseId"], use["name"], use["input"]) for value in content if (use := value.get("toolUse"))]
    results = [
        (result["toolUseId"], "\n".join(map(_text, result["content"])))
        for value in content
        if (result := value.get("toolResult"))
    ]
    return framework_messages(message["role"], text, calls, results)


def _text(block: ContentBlock | Any) -> str:
    if "text" in block:
        return str(block["text"])
    return json.dumps(block["json"], ensure_ascii=False) if "json" in block else f"[{next(iter(block), '')}]"
