"""The events of sessions, told while they happen: events, who hears them, and whether a session is at rest.

Invariants: an event that any process of the home publishes is in the history of each that has one of its session; the
ids of a session's events rise by one, so who sees a gap has missed something, and rise further
after a restart; an event that the storage does not take is told when it does, or soon to those of this process alone,
with the id of the one before it; nobody who listens ever holds up who tells: a subscription is a place in the session's
history, and what it is too slow for is counted to it by a `dropped` event; events hold numbers, ids and short reasons,
never the text of a message; histories are bounded in length and in number.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Literal, NamedTuple

from memory_service.errors import StorageFailed
from memory_service.runtime.presence import Presence
from memory_service.schemas.sessions import EventField, SessionEvent
from memory_service.storage.coordination import KEPT_MESSAGES, Coordination

_log = logging.getLogger("memory_service.runtime.events")

EventKind = Literal["compaction_start", "compaction_end", "flush", "prune", "overflow", "undo"]
WorkspaceEventKind = Literal["memories", "session", "operation", "index"]

KEPT_EVENTS = KEPT_MESSAGES
KEPT_SESSIONS = 1024
# Ids that rise by so many were begun anew, and nobody knows how many events were missed.
_ANEW = 1_000_000
# A database that went is asked again for so long, and so often.
_LATE_SECONDS = 10.0
_AGAIN_SECONDS = 0.25
# Enough for an id or a reason, too little for what somebody said.
MAX_FIELD_CHARS = 200


def _utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class _History:
    """The latest events of one session, and what they tell of its state. Used with the hub's lock held."""

    def __init__(self, changing: threading.Lock, is_gone: Callable[[str], bool]) -> None:
        self._is_gone = is_gone
        # The process that published last.
        self.holder = ""
        self.end_following: Callable[[], None] | None = None
        self.events: deque[SessionEvent] = deque(maxlen=KEPT_EVENTS)
        self.changed = threading.Condition(changing)
        self.followers: set[Subscription] = set()
        self.waiters = 0
        self.compacting = False
        self.retry_expected = False
        # Microseconds since 1970: higher than all ids before a restart, and exact in JavaScript for 200 years.
        self.first_id = self.next_id = time.time_ns() // 1000

    @property
    def at_rest(self) -> bool:
        return not (self.compacting or self.retry_expected) or self._is_gone(self.holder)

    @property
    def kept_from(self) -> int:
        return self.next_id - len(self.events)

    @property
    def in_use(self) -> bool:
        return bool(self.followers or self.waiters or self.compacting)

    def add(self, event: SessionEvent, holder: str) -> None:
        if event.id != self.next_id:
            self._begin_at(event.id)
        self.events.append(event)
        self.next_id = event.id + 1
        self._note(event, holder)

    def add_here(self, event: SessionEvent, holder: str) -> list[Callable[[], None] | None]:
        """Take an event that no other process hears of, to those who listen now; gives what wakes them."""
        for follower in self.followers:
            follower._own_events.append(event.model_copy(update={"id": self.next_id - 1}))
        self._note(event, holder)
        return [follower._wake for follower in self.followers]

    def _note(self, event: SessionEvent, holder: str) -> None:
        self.holder = holder
        if event.kind in ("compaction_start", "compaction_end"):
            self.compacting = event.kind == "compaction_start"
            self.retry_expected = event.fields.get("will_retry") is True
        self.changed.notify_all()

    def _begin_at(self, event_id: int) -> None:
        """Begin with an event: the first one, or one after others that are not kept any more."""
        if not self.events:
            for follower in self.followers:
                if follower._position == self.next_id:
                    follower._position = event_id
        if not self.events or event_id - self.next_id > _ANEW:
            self.first_id = event_id
        self.events.clear()
        self.next_id = event_id


class Subscription:
    """One listener's place in the history of a session; made by `EventHub.subscribe`, to be closed at the end.

    Iterate over it in a thread of its own, or `take` what there is each time `on_news` calls.
    """

    def __init__(self, history: _History, session_id: str, position: int, now: Callable[[], dt.datetime]) -> None:
        self._history = history
        self._session_id = session_id
        self._position = position
        self._now = now
        # Of this process alone.
        self._own_events: deque[SessionEvent] = deque(maxlen=KEPT_EVENTS)
        self._wake: Callable[[], None] | None = None
        self._closed = False

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[SessionEvent]:
        return self.events()

    @property
    def is_closed(self) -> bool:
        """True if nothing new will come; what came before can still be taken."""
        return self._closed

    def on_news(self, wake: Callable[[], None]) -> None:
        """Have `wake` called after each event and at the end.

        Args:
            wake: Called by whoever publishes: it must return at once and never raise.
        """
        self._wake = wake

    def take(self) -> list[SessionEvent]:
        """The events since the last time, at once; a `dropped` event stands for what is not kept any more."""
        history = self._history
        with history.changed:
            missing = self._missing()
            events = list(islice(history.events, max(self._position - history.kept_from, 0), None))
            self._position = history.next_id
            # Each behind the one whose id it has.
            events = sorted([*missing, *events, *self._own_events], key=lambda event: event.id)
            self._own_events.clear()
        return events

    def events(self, timeout_seconds: float | None = None) -> Iterator[SessionEvent]:
        """Events as they come, until the end or until none has come for `timeout_seconds`."""
        while True:
            is_closed = self._closed
            events = self.take()
            yield from events
            if is_closed or not (events or self._comes(timeout_seconds)):
                return

    def close(self) -> None:
        """Listen no more; who iterates comes to the end."""
        with self._history.changed:
            self._history.followers.discard(self)
            wake, end_following = self._end(), self._history.end_following
            if end_following is not None and not (self._history.followers or self._history.waiters):
                self._history.end_following = None
                end_following()
        if wake is not None:
            wake()

    def _end(self) -> Callable[[], None] | None:
        self._closed = True
        self._history.changed.notify_all()
        return self._wake

    def _comes(self, timeout_seconds: float | None) -> bool:
        history = self._history
        with history.changed:
            return history.changed.wait_for(self._has_news, timeout_seconds)

    def _has_news(self) -> bool:
        return self._closed or self._position < self._history.next_id or bool(self._own_events)

    def _missing(self) -> list[SessionEvent]:
        history = self._history
        if self._position >= history.kept_from:
            return []
        # A place from before this history: before a restart, or before the session was put away.
        count = history.kept_from - self._position if self._position >= history.first_id else None
        event = SessionEvent.model_construct(
            id=history.kept_from - 1,
            at=self._now(),
            kind="dropped",
            session_id=self._session_id,
            fields=MappingProxyType({"count": count}),
        )
        return [event]


class _LateEvent(NamedTuple):
    """An event that the storage did not take: the id behind which it may be, and until when to try, by `monotonic`."""

    workspace: str
    history: _History
    event: SessionEvent
    behind: int
    until: float


class EventHub:
    """Where events are told and heard; safe to use from any thread.

    Args:
        coordination: Carries them between the processes of the home.
        presence: That of this process.
        now: Tells the time, with its zone.
    """

    def __init__(
        self, coordination: Coordination, presence: Presence, now: Callable[[], dt.datetime] = _utc_now
    ) -> None:
        self._coordination = coordination
        self._presence = presence
        self._now = now
        self._changing = threading.Lock()
        self._histories: OrderedDict[tuple[str, str], _History] = OrderedDict()
        # In order, for one thread that is there as long as any is.
        self._late: deque[_LateEvent] = deque()
        self._late_thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._closed = False

    def publish(self, workspace: str, kind: EventKind, session_id: str, /, **fields: EventField) -> SessionEvent:
        """Tell all who listen; never waits for them.

        Each `compaction_start` needs its `compaction_end`, whatever comes of it. One with `will_retry=True` is
        followed by another start, by another end without it when the retry is given up, or by `settle`.

        Returns:
            The event; with the id 0 if the storage does not take it yet.
        """
        event = SessionEvent.model_construct(
            id=0,
            at=self._now(),
            kind=kind,
            session_id=session_id,
            fields=MappingProxyType({name: _short(value) for name, value in fields.items()}),
        )
        with self._changing:
            history = self._history(workspace, session_id)
            # Those before it come first.
            is_late = any(late.history is history for late in self._late)
            behind = history.next_id - 1 if history.events else 0
        number = None if is_late else self._publish(workspace, history, event)
        if number is None:
            self._publish_later(_LateEvent(workspace, history, event, behind, time.monotonic() + _LATE_SECONDS))
            return event
        return event.model_copy(update={"id": number})

    def _publish(self, workspace: str, history: _History, event: SessionEvent, behind: int | None = None) -> int | None:
        """Have the storage number an event, and take it from there; None if the storage does not take it.

        Args:
            workspace: Its workspace.
            history: That of its session.
            event: The event.
            behind: The id behind which it may be, if it was tried before: what failed may have been the answer alone.
        """
        channel, message = _channel(workspace, event.session_id), _message(event, self._presence.name)
        with self._changing:
            first, last = history.next_id, history.next_id - 1 if history.events else 0
        for _ in range(2):
            try:
                seen = () if behind is None else self._coordination.messages(channel, behind)
                number = next((number for number, raw in seen if raw == message), None)
                if number is None:
                    number = self._coordination.publish(channel, message, first=first, behind=last)
            except StorageFailed as error:
                if behind is None:
                    behind = last
                    _log.warning("an event is not told yet: %s", error)
            else:
                self._catch_up(workspace, event.session_id, history)
                return number
        return None

    def _publish_later(self, late: _LateEvent) -> None:
        with self._changing:
            self._late.append(late)
            if self._late_thread is None:
                self._late_thread = threading.Thread(target=self._publish_late, name="late events", daemon=True)
                self._late_thread.start()

    def _publish_late(self) -> None:
        """Publish what the storage did not take; what it does not take for long is told in this process alone."""
        while True:
            with self._changing:
                if self._closed or not self._late:
                    self._late_thread = None
                    return
                late = self._late[0]
            number = self._publish(late.workspace, late.history, late.event, late.behind)
            if number is None and time.monotonic() < late.until:
                self._ending.wait(_AGAIN_SECONDS)
                continue
            with self._changing:
                self._late.popleft()
                wakes = late.history.add_here(late.event, self._presence.name) if number is None else []
            if number is None:
                _log.warning("an event was told in this process alone, as the storage did not take it")
            _call(wakes)

    def publish_here(
        self, workspace: str, kind: WorkspaceEventKind, session_id: str = "", /, **fields: EventField
    ) -> None:
        """Tell those in this process who listen to a workspace of something that each process sees by itself.

        Args:
            workspace: The workspace.
            kind: The kind of change.
            session_id: The session that has changed; empty for none, or for many.
            fields: Numbers and names.
        """
        event = SessionEvent.model_construct(
            id=0, at=self._now(), kind=kind, session_id=session_id, fields=MappingProxyType(dict(fields))
        )
        with self._changing:
            history = self._history(workspace, "")
            history.add(event.model_copy(update={"id": history.next_id}), "")
            wakes = [follower._wake for follower in history.followers]
        _call(wakes)

    def is_followed(self, workspace: str) -> bool:
        """True if somebody listens to a workspace as a whole."""
        with self._changing:
            history = self._histories.get((workspace, ""))
            return history is not None and bool(history.followers)

    def subscribe(self, workspace: str, session_id: str, after_id: int | None = None) -> Subscription:
        """Listen to a session, from now on or from where somebody has left off.

        Args:
            workspace: Its workspace.
            session_id: The session; it need not exist yet. Empty for the workspace as a whole.
            after_id: The last event that was heard; 0 begins with the oldest that is kept.
        """
        with self._changing:
            history = self._history(workspace, session_id)
            # Held from here on: it is not put away.
            history.waiters += 1
            if session_id and history.end_following is None:
                history.end_following = self._coordination.follow(
                    _channel(workspace, session_id), partial(self._catch_up, workspace, session_id, history)
                )
        if session_id:
            self._catch_up(workspace, session_id, history)
        with self._changing:
            history.waiters -= 1
            position = _position(history, after_id)
            subscription = Subscription(history, session_id, position, self._now)
            if self._closed:
                subscription._end()
            else:
                history.followers.add(subscription)
        return subscription

    def settle(self, workspace: str, session_id: str) -> None:
        """Take note that the retry which was announced has come, or will not come; tells those who wait for it."""
        with self._changing:
            history = self._histories.get((workspace, session_id))
            if history is None or not history.retry_expected:
                return
            history.retry_expected = False
            history.changed.notify_all()
            wakes = [follower._wake for follower in history.followers]
        _call(wakes)

    def wait_idle(self, workspace: str, session_id: str, timeout_seconds: float | None = None) -> bool:
        """Wait until no compaction of a session runs and none is to be tried again.

        Returns:
            Whether that is so; False after `timeout_seconds`, or when the hub closes before.
        """
        if self._is_unheard_of(workspace, session_id):
            return True
        with self.subscribe(workspace, session_id) as subscription, self._changing:
            history = subscription._history
            history.waiters += 1
            try:
                history.changed.wait_for(lambda: history.at_rest or self._closed, timeout_seconds)
                return history.at_rest
            finally:
                history.waiters -= 1

    def is_idle(self, workspace: str, session_id: str) -> bool:
        """The same as far as is known here, without a look at what other processes do; a listener knows all of it."""
        with self._changing:
            history = self._histories.get((workspace, session_id))
            return history is None or history.at_rest

    def _is_unheard_of(self, workspace: str, session_id: str) -> bool:
        with self._changing:
            is_known = (workspace, session_id) in self._histories
        return not is_known and not self._coordination.messages(_channel(workspace, session_id))

    def close(self) -> None:
        """End all subscriptions and all waiting; returns at once."""
        self._ending.set()
        with self._changing:
            self._closed = True
            wakes = []
            for history in self._histories.values():
                wakes += [follower._end() for follower in history.followers]
                history.followers.clear()
                history.changed.notify_all()
        _call(wakes)

    def _catch_up(self, workspace: str, session_id: str, history: _History) -> None:
        """Take into a history what was published behind it, by whichever process."""
        with self._changing:
            last = history.next_id - 1 if history.events else 0
        try:
            messages = self._coordination.messages(_channel(workspace, session_id), last)
        except StorageFailed as error:
            _log.warning("events of other processes were not read: %s", error)
            return
        with self._changing:
            wakes = []
            for number, raw in messages:
                if not history.events or number >= history.next_id:
                    history.add(*_event(number, session_id, raw))
                    wakes = [follower._wake for follower in history.followers]
        _call(wakes)

    def _history(self, workspace: str, session_id: str) -> _History:
        key = (workspace, session_id)
        history = self._histories.get(key)
        if history is None:
            if len(self._histories) >= KEPT_SESSIONS:
                self._put_one_away()
            history = self._histories[key] = _History(self._changing, self._presence.is_gone)
        self._histories.move_to_end(key)
        return history

    def _put_one_away(self) -> None:
        oldest = next((key for key, history in self._histories.items() if not history.in_use), None)
        if oldest is not None:
            del self._histories[oldest]


def _channel(workspace: str, session_id: str) -> str:
    return f"events/{workspace}/{session_id}"


def _message(event: SessionEvent, holder: str) -> bytes:
    fields = {"at": event.at.isoformat(), "kind": event.kind, "fields": dict(event.fields), "holder": holder}
    return json.dumps(fields).encode()


def _event(number: int, session_id: str, raw: bytes) -> tuple[SessionEvent, str]:
    """An event of a message, and the process that published it."""
    value = json.loads(raw)
    event = SessionEvent.model_construct(
        id=number,
        at=dt.datetime.fromisoformat(value["at"]),
        kind=value["kind"],
        session_id=session_id,
        fields=MappingProxyType(value["fields"]),
    )
    return event, value["holder"]


def _position(history: _History, after_id: int | None) -> int:
    if after_id is None:
        return history.next_id
    # 0 asks for all there is. An id still to come is from before the clock was set back.
    return after_id + 1 if 0 < after_id < history.next_id else history.first_id


def _short(value: EventField) -> EventField:
    if isinstance(value, str) and len(value) > MAX_FIELD_CHARS:
        return f"{value[: MAX_FIELD_CHARS - 1]}…"
    # JSON has no other numbers.
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _call(wakes: list[Callable[[], None] | None]) -> None:
    for wake in wakes:
        if wake is not None:
            wake()
