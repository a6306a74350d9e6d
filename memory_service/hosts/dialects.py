"""Hook calls of coding agents: a host's JSON read into one event, and an answer in the host's own shape. Pure.

Invariants: a field that is missing or of another type than its host says counts as empty; an event that is not known,
or that a subagent had, asks for nothing; an answer is never longer than its host takes, and never cut within a block.

Source: the types of claude-agent-sdk 0.2.187; codex-rs/hooks/schema/generated of openai/codex; Cursor's page of hooks,
which does not name `additional_context` of `beforeSubmitPrompt`: Cursor 3.20 takes up to 10,000 characters of it, and
others pass it over (DietrichGebert/ponytail, docs/cursor-hooks.md). Claude Code shows a model 10,000 characters of
`additionalContext`; of more it shows a preview.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, TypeAlias

from indexer.common import lazy_regex
from memory_service.hosts import HostName

HostEventKind: TypeAlias = Literal["session_start", "prompt", "reply", "stop", "pre_compact", "session_end", "other"]
# The names of hosts whose plugins are ours: `opencode` and `openclaw` say what happens in these words.
_OWN_WORDS: Mapping[str, HostEventKind] = {
    kind: kind for kind in ("session_start", "prompt", "reply", "stop", "pre_compact", "session_end")
}
_CLAUDE_WORDS: Mapping[str, HostEventKind] = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "StopFailure": "stop",
    "PreCompact": "pre_compact",
    "SessionEnd": "session_end",
}
_CURSOR_WORDS: Mapping[str, HostEventKind] = {
    "sessionStart": "session_start",
    "beforeSubmitPrompt": "prompt",
    "afterAgentResponse": "reply",
    "stop": "stop",
    "preCompact": "pre_compact",
    "sessionEnd": "session_end",
}
_LISTENS: Mapping[HostName, frozenset[HostEventKind]] = {
    "claude-code": frozenset({"session_start", "prompt"}),
    "codex": frozenset({"session_start", "prompt"}),
    "cursor": frozenset({"session_start", "prompt"}),
    "opencode": frozenset({"session_start", "prompt", "pre_compact"}),
    "openclaw": frozenset({"session_start", "prompt", "pre_compact"}),
}
_MOST_CHARS = 10_000
_ID = lazy_regex(r"[^A-Za-z0-9._-]+")
_MOST_ID_CHARS = 100
_UUID = lazy_regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEvent:
    """One hook call.

    Attributes:
        name: The event as the host calls it.
        session_id: Of the conversation, fit to name a session of ours; empty if the host named none.
        folder: Where the agent works; empty if the host did not say.
        transcript: Path of the host's own log of the conversation; empty for none.
        prompt: Words that the user sends now.
        source: Of a start: `startup`, `resume`, `clear`, `compact`, `fork`, or what the host says.
        model: The agent's model.
        turn: Id of the turn that the event belongs to.
        messages: Said in the event itself, by hosts that have no transcript.
        spoken: The half of a turn that an event itself tells, for a transcript that cannot be read.
    """

    host: HostName
    kind: HostEventKind
    name: str
    session_id: str = ""
    folder: str = ""
    transcript: str = ""
    prompt: str = ""
    source: str = ""
    model: str = ""
    turn: str = ""
    messages: tuple[Mapping[str, object], ...] = ()
    spoken: tuple[Mapping[str, object], ...] = ()

    @property
    def most_chars(self) -> int:
        """Length of the longest text that the host gives its agent for this event, in UTF-16 units; 0 for none."""
        return _MOST_CHARS if self.kind in _LISTENS[self.host] else 0


def read_event(host: HostName, call: Mapping[str, object]) -> HostEvent:
    """The event of a hook call."""
    name = _text(call, "hook_event_name", "event")
    words = {"claude-code": _CLAUDE_WORDS, "codex": _CLAUDE_WORDS, "cursor": _CURSOR_WORDS}.get(host, _OWN_WORDS)
    kind = "other" if _text(call, "agent_id") else words.get(name, "other")
    return HostEvent(
        host=host,
        kind=kind,
        name=name,
        session_id=_session_of(host, call),
        folder=_text(call, "cwd") or next(iter(_texts(call, "workspace_roots")), ""),
        # Cursor's transcript has no results of tools, and often there is none: its events say the same.
        transcript="" if host == "cursor" else _text(call, "transcript_path"),
        prompt=_text(call, "prompt"),
        source=_text(call, "source"),
        model=_text(call, "model"),
        turn=_text(call, "prompt_id", "turn_id", "generation_id"),
        messages=tuple(value for value in _list(call, "messages") if isinstance(value, Mapping)),
        spoken=_message_of(kind, call) if host in ("claude-code", "codex", "cursor") else (),
    )


def rendered_answer(event: HostEvent, context: str, *, is_stored: bool = False) -> dict[str, object]:
    """The answer to an event, with a text for the agent; an empty object says nothing.

    Args:
        event: The event.
        context: The text.
        is_stored: Whether what the event brought is kept. The plugin of opencode sends it again until it is told so.
    """
    kept_fields: dict[str, object] = (
        {"stored": True} if is_stored and event.messages and event.host == "opencode" else {}
    )
    if not context or not event.most_chars:
        return kept_fields
    if event.host in ("claude-code", "codex"):
        return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": context}}
    # Cursor asks with a prompt if it may go on.
    asked_fields = {"continue": True} if event.host == "cursor" and event.kind == "prompt" else {}
    return {**kept_fields, **asked_fields, "additional_context": context}


def host_chars(text: str) -> int:
    """Length of a text as hosts count it, in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _session_of(host: HostName, call: Mapping[str, object]) -> str:
    """The id of a session of ours for the conversation of a call; empty if it has none."""
    given_text = _text(call, "session_id", "conversation_id")
    if host == "codex":
        # Several threads of one window have the same session_id there; each has its own rollout.
        stem = PurePath(_text(call, "transcript_path")).stem
        if match := _UUID.search(stem):
            given_text = match[0]
    name = _ID.sub("-", given_text)[:_MOST_ID_CHARS].strip("-.")
    return f"{host}-{name}" if name else ""


def _message_of(kind: HostEventKind, call: Mapping[str, object]) -> tuple[Mapping[str, object], ...]:
    """The prompt of a user, or the words that a turn ended with."""
    role, text = "assistant", _text(call, "text", "last_assistant_message")
    if kind == "prompt":
        role, text = "user", _text(call, "prompt")
    return ({"role": role, "content": text},) if kind in ("prompt", "reply", "stop") and text.strip() else ()


def _text(call: Mapping[str, object], *names: str) -> str:
    return next((value for name in names if isinstance(value := call.get(name), str) and value), "")


def _list(call: Mapping[str, object], name: str) -> Sequence[object]:
    value = call.get(name)
    return value if isinstance(value, list) else ()


def _texts(call: Mapping[str, object], name: str) -> list[str]:
    return [value for value in _list(call, name) if isinstance(value, str) and value]
