"""Session store of one workspace: begin, append, read, pin, trim, delete.

Invariants: an append is on the disk when it is answered, waits for no model and for no compaction, and is refused as
a whole or written as a whole; what a caller sends is kept byte for byte; what the service itself put into a prompt is
recognised when it comes back, and never taken for something that somebody said.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from memory_service import schemas
from memory_service.compaction.presets import numbers_of
from memory_service.compaction.record import PinRecord
from memory_service.compaction.view import view_language
from memory_service.errors import Conflict, InvalidRequest, MemoryServiceError, NotFound, StorageFailed, key_reused
from memory_service.home import MAX_SESSION_ID_CHARS, id_of_title
from memory_service.messages.repair import to_wire
from memory_service.messages.shapes import Json, Message, text_of
from memory_service.messages.sizes import Numbered, Usage
from memory_service.prompts.receipt_records import Receipts
from memory_service.runtime.log_changes import (
    ErasedSeqs,
    erase_messages,
    foreign_messages,
    fork_log,
    has_messages,
    is_fork,
    unreadable,
)
from memory_service.runtime.sent_messages import check_messages
from memory_service.runtime.session_options import check_new, check_settings, pressure_of
from memory_service.schemas.compaction import BRANCH_MARK
from memory_service.schemas.messages import MAX_PIN_CHARS, Wire
from memory_service.schemas.sessions import TRIM_KEEP_LAST, SessionChanges
from memory_service.sessions.records import (
    Appended,
    Body,
    Keyed,
    Learned,
    LogEnd,
    MessageRecord,
    Pending,
    SessionHeader,
    Unpin,
    compact_json,
)

if TYPE_CHECKING:
    from memory_service.runtime.session import OpenSession, SessionState
    from memory_service.runtime.session_services import SessionRuntime, SessionSnapshot
    from memory_service.storage.logs import SessionLog

MAX_PINS = 64
_KEYED_ATTEMPTS = 16


class SessionStore:
    """Store of the sessions of one workspace: begin, append, read, pin, trim, delete."""

    def __init__(self, services: SessionRuntime, receipts: Receipts) -> None:
        self._services = services
        self._receipts = receipts

    def create(
        self,
        session_id: str | None,
        *,
        model: str | None = None,
        context_window: int | None = None,
        settings: Mapping[str, Json] | None = None,
        title: str = "",
    ) -> schemas.Session:
        """Begin a session; without an id it gets one, made from its title if it has one.

        Raises:
            InvalidName: The id is not one of a session.
            InvalidRequest: A setting is unknown or cannot be used, or the window is too small.
            Conflict: There is a session of that id.
        """
        check_new(self._services.shared.settings, settings or {}, model=model, context_window=context_window)
        text = id_of_title(title) if title.strip() else ""
        name = session_id or text or f"{self._services.now():%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}"
        self._services.create(
            name, model=model, context_window=context_window, settings=settings or {}, title=title.strip()
        )
        return self.summary(name)

    def update(self, session_id: str, changes: SessionChanges) -> schemas.Session:
        """Change what is set for a session: what is not named stays, None sets nothing of its own any more."""
        session = self._services.session(session_id)
        state = session.state()
        header = state.header or SessionHeader(session_id=session_id)
        new = SessionHeader(
            session_id=session_id,
            model=changes.get("model", header.model),
            context_window=changes.get("context_window", header.context_window),
            settings=changes.get("settings", header.settings) or {},
            title=header.title,
        )
        notes: list[SessionHeader | Learned] = [new]
        if state.learned is not None and changes.get("context_window") is not None:
            # Who sets a window knows better than an error of before; the next one may tell it again.
            notes.append(Learned(context_window=0, model=state.learned.model, reason="a window was set"))
            state = replace(state, learned=None)
        check_settings(self._services.shared.settings, new, state.learned)
        session.note(notes, state)
        return self.summary(session_id)

    def list_sessions(self) -> list[schemas.ListedSession]:
        """All sessions, the last active first."""
        return self._services.logs.list()

    def summary(self, session_id: str) -> schemas.Session:
        """A session as it stands.

        Raises:
            NotFound: There is no such session.
        """
        snapshot = self._services.snapshot(session_id)
        reading, state = snapshot.reading(is_anchored=True), snapshot.state
        log = snapshot.session.log.status()
        return schemas.Session(
            session_id=session_id,
            title=state.header.title if state.header else "",
            model=snapshot.options.model_name,
            settings=dict(state.header.settings) if state.header else {},
            messages=len(state.messages),
            last_seq=state.last_seq,
            tokens=reading.tokens,
            pressure=pressure_of(snapshot.options, reading.tokens, scale=snapshot.scale()),
            context_window=snapshot.options.window,
            preset=snapshot.options.preset.name,
            numbers=dict(numbers_of(snapshot.options.preset)),
            compactions=sum(past.active for past in state.compactions),
            flushed_to=state.flushed_to,
            pins=len(state.pins),
            size_bytes=log.size_bytes,
            last_activity=state.last_at,
            degraded=[f"log: {repair.message}" for repair in log.repairs],
        )

    def delete(self, session_id: str) -> schemas.ErasedSession:
        """Erase a session, from the disk and from the index, and look for it.

        Raises:
            NotFound: There is no such session.
        """
        services, kept_texts = self._services, list[str]()
        if not services.logs.has_remains(session_id):
            services.logs.open(session_id)  # which is not there: an erasure would mark the workspace, and make it

        def delete() -> None:
            services.longterm.files.history.erase_messages(
                lambda: _texts(services.logs.open(session_id, must_exist=False))
            )
            # What it was asked for last stands in its receipts.
            services.delete(session_id, first=lambda: _forget_prompts(self._receipts, services, session_id))
            if services.engine:
                kept_texts.extend(services.engine.forget(session_id))

        erasure, missing = services.longterm.forget_session(
            session_id, delete, lambda: services.logs.has_remains(session_id)
        )
        return schemas.ErasedSession(session_id=session_id, erased=erasure, degraded=[*missing, *kept_texts])

    def erase(self, session_id: str, seqs: Sequence[int]) -> schemas.ErasedMessages:
        """Erase messages from the log and from the index, with all that was made of them, and look for them.

        Raises:
            NotFound: There is no such session, or it has none of these messages.
        """
        services, gone_seqs, texts = self._services, list[ErasedSeqs](), list[str]()
        services.session(session_id)

        def erase() -> None:
            services.longterm.files.history.erase_messages(lambda: _texts(services.logs.open(session_id), seqs))
            # What it was asked for last stands in its receipts, what was recalled for a message in its prompts.
            gone_seqs.append(
                erase_messages(
                    services.logs, session_id, seqs, first=lambda: _forget_prompts(self._receipts, services, session_id)
                )
            )
            if services.engine:
                texts.extend(services.engine.forget(session_id))

        erasure, missing = services.longterm.forget_session(
            session_id, erase, lambda: has_messages(services.logs.open(session_id), seqs)
        )
        return schemas.ErasedMessages(
            session_id=session_id,
            seqs=[*gone_seqs[0].messages],
            compactions=[f"c{seq}" for seq in gone_seqs[0].compactions],
            erased=erasure,
            degraded=[*missing, *texts],
        )

    def append(
        self,
        session_id: str,
        messages: Sequence[object],
        *,
        usage: Usage | None = None,
        model: str | None = None,
        key: str | None = None,
        verbatim: bool = False,
        at: LogEnd | None = None,
    ) -> schemas.AppendedMessages:
        """Append messages, and what the provider counted for the call that they come from; begins the session.

        Args:
            session_id: The session.
            messages: In OpenAI's or Anthropic's shape.
            usage: What the provider counted.
            model: The model that the session is with, if it is begun.
            key: Idempotency key: the same key again appends nothing again.
            verbatim: Whether the caller never had a prompt of the service: what looks like a part of one was said.
            at: The end of the log that the messages follow, if that matters.

        Raises:
            Conflict: The key belongs to other messages; or the log ends elsewhere.
            InvalidRequest: There are none, or one is in neither shape.
            StorageFailed: The disk did not take them; nothing was appended.
        """
        items = check_messages(messages, verbatim=verbatim)
        session, at = self._open_for_append(session_id, model, at)
        # Settings of the service may have come since that contradict the session's.
        state = session.state()
        check_settings(self._services.shared.settings, state.header, state.learned)
        texts = [_json(message) for message in items]
        append, is_replayed = _append_batch(session, texts, usage, key, at)
        self._services.longterm.note_session(session_id)
        snapshot = self._services.snapshot(session_id, session=session)
        return _append_answer(snapshot, append, replayed=is_replayed, skipped=len(messages) - len(items))

    def standing(self, session_id: str) -> schemas.AppendedMessages:
        """The session as it stands, as the answer to one who appended nothing."""
        return _append_answer(self._services.snapshot(session_id))

    def _open_for_append(
        self, session_id: str, model: str | None, at: LogEnd | None
    ) -> tuple[OpenSession, LogEnd | None]:
        """A session to append to, begun if it is not there, and the end of its log if that matters."""
        if at is None or at.edition:
            return self._services.get_or_create(session_id, model=model), at
        session = self._services.create(session_id, model=model, context_window=None, settings={})
        state = session.state()
        if state.messages:
            raise Conflict("The session was begun meanwhile. Look at it again.")
        return session, LogEnd(state.edition, state.last_seq)

    def branch(self, session_id: str, seq: int, *, branch_id: str | None = None, title: str = "") -> schemas.Session:
        """Begin a session with all that another one has up to a message; the same again gives the same branch.

        Raises:
            InvalidName: The id is not one of a session.
            NotFound: There is no such session, or it has no such message.
            Conflict: There is another session with the id of the branch.
        """
        self.message(session_id, seq)
        title = title.strip()
        end = f"{BRANCH_MARK}{id_of_title(title) if title else seq}"
        root = session_id.partition(BRANCH_MARK)[0]
        branch = branch_id or f"{root[: MAX_SESSION_ID_CHARS - len(end)]}{end}"
        try:
            self.fork(session_id, branch, before_seq=seq + 1, title=title)
        except Conflict:
            if not is_fork(self._services.logs, session_id, branch, before_seq=seq + 1, title=title):
                raise Conflict(f"There is another session {branch} already. Give the branch another name.") from None
        return self.summary(branch)

    def fork(self, session_id: str, branch: str, *, before_seq: int, title: str = "") -> None:
        """Begin a session with all that the log of another one has before a record.

        Raises:
            Conflict: There is a session with the id of the branch.
        """
        fork_log(self._services.logs, session_id, branch, before_seq=before_seq, title=title)
        with suppress(StorageFailed):
            # Without them the branch costs a provider's cache, and nothing else.
            self._services.prompts.fork(session_id, branch, before_seq=before_seq)

    def containing(self, mark: bytes) -> Iterator[str]:
        """Ids of the sessions whose log has some bytes in it, the last active first."""
        return self._services.logs.containing(mark)

    def model_view(self, session_id: str, *, wire: Wire = "openai") -> schemas.Messages:
        """The messages that the model sees."""
        snapshot = self._services.snapshot(session_id)
        messages = on_wire(snapshot.view().messages, wire, snapshot.state)
        return messages.model_copy(update={"degraded": [*unreadable(snapshot.session.log)]})

    def log_view(self, session_id: str, *, since_seq: int = 0, limit: int | None = None) -> schemas.Messages:
        """Everything ever said, as it was given; of a log that OpenClaw wrote, too."""
        pairs, degraded = self.iter_messages(session_id, since_seq=since_seq, limit=limit)
        found_pairs = [(seq, json.loads(text)) for seq, text in pairs]
        return schemas.Messages(
            messages=[message for _, message in found_pairs], seqs=[seq for seq, _ in found_pairs], degraded=[*degraded]
        )

    def iter_messages(
        self, session_id: str, *, since_seq: int = 0, limit: int | None = None, media: bool = True
    ) -> tuple[Iterator[tuple[int, str]], tuple[str, ...]]:
        """All logged messages one by one, to keep memory flat: number and JSON of each; and the degraded parts."""
        log = self._services.session(session_id).log
        other_foreign_messages = foreign_messages(log, since_seq, limit)
        if other_foreign_messages is not None:
            return ((seq, json.dumps(message)) for seq, message in other_foreign_messages), unreadable(log)
        logged_pairs = (
            (record.seq, record.body.text)
            for record in log.read(since_seq, media=media)
            if isinstance(record.body, MessageRecord)
        )
        return islice(logged_pairs, limit), ()

    def messages_of(self, session_id: str) -> tuple[Numbered, ...]:
        """The messages of a session as they were read; none of a session that is gone, or of another system's log."""
        with suppress(MemoryServiceError):
            return self._services.session(session_id).state().messages
        return ()

    def message(self, session_id: str, seq: int) -> str:
        """The JSON of one message, byte for byte as it was given.

        Raises:
            NotFound: There is no message of that number.
        """
        return self._services.session(session_id).log.message(seq)

    def medium(self, session_id: str, seq: int, number: int) -> tuple[bytes, str]:
        """A medium of a message (counted from 1) and its MIME type.

        Raises:
            NotFound: There is none of that number.
        """
        session = self._services.session(session_id)
        content = session.log.content(seq, number)
        media = session.state().media.get(seq, ())
        return content, media[number - 1].mime if number <= len(media) else "application/octet-stream"

    def pin(self, session_id: str, *, text: str | None = None, seq: int | None = None) -> schemas.Pin:
        """Keep a text, or a message, word for word in every view.

        Raises:
            InvalidRequest: Not exactly one of them is given, or there is too much.
            NotFound: There is no message of that number.
        """
        if (text is None) == (seq is None):
            raise InvalidRequest("A pin is of a text or of a message. Send text, or seq.")
        session = self._services.get_or_create(session_id) if text is not None else self._services.session(session_id)
        state = session.state()
        words = text if text is not None else _text_at(state, seq or 0)
        if not words.strip() or len(words) > MAX_PIN_CHARS:
            raise InvalidRequest(f"A pin has 1 to {MAX_PIN_CHARS:,} characters; this one has {len(words):,}.")
        if len(state.pins) >= MAX_PINS:
            raise InvalidRequest(f"The session has {MAX_PINS} pins, which is the most. Remove one first.")
        same = next((pin for pin in state.pins if (pin.text, pin.target) == (text, seq)), None)
        pin = same or PinRecord(pin_id=f"p{uuid.uuid4().hex[:12]}", text=text, target=seq)
        if same is None:
            session.note([pin], state)
        return schemas.Pin(pin_id=pin.pin_id, text=words, seq=seq)

    def unpin(self, session_id: str, pin_id: str) -> None:
        """Keep it no longer.

        Raises:
            NotFound: There is no such pin.
        """
        session = self._services.session(session_id)
        state = session.state()
        if all(pin.pin_id != pin_id for pin in state.pins):
            raise NotFound(f"There is no pin {pin_id[:80]!r}. List the pins to see their ids.")
        session.note([Unpin(pin_id=pin_id)], state)

    def pins(self, session_id: str) -> list[schemas.Pin]:
        """All pins, oldest first."""
        state = self._services.session(session_id).state()
        return [
            schemas.Pin(
                pin_id=pin.pin_id,
                text=pin.text if pin.text is not None else _pinned_text(state, pin.target or 0),
                seq=pin.target,
            )
            for pin in state.pins
        ]

    def await_results(self, session_id: str, call_ids: Sequence[str]) -> None:
        """Note that tool calls run for long, so that they are not taken for dead."""
        if not call_ids:
            raise InvalidRequest("No id of a tool call was given. Send at least one.")
        session = self._services.session(session_id)
        session.note([Pending(call_ids=tuple(call_ids))], session.state())

    def trim(self, session_id: str, keep_last: int = TRIM_KEEP_LAST) -> str:
        """Move all but the last lines out of the log, into a file beside it; gives its name."""
        session = self._services.session(session_id)
        return session.trim(keep_last)

    def restore(self, session_id: str) -> None:
        """Take the last trim back."""
        self._services.session(session_id).log.restore_trim()


def on_wire(messages: Sequence[Message], wire: Wire, state: SessionState) -> schemas.Messages:
    """Messages of a view in the shape of a provider."""
    model = state.header.model if state.header else None
    sent_fields, system = to_wire(messages, wire, pending=state.pending, language=view_language(state), model=model)
    beside = (system or "") if wire == "anthropic" else None
    return schemas.Messages.model_validate({"messages": sent_fields, "system": beside})


def _json(message: object) -> str:
    try:
        return compact_json(message)
    except (ValueError, TypeError):
        raise InvalidRequest("A message holds a number that JSON does not have. Send none such as NaN.") from None


def _pinned_text(state: SessionState, seq: int) -> str:
    """The text of a pinned message, also of one that an earlier version trimmed away."""
    return _text_at(state, seq) if state.message(seq) else f"[Message {seq} is not in the log any more.]"


def _text_at(state: SessionState, seq: int) -> str:
    message = state.message(seq)
    if message is None:
        raise NotFound(f"The session has no message {seq}. Read its log to see what it has.")
    return text_of(message.message)


def _append_batch(
    session: OpenSession, texts: Sequence[str], usage: Usage | None, key: str | None, at: LogEnd | None
) -> tuple[Appended | None, bool]:
    """Writes messages and what belongs to them as one batch, unless they stand there by the same key.

    Returns:
        The numbers of the messages, and whether they stood there.
    """
    bodies: list[Body] = [MessageRecord(text=text) for text in texts]
    if key and texts:
        bodies.append(Keyed(key=_hash(key), messages=len(texts), content=_hash(*texts)))
    if usage is not None:
        bodies.append(usage)
    if not bodies:
        return None, False
    if at is not None:
        batch = session.log.append(bodies, expected_last_seq=at.seq, edition=at.edition)
        return _numbers(batch, len(texts)), False
    for _ in range(_KEYED_ATTEMPTS if key else 0):
        state = session.state()
        if append := _replay_key(state, key or "", texts):
            return append, True
        with suppress(Conflict):
            # Who sends the same at the same time must not come between the look and the append.
            return _numbers(
                session.log.append(bodies, expected_last_seq=state.last_seq, edition=state.edition), len(texts)
            ), False
    return _numbers(session.append(bodies), len(texts)), False


def _numbers(batch: Appended, messages: int) -> Appended:
    return Appended(first_seq=batch.first_seq, last_seq=batch.first_seq + max(messages, 1) - 1)


def _replay_key(state: SessionState, key: str, texts: Sequence[str]) -> Appended | None:
    """Log numbers of messages that came with the same key before.

    Raises:
        Conflict: They were others.
    """
    known_key = state.keys.get(_hash(key))
    if known_key is None:
        return None
    first, last, content = known_key
    if content != _hash(*texts):
        raise key_reused()
    return Appended(first_seq=first, last_seq=last)


def _hash(*texts: str) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def _append_answer(
    snapshot: SessionSnapshot, append: Appended | None = None, *, replayed: bool = False, skipped: int = 0
) -> schemas.AppendedMessages:
    """The answer to an append."""
    reading = snapshot.reading(is_anchored=True)
    return schemas.AppendedMessages(
        first_seq=append.first_seq if append else snapshot.state.last_seq + 1,
        last_seq=append.last_seq if append else snapshot.state.last_seq,
        tokens=reading.tokens,
        source=reading.source,
        pressure=pressure_of(snapshot.options, reading.tokens, scale=snapshot.scale()),
        replayed=replayed,
        degraded=[f"messages: {skipped} were put into the prompt by the service and not said; left out."]
        if skipped
        else [],
    )


def _forget_prompts(receipts: Receipts, services: SessionRuntime, session_id: str) -> None:
    receipts.erase(session_id)
    services.prompts.erase(session_id)


def _texts(log: SessionLog, seqs: Collection[int] | None = None) -> Iterator[str]:
    """The texts of some messages of a log, or of all, those that trims put aside too."""
    for records in (log.read(media=False), *(trim.records for trim in log.trims())):
        for record in records:
            if isinstance(record.body, MessageRecord) and (seqs is None or record.seq in seqs):
                yield text_of(json.loads(record.body.text))
