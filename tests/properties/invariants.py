"""The ten invariants of compaction: each a check of what an operation made of a session.

Each takes the session before and after, and what the world knows of it, and raises `Broken` with its own name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from memory_service.compaction.plan_sizes import LEAST_PROGRESS
from memory_service.compaction.record import Compaction
from memory_service.compaction.view import project
from memory_service.errors import Conflict, Incompressible, UpstreamFailed
from memory_service.messages.shapes import text_of
from memory_service.messages.sizes import count_tokens
from memory_service.messages.sizes import message_tokens as size_of
from memory_service.prompts.blocks import _placeable, prompt_of
from memory_service.prompts.prompt_records import InjectedBlock
from memory_service.runtime.base import CompactionCall
from memory_service.runtime.session import OpenSession, SessionState, _extend_state
from memory_service.runtime.session_services import SessionSnapshot
from memory_service.schemas.compaction import CompactionMode, CompactRequest
from memory_service.sessions.records import Record
from memory_service.sessions.records import Undo as UndoRecord
from memory_service.text.texts import in_every_language
from tests.properties.said import Said
from tests.properties.sessions import FAILING, Compact, Operation, Restart, Say, Undo
from tests.properties.shots import Change, Shot, as_bytes, hold, on_wire, shot_of, words_of
from tests.properties.world import SESSION, World
from tests.wire import PROVIDERS, problems

MEMORY = "<relevant_context>\n<memory>They like tea. 他们喜欢茶。</memory>\n</relevant_context>"
# What stands around the parts of a checkpoint: its words about itself, the tags, the handles of pins.
FRAME_TOKENS = 160
_PART = re.compile(r"part\d+x")
_SAME = re.compile(r"same as log:(\d+)")


Check = Callable[[Change], None]


# -- the ten ------------------------------------------------------------------------------------------------------


def i1_append_only(change: Change) -> None:
    """I1: the log before is the beginning of the log after; every message is given back byte for byte."""
    before, after, world = change.before, change.after, change.world
    hold(after.log_bytes.startswith(before.log_bytes), "I1", "the log was rewritten")
    if isinstance(change.operation, Say):
        return
    log = world.services.session(SESSION).log
    for seq, text in world.raw.items():
        hold(log.message(seq) == text, "I1", f"message {seq} is another one")
    if isinstance(change.operation, Compact) and not change.committed and not change.outcome.rival:
        hold(len(change.outcome.added) > 0 or after.log_bytes == before.log_bytes, "I1", "written without a commit")

    _planned(change)


def _planned(change: Change) -> None:
    """Neither a plan nor a preview writes anything."""
    operation, world = change.operation, change.world
    if not isinstance(operation, Compact) or operation.force:
        return
    world.compactor.model = None
    modes: tuple[CompactionMode, ...] = ("plan", "preview")
    for mode in modes:
        with suppress(Incompressible):
            world.compactions.compact(
                SESSION, CompactionCall(request=CompactRequest(mode=mode, preset=operation.preset))
            )
        hold(world.log_bytes == change.after.log_bytes, "I1", f"the mode {mode} wrote to the log")


def i2_nothing_falls_between(change: Change) -> None:
    """I2: each message is shown, or has a stub with its handle, or is covered; what is covered was summarised.

    Where a preset leaves tools out of what it keeps, the checkpoint says up to where.
    """
    after, start = change.after, change.after.head.tail_start
    view_text = after.bytes
    for said in change.world.said:
        if said.system or said.loose:
            continue
        shown = all(piece in after.tail for piece in said.pieces)
        if said.seq < start:
            hold(not (said.text and said.text in after.tail), "I2", f"{said.seq} is covered, and shown")
        else:
            there = shown or said.seq in after.handles or _left_out(said, after)
            hold(there, "I2", f"{said.seq} ({said.role}) is lost: {said.pieces}")
            for payload in said.payloads:
                there = payload in view_text or said.seq in after.handles or _left_out(said, after)
                hold(there, "I2", f"an image of {said.seq} is neither shown nor has a label")
    _stubs_tell_the_truth(change)
    if change.committed and start != change.before.head.tail_start:
        _summarised(change, start)


def _left_out(said: Said, after: Shot) -> bool:
    """Whether tools of a message are left out, and the checkpoint says so: not what runs, nor what is pinned."""
    upto = after.head.toolless_upto
    live = not after.state.pending.isdisjoint({*said.calls, said.call_id} - {"again"})
    kept = live or any(pin.target == said.seq for pin in after.state.pins)
    words = said.role == "tool" or said.text in after.tail
    return bool(said.calls or said.call_id) and said.seq <= upto and not kept and words and _told(upto, after)


def _told(upto: int, after: Shot) -> bool:
    return any(told.format(upto=upto) in after.checkpoint for told in in_every_language("toolless"))


def _stubs_tell_the_truth(change: Change) -> None:
    """A stub is of its own result: it names no other call, and no double that is none."""
    said = change.world.said
    paths = {
        call: part[0]
        for each in said
        for call, piece in zip(each.calls, each.pieces[1:], strict=True)
        if (part := _PART.search(piece))
    }
    texts = {(each.seq, each.text) for each in said}
    results = {each.call_id: each for each in said if each.call_id and each.call_id != "again" and not each.loose}
    for message in change.after.view.messages:
        own = results.get(message.get("tool_call_id", ""))
        text = text_of(message)
        if own is None or own.text in text or len(text) > 400:
            continue
        named = _PART.search(text)
        hold(not named or named[0] == paths.get(own.call_id), "I2", f"the stub of {own.seq} names another: {text}")
        double = _SAME.search(text)
        hold(not double or (int(double[1]), own.text) in texts, "I2", f"{own.seq} has no such double: {text}")


def _summarised(change: Change, start: int) -> None:
    request = change.outcome.requests[-1]
    given = {each.seq for each in (*request.messages, *request.prefix)}
    words = "\0".join(text for each in (*request.messages, *request.prefix) for text in words_of(each.message))
    for said in change.world.said:
        if change.before.head.tail_start <= said.seq < start and not said.system and said.text.strip():
            hold(said.seq in given, "I2", f"{said.seq} is covered, and no summary was made of it")
            hold(said.text in words, "I2", f"{said.seq} is covered, and the summary was made of a stub of it")
    hold(request.previous == change.before.head.summary, "I2", "the summary before was not carried on")


def i3_valid_on_every_wire(change: Change) -> None:
    """I3: every provider takes the view, with a memory block too; calls stay whole; thinking is whole or gone."""
    after, world = change.after, change.world
    if not after.view.messages:
        return
    turns = [each.seq for each in after.state.messages if each.message["role"] == "user"]
    blocks = [InjectedBlock(seq=seq, said="", asked="", text=MEMORY, receipt_id="") for seq in turns[-3:] or [0]]
    placed = _placeable(after.view, blocks, blocks[-1].seq)
    prompt = prompt_of(after.view, system_prompt="You help.", blocks=placed, window_tokens=world.window)
    for messages in (after.view.messages, prompt.messages):
        for provider in PROVIDERS:
            found = problems(on_wire(messages, provider, after.state.pending), provider)
            hold(not found, "I3", f"{provider} refuses {found}")
    whole = [each for each in world.said if each.role != "system"]
    for at, said in enumerate(whole):
        if said.role == "tool" and said.seq >= after.head.tail_start:
            caller = next((each for each in reversed(whole[:at]) if each.role != "tool"), None)
            torn = caller is not None and said.call_id in caller.calls and caller.seq < after.head.tail_start
            hold(not torn or _came_late(world, said, after), "I3", f"the result {said.seq} is parted from its call")
    _thinking(change)


def _came_late(world: World, said: Said, after: Shot) -> bool:
    """Whether a result came after what covers its call was planned."""
    return said.seq > after.head.upto


def _thinking(change: Change) -> None:
    after = change.after
    head = after.head
    turn = max((each.seq for each in change.world.said if each.role == "user" and each.text.strip()), default=0)
    shown = [block for message in after.view.messages for block in message.get("thinking_blocks", [])]
    known = [block for each in change.world.said for block in each.blocks]
    hold(all(block in known for block in shown), "I3", "a thinking block was changed")
    for said in change.world.said:
        old = head.seq is not None and said.seq <= head.upto and said.seq < turn
        if said.thought and (old or said.seq < head.tail_start):
            hold(said.thought not in after.bytes, "I3", f"the thinking of {said.seq} is older than the compaction")


def i4_live_calls_survive(change: Change) -> None:
    """I4: a call that still runs, or is the last one, is never covered."""
    if not change.committed:
        return
    world, before = change.world, change.before
    last = max((each.seq for each in world.said if each.role not in ("tool",)), default=0)
    known = {each.seq for each in change.outcome.added}
    for said in world.said:
        if said.seq in known or said.seq < before.head.tail_start:
            continue
        waiting = [call for call in said.calls if call in before.unanswered and call != "again"]
        live = [call for call in waiting if call in before.state.pending or said.seq == last]
        hold(not live or said.seq >= change.after.head.tail_start, "I4", f"the call {live} is covered, and runs")


def i5_verbatim_survivors(change: Change) -> None:
    """I5: system messages, pins and the last request of the user stand in the view, byte for byte."""
    after, world = change.after, change.world
    for said in world.said:
        if said.system:
            hold(said.text in after.all, "I5", f"the system message {said.seq} is gone")
    for text, target in world.pins.values():
        there = all(piece in after.all for piece in text.split("\n")) if target else text in after.all
        hold(there, "I5", f"a pin of {target or 'a text'} is gone")
    asked = next((each for each in reversed(world.said) if each.role == "user" and each.text.strip()), None)
    if asked is None:
        return
    small = count_tokens(asked.text) <= after.snapshot.shape.request_chars // 4
    cut = asked.text[:8] in after.checkpoint and f"log:{asked.seq}" in after.checkpoint
    hold(asked.text in after.all or (not small and cut), "I5", f"the last request, {asked.seq}, is gone")


def i6_budget_and_progress(change: Change) -> None:
    """I6: what is committed is a twentieth smaller at least, as large as it says, and fits; else it says why not."""
    operation, outcome = change.operation, change.outcome
    if not isinstance(operation, Compact) or outcome.rival:
        return
    snapshot = change.world.snapshot(operation.preset)
    budget = snapshot.budget()
    usable, receipt = int(budget.usable_tokens / budget.scale), outcome.receipt
    if isinstance(outcome.error, Incompressible):
        hold(any(outcome.error.parts.values()), "I6", "it does not say which part is too large")
    if receipt is None:
        return
    alone = not outcome.added
    if not receipt.applied:
        fits = snapshot.view().tokens <= usable
        pruned_alone = operation.trigger == "cache_ttl"
        hold(
            fits or not alone or pruned_alone,
            "I6",
            f"nothing was done, and {snapshot.view().tokens} > {usable}: {receipt.reason}",
        )
        return
    before, now = receipt.tokens_before, receipt.tokens_after
    hold(now <= before * (1 - LEAST_PROGRESS), "I6", f"no progress: {before} to {now} at {receipt.stage}")
    if alone:
        size = snapshot.view().tokens
        hold(size == now, "I6", f"{now} tokens were recorded, and the view has {size}")
        hold(size == sum(map(size_of, snapshot.view().messages)), "I6", "the view is not as large as its messages")
        hold(now <= usable, "I6", f"{now} tokens were committed, and {usable} fit ({receipt.stage})")
    if outcome.requests:
        most, size = outcome.requests[-1].target_tokens, count_tokens(receipt.summary)
        hold(size <= most, "I6", f"a summary of {size} tokens, and {most} were asked for")
    hold_bounded(change.after, snapshot)


def hold_bounded(shot: Shot, snapshot: SessionSnapshot) -> None:
    """I6: a checkpoint has a bound that does not depend on how often the session was compacted."""
    most = (
        snapshot.options.preset.most_summary_tokens + snapshot.shape.ledger_tokens + snapshot.shape.request_chars // 4
    )
    pins = sum(count_tokens(pin.text or "") + 16 for pin in shot.state.pins)
    pins += sum(each.tokens for pin in shot.state.pins for each in shot.state.messages if each.seq == pin.target)
    size = count_tokens(shot.checkpoint)
    hold(size <= most + pins + FRAME_TOKENS, "I6", f"the checkpoint has {size} tokens, {most} and {pins} of pins fit")


def i7_again_is_nothing(change: Change) -> None:
    """I7: where nothing was said since, the same again is nothing, and no model is called; calls are bounded."""
    operation, outcome, world = change.operation, change.outcome, change.world
    if not isinstance(operation, Compact):
        return
    rules = world.snapshot(operation.preset).options.preset.summary
    hold(len(outcome.prompts) <= rules.max_calls, "I7", f"{len(outcome.prompts)} calls for one summary")
    told = operation.force or operation.target_share or operation.trigger == "overflow"
    if not change.committed or outcome.added or told:
        return
    snapshot = world.snapshot(operation.preset)
    stale = snapshot.reading(is_anchored=True).tokens > snapshot.reading().tokens
    hold(not stale, "I7", "a count from before the compaction says that the view is as large as then")
    before = world.log_bytes
    again = world.compact(Compact(preset=operation.preset, trigger=operation.trigger, summariser=operation.summariser))
    hold(not again.prompts, "I7", "a model was called again, and nothing was said since")
    hold(world.log_bytes == before, "I7", f"compacted again, and nothing was said since: {again.receipt}")


def i8_fails_closed(change: Change) -> None:
    """I8: a summary that failed leaves log and view alone, or is replaced by one that says so; no error is context."""
    operation, outcome, after = change.operation, change.outcome, change.after
    hold("zzq" not in after.bytes, "I8", "an error, or half an answer, is in the view")
    hold("ZQX-99817" not in after.bytes, "I8", "what a model invented is in the view")
    for prompt in outcome.prompts:
        sent = "".join(message["content"] for message in prompt)
        payloads = [payload for said in change.world.said for payload in said.payloads]
        hold(not any(payload in sent for payload in payloads), "I8", "the model was sent the bytes of media")
        hold({message["role"] for message in prompt} <= {"system", "user"}, "I8", "the model was sent tool messages")
    if not isinstance(operation, Compact):
        return
    if outcome.error is not None:
        typed = isinstance(outcome.error, UpstreamFailed | Incompressible | Conflict)
        hold(typed, "I8", f"{type(outcome.error).__name__}: {outcome.error}")
        changed = after.bytes != change.before.bytes and not outcome.added and not outcome.rival
        hold(not changed, "I8", "it failed, and the view is another one")
    if change.committed and operation.summariser in FAILING and outcome.prompts and outcome.receipt:
        hold(
            outcome.receipt.method != "model" or not _refusable(operation),
            "I8",
            "what the model failed to write is there",
        )
        hold(operation.preset != "opencode" or not _refusable(operation), "I8", "a preset without a fallback had one")
        labelled = outcome.receipt.method == "model" or bool(outcome.receipt.notes)
        hold(labelled, "I8", "a fallback that does not say so")


def _refusable(operation: Compact) -> bool:
    """Whether rules can tell that an answer is none: headings alone are a text where none are asked for."""
    return operation.summariser not in ("headings", "invents")


def i9_replay_and_undo(change: Change) -> None:
    """I9: the view is a function of the log: read at once, record by record, or by another process; undo is exact."""
    world, after = change.world, change.after
    if not isinstance(change.operation, Compact | Undo | Restart):
        return
    log = world.services.session(SESSION).log
    records = list(log.read(media=False))
    shape = after.snapshot.shape
    state = world.folded
    for record in records:
        if record.seq > state.last_seq:
            state = _extend_state(state, [record])
    world.folded = state
    other = OpenSession(world.reopened_logs().open(SESSION))
    once = other.state()
    hold(as_bytes(project(state, shape)) == as_bytes(project(once, shape)), "I9", "one by one is not all at once")
    hold(state.head == once.head == after.head, "I9", "the heads differ")
    hold(as_bytes(other.view(shape)) == after.bytes, "I9", "another process sees another view")
    left = without_undone(records)
    never = _extend_state(SessionState(), left) if len(left) < len(records) else once
    hold(
        as_bytes(project(never, shape)) == as_bytes(project(once, shape)),
        "I9",
        "the view after an undo is not the one that there would be without the compaction",
    )


def without_undone(records: Sequence[Record]) -> list[Record]:
    """The records without the compactions that were undone, those that were built on them, and the undos."""
    bases: dict[int, int | None] = {}
    head: int | None = None
    gone = set[int]()
    for record in records:
        if isinstance(record.body, Compaction):
            hold(
                record.body.base == head, "I10", f"{record.seq} was planned on {record.body.base}, the head was {head}"
            )
            bases[record.seq] = head
            head = record.seq
        elif isinstance(record.body, UndoRecord):
            gone.add(record.seq)
            chain = list[int]()
            at = head
            while at is not None and at != record.body.compaction:
                chain.append(at)
                at = bases[at]
            if at is not None:
                gone |= {*chain, at}
                head = bases[at]
    return [record for record in records if record.seq not in gone]


def i10_appends_meanwhile(change: Change) -> None:
    """I10: what is said while a compaction is made stands behind it, in order; of two, one is committed."""
    outcome, after = change.outcome, change.after
    for said in outcome.added:
        hold(
            not change.committed or said.seq >= after.head.tail_start, "I10", f"{said.seq} came meanwhile, and is gone"
        )
    hold(not (outcome.rival and change.committed), "I10", "two compactions were committed on one head")
    places = [
        after.tail.find(said.text)
        for said in change.world.said
        if said.role == "user" and said.text.strip() and said.seq >= after.head.tail_start and said.text in after.tail
    ]
    hold(places == sorted(places), "I10", "the messages are not in order")


CHECKS: tuple[Check, ...] = (
    i1_append_only,
    i2_nothing_falls_between,
    i3_valid_on_every_wire,
    i4_live_calls_survive,
    i5_verbatim_survivors,
    i6_budget_and_progress,
    i8_fails_closed,
    i9_replay_and_undo,
    i10_appends_meanwhile,
    # The last one compacts again.
    i7_again_is_nothing,
)


def play(world: World, operations: Iterable[Operation], checks: Sequence[Check] = CHECKS) -> None:
    """Does operations one by one, and checks after each of them."""
    before = shot_of(world)
    for operation in operations:
        outcome = world.do(operation)
        change = Change(world=world, operation=operation, before=before, outcome=outcome, after=shot_of(world))
        for check in checks:
            check(change)
        before = shot_of(world)
