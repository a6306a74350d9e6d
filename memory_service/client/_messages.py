"""Messages, usage and answers of any provider's package as plain JSON values, and `Reply`. Pure.

Invariants: no package of a provider is imported; a message keeps every field with content; a value that is no message
is refused with the name of its type, never with its text.

An answer of a model is a text, a `Reply`, a message, or an answer of OpenAI's chat completions or Anthropic's messages
(mapping or object, so litellm's too).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from pydantic import ValidationError

from memory_service.errors import InvalidRequest, UpstreamFailed
from memory_service.messages.shapes import was_cut
from memory_service.schemas.compaction import CompactionReceipt, Flush, SessionContext
from memory_service.schemas.messages import AppendedMessages, UsageReport

# As it goes over the wire of its provider.
WireMessage = dict[str, Any]

_REMEDY = 'Give one as {"role": "user", "content": "…"}, or a list of them.'


def wire_messages(said: object) -> list[WireMessage]:
    """One message, or several in order, as JSON.

    Args:
        said: A mapping, an object of a provider's package, or a list of either.

    Raises:
        InvalidRequest: It is none.
    """
    if isinstance(said, Iterable) and not isinstance(said, str | bytes | Mapping) and not _is_object(said):
        return [_message_of(each_value) for each_value in said]
    return [_message_of(said)]


def _message_of(said_value: object) -> WireMessage:
    """One message as JSON; empty fields are left out, but for its content."""
    try:
        found_plain = plain(said_value)
    except RecursionError:
        raise InvalidRequest(f"A message is nested too deeply. {_REMEDY}") from None
    if not isinstance(found_plain, dict):
        raise InvalidRequest(f"A message cannot be of the type {type(said_value).__name__}. {_REMEDY}")
    return {name: value for name, value in found_plain.items() if value is not None or name == "content"}


def plain(value: object) -> object:
    """A value as plain JSON: objects of packages become mappings, wherever they are."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(each_value) for name, each_value in value.items()}
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return plain(dump())
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [plain(each_value) for each_value in value]
    return plain(vars(value)) if hasattr(value, "__dict__") and not callable(value) else value


def usage_report(usage: object) -> UsageReport | None:
    """Usage as the provider counted it; None in an unknown shape."""
    if usage is None or isinstance(usage, UsageReport):
        return usage
    try:
        return UsageReport.model_validate(plain(usage))
    except (ValidationError, RecursionError):
        return None


def prompt_tokens(usage: UsageReport | None) -> int:
    """Tokens of the whole prompt, cached or not; 0 if unknown."""
    if usage is None:
        return 0
    if usage.prompt_tokens is not None:
        return usage.prompt_tokens
    whole = usage.input_tokens or 0
    if usage.input_tokens_details is not None:
        return whole
    read = usage.cache_read_input_tokens or usage.cache_read_tokens or 0
    return whole + read + (usage.cache_creation_input_tokens or usage.cache_write_tokens or 0)


def _text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, without its other parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in _TEXT_PARTS]
    return "".join(text for text in texts if isinstance(text, str))


def _tool_calls_of(message: Mapping[str, Any]) -> list[WireMessage]:
    """The calls of tools in a message, in the shape of its provider."""
    content, calls = message.get("content"), message.get("tool_calls")
    items = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    parts = content if isinstance(content, list) else []
    return items + [part for part in parts if isinstance(part, dict) and part.get("type") == "tool_use"]


_TEXT_PARTS = ("text", "output_text")


def _is_object(value: object) -> bool:
    """True for a message object of a package, which may be iterable itself."""
    return hasattr(value, "model_dump") or any(hasattr(value, name) for name in ("role", "content"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Answer of a model, with the calls, compactions and memories on the way.

    ```python
    reply = session.complete(call, user="When do we deploy?")
    print(reply.text, reply.attempts, [each.reason for each in reply.compactions])
    ```

    Attributes:
        message: The answer as the provider gave it, and as it stands in the log now.
        finish_reason: The provider's word for why it ended; "" if it said none; "command" if the user said `/compact`,
            which is carried out without the model: `text` says what was done.
        usage: What the provider counted; None if it told nothing.
        context: The prompt that was made first.
        attempts: How often the model was called for this answer.
        compactions: What was compacted on the way, in order.
        flush: The memories that were written on the way.
        appended: Where the answer stands in the log; None if it was not appended, see `degraded`.
        cut: Why a streamed answer was broken off; its text is what was said before. Empty for a whole one.
        degraded: What did not work, and did not keep the answer from coming.
    """

    message: WireMessage
    finish_reason: str = ""
    usage: UsageReport | None = None
    context: SessionContext | None = None
    attempts: int = 1
    compactions: tuple[CompactionReceipt, ...] = ()
    flush: Flush | None = None
    appended: AppendedMessages | None = None
    cut: str = ""
    degraded: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Text of the answer; "" if it only calls tools."""
        return _text_of(self.message)

    @property
    def tool_calls(self) -> list[WireMessage]:
        """The tools that the model calls: run them, append the results, and complete again without `user`."""
        return _tool_calls_of(self.message)


_SHAPES = (
    "Return the answer of the model: a text, a message, or what openai, litellm or anthropic give without streaming. "
    "For a stream, complete with stream=True."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """An answer of a model.

    Attributes:
        finish_reason: The provider's word; "" without one.
        usage: Usage as the provider counted it; None without any.
    """

    message: WireMessage
    finish_reason: str = ""
    usage: UsageReport | None = None

    @property
    def text(self) -> str:
        """Its text."""
        return _text_of(self.message)

    @property
    def is_cut(self) -> bool:
        """True if it was cut at its end."""
        return was_cut(self.finish_reason)

    @property
    def empty(self) -> bool:
        """True if it has neither text nor calls of tools."""
        message = self.message
        if self.text.strip() or _tool_calls_of(message):
            return False
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        is_spoken = any(not (isinstance(part, dict) and part.get("type") in ("text", "thinking")) for part in parts)
        return not is_spoken and not any(message.get(name) for name in ("refusal", "audio", "function_call"))


def read_answer(value: object) -> ModelAnswer:
    """The answer in the return value of a call.

    Raises:
        InvalidRequest: It is in none of the known shapes.
        UpstreamFailed: It is the report of an error instead of an answer.
    """
    if isinstance(value, ModelAnswer):
        return value
    if isinstance(value, str):
        return ModelAnswer(message={"role": "assistant", "content": value})
    if isinstance(value, Reply):
        return ModelAnswer(message=dict(value.message), finish_reason=value.finish_reason, usage=value.usage)
    choices = part_of(value, "choices")
    if isinstance(choices, list | tuple):
        return _of_choices(value, choices)
    if part_of(value, "error") and not part_of(value, "content"):
        raise error_in_answer(value)
    if part_of(value, "content") is None and not part_of(value, "tool_calls"):
        raise InvalidRequest(f"The call returned an object of the type {type(value).__name__}, no answer. {_SHAPES}")
    return _of_message(value)


def _of_choices(value: object, choices: list[Any] | tuple[Any, ...]) -> ModelAnswer:
    message = part_of(choices[0], "message") if choices else None
    if message is None:
        raise error_in_answer(value)
    return ModelAnswer(
        message={"role": "assistant", **_message_of(message)},
        finish_reason=word_of(part_of(choices[0], "finish_reason")),
        usage=usage_report(part_of(value, "usage")),
    )


def _of_message(value: object) -> ModelAnswer:
    """Answer from a message, or from Anthropic's answer, which is one with further fields."""
    if part_of(value, "type") == "message":
        return ModelAnswer(
            message={"role": "assistant", "content": plain(part_of(value, "content"))},
            finish_reason=word_of(part_of(value, "stop_reason")),
            usage=usage_report(part_of(value, "usage")),
        )
    return ModelAnswer(message={"role": "assistant", **_message_of(value)})


def error_in_answer(value: object) -> UpstreamFailed:
    """The error in the place of an answer."""
    error = plain(part_of(value, "error"))
    message = error.get("message") if isinstance(error, dict) else error
    return UpstreamFailed(
        str(message) if message else "The model's answer has no choices. Look at what the call returned."
    )


def part_of(value: object, name: str) -> Any:
    """A field of a mapping or of an object; None if it has none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def word_of(value: object) -> str:
    """A text; empty for anything else."""
    return value if isinstance(value, str) else ""
