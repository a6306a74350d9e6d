"""Bugs that other systems had, each a small patch of ours: the invariants have to find every one.

`source` names the entry of the compaction reference's section 4, and the public issue that told of it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pytest

from memory_service.compaction import (
    chunked,
    compactor,
    cut,
    plan,
    plan_sizes,
    prune_steps,
    pruning,
    record,
    snapshot,
    view,
)
from memory_service.compaction.audit import Audit
from memory_service.compaction.checkpoint import Checkpoint, checkpoint_messages
from memory_service.compaction.compactor import Compactor
from memory_service.compaction.record import Compaction, Head
from memory_service.compaction.snapshot import Snapshot
from memory_service.compaction.summary import Summary, SummaryRequest
from memory_service.errors import UpstreamFailed
from memory_service.llm import transcript
from memory_service.llm.base import Completion
from memory_service.llm.token_anchor import Anchor, anchor_of
from memory_service.llm.validation import AnswerValidation, validate_answer
from memory_service.messages import repair
from memory_service.messages.shapes import Message, tool_calls_of
from memory_service.messages.sizes import Numbered, Usage
from memory_service.runtime import compactions, session
from memory_service.runtime import session_options as options
from memory_service.runtime.session import OpenSession, SessionState
from memory_service.sessions.records import Record
from memory_service.storage.files.jsonl_log import JsonlLog
from tests.properties import test_invariants as tests
from tests.properties.homes import Homes

Patch = pytest.MonkeyPatch
Run = Callable[[Homes], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A bug.

    Attributes:
        apply: Puts it into our code.
        killed_by: The invariants of which one has to break.
        scenarios: Where it shows.
        also: Tests beside the scenarios that show it.
    """

    apply: Callable[[Patch], None]
    killed_by: frozenset[str]
    source: str
    scenarios: tuple[str, ...] = ()
    also: tuple[Run, ...] = ()


def _set(owner: object, name: str, value: object) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(owner, name, value)


# -- 4.1 and 4.2: the task is lost, compaction never ends ---------------------------------------------------------


def _no_progress(patch: Patch) -> None:
    patch.setattr(plan, "LEAST_PROGRESS", -9.0)
    patch.setattr(plan_sizes, "LEAST_PROGRESS", -9.0)
    patch.setattr(compactor, "LEAST_PROGRESS", -9.0)
    patch.setattr(plan._Planner, "_is_settled", lambda self: False)


def _again_and_again(patch: Patch) -> None:
    made = snapshot.snapshot_of

    def never_settled(*arguments: Any, **named: Any) -> Snapshot:
        return replace(made(*arguments, **named), settled=False)

    patch.setattr(compactor, "snapshot_of", never_settled)


def _stale_usage(patch: Patch) -> None:
    def stale(counted: Iterable[tuple[int, Usage]], **named: Any) -> Anchor | None:
        return anchor_of(counted, **{**named, "changed_seq": 0})

    patch.setattr(options, "anchor_of", stale)


def _too_large(patch: Patch) -> None:
    patch.setattr(compactor, "_refusal", lambda *arguments: "")
    patch.setattr(plan._Planner, "_check_fits", lambda self, after: None)


# -- 4.3: providers refuse what comes out -------------------------------------------------------------------------


def _cut_anywhere(patch: Patch) -> None:
    def by_budget(messages: Sequence[Numbered], keep_tokens: int, **named: Any) -> int:
        total = 0
        for at in range(len(messages) - 1, -1, -1):
            total += messages[at].tokens
            if total > keep_tokens:
                return min(at + 1, len(messages) - 1)
        return 0

    patch.setattr(plan, "cut_by_tokens", by_budget)
    patch.setattr(plan_sizes, "cut_by_tokens", by_budget)


def _loose(kind: str) -> Callable[[Patch], None]:
    made = repair._loose_result

    def keeps(item: Any, *rest: Any) -> Iterator[Any]:
        found = list(made(item, *rest))
        if any(isinstance(each, repair.MessageRepair) and each.kind == kind for each in found):
            yield item
        else:
            yield from found

    return lambda patch: patch.setattr(repair, "_loose_result", keeps)


def _missing_results(patch: Patch) -> None:
    patch.setattr(repair, "_leave_open", lambda items: (each for each in items if each.stands_in_for is None))


def _arguments_sliced(patch: Patch) -> None:
    made = view._as_seen

    def sliced(each: Numbered, message: Message, *rest: Any, **named: Any) -> Numbered:
        shown = made(each, message, *rest, **named)
        calls = [
            {**call, "function": {**call["function"], "arguments": call["function"]["arguments"][:12]}}
            for call in tool_calls_of(shown.message)
        ]
        return replace(shown, message={**shown.message, "tool_calls": calls}) if calls else shown  # type: ignore[typeddict-item]

    patch.setattr(view, "_as_seen", sliced)


# -- 4.4: data is lost --------------------------------------------------------------------------------------------


def _window_at_the_record(patch: Patch) -> None:
    made = record.built_on

    def from_record(below: Head, compaction: Compaction, seq: int, *rest: Any) -> Head:
        # The next one begins behind this compaction, and not where this one's tail begins.
        head = made(below, compaction, seq, *rest)
        return replace(head, tail_start=max(seq, head.tail_start)) if compaction.base is not None else head

    patch.setattr(session, "built_on", from_record)


def _meanwhile_dropped(patch: Patch) -> None:
    made = OpenSession.commit

    def over_all(self: OpenSession, compaction: Compaction, on: SessionState) -> int:
        last = self.state().last_seq
        return made(self, replace(compaction, tail_start=last + 1, upto=last), on)

    patch.setattr(OpenSession, "commit", over_all)


def _error_as_summary(patch: Patch) -> None:
    made: Callable[..., tuple[Summary, Audit]] = Compactor._summary

    def told(self: Compactor, request: SummaryRequest, terms: Any) -> tuple[Summary, Audit]:
        try:
            return made(self, request, replace(terms, fallback="none"))
        except UpstreamFailed as error:
            text = f"Error generating summary: {error}"
            return Summary(text=text, method="model", prompt_version="1"), Audit()

    patch.setattr(Compactor, "_summary", told)


def _dropped_on_failure(patch: Patch) -> None:
    made: Callable[..., tuple[Summary, Audit]] = Compactor._summary

    def silent(self: Compactor, request: SummaryRequest, terms: Any) -> tuple[Summary, Audit]:
        try:
            return made(self, request, replace(terms, fallback="none"))
        except UpstreamFailed:
            return Summary(text=request.previous, method="note", prompt_version="1"), Audit()

    patch.setattr(Compactor, "_summary", silent)


def _last_tokens_alone(patch: Patch) -> None:
    """Only the end of what is thrown away is shown to the summariser."""
    made = compactor._request

    def trimmed(*arguments: Any, **named: Any) -> SummaryRequest:
        request = made(*arguments, **named)
        return replace(request, messages=request.messages[-3:])

    patch.setattr(compactor, "_request", trimmed)


def _log_rewritten(patch: Patch) -> None:
    made = OpenSession.commit

    def replaced(self: OpenSession, compaction: Compaction, on: SessionState) -> int:
        seq = made(self, compaction, on)
        self.trim(1)
        return seq

    patch.setattr(OpenSession, "commit", replaced)


def _ledger_lost(patch: Patch) -> None:
    made = record.built_on

    def forgets(*arguments: Any) -> Head:
        head = made(*arguments)
        return replace(head, ledger=()) if head.rounds > 1 else head

    patch.setattr(session, "built_on", forgets)
    patch.setattr(compactor, "built_on", forgets)


# -- 4.5 to 4.7: what runs, media, poisoned summaries -------------------------------------------------------------


def _dead_blocks(patch: Patch) -> None:
    def waits(messages: Sequence[Numbered], unit: Any, live: Collection[str]) -> bool:
        whole = [each.message for each in messages]
        answered = {message.get("tool_call_id") for message in whole}
        return any(call["id"] not in answered for call in tool_calls_of(whole[unit.first]))

    patch.setattr(cut, "_is_live", waits)


def _media_to_the_model(patch: Patch) -> None:
    made = JsonlLog._records

    def with_media(self: JsonlLog, found: Any, media: bool) -> Iterator[Record]:
        return made(self, found, True)

    patch.setattr(JsonlLog, "_records", with_media)
    patch.setattr(transcript, "media_label", lambda part, *_: json.dumps(part))
    patch.setattr(transcript, "_clean", lambda text: text)


def _answers_taken(**changes: Any) -> Callable[[Patch], None]:
    def taken(completion: Completion, **named: Any) -> AnswerValidation:
        return validate_answer(replace(completion, **changes), **named)

    return lambda patch: patch.setattr(chunked, "validate_answer", taken)


def _invented(patch: Patch) -> None:
    patch.setattr(compactor, "audit_problems", lambda *_: ())
    patch.setattr(compactor, "drop_ungrounded", lambda text, audit, nothing: text)


# -- 4.8 and more: pins, undo, growth, order ----------------------------------------------------------------------


def _pins_once(patch: Patch) -> None:
    made = view.checkpoint_of

    def forgets(state: SessionState, shape: view.ViewShape) -> Checkpoint:
        found = made(state, shape)
        return replace(found, pins=()) if state.head.rounds > 1 else found

    patch.setattr(view, "checkpoint_of", forgets)


def _system_once(patch: Patch) -> None:
    made = view._leads

    def forgets(each: Numbered, state: SessionState, *rest: Any) -> bool:
        return made(each, state, *rest) and state.head.rounds < 2

    patch.setattr(view, "_leads", forgets)


def _undo_to_nothing(patch: Patch) -> None:
    def undone(self: Any, seq: int, undo: Any) -> None:
        self._state = replace(self._state, head=Head(), changed_seq=seq)

    patch.setattr(session._Fold, "_undo", undone)


def _impure(patch: Patch) -> None:
    count = itertools.count()

    def counted(checkpoint: Checkpoint) -> list[Message]:
        made = checkpoint_messages(checkpoint)
        return [{**each, "content": f"{each['content']}{next(count)}"} for each in made]

    patch.setattr(view, "checkpoint_messages", counted)


def _summary_grows(patch: Patch) -> None:
    made = Compactor._by_rules

    def nested(self: Compactor, request: SummaryRequest, *rest: Any) -> tuple[Summary, Audit]:
        summary, audit = made(self, request, *rest)
        return replace(summary, text=f"{summary.text}\n{request.previous}"), audit

    patch.setattr(Compactor, "_by_rules", nested)


def _out_of_order(patch: Patch) -> None:
    made = view.project

    def newest_first(*arguments: Any, **named: Any) -> view.View:
        shown = made(*arguments, **named)
        if shown.messages[-1:] and shown.messages[-1]["role"] == "user" and len(shown.messages) > shown.lead + 1:
            lead = shown.lead
            return replace(shown, messages=(*shown.messages[:lead], shown.messages[-1], *shown.messages[lead:-1]))
        return shown

    patch.setattr(session, "project", newest_first)


def _rounds(homes: Homes) -> None:
    tests.i6_rounds(homes, "default", "rules", 12)


def _mutant(
    apply: Callable[[Patch], None], killed_by: str, source: str, *scenarios: str, also: tuple[Run, ...] = ()
) -> Mutant:
    return Mutant(apply=apply, killed_by=frozenset(killed_by.split()), source=source, scenarios=scenarios, also=also)


MUTANTS: Mapping[str, Mutant] = MappingProxyType(
    {
        "the last request is gone": _mutant(
            _set(view, "_request", lambda state, most_chars, texts: ("", 0)), "I5", "4.1, codex #25686", "one_turn"
        ),
        "no progress is enough": _mutant(_no_progress, "I6 I7", "4.2, opencode #27924", "small", "rounds"),
        "the same is compacted again": _mutant(_again_and_again, "I7", "4.2, nac #147", "rounds", "presets"),
        "a count from before": _mutant(_stale_usage, "I7", "4.2, oh-my-pi #8887, pi", "counted"),
        "no breaker": _mutant(
            _set(compactions, "_STRIKES", 1 << 30), "I7", "4.2, happyclaw #300", also=(tests.i7_breaker,)
        ),
        "what does not fit is committed": _mutant(_too_large, "I6", "4.2, codex #14120", "huge", "running"),
        "a call is parted from its result": _mutant(_cut_anywhere, "I3", "4.3, opencode #25774", "one_turn", "presets"),
        "results without a call": _mutant(_loose("orphan_result"), "I3", "4.3, OpenHarness #191, pi #4570", "odd"),
        "two results of a call": _mutant(_loose("duplicate_result"), "I3", "4.3, langchain #38352", "odd"),
        "calls without a result": _mutant(_missing_results, "I3", "4.3, graph-agent #85", "running"),
        "arguments are sliced": _mutant(_arguments_sliced, "I2 I3", "4.3, hermes #11762", "rounds"),
        "thinking outlives its prefix": _mutant(
            _set(view, "stripped_of_thinking", lambda message: message),
            "I3",
            "4.3, openclaw #90108, pi #9391",
            "rounds",
        ),
        "no user is left": _mutant(
            _set(repair, "_begin_with_user", lambda items, _: iter(items)),
            "I3",
            "4.3, hermes #58753",
            "presets",
            "open",
        ),
        "the window begins at the record": _mutant(_window_at_the_record, "I2", "4.4, pi #2608", "rounds"),
        "what comes meanwhile is dropped": _mutant(_meanwhile_dropped, "I2 I10", "4.4, openclaw #35522", "meanwhile"),
        "the error is the summary": _mutant(_error_as_summary, "I8", "4.4, langchain #39261", "failing"),
        "a failure drops the history": _mutant(_dropped_on_failure, "I8", "4.4, langchain #38867", "failing"),
        "a summary of the end alone": _mutant(_last_tokens_alone, "I2", "1.7 and 4.4, langchain #38867", "rounds"),
        "a stub without a handle": _mutant(
            _set(prune_steps, "stub_text", lambda *call, **_: "[Old tool result content cleared]"),
            "I2",
            "1.2 and 5.8, opencode",
            "pruned",
        ),
        "one stub for several results": _mutant(
            _set(pruning, "_sharing", lambda tail: frozenset()), "I2", "4.4, of our own first version", "sharing"
        ),
        "the log is replaced": _mutant(_log_rewritten, "I1", "4.10, codex #32287", "rounds"),
        "the ledger is lost": _mutant(_ledger_lost, "I2", "section 3, deja-vu #543", also=(tests.i2_ledger,)),
        "a late result is dropped": _mutant(
            _set(repair, "says_more", lambda reply, winner: False), "I2", "4.5, adk #5602", "late"
        ),
        "a running call is covered": _mutant(
            _set(cut, "_is_live", lambda *unit: False), "I4", "4.5, adk #4740", "running", "open"
        ),
        "a dead call blocks": _mutant(_dead_blocks, "I4", "4.5, adk #7236", also=(tests.i4_dead_calls,)),
        "media go to the summariser": _mutant(_media_to_the_model, "I8", "4.6, codex #32287", "media"),
        "a tool call is a summary": _mutant(
            _answers_taken(tool_calls_present=False, finish_reason="stop"), "I8", "4.7, senpi #1067", "failing"
        ),
        "half a summary is one": _mutant(_answers_taken(finish_reason="stop"), "I8", "1.11 and 4.7, hermes", "failing"),
        "inventions are kept": _mutant(_invented, "I8", "4.7, claude-code #20920, xagent #1235", "failing"),
        "pins are in the prompt alone": _mutant(
            _set(view, "pin_texts", lambda state: []), "I5", "4.8, opencode #8932", "pins"
        ),
        "pins are kept once": _mutant(_pins_once, "I5", "section 3, Governance Decay", "pins"),
        "the system message is kept once": _mutant(_system_once, "I5", "section 3, Governance Decay", "pins"),
        "an undo goes back to nothing": _mutant(_undo_to_nothing, "I9", "4.8, hermes #81130", "rounds"),
        "the view is no function of the log": _mutant(_impure, "I9", "1.9, adk #3487", "rounds"),
        "summaries nest": _mutant(_summary_grows, "I6", "section 3, opencrabs #1649", also=(_rounds,)),
        "whoever commits last wins": _mutant(
            _set(OpenSession, "commit", lambda self, made, on: self.log.append([made]).last_seq),
            "I10",
            "4.4, pi #7253",
            "rivals",
            also=(tests.i10_two_commits,),
        ),
        "the last message comes first": _mutant(_out_of_order, "I9 I10", "4.4, pi #179", "meanwhile"),
    }
)
