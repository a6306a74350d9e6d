"""Owns a context: what was found, packed into a block of an exact token budget, with its receipt. Pure.

Invariants: `tokens` is the block's size with its wrapper and never over the budget; a receipt names every
passage that went in, with its lines, and the best of those that did not, with the reason.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from indexer.types import Hit
from memory_service.block import block_text
from memory_service.packing import Offer, pack
from memory_service.schemas import Order
from memory_service.text.secrets import redacted
from memory_service.tokens import count_tokens

# A receipt explains the near misses; the two-hundredth is not one.
_OMITTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptItem:
    """A passage in a receipt. `reason` is empty for one that went in. `tokens` is its text alone."""

    path: str
    start_line: int
    end_line: int
    tokens: int
    score: float
    text_score: float
    vector_score: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The record of what was put into a prompt and why.

    Attributes:
        tokens: Size of the block with its wrapper.
        reason: Why the block is empty; empty where it is not.
        omitted: The best of those that stayed out.
        omitted_count: How many candidates stayed out in all.
    """

    receipt_id: str
    created_at: dt.datetime
    query: str
    budget_tokens: int
    tokens: int
    included: tuple[ReceiptItem, ...]
    omitted: tuple[ReceiptItem, ...]
    omitted_count: int
    reason: str
    degraded: tuple[str, ...]

    def record(self) -> dict[str, object]:
        """Its fields by name, those of its items too: what is stored and sent."""
        items = {name: [_fields(item) for item in getattr(self, name)] for name in ("included", "omitted")}
        return {**_fields(self), **items}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A block and its receipt."""

    block: str
    receipt: Receipt

    def with_degraded(self, reason: str) -> Context:
        """The same with one more part named as missing."""
        return replace(self, receipt=replace(self.receipt, degraded=(*self.receipt.degraded, reason)))


def build_context(
    hits: Sequence[Hit],
    *,
    query: str,
    budget_tokens: int,
    receipt_id: str,
    created_at: dt.datetime,
    degraded: tuple[str, ...] = (),
    order: Order = "score",
    heard: str = "",
) -> Context:
    """Pack hits, in the order that they shall have, into a block of at most `budget_tokens`.

    The words of sessions have no secrets in it, but for those of the log `heard`, whose prompt it is for.
    """
    offers = [_offer(hit, order, heard) for hit in hits]
    packed = pack(offers, budget_tokens)
    chosen = frozenset(packed.chosen)
    left = [i for i in range(len(offers)) if i not in chosen]
    tokens = count_tokens(packed.block)
    spare = budget_tokens - tokens
    receipt = Receipt(
        receipt_id=receipt_id,
        created_at=created_at,
        query=query,
        budget_tokens=budget_tokens,
        tokens=tokens,
        included=tuple(_item(hits[i], offers[i]) for i in packed.chosen),
        omitted=tuple(_item(hits[i], offers[i], _why_omitted(offers[i], spare)) for i in left[:_OMITTED]),
        omitted_count=len(left),
        reason="" if packed.block else _why_empty(offers, budget_tokens),
        degraded=degraded,
    )
    return Context(block=packed.block, receipt=receipt)


def _fields(value: Receipt | ReceiptItem) -> dict[str, object]:
    # `dataclasses.asdict` copies deeply, which takes longer than packing the block.
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _offer(hit: Hit, order: Order, heard: str) -> Offer:
    is_others = hit.source == "sessions" and hit.path != heard
    return Offer(
        path=hit.path,
        ordinal=hit.ordinal,
        start_line=hit.passage.start_line,
        end_line=hit.passage.end_line,
        text=_without_secrets(hit.passage.text) if is_others else _as_it_is(hit.passage.text),
        score=hit.score,
        # A memory file has its day in its name, the log of a session has not.
        day=str(hit.passage.date) if hit.source == "sessions" and hit.passage.date else "",
        goes_first=order == "memory_first" and hit.source != "sessions",
    )


# The same passages are offered again and again, most of them in vain.
@lru_cache(maxsize=4_096)
def _without_secrets(text: str) -> str:
    return block_text(redacted(text))


@lru_cache(maxsize=4_096)
def _as_it_is(text: str) -> str:
    return block_text(text)


def _item(hit: Hit, offer: Offer, reason: str = "") -> ReceiptItem:
    return ReceiptItem(
        path=hit.path,
        start_line=offer.start_line,
        end_line=offer.end_line,
        tokens=count_tokens(offer.text),
        score=hit.score,
        text_score=hit.text_score,
        vector_score=hit.vector_score,
        reason=reason,
    )


def _why_omitted(offer: Offer, spare: int) -> str:
    needed = count_tokens(offer.text)
    if needed > spare:
        return f"budget: needs {needed} tokens and its wrapper, {spare} are left"
    return f"budget: its wrapper takes more than the {spare - needed} tokens that would be left beside it"


def _why_empty(offers: Sequence[Offer], budget_tokens: int) -> str:
    if not offers:
        return "nothing found: no memory matches the query and its filters"
    least = min(count_tokens(pack([offer], 10**9).block) for offer in offers)
    count = len(offers)
    return (
        f"budget too small: {budget_tokens} tokens, and the smallest of {count} passages needs {least} with its wrapper"
    )
