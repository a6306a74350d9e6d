"""The shapes on the wire of the messages and pins of a session.

Invariants: those of `memory_service.schemas`; what a provider counted is the one body whose unknown fields are passed
over, since it comes from there as it is.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from memory_service.schemas.base import MAX_TOKENS, Answer, Degraded, ModelName, Pressure, Proof, Request, SessionName

Wire = Literal["openai", "anthropic", "mistral"]
ReadingSource = Literal["usage", "tokenizer", "estimate"]
MAX_BATCH = 10_000
MAX_PIN_CHARS = 8_000
MAX_SEARCH_LIMIT = 100
PinName = Annotated[str, Field(description="Id of the pin; `DELETE …/pins/{pin_id}` removes it.")]
TokenCount = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
WireMessages = Annotated[list[dict[str, Any]], Field(description="In the shape that was asked for.")]


class ErasedMessages(Answer):
    """Messages that were erased, from the log and from the index; their numbers are not given again."""

    session_id: SessionName
    seqs: list[int] = Field(description="Numbers of the messages that are gone.")
    compactions: list[str] = Field(
        description="Ids of the compactions that are gone with them, as their summaries were made of them; the view "
        "shows what is left of the messages that they stood for, and the next compaction sums these up anew."
    )
    erased: Proof = None
    degraded: Degraded = Field(default=[])


class CachedTokens(BaseModel):
    """The part of a prompt that came from the provider's cache, as OpenAI tells it."""

    model_config = ConfigDict(extra="ignore")

    cached_tokens: TokenCount | None = Field(
        default=None, description="Tokens of the prompt that were read from the cache; null counts as 0."
    )


class UsageReport(BaseModel):
    """The provider's counts for the call that the messages come from; send it as it came.

    OpenAI's names (its `prompt_tokens` include cached ones), Anthropic's (its `input_tokens` do not), or
    `cache_read_tokens` and `cache_write_tokens` beside `input_tokens` without them. Other fields are passed over.
    """

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [
                {"prompt_tokens": 5120, "completion_tokens": 210, "prompt_tokens_details": {"cached_tokens": 4096}},
                {"input_tokens": 1024, "output_tokens": 210, "cache_read_input_tokens": 4096},
            ]
        },
    )

    prompt_tokens: TokenCount | None = Field(
        default=None, description="OpenAI Chat: tokens of the prompt, cached ones included."
    )
    completion_tokens: TokenCount | None = Field(default=None, description="OpenAI Chat: tokens of the answer.")
    prompt_tokens_details: CachedTokens | None = Field(
        default=None, description="OpenAI Chat: what of `prompt_tokens` came from the cache."
    )
    input_tokens: TokenCount | None = Field(
        default=None,
        description="Anthropic: tokens of the prompt without cached ones; OpenAI Responses, with "
        "`input_tokens_details`: all of them.",
    )
    output_tokens: TokenCount | None = Field(
        default=None, description="Anthropic, OpenAI Responses: tokens of the answer."
    )
    input_tokens_details: CachedTokens | None = Field(
        default=None, description="OpenAI Responses: what of `input_tokens` came from the cache."
    )
    cache_read_input_tokens: TokenCount | None = Field(
        default=None, description="Anthropic: tokens that were read from the cache."
    )
    cache_creation_input_tokens: TokenCount | None = Field(
        default=None, description="Anthropic: tokens that were written to the cache."
    )
    cache_read_tokens: TokenCount | None = Field(
        default=None, description="Tokens that were read from the cache, beside `input_tokens` that do not count them."
    )
    cache_write_tokens: TokenCount | None = Field(
        default=None, description="Tokens that were written to the cache, beside `input_tokens` that do not count them."
    )


class NewMessages(Request):
    """The new messages, in order."""

    messages: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=MAX_BATCH,
        description="In OpenAI's or Anthropic's shape, mixed as they come; kept as they are.",
        examples=[[{"role": "user", "content": "When do we deploy?"}]],
    )
    usage: UsageReport | None = Field(
        default=None, description="Makes the size of the view exact, and corrects later estimates."
    )
    finish_reason: str | None = Field(
        default=None,
        max_length=80,
        description="The provider's word for why the answer among them ended. After `length` or `max_tokens` a preset "
        "that wants it (`turns`) compacts before the next prompt.",
        examples=["stop"],
    )
    model: ModelName = None
    after_seq: int | None = Field(
        default=None,
        ge=0,
        description="Number of the last message of the prompt that these answer. What the log has behind it already is "
        "not appended again, and where it went on otherwise meanwhile, they go on in a branch.",
    )


class AppendedMessages(Answer):
    """Where messages stand in the log, and what the view takes now."""

    first_seq: int = Field(
        description="Number in the log of the first message that was appended; `last_seq` + 1 where none was."
    )
    last_seq: int = Field(
        description="Number in the log of the last message that was appended; where none was, of the last record."
    )
    tokens: int = Field(description="Size of the whole view in tokens.")
    source: ReadingSource = Field(description="What `tokens` rests on: the provider's own count is exact.")
    pressure: Pressure = Field(description="`soft`: the next context flushes memories first; `hard`: it compacts too.")
    # Told in process alone; over HTTP it is the header Idempotency-Replayed.
    replayed: SkipJsonSchema[bool] = Field(default=False, exclude=True)
    degraded: Degraded = Field(default=[])


class SentMessages(Answer):
    """Messages as they go over a wire."""

    messages: WireMessages


class Messages(SentMessages):
    """Messages of a session."""

    seqs: list[int] | None = Field(default=None, description="Of the log: the number of each message.")
    system: str | list[dict[str, Any]] | None = Field(
        default=None, description="Anthropic's system prompt, which stands beside the messages there."
    )
    degraded: Degraded = Field(default=[])


class NewPin(Request):
    """A pin that every view keeps word for word: a text, or a message."""

    text: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_PIN_CHARS,
        description="What to keep; null where `seq` names a message.",
        examples=["Never deploy on Fridays."],
    )
    seq: int | None = Field(default=None, ge=1, le=2**53, description="The number of a message, instead of a text.")


class Pin(Answer):
    """A pin."""

    pin_id: PinName
    text: str = Field(description="What every view keeps word for word.")
    seq: int | None = Field(default=None, description="The message that is pinned; null for a text.")
    degraded: Degraded = Field(default=[])


class Pins(Answer):
    """All pins of a session, oldest first."""

    pins: list[Pin] = Field(description="The pins; an empty list where there are none.")
    degraded: Degraded = Field(default=[])


class RemovedPin(Answer):
    """A pin that is kept no longer."""

    pin_id: PinName
    degraded: Degraded = Field(default=[])


class FoundMessage(Answer):
    """A message of the log that a search found."""

    seq: int = Field(description="Number of the message in the log.")
    role: str = Field(description="Role of who said it: `user`, `assistant`, `tool` and the like.")
    text: str = Field(description="The message; of a long one the part that the query is about.")
    score: float = Field(description="For the order within this answer only.")


class FoundMessages(Answer):
    """The messages in which something was said, best first."""

    results: list[FoundMessage] = Field(description="At most `limit` messages; an empty list where nothing was found.")
    degraded: Degraded = Field(default=[])
