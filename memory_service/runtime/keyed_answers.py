"""Answers to requests that are sent again, by their idempotency key, whichever process of the home they come to.

Invariants: what a key stands for is done by one thread of one process at a time; a request equal to one that was
answered gets that answer, byte for byte; a failed request is forgotten, so that it can be tried again; one whose
process has ended before it was answered is taken over, with what was planned first, and so is one that the storage
failed, as nobody knows whether it was stored; an answer that may hold what was said is erased when something is, and
not stored if that happens while it is made; answers are bounded in number, in bytes and in time.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from memory_service.errors import StorageFailed, TooManyRequests, key_reused
from memory_service.runtime.presence import Presence
from memory_service.storage.record_store import RecordKind, RecordStore, RecordVersion

_log = logging.getLogger("memory_service.runtime.keyed_answers")

_MOST_ANSWERS = 10_000
_MOST_BYTES = 32 * 1024 * 1024
# Whoever sends something again does so within minutes.
_KEPT = dt.timedelta(days=1)
_TRIM_EVERY = 64
_ASK_AGAIN_SECONDS = 0.01
# What a storage that was away did not take is tried again so often, and so long.
_STORE_AGAIN_SECONDS = 0.2
_STORE_SECONDS = 600.0
# Shorter than the clients' own time limit of 30 s.
_WAIT_SECONDS = 25.0
_CONTENT_BYTES = 16
_RUNNING, _ANSWERED = b"?", b"!"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a request with a key.

    Attributes:
        plan: What the first attempt planned.
        is_resumed: Whether this is a later one: nobody knows how far the first one came.
    """

    plan: bytes
    is_resumed: bool


class KeyedAnswers:
    """The answers by key of one home.

    Args:
        records: The records of a workspace; of the home itself, for an empty name.
        presence: That of this process.
        most_answers: Largest number of answers of a workspace.
        most_bytes: Largest size of all of them.
    """

    def __init__(
        self,
        records: Callable[[str], RecordStore],
        presence: Presence,
        *,
        most_answers: int = _MOST_ANSWERS,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        self._records = records
        self._presence = presence
        self._most_answers, self._most_bytes = most_answers, most_bytes
        self._stored = 0
        self._counting = threading.Lock()
        # What threads of this process act for.
        self._at_work = set[tuple[str, str]]()
        self._unsettled = list[tuple[float, Callable[[], object]]]()
        self._settling: threading.Thread | None = None

    def once(
        self, workspace: str, place: str, key: str, content: bytes, act: Callable[[], bytes], *, session_id: str = ""
    ) -> tuple[bytes, bool] | None:
        """Act, unless the same request was made with the same key before.

        Args:
            workspace: The workspace that the request is for; empty for none.
            place: The route, with what its path names.
            key: The idempotency key.
            content: The hash of the request.
            act: Gives the answer.
            session_id: The session that the answer is about.

        Returns:
            The answer, and True if it is that of an earlier request; None while that one is still at work.

        Raises:
            Conflict: The key belongs to another request.
        """
        return self._once(workspace, place, key, content, lambda _: act(), lambda: b"", session_id)

    def _once(
        self,
        workspace: str,
        place: str,
        key: str,
        content: bytes,
        act: Callable[[Attempt], bytes],
        plan: Callable[[], bytes],
        session_id: str = "",
    ) -> tuple[bytes, bool] | None:
        kind = RecordKind.SESSION_REPLY if session_id else RecordKind.REPLY
        name = hashlib.blake2b(f"{place}\0{key}".encode(), digest_size=16).hexdigest()
        content = hashlib.blake2b(content, digest_size=_CONTENT_BYTES).digest()
        records = self._records(workspace)
        claim = self._noted_claim(records, kind, (workspace, name), content, session_id, plan)
        if not isinstance(claim, _Claim):
            return claim
        try:
            return self._act(records, kind, claim, content, act), False
        finally:
            self._at_work.discard((workspace, name))

    def _noted_claim(
        self,
        records: RecordStore,
        kind: RecordKind,
        place: tuple[str, str],
        content: bytes,
        session_id: str,
        plan: Callable[[], bytes],
    ) -> _Claim | tuple[bytes, bool] | None:
        for is_last in (False, True):
            try:
                return self._claim(records, kind, place, content, session_id, plan)
            except StorageFailed as error:
                # A connection that broke is there again; and whether it took the claim before shows then.
                if is_last:
                    # What cannot be noted, as in a home that is not there yet, or is only read, is done all the same.
                    _log.warning("an idempotency key was not noted: %s", error)
        with self._counting:
            self._at_work.add(place)
        return _Claim(place[1], session_id, None, Attempt(plan(), is_resumed=False))

    def _act(
        self, records: RecordStore, kind: RecordKind, claim: _Claim, content: bytes, act: Callable[[Attempt], bytes]
    ) -> bytes:
        try:
            answer = act(claim.attempt)
        except StorageFailed:
            # It may have been stored: whoever tries again goes on with what was planned.
            self._settle(lambda: self._release(records, kind, claim))
            raise
        except BaseException:
            self._settle(lambda: records.erase(kind, key=claim.name))
            raise
        self._settle(lambda: self._store(records, kind, claim, content + _ANSWERED + answer))
        return answer

    def _settle(self, store: Callable[[], object]) -> None:
        """Store what became of a claim; later, if the storage is away: until then nobody else can act."""
        try:
            store()
        except StorageFailed:
            with self._counting:
                self._unsettled.append((time.monotonic() + _STORE_SECONDS, store))
                if self._settling is None:
                    self._settling = threading.Thread(target=self._settle_later, name="keyed answers", daemon=True)
                    self._settling.start()

    def _settle_later(self) -> None:
        while True:
            time.sleep(_STORE_AGAIN_SECONDS)
            with self._counting:
                waiting, self._unsettled = self._unsettled, []
            unsettled = [each for each in waiting if not _is_stored(*each)]
            with self._counting:
                self._unsettled += unsettled
                if not self._unsettled:
                    self._settling = None
                    return

    def answer(
        self,
        workspace: str,
        place: str,
        key: str,
        content: bytes,
        act: Callable[[Attempt], bytes],
        plan: Callable[[], bytes] = bytes,
    ) -> tuple[bytes, bool]:
        """The same for a caller in a thread of its own, who waits for what is still at work.

        Args:
            workspace: The workspace that the request is for.
            place: The route.
            key: The idempotency key.
            content: The request.
            act: Gives the answer of an attempt.
            plan: Gives what an attempt may know of the first one, if that is killed; kept with the key.

        Raises:
            Conflict: The key belongs to another request.
            TooManyRequests: What is at work took too long.
        """
        deadline = time.monotonic() + _WAIT_SECONDS
        while (answer := self._once(workspace, place, key, content, act, plan)) is None:
            if time.monotonic() > deadline:
                raise TooManyRequests("The same request is still at work. Ask again later, with the same key.")
            time.sleep(_ASK_AGAIN_SECONDS)
        return answer

    def _claim(
        self,
        records: RecordStore,
        kind: RecordKind,
        place: tuple[str, str],
        content: bytes,
        session_id: str,
        plan: Callable[[], bytes],
    ) -> _Claim | tuple[bytes, bool] | None:
        """A claim to act; or the answer that there is, or None while another one acts."""
        name = place[1]
        record, planned_bytes = records.get(kind, name), b""
        if record is not None:
            state, rest = record.raw[_CONTENT_BYTES : _CONTENT_BYTES + 1], record.raw[_CONTENT_BYTES + 1 :]
            if record.raw[:_CONTENT_BYTES] != content:
                raise key_reused()
            if state == _ANSWERED:
                return rest, True
            holder, _, planned_bytes = rest.partition(b"\0")
            if self._is_at_work(holder.decode(), place):
                return None
        attempt = Attempt(planned_bytes or plan(), is_resumed=bool(planned_bytes))
        raw = content + _RUNNING + self._presence.name.encode() + b"\0" + attempt.plan
        expected = record.version if record else None
        with self._counting:
            if place in self._at_work:
                return None
            self._at_work.add(place)
        version = None
        try:
            version = records.put(kind, name, raw, expected=expected, session=session_id, expires=_in_a_while())
        finally:
            if version is None:
                self._at_work.discard(place)
        return None if version is None else _Claim(name, session_id, version, attempt)

    def _is_at_work(self, holder: str, place: tuple[str, str]) -> bool:
        """True if the holder of a claim acts; one that the storage failed has none."""
        if holder == self._presence.name:
            return place in self._at_work
        return bool(holder) and not self._presence.is_gone(holder)

    def _store(self, records: RecordStore, kind: RecordKind, claim: _Claim, raw: bytes) -> None:
        """Store an answer; one that may hold what was erased meanwhile is not, and nor is one too large."""
        if len(raw) > self._most_bytes:
            records.erase(kind, key=claim.name)
            return
        version = claim.version if kind is RecordKind.SESSION_REPLY else records.version(kind, claim.name)
        is_stored = records.put(
            kind, claim.name, raw, expected=version, session=claim.session_id, expires=_in_a_while()
        )
        if is_stored is None and claim.version is None:
            self._release(records, kind, claim)
        with self._counting:
            self._stored += 1
            is_due = self._stored % min(_TRIM_EVERY, self._most_answers) == 0
        if is_due:
            records.trim(kind, most=self._most_answers, most_bytes=self._most_bytes)

    def _release(self, records: RecordStore, kind: RecordKind, claim: _Claim) -> None:
        """Let others go on with what this process has claimed."""
        record = records.get(kind, claim.name)
        holder = self._presence.name.encode()
        if record is not None and record.raw[_CONTENT_BYTES:].startswith(_RUNNING + holder + b"\0"):
            raw = record.raw.replace(_RUNNING + holder, _RUNNING, 1)
            records.put(kind, claim.name, raw, expected=record.version, session=claim.session_id, expires=_in_a_while())


@dataclass(frozen=True, slots=True)
class _Claim:
    """The right of this thread to act for a key."""

    name: str
    session_id: str
    version: RecordVersion | None
    attempt: Attempt


def _is_stored(until: float, store: Callable[[], object]) -> bool:
    """Store something; True if it need not be tried again."""
    try:
        store()
    except StorageFailed:
        return time.monotonic() > until
    return True


def _in_a_while() -> dt.datetime:
    return dt.datetime.now(dt.UTC) + _KEPT
