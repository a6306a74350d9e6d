"""The note that stands for messages that no summary could be written of: how many they were, and where they are.

Invariants: pure; the notes of earlier rounds become one; never longer than asked for.
"""

from __future__ import annotations

import re

from memory_service.compaction.chunks import is_oversized
from memory_service.compaction.summary import Summary, SummaryRequest
from memory_service.compaction.verdict import clipped
from memory_service.tokens import count_tokens

PROMPT_VERSION = "note-2"
_NOTE = re.compile(
    r"\[(\d{1,9}) messages \(log:(\d{1,18})-\d{1,18}(?:; (\d{1,9}) very large)?\) "
    r"were left out here without a summary\.\]\Z"
)


def noted(request: SummaryRequest, kind: str, *, window_tokens: int) -> Summary:
    """The note, below what was known before.

    Args:
        request: What should have been summarised.
        kind: Why it was not, see `UpstreamFailed`. The error's text is not taken: it may quote anything.
        window_tokens: Of the model that failed; a message over half of it is called very large.
    """
    gone = (*request.messages, *request.prefix)
    large = sum(is_oversized(message, window_tokens) for message in gone)
    previous, count, first = request.previous, len(gone), gone[0].seq if gone else 0
    if gone and (before := _NOTE.search(previous)):
        previous = previous[: before.start()].rstrip()
        count, first, large = count + int(before[1]), int(before[2]), large + int(before[3] or 0)
    sizes = f"; {large} very large" if large else ""
    note = (
        f"[{count} messages (log:{first}-{gone[-1].seq}{sizes}) were left out here without a summary.]" if gone else ""
    )
    room = max(request.target_tokens - count_tokens(note) - 1, 0)
    previous = previous if count_tokens(previous) <= room else clipped(previous, room)
    return Summary(
        text="\n\n".join(part for part in (previous, note) if part),
        method="note",
        prompt_version=PROMPT_VERSION,
        notes=(f"No summary could be written ({kind}); a note stands for {len(gone)} messages.",),
    )
