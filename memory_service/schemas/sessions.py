"""The shapes on the wire of what is said in a session: the session itself, its messages, pins and log.

Invariants: those of `memory_service.schemas`; what a provider counted is the one body whose unknown fields are passed
over, since it comes from there as it is.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from memory_service.schemas.memories import SESSION_ID, Answer, Degraded, Proof, Request

Wire = Literal["openai", "anthropic", "mistral"]
ViewName = Literal["model", "log"]
Pressure = Literal["ok", "soft", "hard"]
ReadingSource = Literal["usage", "tokenizer", "estimate"]
WindowSource = Literal["session", "learned", "settings", "model", "preset", "default"]

EventField: TypeAlias = "str | int | float | bool | None"

MAX_TOKENS = 1_000_000_000
MAX_BATCH = 10_000
MAX_PIN_CHARS = 8_000
MAX_SEARCH_LIMIT = 100
# Lines of a log that a trim leaves. Source: seed 000, 1.2.
TRIM_KEEP_LAST = 100

MAX_TITLE_CHARS = 200

SessionName = Annotated[str, Field(description="Id of the session.", examples=["support-42"])]
PinName = Annotated[str, Field(description="Id of the pin; `DELETE …/pins/{pin_id}` removes it.")]
LogBytes = Annotated[int, Field(description="Size of the log on disk, in bytes.")]
TokenCount = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
WireMessages = Annotated[list[dict[str, Any]], Field(description="In the shape that was asked for.")]
ModelName = Annotated[
    str | None,
    Field(
        max_length=200,
        description="The model of the session's agent; it decides the context window where nothing else does.",
        examples=["gpt-4o"],
    ),
]
SessionSettings = Annotated[
    dict[str, Any] | None,
    Field(
        description="The session's own values for the tables `compaction`, `pruning` and `flush` of the settings.",
        examples=[{"compaction": {"preset": "opencode"}, "flush": {"mode": "agent"}}],
    ),
]
WindowTokens = Annotated[
    int | None,
    Field(ge=1, le=MAX_TOKENS, description="What the model takes, in tokens; wins over every other source."),
]


class _OwnSettings(Request):
    model: ModelName = None
    context_window: WindowTokens = None
    settings: SessionSettings = None


class _OwnName(Request):
    session_id: str | None = Field(
        default=None,
        description="1 to 128 letters, digits, dots, underscores and hyphens; made unless given.",
        examples=["support-42"],
        json_schema_extra={"pattern": SESSION_ID},
    )


class NewSession(_OwnSettings, _OwnName):
    """A session to begin."""

    title: str = Field(
        default="",
        max_length=MAX_TITLE_CHARS,
        description="Name for people, in any script; without `session_id`, the id is made from it.",
        examples=["Support, order 42"],
    )


class SessionChange(_OwnSettings):
    """The settings to change in a session; what is left out stays as it is, null sets nothing of its own any more."""


# The fields of `SessionChange` as arguments: what is not named stays as it is, None sets nothing of its own any more.
SessionChanges = TypedDict(  # noqa: UP013  (a class would be a second home of the fields)
    "SessionChanges",
    {"model": str | None, "context_window": int | None, "settings": Mapping[str, Any] | None},
    total=False,
)


class ContextWindow(Answer):
    """The context window of a session, and where it comes from."""

    tokens: int = Field(description="Size of the window in tokens: prompt and answer together.")
    source: WindowSource = Field(description="Who decided it; the names are those of `considered`.")
    considered: dict[WindowSource, int | None] = Field(
        description="What each source says, the first to be asked first; null where it says nothing."
    )
    problem: Literal["", "warn", "refuse"] = Field(description="Whether it is too small for the preset.")
    message: str = Field(description="What is wrong and what to do; empty without a problem.")


class Session(Answer):
    """A session as it stands."""

    session_id: SessionName
    title: str = Field(default="", description="Its name for people; empty where it has none.")
    model: str | None = Field(description="Model of the agent; null where none was named.")
    settings: dict[str, Any] = Field(description="The session's own settings; empty where it has none.")
    messages: int = Field(description="How many were ever said.")
    last_seq: int = Field(description="The number of the last record of the log.")
    tokens: int = Field(description="What the view takes, as its model would count it.")
    pressure: Pressure = Field(description="`soft`: memories should be flushed; `hard`: it has to be compacted.")
    context_window: ContextWindow = Field(description="Size of the model's window, and who decided it.")
    preset: str = Field(description="How it is compacted.")
    numbers: dict[str, bool | int | float | None] = Field(
        description="The numbers of the preset as they hold for this session, overrides included."
    )
    compactions: int = Field(description="How many compactions count now.")
    flushed_to: int = Field(description="The last message that was searched for memories; 0 for none.")
    pins: int = Field(description="Number of pins.")
    size_bytes: LogBytes
    last_activity: str = Field(description="UTC, ISO 8601; empty if nothing was written yet.")
    degraded: Degraded = Field(default=[])


class ListedSession(Answer):
    """A session in a list."""

    session_id: SessionName
    title: str = Field(default="", description="Its name for people; empty where it has none.")
    last_activity: dt.datetime = Field(
        description="Time of the last record of the log, in UTC; else that of the last change of the file."
    )
    last_seq: int | None = Field(description="Number of the last record of the log; null where it cannot be read.")
    size_bytes: LogBytes


class Sessions(Answer):
    """All sessions of a workspace, the last active first."""

    sessions: list[ListedSession] = Field(description="The sessions; an empty list where there are none.")
    degraded: Degraded = Field(default=[])


class ErasedSession(Answer):
    """A session that was erased, from the disk and from the index."""

    session_id: SessionName
    erased: Proof = None
    degraded: Degraded = Field(default=[])


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


class PendingCalls(Request):
    """Tool calls that run for long."""

    call_ids: list[Annotated[str, Field(min_length=1, max_length=4_096)]] = Field(
        min_length=1,
        max_length=1_000,
        description="Ids of the calls, as in the messages.",
        examples=[["call_8fA3"]],
    )


class AwaitedCalls(Answer):
    """Tool calls whose results are awaited, and not taken for lost."""

    call_ids: list[str] = Field(description="The ids that were given.")
    degraded: Degraded = Field(default=[])


class Trim(Request):
    """How much of a log stays."""

    keep_last: int = Field(
        default=TRIM_KEEP_LAST, ge=0, le=10**9, description="How many lines stay; pins and compactions stay besides."
    )


class Trimmed(Answer):
    """A log that was shortened."""

    backup: str = Field(description="Name of the file beside the log that has it as it was.")
    degraded: Degraded = Field(default=[])


class Restored(Answer):
    """A log that has back what the last trim took."""

    session_id: SessionName
    degraded: Degraded = Field(default=[])


class SessionEvent(Answer):
    """Something that happened to a session.

    Attributes:
        id: Its number in the session; listening can go on behind it. That of a `dropped` event is the number of the
            last one that is missing.
        at: When, with its time zone.
        kind: `compaction_start`, `compaction_end`, `flush`, `prune`, `overflow`, `undo`, or `dropped` for events that
            were not kept until they could be sent.
        fields: Numbers, ids and short reasons. `compaction_end` has `will_retry`; `dropped` has `count`, which is None
            where nobody knows how many there were.
    """

    id: int
    at: dt.datetime
    kind: str
    session_id: str
    fields: dict[str, EventField] = Field(default={})


class Idle(Answer):
    """The state of a session's work: if it is at rest."""

    idle: bool = Field(description="Whether no compaction runs and none is to be tried again.")
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
