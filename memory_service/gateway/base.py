"""`Dialect`: the way that one provider's protocol says things, and `AnswerReader` for its streams.

Invariants: pure; a body is never changed in place; what a dialect does not know goes through as it came.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from memory_service.errors import InvalidRequest
from memory_service.schemas import UsageReport
from memory_service.service import CallOverview, ServerEvent, Unreadable, call_overview

if TYPE_CHECKING:
    from memory_service.gateway.upstreams import CallProtocol
    from memory_service.service import ConversationCall, ConversationPrompt

JsonObject = dict[str, Any]
# Longer answers are sent on, and not kept to their end. Source: the longest message that a session takes.
MOST_KEPT_CHARS = 4_000_000
ERROR_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "invalid_request_error", 415: "invalid_request_error", 422: "invalid_request_error", 429: "rate_limit_error",
}  # fmt: skip


# Choices, blocks, calls and items of one answer.
_MOST_PLACES = 10_000
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """Words and calls of a model, in a shape that sessions take.

    Attributes:
        messages: One as a rule; none if there are several to choose from.
        usage_fields: The usage, in the provider's own names.
        finish_reason: Its word for why the answer ended; empty if it did not tell.
    """

    messages: tuple[JsonObject, ...]
    usage_fields: JsonObject | None = None
    finish_reason: str = ""

    def report(self) -> UsageReport | None:
        """The usage as sessions take it; None where there is none."""
        try:
            return UsageReport.model_validate(self.usage_fields) if self.usage_fields else None
        except ValueError:
            return None


class AnswerReader(ABC):
    """An answer that is put together from the events of a stream.

    Attributes:
        has_ended: Whether the model said all it wanted.
        failure: The error of its own that the provider broke off with, as JSON; empty if it did not.
        omission: What of a long answer is not kept; empty for nothing.
    """

    def __init__(self) -> None:
        self.has_ended = False
        self.failure = ""
        self.omission = ""
        self._chars = 0
        self._object_chars = 0
        self._places = set[int]()

    def room(self, text: object) -> str:
        """A piece of text; empty once the answer is longer than a session takes.

        Raises:
            Unreadable: It is something else.
        """
        if text is None:
            return ""
        if not isinstance(text, str):
            raise Unreadable("a piece of its text is none")
        if self._chars > MOST_KEPT_CHARS:
            self.omission = f"only its first {MOST_KEPT_CHARS:,} characters are kept"
            return ""
        self._chars += len(text)
        return text

    def whole(self, event: ServerEvent) -> None:
        """Count an event that is kept as it is.

        Raises:
            Unreadable: Such events are more than is kept.
        """
        self._object_chars += len(event.text)
        if self._object_chars > 2 * MOST_KEPT_CHARS:
            raise Unreadable(f"what is kept of it is longer than {2 * MOST_KEPT_CHARS:,} characters")

    def place(self, number: object) -> int:
        """The number of a choice, block, call or item; 0 where it is not told.

        Raises:
            Unreadable: It is none, or there are too many.
        """
        if not isinstance(number, int | None):
            raise Unreadable("the number of a part is none")
        self._places.add(number or 0)
        if len(self._places) > _MOST_PLACES:
            raise Unreadable(f"it has more than {_MOST_PLACES:,} parts")
        return number or 0

    @abstractmethod
    def read(self, event: ServerEvent) -> None:
        """Take note of an event."""

    @abstractmethod
    def answer(self, *, whole: bool) -> GivenAnswer:
        """The answer so far; of one that was broken off, what was said and not what was about to be called."""


class Dialect(ABC):
    """One provider's protocol."""

    protocol: CallProtocol
    # Types of the events that a stream begins with before anything is said.
    opening_events: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def call(self, body: JsonObject, session_id: str | None, model: str) -> ConversationCall:
        """Call that a body makes.

        Raises:
            InvalidRequest: Its messages are none.
        """

    def overview(self, body: JsonObject) -> CallOverview:
        """The call at a glance; of one that is malformed, nothing."""
        return call_overview("", list_of(body.get("messages")), body.get("tools"))

    def reference(self, body: JsonObject) -> str:
        """The sealed reference to a session that a body goes on with; empty if there is none."""
        return ""

    @abstractmethod
    def with_messages(
        self, body: JsonObject, messages: Sequence[Mapping[str, object]], *, whole: bool = True
    ) -> JsonObject:
        """The body with other messages behind the system prompt, which stays.

        Args:
            body: What the caller sent.
            messages: What goes on in their place.
            whole: Whether these are all that was said, and not only what the caller sent.
        """

    @abstractmethod
    def answer(self, content: JsonObject) -> GivenAnswer:
        """Words and calls of an answer that came in one piece."""

    @abstractmethod
    def reader(self) -> AnswerReader:
        """A reader for one that comes in pieces."""

    @abstractmethod
    def text_answer(self, text: str, body: JsonObject) -> JsonObject:
        """A whole answer that says a text, in the place of the model."""

    @abstractmethod
    def spoken_events(self, text: str, body: JsonObject) -> str:
        """The same as a stream."""

    @abstractmethod
    def error(self, status: int, code: str, message: str) -> JsonObject:
        """An error as the protocol's clients read it."""

    def compaction_answer(self, prompt: ConversationPrompt, body: JsonObject) -> JsonObject:
        """A whole answer to a call that asks for a compaction alone."""
        raise NotImplementedError

    def compacted_events(self, prompt: ConversationPrompt, body: JsonObject) -> str:
        """The same as a stream."""
        raise NotImplementedError

    def with_compaction(self, content: JsonObject, reference: str) -> JsonObject:
        """An answer of the provider that tells of a compaction, too."""
        raise NotImplementedError

    def with_compaction_event(self, reference: str) -> Callable[[ServerEvent], str]:
        """The same for the events of a stream: what goes on in the place of each."""
        raise NotImplementedError

    def error_event(self, message: str) -> str:
        """The end of a stream that failed."""
        error = self.error(502, "upstream_failed", message)
        return f"event: error\ndata: {json.dumps(error)}\n\n"


def openai_error(status: int, code: str, message: str) -> JsonObject:
    """An error as OpenAI's clients read it."""
    return {"error": {"message": message, "type": ERROR_TYPES.get(status, "api_error"), "param": None, "code": code}}


def hint_of(items: Sequence[object]) -> str:
    """The ids of a protocol as one text; empty if there are none."""
    return json.dumps(items) if any(items) else ""


def messages_of(body: JsonObject) -> list[JsonObject]:
    """The messages of a body.

    Raises:
        InvalidRequest: There is no list of them.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise InvalidRequest("The field messages is no list of messages. Send the conversation in it.")
    return messages


def opening_of(messages: Sequence[JsonObject]) -> list[JsonObject]:
    """The system messages that a conversation begins with."""
    return list(takewhile(lambda message: message.get("role") in ("system", "developer"), messages))


def list_of(value: object) -> list[Any]:
    """A list; an empty one where there is none."""
    return value if isinstance(value, list) else []


def field_of(content: JsonObject, name: str, kind: type[_Kind]) -> _Kind | None:
    """A field of what a provider sends; None where it has none.

    Raises:
        Unreadable: It is of another kind.
    """
    value = content.get(name)
    if value is None or isinstance(value, kind):
        return value
    raise Unreadable(f"its field {name} is of another kind than it should be")


def objects_of(values: Iterable[object]) -> Iterator[JsonObject]:
    """Values that are objects.

    Raises:
        Unreadable: One is none.
    """
    for value in values:
        if not isinstance(value, dict):
            raise Unreadable("a part of it is no object")
        yield value


def object_of(value: object) -> JsonObject | None:
    """An object; None where there is none."""
    return value if isinstance(value, dict) else None


def texts_of(content: object) -> str:
    """The texts of a content, which is one or has them in its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def event(value: Mapping[str, object], name: str = "") -> str:
    """A server-sent event with a value."""
    return ServerEvent(name, json.dumps(value)).encode()
