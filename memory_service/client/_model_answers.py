"""Owns what comes back from a call of a model, in whichever package's shape it does. Pure.

Read are: a text, a `Reply`, a message, an answer of OpenAI's chat completions (mapping or object, so litellm's and
openai's too), an answer of Anthropic's messages (mapping or object). Invariants: the message is kept as it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_service.client._messages import WireMessage, message_of, plain, text_of, tool_calls_of, usage_report
from memory_service.client._reply import Reply
from memory_service.errors import InvalidRequest, UpstreamFailed
from memory_service.messages import was_cut
from memory_service.session_schemas import UsageReport

_SHAPES = (
    "Return the answer of the model: a text, a message, or what openai, litellm or anthropic give without streaming."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """What a model said.

    Attributes:
        finish_reason: The provider's word; "" if it said none.
        usage: What the provider counted; None if it told nothing.
    """

    message: WireMessage
    finish_reason: str = ""
    usage: UsageReport | None = None

    @property
    def text(self) -> str:
        """Its text."""
        return text_of(self.message)

    @property
    def cut(self) -> bool:
        """Whether it was cut at its end."""
        return was_cut(self.finish_reason)

    @property
    def empty(self) -> bool:
        """Whether nothing was said in it, and no tool called."""
        message = self.message
        if self.text.strip() or tool_calls_of(message):
            return False
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        spoken = any(not (isinstance(part, dict) and part.get("type") in ("text", "thinking")) for part in parts)
        return not spoken and not any(message.get(name) for name in ("refusal", "audio", "function_call"))


def read_answer(value: object) -> ModelAnswer:
    """What a call returned.

    Raises:
        InvalidRequest: It is in none of the shapes.
        UpstreamFailed: It is the report of an error instead of an answer.
    """
    if isinstance(value, str):
        return ModelAnswer(message={"role": "assistant", "content": value})
    if isinstance(value, Reply):
        return ModelAnswer(message=dict(value.message), finish_reason=value.finish_reason, usage=value.usage)
    choices = _part(value, "choices")
    if isinstance(choices, list | tuple):
        return _of_choices(value, choices)
    if _part(value, "error") and not _part(value, "content"):
        raise _reported(value)
    if _part(value, "content") is None and not _part(value, "tool_calls"):
        raise InvalidRequest(f"The call returned an object of the type {type(value).__name__}, no answer. {_SHAPES}")
    return _of_message(value)


def _of_choices(value: object, choices: list[Any] | tuple[Any, ...]) -> ModelAnswer:
    message = _part(choices[0], "message") if choices else None
    if message is None:
        raise _reported(value)
    return ModelAnswer(
        message={"role": "assistant", **message_of(message)},
        finish_reason=_word(_part(choices[0], "finish_reason")),
        usage=usage_report(_part(value, "usage")),
    )


def _of_message(value: object) -> ModelAnswer:
    """A message, or Anthropic's answer, which is one with more beside it."""
    if _part(value, "type") == "message":
        return ModelAnswer(
            message={"role": "assistant", "content": plain(_part(value, "content"))},
            finish_reason=_word(_part(value, "stop_reason")),
            usage=usage_report(_part(value, "usage")),
        )
    return ModelAnswer(message={"role": "assistant", **message_of(value)})


def _reported(value: object) -> UpstreamFailed:
    error = plain(_part(value, "error"))
    told = error.get("message") if isinstance(error, dict) else error
    return UpstreamFailed(str(told) if told else "The model's answer has no choices. Look at what the call returned.")


def _part(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""
