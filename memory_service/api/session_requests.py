"""Owns the way from what came over the wire about sessions to the service's values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Annotated

from fastapi import Path

from memory_service.compaction_schemas import (
    CompactRequest,
    OverflowRequest,
    PromptOptions,
    SessionContextRequest,
    StatelessRequest,
)
from memory_service.errors import InvalidRequest, NotFound
from memory_service.messages.sizes import MESSAGE_TOKENS
from memory_service.schemas import SESSION_ID
from memory_service.service import MemoryService
from memory_service.session_schemas import NewPin, UsageReport
from memory_service.sessions.folder import check_session_id
from memory_service.sessions.records import Usage
from memory_service.shortterm.contexts import ContextCall
from memory_service.shortterm.memory import ShortTermMemory
from memory_service.shortterm.overflows import OverflowCall
from memory_service.shortterm.receipts import CompactionCall
from memory_service.shortterm.stateless import StatelessCall
from memory_service.tokens import count_tokens

SessionId = Annotated[
    str,
    Path(description="Id of the session.", examples=["support-42"], json_schema_extra={"pattern": SESSION_ID}),
]

_OWN = frozenset({"error", "status", "usage", "format"})


def begun(
    service: MemoryService, workspace: str, session_id: str | None, check: Callable[[], object]
) -> ShortTermMemory:
    """The sessions of a workspace; it is made if it is not there.

    Args:
        service: The service.
        workspace: Its name.
        session_id: The session that is to be begun there, if it is named.
        check: Raises if what is to be written cannot be: that makes no workspace.
    """
    try:
        return service.sessions(workspace)
    except NotFound:
        if session_id is not None:
            check_session_id(session_id)
        check()
        return service.sessions(workspace, make=True)


def usage_of(report: UsageReport | None, model: str | None = None, finish_reason: str | None = None) -> Usage | None:
    """What a provider counted, whatever its names for it; None if it counted nothing and told nothing.

    Source: OpenAI API reference, "Chat completions", `usage`: `prompt_tokens` hold the cached ones, and so do the
    `input_tokens` of "Responses", which come with `input_tokens_details`. Anthropic API, "Messages": `input_tokens`
    do not hold those that were read from or written to the cache. litellm sends `prompt_tokens` that hold both.
    """
    if report is None or (report.prompt_tokens is None and report.input_tokens is None):
        return Usage(input_tokens=0, model=model, finish_reason=finish_reason) if finish_reason else None
    details = report.prompt_tokens_details or report.input_tokens_details
    told = (details.cached_tokens if details else None) or report.cache_read_input_tokens
    read = told or report.cache_read_tokens or 0
    write = report.cache_creation_input_tokens or report.cache_write_tokens or 0
    whole = report.prompt_tokens if report.prompt_tokens is not None else report.input_tokens or 0
    cached = read + write if report.prompt_tokens is not None else read if report.input_tokens_details else 0
    output = report.completion_tokens if report.completion_tokens is not None else report.output_tokens
    return Usage(
        input_tokens=max(whole - cached, 0),
        output_tokens=output or 0,
        cache_read_tokens=read,
        cache_write_tokens=write,
        model=model,
        finish_reason=finish_reason,
    )


def tools_tokens(tools: Sequence[object]) -> int:
    """What the schemas of tools take, as they go over the wire."""
    return sum(count_tokens(json.dumps(tool, ensure_ascii=False)) for tool in tools)


def context_call(body: PromptOptions) -> ContextCall:
    """What is wanted of a context."""
    return ContextCall(
        query=body.query,
        system_prompt=body.system_prompt,
        memory_budget_tokens=body.memory_budget_tokens,
        max_tokens=body.max_tokens,
        auto=body.auto if isinstance(body, SessionContextRequest) else True,
        tools_tokens=tools_tokens(body.tools),
        recall=body.recall,
        sources=tuple(body.sources),
        order=body.order,
    )


def overflow_call(body: OverflowRequest) -> OverflowCall:
    """What a provider answered, and how the next prompt is made if that is told."""
    told = body.model_fields_set - _OWN
    return OverflowCall(
        error=body.error,
        status=body.status,
        usage=usage_of(body.usage),
        context=context_call(body) if told else None,
    )


def compaction_call(body: CompactRequest) -> CompactionCall:
    """What is wanted of a compaction."""
    return CompactionCall(
        mode=body.mode,
        preset=body.preset,
        overrides=body.overrides,
        trigger=body.trigger,
        instructions=body.instructions,
        identifier_policy=body.identifier_policy,
        target_tokens=body.target_tokens,
        force=body.force,
    )


def stateless_call(body: StatelessRequest) -> StatelessCall:
    """What is to be compacted."""
    system = count_tokens(body.system_prompt) + MESSAGE_TOKENS if body.system_prompt else 0
    return StatelessCall(
        messages=body.messages,
        context_window=body.context_window,
        model=body.model,
        preset=body.preset,
        overrides=body.overrides,
        trigger=body.trigger,
        target_tokens=body.target_tokens,
        force=body.force,
        instructions=body.instructions or "",
        identifier_policy=body.identifier_policy,
        pins=tuple(body.pins),
        overhead_tokens=system + tools_tokens(body.tools),
    )


def check_pin(body: NewPin) -> None:
    """Make sure that a pin can be the first thing of its session.

    Raises:
        InvalidRequest: It is no text.
    """
    if body.text is None or body.seq is not None or not body.text.strip():
        raise InvalidRequest("A pin is of a text or of a message. Send text, or the seq of a message that is there.")
