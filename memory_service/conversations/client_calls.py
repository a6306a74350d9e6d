"""Calls of clients to their models, and the prompts that are sent in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from memory_service.conversations.compare import (
    SentMessage,
)
from memory_service.schemas.compaction import (
    CompactionReceipt,
    PromptTokens,
)
from memory_service.schemas.messages import Wire

if TYPE_CHECKING:
    pass

CallWire = Literal[Wire, "responses"]


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A session and the number of a message in it; None for its last one, 0 for none."""

    session_id: str
    seq: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationCall:
    """A call of a client to its model.

    Attributes:
        messages: All that was said, as the client sends it, without the system prompt that it begins with.
        wire: The shape of these; of the Responses, messages as `items` reads them.
        session_id: The session that the caller names; None for the one that the list belongs to.
        follows: The provider's id of the answer that the messages follow; empty if they begin at the beginning.
        conversation: The protocol's id of the conversation that holds all that was said before; empty for none.
        reference: A sealed one, to the place in a session that the messages follow; empty for none.
        place: That place, once the reference was opened.
        compact_threshold: The size of a view, in tokens, over which the caller wants it compacted; 0 leaves that to the
            settings. With a number, compactions are told by a reference; None does not ask for any.
        compacts: Whether a compaction is all that is asked for.
        hint: The protocol's own id of the user or the conversation; empty for none.
        system_prompt: The text of the system prompt, which stays the client's.
        tools: Schemas of the tools.
        model: The model's name.
        is_untouched: Whether the provider compacts by itself, so that its messages go on as they came.
        mark: A text in the provider's own compaction that the list begins with, which tells the session; else empty.
    """

    messages: Sequence[SentMessage]
    wire: CallWire = "openai"
    session_id: str | None = None
    follows: str = ""
    conversation: str = ""
    reference: str = ""
    place: LogPlace | None = None
    compact_threshold: int | None = None
    compacts: bool = False
    hint: str = ""
    system_prompt: str = ""
    tools: Sequence[object] = ()
    model: str | None = None
    is_untouched: bool = False
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPrompt:
    """A list of messages to send to the model, and how it came about.

    Attributes:
        messages: In the shape of the call, without its system prompt.
        session_id: The session that was appended to; empty if none was.
        last_seq: The last message of it that the prompt answers to.
        branch_of: The session that this one was parted from by this call; empty if it was not.
        tokens: Of its parts; None if no session stands behind it.
        cached_prefix_tokens: Of the messages that the last prompt of the session began with, too.
        receipt_id: That of the memories in it; empty for none.
        compaction: The compaction that was made first.
        reference: Sealed, to the session behind its compaction; empty if the call did not ask for one.
        command_reply: What came of the `/compact` that was the last thing said: no model need answer; empty for none.
    """

    messages: tuple[SentMessage, ...]
    session_id: str = ""
    last_seq: int = 0
    branch_of: str = ""
    tokens: PromptTokens | None = None
    cached_prefix_tokens: int = 0
    receipt_id: str = ""
    compaction: CompactionReceipt | None = None
    reference: str = ""
    command_reply: str = ""
    degraded: tuple[str, ...] = field(default_factory=tuple)
