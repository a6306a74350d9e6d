from __future__ import annotations

import json
import logging
from collections.abc import Callable

import pytest

from memory_service.errors import Conflict, InvalidRequest, NotFound, UpstreamFailed
from memory_service.hooks import Instructions, Intent, Refused
from memory_service.messages.reading import read_messages
from memory_service.messages.writing import to_openai
from memory_service.runtime.base import CompactionCall
from memory_service.runtime.models import Models
from memory_service.schemas.compaction import CompactionReceipt, OverflowRequest, StatelessRequest
from memory_service.testing import ScriptedModel
from tests.memory_service.rooms import Room, S, W, refused_by_providers, says, summary, user, words

Rooms = Callable[..., Room]


def test_a_plan_tells_what_an_apply_does_and_changes_nothing(room: Room) -> None:
    room.talk(30, 100)
    before, view = room.bytes(), room.view()
    plan = room.compact(mode="plan")
    assert (plan.applied, plan.compaction_id, plan.mode, plan.stage) == (False, None, "plan", "summary")
    assert room.bytes() == before and room.view() == view
    made = room.compact()
    assert (made.first_kept, made.covered, made.covered_messages) == (
        plan.first_kept,
        plan.covered,
        plan.covered_messages,
    )
    assert made.applied and made.active and made.tokens_after <= plan.tokens_after
    assert made.tokens_after == room.view_tokens() and 0 < made.ratio < 0.6


@pytest.mark.parametrize("chinese", [False, True])
def test_a_preview_shows_the_view_that_would_be(room: Room, chinese: bool) -> None:
    room.talk(30, 100, chinese=chinese)
    before = room.bytes()
    shown = room.compact(mode="preview")
    assert shown.messages is not None and refused_by_providers(read_messages(shown.messages)) == []
    assert not shown.applied and shown.compaction_id is None and room.bytes() == before and room.events() == []
    room.compact()
    assert to_openai(room.view()) == shown.messages


def test_a_receipt_says_all_and_is_kept(rooms: Rooms) -> None:
    room = rooms(context_window=8_000)
    room.say(user("The config is /srv/app/conf.toml."), says("ok"))
    room.talk(30, 100)
    made = room.compact(instructions="look at paths")
    assert (made.method, made.trigger, made.preset, made.window_tokens, made.window_source) == (
        "extractive", "manual", "default", 8_000, "settings",
    )  # fmt: skip
    assert made.summary and made.duration_ms >= 0 and made.created_at and made.covered == (2, made.first_kept - 1)
    assert any(entry.text == "/srv/app/conf.toml" for entry in made.ledger) and made.audit
    again = rooms(context_window=8_000)
    kept = again.sessions.compactions.receipt(S, made.compaction_id or "")
    assert (kept.summary, kept.first_kept, kept.tokens_before, kept.tokens_after, kept.ledger) == (
        made.summary, made.first_kept, made.tokens_before, made.tokens_after, made.ledger,
    )  # fmt: skip
    with pytest.raises(NotFound):
        again.sessions.compactions.receipt(S, "c999")
    with pytest.raises(NotFound):
        again.sessions.compactions.compact("nobody", CompactionCall())


def test_without_news_it_is_a_no_op(room: Room) -> None:
    room.talk(30, 100)
    room.compact()
    before = room.bytes()
    again = room.compact()
    assert not again.applied and again.stage == "none" and "Nothing was said" in again.reason
    assert room.bytes() == before


def test_undo_gives_the_exact_view_and_keeps_what_was_said_since(room: Room) -> None:
    room.talk(30, 100)
    views = [room.view()]
    ids = list[str | None]()
    for number in range(2):
        ids.append(room.compact(force=True).compaction_id)
        views.append(room.view())
        room.talk(8, 100, first=30 + 8 * number)
    room.undo(ids[1])
    assert room.view()[: len(views[1])] == views[1] and len(room.view()) == len(views[1]) + 32
    room.undo(ids[0])
    assert room.view()[: len(views[0])] == views[0] and len(room.view()) == 2 * 46
    assert [past.active for past in room.sessions.compactions.past(S)] == [False, False]
    with pytest.raises(Conflict, match="undone before"):
        room.undo(ids[0])
    with pytest.raises(NotFound):
        room.undo("c1")


def test_undo_of_an_older_one_takes_the_later_ones_with_it(room: Room) -> None:
    room.talk(30, 100)
    before = room.view()
    first = room.compact(force=True)
    room.talk(8, 100, first=30)
    room.compact(force=True)
    room.undo(first.compaction_id)
    assert room.view()[: len(before)] == before
    assert [past.compaction_id for past in room.sessions.compactions.past(S)][-1] == first.compaction_id


def test_the_log_only_grows(room: Room) -> None:
    room.talk(30, 100)
    for step in range(6):
        before = room.bytes()
        if step % 2:
            room.undo(room.sessions.compactions.past(S)[0].compaction_id)
        else:
            room.compact(force=True)
        assert room.bytes().startswith(before) and len(room.bytes()) > len(before)
    assert len(room.raw_log()) == 60


def test_a_failure_changes_nothing_and_says_so(rooms: Rooms) -> None:
    model = ScriptedModel(UpstreamFailed("SECRET prompt text", kind="timeout"))
    room = rooms(context_window=8_000, model=model, compaction={"fallback": "none"}, flush={"mode": "off"})
    room.talk(30, 100)
    before, view = room.bytes(), room.view()
    with pytest.raises(UpstreamFailed):
        room.compact()
    assert room.bytes() == before and room.view() == view
    with room.sessions.events(S, after_id=0) as news:
        start, end = news.take()
    assert (start.kind, end.kind, dict(end.fields)["outcome"]) == (
        "compaction_start",
        "compaction_end",
        "upstream_failed",
    )


def test_a_models_summary_is_checked_against_what_was_said(rooms: Rooms) -> None:
    invented = summary("The database is at /srv/invented/path.db and the ticket is INC-99999.")
    room = rooms(context_window=8_000, model=ScriptedModel(invented, invented), flush={"mode": "off"})
    room.talk(30, 100)
    made = room.compact()
    assert "/srv/invented" not in room.view_text() and "INC-99999" not in room.view_text()
    assert made.method in ("extractive", "model")


def test_after_three_failures_it_waits_for_news(rooms: Rooms) -> None:
    model = ScriptedModel(*[UpstreamFailed("no", kind="other")] * 8)
    room = rooms(context_window=8_000, model=model, compaction={"fallback": "none"}, flush={"mode": "off"})
    room.talk(27, 100)
    for _ in range(5):
        made = room.context(memory_budget_tokens=0)
        assert made.compaction is None
    assert len(model.requests) == 3, "three strikes"
    assert made.degraded == ()
    room.talk(2, 100, first=27)
    assert "compaction" in room.context(memory_budget_tokens=0).degraded[0] and len(model.requests) == 4


def test_hooks_may_refuse_or_add_instructions(rooms: Rooms) -> None:
    model = ScriptedModel(summary())
    room = rooms(context_window=8_000, model=model, compaction={"instructions": "看数字"}, flush={"mode": "extractive"})
    room.talk(30, 100)
    answers: list[Refused | Instructions] = [Refused(reason="not now"), Instructions(text="look at dates")]

    @room.service.hooks.before_compaction
    def hook(intent: Intent) -> Refused | Instructions:
        assert intent.session_id == S and intent.fields["trigger"] == "manual"
        return answers.pop(0)

    with pytest.raises(Conflict, match="not now"):
        room.compact()
    assert room.events() == [] and not room.sessions.compactions.past(S)
    room.compact(instructions="look at names")
    asked = json.dumps(model.requests, ensure_ascii=False)
    assert all(words in asked for words in ("看数字", "look at names", "look at dates"))


def test_events_tell_begin_and_end(room: Room) -> None:
    room.talk(30, 100)
    made = room.compact()
    room.undo(made.compaction_id)
    assert room.events() == ["flush", "compaction_start", "compaction_end", "undo"]


def test_another_preset_may_be_named_for_once(room: Room) -> None:
    room.talk(30, 100)
    made = room.compact(preset="turns", force=True)
    assert made.preset == "turns" and "[COMPACTED_CONTEXT]" in room.view_text()
    assert room.sessions.store.summary(S).preset == "default"


def test_a_long_request_stays_word_for_word_through_rounds(room: Room) -> None:
    request = "请求：" + words(150, chinese=True) + " 结束"
    room.say(user(request))
    for number in range(3):
        room.say(*(says(f"step {number}-{at} " + words(150)) for at in range(8)))
        room.compact(force=True)
        assert request in room.view_text()


def test_what_a_judge_found_stands_in_the_log_for_whoever_reads_it_without_one(rooms: Rooms) -> None:
    room = rooms(context_window=8_000, embedding_model="auto")
    room.say(user("Keep the old invoices for seven years."), says("Noted."))
    room.talk(30, 100)
    room.compact(force=True)
    found = room.sessions.snapshot(S).state.head.ledger
    assert "Keep the old invoices for seven years." in [entry.text for entry in found if entry.kind == "rule"]
    room.service.close()
    with Room(room.home, context_window=8_000, embedding_model="none") as again:
        assert again.sessions.snapshot(S).state.head.ledger == found


def _named(*names: str) -> Models:
    """Models by their names, beside one of the service."""
    made = {name: ScriptedModel(summary(f"Written by {name}."), name=name) for name in names}
    own = ScriptedModel(summary("Written by the service's."), name="openai/own")
    return Models(summaries=own, memories=own, named=made.__getitem__)


def test_a_session_and_a_call_name_the_model_of_their_summaries(rooms: Rooms) -> None:
    models = _named("openai/cheap", "openai/best")
    room = rooms(context_window=8_000, llm_model="openai/own", models=models, flush={"mode": "off"})
    room.talk(30, 100)
    room.sessions.store.update(S, {"settings": {"compaction": {"model": "openai/cheap"}}})
    assert room.compact(force=True, model="openai/best").model == "openai/best"
    room.talk(30, 100)
    assert room.compact(force=True).model == "openai/cheap"


def test_messages_without_a_session_name_the_model_of_their_summary(rooms: Rooms) -> None:
    room = rooms(llm_model="openai/own", models=_named("openai/cheap"))
    said = [{"role": ("user", "assistant")[at % 2], "content": words(100)} for at in range(60)]
    asked = StatelessRequest(messages=said, context_window=8_000, summary_model="openai/cheap")
    assert room.service.compact_messages(asked).receipt.model == "openai/cheap"
    asked = StatelessRequest(messages=said, context_window=8_000)
    assert room.service.compact_messages(asked).receipt.model == "openai/own"


def test_a_model_is_named_in_vain_where_none_is_called(room: Room) -> None:
    room.talk(30, 100)
    with pytest.raises(InvalidRequest, match="no llm_model is set"):
        asked = StatelessRequest(messages=[{"role": "user", "content": "Hello"}], summary_model="openai/cheap")
        room.service.compact_messages(asked)
    with pytest.raises(InvalidRequest, match="no llm_model is set"):
        room.sessions.store.update(S, {"settings": {"compaction": {"model": "openai/cheap"}}})
    with pytest.raises(InvalidRequest, match="no llm_model is set"):
        room.compact(model="openai/cheap")


def test_a_receipt_has_chunks_and_the_reason_of_the_provider_and_the_log_has_both_ends(
    rooms: Rooms, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "memory_service.compactions")
    refused = UpstreamFailed("It failed.", kind="other", reason="The region is closed today.")
    room = rooms(context_window=8_000, models=Models(summaries=ScriptedModel(refused, summary("All is well."))))
    room.talk(30, 100)
    failed = room.compact()
    assert failed.method == "extractive" and (failed.chunk_ratio, failed.parts) == (None, 0)
    assert "The provider said: The region is closed today." in failed.notes
    assert "closed today" not in json.dumps(room.view())
    room.talk(30, 100)
    made = room.compact(force=True)
    assert made.method == "model" and made.parts == 1 and made.chunk_ratio is not None and 0 < made.chunk_ratio < 1
    kept = room.sessions.compactions.receipt(S, made.compaction_id or "")
    assert (kept.chunk_ratio, kept.parts) == (made.chunk_ratio, made.parts)
    begun, bad, _, good = [record.getMessage() for record in caplog.records if record.name.endswith("compactions")]
    assert begun.startswith(f"compaction of {W}/{S} begins: trigger manual")
    assert "The region is closed today." in bad and "1 calls (1 failed)" in bad
    assert "summary by model" in good and "All is well" not in good


FACT = "My name is Omar and I always want answers in French."


def _compacted_by_hand(room: Room) -> CompactionReceipt | None:
    return room.compact(force=True)


def _compacted_by_command(room: Room) -> CompactionReceipt | None:
    room.say(user("/compact"))
    return room.context().compaction


def _compacted_by_overflow(room: Room) -> CompactionReceipt | None:
    return room.sessions.recover(S, OverflowRequest(error="prompt is too long: 9000 tokens > 8000 maximum")).compaction


BY = pytest.mark.parametrize("by", [_compacted_by_hand, _compacted_by_command, _compacted_by_overflow])


@BY
def test_what_lasts_is_written_down_before_every_compaction(
    rooms: Rooms, by: Callable[[Room], CompactionReceipt | None]
) -> None:
    room = rooms(context_window=64_000)
    room.say(user(FACT), says("D'accord."))
    room.talk(10, 400)
    made = by(room)
    assert made is not None and made.applied and made.degraded == []
    assert room.days.count("answers in French") == 1
    assert room.sessions.snapshot(S).state.flushed_to >= 22
    # What was flushed once is not flushed again, and neither is anything where nothing is summarised.
    room.undo(made.compaction_id)
    assert room.compact(force=True).applied and room.days.count("answers in French") == 1


@BY
def test_a_flush_that_fails_is_named_and_the_compaction_is_made(
    rooms: Rooms, by: Callable[[Room], CompactionReceipt | None]
) -> None:
    # Without a model, this mode cannot work.
    room = rooms(context_window=64_000, flush={"mode": "model"})
    room.say(user(FACT), says("D'accord."))
    room.talk(10, 400)
    made = by(room)
    assert made is not None and made.applied and room.days == ""
    assert [line for line in made.degraded if line.startswith("flush: ")]


def test_flushes_that_are_off_are_off_before_a_compaction_too(rooms: Rooms) -> None:
    room = rooms(context_window=64_000, flush={"mode": "off"})
    room.say(user(FACT), says("D'accord."))
    room.talk(10, 400)
    assert room.compact(force=True).applied and room.days == ""


@pytest.mark.parametrize("mode", ["plan", "preview"])
def test_a_compaction_that_is_only_looked_at_flushes_nothing(rooms: Rooms, mode: str) -> None:
    room = rooms(context_window=64_000)
    room.say(user(FACT), says("D'accord."))
    room.talk(10, 400)
    before = room.bytes()
    assert not room.compact(force=True, mode=mode).applied
    assert room.bytes() == before and room.days == ""
