"""LangChain's agents with a memory: one middleware that recalls, compacts, and keeps what was said.

```python
agent = create_agent("openai:gpt-4o", tools, middleware=[MemoryMiddleware("http://127.0.0.1:8765")])
agent.invoke({"messages": "When do we deploy?"}, {"configurable": {"thread_id": "support-42"}})
```

Before each call of the model, what is new is appended to the session of the thread, and the model gets the view of it:
memories before the last question, and a summary in the place of what does not fit, calls of tools together with their
results. The state of the graph stays as it is: LangGraph's own history, edits and time travel work as before, and what
was edited goes on in a branch of the session.

Invariants: those of `memory_service.integrations.base`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from memory_service.client._messages import WireMessage
from memory_service.integrations.base import (
    DEFAULT_BUDGET_TOKENS,
    HostConversations,
    MemorySource,
    PromptPlace,
    memory_of,
    missing,
)
from memory_service.schemas import RecallMode

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages, convert_to_openai_messages
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ImportError as error:
    raise missing("langchain", error) from error


class MemoryMiddleware(AgentMiddleware[Any, Any, Any]):
    """Recall and compaction for `create_agent`.

    Args:
        memory: A `MemoryService` in this process, a client, or the URL of a server.
        workspace: Name of the workspace, unless a client is given, which has its own.
        api_key: A key of the server, if a URL is given.
        session_id: The session of runs that have no `thread_id`; else it is named after how they begin.
        context_window: What the model takes, in tokens; else its profile says, else its name.
        budget_tokens: Most tokens of memories in a prompt.
        recall: Whether memories are searched: as the question needs it, always, or never.
    """

    def __init__(
        self,
        memory: MemorySource,
        workspace: str | None = None,
        *,
        api_key: str | None = None,
        session_id: str = "",
        context_window: int | None = None,
        budget_tokens: int = DEFAULT_BUDGET_TOKENS,
        recall: RecallMode = "auto",
    ) -> None:
        super().__init__()
        self.tools: list[Any] = []
        self._session_id = session_id
        self._conversations = HostConversations[BaseMessage](
            memory=memory_of(memory, workspace, api_key),
            to_wire=_to_wire,
            from_wire=_from_wire,
            context_window=context_window,
            budget_tokens=budget_tokens,
            recall=recall,
        )

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the view of the session, and keep its answer."""
        prompt, place = self._prompt(request)
        response = handler(prompt)
        self._append_answers(place, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Call the model with the view of the session, and keep its answer."""
        prompt, place = await asyncio.to_thread(self._prompt, request)
        response = await handler(prompt)
        await asyncio.to_thread(self._append_answers, place, response)
        return response

    def _prompt(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], PromptPlace]:
        execution = getattr(request.runtime, "execution_info", None)
        profile = getattr(request.model, "profile", None) or {}
        messages, place = self._conversations.prompt(
            (execution and execution.thread_id) or self._session_id,
            request.messages,
            system_prompt=request.system_prompt or "",
            tools=[tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools],
            model=getattr(request.model, "model_name", None) or getattr(request.model, "model", None),
            context_window=profile.get("max_input_tokens"),
        )
        return request.override(messages=messages), place

    def _append_answers(self, place: PromptPlace, response: ModelResponse[Any]) -> None:
        answers = [value for value in response.result if isinstance(value, AIMessage)]
        self._conversations.append_answers(place, answers, _usage(answers[-1]) if answers else None)


def _usage(answer: AIMessage) -> dict[str, Any] | None:
    """The provider's counts by OpenAI's names: LangChain counts cached tokens among those of the input, too."""
    usage_metadata = answer.usage_metadata
    if not usage_metadata:
        return None
    cache_read = (usage_metadata.get("input_token_details") or {}).get("cache_read")
    return {
        "prompt_tokens": usage_metadata["input_tokens"],
        "completion_tokens": usage_metadata["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": cache_read},
    }


def _to_wire(message: BaseMessage) -> WireMessage:
    return dict(convert_to_openai_messages(message))


def _from_wire(message: WireMessage) -> BaseMessage:
    return convert_to_messages([message])[0]
