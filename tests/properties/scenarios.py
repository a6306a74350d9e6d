"""Sessions written by hand: each meets one kind of trouble for certain, where random ones meet it by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tests.properties.sessions import (
    FAILING,
    PRESET_NAMES,
    Compact,
    Count,
    Fate,
    Line,
    Operation,
    Pin,
    Restart,
    Say,
    Script,
    Undo,
    Unpin,
    Wait,
)

WINDOW = 8_192
SYSTEM = Line(kind="system", size=0.01)
ASK = Line(kind="user", size=0.02)
CHINESE = Line(kind="user", size=0.05, chinese=True)
REPLY = Line(kind="assistant", size=0.06, thinks="blocks")
THINKING = Line(kind="round", size=0.08, calls=("ok",), thinks="blocks")


def calls(*fates: Fate, size: float = 0.05, reused: bool = False) -> Line:
    """A round of calls."""
    return Line(kind="round", size=size, calls=fates, reused=reused)


def blocks(*fates: Fate, told: bool = True) -> Line:
    """A round of calls in Anthropic's shape."""
    return Line(kind="anthropic", size=0.04, calls=fates, thinks="blocks", told=told)


def say(*lines: Line) -> Say:
    return Say(lines=lines)


# About the whole window, in four turns.
TURN = (ASK, THINKING, calls("ok", "ok"), REPLY)
TALK = (SYSTEM, *TURN, *TURN, CHINESE, THINKING, REPLY, ASK, REPLY)
MORE = (CHINESE, *TURN, *TURN)
FORCED = Compact(force=True)


def _script(*operations: Operation, window: int = WINDOW) -> Script:
    return Script(window=window, operations=operations)


def _failing() -> tuple[Operation, ...]:
    made = list[Operation]()
    for kind in FAILING:
        made += [Compact(preset="opencode", summariser=kind), Compact(summariser=kind), say(*MORE)]
    return tuple(made)


SCENARIOS: Mapping[str, Script] = MappingProxyType(
    {
        "rounds": _script(
            say(*TALK), FORCED, say(*MORE), Compact(), Restart(), say(*MORE), Compact(summariser="fine"), Undo(),
            say(ASK), Undo(), say(*MORE), Compact(), Undo(which=1),
        ),
        # One request, and a long chain of calls for it.
        "one_turn": _script(
            say(SYSTEM, CHINESE, *[THINKING] * 12), Compact(), say(*[THINKING] * 6), Compact(summariser="fine"),
            say(*[blocks("ok", "ok", told=False)] * 8), FORCED, Undo(), say(REPLY),
        ),
        "pins": _script(
            say(*TALK), Pin(tokens=60), Pin(at=0.0), Pin(at=0.4), Compact(), say(*MORE), Compact(), say(*MORE), Unpin(),
            Compact(), Restart(),
        ),
        "pinned_result": _script(
            say(SYSTEM, ASK, calls("ok", size=0.22), ASK, calls("ok", size=0.2), *MORE), Pin(at=0.15),
            Compact(trigger="overflow"), Pin(at=0.0), say(*MORE), Compact(),
        ),
        # What is pinned is more than the guard lets a result be.
        "pinned_large": _script(
            say(SYSTEM, ASK, calls("ok", size=0.35), REPLY, ASK), Pin(at=0.5), say(REPLY, calls("ok", size=0.35), ASK),
            FORCED, window=4_096,
        ),
        "meanwhile": _script(
            say(*TALK), Compact(meanwhile=(ASK, calls("ok"), REPLY)), say(*MORE),
            Compact(summariser="fine", meanwhile=(CHINESE,)), Undo(), say(*MORE),
            Compact(meanwhile=(calls("missing"),)),
        ),
        "rivals": _script(
            say(*TALK), Compact(rival="compact"), say(*MORE), Compact(summariser="fine", rival="compact"), say(*MORE),
            Compact(rival="undo"), say(*MORE), Compact(preset="opencode", rival="undo"),
        ),
        "running": _script(
            say(SYSTEM, ASK, REPLY, calls("missing", "ok"), ASK, *TURN), Wait(), say(*MORE), FORCED, say(*TURN), FORCED,
            say(Line(kind="user", size=1.2)), Compact(trigger="overflow"),
        ),
        "open": _script(
            say(*TALK, calls("ok", "missing")), FORCED, Compact(preset="ponybunny", force=True),
            say(Line(kind="late")), say(*MORE, calls("interim")), FORCED, Compact(preset="turns", force=True),
        ),
        "late": _script(
            say(SYSTEM, ASK, calls("later", "more"), *TURN), say(*[Line(kind="late", size=0.02)] * 2, ASK),
            say(*TURN), FORCED,
            say(calls("interim"), ASK, REPLY, Line(kind="late", size=0.01, chinese=True), ASK), say(*TURN), FORCED,
            say(calls("later", "more"), *MORE), FORCED, say(Line(kind="late", size=0.02)),
            say(Line(kind="late", size=0.02, chinese=True), Line(kind="late", size=0.02)),
        ),
        "odd": _script(
            say(SYSTEM, Line(kind="orphan", size=0.01), ASK, calls("twice", "same"), Line(kind="empty"), SYSTEM,
                calls("ok", "ok", reused=True), calls("ok", size=0.0, reused=True), ASK, calls("twice", reused=True)),
            say(Line(kind="orphan"), *MORE, SYSTEM, REPLY), FORCED, say(calls("twice", "ok", "error"), ASK, *TURN),
            Compact(), say(Line(kind="empty")), FORCED,
        ),
        "blocks": _script(
            say(SYSTEM, ASK, *[blocks("ok", "image", "error")] * 4, blocks("later"), blocks("ok", told=False), REPLY),
            Pin(at=0.2), FORCED, say(*[blocks("ok", "ok", "missing")] * 8), Compact(trigger="overflow"), Undo(),
        ),
        "media": _script(
            say(SYSTEM, Line(kind="user", size=0.01, media=1), REPLY, calls("image", "ok"), ASK, REPLY), FORCED,
            say(Line(kind="user", size=0.02, media=2), REPLY, calls("image")), Compact(summariser="fine"),
            Compact(trigger="overflow"), say(ASK, *[blocks("image")] * 3, REPLY), Compact(summariser="fine"),
            window=16_384,
        ),
        "duplicates": _script(
            say(SYSTEM, ASK, *[calls("same", "same", size=0.1)] * 3, REPLY, ASK, REPLY), Compact(trigger="overflow"),
            say(*[calls("ok", size=0.12)] * 4, ASK, REPLY), Compact(trigger="threshold"), Undo(), say(ASK),
            window=16_384,
        ),
        # Too small to be shortened, too many to stay.
        "pruned": _script(
            say(SYSTEM, ASK, *[calls("ok", "ok", "ok", size=0.024)] * 10, calls("error", size=0.024), REPLY, ASK),
            Compact(trigger="threshold"), Pin(at=0.2), say(*[calls("ok", "image", size=0.024)] * 4), Restart(), Undo(),
            window=32_768,
        ),
        # Several results in one message of Anthropic's, all of one number.
        "sharing": _script(
            say(SYSTEM, ASK, *[replace(blocks("ok", "ok", told=False), size=0.05)] * 4, *[calls("ok")] * 7, REPLY, ASK),
            Compact(trigger="threshold"), say(replace(blocks("ok", "ok", "ok", "ok", told=False), size=0.29)),
            Compact(trigger="overflow"), window=16_384,
        ),
        "failing": _script(say(*TALK), *_failing()),
        "huge": _script(
            say(SYSTEM, ASK, REPLY, Line(kind="user", size=1.5, chinese=True)), Compact(trigger="overflow"),
            say(REPLY, calls("ok", size=1.4)), Compact(trigger="overflow"), say(Line(kind="user", size=1.2)),
            Compact(preset="opencode"), say(*[calls("ok", "ok", size=0.5)] * 2), Compact(trigger="threshold"),
        ),
        "presets": _script(
            say(*TALK),
            *(
                each
                for name in PRESET_NAMES
                for each in (Compact(preset=name), say(*MORE), Compact(preset=name, summariser="fine"), say(*MORE))
            ),
        ),
        "counted": _script(say(*TALK), Count(scale=1.1), Compact(), say(ASK), Compact(trigger="threshold"), Count()),
        "small": _script(say(SYSTEM, ASK, Line(kind="assistant")), FORCED, Compact(), say(ASK), FORCED, window=1_024),
    }
)  # fmt: skip
