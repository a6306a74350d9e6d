"""A callback of litellm that puts memories into each call, and keeps what was said.

```python
litellm.callbacks = [MemoryLogger("http://127.0.0.1:8765")]
await litellm.acompletion(model="gpt-4o", messages=messages, litellm_session_id="support-42")
```

Before a call, what is new of its messages is appended to the session, and the model gets the view of it: memories
before the last words of the user, and a summary in the place of what does not fit. Then the answer is appended; that of
a stream by litellm's worker, when it is over. It works for `acompletion`, for `Router.acompletion` and in the proxy.

Invariants: those of `memory_service.integrations.base`; the caller's own list is never changed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from indexer.common import LRU
from memory_service.client._messages import WireMessage
from memory_service.integrations.base import (
    DEFAULT_BUDGET_TOKENS,
    LOGGER,
    HostConversations,
    MemorySource,
    PromptPlace,
    memory_of,
    missing,
)
from memory_service.messages.reading import read_sent
from memory_service.messages.shapes import text_of
from memory_service.schemas import RecallMode

try:
    from litellm.integrations.custom_logger import CustomLogger
    from litellm.types.utils import CallTypes, ModelResponse
except ImportError as error:
    raise missing("litellm", error) from error

_MOST_CALLS = 10_000
# Calls of other shapes, in which something is said too.
_OTHER_TALKS = (CallTypes.aresponses, CallTypes.anthropic_messages, CallTypes.atext_completion)


class MemoryLogger(CustomLogger):
    """Recall, compaction and the log of conversations, for calls through litellm.

    A conversation is named by `litellm_session_id`, or by `session_id` in the metadata; else after how it begins and
    the `user` of the call. One logger is one workspace: everybody who calls through it shares its memories.

    Args:
        memory: A `MemoryService` in this process, a client, or the URL of a server.
        workspace: Name of the workspace, unless a client is given, which has its own.
        api_key: A key of the server, if a URL is given.
        context_window: What the model takes, in tokens; else its name says.
        budget_tokens: Most tokens of memories in a prompt.
        recall: Whether memories are searched: as the question needs it, always, or never.
    """

    def __init__(
        self,
        memory: MemorySource,
        workspace: str | None = None,
        *,
        api_key: str | None = None,
        context_window: int | None = None,
        budget_tokens: int = DEFAULT_BUDGET_TOKENS,
        recall: RecallMode = "auto",
    ) -> None:
        super().__init__()
        self._places: LRU[str, PromptPlace] = LRU(_MOST_CALLS)
        self._conversations = HostConversations[WireMessage](
            memory=memory_of(memory, workspace, api_key),
            to_wire=lambda message: message,
            from_wire=lambda message: message,
            context_window=context_window,
            budget_tokens=budget_tokens,
            recall=recall,
        )

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: CallTypes | None
    ) -> dict[str, Any] | None:
        """The call with the view of its session."""
        if call_type != CallTypes.acompletion:
            if call_type in _OTHER_TALKS:
                LOGGER.warning(
                    "session: %s goes on without it: acompletion and /v1/chat/completions have it", call_type
                )
            return None
        said_messages = kwargs.get("messages")
        if not isinstance(said_messages, list) or not said_messages:
            LOGGER.warning("session: a call goes on without it: give acompletion its messages by name")
            return None
        begin = next(
            (at for at, value in enumerate(said_messages) if value["role"] not in ("system", "developer")),
            len(said_messages),
        )
        messages, place = await asyncio.to_thread(
            self._conversations.prompt,
            _name(kwargs),
            said_messages[begin:],
            system_prompt="\n\n".join(map(text_of, read_sent(said_messages[:begin]))),
            tools=kwargs.get("tools") or (),
            model=kwargs.get("model"),
            hint=str(kwargs.get("user") or ""),
        )
        self._places[kwargs["litellm_call_id"]] = place
        return {**kwargs, "messages": [*said_messages[:begin], *messages]}

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: CallTypes | None
    ) -> None:
        """Keep the answer before the caller has it; a stream has none yet."""
        await self._append_answer(request_data, response)

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Keep the answer of a stream that is over."""
        await self._append_answer(kwargs, response_obj)

    async def _append_answer(self, call: dict[str, Any], response: Any) -> None:
        if not isinstance(response, ModelResponse) or not response.choices:
            return
        place = self._places.pop(str(call.get("litellm_call_id")))
        if place is not None:
            answer = response.choices[0].message.model_dump(exclude_none=True)
            kept_fields = {"content": None} | {key: answer[key] for key in _KEPT if key in answer}
            usage = getattr(response, "usage", None)
            await asyncio.to_thread(self._conversations.append_answers, place, [kept_fields], usage)

    def log_pre_api_call(self, model: str, messages: Any, kwargs: dict[str, Any]) -> None:
        """Say that litellm has no place for a memory before `completion`."""
        if kwargs.get("call_type") == CallTypes.completion.value:
            LOGGER.warning("session: completion goes on without it: litellm has a hook before acompletion alone")


_KEPT = ("role", "content", "tool_calls", "reasoning_content", "thinking_blocks", "refusal")


def _name(kwargs: dict[str, Any]) -> str:
    metadata = {**(kwargs.get("metadata") or {}), **(kwargs.get("litellm_metadata") or {})}
    return str(kwargs.get("litellm_session_id") or metadata.get("session_id") or "")
