"""Parts of the pruning pipeline: rules, drafts, superseded tool results, and the limit on a single result. Pure.

Invariants: linear; nothing is changed in place, and the same messages give the same bytes. What the model has not read
yet, a call that still runs, an error and a protected message are never found; a result too small to gain from is left
alone. A result is superseded only by one that is in the view, whole, and at least half as long; a note that a file is
unchanged, an error, or another part of a file supersedes nothing. Sizes are those of tokens, so that a Chinese result
has no larger share than another; a result within its share is the same object.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal, NamedTuple

from memory_service.compaction.budget import Chars, CountFromZero, Share, Switch, Tokens
from memory_service.messages.shapes import (
    Function,
    Message,
    is_tool_result,
    media_parts_of,
    text_of,
    tool_calls_of,
    with_text,
)
from memory_service.messages.sizes import (
    MESSAGE_TOKENS,
    Numbered,
    count_tokens,
    estimate_tokens,
    message_tokens,
    number_message,
)
from memory_service.text.placeholders import (
    OUTPUT_REMOVED,
    placeholder_text,
    shorten_result,
    stub_text,
    trim_middle,
    without_media,
)
from memory_service.text.texts import ENGLISH, Texts

PruningMode = Literal["to_target", "cache_ttl", "budget", "off"]

CHARS_PER_TOKEN = 4
_NOTICE_TOKENS = 20  # what says that something is left out, with the frame of the message


@dataclass(frozen=True, slots=True, kw_only=True)
class PruningRules:
    """Limits on what may be taken out of a view. Characters: a CJK one counts for four.

    Attributes:
        placeholder: What stands for a cleared result, the handle behind it; empty for a line that says what it was.
        allow_tools: Patterns of tools whose results may be pruned, whatever their case; empty for all.
        deny_tools: Patterns of tools whose results stay; they win.
        min_result_chars: A smaller result stays as it is. Source: ours; a stub has up to 240 characters.
        ttl_seconds: How long the provider keeps its prompt cache. Source: seed 002, 13.6; Anthropic's five minutes.
        keep_last_assistants: So many replies stay with all behind them. Source: OpenClaw, `keepLastAssistants`.
        soft_trim_ratio: Use of the window from which results are shortened. Source: OpenClaw, `softTrimRatio`.
        soft_trim_chars: Results over this are shortened. Source: OpenClaw, `softTrim.maxChars`; so the next two.
        head_chars: What stays of the beginning.
        tail_chars: What stays of the end.
        hard_clear: Whether results may be cleared at all.
        hard_clear_ratio: Use of the window from which results are cleared. Source: OpenClaw, `hardClearRatio`.
        min_prunable_chars: Less than this is not worth a cold cache. Source: OpenClaw, `minPrunableToolChars`.
        keep_image_results: So many of the newest results with images stay. Source: OpenClaw.
        by_result: Whether each result is judged by itself, by its own age and its own share of the window, and not the
            whole view. Source: seed 002, 13.6.
        protect_turns: The user's turns that `budget` leaves alone. Source: seed 004, strategy 2.
        protect_tokens: Newest tokens that stay. Source: seed 004, `PRUNE_PROTECT`.
        budget_gain_tokens: What `budget` must gain. Source: seed 004, `PRUNE_MINIMUM`.
        protect_share: Of what is usable of the window, the other bound on `protect_tokens` in `to_target`, so that
            small windows can be pruned at all. Source: compaction reference 7.4.
        min_gain_tokens: What `to_target` must gain. Source: Hermes, which prunes from 4,096 on for its cache's sake.
        min_gain_share: Of the view, the same; of the window, an upper bound on `min_gain_tokens`. Source: 7.4.
        stale_after: A file's text stays after an edit until so many results came behind that. Source: ours; whoever
            edits a file once often edits it again.
    """

    placeholder: str = ""
    allow_tools: tuple[str, ...] = ()
    deny_tools: tuple[str, ...] = ("skill",)
    min_result_chars: Chars = 400
    ttl_seconds: float = 300
    keep_last_assistants: CountFromZero = 3
    soft_trim_ratio: Share = 0.30
    soft_trim_chars: Chars = 4_000
    head_chars: Chars = 1_500
    tail_chars: Chars = 1_500
    hard_clear: Switch = True
    hard_clear_ratio: Share = 0.50
    min_prunable_chars: Chars = 50_000
    keep_image_results: CountFromZero = 3
    by_result: Switch = False
    protect_turns: CountFromZero = 2
    protect_tokens: Tokens = 40_000
    budget_gain_tokens: Tokens = 20_000
    protect_share: Share = 0.20
    min_gain_tokens: Tokens = 4_096
    min_gain_share: Share = 0.05
    stale_after: CountFromZero = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Changes of a view by a step.

    Attributes:
        cleared: The text that stands for a tool result, by the number of its message.
        stripped: Numbers of messages whose media give way to labels, in order.
        tokens_before: Size of the view before.
        tokens_after: Size of the view after.
        notes: What was done or why nothing was, each a sentence for the receipt.
    """

    tokens_before: int
    tokens_after: int
    cleared: Mapping[int, str] = field(default_factory=dict)
    stripped: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def gain_tokens(self) -> int:
        """Tokens saved."""
        return self.tokens_before - self.tokens_after


# The number of a message, and the call that it answers: one of Anthropic's messages may hold several results.
SaidAt = tuple[int, str]


def said_at(message: Numbered) -> SaidAt:
    """The place of a result among all that was said."""
    return message.seq, message.message.get("tool_call_id", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorPruning:
    """Changes of a view before a step.

    Attributes:
        protected: Numbers of messages that stay as they are, such as pins.
        already: What stands for results by earlier steps.
        stripped: Numbers of messages whose media are gone by earlier steps.
        pending: Ids of calls that still run.
        said: The results as they came, by the place that `said_at` gives: the view may show less of them.
        texts: Words of the talk's language, for what is put in the place of results and media.
    """

    protected: Collection[int] = frozenset()
    already: Mapping[int, str] = field(default_factory=dict)
    stripped: Collection[int] = frozenset()
    pending: Collection[str] = frozenset()
    said: Mapping[SaidAt, Numbered] = field(default_factory=dict)
    texts: Texts = ENGLISH

    def after(self, step: Pruned) -> PriorPruning:
        """Changes with those of a step."""
        return replace(
            self, already={**self.already, **step.cleared}, stripped=frozenset({*self.stripped, *step.stripped})
        )


NO_PRIOR_PRUNING = PriorPruning()


class ToolResult(NamedTuple):
    """A result that may be pruned, as the view has it now."""

    at: int
    numbered: Numbered
    function: Function
    text: str
    tokens: int


def pruned_view(
    messages: Sequence[Numbered],
    cleared_values: Mapping[int, str],
    stripped_numbers: Collection[int] = (),
    texts: Texts = ENGLISH,
) -> list[Numbered]:
    """The messages as they are after steps; those that no step touched are the same objects."""
    return [
        message
        if message.seq not in cleared_values and message.seq not in stripped_numbers
        else _with_message(
            message, pruned_message(message, cleared_values.get(message.seq), message.seq in stripped_numbers, texts)
        )
        for message in messages
    ]


def pruned_message(each_message: Numbered, text: str | None, is_stripped: bool, texts: Texts = ENGLISH) -> Message:
    """A message with the text that stands for it, and with or without its media."""
    message = each_message.message
    if text is not None and is_tool_result(message):
        message = with_text(message, text)
    return without_media(message, each_message.seq, texts) if is_stripped else message


def view_tokens(messages: Sequence[Numbered], prior: PriorPruning) -> int:
    """Size of the view in tokens."""
    if not prior.already and not prior.stripped:
        return sum(message.tokens for message in messages)
    return sum(_tokens_now(message, prior) for message in messages)


def unread_from(messages: Sequence[Numbered]) -> int:
    """The position from which on results were not read by the model: that of its last message."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].message["role"] == "assistant":
            return at
    return 0


def results_of(
    messages: Sequence[Numbered], rules: PruningRules, prior: PriorPruning = NO_PRIOR_PRUNING
) -> list[ToolResult]:
    """The results that may be pruned, in order."""
    functions: dict[str, Function] = {}
    unknown_function: Function = {"name": "", "arguments": ""}
    least = rules.min_result_chars // CHARS_PER_TOKEN + MESSAGE_TOKENS
    results: list[ToolResult] = []
    for at in range(unread_from(messages)):
        each_message = messages[at]
        message = each_message.message
        if "tool_calls" in message:
            for call in tool_calls_of(message):
                functions[call["id"]] = call["function"]
        if message["role"] != "tool" or each_message.tokens <= least or not _is_settled(each_message, prior):
            continue
        function = functions.get(message.get("tool_call_id", ""), unknown_function)
        if not may_prune(function["name"] or message.get("name") or "", rules.allow_tools, rules.deny_tools):
            continue
        tokens = (
            _tokens_now(each_message, prior)
            if each_message.seq in prior.already or each_message.seq in prior.stripped
            else each_message.tokens
        )
        if tokens > least:
            results.append(
                ToolResult(at, each_message, function, prior.already.get(each_message.seq) or text_of(message), tokens)
            )
    return results


@lru_cache(maxsize=1024)
def may_prune(name: str, allow: tuple[str, ...], deny: tuple[str, ...]) -> bool:
    """True if the results of a tool may be pruned; a pattern is a shell's, whatever the case, and `deny` wins."""
    folded_text = name.casefold()
    if any(fnmatchcase(folded_text, pattern.casefold()) for pattern in deny):
        return False
    return not allow or any(fnmatchcase(folded_text, pattern.casefold()) for pattern in allow)


class PruningDraft:
    """Decisions of a step so far; it takes only what makes the view smaller."""

    def __init__(self, rules: PruningRules, prior: PriorPruning, tokens: int) -> None:
        self._rules, self._given = rules, prior
        self._before = self.tokens = tokens
        self._cleared: dict[int, str] = {}
        self._stripped: set[int] = set()
        self._sizes: dict[int, int] = {}

    def size(self, result: ToolResult) -> int:
        """Tokens of a result as it is now."""
        return self._sizes.get(result.at, result.tokens)

    def trim_gain(self, result: ToolResult) -> int:
        """About what shortening a result would save, in tokens; 0 if it is not over the size for that."""
        rules = self._rules
        if self.size(result) <= rules.soft_trim_chars // CHARS_PER_TOKEN + MESSAGE_TOKENS:
            return 0
        return max(0, self.size(result) - (rules.head_chars + rules.tail_chars) // CHARS_PER_TOKEN - _NOTICE_TOKENS)

    def trim(self, result: ToolResult) -> bool:
        """Shortens a result to its beginning and end if it is over the size for that."""
        if not self.trim_gain(result):
            return False
        rules, seq, texts = self._rules, result.numbered.seq, self._given.texts
        text = trim_middle(result.text, head_chars=rules.head_chars, tail_chars=rules.tail_chars, seq=seq, texts=texts)
        return self.put(result, text)

    def clear(self, result: ToolResult) -> bool:
        """Takes out a result, its media too."""
        message, rules, texts = result.numbered, self._rules, self._given.texts
        if rules.placeholder:
            text = placeholder_text(rules.placeholder, message.seq, texts)
        else:
            function = result.function
            said_message = self._given.said.get(said_at(message), message).message
            text = stub_text(function["name"], function["arguments"], said_message, message.seq, texts=texts)
        return self.put(result, text, strip=True)

    def put(self, result: ToolResult, text: str, *, strip: bool = False) -> bool:
        """Puts a text for a result, if that is smaller."""
        message = result.numbered
        strip = strip and message.seq not in self._given.stripped and bool(media_parts_of(message.message))
        tokens = _shown_tokens(message, text, strip or message.seq in self._given.stripped, self._given.texts)
        if tokens >= self.size(result):
            return False
        self.tokens -= self.size(result) - tokens
        self._sizes[result.at] = tokens
        self._cleared[message.seq] = text
        if strip:
            self._stripped.add(message.seq)
        return True

    def decisions(self, *notes: str) -> Pruned:
        """Decisions of the step."""
        return Pruned(
            cleared=self._cleared,
            stripped=tuple(sorted(self._stripped)),
            tokens_before=self._before,
            tokens_after=self.tokens,
            notes=tuple(filter(None, notes)),
        )

    def no_decisions(self, *notes: str) -> Pruned:
        """Nothing, after all."""
        return Pruned(tokens_before=self._before, tokens_after=self._before, notes=notes)


def _is_settled(each_message: Numbered, prior: PriorPruning) -> bool:
    message = each_message.message
    return not (
        message.get("is_error")
        or message.get("interim")
        or each_message.seq in prior.protected
        or message.get("tool_call_id") in prior.pending
    )


def _tokens_now(message: Numbered, prior: PriorPruning) -> int:
    text, is_stripped = prior.already.get(message.seq), message.seq in prior.stripped
    return (
        message.tokens if text is None and not is_stripped else _shown_tokens(message, text, is_stripped, prior.texts)
    )


def _shown_tokens(message: Numbered, text: str | None, is_stripped: bool, texts: Texts) -> int:
    if text is not None and isinstance(message.message.get("content"), str) and is_tool_result(message.message):
        return estimate_tokens(text) + MESSAGE_TOKENS
    return message_tokens(pruned_message(message, text, is_stripped, texts))


def _with_message(each_message: Numbered, message: Message) -> Numbered:
    return replace(each_message, message=message, tokens=message_tokens(message))


_SHARE = 0.30  # of the window. Source: OpenClaw's live cap on tool results
_MAX_CHARS = 50_000  # whatever the window is. Source: OpenClaw's cap on every result


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """How large one result may be.

    Attributes:
        share: Of the window; what is larger is cut.
        max_chars: Whatever the window is, what is larger is cut; a CJK character counts for four.
        clear_share: Of the window; what is larger gives way to the placeholder. None: never, since the cut already
            bounds it and says more. Seed 002, 13.4 has both; it names no number.
        notice: Words put where something was cut out.
        placeholder: What stands for a result that was taken out whole; the handle is put behind it.
    """

    share: Share = _SHARE
    max_chars: Chars = _MAX_CHARS
    clear_share: Share | None = None
    notice: str = ""
    placeholder: str = OUTPUT_REMOVED


def _guard_limit_chars(window_tokens: int, share: float = _SHARE, max_chars: int = _MAX_CHARS) -> int:
    """The largest text that one result may be, in characters; a CJK one counts for four."""
    return max(0, min(int(window_tokens * CHARS_PER_TOKEN * share), max_chars))


def guarded_view(
    messages: Sequence[Numbered],
    rules: GuardRules,
    window_tokens: int,
    *,
    protected_numbers: Collection[int] = (),
    texts: Texts = ENGLISH,
) -> list[Numbered]:
    """The messages with every result cut that is over its share.

    Args:
        messages: In order.
        rules: See there.
        window_tokens: The model's whole context window.
        protected_numbers: Numbers of messages that stay whatever their size, such as pins.
        texts: Words of the talk's language.

    Returns:
        As many messages as there were.
    """
    limit_chars = _guard_limit_chars(window_tokens, rules.share, rules.max_chars)
    # Characters count here; no text has more than four of them, as they are counted, for each half of a token.
    small_tokens = limit_chars // (2 * CHARS_PER_TOKEN)
    return [
        message
        if message.tokens <= small_tokens or not is_tool_result(message.message) or message.seq in protected_numbers
        else _within(message, rules, limit_chars, window_tokens, texts)
        for message in messages
    ]


def _within(each_message: Numbered, rules: GuardRules, limit_chars: int, window_tokens: int, texts: Texts) -> Numbered:
    message = shorten_result(each_message.message, limit_chars, each_message.seq, notice=rules.notice, texts=texts)
    if message is each_message.message:
        return each_message
    said_tokens = count_tokens(text_of(each_message.message)) + MESSAGE_TOKENS
    if rules.clear_share is not None and said_tokens > rules.clear_share * window_tokens:
        message = with_text(message, placeholder_text(rules.placeholder, each_message.seq, texts))
    return number_message(message, each_message.seq, each_message.at)
