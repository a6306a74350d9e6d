"""A session of the OpenAI Agents SDK in a session log, compacted by us and not by the provider.

```python
session = MemoryServiceSession("support-42", "http://127.0.0.1:8765", context_window=128_000)
config = RunConfig(call_model_input_filter=session.recall)
await Runner.run(agent, "When do we deploy?", session=session, run_config=config)
```

Items are kept as they are, each as the message that it is for search and summaries. After a compaction a summary stands
for the oldest of them, whatever the provider; the log has them still. Within a run the SDK sends what it has with every
call: with the filter each call fits the window, and the session compacts between runs.

Invariants: what was added comes back as it was until it is compacted or popped; a call of a tool and its result stay
together; an item that is popped stays in the log that the session had, and the session goes on in a branch of it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, TypeVar, cast

from memory_service.client._messages import WireMessage
from memory_service.errors import MemoryServiceError, NotFound
from memory_service.integrations.base import (
    DEFAULT_BUDGET_TOKENS,
    MemorySource,
    log_degraded,
    log_failure,
    memory_of,
    missing,
    recalled_block,
    session_name,
)
from memory_service.messages.response_items import items_of_messages, messages_of_items
from memory_service.schemas.compaction import BRANCH_MARK

try:
    from agents import TResponseInputItem
    from agents.memory import OpenAIResponsesCompactionArgs, SessionABC, SessionSettings
    from agents.run import CallModelData, ModelInputData
except ImportError as error:
    raise missing("openai-agents", error) from error

_T = TypeVar("_T")


class MemoryServiceSession(SessionABC):
    """A `Session` that compacts itself.

    Args:
        session_id: The conversation.
        memory: A `MemoryService` in this process, a client, or the URL of a server.
        workspace: Name of the workspace, unless a client is given, which has its own.
        api_key: A key of the server, if a URL is given.
        model: The model of the agent; it decides the context window where nothing else does.
        context_window: What the model takes, in tokens.
        budget_tokens: Most tokens of memories that `recall` adds to a prompt.
        session_settings: The SDK's own settings, such as the limit of items.
    """

    def __init__(
        self,
        session_id: str,
        memory: MemorySource,
        workspace: str | None = None,
        *,
        api_key: str | None = None,
        model: str | None = None,
        context_window: int | None = None,
        budget_tokens: int = DEFAULT_BUDGET_TOKENS,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._memory = memory_of(memory, workspace, api_key)
        self._model, self._window, self._budget_tokens = model, context_window, budget_tokens
        # A name of the caller's is none of a branch, whatever it looks like.
        self._root = session_name(session_id.replace(BRANCH_MARK, BRANCH_MARK.replace(".", "\0")))
        self._current = ""
        self._working = threading.Lock()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Items of the conversation, oldest first, compacted if they do not fit; with a limit, the last ones."""
        wanted_limit = self.session_settings.limit if limit is None and self.session_settings else limit
        await self.run_compaction()  # The SDK asks for it behind OpenAI's Responses alone.
        items = await self._do(self._items)
        return items if wanted_limit is None else items[-wanted_limit:] if wanted_limit > 0 else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items; they are on the disk when this returns."""
        if items:
            await self._do(lambda: self._session().append(messages_of_items(items)))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the last item away."""
        return await self._do(self._pop)

    async def clear_session(self) -> None:
        """Erase the conversation, its branches and its log; memories that were flushed stay."""
        await self._do(self._clear)

    async def run_compaction(self, args: OpenAIResponsesCompactionArgs | None = None) -> None:
        """Flush memories and compact, if the window asks for it or `force` does; the SDK calls this after each turn."""
        try:
            await self._do(lambda: self._compact(force=bool(args and args.get("force"))))
        except MemoryServiceError as error:
            log_failure("compaction", error)

    async def recall(self, data: CallModelData[Any]) -> ModelInputData:
        """The input of a call, fit to the window, with memories before the user's last words.

        It is a `call_model_input_filter`; sessions do not keep what it adds or leaves out.
        """
        input_data = await self._add_recall(data.model_data)
        try:
            items = await asyncio.to_thread(self._fitting, input_data, data.agent)
        except MemoryServiceError as error:
            log_failure("compaction", error)
            return input_data
        return ModelInputData(input=items, instructions=input_data.instructions)

    def _fitting(self, input_data: ModelInputData, agent: Any) -> list[TResponseInputItem]:
        """The items of a call, with a summary for the oldest where they do not fit."""
        messages = messages_of_items(input_data.input)
        model = self._model or (agent.model if isinstance(agent.model, str) else None)
        fitting = self._memory.compact_messages(
            messages,
            self._window,
            model=model,
            system_prompt=input_data.instructions or "",
            tools=[_tool(tool) for tool in agent.tools],
        )
        return _items_of(fitting.messages) if fitting.receipt.applied else list(input_data.input)

    async def _add_recall(self, input_data: ModelInputData) -> ModelInputData:
        at = next((at for at in range(len(input_data.input) - 1, -1, -1) if _is_said_by_user(input_data.input[at])), -1)
        words = _words(input_data.input[at]) if at >= 0 else ""
        block = await asyncio.to_thread(recalled_block, self._memory, words, self._budget_tokens) if words else ""
        if not block:
            return input_data
        input_item = cast("TResponseInputItem", {"role": "user", "content": block})
        return ModelInputData(
            input=[*input_data.input[:at], input_item, *input_data.input[at:]], instructions=input_data.instructions
        )

    async def _do(self, work: Callable[[], _T]) -> _T:
        def alone() -> _T:
            with self._working:
                return work()

        return await asyncio.to_thread(alone)

    def _session(self) -> Any:
        """The log of the conversation, or the branch that it goes on in."""
        if not self._current:
            self._current = self._newest()
        return self._memory.session(self._current, model=self._model, context_window=self._window)

    def _newest(self) -> str:
        sessions = [session for session in self._all_sessions() if session.last_seq]
        return max(sessions, key=lambda value: value.last_activity).session_id if sessions else self._root

    def _all_sessions(self) -> list[Any]:
        try:
            sessions = self._memory.sessions()
        except NotFound:
            return []
        return [session for session in sessions if session.session_id.partition(BRANCH_MARK)[0] == self._root]

    def _items(self) -> list[TResponseInputItem]:
        session = self._session()
        try:
            log = session.messages("log")
        except NotFound:
            return []
        log_degraded(log.degraded)
        newest = next((compaction for compaction in session.compactions() if compaction.active), None)
        if newest is None:
            return _items_of(log.messages)
        view = session.messages().messages
        items = [message for message, seq in zip(log.messages, log.seqs, strict=True) if seq >= newest.first_kept]
        head = view if not items else takewhile(lambda shown_value: not _same(shown_value, items[0]), view)
        # A result that was cleared is a stub.
        stubs = {
            shown_value["tool_call_id"]: {"content": shown_value["content"]}
            for shown_value in view
            if shown_value["role"] == "tool"
        }
        return _items_of([*head, *({**message, **stubs.get(message.get("tool_call_id"), {})} for message in items)])

    def _pop(self) -> TResponseInputItem | None:
        try:
            messages = self._session().messages("log").messages
        except NotFound:
            return None
        if not messages:
            return None
        *items, input_item = _items_of(messages[-1:])
        left = [*messages[:-1], *messages_of_items(items)]
        if left:
            branch = self._session().conversation(left, auto=False, recall="never")
            self._current = branch.session_id
        else:
            self._clear()
        return input_item

    def _clear(self) -> None:
        for session in self._all_sessions():
            self._memory.delete_session(session.session_id)
        self._current = self._root

    def _compact(self, *, force: bool) -> None:
        session = self._session()
        try:
            pressure = session.status().pressure
        except NotFound:
            return
        if pressure != "ok":
            log_degraded(session.flush().degraded)
        if force or pressure == "hard":
            log_degraded(session.compact(trigger="manual" if force else "threshold", force=force).degraded)


def _items_of(messages: Sequence[WireMessage]) -> list[TResponseInputItem]:
    return cast("list[TResponseInputItem]", items_of_messages(messages))


def _same(message: WireMessage, logged_message: WireMessage) -> bool:
    if message["role"] != logged_message["role"] or message.get("tool_call_id") != logged_message.get("tool_call_id"):
        return False
    calls = [
        [call["id"] for call in each_message.get("tool_calls") or ()] for each_message in (message, logged_message)
    ]
    return calls[0] == calls[1] and (message.get("content") or "") == (logged_message.get("content") or "")


def _is_said_by_user(item: TResponseInputItem) -> bool:
    return bool(item.get("role") == "user")


def _tool(tool: Any) -> dict[str, Any]:
    """The schema of a tool, as far as it is told before the call."""
    items = (getattr(tool, name, None) for name in ("name", "description", "params_json_schema"))
    return {name: value for name, value in zip(("name", "description", "parameters"), items, strict=True) if value}


def _words(item: Any) -> str:
    content = item["content"]
    return content if isinstance(content, str) else " ".join(str(part.get("text") or "") for part in content)
