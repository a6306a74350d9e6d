"""What hooks may say, and that none of them breaks the work."""

from __future__ import annotations

import functools

import pytest

from memory_service.hooks import HookedWork, Hooks, Instructions, Intent, Provided, Refused, Verdict
from memory_service.schemas.sessions import SessionEvent
from tests.memory_service.storage.in_memory_records import event_hub

SECRET = "消息的正文"
COMPACTION = Intent(work="compaction", workspace="default", session_id="支持", fields={"tokens_before": 9000})
FLUSH = Intent(work="flush", workspace="default", session_id="支持")


def test_without_hooks_there_is_nothing_to_say() -> None:
    assert Hooks().ask(COMPACTION) == Verdict()
    assert Hooks().tell("flush", event_hub().publish("default", "flush", "支持")) == ()


def test_hooks_see_what_is_about_to_be_done_and_add_instructions() -> None:
    hooks, seen = Hooks(), list[Intent]()

    @hooks.before_compaction
    def keep_names(intent: Intent) -> Instructions:
        seen.append(intent)
        return Instructions("保留所有名字。")

    hooks.before_compaction(lambda intent: seen.append(intent))
    hooks.before_compaction(lambda intent: Instructions("Keep file names."))
    assert hooks.ask(COMPACTION) == Verdict(instructions="保留所有名字。\n\nKeep file names.")
    assert seen == [COMPACTION, COMPACTION]
    assert hooks.ask(FLUSH) == Verdict()


def test_of_what_hooks_provide_the_last_word_counts() -> None:
    hooks = Hooks()
    hooks.before_compaction(lambda intent: Provided(prompt="Sum up.", summary="一", continue_note=False))
    hooks.before_compaction(lambda intent: Instructions("Keep file names."))
    hooks.before_compaction(lambda intent: Provided(summary=" 二 "))
    verdict = hooks.ask(COMPACTION)
    assert verdict.provided == Provided(prompt="Sum up.", summary="二", continue_note=False)
    assert verdict.instructions == "Keep file names." and verdict.failures == ()


@pytest.mark.parametrize("wrong", [Provided(prompt=7), Provided(summary=None), Provided(continue_note="no")])  # type: ignore[arg-type]
def test_what_cannot_be_used_is_passed_over_and_named(wrong: Provided) -> None:
    hooks = Hooks()
    hooks.before_compaction(lambda intent: wrong)
    hooks.before_flush(lambda intent: Provided(prompt="Look for names."))
    assert hooks.ask(COMPACTION).provided == Provided()
    assert "gave a Provided that cannot be used" in hooks.ask(COMPACTION).failures[0]
    assert "before_flush, gave a Provided" in hooks.ask(FLUSH).failures[0], "a flush has none of that"


def test_the_first_veto_counts_and_ends_the_asking() -> None:
    hooks, asked = Hooks(), list[str]()
    hooks.before_flush(lambda intent: Instructions("Be short."))
    hooks.before_flush(lambda intent: Refused("夜间不写"))
    hooks.before_flush(lambda intent: asked.append("third"))
    verdict = hooks.ask(FLUSH)
    assert verdict.refused == Refused("夜间不写")
    assert asked == []


def test_a_hook_that_fails_is_passed_over_and_named_without_its_text() -> None:
    hooks = Hooks()

    @hooks.before_compaction
    def broken(intent: Intent) -> None:
        raise ValueError(SECRET)

    hooks.before_compaction(lambda intent: Instructions("Go on."))
    hooks.before_compaction(lambda intent: SECRET)  # type: ignore[arg-type, return-value]
    hooks.before_compaction(functools.partial(broken))
    verdict = hooks.ask(COMPACTION)
    assert (verdict.refused, verdict.instructions) == (None, "Go on.")
    first, second, third = verdict.failures
    assert first.startswith("hooks: ") and "broken, a hook of before_compaction, raised ValueError" in first
    assert "gave a str" in second
    assert "partial" in third and "mend or remove" in third
    assert not any(SECRET in failure for failure in verdict.failures)


def test_failures_before_a_veto_are_told_with_it() -> None:
    hooks = Hooks()
    hooks.before_flush(lambda intent: Refused(str(1 // 0)))
    hooks.before_flush(lambda intent: Refused("no"))
    verdict = hooks.ask(FLUSH)
    assert verdict.refused == Refused("no") and "ZeroDivisionError" in verdict.failures[0]


@pytest.mark.parametrize("work", ["compaction", "flush"])
def test_all_are_told_afterwards_whoever_fails(work: HookedWork) -> None:
    hooks, told = Hooks(), list[SessionEvent]()
    event = event_hub().publish("default", "compaction_end", "支持", will_retry=False)
    add = hooks.after_compaction if work == "compaction" else hooks.after_flush

    @add
    def broken(event: SessionEvent) -> None:
        raise KeyError(SECRET)

    add(told.append)
    (failure,) = hooks.tell(work, event)
    assert f"a hook of after_{work}, raised KeyError" in failure and SECRET not in failure
    assert told == [event]
    assert hooks.tell("flush" if work == "compaction" else "compaction", event) == ()


def test_who_wants_to_stop_the_program_can() -> None:
    hooks = Hooks()

    @hooks.before_flush
    def stop(intent: Intent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hooks.ask(FLUSH)
