"""Hook calls of coding agents: the memory they are given, and what is kept of what they said.

Rules: a conversation is a session of the project's workspace. A start gives pins, summary and memories; a prompt gives
what it asks for, or nothing; an end of a turn, and what comes before a compaction, stores the new part of the
transcript. What takes long (a flush, a summary) comes after the answer.

Invariants: a fault never becomes an error of the host: it is a line of the log of the home; nothing is stored twice;
an answer is never longer than the host takes.
"""

from __future__ import annotations

import hashlib
import json
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.throttle import THROTTLE
from memory_service.compaction.checkpoint import (
    Checkpoint,
    checkpoint_messages,
    is_request,
    pinned_texts,
    shortened,
)
from memory_service.compaction.view import pin_texts, view_language, view_texts
from memory_service.errors import CallCancelled, Conflict, InvalidRequest, MemoryServiceError, NotFound, TooLarge
from memory_service.home import check_workspace
from memory_service.hosts.dialects import HostEvent, host_chars, rendered_answer
from memory_service.hosts.places import FileAccess, ReadablePlaces
from memory_service.hosts.progress import (
    Progress,
    ProgressFile,
    followed_workspace,
    move_former_progress,
    note_faults,
)
from memory_service.hosts.projects import project_of
from memory_service.hosts.transcripts import Stretch, TranscriptPlace, is_of_subagent, read_on
from memory_service.memories.standing import StandingBlock, StandingPassage
from memory_service.messages import text_of
from memory_service.schemas.compaction import CompactRequest
from memory_service.schemas.sessions import MAX_PIN_CHARS
from memory_service.service.flushes import RULES_ALONE
from memory_service.service.session_recall import Question, Recalled, last_turns
from memory_service.service.sessions import check_messages
from memory_service.text.injected import said_messages
from memory_service.text.placeholders import handle
from memory_service.text.recall import decide_recall
from memory_service.text.texts import Texts, talk_language, texts_in

if TYPE_CHECKING:
    from memory_service.service.facade import MemoryService
    from memory_service.service.session_services import SessionSnapshot

_PROMPT_TOKENS = 1_000
_CHARS_PER_TOKEN = 4
# A frame around what is given, and a note of what did not fit.
_SPARE_CHARS = 200
# Of a long transcript so many stretches are read before the answer, the others after it.
_MOST_STRETCHES = 2
_KEPT_IDS = 20_000
# In place of the place in the log that a prompt of ours was made for: the host makes its prompts itself.
_GIVEN_BY_HOOKS = -1
_MOST_GIVEN = 500
_KEPT_CALLS = 100
_KEPT_REFUSALS = 20
# Of a request that the host has compacted.
_REQUEST_CHARS = 2_000
# Of what was noted last, so much says what the work is about.
_QUERY_CHARS = 500
_STORING = frozenset({"prompt", "reply", "stop", "pre_compact", "session_end"})
_READING = frozenset({"stop", "pre_compact", "session_end"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """The answer to a hook call.

    Attributes:
        answer: The host's JSON; empty where there is nothing to say.
        faults: Failures; the log of the home has them already.
        afterwards: Work that does not keep the host waiting: run it once the answer is sent. It asks the given function
            if it shall end early; the next hook goes on.
    """

    answer: dict[str, object] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    afterwards: Callable[[Callable[[], bool]], None] = lambda _: None


class HookCall:
    """One hook call of a host.

    Args:
        service: The service.
        event: The event.
        workspace: Whose memory; None for the one that the conversation began in, or that of the project.
        access: Whose files it may name: its transcript, and the rules of its project.
    """

    def __init__(self, service: MemoryService, event: HostEvent, workspace: str | None, *, access: FileAccess) -> None:
        self._service = service
        self._event = event
        self._workspace = workspace
        settings = service.settings
        self._places = ReadablePlaces(access=access, folders=(settings.home, *settings.host_folders))
        self._transcript = self._places.place(event.transcript) if event.transcript else None
        self._is_named = workspace is not None
        self._faults = list[str]()
        self._unread_bytes = 0
        self._is_stored = False
        self._rules = dict[str, str]()

    @THROTTLE.passing()
    def answered(self) -> HostAnswer:
        """The answer; never an error."""
        event = self._event
        text = ""
        if event.kind != "other":
            with self._noting():
                if not event.session_id:
                    raise InvalidRequest("The call has no session_id. Send the host's own JSON as it came.")
                text = self._worked()
        return HostAnswer(
            answer=rendered_answer(event, text, stored=self._is_stored),
            faults=self._logged(),
            afterwards=self._afterwards if event.kind in _READING and event.session_id else lambda _: None,
        )

    def _worked(self) -> str:
        """Do what the event asks for; gives the text for the agent."""
        move_former_progress(self._service.settings.home)
        self._workspace = self._chosen_workspace()
        with self._file.held(make=self._brings_messages()) as progress:
            progress.is_followed |= not self._is_named
            if self._event.kind in _STORING:
                self._store(progress)
            rules = self._pinned_rules(progress)
            if self._event.kind not in ("pre_compact", "prompt", "session_start"):
                return ""
            snapshot = self._snapshot()
            if snapshot and (self._event.kind == "pre_compact" or self._event.source == "compact"):
                progress.forgotten = snapshot.state.last_seq
            if self._event.kind == "prompt":
                return self._recalled(progress, snapshot, rules)
            if self._is_known(progress):
                return rules
            self._forget_given()
            progress.told = self._event.kind == "session_start"
            return self._opening(progress, snapshot)

    @THROTTLE.behind()
    def _afterwards(self, cancelled: Callable[[], bool]) -> None:
        """Read the rest of a long transcript, flush, and before a compaction of the host make a summary of our own."""
        if not self._workspace:
            return
        before = 0
        # A line that is left out is a fault too, and what stands behind it is read all the same.
        while self._unread_bytes not in (0, before) and not cancelled():
            before = self._unread_bytes
            THROTTLE.give_way()  # to another hook of the conversation, which waits for the file
            with self._noting(), self._file.held(make=True) as progress:
                self._store(progress)
        service, workspace, session_id = self._service, self._workspace or "", self._event.session_id
        with self._noting(), suppress(NotFound, CallCancelled):
            if service.settings.flush.mode != "off":
                degraded = service.flush(workspace, session_id, cancelled=cancelled).degraded
                # Vectors that nobody wants are no fault.
                self._faults += [each for each in degraded if each != RULES_ALONE]
            if self._event.kind == "pre_compact":
                # What the host forgets is not in view any more: the summary stands for it, and recall finds it.
                service.compact(workspace, session_id, CompactRequest(force=True), cancelled=cancelled)
        self._logged()

    def _is_known(self, progress: Progress) -> bool:
        """True if the conversation that goes on has been given its memory already."""
        return progress.told and self._event.kind == "session_start" and self._event.source in ("resume", "fork")

    @property
    def _file(self) -> ProgressFile:
        return ProgressFile(self._service.settings.home / (self._workspace or ""), self._event.session_id)

    def _chosen_workspace(self) -> str:
        """The workspace of the call: the named one; else where calls without a name began; else the project's."""
        if self._workspace is not None:
            check_workspace(self._workspace)
            return self._workspace
        home, session_id, fault = self._service.settings.home, self._event.session_id, None
        try:
            own = self._project_workspace()
        except InvalidRequest as error:
            own, fault = "", error
        if found := followed_workspace(home, session_id, own):
            return found
        if fault is not None:
            raise fault
        return own

    def _project_workspace(self) -> str:
        if not self._places.is_local:
            raise InvalidRequest("The host is on another machine. Name the workspace, as with X-Memory-Workspace.")
        project, home = project_of(self._event.folder), self._service.settings.home
        name = project.workspace_in(home)
        project.mark(home / name)
        return name

    def _brings_messages(self) -> bool:
        """True if the session gets messages, as far as can be told before."""
        event = self._event
        if self._transcript is not None:
            return event.kind in _READING and os.path.exists(self._transcript)
        return event.kind in _STORING and bool(event.messages or event.spoken)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Note a fault instead of raising it."""
        try:
            yield
        except MemoryServiceError as error:
            self._faults.append(str(error))
        except Exception as error:  # the agent goes on whatever defect there is
            place = traceback.extract_tb(error.__traceback__)[-1]
            self._faults.append(f"defect: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}")

    def _logged(self) -> tuple[str, ...]:
        """The faults since the last time, which stand in the log now."""
        faults = tuple(dict.fromkeys(self._faults))
        self._faults.clear()
        if faults:
            note_faults(self._service.settings.home, self._event.host, self._event.name, faults)
        return faults

    # What the agent is given

    def _opening(self, progress: Progress, snapshot: SessionSnapshot | None) -> str:
        """Pins, summary and memories, as long as the host takes."""
        if not self._event.most_chars:
            return ""
        room = self._event.most_chars - _SPARE_CHARS
        record = _record(snapshot, progress.forgotten, room) if snapshot else _rules_record(self._rules, room)
        tokens = (room - host_chars(record)) // _CHARS_PER_TOKEN
        block = self._block(self._topic(snapshot), tokens, progress, snapshot, record)
        return "\n\n".join(filter(None, (record, block)))

    def _recalled(self, progress: Progress, snapshot: SessionSnapshot | None, rules: str) -> str:
        """Memories that a prompt asks for."""
        event = self._event
        if not event.most_chars:
            return ""
        decision = decide_recall(event.prompt)
        if not decision.search:
            return rules
        room = (event.most_chars - _SPARE_CHARS - host_chars(rules)) // _CHARS_PER_TOKEN
        judged = "" if decision.outright else event.prompt
        block = self._block(decision.query, min(room, _PROMPT_TOKENS), progress, snapshot, judged=judged)
        return "\n\n".join(filter(None, (rules, block)))

    def _block(
        self,
        query: str,
        tokens: int,
        progress: Progress,
        snapshot: SessionSnapshot | None,
        record: str = "",
        judged: str = "",
    ) -> str:
        """A block of memories that the conversation does not have in view; empty where nothing is found.

        What is found for a judged prompt has to belong into it.
        """
        service, session_id = self._service, self._event.session_id
        with suppress(NotFound):
            sessions = service.sessions(self._workspace or "")
            before = sessions.longterm.prompts.of(session_id)
            given = before.blocks if before.view == _GIVEN_BY_HOOKS else ()
            given += _given(StandingPassage("", "", record)) if record else ()
            found = Recalled()
            if query and tokens > 0:
                question = Question(query=query, budget_tokens=tokens, prompt=judged, before=_before(snapshot, judged))
                now = service.settings.now()
                found = sessions.recalls.recall(snapshot, question, forgotten=progress.forgotten, beside=given, at=now)
            self._faults += _lasting(found.degraded)
            if self._event.kind != "pre_compact":  # what is given then is for the summary alone
                blocks = (*given, *_given(*found.passages))[-_MOST_GIVEN:]
                if blocks or before.blocks:  # else a workspace would be made for nothing
                    with self._noting():
                        sessions.longterm.prompts.put(session_id, replace(before, view=_GIVEN_BY_HOOKS, blocks=blocks))
            return found.context.block if found.context else ""
        return ""

    def _forget_given(self) -> None:
        """Forget what the agent was given: its view does not show that any more."""
        with self._noting(), suppress(NotFound):
            self._service.sessions(self._workspace or "").longterm.prompts.erase(self._event.session_id)

    def _topic(self, snapshot: SessionSnapshot | None) -> str:
        """Subject of the work: the user's last words; else what was noted last."""
        if snapshot:
            said = snapshot.state.turn
            if said and (words := text_of(said.message).strip()):
                return decide_recall(words).query or words[:_QUERY_CHARS]
        with suppress(NotFound):
            files = self._service.files(self._workspace or "")
            if files:
                newest = max(files, key=lambda file: file.modified_at)
                text = self._service.get(self._workspace or "", newest.path, max(1, newest.lines - 20)).text
                # Headings and comments of entries are nothing that memories speak of.
                noted = (line for line in text.splitlines() if line.strip() and not line.startswith(("#", "<!--")))
                return "\n".join(noted)[-_QUERY_CHARS:]
        return ""

    def _snapshot(self) -> SessionSnapshot | None:
        with suppress(NotFound):
            return self._service.sessions(self._workspace or "").snapshot(self._event.session_id)
        return None

    # Rules

    def _pinned_rules(self, progress: Progress) -> str:
        """Pin the rules of the project anew where they changed; gives those that the agent has not seen.

        A session begins with the first message, not with its rules: until then they are known and not pinned.
        """
        if not self._service.settings.pin_rules or not self._event.folder:
            return ""
        if self._places.place(self._event.folder) is None:
            self._refuse(progress, self._event.folder)
            return ""
        changed = list[str]()
        with self._noting():
            texts = self._rules = project_of(self._event.folder).rules()
            snapshot = self._snapshot()
            begun = snapshot is not None
            for name in {**texts, **progress.rules}:
                text = texts.get(name, "")
                words = _words(snapshot, text).rules
                digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
                known = progress.rules.get(name, [])
                same = known[:1] == [digest]
                if same and (known[1:] or not begun):
                    continue
                if not same and progress.told and not self._event.most_chars:
                    continue  # until an event that can give them to the agent
                self._unpin(known[1:])
                progress.rules.pop(name, None)
                if text:
                    progress.rules[name] = [digest, *(self._pin(name, text, words) if begun else ())]
                    changed += [] if same else [words["changed"].format(name=name) + text]
                elif known:
                    changed.append(words["gone"].format(name=name))
        room = self._event.most_chars - _SPARE_CHARS
        return _cut("\n\n".join(changed), room, _words(snapshot, "\n".join(changed))) if progress.told else ""

    def _pin(self, name: str, text: str, words: Mapping[str, str]) -> list[str]:
        workspace, session_id = self._workspace or "", self._event.session_id
        return [self._service.pin(workspace, session_id, piece).pin_id for piece in _rule_pieces(name, text, words)]

    def _unpin(self, pin_ids: Sequence[str]) -> None:
        for pin_id in pin_ids:
            with suppress(NotFound):
                self._service.unpin(self._workspace or "", self._event.session_id, pin_id)

    # What is kept

    def _store(self, progress: Progress) -> None:
        """Append what is new in the conversation to its session."""
        with self._noting():
            event = self._event
            if event.transcript and self._transcript is None:
                self._refuse(progress, event.transcript)
            if self._transcript is not None:
                if event.kind in _READING:
                    self._append_transcript(progress, self._transcript)
            elif sent := event.messages or event.spoken:
                self._append_sent(progress, sent)
            self._is_stored = True

    def _refuse(self, progress: Progress, path: str) -> None:
        """Note once that a path may not be read."""
        refusal = self._places.refusal(path)
        if refusal and refusal not in progress.refused:
            progress.refused = [*progress.refused, refusal][-_KEPT_REFUSALS:]
            self._faults.append(refusal)

    def _append_sent(self, progress: Progress, sent: Sequence[Mapping[str, object]]) -> None:
        """Append messages of the event itself, those with an id once."""
        known = set(progress.message_ids)
        fresh = [each for each in sent if str(each.get("id") or "") not in known]
        new = _said(fresh, progress)
        if not new:
            return
        digest = hashlib.blake2b(repr(new).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        self._append(new, f"{self._event.turn}:{digest}" if self._event.turn else None)
        ids = [*progress.message_ids, *(str(each["id"]) for each in fresh if each.get("id"))]
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
            self._faults += stretch.problems
            self._keep_stretch(progress, stretch)
            self._unread_bytes = stretch.more_bytes
            if not stretch.more_bytes:
                progress.again = False
                return

    def _keep_stretch(self, progress: Progress, stretch: Stretch) -> None:
        """Append the messages of a stretch once, whatever happens in between."""
        if stretch.begun_anew:
            progress.again, progress.place = True, TranscriptPlace()
        before = progress.asked
        said = _said(stretch.messages, progress)
        messages = self._unsaid(said) if progress.again else said
        if messages:
            # After a crash the same stretch is read again, with the same calls known.
            found, progress.asked, progress.until = progress.asked, before, stretch.end.offset
            self._file.keep(progress)
            with suppress(Conflict):  # another version stored this stretch, and reads it otherwise
                self._append(messages, f"{stretch.end.head}:{stretch.start}-{stretch.end.offset}")
            progress.asked = found
        progress.place, progress.until = stretch.end, 0

    def _unsaid(self, messages: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
        """Messages that the session does not have; of a file that was cut or replaced it may have most."""
        known = set[str]()
        with suppress(NotFound):
            logged, _ = self._service.logged_messages(self._workspace or "", self._event.session_id)
            known = {_digest(json.loads(text)) for _, text in logged}
        return [each for each in messages if _digest(each) not in known]

    def _append(self, messages: Sequence[Mapping[str, object]], key: str | None) -> None:
        """Append messages; one that is of no shape is left out, and the others are kept."""
        try:
            self._appended(messages, key)
        except (InvalidRequest, TooLarge):
            good = [each for each in messages if _is_readable(each)]
            self._faults.append(f"messages: {len(messages) - len(good)} are in no known shape; left out")
            if good:
                self._appended(good, key)

    def _appended(self, messages: Sequence[Mapping[str, object]], key: str | None) -> None:
        workspace, session_id = self._workspace or "", self._event.session_id
        self._service.append(workspace, session_id, messages, model=self._event.model or None, key=key)


def _given(*passages: StandingPassage) -> tuple[StandingBlock, ...]:
    """Passages that an agent was given, each a block: one that is changed or erased does not take others with it."""
    return tuple(
        StandingBlock(seq=0, said="", asked="", text="", receipt_id="", passages=(passage,)) for passage in passages
    )


def _said(messages: Sequence[Mapping[str, object]], progress: Progress) -> list[Mapping[str, object]]:
    """Messages without what the memory itself gave the agent."""
    asked = set(progress.asked)
    said = said_messages(messages, asked)
    progress.asked = [*progress.asked, *sorted(asked.difference(progress.asked))][-_KEPT_CALLS:]
    return said


def _words(snapshot: SessionSnapshot | None, text: str) -> Texts:
    """Words of the talk's language; before anything was said, of that of a text."""
    return texts_in(view_language(snapshot.state) if snapshot and snapshot.state.turn else talk_language([text]))


def _rule_pieces(name: str, text: str, words: Mapping[str, str]) -> list[str]:
    """A file of rules as pins, each as long as a pin may be."""
    head = words["pinned"].format(name=name)
    size = MAX_PIN_CHARS - len(head)
    return [head + text[at : at + size] for at in range(0, len(text), size)]


def _rules_record(rules: Mapping[str, str], room: int) -> str:
    """Rules for a session that has no message yet."""
    texts = _words(None, "\n".join(rules.values()))
    pieces = [(piece, None) for name, text in rules.items() for piece in _rule_pieces(name, text, texts.rules)]
    return _rendered_record(pieces, Checkpoint(texts=texts), room)


def _before(snapshot: SessionSnapshot | None, prompt: str) -> str:
    """The user's turn before a prompt, which may be in the log itself."""
    last, earlier = last_turns(snapshot) if snapshot else ("", "")
    return earlier if last == prompt else last


def _record(snapshot: SessionSnapshot, forgotten: int, room: int) -> str:
    """Pins and summary of a session, and the request that its host has compacted and our summary does not have."""
    state = snapshot.state
    asked = next((each for each in reversed(state.messages) if is_request(each.message)), None)
    texts = view_texts(state)
    parts = Checkpoint(summary=state.head.summary, texts=texts)
    if asked and state.head.tail_start <= asked.seq <= forgotten:
        words = shortened(text_of(asked.message), _REQUEST_CHARS, handle(asked.seq), texts)
        parts = replace(parts, request=words, request_seq=asked.seq)
    return _rendered_record(pin_texts(state), parts, room)


def _rendered_record(given: Sequence[tuple[str, int | None]], parts: Checkpoint, room: int) -> str:
    """A record with its pins; pins that do not fit are named, and a long summary is cut."""
    pins, fitting = pinned_texts(given), list[str]()
    left = room - host_chars(parts.request)
    for pin in pins:
        left -= host_chars(pin) + 1
        if left < _SPARE_CHARS:
            fitting.append(f"- {parts.texts.pins_left.format(count=len(pins) - len(fitting))}")
            break
        fitting.append(pin)
    summary = _cut(parts.summary, left - _SPARE_CHARS, parts.texts) if left > 2 * _SPARE_CHARS else ""
    made = checkpoint_messages(replace(parts, summary=summary, pins=tuple(fitting)))
    text = str(made[0]["content"]) if made else ""
    # What is escaped may be longer.
    return text if host_chars(text) <= room else _cut(text, room, parts.texts)


def _lasting(degraded: Sequence[str]) -> list[str]:
    """Missing parts but for that which mends itself: words said a moment ago, whose vectors are not made yet."""
    return [each for each in degraded if not each.startswith("index: what was said last")]


def _cut(text: str, room: int, texts: Texts) -> str:
    """The beginning of a text, up to the end of a line; empty without room for any."""
    if host_chars(text) <= room:
        return text
    note = f"\n{texts.rest}"
    left = room - host_chars(note)
    if left <= 0:
        return ""
    kept = text[:left]
    while host_chars(kept) > left:
        kept = kept[: len(kept) * 9 // 10]
    return (kept[: kept.rfind("\n")] if "\n" in kept else kept) + note


def _digest(message: Mapping[str, object]) -> str:
    raw = json.dumps(message, ensure_ascii=True, sort_keys=True).encode()
    return hashlib.blake2b(raw, digest_size=12).hexdigest()


def _is_readable(message: Mapping[str, object]) -> bool:
    try:
        check_messages([message])
    except MemoryServiceError:
        return False
    return True
