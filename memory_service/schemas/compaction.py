"""The shapes on the wire of what is made of a session: prompts, compactions, flushes, recoveries.

Invariants: those of `memory_service.schemas`.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from memory_service.schemas.base import (
    MAX_BUDGET_TOKENS,
    MAX_QUERY_CHARS,
    MAX_TOKENS,
    Answer,
    Degraded,
    ModelName,
    Request,
)
from memory_service.schemas.memories import MemoryId, MinRelevance, Order, Receipt, SourcePath, Sources
from memory_service.schemas.messages import MAX_BATCH, MAX_PIN_CHARS, SentMessages, UsageReport, Wire, WireMessages

CompactionMode = Literal["plan", "preview", "apply"]
Trigger = Literal["manual", "threshold", "overflow", "safeguard"]
RecallMode = Literal["auto", "always", "never"]
IdentifierPolicy = Literal["preserve", "strict", "anonymize", "off", "custom"]
Stage = Literal["none", "prune", "summary", "hard", "engine"]

MAX_PROMPT_CHARS = 4_000_000
MAX_INSTRUCTION_CHARS = 2_000

TriggerChoice = Annotated[
    Trigger,
    Field(
        description="`manual`: compact where it gains something; `threshold`: only if the preset's limit is reached; "
        "`safeguard`: likewise, with the five sections of OpenClaw's safeguard; `overflow`: as a provider refused the "
        "prompt, and down to less."
    ),
]
Tools = Annotated[
    list[dict[str, Any]],
    Field(max_length=1_000, description="Schemas of the agent's tools. They are counted, and not sent back."),
]
PresetChoice = Annotated[
    str | None,
    Field(
        max_length=80,
        description="How to compact: default, openclaw, turns, ponybunny or opencode; else as the settings say.",
        examples=["default"],
    ),
]
Overrides = Annotated[
    dict[str, Any] | None,
    Field(
        description="Numbers of the preset for this compaction alone, by their names in docs/sessions.md.",
        examples=[{"keep_turns": 3}],
    ),
]
SummaryInstructions = Annotated[
    str | None,
    Field(
        max_length=MAX_INSTRUCTION_CHARS,
        description="What the summary should look at.",
        examples=["Keep every decision about the deployment."],
    ),
]
TargetTokens = Annotated[
    int | None, Field(ge=1, le=MAX_TOKENS, description="What the view should come to; else the preset's target.")
]
Identifiers = Annotated[
    IdentifierPolicy | None,
    Field(description="What the summary does with ids and paths; `custom` is as `instructions` say."),
]
Format = Annotated[
    Wire, Field(description="The shape of the messages in the answer: `openai`, `anthropic` or `mistral`.")
]
System = Annotated[
    str | list[dict[str, Any]] | None,
    Field(description="Anthropic's system prompt, which stands beside the messages there; null elsewhere."),
]


class PromptOptions(Request):
    """How a prompt is made of a session."""

    query: str | None = Field(
        default=None,
        max_length=MAX_QUERY_CHARS,
        description="What to recall memories for; else the last message of the user decides.",
    )
    system_prompt: str = Field(default="", max_length=MAX_PROMPT_CHARS, description="Stands before everything.")
    memory_budget_tokens: int = Field(
        default=2000, ge=0, le=MAX_BUDGET_TOKENS, description="Most tokens of the memories with their wrapper."
    )
    min_relevance: MinRelevance | None = Field(
        default=None, description="Memories less relevant than this stay out; null is the setting recall.min_relevance."
    )
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        le=MAX_TOKENS,
        description="The longest prompt wanted, in tokens; else what the window leaves beside the answer. It is not "
        "the length of the answer.",
    )
    tools: Tools = Field(default=[])
    recall: RecallMode = Field(
        default="auto", description="Whether memories are searched: as the rules decide, always, or never."
    )
    sources: Sources = Field(default=[])
    order: Order | None = Field(
        default=None,
        description="Whether memories and files come before what was said in sessions: `score` or `memory_first`; else "
        "as the preset has it (`ponybunny` puts memories first).",
    )
    format: Format = "openai"


class SessionContextRequest(PromptOptions):
    """The prompt that is wanted: its limits and its parts."""

    auto: bool = Field(default=True, description="Flush and compact first if that is due.")


class PromptTokens(Answer):
    """The size of each part of a prompt, in tokens as the model would count them; the four parts add up to `total`."""

    system: int = Field(description="The system prompt.")
    memory: int = Field(description="The blocks of recalled memories, with their wrappers.")
    summary: int = Field(description="What stands for compacted messages; 0 before the first compaction.")
    tail: int = Field(description="The messages that stand word for word.")
    total: int = Field(description="All of it; never over the window. Schemas of tools come on top.")
    window: int = Field(description="The model's context window, which the prompt and the answer share.")


class PromptMeasure(Answer):
    """The sizes of a prompt that a session was given, in tokens as the model would count them."""

    created_at: dt.datetime = Field(description="Time of the prompt, with its time zone.")
    last_seq: int = Field(description="The last record of the log that it was made of.")
    system: int = Field(description="The system prompt.")
    pins: int = Field(description="The pins whose messages are compacted; the others stand in `tail`.")
    summary: int = Field(description="What stands for compacted messages, without the pins.")
    memory: int = Field(description="The blocks of recalled memories.")
    tail: int = Field(description="The messages that stand word for word.")
    tools: int = Field(description="The schemas of tools beside the prompt.")
    window: int = Field(description="The model's context window; what no part takes of it is free for the answer.")
    cached_prefix_tokens: int = Field(description="Of its beginning, what a provider's prompt cache could hold.")
    flushed_to: int = Field(description="The last message that was searched for memories by then; 0 for none.")
    compactions: int = Field(description="Number of compactions that were made by then, undone ones included.")
    receipt_id: str | None = Field(description="The receipt of the memories of its turn; null for none.")

    @property
    def free(self) -> int:
        """Tokens of the window that no part takes."""
        parts = self.system + self.pins + self.summary + self.memory + self.tail + self.tools
        return max(0, self.window - parts)


class PromptMeasures(Answer):
    """The sizes of the last prompts of a session, the oldest first."""

    prompts: list[PromptMeasure] = Field(
        description="At most 120; the same prompt that was asked for again stands here once."
    )


class Recall(Answer):
    """The search of memories for a prompt: if there was one, for what, and why."""

    searched: bool = Field(description="Whether memories were searched.")
    query: str = Field(description="What was searched for; empty where nothing was.")
    reason: str = Field(description="Why there was a search or none, in words.")


class CompactionStep(Answer):
    """One step that was tried, and what the view came to behind it."""

    name: str = Field(
        description="`duplicates`, `old_results`, `cache_ttl`, `budget` and `media` prune; `summary`, `split_turn` and "
        "`last_turns` summarise; `hard` cuts what still does not fit."
    )
    tokens_before: int = Field(description="Tokens of the view before the step.")
    tokens_after: int = Field(description="Tokens that the view comes to with it.")
    count: int = Field(default=0, description="Number of messages that it changes or covers.")


class LedgerEntry(Answer):
    """Something exact that no model rewrites, and the messages that it stands in."""

    kind: str = Field(
        description="`todo`, `rule`, `decision`, `answer`, `ask`, `promise`, `confirmation`, `name`, `failure`, "
        "`command`, `file_read`, `file_modified`, `id`, `url`, `path`, `number` or `date`."
    )
    text: str = Field(description="The words, on one line.")
    seqs: list[int] = Field(description="Numbers in the log of the messages that it stands in.")


class CompactRequest(Request):
    """The options of a compaction; what is left out is as the session's settings have it."""

    mode: CompactionMode = Field(
        default="apply",
        description="`plan` says what would go, without a model; `preview` writes the summary too and changes "
        "nothing; `apply` does it.",
    )
    preset: PresetChoice = None
    overrides: Overrides = None
    trigger: TriggerChoice = "manual"
    instructions: SummaryInstructions = None
    identifier_policy: Identifiers = None
    target_tokens: TargetTokens = None
    force: bool = Field(default=False, description="Compact although there is room, or although it gains little.")
    model: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="litellm name of the model that writes this summary; else that of the setting `compaction.model`.",
    )


class CompactionReceipt(Answer):
    """The record of a compaction: made, planned, or found to be of no use.

    One that is read from the log again (by its id, in a list, of an undo) is without the plan: `target_tokens`,
    `covered_messages` and `window_tokens` are 0, `covered` is null, `steps` and `window_source` are empty.
    """

    compaction_id: str | None = Field(description="Names it for an undo; null if nothing was changed.")
    applied: bool = Field(description="Whether the view was changed.")
    active: bool = Field(description="Whether it counts: it was not undone.")
    mode: CompactionMode = Field(description="What was asked for: `plan`, `preview` or `apply`.")
    stage: Stage = Field(
        description="How far it went: pruned tool results, a summary, or cut what else would not fit; `engine`: it "
        "was done by a context engine, which has its own account of it."
    )
    reason: str = Field(description="Why it was done, or why nothing was.")
    preset: str = Field(description="Name of the preset that decided.")
    trigger: str = Field(
        description="What it was made for: that of the request, or `cache_ttl` (old results of tools "
        "gave way before a prompt, as `pruning.mode` has it: `cache_ttl` or `budget`)."
    )
    tokens_before: int = Field(description="Tokens of the view before.")
    tokens_after: int = Field(description="Tokens of the view after; of a plan, estimated.")
    ratio: float = Field(description="`tokens_after` divided by `tokens_before`.")
    target_tokens: int = Field(description="Tokens to come down to.")
    first_kept: int = Field(description="The first message that stays word for word; 0 for all.")
    covered: tuple[int, int] | None = Field(description="First and last message that the summary stands for now.")
    covered_messages: int = Field(description="Number of messages that were newly summarised.")
    cleared: list[int] = Field(description="Messages whose tool result gave way to a stub.")
    stripped: list[int] = Field(description="Messages whose media gave way to a label.")
    steps: list[CompactionStep] = Field(description="The steps that were tried, in order.")
    summary: str = Field(description="Text of the summary, as Markdown; empty where none was written.")
    method: str = Field(description="Who wrote the summary: model, extractive, note, hook, engine, or none.")
    model: str | None = Field(description="Model that wrote the summary; null where none did.")
    prompt_version: str | None = Field(
        description="Version of the prompt, or of the rules, that the summary was written by; null for none."
    )
    calls: int = Field(description="Requests to a model, those that failed included.")
    input_tokens: int = Field(description="What the provider counted for them.")
    output_tokens: int = Field(description="What the provider counted for their answers.")
    chunk_ratio: float | None = Field(
        default=None,
        description="Share of the summariser's window that one chunk of the history took; null where no model wrote.",
    )
    parts: int = Field(
        default=0, description="Into how many parts the history was divided for the model; 0 where no model wrote."
    )
    duration_ms: int = Field(description="Time that it took, in milliseconds; 0 where no compaction was made.")
    ledger: list[LedgerEntry] = Field(description="Exact names, rules and decisions that stand beside the summary.")
    audit: dict[str, Any] | None = Field(description="What was checked in the summary, and what was found.")
    notes: list[str] = Field(description="What went differently than asked.")
    overrides: dict[str, Any] = Field(description="What of the preset's numbers was overridden.")
    created_at: str = Field(description="Time it was made, in ISO 8601 with its time zone; empty where none was made.")
    window_tokens: int = Field(description="Context window of the model, in tokens.")
    window_source: str = Field(
        description="Where the window comes from, by the names of `context_window.source` of a session."
    )
    messages: list[dict[str, Any]] | None = Field(default=None, description="Of a preview: the view as it would be.")
    degraded: Degraded = Field(default=[])
    # Told in process alone: a hook may switch off the note to go on behind the messages; of an undo, the view's size.
    continue_note: SkipJsonSchema[bool] = Field(default=True, exclude=True)
    view_tokens_before: SkipJsonSchema[int] = Field(default=0, exclude=True)
    view_tokens_after: SkipJsonSchema[int] = Field(default=0, exclude=True)


class Compactions(Answer):
    """All compactions of a session, newest first."""

    compactions: list[CompactionReceipt] = Field(description="One receipt for each, those that were undone included.")
    degraded: Degraded = Field(default=[])


class FlushRequest(Request):
    """Who finds the memories."""

    reply: str | None = Field(
        default=None,
        max_length=200_000,
        description="What the agent answered to the flush prompt; without it the service finds the memories.",
        examples=["- Deploys go out on Tuesdays.", "NO_REPLY"],
    )


class FlushedMemory(Answer):
    """A memory that a flush wrote."""

    memory_id: MemoryId
    text: str = Field(description="What was written, without its list mark.")
    path: SourcePath
    # Told in process alone.
    start_line: SkipJsonSchema[int] = Field(default=0, exclude=True)
    end_line: SkipJsonSchema[int] = Field(default=0, exclude=True)


class Flush(Answer):
    """The result of a flush, or what the agent is asked for."""

    mode: Literal["service", "agent"] = Field(
        description="`agent`: send `prompt` to the model, and its reply to the route `flush`."
    )
    path: str | None = Field(description="The file that the memories stand in; null if none was written.")
    written: list[FlushedMemory] = Field(description="The memories that are new in the file.")
    duplicates: int = Field(description="Facts that were known before.")
    reason: str = Field(description="What was found, or why nothing was, in words.")
    method: str = Field(description="Who found them: agent, model, extractive, or none.")
    messages: tuple[int, int] | None = Field(description="The first and the last message that were searched.")
    prompt: str | None = Field(
        default=None, description="Of mode `agent`: the message to send to the model; else null."
    )
    system_prompt: str | None = Field(
        default=None, description="Of mode `agent`: the system prompt to send with it; else null."
    )
    calls: int = Field(default=0, description="Requests to a model, those that failed included.")
    input_tokens: int = Field(default=0, description="What the provider counted for them.")
    output_tokens: int = Field(default=0, description="What the provider counted for their answers.")
    degraded: Degraded = Field(default=[])


class FlushPrompt(Answer):
    """The prompt for an agent that finds the memories itself; its reply goes to the route `flush`."""

    prompt: str = Field(description="The message to send to the model, behind the conversation.")
    system_prompt: str = Field(description="The system prompt of that turn.")
    degraded: Degraded = Field(default=[])


class SessionContext(Answer):
    """A complete prompt that fits the window, and how it came about."""

    messages: WireMessages
    system: System = None
    tokens: PromptTokens = Field(description="Size of the prompt, part by part.")
    receipt: Receipt | None = Field(description="What was recalled; null if nothing was searched.")
    cached_prefix_tokens: int = Field(
        default=0,
        description="Tokens of the prompt that are, message by message and byte for byte, the beginning of the last "
        "prompt given for this session: what a provider's prompt cache can hold. 0 for the first.",
    )
    recall: Recall = Field(description="Whether memories were searched, for what, and why.")
    compaction: CompactionReceipt | None = Field(description="The compaction that was made first; null for none.")
    flush: Flush | None = Field(description="The flush that was made first, or that the agent is asked for.")
    command: Literal["compact"] | None = Field(
        default=None,
        description="The last thing the user said was `/compact`: `compaction` says what was done. It is in the log "
        "and not in the prompt, so the model need not be called.",
    )
    degraded: Degraded = Field(default=[])


class ConversationRequest(SessionContextRequest):
    """A conversation that its client keeps, whole; what the session does not have yet is appended."""

    messages: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=MAX_BATCH,
        description="In the shape that `format` names, without the system prompt.",
        examples=[[{"role": "user", "content": "When do we deploy?"}]],
    )
    model: ModelName = None


# Between the id of a session and what tells its branches apart.
BRANCH_MARK = ".branch-"


class ConversationContext(SessionContext):
    """A complete prompt that fits the window, for a conversation that its client keeps."""

    session_id: str = Field(
        description="The session that the messages stand in: the one that was named, or a branch of it where they "
        "differ from what was said there."
    )
    branch_of: str = Field(default="", description="The session that a new branch was parted from; empty for none.")
    last_seq: int = Field(
        default=0, description="Number in the log of the last of the messages: an answer to them stands behind it."
    )


class OverflowRequest(PromptOptions):
    """The error that the provider answered; without fields of a prompt the new one is made as the last one was."""

    error: str = Field(
        max_length=1_000_000,
        description="The text of its error; empty with `usage` if it cut the prompt in silence.",
        examples=["This model's maximum context length is 8192 tokens. However, your messages resulted in 9100."],
    )
    status: int | None = Field(default=None, ge=100, le=599, description="Its HTTP status.")
    usage: UsageReport | None = Field(
        default=None, description="The provider's counts of the call; it tells a prompt that was cut without an error."
    )


class Recovery(Answer):
    """The next step after an overflow."""

    action: Literal["retry", "give_up"] = Field(
        description="`retry`: send `messages` instead; `give_up`: send nothing, `reason` says why."
    )
    messages: WireMessages
    system: System = None
    reason: str = Field(description="Why, in words.")
    kind: str = Field(description="What the error means, such as token_overflow, rate_limit or auth.")
    remedy: str = Field(description="What was done: compact, truncate, strip_media, drop_thinking, wait or give_up.")
    retry_after_seconds: float | None = Field(
        description="Seconds to wait first, as the error tells; null where it does not."
    )
    learned_window: int | None = Field(description="The window that the error told; it is used from now on.")
    tokens: PromptTokens | None = Field(
        default=None, description="Size of the new prompt, part by part; null where it is given up."
    )
    compaction: CompactionReceipt | None = Field(
        default=None, description="The compaction that was made for it; null for none."
    )
    degraded: Degraded = Field(default=[])


class StatelessRequest(Request):
    """Messages to compact; nothing of them is kept."""

    messages: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=MAX_BATCH,
        description="In OpenAI's or Anthropic's shape.",
        examples=[
            [{"role": "user", "content": "When do we deploy?"}, {"role": "assistant", "content": "On Tuesdays."}]
        ],
    )
    context_window: int | None = Field(
        default=None, ge=1, le=MAX_TOKENS, description="What the model takes, in tokens; else what is known of `model`."
    )
    model: ModelName = None
    preset: PresetChoice = None
    overrides: Overrides = None
    trigger: TriggerChoice = "threshold"
    target_tokens: TargetTokens = None
    force: bool = Field(default=False, description="Compact although there is room.")
    instructions: SummaryInstructions = None
    identifier_policy: Identifiers = None
    pins: list[Annotated[str, Field(min_length=1, max_length=MAX_PIN_CHARS)]] = Field(
        default=[], max_length=64, description="Texts that stay word for word."
    )
    system_prompt: str = Field(
        default="", max_length=MAX_PROMPT_CHARS, description="Sent beside the messages: counted, and not sent back."
    )
    tools: Tools = Field(default=[])
    format: Format = "openai"
    summary_model: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="litellm name of the model that writes this summary; else that of the setting `compaction.model`.",
    )


class CompactedMessages(SentMessages):
    """Messages that fit, and how that came about."""

    system: System = None
    receipt: CompactionReceipt = Field(description="What was done, and what it gained.")
    degraded: Degraded = Field(default=[])
