"""Conversations that a client keeps itself and sends whole with every call: which session each is, and what is new.

A provider's client knows no sessions: it sends all that was said so far. Here such a list meets the log.

Rules: the session is the one that the caller names; else its id is made of the protocol's own id, if the call has one,
and of the conversation's stable beginning: all up to and with the first message of the user, system messages aside.
What the log has already is recognised by what it says (role, words, calls, their ids), whatever else a client adds or
leaves out, and only the rest is appended.

- The list goes on where the log ends: the rest is appended. A retry has no rest.
- The list ends or differs before the log does (a regeneration, an edited turn): the conversation goes on in a branch,
  a session of its own that begins with the records of the shared part, compactions included. The same list finds the
  same branch again.
- The call names the answer that its list follows, or the conversation that holds all before: the list is what is new,
  and what the log has up to there is taken for said. Where that is not the log's end, the rule above makes a branch.
- Nothing is shared with the beginning, but the list overlaps the end of the log (a client that cuts its history), or
  has nothing in it but the user's words, and the session was named: it is what is new.

Invariants: what was logged stays; nothing is appended twice, whoever appends at the same time; a list of a shape that
cannot be read is sent as it came, and the answer says so.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar, cast

from indexer.common import LRU
from memory_service.conversations.call_places import (
    MOST_BRANCHES,
    branch_ids,
    conversation_id,
    derived_id,
    root_of,
)
from memory_service.conversations.client_calls import CallWire, ConversationCall, ConversationPrompt, LogPlace
from memory_service.conversations.compare import (
    ComparedMessage,
    ReadMessage,
    SentMessage,
    ShownDigests,
    alike,
    as_the_client_has_it,
    comparable_messages,
    compared_message,
    part_type,
    read_list,
    rest_after,
    shared_beginning,
    suffix_length,
)
from memory_service.errors import Conflict, InvalidRequest, NotFound, StorageFailed, TooLarge
from memory_service.home import check_session_id
from memory_service.llm.base import not_cancelled
from memory_service.llm.errors import FailureKind, classify
from memory_service.llm.token_anchor import usage_of
from memory_service.messages.reading import read_sent
from memory_service.messages.response_items import standalone
from memory_service.messages.shapes import CUT, Message, is_empty, own_text_of, text_of
from memory_service.messages.sizes import Numbered
from memory_service.schemas import UsageReport
from memory_service.schemas.compaction import (
    OverflowRequest,
    SessionContextRequest,
)
from memory_service.schemas.messages import Wire
from memory_service.sessions.records import LogEnd

if TYPE_CHECKING:
    from memory_service.messages.sizes import Usage
    from memory_service.prompts.build import BuiltContext
    from memory_service.service.short_term import WorkspaceSessions

_Appending = TypeVar("_Appending")
# The provider's id of an answer.
ANSWER = "_answer"
_STRIPES = 64
# How often a log is looked at again where other processes append to it at the same time.
_ATTEMPTS = 16
_KNOWN_SESSIONS = 256
_KNOWN_ANSWERS = 4_096
_KNOWN_LISTS = 64
# An answer to these is another prompt; anything else is the caller's to see.
_MENDED: frozenset[FailureKind] = frozenset({"token_overflow", "byte_overflow", "malformed_history"})


_NOWHERE = LogEnd(0, 0)


class Conversations:
    """The conversations of one workspace.

    Args:
        sessions: Those of the workspace.
    """

    def __init__(self, sessions: WorkspaceSessions) -> None:
        self.sessions = sessions
        self._locks = tuple(threading.Lock() for _ in range(_STRIPES))
        self._cache: LRU[str, tuple[LogEnd, int, tuple[ComparedMessage, ...]]] = LRU(_KNOWN_SESSIONS)
        self._answers: LRU[str, LogPlace] = LRU(_KNOWN_ANSWERS)
        self._lists: LRU[str, list[ReadMessage]] = LRU(_KNOWN_LISTS)
        self._shown_digests = ShownDigests()

    def join(self, call: ConversationCall) -> tuple[str, int, str]:
        """Append what is new.

        Returns:
            The session, its last message, and the session that it was parted from now.

        Raises:
            InvalidRequest: A message is in no shape that is known.
        """
        place = self._beginning(call)
        new = [message.comparison for message in self._read(call, place.session_id) if message.comparison]
        with self._lock(place.session_id):
            return self._retry_on_conflict(lambda: self._append(call, place, new))

    def _append(self, call: ConversationCall, place: LogPlace, new: Sequence[ComparedMessage]) -> tuple[str, int, str]:
        messages = [*self._before(place, new), *new]
        session_id, parted_from, rest = self._find_place(place.session_id, messages, call, call.session_id is not None)
        # Not what stands there by now: another process may have answered meanwhile, and this call is not behind that.
        parts = self._cache.get(session_id)
        last_seq = parts[2][-1].at if parts and parts[2] else 0
        if rest:
            appended_messages = self.sessions.append(
                session_id, rest, model=call.model, verbatim=True, at=self._end(session_id)
            )
            last_seq = appended_messages.last_seq
        return session_id, last_seq, parted_from

    def prompt(self, call: ConversationCall, *, cancelled: Callable[[], bool] = not_cancelled) -> ConversationPrompt:
        """Append what is new, and make the prompt of the session.

        Raises:
            InvalidName: The id is not one of a session.
            Incompressible: The prompt cannot be made to fit.
        """
        if call.session_id is not None:
            check_session_id(call.session_id)
        try:
            session_id, last_seq, branch_of = self.join(call)
        except (InvalidRequest, TooLarge, StorageFailed) as error:
            return ConversationPrompt(messages=tuple(call.messages), degraded=(f"session: {error}",))
        self._follow_model(session_id, call.model)
        if call.is_untouched:
            return ConversationPrompt(
                messages=tuple(call.messages), session_id=session_id, last_seq=last_seq, branch_of=branch_of
            )
        context = self.sessions.context(session_id, _context_call(call), cancelled=cancelled)
        return replace(self._prompt_of(call, session_id, context), last_seq=last_seq, branch_of=branch_of)

    def _follow_model(self, session_id: str, model: str | None) -> None:
        """Set the model of a session to the one that is asked now: its window is the one that counts."""
        header = self.sessions.snapshot(session_id).state.header
        if model and header is not None and header.model != model:
            self.sessions.store.update(session_id, {"model": model})

    def recover(
        self,
        prompt: ConversationPrompt,
        call: ConversationCall,
        error: str,
        status: int,
        *,
        cancelled: Callable[[], bool] = not_cancelled,
    ) -> ConversationPrompt | None:
        """The prompt to send after the provider refused one; None where the refusal is the caller's to see."""
        if not prompt.session_id or classify(error, status=status).kind not in _MENDED:
            return None
        overflow = OverflowRequest.model_construct(
            error=error, status=status, system_prompt=call.system_prompt, tools=list(call.tools)
        )
        done_step = self.sessions.recover(prompt.session_id, overflow, cancelled=cancelled)
        if done_step.action != "retry" or done_step.context is None or done_step.remedy == "wait":
            return None
        again = self._prompt_of(call, prompt.session_id, done_step.context)
        return replace(
            again,
            last_seq=prompt.last_seq,
            branch_of=prompt.branch_of,
            compaction=done_step.compaction or prompt.compaction,
            degraded=(*prompt.degraded, *again.degraded),
        )

    def append_answer(
        self,
        prompt: ConversationPrompt,
        answer: Sequence[SentMessage],
        *,
        usage: UsageReport | None = None,
        finish_reason: str | None = None,
        model: str | None = None,
        cut_text: str = "",
    ) -> None:
        """Append what the model said, once; in a branch, if the session went on another way meanwhile.

        Args:
            prompt: The prompt that it answers.
            answer: Messages in OpenAI's or Anthropic's shape; one as a rule.
            usage: What the provider counted.
            finish_reason: Its word for why the answer ended.
            model: The model that gave it.
            cut_text: Why the answer was broken off; empty if it was not.

        Raises:
            StorageFailed: The disk did not take it.
        """
        messages = [message for message in answer if not all(map(is_empty, read_sent([message], strict=False)))]
        if not prompt.session_id or not messages:
            return
        if cut_text:
            messages[-1] = {**messages[-1], CUT: cut_text}
        counted_usage = usage_of(usage, model, finish_reason)
        with self._lock(prompt.session_id):
            self._retry_on_conflict(lambda: self._answer_appended(prompt, messages, counted_usage))

    def _answer_appended(
        self, prompt: ConversationPrompt, messages: Sequence[SentMessage], usage: Usage | None
    ) -> None:
        session_id, count = prompt.session_id, len(messages)
        log = self._log(session_id)
        later = [message for message in log if message.at > prompt.last_seq]
        if [each_message.digest for each_message in later[:count]] == [
            message.digest for message in comparable_messages(messages)
        ]:
            self._note_answer(messages[-1], session_id, later[count - 1].at)
            return
        if later:
            session_id = self._branch(session_id, log, len(log) - len(later))
            if self._log(session_id)[len(log) - len(later) :]:
                return
        appended_messages = self.sessions.append(
            session_id, messages, usage=usage, verbatim=True, at=self._end(session_id)
        )
        self._note_answer(messages[-1], session_id, appended_messages.last_seq)

    def _retry_on_conflict(self, act: Callable[[], _Appending]) -> _Appending:
        """Do what appends to a log as it was read; again, if another process has written to it meanwhile."""
        for _ in range(_ATTEMPTS):
            with suppress(Conflict):
                return act()
        return act()

    def digest_at(self, session_id: str, seq: int) -> str:
        """Digest of a message of a log, in hexadecimal digits; empty if it is not there."""
        return next((message.digest.hex() for message in reversed(self._log(session_id)) if message.at == seq), "")

    # Joining

    def _read(self, call: ConversationCall, session_id: str) -> list[ReadMessage]:
        """The list of a call, of which only what is new since the last one of its conversation is read."""
        root = root_of(session_id)
        read = self._lists[root] = read_list(call.messages, self._lists.get(root) or ())
        return read

    def _beginning(self, call: ConversationCall) -> LogPlace:
        """The session that a call goes on in, and the message of it that its list follows.

        Raises:
            InvalidRequest: It follows an answer that is in no session.
        """
        if call.place is not None:
            return call.place
        text = call.session_id or (conversation_id(call.conversation) if call.conversation else "")
        if call.mark and not text:
            text = next(iter(self.sessions.store.containing(json.dumps(call.mark, ensure_ascii=False).encode())), "")
        if not call.follows:
            return LogPlace(text or derived_id(call), None if call.conversation else 0)
        place = self._place_of(call.follows)
        if place is None and not (text and self._log(text)):
            raise InvalidRequest(f"The answer {call.follows[:80]!r} is in no session of this workspace.")
        return place or LogPlace(text, None)

    def _before(self, place: LogPlace, new: Sequence[ComparedMessage]) -> list[ComparedMessage]:
        """The messages of the log that a list follows, as if the list had them."""
        log = self._log(place.session_id) if place.seq != 0 else ()
        before = [replace(message, at=-1) for message in log if place.seq is None or message.at <= place.seq]
        is_retry = place.seq is None and new and suffix_length(log, new) == len(new) <= len(log)
        return before[: -len(new)] if is_retry else before

    def _place_of(self, answer_id: str) -> LogPlace | None:
        """The message that holds an answer; in a log that nobody asked for yet, it is searched."""
        log_place = self._answers.get(answer_id)
        mark = f'"{ANSWER}":{json.dumps(answer_id)}'.encode()
        for session_id in [log_place.session_id] if log_place else self.sessions.store.containing(mark):
            for state_message in reversed(self._state_messages(session_id)):
                if state_message.message.get(ANSWER) == answer_id or (log_place and state_message.seq == log_place.seq):
                    found_log_place = self._answers[answer_id] = LogPlace(session_id, state_message.seq)
                    return found_log_place
        return None

    def _note_answer(self, answer: SentMessage, session_id: str, seq: int) -> None:
        if isinstance(answer_id := answer.get(ANSWER), str):
            self._answers[answer_id] = LogPlace(session_id, seq)

    def _state_messages(self, session_id: str) -> Sequence[Numbered]:
        try:
            return self.sessions.snapshot(session_id).state.messages
        except NotFound:
            return ()

    def _find_place(
        self, root: str, messages: Sequence[ComparedMessage], call: ConversationCall, is_named: bool
    ) -> tuple[str, str, Sequence[SentMessage]]:
        """The session that a list goes on in, the one that it is parted from, and what is new."""
        session_id, seen_keys = root, set[str]()
        while session_id not in seen_keys:
            seen_keys.add(session_id)
            log = self._log(session_id)
            shared_count, read = shared_beginning(log, messages)
            if shared_count == len(log):
                return session_id, "", rest_after(call.messages, messages, read)
            if not shared_count and (overlap := suffix_length(log, messages)):
                return session_id, "", rest_after(call.messages, messages, overlap)
            if not shared_count and is_named and all(message.role == "user" for message in messages):
                return session_id, "", call.messages
            following = self._following(session_id, log, messages, shared_count)
            if following is None:
                branch = self._branch(session_id, log, shared_count)
                return branch, session_id, rest_after(call.messages, messages, read)
            session_id = following
        raise Conflict(f"The branches of {root} contradict each other. Begin a new conversation.")

    def _following(
        self, session_id: str, log: Sequence[ComparedMessage], messages: Sequence[ComparedMessage], shared_count: int
    ) -> str | None:
        """The branch from here that a list goes on in, or part of the way; None if there is none yet."""
        for branch in branch_ids(session_id, log[:shared_count]):
            if branch == session_id:
                continue
            other_messages = self._log(branch)
            if not other_messages:
                return None
            if len(other_messages) == shared_count or shared_beginning(other_messages, messages)[0] > shared_count:
                return branch
        return None

    def _branch(self, session_id: str, log: Sequence[ComparedMessage], shared_count: int) -> str:
        """A new session that begins as another one does, up to a message."""
        for branch in branch_ids(session_id, log[:shared_count]):
            try:
                self.sessions.store.fork(session_id, branch, before_seq=log[shared_count].at)
            except Conflict:
                if len(self._log(branch)) == shared_count:
                    return branch
                continue
            self._log(branch)
            return branch
        raise Conflict(f"The session {session_id} has {MOST_BRANCHES} branches from here. Begin a new conversation.")

    def _log(self, session_id: str) -> tuple[ComparedMessage, ...]:
        """The messages of a session as they are compared; none if it is not there."""
        try:
            state = self.sessions.snapshot(session_id).state
        except NotFound:
            self._cache.pop(session_id)
            return ()
        end, done_number, known_parts = self._cache.get(session_id) or (_NOWHERE, 0, ())
        if end.edition != state.edition or done_number > len(state.messages):
            done_number, known_parts = 0, ()
        groups = dict[int, list[Message]]()
        for message in state.messages[done_number:]:
            groups.setdefault(message.seq, []).append(message.message)
        entries = (*known_parts, *(compared_message(messages, seq) for seq, messages in groups.items()))
        self._cache[session_id] = LogEnd(state.edition, state.last_seq), len(state.messages), entries
        return entries

    def _end(self, session_id: str) -> LogEnd:
        """The end of a log as it was read last."""
        known_parts = self._cache.get(session_id)
        return known_parts[0] if known_parts else _NOWHERE

    def _lock(self, session_id: str) -> threading.Lock:
        return self._locks[hash(root_of(session_id)) % _STRIPES]

    # The prompt

    def _prompt_of(self, call: ConversationCall, session_id: str, context: BuiltContext) -> ConversationPrompt:
        prompt = context.prompt
        blocks, messages = set(prompt.blocks), list[Message]()
        # How many of the user's messages stand before each block: as many do in the client's own list.
        behind = list[tuple[int, str]]()
        for at, message in enumerate(prompt.messages):
            if at in blocks:
                behind.append((len(messages), text_of(message)))
            else:
                messages.append(message)
        system = bool(call.system_prompt and messages and messages[0].get("content") == call.system_prompt)
        counts = [sum(1 for each_message in messages[at:] if each_message["role"] == "user") for at, _ in behind]
        sent_messages = self._write_view(call, session_id, messages[system:])
        for count, (_, text) in zip(counts, behind, strict=True):
            sent_messages = with_block(sent_messages, text, call.wire, back=count)
        return ConversationPrompt(
            messages=tuple(sent_messages),
            session_id=session_id,
            tokens=prompt.tokens,
            cached_prefix_tokens=context.cached_prefix_tokens,
            receipt_id=context.receipt.receipt_id if context.receipt else "",
            compaction=context.compaction,
            command_reply=_outcome(context) if context.command else "",
            degraded=context.degraded,
        )

    def _write_view(self, call: ConversationCall, session_id: str, messages: Sequence[Message]) -> list[SentMessage]:
        """The messages of a view as they are sent: the client's own where it still has them."""
        if call.wire == "responses":
            return as_the_client_has_it(list(map(standalone, messages)), call.messages)
        given_pairs = [shown_pair for message in self._read(call, session_id) for shown_pair in message.shown_forms]
        if alike(list(map(self._shown_digests.of, messages)), given_pairs):
            return list(call.messages)
        own = {digest: message for message, digest in self._own_system_messages(call, session_id)}
        written_messages, beside = self._render(call, session_id, messages, own)
        sent_messages = as_the_client_has_it(written_messages, call.messages)
        if beside:
            # Of Anthropic's messages a system message stands behind one of the user.
            sent_messages.insert(1, {"role": "system", "content": beside})
        return sent_messages

    def _own_system_messages(self, call: ConversationCall, session_id: str) -> Iterator[tuple[SentMessage, bytes]]:
        """The system messages in the middle of a list of Anthropic's, with their digests; what else they hold stays."""
        for message, read in zip(call.messages, self._read(call, session_id), strict=True):
            if call.wire == "anthropic" and len(read.shown_forms) == 1 and read.shown_forms[0][0]:
                yield message, read.shown_forms[0][1]

    def _render(
        self, call: ConversationCall, session_id: str, messages: Sequence[Message], own: Mapping[bytes, SentMessage]
    ) -> tuple[list[SentMessage], object]:
        """Messages in the shape of a call, with the client's own system messages, and what stands beside them."""
        wire = cast("Wire", call.wire)
        written_messages, stretch, beside = list[SentMessage](), list[Message](), list[object]()

        def end_stretch() -> None:
            if stretch:
                new_messages = self.sessions.to_wire(session_id, stretch, wire)
                written_messages.extend(new_messages.messages)
                beside.append(new_messages.system)
                stretch.clear()

        for message in messages:
            is_systems, digest = self._shown_digests.of(message)
            if is_systems and digest in own and (written_messages or stretch):
                end_stretch()
                written_messages.append(own[digest])
            else:
                stretch.append(message)
        end_stretch()
        return written_messages, next(filter(None, beside), "")


def with_block(messages: Sequence[SentMessage], block: str, wire: CallWire, *, back: int = 1) -> list[SentMessage]:
    """Messages with a block of memories before words of the user, so that a provider's cache holds up to there.

    Args:
        messages: In the shape of a call.
        block: What is put there; empty for nothing.
        wire: The shape.
        back: Before which of the user's messages, counted from the last.
    """
    sent_messages = list(messages)
    if not block:
        return sent_messages
    indexes = (index for index in reversed(range(len(sent_messages))) if _is_said_by_user(sent_messages[index]))
    at = min(islice(indexes, max(back, 1)), default=len(sent_messages))
    if wire != "anthropic" or at == len(sent_messages):
        sent_messages.insert(at, {"role": "user", "content": block})
        return sent_messages
    content = sent_messages[at]["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(cast("list[object]", content))
    # Results of tools stand first in a message.
    results = sum(1 for part in parts if part_type(part) == "tool_result")
    sent_messages[at] = {
        **sent_messages[at],
        "content": [*parts[:results], {"type": "text", "text": block}, *parts[results:]],
    }
    return sent_messages


def last_words(messages: Sequence[SentMessage]) -> str:
    """Text of what the user said last; empty if the user said nothing, or it cannot be read."""
    try:
        said_messages = [message for message in read_sent(messages, strict=False) if message["role"] == "user"]
    except TooLarge:
        return ""
    return next((text for each_message in reversed(said_messages) if (text := own_text_of(each_message)).strip()), "")


def _outcome(context: BuiltContext) -> str:
    receipt = context.compaction
    if receipt is None or not receipt.applied:
        return f"Nothing was compacted: {receipt.reason if receipt else ' '.join(context.degraded)}"
    return f"Compacted: {receipt.tokens_before:,} -> {receipt.tokens_after:,} tokens."


def _context_call(call: ConversationCall) -> SessionContextRequest:
    # Not checked: what a provider takes may be more than a caller of ours may send.
    return SessionContextRequest.model_construct(system_prompt=call.system_prompt, tools=list(call.tools))


def _is_said_by_user(message: SentMessage) -> bool:
    content = message.get("content")
    if message.get("role") != "user":
        return False
    return not isinstance(content, list) or any(part_type(part) != "tool_result" for part in content)
