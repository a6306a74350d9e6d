"""Owns which media of a view give way to labels: old ones, or as many as a request has to lose.

Invariants: pure and linear; the oldest go first; what the log keeps is untouched, and each label names its handle. A
message loses all its media or none.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.compaction.steps import NOTHING_GIVEN, Given, Pruned, pruned_view, view_tokens
from memory_service.compaction.stubs import payload_bytes
from memory_service.messages import Numbered, media_parts_of


def media(messages: Sequence[Numbered], *, hard: bool = False, given: Given = NOTHING_GIVEN) -> Pruned:
    """Strips media that are older than the newest message of the user that has any.

    Args:
        messages: The view, in order.
        hard: Strip all of them, the newest too, as before a request that was too large is made again.
        given: What is settled before.
    """
    held = _with_media(messages, given)
    if hard:
        return _stripped(messages, held, given)
    newest = max((at for at in held if messages[at].message["role"] == "user"), default=0)
    return _stripped(messages, [at for at in held if at < newest], given)


def media_to_bytes(messages: Sequence[Numbered], limit_bytes: int, *, given: Given = NOTHING_GIVEN) -> Pruned:
    """Strips the oldest media until the rest is within a size.

    Args:
        messages: The view, in order.
        limit_bytes: The most that the media of a request may take, as base64. After a refusal for its size, half of
            what `media_bytes` gives; the next time half of that.
        given: What is settled before.
    """
    total = media_bytes(messages, given=given)
    gone: list[int] = []
    for at in _with_media(messages, given):
        if total <= limit_bytes:
            break
        if size := _bytes_of(messages[at]):
            total -= size
            gone.append(at)
    return _stripped(messages, gone, given)


def media_bytes(messages: Sequence[Numbered], *, given: Given = NOTHING_GIVEN) -> int:
    """What the media of a view take in a request, in bytes; those that are only referred to take none."""
    return sum(
        _bytes_of(each)
        for each in messages
        if not isinstance(each.message.get("content"), str) and each.seq not in given.stripped
    )


def _with_media(messages: Sequence[Numbered], given: Given) -> list[int]:
    return [
        at
        for at, each in enumerate(messages)
        if not isinstance(each.message.get("content"), str)
        and each.seq not in given.stripped
        and each.seq not in given.protected
        and media_parts_of(each.message)
    ]


def _bytes_of(each: Numbered) -> int:
    return sum(map(payload_bytes, media_parts_of(each.message)))


def _stripped(messages: Sequence[Numbered], gone: Sequence[int], given: Given) -> Pruned:
    before = view_tokens(messages, given)
    numbers = tuple(messages[at].seq for at in gone)
    touched = [messages[at] for at in gone]
    kept = view_tokens(touched, given)
    labelled = sum(each.tokens for each in pruned_view(touched, given.already, numbers))
    note = (f"Media of {len(numbers)} messages were replaced by labels.",) if numbers else ()
    return Pruned(stripped=numbers, tokens_before=before, tokens_after=before - kept + labelled, notes=note)
