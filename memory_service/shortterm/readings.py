"""Owns how large a session is for its model: what the provider counted, else a tokenizer, else a corrected estimate.

Invariants: pure but for what a tokenizer remembers; a count of the provider that was made before the view changed, or
of another model, is not used; plans work with estimates and one factor, so that all parts agree on what fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memory_service.llm.tokenizer import exact_counter
from memory_service.messages import message_tokens, text_of, tool_calls_of
from memory_service.meter import (
    LEAST_SCALE,
    MOST_SCALE,
    Reading,
    ReadingSource,
    anchor_of,
    learned_scale,
    measured,
    pairs_of,
)
from memory_service.sessions.state import SessionState
from memory_service.sessions.view import Gauge, View
from memory_service.tokens import count_tokens


def scale_of(state: SessionState, seen: Callable[[], View], model: str | None) -> tuple[float, ReadingSource]:
    """Tokens as the model counts them for each one estimated, and what that rests on.

    Args:
        state: The session.
        seen: Gives a view of it; asked for only if there is a tokenizer to count it.
        model: The model that the view is for.
    """
    pairs = pairs_of([(each.seq, each.usage) for each in state.usages], model)
    if pairs:
        return learned_scale(pairs), "usage"
    counter = exact_counter(model) if model else None
    return (_exact(seen(), counter), "tokenizer") if counter is not None else (1.0, "estimate")


def reading_of(
    state: SessionState, gauge: Gauge, scale: tuple[float, ReadingSource], model: str | None, *, anchored: bool = False
) -> Reading:
    """What a view takes.

    Args:
        state: The session.
        gauge: What its view takes by estimate.
        scale: See `scale_of`.
        model: The model that the view is for.
        anchored: Whether the provider's last count stands for what it counted, system prompt and memories included.
    """
    factor, source = scale
    anchor = None
    if anchored:
        anchor = anchor_of(
            [(each.seq, each.usage) for each in state.usages],
            seqs=[0, *gauge.seqs],
            changed_seq=state.changed_seq,
            model=model,
        )
    reading = measured([gauge.lead_tokens, *gauge.sizes], anchor=anchor, scale=factor)
    return reading if anchor is not None else replace(reading, source=source)


def _exact(view: View, counter: Callable[[str], int]) -> float:
    """How many tokens a tokenizer finds for each one estimated; frames and media are taken as estimated."""
    estimated = exact = 0
    for message in view.messages:
        texts = [text_of(message), *(call["function"]["arguments"] for call in tool_calls_of(message))]
        size = message_tokens(message)
        estimated += size
        exact += size + sum(counter(text) - count_tokens(text) for text in texts if text)
    return min(max(exact / estimated, LEAST_SCALE), MOST_SCALE) if estimated else 1.0
