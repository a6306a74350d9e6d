"""Properties of compactions and of blocks at their borders: what is exactly as large, as old or as many as allowed."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from typing import Any

from memory_service.compaction.audit import audit_summary
from memory_service.compaction.checkpoint import frame_tokens
from memory_service.compaction.cut import covered_by
from memory_service.compaction.model_summary import summarize
from memory_service.compaction.note import with_note
from memory_service.compaction.plan import plan_compaction
from memory_service.compaction.presets import PRESETS, SummaryRules
from memory_service.compaction.pruning import _cache_ttl
from memory_service.compaction.record import Head, PinRecord
from memory_service.compaction.summary import SummaryRequest
from memory_service.compaction.view import ViewShape, project, with_head
from memory_service.llm.base import ChatMessage
from memory_service.memories import block
from memory_service.memories.block import Offer, pack
from memory_service.messages.shapes import Message, is_system, text_of
from memory_service.messages.sizes import MESSAGE_TOKENS, count_tokens
from memory_service.testing import ScriptedModel
from tests.memory_service.compaction.talk import calls, log, result, says, user
from tests.memory_service.compaction.test_plan import DEFAULT, budget, snapshot, talk
from tests.memory_service.compaction.test_view import session
from tests.memory_service.rooms import words


def check_no_system_message_is_covered() -> None:
    """A system message is in neither half of what a cut covers, also where it splits a turn."""
    later: Message = {"role": "system", "content": "Be brief."}
    for at in range(1, 6):
        tail = log(user("a"), later, says("b"), user("c"), later, says("d"), says("e"))
        covered, prefix = covered_by(tail, at)
        assert not any(is_system(each.message) for each in (*covered, *prefix))


def check_the_newest_rules_are_quoted() -> None:
    """Of more rules than an audit asks for, the newest have to be quoted."""
    messages = log(*(user(f"Never deploy service number {at} on Fridays.") for at in range(30)))
    unquoted = audit_summary("Nothing.", request=SummaryRequest(messages=messages)).unquoted
    assert "Never deploy service number 29 on Fridays." in unquoted
    assert "Never deploy service number 0 on Fridays." not in unquoted


def check_the_report_of_a_split_turn_is_whole() -> None:
    """However long the body is, the report of the turn's beginning stands in the summary as it was written."""
    report = "\n".join(f"The turn began with step {at}." for at in range(12))
    body = "\n".join(f"- Fact {at} of the body stands here." for at in range(33))

    def answer(messages: Sequence[ChatMessage]) -> str:
        return report if "the beginning of one turn" in messages[-1]["content"] else body

    request = SummaryRequest(messages=log(user(words(900))), prefix=log(user(words(300)), first=9), target_tokens=300)
    model = ScriptedModel(*[answer] * 8)
    made = summarize(request, SummaryRules(headings=()), model, window_tokens=32_000)
    assert report in made.text and count_tokens(made.text) <= 300


def check_a_note_keeps_its_room() -> None:
    """After any number of failures a summary with a note is as long as asked for at most."""
    previous = "\n".join(f"- Fact {at} of the summary before." for at in range(60))
    for first in range(1, 60, 6):
        request = SummaryRequest(messages=log(*[user("x")] * 6, first=first), previous=previous, target_tokens=120)
        previous = with_note(request, "timeout", window_tokens=8_000).text
        assert count_tokens(previous) <= 120


def check_at_exactly_the_threshold_there_is_a_plan() -> None:
    """Where pressure says hard, a compaction of that trigger has something to do."""
    tail, limits = talk(5_000), budget()
    spare = limits.hard_tokens - sum(each.tokens for each in tail)
    for more, stage in ((-1, "none"), (0, "summary")):
        made = snapshot(tail, fixed_tokens=spare + more)
        assert plan_compaction(made, DEFAULT, limits, trigger="threshold").stage == stage


def check_a_request_that_stays_is_counted_once() -> None:
    """A tail that begins with the request has none in the checkpoint."""
    tail = log(*(says(words(300)) for _ in range(18)), user(words(900)), *(says(words(100)) for _ in range(4)))
    plan = plan_compaction(snapshot(tail), DEFAULT, budget())
    assert plan.tail_start == 19
    kept = sum(each.tokens for each in tail if each.seq >= plan.tail_start)
    fixed = 20 + plan.summary_tokens + plan.ledger_tokens + frame_tokens() + MESSAGE_TOKENS
    assert plan.tokens_after == fixed + kept


def check_a_cache_is_cold_at_its_age() -> None:
    """At exactly the time that a provider keeps its cache, the cache is gone."""
    now = dt.datetime(2026, 11, 20, 9, tzinfo=dt.UTC)
    rules = PRESETS["openclaw"].pruning
    said = [user("go"), calls("a"), result("a", "x" * 100_000), *(says("ok") for _ in range(4))]
    messages = log(*said)
    for seconds, pruned in ((rules.ttl_seconds - 1, False), (rules.ttl_seconds, True)):
        used = now - dt.timedelta(seconds=seconds)
        made = _cache_ttl(messages, rules, window_tokens=40_000, tokens=25_000, now=now, last_used_at=used)
        assert bool(made.cleared) == pruned


def check_a_result_before_exactly_the_last_replies_is_pruned() -> None:
    """With as many replies as stay, what stands before the first of them is old."""
    rules = PRESETS["openclaw"].pruning
    now = dt.datetime(2026, 11, 20, 9, tzinfo=dt.UTC)
    replies = [calls("a"), *(says("ok") for _ in range(rules.keep_last_assistants))]
    said = [user("go"), replies[0], result("a", "x" * 100_000), *replies[1:]]
    made = _cache_ttl(log(*said), rules, window_tokens=40_000, tokens=25_000, now=now, last_used_at=None)
    assert made.cleared
    early = log(user("go"), result("a", "x" * 100_000), *replies[1:])
    made = _cache_ttl(early, rules, window_tokens=40_000, tokens=25_000, now=now, last_used_at=None)
    assert made.cleared


def check_a_block_is_never_over_its_budget() -> None:
    """Whatever days and line numbers are beside each other, the rendered block decides."""
    for seed in range(4_000):
        chance = random.Random(seed)
        line, offers = chance.choice((1, 90, 95, 985, 995)), list[Offer]()
        for ordinal in range(chance.randint(1, 8)):
            end = line + chance.randint(0, 5)
            if chance.random() < 0.8:
                text, day = "x" * chance.randint(1, 12), chance.choice(("", "2026-11-20", "2026-11-21"))
                offers.append(
                    Offer(
                        path=f"sessions/{chance.choice('ab')}.jsonl",
                        ordinal=ordinal,
                        start_line=line,
                        end_line=end,
                        text=text,
                        score=chance.uniform(-3, 3),
                        day=day,
                    )
                )
            line = end + chance.randint(1, 2)
        offers = list({(each.path, each.ordinal): each for each in offers}.values())
        limit = chance.randint(25, 80)
        assert count_tokens(pack(sorted(offers, key=lambda each: -each.score), limit).block) <= limit, seed


def check_a_pin_at_the_border_stands_once() -> None:
    """A pinned message stands in the view once, wherever the tail begins."""
    said = [user(f"The {at}. fact.") for at in range(1, 7)]
    for pinned in range(1, 7):
        state = session(*map(dict, said), then=(PinRecord(pin_id="p", target=pinned),))
        for start in range(2, 7):
            head = Head(seq=9, tail_start=start, summary="S", rounds=1, upto=6)
            view = project(with_head(state, head), ViewShape(window_tokens=8_000))
            assert "\n".join(map(text_of, view.messages)).count(f"The {pinned}. fact.") == 1, (pinned, start)


def check_thinking_of_the_last_turn_stays() -> None:
    """Of what is compacted the thinking goes, but for the last turn's, wherever the tail begins in it."""
    signed = {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}

    def thinks(message: Message) -> dict[str, Any]:
        return {**message, **signed}

    last = [thinks(calls("a")), result("a", "1"), thinks(calls("b")), result("b", "二"), thinks(says("done"))]
    said = [user("a"), thinks(says("b")), user("c"), *last]
    for start in range(1, len(said) + 1):
        head = Head(seq=9, tail_start=start, summary="S", rounds=1, upto=len(said))
        view = project(with_head(session(*map(dict, said)), head), ViewShape(window_tokens=8_000))
        expected = sum("thinking_blocks" in each for each in said[max(start, 4) - 1 :])
        assert sum("thinking_blocks" in each for each in view.messages) == expected, start


def check_costs_follow_both_neighbours() -> None:
    """A passage that is left costs what it costs beside the chosen ones, those before it and those behind it."""
    sizes = [400 if at % 2 == 0 else 4 for at in range(12)]
    offers = [
        Offer(path="a.md", ordinal=at, start_line=2 * at, end_line=2 * at, text="x" * size, score=-float(size))
        for at, size in enumerate(sizes)
    ]
    picker = block._Picker(offers, 4 * 90)
    picked = picker.run()
    left = [at for at in range(len(offers)) if at not in picked]
    assert left and picked
    assert [int(picker._costs[at]) for at in left] == [picker._cost(at) for at in left]


CHECKS = (
    check_a_pin_at_the_border_stands_once,
    check_thinking_of_the_last_turn_stays,
    check_costs_follow_both_neighbours,
    check_no_system_message_is_covered,
    check_the_newest_rules_are_quoted,
    check_the_report_of_a_split_turn_is_whole,
    check_a_note_keeps_its_room,
    check_at_exactly_the_threshold_there_is_a_plan,
    check_a_request_that_stays_is_counted_once,
    check_a_cache_is_cold_at_its_age,
    check_a_result_before_exactly_the_last_replies_is_pruned,
    check_a_block_is_never_over_its_budget,
)
