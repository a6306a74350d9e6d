"""A capability of Pydantic AI that recalls, compacts, and keeps what was said.

```python
agent = Agent("openai:gpt-4o", capabilities=[MemoryCapability("http://127.0.0.1:8765")])
result = await agent.run("When do we deploy?", conversation_id="support-42")
```

Before each request to the model, what is new is appended to the session of the conversation, and the model gets the
view of it: memories before the last words of the user, and a summary in the place of what does not fit, calls of tools
together with their results. The history of the run stays as it is; one that was edited goes on in a branch.

Invariants: those of `memory_service.integrations.base`.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from indexer.common import LRU
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
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        BinaryContent,
        ImageUrl,
        ModelMessage,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        ModelResponsePart,
        SystemPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserContent,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
except ImportError as error:
    raise missing("pydantic-ai", error) from error

_MOST_RUNS = 1_000


class MemoryCapability(AbstractCapability[Any]):
    """Recall and compaction for an agent.

    It works in `prepare_model_request`, where the model is known and where what is changed is of this request alone.

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
        self._places: LRU[str, PromptPlace] = LRU(_MOST_RUNS)
        self._conversations = HostConversations[ModelMessage](
            memory=memory_of(memory, workspace, api_key),
            to_wire=_to_wire,
            from_wire=_from_wire,
            context_window=context_window,
            budget_tokens=budget_tokens,
            recall=recall,
        )

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The view of the session instead of the whole history."""
        pieces = [piece for message in request_context.messages for piece in _pieces(message)]
        own = [piece for piece in pieces if not _is_system_prompt(piece)]
        system = [piece for piece in pieces if _is_system_prompt(piece)]
        messages, place = await asyncio.to_thread(
            self._conversations.prompt,
            ctx.conversation_id or "",
            own,
            system_prompt="\n\n".join([*(_text_of(piece) for piece in system), *_instructions(pieces)]),
            tools=[_tool(function_tool) for function_tool in request_context.model_request_parameters.function_tools],
            model=request_context.model.model_name,
        )
        self._places[ctx.run_id or ""] = place
        return replace(request_context, messages=[*system, *_name_tools(messages)])

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Keep the answer."""
        usage = {
            "prompt_tokens": response.usage.input_tokens,
            "completion_tokens": response.usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": response.usage.cache_read_tokens},
        }
        place = self._places.get(ctx.run_id or "") or PromptPlace("", 0)
        counted_usage = usage if response.usage.input_tokens else None
        await asyncio.to_thread(self._conversations.append_answers, place, [response], counted_usage)
        return response


# Messages: a request has several parts, each of which is a message on the wire.


def _pieces(message: ModelMessage) -> Iterator[ModelMessage]:
    if isinstance(message, ModelResponse) or len(message.parts) < 2:
        yield message
    else:
        yield from (replace(message, parts=[part]) for part in message.parts)


def _is_system_prompt(piece: ModelMessage) -> bool:
    return bool(piece.parts) and isinstance(piece.parts[0], SystemPromptPart)


def _instructions(pieces: Sequence[ModelMessage]) -> list[str]:
    instructions = [piece.instructions for piece in pieces if isinstance(piece, ModelRequest) and piece.instructions]
    return instructions[-1:]


def _text_of(piece: ModelMessage) -> str:
    return str(getattr(piece.parts[0], "content", ""))


def _tool(definition: Any) -> dict[str, Any]:
    function = {"name": definition.name, "description": definition.description or ""}
    return {"type": "function", "function": {**function, "parameters": definition.parameters_json_schema}}


def _to_wire(piece: ModelMessage) -> WireMessage:
    if isinstance(piece, ModelResponse):
        return _answer(piece.parts)
    return _part_message(piece.parts[0]) if piece.parts else {"role": "user", "content": ""}


def _answer(parts: Sequence[ModelResponsePart]) -> WireMessage:
    calls = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
        }
        for part in parts
        if isinstance(part, ToolCallPart)
    ]
    text = "".join(part.content for part in parts if isinstance(part, TextPart))
    return {"role": "assistant", "content": text or None, "tool_calls": calls} if calls else {
        "role": "assistant", "content": text
    }  # fmt: skip


def _part_message(part: ModelRequestPart) -> WireMessage:
    answered_value = getattr(part, "tool_call_id", None) if getattr(part, "tool_name", None) else None
    if answered_value:
        return {"role": "tool", "tool_call_id": answered_value, "content": _read(part)}
    if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
        return {"role": "user", "content": [_content(value) for value in part.content]}
    return {"role": "user", "content": _read(part)}


def _read(part: ModelRequestPart) -> str:
    """The text of a part as Pydantic AI sends it."""
    read = getattr(part, "model_response_str", None) or getattr(part, "model_response", None)
    return str(read() if read else getattr(part, "content", ""))


def _content(content: UserContent) -> dict[str, Any]:
    match content:
        case str():
            return {"type": "text", "text": content}
        case ImageUrl():
            return {"type": "image_url", "image_url": {"url": content.url}}
        case BinaryContent() if content.is_image:
            url = f"data:{content.media_type};base64,{base64.b64encode(content.data).decode()}"
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            return {"type": "text", "text": str(getattr(content, "content", "") or f"[{content.kind}]")}


def _from_wire(message: WireMessage) -> ModelMessage:
    content = message.get("content") or ""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    if message["role"] == "tool":
        return_part = ToolReturnPart(tool_name="", content=text, tool_call_id=message["tool_call_id"])
        return ModelRequest(parts=[return_part])
    if message["role"] != "assistant":
        return ModelRequest(parts=[UserPromptPart(text)])
    calls = [
        ToolCallPart(call["function"]["name"], call["function"]["arguments"], tool_call_id=call["id"])
        for call in message.get("tool_calls") or ()
    ]
    return ModelResponse(parts=[*([TextPart(text)] if text else []), *calls])


def _name_tools(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages with the names of the tools whose results were cleared: a stub on the wire has none."""
    names = {
        part.tool_call_id: part.tool_name
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }
    return [_with_tool_name(message, names) for message in messages]


def _with_tool_name(message: ModelMessage, names: dict[str, str]) -> ModelMessage:
    part = message.parts[0] if message.parts else None
    if isinstance(message, ModelRequest) and isinstance(part, ToolReturnPart) and not part.tool_name:
        return replace(message, parts=[replace(part, tool_name=names.get(part.tool_call_id, ""))])
    return message
