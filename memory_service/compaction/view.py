"""The view: the messages that a model sees, as a pure function of a conversation and what was compacted of it.

Invariants: every message that is no system message is shown word for word, shown as a stub with its handle, or
covered by the summary; system messages, pins and the last request of the user always stand there; what comes out is
valid on the wire; a conversation and a shape always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from memory_service.compaction.checkpoint import Checkpoint, checkpoint_messages, pinned_texts, shorten_text
from memory_service.compaction.ledger_text import fit_ledger, render_ledger
from memory_service.compaction.prune_steps import GuardRules, guarded_view
from memory_service.compaction.prune_steps import pruned_message as reduced
from memory_service.compaction.record import Head, LoggedCompaction, PinRecord
from memory_service.compaction.summary import without_tools
from memory_service.compaction.summary_format import folded_line, without_repeated
from memory_service.compaction.users_request import asked_now
from memory_service.messages.repair import PORTABLE, MessageRepair, Rules, repair_messages
from memory_service.messages.shapes import Message, is_system, own_text_of, text_of
from memory_service.messages.shapes import without_thinking as stripped_of_thinking
from memory_service.messages.sizes import Numbered, estimate_tokens, message_tokens, number_message
from memory_service.schemas.compaction import LedgerEntry
from memory_service.text.frames import escape_frames
from memory_service.text.secrets import redact
from memory_service.text.talk_language import first_language, language_of, talk_language
from memory_service.text.texts import ENGLISH, Texts, texts_in

if TYPE_CHECKING:
    from memory_service.compaction.presets import CompactionSettings

# What messages of the log were read as, with their media, by number.
Originals: TypeAlias = Mapping[int, Sequence[Message]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages, and what was made of them so far: all that a view and a compaction need.

    Attributes:
        messages: All that was ever said, media as short notes; commands to the service are not among them.
        head: The compaction that counts.
        compactions: All that were made.
        pins: What every view keeps, oldest first.
        pending: Ids of tool calls that will be answered late.
        last_seq: The last number that was given.
    """

    messages: tuple[Numbered, ...] = ()
    head: Head = field(default_factory=Head)
    compactions: tuple[LoggedCompaction, ...] = ()
    pins: tuple[PinRecord, ...] = ()
    pending: frozenset[str] = frozenset()
    last_seq: int = 0

    def message(self, seq: int) -> Numbered | None:
        """The message with a number, if there is one."""
        at = _place(self.messages, seq)
        return self.messages[at] if at < len(self.messages) and self.messages[at].seq == seq else None

    def since(self, seq: int) -> tuple[Numbered, ...]:
        """The messages from a number on."""
        return self.messages[_place(self.messages, seq) :]

    def between(self, first: int, last: int) -> tuple[Numbered, ...]:
        """The messages from a number to another, both included."""
        return self.messages[_place(self.messages, first) : _place(self.messages, last + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewShape:
    """Size limits of the parts of a view, for one window.

    Attributes:
        window_tokens: Size of the window that the guard's shares are of.
        ledger_tokens: The longest ledger shown.
        request_chars: The longest request of the user that stands word for word in a checkpoint.
        rules: What the provider at hand refuses.
    """

    window_tokens: int
    ledger_tokens: int = 800
    request_chars: int = 16_000
    guard: GuardRules = field(default_factory=GuardRules)
    rules: Rules = PORTABLE


def shape_of(options: CompactionSettings) -> ViewShape:
    """Limits on the parts of a view."""
    preset, window = options.preset, options.window.tokens
    usable = int(window * 0.75)
    summary = min(preset.most_summary_tokens, max(preset.least_summary_tokens, int(usable * 0.1)))
    return ViewShape(
        window_tokens=window,
        ledger_tokens=preset.ledger_tokens(summary),
        request_chars=4 * preset.request_tokens(usable),
        guard=preset.guard,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The messages that a model sees, with their sizes in estimated tokens.

    Attributes:
        messages: A list that every provider takes.
        system_tokens: Of the system messages in it.
        summary_tokens: Of the checkpoint: summary, ledger, pins, request.
        pin_tokens: Of the pins in it.
        tail_tokens: Of all others.
        lead: How many messages stand before the tail: system messages and checkpoint.
        first_seq: The first message of the log that is shown itself; one more than the last if none is.
        last_seq: The last one.
        seqs: The number of each message of the tail.
        sizes: What each of them takes.
        repairs: What had to be done to make it valid.
        tail: The messages below the checkpoint as `tail_of` gives them.
    """

    messages: tuple[Message, ...]
    system_tokens: int
    summary_tokens: int
    tail_tokens: int
    lead: int
    first_seq: int
    last_seq: int
    pin_tokens: int = 0
    seqs: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    repairs: tuple[MessageRepair, ...] = ()
    tail: tuple[Numbered, ...] = ()

    @property
    def tokens(self) -> int:
        """All of it."""
        return self.system_tokens + self.summary_tokens + self.tail_tokens

    @property
    def view_sizes(self) -> ViewSizes:
        """Sizes of the view."""
        return ViewSizes(lead_tokens=self.system_tokens + self.summary_tokens, seqs=self.seqs, sizes=self.sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSizes:
    """Sizes of a view in estimated tokens, without its messages.

    Attributes:
        lead_tokens: Of system messages and checkpoint.
        seqs: The number of each message of the tail.
        sizes: What each of them takes.
    """

    lead_tokens: int
    seqs: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """All of it."""
        return self.lead_tokens + sum(self.sizes)


def extend_view(
    view_sizes: ViewSizes, messages: Sequence[Numbered], shape: ViewShape, texts: Texts = ENGLISH
) -> ViewSizes:
    """Copy of a view with more messages at its end; the texts are those of `view_language`."""
    shown_view = guarded_view(messages, shape.guard, shape.window_tokens, texts=texts)
    return ViewSizes(
        lead_tokens=view_sizes.lead_tokens,
        seqs=(*view_sizes.seqs, *(message.seq for message in shown_view)),
        sizes=(*view_sizes.sizes, *(each_message.tokens for each_message in shown_view)),
    )


def project(state: Conversation, shape: ViewShape, *, originals: Originals | None = None) -> View:
    """The view of a session.

    Args:
        state: The session.
        shape: What limits it.
        originals: Messages with their media, by number; the others show notes in their place.
    """
    opening = _opening(state)
    system = [message for message in state.messages if is_system(message.message) and _leads(message, state, opening)]
    tail = tail_of(state, shape, originals=originals)
    parts = checkpoint_of(state, shape)
    checkpoint = checkpoint_messages(parts)
    repair = repair_messages(
        [*(message.message for message in system), *checkpoint, *(message.message for message in tail)],
        pending=state.pending,
        rules=shape.rules,
        language=view_language(state),
    )
    summary_tokens = sum(map(message_tokens, checkpoint))
    # Those that are sent: one that says nothing is not.
    system_tokens = sum(map(message_tokens, takewhile(is_system, repair.messages)))
    total = _total(repair.messages, tail, system_tokens + summary_tokens, has_changed=bool(repair.repairs))
    return View(
        messages=tuple(repair.messages),
        system_tokens=system_tokens,
        summary_tokens=summary_tokens,
        tail_tokens=total - system_tokens - summary_tokens,
        pin_tokens=estimate_tokens("\n".join(parts.pins)) if parts.pins else 0,
        lead=_lead(repair.messages, checkpoint),
        first_seq=tail[0].seq if tail else state.last_seq + 1,
        last_seq=tail[-1].seq if tail else state.last_seq,
        seqs=tuple(message.seq for message in tail),
        sizes=tuple(message.tokens for message in tail),
        repairs=repair.repairs,
        tail=tail,
    )


def tail_of(state: Conversation, shape: ViewShape, *, originals: Originals | None = None) -> tuple[Numbered, ...]:
    """The messages below the checkpoint as they are shown, with their sizes; not yet made valid."""
    head, opening, texts = state.head, _opening(state), texts_in(view_language(state))
    messages = state.since(head.tail_start)
    turn = max((at for at, message in enumerate(messages) if message.message["role"] == "user"), default=0)
    pins = frozenset(pin.target for pin in state.pins if pin.target is not None)
    changed_messages = [
        _as_seen(message, whole, head, pins, texts, keeps_thinking=at >= turn or message.seq > head.upto)
        for at, (message, whole) in enumerate(zip(messages, _whole(messages, originals or {}), strict=True))
        if not (is_system(message.message) and _leads(message, state, opening))
    ]
    if head.toolless_upto >= head.tail_start > 0:
        changed_messages = without_tools(changed_messages, head.toolless_upto, live=state.pending, pinned_numbers=pins)
    return tuple(guarded_view(changed_messages, shape.guard, shape.window_tokens, protected_numbers=pins, texts=texts))


def checkpoint_of(state: Conversation, shape: ViewShape) -> Checkpoint:
    """Checkpoint of a view."""
    head, texts = state.head, view_texts(state)
    request, request_seq = _request(state, None if head.whole_request else shape.request_chars, texts)
    ledger = _drop_repeated_asks(head.ledger, request)
    return Checkpoint(
        summary=without_repeated(head.summary, request, request_seq) if request else head.summary,
        ledger=_ledger(head, ledger, shape.ledger_tokens, texts),
        pins=pinned_texts([(text, seq) for text, seq in pin_texts(state) if seq is None or seq < head.tail_start]),
        request=request,
        request_seq=request_seq,
        toolless_upto=head.toolless_upto if head.toolless_upto >= head.tail_start else 0,
        role=cast(Literal["user", "assistant"], head.role),
        texts=texts,
    )


def _ledger(head: Head, ledger: Sequence[LedgerEntry], limit_tokens: int, texts: Texts) -> str:
    """The ledger as it is shown: within its limit as characters are counted, and as a window takes it."""
    if head.ledger_tokens is not None:
        limit_tokens = min(limit_tokens, head.ledger_tokens)
    if not ledger or limit_tokens < 1:
        return ""
    text = render_ledger(fit_ledger(ledger, limit_tokens, texts), texts)
    if (tokens := estimate_tokens(text)) > limit_tokens:
        text = render_ledger(fit_ledger(ledger, limit_tokens * limit_tokens // tokens, texts), texts)
    return text


def view_texts(state: Conversation) -> Texts:
    """Words of a checkpoint about itself: in the language of the compaction; of pins without one, in their own."""
    if state.head.rounds:
        return texts_in(state.head.language)
    return texts_in(talk_language([text for text, _ in pin_texts(state)]) if state.pins else "")


def view_language(state: Conversation) -> str:
    """Language of what stands in a view for results and media: of the compaction; without one, that of the beginning.

    It stays between compactions, so that a provider's cache is hit.
    """
    return (state.head.language or "en") if state.head.rounds else first_language(state.messages)


def newest_language(state: Conversation) -> str:
    """Language that a talk has by now, which a compaction is written in."""
    return language_of(state.messages, before=(state.head.language or "en") if state.head.rounds else "")


def pin_texts(state: Conversation) -> list[tuple[str, int | None]]:
    """The text of each pin, with the number of the message that it is of."""
    pairs = list[tuple[str, int | None]]()
    for pin in state.pins:
        if pin.text is not None:
            pairs.append((pin.text, None))
        elif pin.target is not None and (messages := state.between(pin.target, pin.target)):
            # One message of Anthropic's may be several of ours.
            pairs.append(("\n".join(filter(None, (text_of(message.message) for message in messages))), pin.target))
    return pairs


def with_head(state: Conversation, head: Head) -> Conversation:
    """Session state as if another compaction were active, to size a plan."""
    return replace(state, head=head)


def _leads(message: Numbered, state: Conversation, opening: int) -> bool:
    """True if a system message stands at the beginning: it came there, or what it stood among is compacted."""
    return message.seq < state.head.tail_start or message.seq <= opening


def _opening(state: Conversation) -> int:
    """The last of the system messages that the log begins with."""
    last = 0
    for message in state.messages:
        if not is_system(message.message):
            break
        last = message.seq
    return last


def _whole(messages: Sequence[Numbered], originals: Originals) -> Iterator[Message]:
    """The messages with their media; several of ours may be one of the log, and share its number."""
    place, before = 0, None
    for message in messages:
        place = place + 1 if message.seq == before else 0
        before = message.seq
        read = originals.get(message.seq, ())
        yield read[place] if place < len(read) else message.message


def _as_seen(
    each_message: Numbered, message: Message, head: Head, pins: Collection[int], texts: Texts, *, keeps_thinking: bool
) -> Numbered:
    if each_message.seq not in pins:
        # The same rule that the steps planned with, so that both come to the same size.
        original = each_message if message is each_message.message else replace(each_message, message=message)
        message = reduced(original, head.cleared.get(each_message.seq), each_message.seq in head.stripped, texts)
    if head.seq is not None and not keeps_thinking:
        # Its signature holds for what stood before it, and that is gone.
        message = stripped_of_thinking(message)
    return (
        each_message if message is each_message.message else number_message(message, each_message.seq, each_message.at)
    )


def _request(state: Conversation, most_chars: int | None, texts: Texts) -> tuple[str, int]:
    """The request of the user, as far as it does not stand below the checkpoint, and the number of its message.

    An answer stands with its question. A request of more characters than the most is shortened; None for a whole one.
    """
    head = state.head
    now = asked_now(state.messages) if head.rounds else None
    if now is None:
        return "", 0
    pieces, seq = list[str](), 0
    if now.request and now.request.seq < head.tail_start and now.request is not now.answer:
        pieces.append(_as_asked(now.request, most_chars, texts))
        seq = now.request.seq
    if now.answer and now.asked_in < head.tail_start:
        question = escape_frames(redact(now.question))
        pieces.append(texts.question.format(seq=now.asked_in, question=question))
        pieces.append(texts.answer.format(seq=now.answer.seq, answer=_as_asked(now.answer, most_chars, texts)))
        seq = seq or now.answer.seq
    return "\n\n".join(pieces), seq


def _drop_repeated_asks(ledger: Sequence[LedgerEntry], request: str) -> Sequence[LedgerEntry]:
    """A ledger without the asks that the request below it says in full."""
    text = folded_line(request)
    return [entry for entry in ledger if entry.kind != "ask" or folded_line(entry.text) not in text] if text else ledger


def _as_asked(message: Numbered, most_chars: int | None, texts: Texts) -> str:
    text = escape_frames(redact(own_text_of(message.message)))
    return text if most_chars is None else shorten_text(text, most_chars, f"log:{message.seq}", texts)


def whole_request_of(state: Conversation) -> str:
    """The request of a checkpoint as it would stand there if nothing of it were left out; empty for none."""
    return _request(state, None, view_texts(state))[0]


def _total(messages: Sequence[Message], tail: Sequence[Numbered], lead_tokens: int, *, has_changed: bool) -> int:
    # Nothing was repaired nearly always: then every size is known.
    return sum(map(message_tokens, messages)) if has_changed else lead_tokens + sum(message.tokens for message in tail)


def _lead(messages: Sequence[Message], checkpoint: Sequence[Message]) -> int:
    at = 0
    while at < len(messages) and is_system(messages[at]):
        at += 1
    if checkpoint:
        at = next((place + 1 for place in range(at, len(messages)) if messages[place] == checkpoint[0]), at)
    return at


def _place(messages: tuple[Numbered, ...], seq: int) -> int:
    """Index of the first message with this number or a later one."""
    low, high = 0, len(messages)
    while low < high:
        middle = (low + high) // 2
        if messages[middle].seq < seq:
            low = middle + 1
        else:
            high = middle
    return low
