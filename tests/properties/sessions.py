"""Random sessions as plain values: what is said, and what is done to a session, each drawn by a strategy.

A script is a window and a list of operations. It names lines by their kind and not by their words, so that it shrinks
well and prints short; `world.World` puts the words in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

from hypothesis import strategies as st

from memory_service.compaction.plan_sizes import CompactionTrigger
from memory_service.config import PresetName

LineKind = Literal["system", "user", "assistant", "round", "anthropic", "late", "orphan", "empty"]
# What becomes of a call: answered; never; twice at once; later, or never; in part; now, and once more later; and so on.
Fate = Literal["ok", "missing", "twice", "later", "interim", "more", "error", "image", "same"]
Thinking = Literal["", "blocks", "reasoning"]
Summariser = Literal[
    "rules", "fine", "raises", "hangs", "empty", "huge", "truncated", "tool_call", "invents", "error_text", "headings"
]

PRESET_NAMES: tuple[PresetName, ...] = ("default", "openclaw", "turns", "ponybunny", "opencode")
TRIGGERS: tuple[CompactionTrigger, ...] = ("manual", "threshold", "overflow", "cache_ttl", "safeguard")
FAILING: tuple[Summariser, ...] = ("raises", "hangs", "empty", "truncated", "tool_call", "invents", "headings")
WINDOWS = (1_024, 1_024, 2_048, 2_048, 4_096, 4_096, 8_192, 16_384)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Something that is said.

    Attributes:
        size: About how long each of its texts is, as a share of the window.
        calls: Of a round, one for each call of it.
        reused: Whether its calls have an id that others have too.
        media: How many images it has.
        told: Whether the tool's results are followed by words of the user, in one message of Anthropic's.
    """

    kind: LineKind
    size: float = 0.01
    chinese: bool = False
    calls: tuple[Fate, ...] = ()
    reused: bool = False
    thinks: Thinking = ""
    media: int = 0
    told: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Lines are appended, as one batch."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """A compaction is asked for.

    Attributes:
        target_share: Of the view's size; 0 for the preset's target.
        meanwhile: What is appended between the plan and the commit.
        rival: What another process does there.
    """

    preset: PresetName = "default"
    trigger: CompactionTrigger = "manual"
    force: bool = False
    target_share: float = 0.0
    summariser: Summariser = "rules"
    meanwhile: tuple[Line, ...] = ()
    rival: Literal["", "compact", "undo"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """A compaction is undone; `which` counts back from the head."""

    which: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A text of so many tokens is pinned, or else the message at a share of the log."""

    tokens: int = 0
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpin:
    """The first pin is taken away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The calls that have no result yet are noted as running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Another process opens the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A provider tells what it counted, as a multiple of the estimate."""

    scale: float = 1.0


Value = TypeVar("Value")
Operation = Say | Compact | Undo | Pin | Unpin | Wait | Restart | Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A session from its beginning to its end."""

    window: int
    operations: tuple[Operation, ...]


# Most are short beside the window; some fill it alone.
sizes = st.sampled_from((0.0, 0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2))
large = st.sampled_from((0.35, 0.6, 1.0, 1.6))
fates: st.SearchStrategy[Fate] = st.sampled_from(
    ("ok", "ok", "ok", "missing", "twice", "later", "interim", "more", "error", "image", "same")
)
thoughts: st.SearchStrategy[Thinking] = st.sampled_from(("", "", "blocks", "reasoning"))
flags = st.booleans()

rounds = st.builds(
    Line,
    kind=st.sampled_from(("round", "round", "anthropic")),
    size=sizes,
    chinese=flags,
    calls=st.lists(fates, min_size=1, max_size=3).map(tuple),
    reused=st.integers(0, 5).map(lambda number: number == 0),
    thinks=thoughts,
    told=flags,
)
words = st.builds(
    Line,
    kind=st.sampled_from(("user", "user", "assistant")),
    size=sizes,
    chinese=flags,
    thinks=thoughts,
    media=st.sampled_from((0, 0, 0, 1, 2)),
)
odd = st.builds(Line, kind=st.sampled_from(("system", "late", "orphan", "empty")), size=sizes, chinese=flags)
huge = st.builds(
    Line, kind=st.sampled_from(("user", "round", "assistant")), size=large, chinese=flags, calls=st.just(("ok",))
)


def weighed(*choices: tuple[int, st.SearchStrategy[Value]]) -> st.SearchStrategy[Value]:
    """One of some strategies, each as often as its weight says; `one_of` would count their branches."""
    picks = [strategy for weight, strategy in choices for _ in range(weight)]
    return st.sampled_from(range(len(picks))).flatmap(picks.__getitem__)


lines = weighed((6, words), (6, rounds), (3, odd), (1, huge))
batches = st.lists(lines, min_size=1, max_size=6).map(tuple)

says = st.builds(Say, lines=st.lists(lines, min_size=1, max_size=10).map(tuple))
compactions = st.builds(
    Compact,
    preset=st.sampled_from(PRESET_NAMES),
    trigger=st.sampled_from(TRIGGERS),
    force=flags,
    target_share=st.sampled_from((0.0, 0.0, 0.0, 0.2, 0.6)),
    summariser=st.sampled_from(("rules", "rules", "rules", "fine", "fine", "huge", "error_text", *FAILING)),
    meanwhile=st.one_of(st.just(()), st.just(()), batches),
    rival=st.sampled_from(("", "", "", "", "compact", "undo")),
)
others = st.one_of(
    st.builds(Undo, which=st.integers(0, 2)),
    st.builds(Pin, tokens=st.sampled_from((0, 0, 5, 40, 120)), at=st.floats(0, 1, width=16)),
    st.just(Unpin()),
    st.just(Wait()),
    st.just(Restart()),
    st.builds(Count, scale=st.sampled_from((0.5, 1.0, 1.6, 3.0))),
)
operations: st.SearchStrategy[Operation] = weighed((5, says), (5, compactions), (3, others))
openings = st.lists(st.just(Line(kind="system", size=0.01)), max_size=1).map(tuple)


@st.composite
def scripts(draw: st.DrawFn, most: int = 12) -> Script:
    """A session of some size, so that there is something to compact."""
    window = draw(st.sampled_from(WINDOWS))
    first = Say(lines=(*draw(openings), *draw(st.lists(lines, min_size=3, max_size=14))))
    rest = draw(st.lists(operations, min_size=3, max_size=most))
    return Script(window=window, operations=(first, *rest))
