"""Sessions of hosts' conversations: what hooks append to them, from transcripts and from events.

Invariants: nothing is stored twice, whatever happens in between; what the memory gave is not stored as something that
was said; a line that cannot be read, or is of a type of a newer host, costs no other. Where a host went back in its
conversation, the session goes on in a branch of it that has nothing of what was taken back.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from memory_service.errors import Conflict, InvalidRequest, MemoryServiceError, NotFound, TooLarge
from memory_service.hosts.dialects import HostEvent
from memory_service.hosts.places import ReadablePlaces
from memory_service.hosts.progress import Progress, ProgressRecord
from memory_service.hosts.transcripts import Stretch, TranscriptPlace, is_of_subagent, read_on
from memory_service.schemas.compaction import BRANCH_MARK
from memory_service.text.injected import said_messages

if TYPE_CHECKING:
    from memory_service.schemas.messages import AppendedMessages
    from memory_service.service import MemoryService

# A message, and its place among those that were read together.
_Placed: TypeAlias = tuple[int, Mapping[str, object]]

READING = frozenset({"stop", "pre_compact", "session_end"})
STORING = READING | {"prompt", "reply"}
# Of a long transcript so many stretches are read before the answer, the others after it.
_MOST_STRETCHES = 2
_KEPT_IDS = 20_000
_KEPT_CALLS = 100
_KEPT_REFUSALS = 20
_MOST_PROMPTS = 2_000
_MOST_BRANCHES = 1_000


class ConversationLog:
    """The session of a host's conversation.

    Args:
        service: The service.
        event: The event that it is about.
        places: Whose files the call may name.

    Attributes:
        workspace: Whose memory it is; empty until it is known.
        session_id: The session; a branch of it once the host went back.
        transcript: The host's own log, as it may be read; None for none.
        faults: Failures.
        unread_bytes: Bytes of the transcript that are not read yet.
    """

    def __init__(self, service: MemoryService, event: HostEvent, places: ReadablePlaces) -> None:
        self.workspace = ""
        self.session_id = event.session_id
        self.transcript = places.place(event.transcript) if event.transcript else None
        self.faults = list[str]()
        self.unread_bytes = 0
        self._service = service
        self._event = event
        self._places = places

    @contextmanager
    def open_progress(self, *, make: bool) -> Iterator[Progress]:
        """The progress of the conversation, for one at a time; see `ProgressRecord.hold`."""
        with self._record.hold(make=make) as progress:
            self.session_id = progress.branch or self._event.session_id
            yield progress

    @property
    def brings_messages(self) -> bool:
        """True if the session gets messages, as far as can be told before."""
        event = self._event
        if self.transcript is not None:
            return event.kind in READING and os.path.exists(self.transcript)
        return event.kind in STORING and bool(event.messages or event.spoken)

    @property
    def _record(self) -> ProgressRecord:
        return ProgressRecord(self._service.storage, self.workspace, self._event.session_id)

    def store(self, progress: Progress) -> None:
        """Append what is new in the conversation.

        Raises:
            MemoryServiceError: It could not be read, or not be stored.
        """
        event = self._event
        if event.transcript and self.transcript is None:
            self.refuse(progress, event.transcript)
        if self.transcript is not None:
            if event.kind in READING:
                self._append_transcript(progress, self.transcript)
        elif sent_messages := event.messages or event.spoken:
            self._append_sent(progress, sent_messages)

    def refuse(self, progress: Progress, path: str) -> None:
        """Note once that a path may not be read."""
        refusal = self._places.refusal(path)
        if refusal and refusal not in progress.refused:
            progress.refused = [*progress.refused, refusal][-_KEPT_REFUSALS:]
            self.faults.append(refusal)

    def _append_sent(self, progress: Progress, sent_fields: Sequence[Mapping[str, object]]) -> None:
        """Append messages of the event itself, those with an id once."""
        message_ids = set(progress.message_ids)
        fresh = [fields for fields in sent_fields if str(fields.get("id") or "") not in message_ids]
        new = _without_memory(fresh, progress)
        if not new:
            return
        digest = hashlib.blake2b(repr(new).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        self._append(new, f"{self._event.turn}:{digest}" if self._event.turn else None)
        ids = [*progress.message_ids, *(str(fields["id"]) for fields in fresh if fields.get("id"))]
        progress.message_ids = ids[-_KEPT_IDS:]

    def _append_transcript(self, progress: Progress, file: Path) -> None:
        # What no file system can hold, such as a name of 100,000 characters, is not there either.
        if not os.path.exists(file):
            # A conversation in which nothing was said has no transcript when it ends.
            if self._event.kind != "session_end":
                raise NotFound(f"There is no transcript {file.name}. The next hook looks for it again.")
            return
        if is_of_subagent(file):
            return
        if progress.transcript != self._event.transcript:
            progress.again = bool(progress.transcript or progress.refused)
            progress.transcript, progress.place, progress.until = self._event.transcript, TranscriptPlace(), 0
        for _ in range(_MOST_STRETCHES):
            stretch = read_on(file, progress.place, until=progress.until or None)
            self.faults += stretch.problems
            self._keep_stretch(progress, stretch)
            self.unread_bytes = stretch.more_bytes
            if not stretch.more_bytes:
                progress.again = False
                return

    def _keep_stretch(self, progress: Progress, stretch: Stretch) -> None:
        """Append the messages of a stretch once, whatever happens in between."""
        if stretch.begun_anew:
            progress.again, progress.place = True, TranscriptPlace()
        self._note_unknown(progress, stretch)
        before = progress.asked
        first, cut_count = _way_back(stretch, progress)
        session_id = self.session_id
        pairs = [(at, fields) for at, fields in _said_at(stretch.messages, progress) if at >= first]
        new = self._new_messages(pairs) if progress.again else pairs
        if cut_count and new and not progress.again:
            self.session_id = self._branch(cut_count)
        if new:
            # After a crash the same stretch is read again, with the same calls known.
            texts, progress.asked, progress.until = progress.asked, before, stretch.end.offset
            self._record.keep(progress)
            with suppress(Conflict):  # another version stored this stretch, and reads it otherwise
                key = f"{stretch.end.head}:{stretch.start}-{stretch.end.offset}"
                messages = self._append([message for _, message in new], key)
                if self.session_id != session_id:
                    progress.branch = self.session_id
                    progress.prompts = {line: seq for line, seq in progress.prompts.items() if seq < cut_count}
                    progress.forgotten = min(progress.forgotten, cut_count - 1)
                _note_prompts(progress, stretch, [at for at, _ in new], messages)
            progress.asked = texts
        progress.place, progress.until = stretch.end, 0

    def _note_unknown(self, progress: Progress, stretch: Stretch) -> None:
        """Count lines of a newer host, and say of each type once that there are such."""
        for kind, count in stretch.unknown_counts.items():
            if kind not in progress.unknown:
                self.faults.append(
                    f"transcript: lines of the type {kind!r} are not known to this version; left out, and counted"
                )
            progress.unknown[kind] = progress.unknown.get(kind, 0) + count

    def _branch(self, before_seq: int) -> str:
        """A new session that begins as this one does, up to a message."""
        root = self._event.session_id.partition(BRANCH_MARK)[0]
        for number in range(1, _MOST_BRANCHES):
            branch = f"{root}{BRANCH_MARK}{before_seq}-{number}"
            with suppress(Conflict):
                store = self._service.sessions(self.workspace).store
                store.fork(self.session_id, branch, before_seq=before_seq)
                return branch
        raise Conflict(f"The session {root} has {_MOST_BRANCHES} branches from here. Begin a new conversation.")

    def _new_messages(self, messages: Sequence[_Placed]) -> list[_Placed]:
        """Messages that the session does not have; of a file that was cut or replaced it may have most."""
        digests = set[str]()
        with suppress(NotFound):
            logged_pairs, _ = self._service.logged_messages(self.workspace, self.session_id)
            digests = {_digest(json.loads(text)) for _, text in logged_pairs}
        return [(at, fields) for at, fields in messages if _digest(fields) not in digests]

    def _append(self, messages: Sequence[Mapping[str, object]], key: str | None) -> AppendedMessages | None:
        """Append messages; one that is of no shape is left out, and the others are kept."""
        try:
            return self._append_messages(messages, key)
        except (InvalidRequest, TooLarge):
            good = [message for message in messages if _is_readable(message)]
            self.faults.append(f"messages: {len(messages) - len(good)} are in no known shape; left out")
            return self._append_messages(good, key) if good else None

    def _append_messages(self, messages: Sequence[Mapping[str, object]], key: str | None) -> AppendedMessages:
        workspace, session_id = self.workspace, self.session_id
        return self._service.append(workspace, session_id, messages, model=self._event.model or None, key=key)


def _without_memory(messages: Sequence[Mapping[str, object]], progress: Progress) -> list[Mapping[str, object]]:
    """Messages without what the memory itself gave the agent."""
    return [message for _, message in _said_at(messages, progress)]


def _said_at(messages: Sequence[Mapping[str, object]], progress: Progress) -> list[_Placed]:
    """The same, each with its place among the given ones."""
    asked_keys = set(progress.asked)
    pairs = [(at, left) for at, message in enumerate(messages) for left in said_messages([message], asked_keys)]
    progress.asked = [*progress.asked, *sorted(asked_keys.difference(progress.asked))][-_KEPT_CALLS:]
    return pairs


def _way_back(stretch: Stretch, progress: Progress) -> tuple[int, int]:
    """Place of the first message that holds, and the first one of the log that does not any more; 0 for neither.

    A prompt that follows the same line as one of the log takes its place, with all that came after that.
    """
    first = cut_count = 0
    for at, line in sorted(stretch.prompts.items()):
        prompt = progress.prompts.get(line, 0)
        if prompt and (not cut_count or prompt < cut_count):
            first, cut_count = at, prompt
    return first, cut_count


def _note_prompts(
    progress: Progress, stretch: Stretch, places: Sequence[int], messages: AppendedMessages | None
) -> None:
    """Note the numbers that prompts have in the log, by the line that each follows."""
    if messages is None or messages.last_seq - messages.first_seq + 1 != len(places):
        return
    numbers = {stretch.prompts[at]: messages.first_seq + n for n, at in enumerate(places) if at in stretch.prompts}
    progress.prompts = dict([*progress.prompts.items(), *numbers.items()][-_MOST_PROMPTS:])


def _digest(message: Mapping[str, object]) -> str:
    # Versions before did not keep when it was said.
    fields = {name: value for name, value in message.items() if name != "created_at"}
    raw = json.dumps(fields, ensure_ascii=True, sort_keys=True).encode()
    return hashlib.blake2b(raw, digest_size=12).hexdigest()


def _is_readable(message: Mapping[str, object]) -> bool:
    # Rarely asked for, and behind much of the service.
    from memory_service.runtime.sent_messages import check_messages

    try:
        check_messages([message])
    except MemoryServiceError:
        return False
    return True
