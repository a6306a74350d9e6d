# Generated from _async_client.py by `python -m tests.generate_client`: change that file, and run this again.
"""`MemoryClient`, the HTTP API for blocking programs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date as Day
from types import TracebackType
from typing import Any

from memory_service import schemas
from memory_service.client import _session_wire, _wire
from memory_service.client._connection import Connection
from memory_service.client._session import Session
from memory_service.client._session_wire import SessionCalls, Wanted, id_of
from memory_service.client._wire import Calls


class MemoryClient:
    """The memories of one workspace, over HTTP.

    Args:
        base_url: Where `memory-service serve` listens.
        workspace: Name of the workspace; its first memory creates it.
        api_key: A key of the server, if it has any.
        timeout: Seconds to wait for an answer.

    Every method raises errors of `memory_service.errors`: those that the server names, and
    `ConnectionFailed` where it was not reached. Calls that do nothing twice are repeated by themselves
    when the connection fails. Safe to use from several threads.
    """

    def __init__(
        self,
        base_url: str = _wire.DEFAULT_URL,
        workspace: str = schemas.DEFAULT_WORKSPACE,
        api_key: str | None = None,
        timeout: float = _wire.DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        self.base_url = base_url
        self.workspace = workspace
        self.api_key = api_key
        self.timeout = timeout
        self._calls = Calls(workspace)
        self._connection = Connection(base_url, api_key, timeout)

    def __enter__(self) -> MemoryClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def remember(
        self,
        text: str,
        *,
        tags: Collection[str] = (),
        date: Day | None = None,
        origin: schemas.Origin | None = None,
        session_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> schemas.StoredMemory:
        """Store a memory; it is on disk and searchable when this returns.

        Args:
            text: What to remember.
            tags: Appended to the text as #tags.
            date: The day it belongs to; today unless given.
            origin: Who says so.
            session_id: The conversation it comes from.
            idempotency_key: Names the request, so that sending it again stores nothing again; made unless given.
        """
        return self._connection.send(self._calls.remember(text, tags, date, origin, session_id, idempotency_key))

    def files(self) -> list[schemas.MemoryFile]:
        """All memory files, by path."""
        return self._connection.send(self._calls.files()).files

    def get(
        self, path: str, start_line: int = 1, lines: int | None = None, *, version: str | None = None
    ) -> schemas.FileText:
        """Lines of a memory file, exactly as they stand there, or in an earlier version of it; see `versions`."""
        return self._connection.send(self._calls.get(path, start_line, lines, version))

    def versions(self, path: str) -> schemas.FileVersions:
        """The earlier versions of a memory file, the last replaced first; none where memories are files in a folder."""
        return self._connection.send(self._calls.versions(path))

    def erase_versions(self, path: str) -> schemas.ErasedVersions:
        """Erase the earlier versions of a memory file, which stays as it is."""
        return self._connection.send(self._calls.erase_versions(path))

    def put(self, path: str, text: str, *, etag: str | None = None) -> schemas.WrittenFile:
        """Replace a file, or create one.

        Args:
            path: The file.
            text: Its whole new text.
            etag: What the new text was made from, see `get`; None creates a file that must not exist yet.

        Raises:
            PreconditionFailed: A person has changed the file meanwhile, or it exists already.
        """
        return self._connection.send(self._calls.put(path, text, etag))

    def delete(self, path: str, *, etag: str | None = None) -> schemas.ErasedFile:
        """Erase a file from disk and index.

        Args:
            path: The file.
            etag: The version that is meant, see `get`; None erases whatever the file says now.

        Raises:
            PreconditionFailed: The file was changed meanwhile.
        """
        return self._connection.send(self._calls.delete(path, etag))

    def entries(
        self,
        *,
        tags: Collection[str] = (),
        origin: schemas.NotedOrigin | None = None,
        session_id: str | None = None,
        since: Day | None = None,
        until: Day | None = None,
        path: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> schemas.MemoryEntries:
        """Entries, those of the newest day first and there the last one; then those of files without a day.

        Args:
            tags: Only those that have all of these tags.
            origin: Only those that are somebody's word; what was written by hand is the user's.
            session_id: Only those that were taken from a session.
            since: Only those of that day or later.
            until: Only those of that day or earlier.
            path: Only those of one file.
            limit: The most of them.
            cursor: `next_cursor` of the list before this one.
        """
        return self._connection.send(
            self._calls.entries(
                tags=tags,
                origin=origin,
                session_id=session_id,
                since=since,
                until=until,
                path=path,
                limit=limit,
                cursor=cursor,
            )
        )

    def entry(self, memory_id: str) -> schemas.MemoryEntry:
        """One entry, with the etag that a change takes."""
        return self._connection.send(self._calls.entry(memory_id))

    def edit(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        tags: Collection[str] | None = None,
        origin: schemas.Origin | None = None,
        etag: str | None = None,
    ) -> schemas.ChangedEntry:
        """Change an entry; it keeps its id, its day and its place.

        Args:
            memory_id: The entry.
            text: What it says from now on; without tags at its end it keeps those of the entry.
            tags: The tags at its end, instead of those that it has.
            origin: Who changes it; the user unless given.
            etag: What the change was made from; None changes whatever it says now.

        Raises:
            Conflict: Its words are of a higher authority, or another entry says just that.
            PreconditionFailed: It was changed meanwhile.
        """
        own = None if tags is None else _wire.list_of_texts("tags", tags)
        return self._connection.send(self._calls.edit(memory_id, etag, text=text, tags=own, origin=origin))

    def forget(
        self, memory: str | None = None, *, query: str | None = None, dry_run: bool = False
    ) -> schemas.ForgottenMemory:
        """Erase a memory from its file and from the index.

        Args:
            memory: The id of an entry; or where it stands, as a result cites it: `memory/2026-11-20.md#L14-L15`, a
                whole file, or a message of a session. An entry goes whole.
            query: Words that stand in one memory alone.
            dry_run: Erase nothing, tell what would go.

        Raises:
            Conflict: Several memories have those words, or none; nothing was erased.
        """
        return self._connection.send(self._calls.forget(memory, query, dry_run))

    def search(
        self,
        query: str,
        *,
        limit: int = 6,
        mode: schemas.SearchMode = "hybrid",
        sources: Collection[schemas.Source] = (),
        path_prefix: str = "",
        tags: Collection[str] = (),
        since: Day | None = None,
        until: Day | None = None,
        min_score: float | None = None,
        min_relevance: float = 0.0,
        order: schemas.Order = "score",
        explain: bool = False,
        history: bool = False,
    ) -> schemas.SearchResults:
        """Find the passages that answer a question, best first.

        Args:
            query: The question, in plain words.
            limit: Most results.
            mode: By meaning and words, or by one of them.
            sources: Kinds of source; empty means all.
            path_prefix: Only files whose path begins so.
            tags: Only what has all of these tags.
            since: Only memories of that day or later.
            until: Only memories of that day or earlier.
            min_score: Only results with at least this score.
            min_relevance: Only results that bear on the question with at least this probability.
            order: `memory_first` puts memories and files before what was said in sessions.
            explain: Say what every signal added to each score.
            history: Tell all values that the facts found have had.
        """
        return self._connection.send(
            self._calls.search(
                query,
                limit=limit,
                mode=mode,
                sources=list(sources),
                path_prefix=path_prefix,
                tags=_wire.list_of_texts("tags", tags),
                since=since,
                until=until,
                min_score=min_score,
                min_relevance=min_relevance,
                order=order,
                explain=explain,
                history=history,
            )
        )

    def context(
        self,
        query: str,
        *,
        system_prompt: str = "",
        budget_tokens: int = 2000,
        min_relevance: float = 0.0,
        min_gain: float = 0.0,
        order: schemas.Order = "score",
        sources: Collection[schemas.Source] = (),
        path_prefix: str = "",
        tags: Collection[str] = (),
        since: Day | None = None,
        until: Day | None = None,
    ) -> schemas.Context:
        """A block of memories for a prompt, never over its budget.

        Args:
            query: What the prompt is about.
            system_prompt: The block is appended to it.
            budget_tokens: Most tokens of the block with its wrapper.
            min_relevance: Passages that bear on the query with less than this probability stay out.
            min_gain: Least chance of an answer that a passage adds for 100 tokens; 0 fills the budget.
            order: `memory_first` gives memories and files the budget before what was said in sessions.
            sources: Kinds of source; empty means all.
            path_prefix: Only files whose path begins so.
            tags: Only what has all of these tags.
            since: Only memories of that day or later.
            until: Only memories of that day or earlier.
        """
        return self._connection.send(
            self._calls.context(
                query,
                system_prompt=system_prompt,
                budget_tokens=budget_tokens,
                min_relevance=min_relevance,
                min_gain=min_gain,
                order=order,
                sources=list(sources),
                path_prefix=path_prefix,
                tags=_wire.list_of_texts("tags", tags),
                since=since,
                until=until,
            )
        )

    def receipt(self, receipt_id: str) -> schemas.Receipt:
        """The record of a context that was made before."""
        return self._connection.send(self._calls.receipt(receipt_id))

    def receipts(self, *, session_id: str | None = None, limit: int = 50) -> schemas.ReceiptList:
        """The receipts of the last prompts, those of a session or of all; the newest first."""
        return self._connection.send(self._calls.receipts(session_id, limit))

    def changed_facts(self, *, limit: int = 50) -> schemas.ChangedFacts:
        """The facts of the memory files that had several values, each with all of them, oldest first."""
        return self._connection.send(self._calls.changed_facts(limit))

    def distinguish(self, first: str, second: str) -> schemas.StoredMemory:
        """Note that two statements are not about the same thing, so that none replaces the other."""
        return self._connection.send(self._calls.distinguish(first, second))

    def keys(self) -> list[schemas.AccessKey]:
        """All keys of the server without their secrets; for a key of the role `admin`, as `make_key` is."""
        return self._connection.send(self._calls.keys()).keys

    def make_key(
        self,
        name: str,
        *,
        role: schemas.KeyRole = "write",
        workspaces: Collection[str] = ("*",),
        days: int | None = None,
    ) -> schemas.MadeKey:
        """Make a key of the server; its answer alone has the key itself.

        Args:
            name: Whose it is, or what for.
            role: What it may do.
            workspaces: Names of the workspaces that it is for; `*` is all of them.
            days: After so many days it is no key any more; None for never.
        """
        return self._connection.send(self._calls.make_key(name, role, workspaces, days))

    def withdraw_key(self, key_id: str) -> schemas.AccessKey:
        """Withdraw a key by its id: it is none any more, in every process within a second."""
        return self._connection.send(self._calls.withdraw_key(key_id))

    def reindex(
        self,
        paths: Collection[str] = (),
        *,
        full: bool = False,
        on_progress: Callable[[schemas.Operation], object] | None = None,
        poll_seconds: float = 0.2,
    ) -> schemas.ReindexReport:
        """Bring the index up to date with the files, and wait for it.

        Args:
            paths: Files or folders; empty means all.
            full: Forget the index first.
            on_progress: Told how far it is, at every look.
            poll_seconds: Time between two looks.

        Raises:
            StorageFailed: It failed.
            Conflict: Somebody cancelled it.
        """
        operation_id = self.start_reindex(paths, full=full).operation_id
        while True:
            operation = self.operation(operation_id)
            if on_progress:
                on_progress(operation)
            report = _wire.report_of_operation(operation)
            if report is not None:
                return report
            time.sleep(poll_seconds)

    def start_reindex(self, paths: Collection[str] = (), *, full: bool = False) -> schemas.OperationRef:
        """Start a reindex in the background."""
        return self._connection.send(self._calls.start_reindex(paths, full))

    def operation(self, operation_id: str) -> schemas.Operation:
        """State of an operation."""
        return self._connection.send(self._calls.operation(operation_id))

    def operations(self) -> list[schemas.Operation]:
        """The operations of the last day; the newest first."""
        return self._connection.send(self._calls.operations()).operations

    def cancel(self, operation_id: str) -> schemas.Operation:
        """Ask an operation to stop; what it has written stays."""
        return self._connection.send(self._calls.cancel(operation_id))

    def status(self) -> schemas.Status:
        """Status of the workspace."""
        return self._connection.send(self._calls.status())

    def events(self, after: int | None = None) -> Iterator[schemas.SessionEvent]:
        """Changes of the workspace, whoever makes them, until you stop; a broken connection is made again.

        Their kinds are `memories`, `session`, `operation` and `index`; each says that something is different now.

        Args:
            after: The last event that was heard; 0 begins with the oldest that is kept; else those to come.

        Raises:
            ConnectionFailed: The server was not reached several times in a row.
        """
        yield from self._connection.events(self._calls.events, after)

    def settings(self) -> list[schemas.SettingValue]:
        """The settings of the server and where each is from; for a key of the role admin, or on its machine."""
        return self._connection.send(_wire.settings_call()).settings

    def hosts(self) -> schemas.ConnectedHosts:
        """The coding agents that are connected on the server's machine; for whom `settings` is."""
        return self._connection.send(_wire.hosts_call())

    def version(self) -> schemas.Version:
        """Version of the server."""
        return self._connection.send(self._calls.version())

    def session(
        self,
        session_id: str | None = None,
        *,
        title: str = "",
        model: str | None = None,
        context_window: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Session:
        """One conversation. Sends nothing: the first thing that is said begins it, and one that is there goes on.

        Args:
            session_id: 1 to 128 letters, digits, dots, underscores and hyphens; None makes it from the title.
            title: Its name for people, in any script, for a session that is begun.
            model: The model of its agent; it decides the context window where nothing else does.
            context_window: What the model takes, in tokens; wins over every other source.
            settings: Its own values for the tables `compaction`, `pruning` and `flush` of the settings.
        """
        query = Wanted({"model": model, "context_window": context_window, "settings": settings}, title)
        return Session(self._connection, self.workspace, id_of(session_id, title), query)

    def sessions(self) -> list[schemas.ListedSession]:
        """All sessions, the last active first."""
        return self._connection.send(_session_wire.sessions_call(self.workspace)).sessions

    def delete_session(self, session_id: str) -> schemas.ErasedSession:
        """Erase a session, from disk and index; memories that were flushed stay."""
        return self._connection.send(SessionCalls(self.workspace, session_id).delete())

    def compact_messages(
        self,
        messages: object,
        context_window: int | None = None,
        *,
        model: str | None = None,
        preset: str | None = None,
        trigger: schemas.Trigger = "threshold",
        target_tokens: int | None = None,
        force: bool = False,
        instructions: str | None = None,
        identifier_policy: schemas.IdentifierPolicy | None = None,
        pins: Collection[str] = (),
        system_prompt: str = "",
        tools: Collection[object] = (),
        overrides: Mapping[str, Any] | None = None,
        format: schemas.Wire = "openai",
        summary_model: str | None = None,
    ) -> schemas.CompactedMessages:
        """Messages in, fewer messages out, without a session; they come back as they are if they fit.

        Args:
            messages: In OpenAI's or Anthropic's shape.
            context_window: What the model takes, in tokens; else what is known of `model`.
            model: The model that they are for.
            preset: How to compact, by name.
            trigger: Why.
            target_tokens: What they should come to.
            force: Compact although there is room.
            instructions: What the summary should look at.
            identifier_policy: What the summary does with ids and paths.
            pins: Texts that stay word for word.
            system_prompt: Sent beside the messages: counted, and not sent back.
            tools: Schemas of tools, counted likewise.
            overrides: Numbers of the preset, by name.
            format: The shape of the messages in the answer.
            summary_model: The model that writes this summary, by its litellm name; else the service's.
        """
        return self._connection.send(
            _session_wire.compact_messages_call(
                messages,
                context_window=context_window,
                model=model,
                preset=preset,
                trigger=trigger,
                target_tokens=target_tokens,
                force=force,
                instructions=instructions,
                identifier_policy=identifier_policy,
                pins=pins,
                system_prompt=system_prompt,
                tools=tools,
                overrides=overrides,
                format=format,
                summary_model=summary_model,
            )
        )
