"""Session logs that another program wrote: what can be shown of them, and what cannot be done with them.

Invariants: such a log is read, never written to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from indexer.documents.openclaw import is_openclaw, openclaw_messages
from memory_service.sessions.base import SessionLog


def foreign_messages(
    log: SessionLog, since_seq: int, limit: int | None
) -> Sequence[tuple[int, Mapping[str, object]]] | None:
    """Number and message of those after `since_seq`, as they were given; None for a log of ours."""
    content = log.foreign()
    if content is None:
        return None
    return [(told.line, told.message) for told in openclaw_messages(content) if told.line > since_seq][:limit]


def unreadable(log: SessionLog) -> tuple[str, ...]:
    """What cannot be done with a log in another format, for `degraded`; empty for one of ours."""
    content = log.foreign()
    if content is None:
        return ()
    if is_openclaw(content):
        return ("log: OpenClaw wrote it: it can be read and searched, not gone on with. Choose another id for that.",)
    return ("log: it is in a format that is not known here, so nothing of it is shown. Move it away.",)
