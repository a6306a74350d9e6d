"""Owns `Reply`, what a turn of a session came to."""

from __future__ import annotations

from dataclasses import dataclass

from memory_service.client._messages import WireMessage, text_of, tool_calls_of
from memory_service.compaction_schemas import CompactionReceipt, Flush, SessionContext
from memory_service.session_schemas import AppendedMessages, UsageReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model answered, and what it took to get there.

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
    degraded: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What the model said; "" if it only calls tools."""
        return text_of(self.message)

    @property
    def tool_calls(self) -> list[WireMessage]:
        """The tools that the model calls: run them, append the results, and complete again without `user`."""
        return tool_calls_of(self.message)
