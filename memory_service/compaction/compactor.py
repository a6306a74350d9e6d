"""Compactor: plan, summary, audit and record of one compaction, from a snapshot of the session.

Invariants: nothing is written unless the view really shrinks and fits; what a model wrote is checked against its
source first, and used as far as that holds it; a failure leaves log and view as they were, and its text is never part
of a summary; rules write the summary, or lines of it, only where that was asked for, and the record says so.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from indexer import IndexerError
from indexer.language import ornament
from memory_service.compaction.audit import Audit, audit_problems, audit_summary, drop_ungrounded
from memory_service.compaction.budget import ContextBudget
from memory_service.compaction.checkpoint import Labels
from memory_service.compaction.draft import CompactionDraft, CompactionOptions, compaction_record
from memory_service.compaction.ledger import judged_statements, ledger_of, merge_ledger
from memory_service.compaction.mending import MendedSummary, SourceTerms, mend_summary, with_lines_of_rules
from memory_service.compaction.note import with_note
from memory_service.compaction.plan import Plan, original_messages, plan_compaction
from memory_service.compaction.plan_sizes import LEAST_PROGRESS
from memory_service.compaction.presets import Fallback, Preset, SummaryRules
from memory_service.compaction.prompts import SAFEGUARD_HEADINGS
from memory_service.compaction.record import Compaction, built_on
from memory_service.compaction.snapshot import Snapshot, snapshot_of
from memory_service.compaction.summary import PromptReading, Summary, SummaryRequest, read_upto
from memory_service.compaction.view import (
    Conversation,
    Originals,
    View,
    ViewShape,
    newest_language,
    pin_texts,
    project,
    with_head,
)
from memory_service.errors import Incompressible, UpstreamFailed
from memory_service.llm.base import ChatModel, not_cancelled
from memory_service.llm.calls import Spent
from memory_service.llm.validation import clip_sections
from memory_service.messages.sizes import Numbered, count_tokens
from memory_service.schemas.compaction import LedgerEntry
from memory_service.text.frames import escape_frames
from memory_service.text.judged_kinds import judge_kinds
from memory_service.text.secrets import redact, without_secrets
from memory_service.text.sentence_kinds import BY_PATTERNS, SentenceKinds
from memory_service.text.texts import texts_in

if TYPE_CHECKING:
    from indexer import Embedder, LanguageChoice
    from memory_service.compaction.presets import CompactionSettings
    from memory_service.text.correction_judge import TalkJudge


# A summary that turns out too long for its view is cut down so many times, to no less than this.
_SHORTENED = 3
_SPARE_TOKENS = 8
_LEAST_SUMMARY_TOKENS = 32

_ANONYMOUS = (
    "Labels such as [email 1] stand for identifiers in summary and ledger; handles such as log:12 lead to the "
    "originals. Pins, the current request and the newest messages stand as they were said."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """Terms for writing one summary.

    Attributes:
        window_tokens: Of a model of which nothing is known.
        pins: Texts that the summary need not repeat.
        model: Writes the summary; None for rules alone.
        spent: The calls of a model, counted on.
        labels: What stands for identifiers; None where they are shown.
    """

    rules: SummaryRules
    window_tokens: int
    pins: tuple[str, ...]
    model: ChatModel | None
    fallback: Fallback
    spent: Spent
    labels: Labels | None
    cancelled: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """Replacement for the covered messages: summary, ledger and audit.

    Attributes:
        plan: As it was, or with the tools of the last turns taken out.
        summary: None where old messages are only pruned.
        audit: None where no summary was written, or a hook wrote it.
        labels: What stands for identifiers; None where they are shown.
        language: Of the talk.
        statements: Rules and decisions that a judge found; None where patterns did.
    """

    plan: Plan
    ledger: tuple[LedgerEntry, ...]
    summary: Summary | None = None
    audit: Audit | None = None
    labels: Labels | None = None
    language: str = ""
    statements: tuple[LedgerEntry, ...] | None = None


class Compactor:
    """Makes compactions.

    Args:
        model: Writes summaries; None for rules alone.
        fallbacks: Asked when it cannot, the first one first.
        embedder: Helps the rules to choose; None for words alone.
        judge: Finds rules and decisions, and what lasts; None for patterns alone.
        timeout_seconds: For all calls of one compaction.
    """

    def __init__(
        self,
        *,
        model: ChatModel | None = None,
        fallbacks: Sequence[ChatModel] = (),
        embedder: Embedder | LanguageChoice | None = None,
        judge: TalkJudge | None = None,
        timeout_seconds: float = 300.0,
    ) -> None:
        self.model = model
        self._fallbacks = fallbacks
        self._embedder = embedder
        self._judge = judge
        self._timeout_seconds = timeout_seconds

    def plan(
        self,
        snapshot: Snapshot,
        settings: CompactionSettings,
        budget: ContextBudget,
        compaction_options: CompactionOptions,
    ) -> Plan:
        """Plan a compaction; no model is called.

        Raises:
            Incompressible: See `plan_compaction`.
        """
        return plan_compaction(
            snapshot,
            settings.preset,
            budget,
            trigger=compaction_options.trigger,
            force=compaction_options.force,
            target_tokens=compaction_options.target_tokens,
            fallback=settings.fallback,
        )

    def draft(
        self,
        state: Conversation,
        view: View,
        shape: ViewShape,
        settings: CompactionSettings,
        budget: ContextBudget,
        compaction_options: CompactionOptions,
        *,
        now: dt.datetime,
        originals: Originals | None = None,
        cancelled: Callable[[], bool] = not_cancelled,
        spending: Spent | None = None,
    ) -> CompactionDraft:
        """Make a compaction, and commit nothing.

        `originals` are those that `view` was made with; `spending` counts the calls of a model, also where it fails.

        Raises:
            Incompressible: What cannot be compacted is larger than the window can take.
            UpstreamFailed: The model failed or its summary was refused, and nothing may stand in for it.
            CallCancelled: `cancelled` became true.
        """
        start = time.monotonic()
        snapshot = snapshot_of(state, view, shape, now=now)
        plan = self.plan(snapshot, settings, budget, compaction_options)
        if plan.stage == "none":
            return CompactionDraft(plan=plan, made=None, view=view, head=state.head)
        content = _Content(plan=plan, ledger=state.head.ledger)
        if plan.stage != "prune":
            content = self._content(
                state, snapshot, plan, settings, budget, compaction_options, cancelled, spending or Spent()
            )
        draft = self._draft(state, view, shape, settings, budget, compaction_options, content, originals, start)
        for _ in range(_SHORTENED):
            excess = draft.view.tokens - int(budget.usable_tokens / budget.scale)
            shorter = _shorter(content, excess) if excess > 0 and draft.made is not None else None
            if shorter is None:
                break
            content = shorter
            draft = self._draft(state, view, shape, settings, budget, compaction_options, content, originals, start)
        return _check_draft(draft, view, state, budget)

    def _draft(
        self,
        state: Conversation,
        view: View,
        shape: ViewShape,
        settings: CompactionSettings,
        budget: ContextBudget,
        compaction_options: CompactionOptions,
        content: _Content,
        originals: Originals | None,
        start: float,
    ) -> CompactionDraft:
        """The record of a compaction, and the view behind it, whether that fits or not."""
        plan, summary, audit = content.plan, content.summary, content.audit
        trigger = compaction_options.trigger
        record = compaction_record(state, plan, settings, trigger, summary, audit, content.language)
        if content.statements is not None:
            facts = tuple((fact.kind, fact.text, fact.seqs[0]) for fact in content.statements)
            record = replace(record, statements=facts)
        if summary is not None and content.labels is not None:
            fields = content.labels.used_in([summary.text, *(entry.text for entry in content.ledger)])
            record = replace(record, identifier_policy=compaction_options.identifier_policy, labels=fields)
        head = built_on(state.head, record, state.last_seq + 1, content.ledger)
        after = project(with_head(state, head), shape, originals=originals)
        duration_ms = int((time.monotonic() - start) * 1000)
        record = replace(record, tokens_before=view.tokens, tokens_after=after.tokens, duration_ms=duration_ms)
        return CompactionDraft(plan=plan, made=record, view=after, head=head, summary=summary, audit=audit)

    def _content(
        self,
        state: Conversation,
        snapshot: Snapshot,
        plan: Plan,
        settings: CompactionSettings,
        budget: ContextBudget,
        compaction_options: CompactionOptions,
        cancelled: Callable[[], bool],
        spending: Spent,
    ) -> _Content:
        """Summary and ledger for what a plan covers; a hook's summary, or one that a model or rules write."""
        messages, prefix = original_messages(state, plan)
        clean = without_secrets((*messages, *prefix))
        kinds, degraded = self._kinds(clean)
        statements = None if kinds is BY_PATTERNS else judged_statements(clean, kinds)
        ledger = merge_ledger(state.head.ledger, ledger_of((*messages, *prefix), statements, before=state.head.ledger))
        request = _request(state, plan, clean[: len(messages)], clean[len(messages) :], ledger, compaction_options)
        request = replace(request, kinds=kinds)
        labels = Labels(state.head.labels) if compaction_options.identifier_policy == "anonymize" else None
        if labels is not None:
            request = _anonymous(request, labels)
        terms = _Job(
            rules=_rules(settings.preset, compaction_options),
            window_tokens=_summariser_window(settings.preset, budget.window.tokens),
            pins=tuple(text for text, _ in pin_texts(state)),
            model=compaction_options.model or self.model,
            fallback=settings.fallback,
            spent=spending,
            labels=labels,
            cancelled=cancelled,
        )
        audit: Audit | None = None
        if compaction_options.provided.summary:
            summary = _by_hook(
                labels.text(compaction_options.provided.summary) if labels else compaction_options.provided.summary
            )
        else:
            summary, audit = self._summary(request, terms)
        if summary.method == "note" and settings.fallback == "last_turns":
            upto = read_upto(snapshot.tail)
            plan = replace(plan, toolless_upto=upto if upto >= plan.tail_start else 0)
        summary = _escape_summary(summary, request)
        return _Content(
            plan=plan,
            ledger=request.ledger,
            summary=replace(summary, notes=(*summary.notes, *degraded)),
            audit=audit,
            labels=labels,
            language=request.language,
            statements=statements,
        )

    def _kinds(self, messages: Sequence[Numbered]) -> tuple[SentenceKinds, tuple[str, ...]]:
        """The kinds of the sentences of some messages, and a note where the judge is missing."""
        if self._judge is None:
            return BY_PATTERNS, ()
        from memory_service.text.sentence_judge import DamagedWeights

        try:
            return judge_kinds(messages, self._judge), ()
        except (IndexerError, DamagedWeights) as error:
            return BY_PATTERNS, (f"Rules and decisions were found by patterns, the judge is missing: {error}",)

    def _summary(self, request: SummaryRequest, terms: _Job) -> tuple[Summary, Audit]:
        summary, audit = self._write_summary(request, terms)
        labels = terms.labels
        if labels is None:
            return summary, audit
        notes = [_ANONYMOUS]
        if labels.corrected:
            notes.append(f"The model wrote {labels.corrected} identifiers as they are; they were replaced by labels.")
        return replace(summary, text=labels.text(summary.text), notes=(*summary.notes, *notes)), audit

    def _write_summary(self, request: SummaryRequest, terms: _Job) -> tuple[Summary, Audit]:
        if terms.model is None:
            return self._by_rules(request, terms)
        try:
            return self._by_model(terms.model, request, terms)
        except UpstreamFailed as error:
            if terms.fallback == "none":
                raise
            summary, audit = self._fall_back(terms.model, request, terms, error.kind)
            if error.reason:
                summary = replace(summary, notes=(*summary.notes, f"The provider said: {error.reason}"))
        calls, read, wrote = terms.spent.requests, terms.spent.input_tokens, terms.spent.output_tokens
        return replace(summary, calls=calls, input_tokens=read, output_tokens=wrote), audit

    def _fall_back(self, model: ChatModel, request: SummaryRequest, terms: _Job, kind: str) -> tuple[Summary, Audit]:
        """Fallback for a summary that the model failed to write, by kind of failure."""
        if terms.fallback == "extractive":
            # Only the kind: an error's text may quote anything, and must not become context.
            return self._by_rules(request, terms, f"The model failed ({kind}); the summary was written by rules.")
        note = with_note(request, kind, window_tokens=model.context_window() or terms.window_tokens)
        return note, _audit_text(note.text, request=request)

    def _by_model(self, model: ChatModel, request: SummaryRequest, terms: _Job) -> tuple[Summary, Audit]:
        from memory_service.compaction.model_summary import summarize

        audits: list[tuple[str, Audit, PromptReading]] = []
        headings, pins = terms.rules.headings, terms.pins
        source = SourceTerms(request)

        def audit_of(text: str, reading: PromptReading) -> Audit:
            return _audit_text(text, request=request, headings=headings, pins=pins, reading=reading)

        def faults(text: str, reading: PromptReading) -> tuple[str, ...]:
            audits.append((text, audit_of(text, reading), reading))
            return audit_problems(audits[-1][1], texts_in(request.language))

        def mend(text: str, reading: PromptReading) -> MendedSummary:
            keep = terms.rules.keep_unverified
            return mend_summary(text, audit_of(text, reading), request, source=source, keep=keep)

        summary = summarize(
            request,
            terms.rules,
            model,
            window_tokens=model.context_window() or terms.window_tokens,
            check=faults,
            mend=mend,
            amend=terms.labels.known_text if terms.labels else str,
            fallbacks=self._fallbacks,
            timeout_seconds=self._timeout_seconds,
            cancelled=terms.cancelled,
            spending=terms.spent,
        )
        summary = self._complete_by_rules(summary, request, terms)
        text, audit, reading = audits[-1]
        return summary, audit if summary.text == text else audit_of(summary.text, reading)

    def _complete_by_rules(self, summary: Summary, request: SummaryRequest, terms: _Job) -> Summary:
        """A model's summary, with lines of rules for what it left out or could not read, where rules may stand in."""
        if terms.fallback != "extractive" or not (summary.unread or (summary.sparse and terms.rules.headings)):
            return summary
        source, headings, text, notes = request, terms.rules.headings, summary.text, list(summary.notes)
        if summary.unread:
            source = replace(
                request, messages=_within(request.messages, summary), prefix=_within(request.prefix, summary)
            )
        by_rules, _ = self._by_rules(replace(source, previous=""), terms)
        text, count = with_lines_of_rules(text, by_rules.text, headings, request, only_empty=not summary.unread)
        if count:
            notes.append(f"Lines that rules found were put beside what the model wrote: {count}.")
        return replace(summary, text=text, notes=tuple(notes))

    def _by_rules(self, request: SummaryRequest, terms: _Job, *notes: str) -> tuple[Summary, Audit]:
        from memory_service.compaction.extractive import extract

        if request.identifier_policy == "anonymize":
            # Done before: nothing has to be left out for it.
            request = replace(request, identifier_policy="preserve")
        summary = ornament("statements", None, extract, request, embedder=self._embedder)
        if summary is None:
            note = with_note(request, "unreadable", window_tokens=terms.window_tokens)
            return note, _audit_text(note.text, request=request)
        audit = _audit_text(summary.text, request=request, pins=terms.pins)
        no_text = texts_in(request.language).nothing
        text = ornament("grounding", summary.text, drop_ungrounded, summary.text, audit, no_text)
        return replace(summary, text=text, notes=(*summary.notes, *notes)), audit


def _within(messages: tuple[Numbered, ...], summary: Summary) -> tuple[Numbered, ...]:
    """Messages that a summary could not read."""
    return tuple(message for message in messages if any(first <= message.seq <= last for first, last in summary.unread))


def _audit_text(text: str, **terms: Any) -> Audit:
    """Findings about a summary; none where it could not be checked, as the count of readers that failed tells."""
    return ornament("grounding", Audit(), audit_summary, text, **terms)


def _rules(preset: Preset, compaction_options: CompactionOptions) -> SummaryRules:
    """Summary rules of the preset; a hook's prompt may ask for other sections, or for none."""
    if compaction_options.provided.prompt:
        return replace(preset.summary, headings=())
    if preset.safeguard or compaction_options.trigger == "safeguard":
        return replace(preset.summary, headings=SAFEGUARD_HEADINGS)
    return preset.summary


def _summariser_window(preset: Preset, window_tokens: int) -> int:
    """The window of a model of which nothing is known: that of the session, where one call has to read everything."""
    tokens = preset.summariser_window_tokens
    return max(tokens, window_tokens) if preset.summary.one_call else tokens


def _escape_summary(summary: Summary, request: SummaryRequest) -> Summary:
    """The summary as it may stand in a checkpoint; what escaping adds to it does not make it longer than asked for."""
    text, target_tokens = escape_frames(summary.text), request.target_tokens
    if text == summary.text or summary.method == "hook" or count_tokens(text) <= target_tokens:
        return replace(summary, text=text)
    return replace(summary, text=clip_sections(text, target_tokens, texts_in(request.language)))


def _by_hook(text: str) -> Summary:
    note = "A hook supplied the summary; it stands as it was given, without secrets, and was not checked."
    return Summary(text=redact(text), method="hook", prompt_version="hook", notes=(note,))


def _request(
    state: Conversation,
    plan: Plan,
    messages: tuple[Numbered, ...],
    prefix: tuple[Numbered, ...],
    ledger: tuple[LedgerEntry, ...],
    compaction_options: CompactionOptions,
) -> SummaryRequest:
    return SummaryRequest(
        messages=messages,
        dropped=sum(message.seq <= plan.dropped_upto for message in messages),
        prefix=prefix,
        # Summaries of other presets and of hooks, and what people wrote into a log, were never redacted.
        previous=redact(state.head.summary),
        ledger=ledger,
        target_tokens=plan.summary_tokens,
        instructions=redact(compaction_options.instructions),
        identifier_policy=compaction_options.identifier_policy,
        identifier_instructions=compaction_options.instructions
        if compaction_options.identifier_policy == "custom"
        else "",
        prompt=compaction_options.provided.prompt,
        language=newest_language(state),
    )


def _anonymous(request: SummaryRequest, labels: Labels) -> SummaryRequest:
    """The request without identifiers: no model is sent one, so that none can write one."""
    return replace(
        request,
        previous=labels.text(request.previous),
        ledger=labels.entries(request.ledger),
        messages=tuple(map(labels.message, request.messages)),
        prefix=tuple(map(labels.message, request.prefix)),
    )


def _shorter(content: _Content, excess_tokens: int) -> _Content | None:
    """Content with a summary that is shorter by so much; None where too little would be left of it."""
    summary = content.summary
    if summary is None:
        return None
    # Windows count digits and names for more than characters do.
    tokens = count_tokens(summary.text) - excess_tokens - _SPARE_TOKENS
    if tokens < _LEAST_SUMMARY_TOKENS:
        return None
    text = clip_sections(summary.text, tokens, texts_in(content.language))
    return replace(content, summary=replace(summary, text=text))


def _check_draft(draft: CompactionDraft, view: View, state: Conversation, budget: ContextBudget) -> CompactionDraft:
    """The draft; without its record where that is not worth committing."""
    refusal = _refusal(draft.made, draft.view, budget) if draft.made is not None else ""
    if not refusal:
        return draft
    plan = replace(draft.plan, stage="none", reason=refusal)
    return replace(draft, plan=plan, made=None, view=view, head=state.head)


def _refusal(compaction: Compaction, after: View, budget: ContextBudget) -> str:
    """Reason why a compaction is not worth committing; empty if it is."""
    usable = int(budget.usable_tokens / budget.scale)
    if after.tokens > usable:
        raise Incompressible(
            f"The view takes {after.tokens} tokens after a compaction, and {usable} fit. Shorten the system prompt or "
            "the pins, or use a model with a larger window.",
            parts={"system": after.system_tokens, "summary": after.summary_tokens, "last_unit": after.tail_tokens},
        )
    if compaction.tokens_after > compaction.tokens_before * (1 - LEAST_PROGRESS):
        before, tokens = compaction.tokens_before, compaction.tokens_after
        return f"It would not help: {before} tokens before, {tokens} after. Nothing was changed."
    return ""
