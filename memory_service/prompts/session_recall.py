"""Recall for sessions: whether a turn needs memories, and which ones answer it.

Invariants: what the view shows is left out before anything is ranked, and what says the same is left out after; the
covered messages of this session are found as well as all other sources, whether or not the index has them yet.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from indexer import Hit, IndexerError, LineRange, SearchFilter, SourceKind, session_path
from indexer.common import LRU
from memory_service.errors import Conflict, MemoryServiceError, StorageFailed
from memory_service.memories.block import RelevanceLimits, build_context, candidates_for, checked_share
from memory_service.memories.format import Entry
from memory_service.memories.overlap import ViewText
from memory_service.messages.shapes import own_text_of, user_message
from memory_service.messages.sizes import number_message
from memory_service.prompts.prompt_records import InjectedBlock, InjectedPassage, digest_of, passage_of
from memory_service.prompts.receipt_records import Receipts, new_receipt_id
from memory_service.runtime.log_changes import unreadable
from memory_service.runtime.models import make_prompt_judge
from memory_service.schemas.compaction import BRANCH_MARK, Recall, RecallMode
from memory_service.schemas.memories import Context, Order
from memory_service.schemas.messages import FoundMessages
from memory_service.sessions.search import SessionKeywordSearch
from memory_service.text.recall import decide_recall
from memory_service.text.sentence_judge import DamagedWeights

if TYPE_CHECKING:
    from memory_service.runtime.session_services import SessionRuntime, SessionSnapshot

_EVERYTHING = 1 << 62
_KEPT_SESSIONS = 32
# Messages in which the turn before a short one is looked for.
_LOOKED_BACK = 40


# What nobody asked for outright has to be so relevant, to be put beside blocks that stand: it takes room, and is paid
# for, with every turn that follows.
# Source: five of LoCoMo's talks, window 16,000: the part of a prompt that the next one begins with is .957 with .01.
# Of one talk whose questions came as turns, .01 took .04 of the evidence, .03 .09, and so are questions that are asked
# outright (a query, or recall that is always on) not held to it.
_LEAST_ASKED = 0.01
_LEAST_MENTIONED = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPlan:
    """Plan of a search for a turn.

    Attributes:
        decision: Whether memories are searched, for what, and why.
        least_beside: How relevant is what stands beside other blocks.
        outright: Whether somebody asked for memories, so that no judge is asked.
    """

    decision: Recall
    least_beside: float = 0.0
    outright: bool = True


def _no_search(reason: str) -> RecallPlan:
    return RecallPlan(decision=Recall(searched=False, query="", reason=reason))


def last_turns(snapshot: SessionSnapshot) -> tuple[str, str]:
    """The user's turn, and the one before it; empty where there is none."""
    users = (message for message in snapshot.state.messages[-_LOOKED_BACK:] if message.message["role"] == "user")
    texts = [text for message in users if (text := own_text_of(message.message)).strip()]
    return (texts[-1] if texts else "", texts[-2] if len(texts) > 1 else "")


def recall_decision(snapshot: SessionSnapshot, query: str | None, mode: RecallMode, budget_tokens: int) -> RecallPlan:
    """Decide if memories are searched, for what, and why."""
    if budget_tokens == 0:
        return _no_search("the budget for memories is 0")
    if mode == "never":
        return _no_search("recall is off")
    if query is not None and query.strip():
        return RecallPlan(decision=Recall(searched=True, query=query, reason="a query was given"))
    if snapshot.state.is_commanded:
        return _no_search("the command /compact needs no memory")
    message = snapshot.state.turn
    if message is None:
        return _no_search("the user has said nothing yet")
    new_decision = decide_recall(own_text_of(message.message))
    if mode == "always":
        query = new_decision.query or own_text_of(message.message)
        return RecallPlan(decision=Recall(searched=True, query=query, reason="recall is always on"))
    decision = Recall(searched=new_decision.search, query=new_decision.query, reason=new_decision.reason)
    least = _LEAST_ASKED if new_decision.asks else _LEAST_MENTIONED
    return RecallPlan(decision=decision, least_beside=least, outright=new_decision.outright)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A search for a turn.

    Attributes:
        min_relevance: What is less relevant stays out; None is as the settings have it.
        least_beside: The same beside blocks that stand, if it is more.
        prompt: The user's turn, if nobody asked for memories outright: a judge tells if something belongs into it.
        before: The user's turn before that.
    """

    query: str
    budget_tokens: int
    sources: tuple[SourceKind, ...] = ()
    order: Order = "score"
    min_relevance: float | None = None
    least_beside: float = 0.0
    prompt: str = ""
    before: str = ""

    @property
    def digest(self) -> str:
        """Tells the question, with what limits its answer, from others."""
        return digest_of([self.query, self.budget_tokens, self.sources, self.order, self.min_relevance])


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedPassages:
    """Passages for a block.

    Attributes:
        hits: The passages, the best first.
        judged: Whether a judge was asked if something of them belongs into the prompt.
        silence: Why nothing does; empty where something does or nobody was asked.
        searched: What could not be done by the search itself.
        degraded: What could not be done in all.
    """

    hits: tuple[Hit, ...]
    judged: bool = False
    silence: str = ""
    searched: tuple[str, ...]
    degraded: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Recalled memories; no context if nothing was searched or could be.

    Attributes:
        passages: Those in the block.
    """

    context: Context | None = None
    passages: tuple[InjectedPassage, ...] = ()
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _InView:
    """Part of a session that need not be found.

    Attributes:
        session_id: The session, if the index has all of it that can be found; else empty.
        lines: The lines of its log.
        text: The text of these lines.
        root: The session, and all branches of it, by the name that they share; empty for none.
        first_seq: The first message in view.
    """

    session_id: str = ""
    root: str = ""
    first_seq: int = 0
    lines: tuple[LineRange, ...] = ()
    text: ViewText
    degraded: tuple[str, ...] = ()


_NOTHING_IN_VIEW = _InView(text=ViewText.of(()))


class SessionRecall:
    """Recalls for the sessions of one workspace.

    Args:
        services: What work on them needs.
        receipts: Where receipts are kept.
    """

    def __init__(self, services: SessionRuntime, receipts: Receipts) -> None:
        self._services = services
        self._receipts = receipts
        self._live: LRU[str, tuple[int, SessionKeywordSearch]] = LRU(_KEPT_SESSIONS)
        self._shown: LRU[str, ViewText] = LRU(_KEPT_SESSIONS)

    def recall(
        self,
        snapshot: SessionSnapshot | None,
        question: Question,
        *,
        forgotten_count: int = 0,
        beside: Sequence[InjectedBlock] = (),
        at: dt.datetime,
    ) -> Recalled:
        """A block of what is not in view, with its stored receipt.

        Args:
            snapshot: The session; None for one in which nothing was said yet.
            question: The search.
            forgotten_count: Of a view that is not ours, the last message that is in it no more.
            beside: What such a view shows beside the messages of the session.
            at: The present moment.
        """
        try:
            passages = self.find_passages(snapshot, question, forgotten_count)
        except MemoryServiceError as error:
            return Recalled(degraded=(f"recall: {error}",))
        context, degraded = self.pack_block(snapshot, passages, question, at, beside), passages.degraded
        try:
            with snapshot.session.hold(snapshot.state) if snapshot else nullcontext():
                self._receipts.put(context.receipt, session_id=snapshot.session_id if snapshot else "")
        except (StorageFailed, Conflict) as error:
            degraded = (*degraded, f"receipt: {error}")
        return Recalled(context=context, passages=passages_in(context, passages.hits), degraded=degraded)

    def pack_block(
        self,
        snapshot: SessionSnapshot | None,
        passages: SearchedPassages,
        question: Question,
        at: dt.datetime,
        beside: Sequence[InjectedBlock] = (),
    ) -> Context:
        """The block of what was found, without what other blocks show."""
        head = snapshot.state.head if snapshot else None
        return build_context(
            passages.hits,
            query=question.query,
            budget_tokens=question.budget_tokens,
            limits=self._limits(question, beside=bool(beside), is_judged=passages.judged),
            receipt_id=new_receipt_id(at),
            created_at=at,
            degraded=passages.searched,
            order=question.order,
            heard_text=session_path(snapshot.session_id) if snapshot else "",
            shown=_shown_in(beside) if beside else None,
            language=(head.language or "en") if head and head.rounds else "",
            silence=passages.silence,
        )

    def _judge(self, question: Question, hits: Sequence[Hit]) -> tuple[bool, str, tuple[str, ...]]:
        """If a prompt was judged; why nothing belongs into it, or nothing; and what kept it from being judged."""
        judge = make_prompt_judge(self._services.shared.settings) if question.prompt else None
        if judge is None:
            return False, "", ()
        try:
            made_with = self._services.longterm.index.embedder
            fingerprint = made_with.fingerprint if made_with else ""
            silence = judge.silence(question.prompt, question.before, hits, fingerprint)
            return any(hit.relevance is not None for hit in hits), silence, ()
        except (IndexerError, DamagedWeights) as error:
            return False, "", (f"recall: the judge of prompts is missing. {error}",)

    def find_passages(
        self, snapshot: SessionSnapshot | None, question: Question, forgotten_count: int = 0
    ) -> SearchedPassages:
        """Passages that answer a question and that the view does not show.

        Raises:
            MemoryServiceError: Nothing could be searched.
        """
        view = self._in_view(snapshot, forgotten_count) if snapshot else _NOTHING_IN_VIEW
        try:
            results = self._services.longterm.search(
                question.query,
                limit=candidates_for(question.budget_tokens),
                passing=SearchFilter(sources=question.sources, without=view.lines),
                snippets=False,
                order=question.order,
                in_view=view.session_id,
            )
        except IndexerError as error:
            raise StorageFailed(str(error)) from error
        hits = tuple(hit for hit in self._noted_elsewhere(results.hits, view) if not view.text.says(hit.passage.text))
        is_judged, silence, missing = self._judge(question, hits)
        texts = (*results.degraded, *missing)
        return SearchedPassages(
            hits=hits, judged=is_judged, silence=silence, searched=texts, degraded=(*texts, *view.degraded)
        )

    def _in_view(self, snapshot: SessionSnapshot, forgotten_count: int) -> _InView:
        """Part of a session that is in view, and the covered part made ready to be found."""
        degraded = list[str]()
        in_view = snapshot.session_id
        path, shown_count = session_path(snapshot.session_id), max(snapshot.view().first_seq, forgotten_count + 1)
        # The log begins with its header: a first message has nothing before it that could be found.
        if any(message.seq < shown_count for message in snapshot.state.messages[:1]):
            unready = self._services.longterm.session_ready(
                snapshot.session_id, edition=snapshot.state.edition, upto_seq=shown_count - 1
            )
            degraded += unready or []
            # What the index does not have yet is looked for by its words, as that of other sessions is.
            in_view = in_view if unready is not None else ""
        return _InView(
            session_id=in_view,
            lines=(LineRange(path=path, start_line=shown_count, end_line=_EVERYTHING),),
            text=self._shown_of(snapshot, shown_count),
            root=snapshot.session_id.partition(BRANCH_MARK)[0],
            first_seq=shown_count,
            degraded=tuple(degraded),
        )

    def _noted_elsewhere(self, hits: Sequence[Hit], view: _InView) -> Iterator[Hit]:
        """Hits but for memories of messages that are in view: these say the same, whatever the wording."""
        entry_of = self._services.longterm.files.entries.finder()
        for hit in hits:
            passage = hit.passage
            entry = entry_of(hit.path, passage.start_line, passage.end_line, passage.text) if hit.memory_id else None
            if entry is None or not view.root or not _is_of(entry.entry, view):
                yield hit

    def search(self, snapshot: SessionSnapshot, query: str, *, limit: int = 10) -> FoundMessages:
        """Search all messages of a session by words, in view or not."""
        edition, live = self._live.get(snapshot.session_id) or (0, None)
        if live is None or (edition, live.upto) != (snapshot.state.edition, snapshot.state.last_seq):
            live = SessionKeywordSearch.of(snapshot.state.messages, upto=snapshot.state.last_seq, before=live)
            self._live[snapshot.session_id] = snapshot.state.edition, live
        return FoundMessages(results=live.search(query, limit=limit), degraded=[*unreadable(snapshot.session.log)])

    def _limits(self, question: Question, *, beside: bool, is_judged: bool) -> RelevanceLimits:
        recall, min_relevance = self._services.shared.settings.recall, question.min_relevance
        least = 0.0 if min_relevance is None else checked_share(min_relevance)
        return RelevanceLimits(
            min_relevance=max(least, question.least_beside) if beside else least,
            # Where a judge was asked, it has read the relevance too.
            min_best=recall.min_relevance if min_relevance is None and not is_judged else 0.0,
            min_gain=recall.min_gain,
        )

    def _shown_of(self, snapshot: SessionSnapshot, first_seq: int) -> ViewText:
        """Text of the view from a message on, for dropping memories that repeat it."""
        before = self._shown.get(snapshot.session_id)
        tail = [message for message in snapshot.view().tail if message.seq >= first_seq]
        view_text = ViewText.of(tail, before=before)
        self._shown[snapshot.session_id] = view_text
        return view_text


def _is_of(entry: Entry, view: _InView) -> bool:
    """True if an entry was taken from messages that are in view, and nobody has edited it since."""
    fields = entry.fields
    if entry.role != fields.get("origin"):
        return False
    first = fields.get("messages", "").partition("-")[0]
    session = fields.get("session", "").partition(BRANCH_MARK)[0]
    return session == view.root and first.isdigit() and int(first) >= view.first_seq


def passages_in(context: Context, hits: Sequence[Hit]) -> tuple[InjectedPassage, ...]:
    """Those of some passages that are in a block."""
    lines = {(item.path, item.start_line, item.end_line) for item in context.receipt.included}
    return tuple(passage_of(hit) for hit in hits if (hit.path, hit.passage.start_line, hit.passage.end_line) in lines)


def _shown_in(blocks: Sequence[InjectedBlock]) -> Callable[[str], bool]:
    """Tells of a text whether one of some blocks says it."""
    texts = [passage.text for block in blocks for passage in block.passages]
    return ViewText.of([number_message(user_message(text), at) for at, text in enumerate(texts)]).says
