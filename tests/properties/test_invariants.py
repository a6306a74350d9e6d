"""The ten invariants of compaction, on sessions of every kind: random ones, and some written by hand.

Every play checks all ten after every operation, see `invariants`; the tests with a number hold what one operation
cannot show: twenty rounds, a breaker, an undo to the byte, two processes.
"""

from __future__ import annotations

import threading

import pytest
from hypothesis import HealthCheck, given, settings

from memory_service.compaction.draft import CompactionOptions
from memory_service.compaction.plan_sizes import CompactionTrigger
from memory_service.errors import Conflict, MemoryServiceError, UpstreamFailed
from memory_service.runtime.base import CompactionCall
from memory_service.runtime.session import OpenSession
from memory_service.schemas.compaction import CompactRequest
from memory_service.sessions.records import Undo as UndoRecord
from memory_service.storage.files.jsonl_log import JsonlLog
from tests.properties.homes import Homes
from tests.properties.invariants import CHECKS, hold_bounded, play
from tests.properties.scenarios import MORE, SCENARIOS, SYSTEM, TALK, WINDOW, calls, say
from tests.properties.sessions import FAILING, PRESET_NAMES, Compact, Count, Line, Script, Summariser, Undo, scripts
from tests.properties.shots import Broken, as_bytes, hold, shot_of
from tests.properties.world import SESSION, World

EXAMPLES = 90
ROUNDS = 20


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_invariants_hold_where_it_is_known_to_be_hard(name: str, homes_of_each: Homes) -> None:
    """I1 to I10."""
    script = SCENARIOS[name]
    play(homes_of_each.world(script.window), script.operations)


@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(script=scripts())
def test_the_invariants_hold_in_any_session(homes: Homes, script: Script) -> None:
    """I1 to I10."""
    play(homes.world(script.window), script.operations)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_each_invariant_says_which_it_is(check: object) -> None:
    name = getattr(check, "__name__", "")
    assert str(check.__doc__).startswith(f"I{int(name[1:3].strip('_'))}: ")


def test_i2_exact_things_stay_in_the_ledger_whatever_a_summary_says(homes: Homes) -> None:
    """I2: what was covered stays within reach: a path that was read is in the ledger rounds later."""
    i2_ledger(homes)


def i2_ledger(homes: Homes) -> None:
    world = homes.world(WINDOW)
    world.say(TALK)
    path = next(piece for said in world.said for piece in said.pieces if "src/part" in piece).split('"')[3]
    for _ in range(3):
        world.compact(Compact(summariser="fine", preset="opencode"))
        hold(path in shot_of(world).checkpoint, "I2", f"{path} is neither in the summary nor in the ledger")
        world.say([*MORE[:3]])


def test_i4_dead_calls_do_not_block(homes: Homes) -> None:
    """I4: a call that was never answered is covered like any other message, once others have spoken."""
    i4_dead_calls(homes)


def i4_dead_calls(homes: Homes) -> None:
    world = homes.world(WINDOW)
    world.say([SYSTEM, Line(kind="user"), calls("missing", "ok"), *TALK])
    dead = next(said.seq for said in world.said if said.calls)
    outcome = world.compact(Compact())
    covers = outcome.receipt is not None and outcome.receipt.first_kept > dead
    hold(covers, "I4", f"a dead call blocks the compaction: {outcome.receipt or outcome.error}")


@pytest.mark.parametrize("chinese", [False, True])
def test_i6_a_request_larger_than_the_window_is_cut_to_what_fits(chinese: bool, homes: Homes) -> None:
    """I5 and I6: its beginning and its end stay, with its handle, whatever its script is."""
    world = homes.world(WINDOW)
    world.say([SYSTEM, Line(kind="user"), Line(kind="assistant"), Line(kind="user", size=1.5, chinese=chinese)])
    receipt = world.compact(Compact(trigger="overflow")).receipt
    assert receipt is not None and receipt.applied
    play(world, [say(Line(kind="assistant")), Compact()])


@pytest.mark.parametrize(
    ("preset", "summariser"),
    [("default", "rules"), ("default", "fine"), ("default", "huge"), ("default", "raises"), ("turns", "rules")],
)
def test_i6_a_checkpoint_is_as_large_after_twenty_rounds(preset: str, summariser: Summariser, homes: Homes) -> None:
    """I6: the size of a checkpoint does not depend on how often the session was compacted."""
    i6_rounds(homes, preset, summariser)


def i6_rounds(homes: Homes, preset: str, summariser: Summariser, rounds: int = ROUNDS) -> None:
    name = next(each for each in PRESET_NAMES if each == preset)
    world = homes.world(WINDOW)
    sizes = list[int]()
    for _ in range(rounds):
        world.say(MORE)
        outcome = world.compact(Compact(preset=name, summariser=summariser, force=True))
        hold(outcome.error is None, "I6", f"after {len(sizes)} rounds: {outcome.error}")
        shot = shot_of(world)
        hold_bounded(shot, world.snapshot(name))
        sizes.append(shot.view.summary_tokens)
    # The window bounds one that grows, too: its first rounds tell what it needs.
    hold(max(sizes[rounds // 2 :]) <= 1.25 * max(sizes[: rounds // 4]), "I6", f"checkpoints grow: {sizes}")


def test_i7_a_breaker_opens_and_only_news_closes_it(homes: Homes) -> None:
    """I7: after three tries in vain none is made by itself, until enough was said."""
    i7_breaker(homes)


def i7_breaker(homes: Homes) -> None:
    world = homes.world(WINDOW)
    world.say(TALK)
    # What the view takes is told as the model counts, which is more than the estimate.
    world.do(Count(scale=1.6))
    for _ in range(3):
        hold(_worth(world), "I7", "the breaker opened too early")
        assert isinstance(world.compact(Compact(preset="opencode", summariser="raises")).error, UpstreamFailed)
    hold(not _worth(world), "I7", "three tries failed, and the breaker is closed")
    world.say(MORE)
    hold(_worth(world), "I7", "there is news, and the breaker is open")


def _worth(world: World) -> bool:
    snapshot = world.snapshot()
    return world.compactions.worth_trying(SESSION, snapshot.state.last_seq, snapshot.reading().tokens)


def test_i7_what_is_asked_before_every_prompt_is_no_try_in_vain(homes: Homes) -> None:
    """I7: pruning that finds nothing old enough does not keep a compaction from being made."""
    world = homes.world(WINDOW)
    world.say(TALK)
    for _ in range(5):
        receipt = world.compact(Compact(preset="openclaw", trigger="cache_ttl")).receipt
        assert receipt is not None and not receipt.applied
    assert _worth(world)


@pytest.mark.parametrize("trigger", ["manual", "threshold", "overflow"])
@pytest.mark.parametrize("summariser", [each for each in FAILING if each != "invents"])
def test_i8_a_summary_that_fails_changes_nothing(
    trigger: CompactionTrigger, summariser: Summariser, homes: Homes
) -> None:
    """I8: without a fallback, log and view stay as they were, and the error is a typed one."""
    world = homes.world(WINDOW)
    world.say(TALK)
    before = shot_of(world)
    outcome = world.compact(Compact(preset="opencode", trigger=trigger, summariser=summariser))
    assert isinstance(outcome.error, UpstreamFailed)
    assert (world.log_bytes, shot_of(world).bytes) == (before.log_bytes, before.bytes)


@pytest.mark.parametrize("preset", [name for name in PRESET_NAMES if name != "opencode"])
def test_i8_a_fallback_says_that_it_is_one(preset: str, homes: Homes) -> None:
    """I8: where rules may stand in for the model, the receipt says so."""
    world = homes.world(WINDOW)
    world.say(TALK)
    name = next(each for each in PRESET_NAMES if each == preset)
    receipt = world.compact(Compact(preset=name, summariser="truncated", target_share=0.4)).receipt
    assert receipt is not None and receipt.applied
    assert receipt.method in ("extractive", "note") and receipt.notes


def test_i9_undo_gives_the_exact_view_back_and_keeps_what_was_said_since(homes: Homes) -> None:
    """I9: the messages before the compaction, byte for byte, and behind them those that were said since."""
    i9_undo(homes)


def i9_undo(homes: Homes) -> None:
    world = homes.world(WINDOW)
    world.say(TALK)
    before = world.view().messages
    for later in ((), (Line(kind="user"), Line(kind="assistant"))):
        assert world.compact(Compact()).receipt is not None
        said = world.say(later)
        world.do(Undo())
        now = world.view().messages
        hold(now[: len(before)] == before, "I9", "the view is not the one before the compaction")
        hold(len(now) == len(before) + len(said), "I9", "what was said since is not there")


def test_i9_what_was_undone_is_not_undone_again(homes: Homes) -> None:
    """I9: two processes undo the same compaction at once, and another one was made between their records."""
    world = homes.world(WINDOW)
    world.say(TALK)
    first = world.compact(Compact()).receipt
    assert first is not None and first.compaction_id is not None
    world.do(Undo())
    world.compact(Compact())
    before = world.view()
    world.snapshot().session.append([UndoRecord(compaction=int(first.compaction_id[1:]))])
    assert as_bytes(world.view()) == as_bytes(before)


def test_i10_of_two_compactions_on_one_head_one_is_committed(homes: Homes) -> None:
    """I10: two processes plan on the same head; the second to commit is refused, and changes nothing."""
    i10_two_commits(homes)


def i10_two_commits(homes: Homes) -> None:
    world = homes.world(WINDOW)
    world.say(TALK)
    snapshot = world.snapshot()
    draft = world.compactor.draft(
        snapshot.state,
        snapshot.view(),
        snapshot.shape,
        snapshot.options,
        snapshot.budget(),
        CompactionOptions(),
        now=world.services.now(),
    )
    assert draft.made is not None
    other = OpenSession(JsonlLog(world.home / "sessions" / f"{SESSION}.jsonl"))
    other.commit(draft.made, other.state())
    before = world.log_bytes
    try:
        snapshot.session.commit(draft.made, snapshot.state)
    except Conflict:
        hold(world.log_bytes == before, "I10", "a commit was refused, and written")
    else:
        raise Broken("I10", "two compactions were committed on one head")


def test_i10_threads_compact_and_append_at_once(homes: Homes) -> None:
    """I10: whatever the threads do, every message is there, in its order, and the chain of compactions is one."""
    world = homes.world(WINDOW)
    world.say(TALK)
    errors = list[Exception]()

    def compacts() -> None:
        for _ in range(3):
            try:
                world.compactions.compact(SESSION, CompactionCall(request=CompactRequest(force=True)))
            except MemoryServiceError as error:
                errors.append(error)

    threads = [threading.Thread(target=compacts) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        world.say([Line(kind="user", size=0.02), Line(kind="assistant", size=0.04)])
    for thread in threads:
        thread.join()
    assert not errors
    play(world, [say(Line(kind="user")), Compact(), Undo()])
