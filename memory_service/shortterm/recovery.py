"""Owns what to do when a provider refuses a prompt: the next step, from what the error says and what was tried. Pure.

```
a failed compaction                      -> give up: compacting again is no remedy
too many tokens   -> compact, up to 3x   -> cut oversized results, once -> give up
too many bytes    -> strip media         -> compact                     -> give up
refused order     -> send without thinking, once                        -> give up
a rate limit, a broken connection        -> the same again, after a while
anything else                            -> give up
```
Invariants: every step is taken a bounded number of times for one prompt, so that recovery ends; what is given up on
says what a person can do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from memory_service.compaction.presets import RecoveryRules
from memory_service.llm.overflow import ProviderFailure

Remedy = Literal["compact", "truncate", "strip_media", "drop_thinking", "wait", "give_up"]

# The same prompt again, for an error that may pass.
_WAITS = 3
_WAY_OUT = "Start a new session, send less, or use a model with a larger context window."


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What was done for one prompt so far; a new message of anybody's begins another.

    Attributes:
        last_message: The last message of the prompt.
        compactions: Tries to compact since anything else was done.
        compacted: How many compactions were made in all.
    """

    last_message: int = 0
    compactions: int = 0
    compacted: int = 0
    truncations: int = 0
    strips: int = 0
    repairs: int = 0
    waits: int = 0

    def at(self, last_message: int) -> Tried:
        """The same prompt's, or that of a new one."""
        return self if last_message == self.last_message else Tried(last_message=last_message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The next step, why, and what was tried once it is taken."""

    remedy: Remedy
    reason: str
    tried: Tried


def decide(
    failure: ProviderFailure,
    *,
    failed_compaction: bool,
    tried: Tried,
    rules: RecoveryRules,
    compactible: bool = True,
    oversized: bool = True,
    has_media: bool = True,
) -> Decision:
    """The next step.

    Args:
        failure: What the error means.
        failed_compaction: Whether it tells of a compaction that failed.
        tried: What was done for this prompt.
        rules: Of the preset.
        compactible: Whether the last compaction left something to compact.
        oversized: Whether a tool result is there that could be cut.
        has_media: Whether media are there that could be stripped.
    """
    if failed_compaction:
        return _given_up("The error tells of a failed compaction, not of an overflow; nothing was changed.", tried)
    if failure.kind == "token_overflow":
        return _too_many_tokens(tried, rules, compactible, oversized)
    if failure.kind == "byte_overflow":
        if has_media and tried.strips < 2:
            return Decision(
                remedy="strip_media",
                reason="The request had too many bytes; media give way to labels.",
                tried=replace(tried, strips=tried.strips + 1),
            )
        return _too_many_tokens(tried, rules, compactible, oversized)
    if failure.kind == "malformed_history" and tried.repairs == 0:
        return Decision(
            remedy="drop_thinking",
            reason="The provider refused the order of the messages; they are sent again without thinking.",
            tried=replace(tried, repairs=1),
        )
    if failure.transient and tried.waits < _WAITS:
        wait = failure.retry_after_seconds
        after = f"after {wait:g} seconds" if wait else "after a while"
        return Decision(
            remedy="wait",
            reason=f"No overflow ({failure.kind}): the same prompt may succeed {after}.",
            tried=replace(tried, waits=tried.waits + 1),
        )
    return _given_up(_why_not(failure), tried)


def _too_many_tokens(tried: Tried, rules: RecoveryRules, compactible: bool, oversized: bool) -> Decision:
    if compactible and tried.compactions < rules.attempts:
        count = tried.compactions + 1
        return Decision(
            remedy="compact",
            reason=f"The prompt was too long; it was compacted ({count} of {rules.attempts}).",
            tried=replace(tried, compactions=count),
        )
    if rules.truncates and oversized and tried.truncations == 0:
        return Decision(
            remedy="truncate",
            reason="The prompt was too long; its largest tool results were cut.",
            # What follows may be compacted again.
            tried=replace(tried, truncations=1, compactions=0),
        )
    times = f"{tried.compacted} compaction{'' if tried.compacted == 1 else 's'}"
    return _given_up(
        f"Context overflow: the prompt is too long after {times}"
        f"{' and a cut of its tool results' if tried.truncations else ''}. {_WAY_OUT}",
        tried,
    )


def _why_not(failure: ProviderFailure) -> str:
    if failure.kind == "output_overflow":
        most = f" of {failure.max_output_tokens:,} tokens" if failure.max_output_tokens else ""
        return f"The answer asked for is longer than the model gives: ask for at most its limit{most}. The prompt fits."
    if failure.kind == "malformed_history":
        return "The provider refuses the order of the messages, thinking or not. Look at the error itself."
    return f"This is no overflow ({failure.kind}): compacting would not help. Look at the error itself."


def _given_up(reason: str, tried: Tried) -> Decision:
    return Decision(remedy="give_up", reason=reason, tried=tried)
