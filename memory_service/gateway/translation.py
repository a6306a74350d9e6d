"""Calls of clients, in OpenAI's and Anthropic's shapes, to models of any provider: through litellm's translation.

What litellm does not carry over is refused before anything is sent: other providers get it in their own protocol, or
not at all. Found with litellm 1.106 by comparing what went in with what came out at a scripted server.

Invariants: litellm is imported at the first call, in a thread; of a body only parameters of the protocol reach
litellm's own arguments, so no client chooses an address, a key or a callback; nothing is collected before it is given
on; who closes an answer ends the request to the provider.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memory_service.errors import InvalidRequest, UpstreamFailed
from memory_service.service import close_clients, error_chain, provider_message, require_litellm, upstream_error

JsonBody = dict[str, Any]
TranslatedProtocol = Literal["chat", "messages"]

# Parameters of chat completions that litellm takes by name; it sends others on as they are in `extra_body`.
# Source: OpenAI's API reference, and litellm 1.106, constants.py, OPENAI_CHAT_COMPLETION_PARAMS
_CHAT_PARAMETERS = frozenset({
    "messages", "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
    "max_completion_tokens", "max_tokens", "modalities", "n", "parallel_tool_calls", "prediction", "presence_penalty",
    "prompt_cache_key", "reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop",
    "store", "stream", "stream_options", "temperature", "thinking", "tool_choice", "tools", "top_logprobs", "top_p",
    "user", "verbosity", "web_search_options",
})  # fmt: skip
_MESSAGES_PARAMETERS = frozenset({
    "messages", "max_tokens", "metadata", "stop_sequences", "stream", "system", "temperature", "thinking",
    "tool_choice", "tools", "top_k", "top_p",
})  # fmt: skip
_BLOCKS = ("text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking")
_NAME_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedCall:
    """A call to a model.

    Attributes:
        protocol: The shape of its body and of the answer.
        model: A litellm name.
        body: The body as the client sent it.
        api_base: Where the model is served; empty is its provider's own address.
        api_key: Its key; empty is the variable that its provider names.
        timeout_seconds: How long the provider may say nothing.
    """

    protocol: TranslatedProtocol
    model: str
    body: Mapping[str, Any]
    api_base: str = ""
    api_key: str = ""
    timeout_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamAnswer:
    """An answer of a provider, whose body is still to come.

    Attributes:
        status: Its status.
        headers: Its headers that tell the caller something.
        entity: Its headers that say what its bytes are: type, encoding, length.
        is_stream: Whether it is a stream of events.
        pieces: The body as it comes; raises `UpstreamFailed` when it breaks off.
        close: Ends the request, whatever is still to come.
    """

    status: int
    headers: Mapping[str, str]
    entity: Mapping[str, str]
    is_stream: bool
    pieces: AsyncIterator[bytes]
    close: Callable[[], Awaitable[None]]


async def translate_call(call: TranslatedCall) -> UpstreamAnswer:
    """Send a call.

    Raises:
        InvalidRequest: It has what litellm's translation would lose.
        ModelUnavailable: litellm is not installed, or the model cannot be used.
        UpstreamFailed: There is no answer of the provider.
    """
    _refuse_what_is_lost(call)
    litellm = await asyncio.to_thread(require_litellm)
    act = litellm.acompletion if call.protocol == "chat" else litellm.anthropic_messages
    try:
        answer = await act(**_arguments(call))
    except Exception as error:  # litellm's have no common base, and its defects come as anything
        return _refusal(call, error)
    headers = _headers(answer)
    if not call.body.get("stream"):
        return _whole(200, headers, answer if isinstance(answer, dict) else _answer(answer))
    if not headers.get("content-type", "text/event-stream").startswith("text/event-stream"):
        await _close(answer)
        raise UpstreamFailed(f"The model {call.model} answered with what is no stream of events. Check its address.")
    events = _chat_events(answer, call.model) if call.protocol == "chat" else _message_events(answer, call.model)
    return UpstreamAnswer(
        status=200, headers=headers, entity={"content-type": "text/event-stream"}, is_stream=True, pieces=events,
        close=lambda: _close(answer),
    )  # fmt: skip


async def end_translating() -> None:
    """Close the connections that litellm keeps for the running loop."""
    await close_clients()


def _arguments(call: TranslatedCall) -> dict[str, Any]:
    # Copied: litellm changes what it is given.
    body: JsonBody = json.loads(json.dumps({name: value for name, value in call.body.items() if name != "model"}))
    chat_parameters = _CHAT_PARAMETERS if call.protocol == "chat" else _MESSAGES_PARAMETERS
    place = {"api_base": call.api_base, "api_key": call.api_key}
    other_fields = {name: value for name, value in body.items() if name not in chat_parameters}
    return {
        **{name: value for name, value in body.items() if name in chat_parameters},
        **({"extra_body": other_fields} if other_fields else {}),
        **{name: value for name, value in place.items() if value},
        "model": call.model,
        "timeout": call.timeout_seconds,
        "max_retries": 0,
        "num_retries": 0,
        # Its own tools from MCP servers: a client would reach these with the rights of this server.
        "_skip_mcp_handler": True,
    }


# --- what cannot be translated ------------------------------------------------------------------------------------


def _refuse_what_is_lost(call: TranslatedCall) -> None:
    """Refuse what would not reach the model.

    Raises:
        InvalidRequest: There is such a thing.
    """
    body = call.body
    if call.protocol == "chat":
        if body.get("stream") and (body.get("n") or 1) != 1:
            raise InvalidRequest(
                "Several choices cannot be streamed from this model: of all but the first the end would be missing. "
                "Leave out n or stream."
            )
        return
    if not isinstance(body.get("max_tokens"), int):
        raise InvalidRequest("The field max_tokens is missing. Send the most tokens that the answer may have.")
    if text := next(_lost_in_messages(body), ""):
        raise InvalidRequest(
            f"The model {call.model} is not one of Anthropic's, and {text} cannot be translated for it. Leave it out, "
            "or name an upstream that speaks Anthropic's protocol."
        )


def _lost_in_messages(body: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"the field {name}" for name in body if name not in _MESSAGES_PARAMETERS and name != "model")
    for tool in _objects_in(body.get("tools")):
        if tool.get("type", "custom") != "custom":
            yield f"the tool {str(tool['type'])[:_NAME_CHARS]!r}"
    for message in _objects_in(body.get("messages")):
        for block in _objects_in(message.get("content")):
            if (kind := block.get("type")) not in _BLOCKS:
                yield f"the block {str(kind)[:_NAME_CHARS]!r}"


def _objects_in(value: object) -> Iterator[Mapping[str, Any]]:
    return (each_value for each_value in (value if isinstance(value, list) else ()) if isinstance(each_value, dict))


# --- litellm's values into those of the protocols ----------------------------------------------------------------


def _answer(answer: Any) -> JsonBody:
    body: JsonBody = answer.model_dump(exclude_none=True)
    for choice in body.get("choices", ()):
        choice.setdefault("finish_reason", None)
        choice.setdefault("message", {}).setdefault("content", None)
    return body


async def _chat_events(stream: Any, model: str) -> AsyncIterator[bytes]:
    try:
        async for chunk in stream:
            yield f"data: {json.dumps(_chunk(chunk))}\n\n".encode()
    except Exception as error:
        raise _broken_connection(model) from error
    yield b"data: [DONE]\n\n"


def _chunk(chunk: Any) -> JsonBody:
    body: JsonBody = chunk.model_dump(exclude_none=True)
    choices = body.get("choices", [])
    for choice in choices:
        choice.setdefault("finish_reason", None)
    if "usage" in body and all(not choice.get("delta") and not choice["finish_reason"] for choice in choices):
        # The usage stands in a chunk of its own, without a choice.
        body["choices"] = []
    return body


async def _message_events(stream: Any, model: str) -> AsyncIterator[bytes]:
    try:
        async for piece in stream:
            yield piece if isinstance(piece, bytes) else str(piece).encode("utf-8", "replace")
    except Exception as error:
        raise _broken_connection(model) from error


def _broken_connection(model: str) -> UpstreamFailed:
    return UpstreamFailed(f"The model {model} broke the connection. Try again.", kind="unavailable", transient=True)


def _headers(answer: Any) -> dict[str, str]:
    """The provider's headers, of an answer or of an error."""
    _hidden_params = getattr(answer, "_hidden_params", None)
    _hidden_params = answer.get("_hidden_params") if isinstance(answer, dict) else _hidden_params
    additional_headers = (
        (_hidden_params or {}).get("additional_headers") or {} if isinstance(_hidden_params or {}, dict) else {}
    )
    prefix = "llm_provider-"
    return {
        str(name)[len(prefix) :]: str(value)
        for name, value in additional_headers.items()
        if str(name).startswith(prefix)
    }


async def _close(answer: Any) -> None:
    close = getattr(answer, "aclose", None)
    if close is not None:
        await close()


def _whole(status: int, headers: Mapping[str, str], content: Mapping[str, Any]) -> UpstreamAnswer:
    async def piece() -> AsyncIterator[bytes]:
        # Escaped: half a surrogate pair can be named in JSON, but not encoded.
        yield json.dumps(content, default=str).encode()

    async def close() -> None:
        pass

    return UpstreamAnswer(
        status=status, headers=headers, entity={"content-type": "application/json"}, is_stream=False, pieces=piece(),
        close=close,
    )  # fmt: skip


def _refusal(call: TranslatedCall, error: Exception) -> UpstreamAnswer:
    """The provider's refusal, as an answer.

    Raises:
        UpstreamFailed: The provider said nothing.
    """
    answers = (getattr(one_error, "litellm_response_headers", None) for one_error in error_chain(error))
    headers: Mapping[object, object] = next(filter(None, answers), {})
    status = provider_message(error).status or 0
    # What litellm itself refuses has a status below 500 too, and a text that says what to change.
    if status < 400 or (status >= 500 and not headers):
        raise upstream_error(error, call.model) from error
    given_fields = {str(name).lower(): str(value) for name, value in dict(headers).items()}
    return _whole(status, given_fields, _error_body(call.protocol, error))


def _error_body(protocol: TranslatedProtocol, error: Exception) -> JsonBody:
    """The body of the provider's answer, if litellm has it; else one with litellm's own words."""
    text = str(error)
    items = (
        body for one_error in error_chain(error) if isinstance(body := getattr(one_error, "body", None), dict) and body
    )
    body = next(items, None)
    quoted_object = {"error": body} if body else _object(text)
    inner = quoted_object.get("error") if quoted_object else None
    if protocol == "chat" and isinstance(quoted_object, dict) and inner:
        return quoted_object
    told_body: JsonBody = inner if isinstance(inner, dict) else {"message": text.splitlines()[0] if text else "failed"}
    if protocol == "chat":
        return {"error": {"type": type(error).__name__, "param": None, "code": None, **told_body}}
    return {"type": "error", "error": {"type": "api_error", **told_body}}


def _object(text: str) -> JsonBody | None:
    """The JSON object that a text quotes."""
    begin = text.find("{")
    try:
        value = json.JSONDecoder().raw_decode(text[begin:])[0] if begin >= 0 else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
