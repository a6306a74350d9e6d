"""A memory service of Google's ADK: each user of each app has a workspace, and each of their sessions a log.

```python
memory = MemoryServiceBackend("http://127.0.0.1:8765")
runner = Runner(app_name="shop", agent=agent, session_service=sessions, memory_service=memory)
await memory.add_session_to_memory(session)
```

ADK's own tools `load_memory` and `preload_memory` search it: memories, notes and what was said in sessions that were
added. An event is kept once, however often its session is added.

Invariants: what one user said is never found by another; reading, and adding sessions and events, never stop an agent.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from indexer.common import LRU
from indexer.language import FOUND_HERE
from memory_service.client import AsyncMemoryClient, MemoryClient
from memory_service.client._messages import WireMessage
from memory_service.errors import InvalidRequest, MemoryServiceError, NotFound
from memory_service.integrations.base import (
    LocalMemory,
    Memory,
    framework_messages,
    keep,
    key_of,
    log_failure,
    memory_of,
    missing,
    recalled_passages,
    session_name,
    whole_file,
)
from memory_service.memories.format import Entry, day_of, find_entries
from memory_service.schemas import SearchResult

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai.types import Content, Part
except ImportError as error:
    raise missing("google-adk", error) from error

if TYPE_CHECKING:
    from google.adk.events import Event
    from google.adk.sessions import Session

    from memory_service.service import MemoryService

_MOST_RESULTS = 10  # as of ADK's own service
_MOST_USERS = 100
_MOST_EVENTS = 10_000


class MemoryServiceBackend(BaseMemoryService):
    """A `BaseMemoryService` of ADK.

    Args:
        memory: A `MemoryService` in this process, or the URL of a server; a client has one workspace alone.
        api_key: A key of the server, if a URL is given.
    """

    def __init__(self, memory: MemoryService | str, *, api_key: str | None = None) -> None:
        if isinstance(memory, MemoryClient | AsyncMemoryClient | LocalMemory):
            raise InvalidRequest("A client has one workspace, and each user needs one. Give the server's URL instead.")
        self._source = memory
        self._api_key = api_key
        self._users: LRU[str, Memory] = LRU(_MOST_USERS)
        self._cache: LRU[str, bool] = LRU(_MOST_EVENTS)

    @staticmethod
    def workspace(app_name: str, user_id: str) -> str:
        """The name of the workspace of a user of an app."""
        plain = (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:20] for name in (app_name, user_id))
        return "-".join(part for part in (*plain, key_of(app_name, user_id)[:16]) if part)

    async def add_session_to_memory(self, session: Session) -> None:
        """Keep the events of a session that are new, and write down their memories."""
        await asyncio.to_thread(self._add, session.app_name, session.user_id, session.id, session.events)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep these events, and write down their memories; nothing of the metadata is used."""
        await asyncio.to_thread(self._add, app_name, user_id, session_id or "events", events)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember the text of each of these, once; nothing of the metadata is used."""
        memory = self._memory(app_name, user_id)
        for text in filter(None, (_text(each_memory.content) for each_memory in memories)):
            await asyncio.to_thread(memory.remember, text)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Passages for a query, best first; none for small talk, and none if the memory fails, which the log says."""
        memory = self._memory(app_name, user_id)
        return SearchMemoryResponse(memories=await asyncio.to_thread(_search, memory, query))

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Erase a memory from its file and from the index; one that is gone already is no error."""
        if memory_id:
            try:
                await asyncio.to_thread(self._memory(app_name, user_id).forget, memory_id)
            except NotFound:
                return

    def _memory(self, app_name: str, user_id: str) -> Memory:
        name = self.workspace(app_name, user_id)
        memory = self._users.get(name)
        if memory is None:
            memory = self._users[name] = memory_of(self._source, name, self._api_key)
        return memory

    def _add(self, app_name: str, user_id: str, session_id: str, events: Iterable[Event]) -> None:
        keyed_pairs = ((key_of(app_name, user_id, session_id, event.id), event) for event in events)
        new = [(key, wire) for key, event in keyed_pairs if key not in self._cache and (wire := _to_wire(event))]
        if not new:
            return
        try:
            keep(self._memory(app_name, user_id), session_name(session_id), new)
        except MemoryServiceError as error:
            log_failure("session", error)  # Who adds the session again adds what is missing.
            return
        for key, _ in new:
            self._cache[key] = True


def _search(memory: Memory, query: str) -> list[MemoryEntry]:
    pages: dict[str, list[Entry]] = {}
    return [
        MemoryEntry(
            content=Content(role="user", parts=[Part(text=result.text)]),
            custom_metadata={"source": result.citation, "score": result.score, **FOUND_HERE},
            id=_memory_id(memory, result, pages),
            timestamp=result.date.isoformat() if result.date else None,
        )
        for result in recalled_passages(memory, query, _MOST_RESULTS)
    ]


def _memory_id(memory: Memory, result: SearchResult, pages: dict[str, list[Entry]]) -> str | None:
    """The id of the entry that a passage stands in; None for what stands in a log."""
    if result.source != "memory":
        return None
    if result.path not in pages:
        try:
            pages[result.path] = find_entries(whole_file(memory, result.path)[0], day_of(result.path))
        except MemoryServiceError:
            pages[result.path] = []
    at = (entry.memory_id for entry in pages[result.path] if entry.start_line <= result.start_line <= entry.end_line)
    return next(at, None)


def _to_wire(event: Event) -> list[WireMessage]:
    if event.content is None:
        return []
    parts = event.content.parts or []
    called = [call for part in parts if (call := part.function_call)]
    answers = [answer for part in parts if (answer := part.function_response)]
    calls = [(number, call.name, call.args) for number, call in zip(_ids(called), called, strict=True)]
    results = [(number, _json(answer.response)) for number, answer in zip(_ids(answers), answers, strict=True)]
    role = "user" if event.author == "user" else "assistant"
    return framework_messages(role, _text(event.content), calls, results)


def _ids(parts: Sequence[Any]) -> Iterator[str]:
    """The ids of calls or of results; without ids of their own, those of one tool go by their order."""
    for at, part in enumerate(parts):
        before = sum(1 for each_part in parts[:at] if not each_part.id and each_part.name == part.name)
        yield part.id or (f"{part.name}-{before + 1}" if before else part.name)


def _json(response: object) -> str:
    return json.dumps(response, ensure_ascii=False, default=str)


def _text(content: Any) -> str:
    return "\n".join(part.text for part in content.parts or () if part.text and not part.thought)
