"""Owns what the demo finds out, as values: one for each step. What `--json` prints, by these names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """The sample's Markdown, and its index.

    Attributes:
        files: Paths within the workspace.
        excerpt: Some lines of the last file.
        again_ms: How long it took to find that nothing had changed.
    """

    files: tuple[str, ...]
    excerpt: tuple[str, ...]
    passages: int
    index_ms: int
    again_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The prompt at one place of the conversation.

    Attributes:
        message: How many messages had been said.
        messages: How many there are in all.
        tokens: What the prompt takes.
        window: What the model takes.
        event: What was done before the prompt was made; empty for nothing.
    """

    message: int
    messages: int
    tokens: int
    window: int
    event: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """A flush.

    Attributes:
        message: How many messages had been said.
        path: The file that the memories were written to.
        entries: Some of them, as they stand in the file.
        found: Where the next search found the first of them; empty if it did not.
    """

    message: int
    path: str
    written: int
    duplicates: int
    entries: tuple[str, ...]
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """A compaction that was made, taken back, and made again.

    Attributes:
        message: How many messages had been said.
        covered_messages: How many gave way to the checkpoint.
        view_bytes: Size of the view before it, as JSON.
        undo_is_equal: Whether taking it back gave the same bytes.
    """

    compaction_id: str
    message: int
    tokens_before: int
    tokens_after: int
    covered_messages: int
    view_bytes: int
    undo_is_equal: bool
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The recorded conversation, said again in a small window.

    Attributes:
        tokens: What all messages take.
        contexts: How many prompts were made.
        peak_tokens: The largest of them.
        slowest_ms: The one that took longest, with what was done before it.
        logged_messages: How many the log has afterwards.
        log_is_equal: Whether each is there byte for byte.
        kept: Some lines of the checkpoint that stands in the view in the end.
    """

    session_id: str
    first_day: str
    last_day: str
    messages: int
    tokens: int
    window: int
    contexts: int
    peak_tokens: int
    slowest_ms: int
    seconds: float
    flushes: tuple[Flushed, ...]
    compactions: tuple[Compacted, ...]
    logged_messages: int
    log_is_equal: bool
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexed:
    """The index after the conversation.

    Attributes:
        passages: How many it has now.
        changed: Files that were new or had changed since.
        embedded: Passages that had to be embedded for them.
    """

    passages: int
    changed: int
    embedded: int
    took_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What went into a block, by its receipt."""

    path: str
    start_line: int
    end_line: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """A question, and the prompt that it got.

    Attributes:
        answer: Words that answer it.
        is_in_view: Whether they stand in the view, so that nothing had to be recalled.
        is_in_block: Whether they stand in the block.
        tokens: Of the block, with its wrapper.
        prompt_tokens: Of the whole prompt.
        omitted: How many candidates stayed out of the block.
        has_pin: Whether the pinned rule stands in the prompt.
    """

    question: str
    answer: str
    is_in_view: bool
    is_in_block: bool
    block: str
    tokens: int
    budget_tokens: int
    prompt_tokens: int
    window: int
    receipt_id: str
    sources: tuple[Source, ...]
    omitted: int
    has_pin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All of it.

    Attributes:
        home: Where it can be looked at; empty if nothing was left.
    """

    notes: Notes
    replay: Replay
    reindexed: Reindexed
    pin: str
    recalls: tuple[Recall, ...]
    seconds: float
    home: str = ""
