"""Owns what a session is reminded of: whether to search, where, and what of it is news to the model.

Invariants: what the view shows is left out before anything is ranked, and what says the same is left out after; the
covered messages of this session are found as well as all other sources, whether or not the index has them yet.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from indexer import LineRange, SearchFilter, Source
from memory_service.context import Context, build_context
from memory_service.echoes import Shown, without_echoes
from memory_service.errors import Conflict, MemoryServiceError, StorageFailed
from memory_service.messages import text_of
from memory_service.packing import candidates_for
from memory_service.recall import decided
from memory_service.receipts import Receipts, new_receipt_id
from memory_service.schemas import Order
from memory_service.sessions.foreign import unreadable
from memory_service.sessions.lexical import LiveHit, LiveSearch
from memory_service.shortterm.bench import Bench, Look

_EVERYTHING = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What was found; no context if nothing was searched or could be."""

    context: Context | None = None
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTalk:
    """The messages of one session that were found, best first."""

    hits: Sequence[LiveHit]
    degraded: tuple[str, ...] = ()


class Recalls:
    """Recalls for the sessions of one workspace.

    Args:
        bench: What work on them needs.
        receipts: Where receipts are kept.
    """

    def __init__(self, bench: Bench, receipts: Receipts) -> None:
        self._bench = bench
        self._receipts = receipts
        self._live: dict[str, tuple[int, LiveSearch]] = {}
        self._shown: dict[str, Shown] = {}

    def decide(
        self, look: Look, query: str | None, wanted: Literal["auto", "always", "never"], budget_tokens: int
    ) -> tuple[bool, str, str]:
        """Whether to search, for what, and why."""
        if budget_tokens == 0:
            return False, "", "the budget for memories is 0"
        if wanted == "never":
            return False, "", "recall is off"
        if query is not None and query.strip():
            return True, query, "a query was given"
        if look.state.is_commanded:
            return False, "", "the command /compact needs no memory"
        said = next((each for each in reversed(look.state.messages) if each.message["role"] == "user"), None)
        if said is None:
            return False, "", "the user has said nothing yet"
        decision = decided(text_of(said.message))
        if wanted == "always":
            return True, decision.query or text_of(said.message), "recall is always on"
        return decision.search, decision.query, decision.reason

    def recall(
        self,
        look: Look,
        query: str,
        budget_tokens: int,
        *,
        sources: tuple[Source, ...] = (),
        order: Order = "score",
        at: dt.datetime,
    ) -> Recalled:
        """A block of what is not in view, of at most so many tokens, with its stored receipt."""
        degraded = list[str]()
        in_view = look.session_id
        path, shown = f"sessions/{look.session_id}.jsonl", look.view().first_seq
        if shown > 1:
            unready = self._bench.longterm.session_ready(
                look.session_id, edition=look.state.edition, upto_seq=shown - 1
            )
            degraded += unready or []
            # What the index does not have yet is looked for by its words, as that of other sessions is.
            in_view = in_view if unready is not None else ""
        kept = SearchFilter(sources=sources, without=(LineRange(path=path, start_line=shown, end_line=_EVERYTHING),))
        try:
            found = self._bench.longterm.search(
                query,
                limit=candidates_for(budget_tokens),
                kept=kept,
                snippets=False,
                order=order,
                in_view=in_view,
            )
        except MemoryServiceError as error:
            return Recalled(degraded=(*degraded, f"recall: {error}"))
        hits = without_echoes(found.hits, self._shown_of(look))
        context = build_context(
            hits,
            query=query,
            budget_tokens=budget_tokens,
            receipt_id=new_receipt_id(at),
            created_at=at,
            degraded=found.degraded,
            order=order,
            heard=path,
        )
        try:
            with look.session.held(look.state):
                self._receipts.put(context.receipt, session_id=look.session_id)
        except (StorageFailed, Conflict) as error:
            degraded.append(f"receipt: {error}")
        return Recalled(context=context, degraded=(*found.degraded, *degraded))

    def search(self, look: Look, query: str, *, limit: int = 10) -> FoundTalk:
        """What was said in a session about something, in view or not, by words alone."""
        edition, live = self._live.get(look.session_id, (0, None))
        if live is None or (edition, live.upto) != (look.state.edition, look.state.last_seq):
            live = LiveSearch.of(look.state.messages, upto=look.state.last_seq, before=live)
            self._live[look.session_id] = look.state.edition, live
            while len(self._live) > 32:
                del self._live[next(iter(self._live))]
        return FoundTalk(hits=live.search(query, limit=limit), degraded=unreadable(look.session.log))

    def _shown_of(self, look: Look) -> Shown:
        """What the view shows, as it is compared with what is found."""
        before = self._shown.get(look.session_id)
        shown = Shown.of(look.view().tail, before=before)
        self._shown[look.session_id] = shown
        while len(self._shown) > 32:
            del self._shown[next(iter(self._shown))]
        return shown
