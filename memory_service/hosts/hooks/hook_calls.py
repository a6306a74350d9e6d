"""Hook calls of coding agents: the memory they are given, and what is kept of what they said.

Rules: a conversation is a session of the project's workspace. A start gives pins, summary and memories; a prompt gives
what it asks for, or nothing; an end of a turn, and what comes before a compaction, stores the new part of the
transcript. What takes long (a flush, a summary) comes after the answer, and what meets other work on the session is put
off until that has ended. Where a host went back in its conversation, the session goes on in a branch of it.

Invariants: a fault never becomes an error of the host: it is a line of the log of the home; nothing is stored twice;
an answer is never longer than the host takes.
"""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.common import THROTTLE
from memory_service.errors import (
    CallCancelled,
    InvalidRequest,
    MemoryServiceError,
    NotFound,
    StorageFailed,
    TooManyRequests,
)
from memory_service.home import check_workspace
from memory_service.hosts import HostName
from memory_service.hosts.dialects import HostEvent, host_chars, read_event, rendered_answer
from memory_service.hosts.hooks.host_records import (
    SPARE_CHARS,
    cut_text,
    record_of,
    rule_pieces,
    rules_record,
    words_for,
)
from memory_service.hosts.hooks.host_storing import READING, STORING, ConversationLog
from memory_service.hosts.places import FileAccess, ReadablePlaces
from memory_service.hosts.progress import (
    Progress,
    followed_workspace,
    move_former_progress,
    note_faults,
)
from memory_service.hosts.projects import project_of
from memory_service.hosts.queue import HookWork
from memory_service.llm.base import not_cancelled
from memory_service.messages.shapes import text_of
from memory_service.prompts.prompt_records import InjectedBlock, InjectedPassage, PromptRecords
from memory_service.prompts.session_recall import Question, Recalled, last_turns
from memory_service.runtime.base import RULES_ALONE
from memory_service.schemas.compaction import CompactRequest
from memory_service.text.recall import decide_recall

if TYPE_CHECKING:
    from memory_service.runtime.session_services import SessionSnapshot
    from memory_service.service import MemoryService

_PROMPT_TOKENS = 1_000
_CHARS_PER_TOKEN = 4
# In place of the place in the log that a prompt of ours was made for: the host makes its prompts itself.
_GIVEN_BY_HOOKS = -1
_MOST_GIVEN = 500
# Of what was noted last, so much says what the work is about.
_QUERY_CHARS = 500
# Of the room for an answer, memories have so much before the summary gets the rest.
_MEMORY_CHARS = _PROMPT_TOKENS * _CHARS_PER_TOKEN
# Work that meets other work on the session waits so long for it; what is left then, the next hook does.
_PUT_OFF_SECONDS = 600.0
_PUT_OFF_STEP_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """The answer to a hook call.

    Attributes:
        answer: The host's JSON; empty where there is nothing to say.
        faults: Failures; the log of the home has them already.
        afterwards: Work that does not keep the host waiting: run it once the answer is sent. It asks the given function
            if it shall end early; the next hook goes on.
        workspace: Whose memory it is; empty if that could not be told.
        is_kept: True if what the event brought is on the disk, or it brought nothing.
    """

    answer: dict[str, object] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    afterwards: Callable[[Callable[[], bool]], None] = lambda _: None
    workspace: str = ""
    is_kept: bool = True


def handle_hook(
    service: MemoryService,
    host: HostName,
    call: Mapping[str, object],
    *,
    workspace: str | None = None,
    access: FileAccess = "all",
    keeps: bool = True,
) -> HostAnswer:
    """The answer to a hook call of a coding agent.

    Args:
        service: The service.
        host: The agent's name.
        call: The host's own JSON.
        workspace: Whose memory; None for the one that the conversation began in, or that of the agent's project.
        access: Whose files the call may name; see `memory_service.hosts.places`.
        keeps: Whether what it brings is stored, too; otherwise `finish_hook` does that.
    """
    return HookCall(service, read_event(host, call), workspace, access=access, keeps=keeps).answer()


def finish_hook(
    service: MemoryService,
    host: HostName,
    call: Mapping[str, object],
    *,
    workspace: str | None = None,
    work: HookWork = "all",
    cancelled: Callable[[], bool] = not_cancelled,
) -> HostAnswer:
    """Work that a hook call left behind its answer, done here and now; see `memory_service.hosts.queue`."""
    return HookCall(service, read_event(host, call), workspace, access="all").finish(work, cancelled)


class HookCall:
    """One hook call of a host.

    Args:
        service: The service.
        event: The event.
        workspace: Whose memory; None for the one that the conversation began in, or that of the project.
        access: Whose files it may name: its transcript, and the rules of its project.
        keeps: Whether what the event brings is stored; otherwise `kept` does that later.
    """

    def __init__(
        self,
        service: MemoryService,
        event: HostEvent,
        workspace: str | None,
        *,
        access: FileAccess,
        keeps: bool = True,
    ) -> None:
        self._service = service
        self._event = event
        self._keeps = keeps
        self._named_workspace = workspace
        settings = service.settings
        self._places = ReadablePlaces(access=access, folders=(settings.home, *settings.host_folders))
        self._log = ConversationLog(service, event, self._places)
        self._faults = self._log.faults
        self._is_stored = False
        self._has_failed = False
        self._rules = dict[str, str]()

    @THROTTLE.foreground()
    def answer(self) -> HostAnswer:
        """The answer; never an error."""
        event = self._event
        text = ""
        if event.kind != "other":
            with self._noting():
                if not event.session_id:
                    raise InvalidRequest("The call has no session_id. Send the host's own JSON as it came.")
                text = self._act()
        return HostAnswer(
            answer=rendered_answer(event, text, is_stored=self._is_stored),
            faults=self._log_faults(),
            afterwards=self.afterwards if event.kind in READING and event.session_id else lambda _: None,
            workspace=self._log.workspace,
            is_kept=not self._has_failed,
        )

    @THROTTLE.background()
    def finish(self, work: HookWork, cancelled: Callable[[], bool]) -> HostAnswer:
        """Work that the call left behind its answer, done; see `memory_service.hosts.queue`."""
        done_answer = self.answer() if work == "all" else HostAnswer()
        with self._noting():
            if work != "all":
                self._log.workspace = self._chosen_workspace()
            if work == "keep" or (work == "after" and self._log.transcript):
                with self._log.open_progress(make=self._log.brings_messages) as progress:
                    self._store(progress)
                    if self._event.kind == "pre_compact" and (snapshot := self._snapshot()):
                        progress.forgotten = max(progress.forgotten, snapshot.state.last_seq)
        if self._event.kind in READING and self._event.session_id:
            self.afterwards(cancelled)
        faults = (*done_answer.faults, *self._log_faults())
        return HostAnswer(faults=faults, workspace=self._log.workspace, is_kept=not self._has_failed)

    def _act(self) -> str:
        """Do what the event asks for; gives the text for the agent."""
        move_former_progress(self._service.settings.home)
        self._log.workspace = self._chosen_workspace()
        with self._log.open_progress(make=self._log.brings_messages) as progress:
            progress.is_followed |= self._named_workspace is None
            if self._event.kind in STORING and self._keeps:
                self._store(progress)
            rules = self._pinned_rules(progress)
            if self._event.kind not in ("pre_compact", "prompt", "session_start"):
                return ""
            snapshot = self._snapshot()
            if snapshot and (self._event.kind == "pre_compact" or self._event.source == "compact"):
                progress.forgotten = snapshot.state.last_seq
            progress.owes_summary |= self._event.kind == "pre_compact"
            if self._event.kind == "prompt":
                return self._recall(progress, snapshot, rules)
            if self._is_known(progress):
                return rules
            self._forget_given()
            progress.told = self._event.kind == "session_start"
            return self._opening(progress, snapshot)

    @THROTTLE.background()
    def afterwards(self, cancelled: Callable[[], bool]) -> None:
        """Read the rest of a long transcript, flush, and before a compaction of the host make a summary of our own.

        Work on the same session that runs meanwhile is waited for.
        """
        if not self._log.workspace:
            return
        before = 0
        # A line that is left out is a fault too, and what stands behind it is read all the same.
        while self._log.unread_bytes not in (0, before) and not cancelled():
            before = self._log.unread_bytes
            THROTTLE.yield_to_foreground()  # to another hook of the conversation, which waits for the file
            with self._noting(), self._log.open_progress(make=True) as progress:
                self._store(progress)
        with self._noting(), suppress(NotFound, CallCancelled):
            if self._service.has_workspace(self._log.workspace):
                self._put_off(lambda: self._flush(cancelled), cancelled)
                with self._log.open_progress(make=False) as progress:
                    owes_summary = progress.owes_summary
                if owes_summary:
                    # What the host forgets is not in view any more: the summary stands for it, and recall finds it.
                    self._put_off(lambda: self._summarise(cancelled), cancelled)
        self._log_faults()

    def _flush(self, cancelled: Callable[[], bool]) -> None:
        service = self._service
        if service.settings.flush.mode != "off":
            degraded = service.flush(self._log.workspace, self._log.session_id, cancelled=cancelled).degraded
            # Vectors that nobody wants are no fault.
            self._faults += [text for text in degraded if text != RULES_ALONE]

    def _summarise(self, cancelled: Callable[[], bool]) -> None:
        request = CompactRequest(force=True)
        self._service.compact(self._log.workspace, self._log.session_id, request, cancelled=cancelled)
        with self._log.open_progress(make=False) as progress:
            progress.owes_summary = False

    def _put_off(self, work: Callable[[], None], cancelled: Callable[[], bool]) -> None:
        """Do work on the session, once other work on it has ended."""
        ends = time.monotonic() + _PUT_OFF_SECONDS
        while True:
            try:
                return work()
            except TooManyRequests:
                if time.monotonic() >= ends or cancelled():
                    raise
                time.sleep(_PUT_OFF_STEP_SECONDS)

    def _is_known(self, progress: Progress) -> bool:
        """True if the conversation that goes on has been given its memory already."""
        return progress.told and self._event.kind == "session_start" and self._event.source in ("resume", "fork")

    def _chosen_workspace(self) -> str:
        """The workspace of the call: the named one; else where calls without a name began; else the project's."""
        if self._named_workspace is not None:
            check_workspace(self._named_workspace)
            return self._named_workspace
        session_id, fault = self._event.session_id, None
        try:
            own = self._project_workspace()
        except InvalidRequest as error:
            own, fault = "", error
        if workspace := followed_workspace(self._service.storage, session_id, own):
            return workspace
        if fault is not None:
            raise fault
        return own

    def _project_workspace(self) -> str:
        if not self._places.is_local:
            raise InvalidRequest("The host is on another machine. Name the workspace, as with X-Memory-Workspace.")
        project, settings = project_of(self._event.folder), self._service.settings
        name = project.workspace_for(settings)
        project.mark(settings.home / name)
        return name

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Note a fault instead of raising it."""
        try:
            yield
        except MemoryServiceError as error:
            self._has_failed |= isinstance(error, StorageFailed)
            self._faults.append(str(error))
        except Exception as error:  # the agent goes on whatever defect there is
            place = traceback.extract_tb(error.__traceback__)[-1]
            self._faults.append(f"defect: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}")

    def _log_faults(self) -> tuple[str, ...]:
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
        room = self._event.most_chars - SPARE_CHARS
        record = self._render(progress, snapshot, room - _MEMORY_CHARS)
        tokens = (room - host_chars(record)) // _CHARS_PER_TOKEN
        recall = self._find(self._topic(snapshot), tokens, progress, snapshot, beside=record)
        block = recall.context.block if recall.context else ""
        # The summary has what the memories left of the room.
        record = self._render(progress, snapshot, room - host_chars(block))
        self._note_given(recall, record)
        return "\n\n".join(filter(None, (record, block)))

    def _render(self, progress: Progress, snapshot: SessionSnapshot | None, room: int) -> str:
        """Pins, summary and request within some room."""
        return record_of(snapshot, progress.forgotten, room) if snapshot else rules_record(self._rules, room)

    def _recall(self, progress: Progress, snapshot: SessionSnapshot | None, rules: str) -> str:
        """Memories that a prompt asks for."""
        event = self._event
        if not event.most_chars:
            return ""
        decision = decide_recall(event.prompt)
        if not decision.search:
            return rules
        room = (event.most_chars - SPARE_CHARS - host_chars(rules)) // _CHARS_PER_TOKEN
        prompt = "" if decision.outright else event.prompt
        recall = self._find(decision.query, min(room, _PROMPT_TOKENS), progress, snapshot, judged_text=prompt)
        self._note_given(recall)
        block = recall.context.block if recall.context else ""
        return "\n\n".join(filter(None, (rules, block)))

    def _find(
        self,
        query: str,
        tokens: int,
        progress: Progress,
        snapshot: SessionSnapshot | None,
        *,
        beside: str = "",
        judged_text: str = "",
    ) -> Recalled:
        """Memories that the conversation does not have in view, nor `beside` them; empty where nothing is found.

        What is found for a judged prompt has to belong into it.
        """
        recall = Recalled()
        with suppress(NotFound):
            if query and tokens > 0:
                sessions = self._service.sessions(self._log.workspace)
                blocks = self._given_blocks(sessions.prompts)
                blocks += _blocks_of(InjectedPassage("", "", beside)) if beside else ()
                question = Question(
                    query=query, budget_tokens=tokens, prompt=judged_text, before=_before(snapshot, judged_text)
                )
                now = self._service.settings.now()
                recall = sessions.recalls.recall(
                    snapshot, question, forgotten_count=progress.forgotten, beside=blocks, at=now
                )
        self._faults += _lasting(recall.degraded)
        return recall

    def _given_blocks(self, prompts: PromptRecords) -> tuple[InjectedBlock, ...]:
        before = prompts.of(self._log.session_id)
        return before.blocks if before.view == _GIVEN_BY_HOOKS else ()

    def _note_given(self, recall: Recalled, record: str = "") -> None:
        """Note what the agent has now; what is given before a compaction is for the summary alone."""
        if self._event.kind == "pre_compact":
            return
        with suppress(NotFound):
            prompts = self._service.sessions(self._log.workspace).prompts
            before, session_id = prompts.of(self._log.session_id), self._log.session_id
            new = _blocks_of(*((InjectedPassage("", "", record),) if record else ()), *recall.passages)
            blocks = (*self._given_blocks(prompts), *new)[-_MOST_GIVEN:]
            if blocks or before.blocks:  # else a workspace would be made for nothing
                with self._noting():
                    prompts.put(session_id, replace(before, view=_GIVEN_BY_HOOKS, blocks=blocks))

    def _forget_given(self) -> None:
        """Forget what the agent was given: its view does not show that any more."""
        with self._noting(), suppress(NotFound):
            self._service.sessions(self._log.workspace).prompts.erase(self._log.session_id)

    def _topic(self, snapshot: SessionSnapshot | None) -> str:
        """Subject of the work: the user's last words; else what was noted last."""
        if snapshot:
            turn = snapshot.state.turn
            if turn and (words := text_of(turn.message).strip()):
                return decide_recall(words).query or words[:_QUERY_CHARS]
        with suppress(NotFound):
            files = self._service.files(self._log.workspace)
            if files:
                newest = max(files, key=lambda file: file.modified_at)
                text = self._service.get(self._log.workspace, newest.path, max(1, newest.lines - 20)).text
                # Headings and comments of entries are nothing that memories speak of.
                texts = (line for line in text.splitlines() if line.strip() and not line.startswith(("#", "<!--")))
                return "\n".join(texts)[-_QUERY_CHARS:]
        return ""

    def _snapshot(self) -> SessionSnapshot | None:
        with suppress(NotFound):
            return self._service.sessions(self._log.workspace).snapshot(self._log.session_id)
        return None

    def _store(self, progress: Progress) -> None:
        with self._noting():
            self._log.store(progress)
            self._is_stored = True

    # Rules

    def _pinned_rules(self, progress: Progress) -> str:
        """Pin the rules of the project anew where they changed; gives those that the agent has not seen.

        A session begins with the first message, not with its rules: until then they are known and not pinned.
        """
        if not self._service.settings.pin_rules or not self._event.folder:
            return ""
        if self._places.place(self._event.folder) is None:
            self._log.refuse(progress, self._event.folder)
            return ""
        changed_texts = list[str]()
        with self._noting():
            texts = self._rules = project_of(self._event.folder).rules()
            snapshot = self._snapshot()
            has_begun = snapshot is not None
            for name in {**texts, **progress.rules}:
                text = texts.get(name, "")
                words = words_for(snapshot, text).rules
                digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
                rule = progress.rules.get(name, [])
                same = rule[:1] == [digest]
                if same and (rule[1:] or not has_begun):
                    continue
                if not same and progress.told and not self._event.most_chars:
                    continue  # until an event that can give them to the agent
                self._unpin(rule[1:])
                progress.rules.pop(name, None)
                if text:
                    progress.rules[name] = [digest, *(self._pin(name, text, words) if has_begun else ())]
                    changed_texts += [] if same else [words["changed"].format(name=name) + text]
                elif rule:
                    changed_texts.append(words["gone"].format(name=name))
        room = self._event.most_chars - SPARE_CHARS
        return (
            cut_text("\n\n".join(changed_texts), room, words_for(snapshot, "\n".join(changed_texts)))
            if progress.told
            else ""
        )

    def _pin(self, name: str, text: str, words: Mapping[str, str]) -> list[str]:
        workspace, session_id = self._log.workspace, self._log.session_id
        return [self._service.pin(workspace, session_id, piece).pin_id for piece in rule_pieces(name, text, words)]

    def _unpin(self, pin_ids: Sequence[str]) -> None:
        for pin_id in pin_ids:
            with suppress(NotFound):
                self._service.unpin(self._log.workspace, self._log.session_id, pin_id)


def _blocks_of(*passages: InjectedPassage) -> tuple[InjectedBlock, ...]:
    """Passages that an agent was given, each a block: one that is changed or erased does not take others with it."""
    return tuple(
        InjectedBlock(seq=0, said="", asked="", text="", receipt_id="", passages=(passage,)) for passage in passages
    )


def _before(snapshot: SessionSnapshot | None, prompt: str) -> str:
    """The user's turn before a prompt, which may be in the log itself."""
    last, earlier = last_turns(snapshot) if snapshot else ("", "")
    return earlier if last == prompt else last


def _lasting(degraded: Sequence[str]) -> list[str]:
    """Missing parts but for those that mend themselves, such as vectors of words that were said a moment ago."""
    return [text for text in degraded if not text.endswith("Ask again in a moment.")]
