"""The ground that all adapters stand on: a workspace in process or on a server, and the prompt of a conversation.

Invariants: a memory that fails never stops an agent: it goes on with its own messages, and the log names what is
missing; what an adapter says to a session is on the disk before the model is called.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from memory_service import schemas
from memory_service._version import distribution
from memory_service.client import AsyncMemoryClient, MemoryClient
from memory_service.client._messages import WireMessage, usage_report, wire_messages
from memory_service.client._session_wire import Wanted
from memory_service.errors import Conflict, InvalidRequest, MemoryServiceError, NotFound
from memory_service.text.injected import said_messages
from memory_service.text.recall import decide_recall

if TYPE_CHECKING:
    from memory_service.service import MemoryService

_T = TypeVar("_T")
_Recalled = TypeVar("_Recalled", schemas.Context, schemas.SearchResults)

LOGGER = logging.getLogger("memory_service.integrations")
DEFAULT_BUDGET_TOKENS = 2_000
# The end of a reason that has gone a moment later: what was said last is being indexed.
_PASSING = "Ask again in a moment."
# A branch of a session begins with the whole name of it.
_MOST_NAME_CHARS = 100


def missing(extra: str, error: ImportError) -> ImportError:
    """The error for an adapter whose framework is not installed."""
    return ImportError(
        f"memory_service.integrations.{extra.replace('-', '_')} could not import {error.name or error}. "
        f"Install it with: pip install '{distribution()}[{extra}]'.",
        name=error.name,
    )


class LocalSession:
    """A session of a service in this process, with the verbs of the client's `Session`.

    Args:
        service: The service.
        workspace: Name of the workspace.
        session_id: The session.
        wanted: What is set when it begins.
    """

    def __init__(self, service: MemoryService, workspace: str, session_id: str, wanted: Wanted) -> None:
        self.session_id = session_id
        self._service = service
        self._workspace = workspace
        self._wanted_settings = wanted

    def append(
        self,
        messages: object,
        usage: object = None,
        *,
        idempotency_key: str | None = None,
        after_seq: int | None = None,
    ) -> schemas.AppendedMessages:
        """Append what was said; see the client."""
        self._begin()
        if after_seq is not None:
            return self._service.append_answer(
                self._workspace,
                self.session_id,
                wire_messages(messages),
                after_seq=after_seq,
                usage=usage_report(usage),
            )
        return self._service.append(
            self._workspace, self.session_id, wire_messages(messages), usage=usage_report(usage), key=idempotency_key
        )

    def conversation(self, messages: object, **options: Any) -> schemas.ConversationContext:
        """The prompt of a conversation that the caller keeps; see the client."""
        request = schemas.make_request(schemas.ConversationRequest, messages=wire_messages(messages), **options)
        self._begin()
        return self._service.conversation(self._workspace, self.session_id, request)

    def messages(self, view: schemas.ViewName = "model") -> schemas.Messages:
        """The messages that the model sees, or all of the log; see the client."""
        return self._service.messages(self._workspace, self.session_id, view)

    def erase(self, seq: int) -> schemas.ErasedMessages:
        """Erase one message; see the client."""
        return self._service.erase_messages(self._workspace, self.session_id, [seq])

    def compact(self, **options: Any) -> schemas.CompactionReceipt:
        """Let a summary stand for the old messages; see the client."""
        return self._service.compact(
            self._workspace, self.session_id, schemas.make_request(schemas.CompactRequest, **options)
        )

    def compactions(self) -> list[schemas.CompactionReceipt]:
        """All compactions, newest first; see the client."""
        return self._service.compactions(self._workspace, self.session_id).compactions

    def flush(self) -> schemas.Flush:
        """Write down the memories of what was said; see the client."""
        return self._service.flush(self._workspace, self.session_id)

    def status(self) -> schemas.Session:
        """The session as it stands; see the client."""
        return self._service.session_status(self._workspace, self.session_id)

    def _begin(self) -> None:
        if not self._wanted_settings:
            return
        changes = self._wanted_settings.fields()
        try:
            new = schemas.make_request(schemas.NewSession, session_id=self.session_id, **changes)
            self._service.create_session(self._workspace, new)
        except Conflict:
            if not self._wanted_settings.is_met(self.status()):
                self._service.update_session(self._workspace, self.session_id, **changes)


class LocalMemory:
    """A workspace of a service in this process, with the verbs of `MemoryClient` that adapters use.

    Args:
        service: The service; it stays its owner's to close.
        workspace: Name of the workspace.
    """

    def __init__(self, service: MemoryService, workspace: str) -> None:
        self.workspace = workspace
        self._service = service

    def remember(self, text: str, **options: Any) -> schemas.StoredMemory:
        """Store a memory; see the client."""
        return self._service.remember(self.workspace, text, **options)

    def forget(
        self, memory: str | None = None, *, query: str | None = None, dry_run: bool = False
    ) -> schemas.ForgottenMemory:
        """Erase a memory; see the client."""
        return self._service.forget(self.workspace, memory, query=query, dry_run=dry_run)

    def entries(self, **options: Any) -> schemas.MemoryEntries:
        """A list of entries; see the client."""
        return self._service.entries(self.workspace, **options)

    def entry(self, memory_id: str) -> schemas.MemoryEntry:
        """One entry; see the client."""
        return self._service.entry(self.workspace, memory_id)

    def edit(self, memory_id: str, **change: Any) -> schemas.ChangedEntry:
        """Change an entry; see the client."""
        return self._service.edit(self.workspace, memory_id, **change)

    def search(self, query: str, **options: Any) -> schemas.SearchResults:
        """Find passages; see the client."""
        return self._service.search(self.workspace, query, **options)

    def compact_messages(
        self, messages: Sequence[Any], context_window: int | None = None, **options: Any
    ) -> schemas.CompactedMessages:
        """Compact a list of messages without a session; see the client."""
        request = schemas.StatelessRequest(messages=list(messages), context_window=context_window, **options)
        return self._service.compact_messages(request)

    def context(self, query: str, **options: Any) -> schemas.Context:
        """A block of memories; see the client."""
        return self._service.context(self.workspace, query, **options)

    def files(self) -> list[schemas.MemoryFile]:
        """All memory files; see the client."""
        return self._service.files(self.workspace)

    def get(self, path: str, start_line: int = 1, lines: int | None = None) -> schemas.FileText:
        """Lines of a memory file; see the client."""
        return self._service.get(self.workspace, path, start_line, lines)

    def put(self, path: str, text: str, *, etag: str | None = None) -> schemas.WrittenFile:
        """Replace a file, or create one; see the client."""
        return self._service.put(self.workspace, path, text, if_match=etag, if_none_match=etag is None)

    def delete(self, path: str, *, etag: str | None = None) -> schemas.ErasedFile:
        """Erase a file; see the client."""
        return self._service.delete(self.workspace, path, if_match=etag)

    def session(self, session_id: str, *, model: str | None = None, context_window: int | None = None) -> LocalSession:
        """One conversation; see the client."""
        query = Wanted({"model": model, "context_window": context_window})
        return LocalSession(self._service, self.workspace, session_id, query)

    def sessions(self) -> list[schemas.ListedSession]:
        """All sessions; see the client."""
        return self._service.list_sessions(self.workspace).sessions

    def delete_session(self, session_id: str) -> schemas.ErasedSession:
        """Erase a session; see the client."""
        return self._service.delete_session(self.workspace, session_id)


Memory: TypeAlias = "MemoryClient | LocalMemory"
MemorySource: TypeAlias = "MemoryService | MemoryClient | AsyncMemoryClient | LocalMemory | str"


def memory_of(source: MemorySource, workspace: str | None = None, api_key: str | None = None) -> Memory:
    """The workspace that an adapter works on.

    Calls block; adapters of libraries that are async make them in threads, where the index works anyway.

    Args:
        source: A `MemoryService` in this process, a client of either colour, or the URL of a server.
        workspace: Its name; `default` unless given. A client has its own.
        api_key: A key of the server, if a URL is given.

    Raises:
        InvalidRequest: A workspace or a key is given beside a client, which has its own.
    """
    if isinstance(source, str):
        return _own_client(MemoryClient(source, workspace or "default", api_key))
    if isinstance(source, MemoryClient | AsyncMemoryClient | LocalMemory):
        if workspace not in (None, source.workspace) or api_key is not None:
            raise InvalidRequest("A client has its workspace and its key. Make it with those that are wanted.")
        if isinstance(source, AsyncMemoryClient):
            return _own_client(MemoryClient(source.base_url, source.workspace, source.api_key, source.timeout))
        return source
    if api_key is not None:
        raise InvalidRequest("A service in this process takes no key. Leave api_key out.")
    return LocalMemory(source, workspace or "default")


def _own_client(client: MemoryClient) -> MemoryClient:
    """A client that nobody else closes: its connections go with it."""
    weakref.finalize(client, client._connection.close)
    return client


def whole_file(memory: Memory, path: str) -> tuple[str, str]:
    """The text of a memory file and its etag.

    Raises:
        NotFound: There is no such file.
    """
    read = memory.get(path)
    parts, etag = [read.text], read.etag
    while read.next_start_line is not None:
        read = memory.get(path, read.next_start_line)
        if read.etag != etag:
            return whole_file(memory, path)  # Somebody wrote it meanwhile.
        parts.append(read.text)
    return "".join(parts), etag


def session_name(name: str) -> str:
    """The id of the session for a thread, run or user of a framework, whatever stands in its name."""
    if re.fullmatch(schemas.SESSION_ID, name) and len(name) <= _MOST_NAME_CHARS:
        return name
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-_")[:80]
    return f"{plain or 'session'}-{hashlib.blake2b(name.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def recalled_block(memory: Memory, words: str, budget_tokens: int = DEFAULT_BUDGET_TOKENS) -> str:
    """A block of the memories that some words ask for; empty if they ask for none, or if the memory fails."""
    context = _recall(words, lambda query: memory.context(query, budget_tokens=budget_tokens))
    return context.block if context else ""


def recalled_passages(memory: Memory, words: str, limit: int) -> list[schemas.SearchResult]:
    """The passages that some words ask for, best first; none if they ask for none, or if the memory fails."""
    results = _recall(words, lambda query: memory.search(query, limit=min(limit, schemas.MAX_LIMIT)))
    return results.results if results else []


def _recall(words: str, ask: Callable[[str], _Recalled]) -> _Recalled | None:
    decision = decide_recall(words)
    if not decision.search:
        return None
    try:
        value = ask(decision.query)
    except NotFound:
        return None  # The workspace is made by the first memory.
    except MemoryServiceError as error:
        log_failure("recall", error)
        return None
    log_degraded(value.degraded)
    return value


def keep(
    memory: Memory,
    session_id: str,
    said: Iterable[tuple[str | None, Sequence[Mapping[str, Any]]]],
    *,
    flush: bool = True,
) -> None:
    """Append what was said to a session, each part of it once for its key, and write down its memories.

    Memories that stand in a message are not kept with it.

    Args:
        memory: The workspace.
        session_id: The session.
        said: Messages in OpenAI's shape, and the key under which they are not taken twice.
        flush: Whether memories are looked for at once.
    """
    session = memory.session(session_id)
    for key, messages in said:
        if kept_messages := said_messages(messages, set()):
            session.append(kept_messages, idempotency_key=key)
    if flush:
        log_degraded(session.flush().degraded)


def key_of(*parts: object) -> str:
    """An idempotency key for what these name together."""
    text = json.dumps(parts, ensure_ascii=True, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def framework_messages(
    role: str, text: str, calls: Sequence[tuple[str, str, object]] = (), results: Sequence[tuple[str, str]] = ()
) -> list[WireMessage]:
    """A message of a framework as messages in OpenAI's shape: results first, each a message of its own.

    Args:
        role: Who says it.
        text: The words.
        calls: Id, tool and arguments of each call that the message makes.
        results: Id of the call and words of each result in it.
    """
    wire: list[WireMessage] = [{"role": "tool", "tool_call_id": call, "content": words} for call, words in results]
    fields = [
        {"id": call, "type": "function", "function": {"name": name, "arguments": _arguments(arguments)}}
        for call, name, arguments in calls
    ]
    if fields:
        wire.append({"role": "assistant", "content": text or None, "tool_calls": fields})
    elif text:
        wire.append({"role": role, "content": text})
    return wire


def _arguments(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False, default=str)


def log_failure(part: str, error: MemoryServiceError) -> None:
    """Say that the agent goes on without a part."""
    LOGGER.warning("%s: the agent goes on without it: %s", part, error)


def log_degraded(degraded: Collection[str]) -> None:
    """Say which parts of an answer were missing; in a low voice what is there a moment later, as at every turn."""
    for text in degraded:
        LOGGER.log(logging.INFO if text.endswith(_PASSING) else logging.WARNING, "degraded: %s", text)


class PromptPlace(NamedTuple):
    """Where a prompt stands: its session, and the number of its last message; no session if the memory failed."""

    session_id: str
    seq: int


@dataclass(frozen=True, kw_only=True)  # slots do not go together with a generic class
class HostConversations(Generic[_T]):
    """The conversations of a framework that keeps its messages itself, each a session.

    Attributes:
        memory: The workspace.
        to_wire: A message of the framework in OpenAI's shape.
        from_wire: A message in OpenAI's shape as one of the framework, for what it has not: summaries and memories.
        context_window: What the model takes, in tokens; None for what is known of the model.
        budget_tokens: Most tokens of memories in a prompt.
        recall: Whether memories are searched.
    """

    memory: Memory
    to_wire: Callable[[_T], WireMessage]
    from_wire: Callable[[WireMessage], _T]
    context_window: int | None = None
    budget_tokens: int = DEFAULT_BUDGET_TOKENS
    recall: schemas.RecallMode = "auto"

    def prompt(
        self,
        name: str,
        messages: Sequence[_T],
        *,
        system_prompt: str = "",
        tools: Collection[object] = (),
        model: str | None = None,
        context_window: int | None = None,
        hint: str = "",
    ) -> tuple[list[_T], PromptPlace]:
        """The messages to send instead of these, and where they stand.

        Args:
            name: The framework's name for the conversation; empty for one that is named after how it begins.
            messages: All that was said so far, without the system prompt.
            system_prompt: Counted, and left to the framework to send.
            tools: Schemas of the tools, counted likewise.
            model: Name of the model.
            context_window: What it takes by its own account, where nothing else was set.
            hint: Who talks, for a conversation without a name.
        """
        wired_messages = [self.to_wire(message) for message in messages]
        session_id = session_name(name or _beginning(wired_messages, hint))
        window = self.context_window or context_window
        try:
            context = self.memory.session(session_id, context_window=window).conversation(
                wired_messages,
                system_prompt=system_prompt,
                tools=list(tools),
                model=model,
                memory_budget_tokens=self.budget_tokens,
                recall=self.recall,
            )
        except MemoryServiceError as error:
            log_failure("session", error)
            return list(messages), PromptPlace("", 0)
        log_degraded(context.degraded)
        view = context.messages[1:] if system_prompt and context.messages[0]["role"] == "system" else context.messages
        return self._own(view, wired_messages, messages), PromptPlace(context.session_id, context.last_seq)

    def append_answers(self, place: PromptPlace, answers: Sequence[_T], usage: object = None) -> None:
        """Keep what the model answered to the prompt that stands there, whenever that is told.

        The next prompt may have been made meanwhile, with the answer among its messages.
        """
        if not place.session_id or not answers:
            return
        messages = [self.to_wire(value) for value in answers]
        try:
            self.memory.session(place.session_id).append(messages, usage, after_seq=place.seq)
        except MemoryServiceError as error:
            log_failure("session", error)  # The next prompt has the answer among its messages.

    def _own(
        self, view: Sequence[WireMessage], wired_messages: Sequence[WireMessage], messages: Sequence[_T]
    ) -> list[_T]:
        """The view with the framework's own messages in it, wherever it shows them unchanged."""
        texts = [_comparable(message) for message in wired_messages]
        items: list[_T] = []
        left = len(texts)
        for shown_message in reversed(view):
            text = _comparable(shown_message)
            at = next((index for index in range(left - 1, -1, -1) if texts[index] == text), None)
            items.append(self.from_wire(shown_message) if at is None else messages[at])
            left = left if at is None else at
        return items[::-1]


def _beginning(messages: Sequence[WireMessage], hint: str) -> str:
    """A name for the conversation that begins with these: the same while it goes on."""
    first = next((at for at, message in enumerate(messages) if message["role"] == "user"), len(messages))
    text = hint + "".join(map(_comparable, messages[: first + 1]))
    return f"chat-{hashlib.blake2b(text.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def _comparable(message: Mapping[str, Any]) -> str:
    """A message as it is compared: role, text, calls and what it answers to."""
    content = message.get("content")
    calls = [[call["id"], call["function"]["name"]] for call in message.get("tool_calls") or ()]
    return json.dumps([message["role"], content or "", calls, message.get("tool_call_id")], sort_keys=True, default=str)
