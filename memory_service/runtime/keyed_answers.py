"""Answers to requests that are sent again, by their idempotency key, whichever process of the home they come to.

Invariants: what a key stands for is done by one thread of one process at a time; a request equal to one that was
answered gets that answer, byte for byte; a failed request is forgotten, so that it can be tried again; one whose
process has ended before it was answered is taken over, with what was planned first; an answer that may hold what was
said is erased when something is, and not stored if that happens while it is made; answers are bounded in number, in
bytes and in time.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
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
        try:
            claim = self._claim(records, kind, name, content, session_id, plan)
        except StorageFailed as error:
            # What cannot be noted, as in a home that is not there yet, or is only read, is done all the same.
            _log.warning("an idempotency key was not noted: %s", error)
            claim = _Claim(name, session_id, None, Attempt(plan(), is_resumed=False))
        if not isinstance(claim, _Claim):
            return claim
        try:
            answer = act(claim.attempt)
        except BaseException:
            with suppress(StorageFailed):
                records.erase(kind, key=name)
            raise
        with suppress(StorageFailed):
            self._store(records, kind, claim, content + _ANSWERED + answer)
        return answer, False

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
        name: str,
        content: bytes,
        session_id: str,
        plan: Callable[[], bytes],
    ) -> _Claim | tuple[bytes, bool] | None:
        """A claim to act; or the answer that there is, or None while another one acts."""
        record, planned_bytes = records.get(kind, name), b""
        if record is not None:
            state, rest = record.raw[_CONTENT_BYTES : _CONTENT_BYTES + 1], record.raw[_CONTENT_BYTES + 1 :]
            if record.raw[:_CONTENT_BYTES] != content:
                raise key_reused()
            if state == _ANSWERED:
                return rest, True
            holder, _, planned_bytes = rest.partition(b"\0")
            if not self._presence.is_gone(holder.decode()):
                return None
        attempt = Attempt(planned_bytes or plan(), is_resumed=bool(planned_bytes))
        raw = content + _RUNNING + self._presence.name.encode() + b"\0" + attempt.plan
        version = records.put(
            kind, name, raw, expected=record.version if record else None, session=session_id, expires=_in_a_while()
        )
        return None if version is None else _Claim(name, session_id, version, attempt)

    def _store(self, records: RecordStore, kind: RecordKind, claim: _Claim, raw: bytes) -> None:
        """Store an answer; one that may hold what was erased meanwhile is not, and nor is one too large."""
        if len(raw) > self._most_bytes:
            records.erase(kind, key=claim.name)
            return
        version = claim.version if kind is RecordKind.SESSION_REPLY else records.version(kind, claim.name)
        records.put(kind, claim.name, raw, expected=version, session=claim.session_id, expires=_in_a_while())
        with self._counting:
            self._stored += 1
            is_due = self._stored % min(_TRIM_EVERY, self._most_answers) == 0
        if is_due:
            records.trim(kind, most=self._most_answers, most_bytes=self._most_bytes)


@dataclass(frozen=True, slots=True)
class _Claim:
    """The right of this thread to act for a key."""

    name: str
    session_id: str
    version: RecordVersion | None
    attempt: Attempt


def _in_a_while() -> dt.datetime:
    return dt.datetime.now(dt.UTC) + _KEPT
