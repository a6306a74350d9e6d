"""Transcript for a summariser: one text with roles and handles.

Invariants: pure; linear. Never in it: thinking, the bytes of media, secrets, and whatever a tool's result holds
beside its content. No message can pretend to be another one: a line in it that looks like the head of a message is
marked. Every message has its handle, such as `log:12`, by which the log gives the original back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from indexer.common import lazy_regex
from indexer.language import ends_in_error, ornament
from memory_service.messages.shapes import (
    MEDIA,
    THINKING,
    Message,
    is_system,
    is_tool_result,
    parts_of,
    text_of_part,
    tool_calls_of,
)
from memory_service.messages.sizes import Numbered, estimate_tokens, quarters
from memory_service.text.frames import escape_frames, visible, without_thoughts
from memory_service.text.placeholders import handle, is_inline, media_label, trim_middle
from memory_service.text.secrets import without_secrets
from memory_service.text.texts import ENGLISH, TEXTS, Texts

# Source: OpenClaw, OpenCode and pi cut results for their summaries at this length; OpenClaw keeps such an end.
TOOL_OUTPUT_CHARS = 2_000
_TAIL_SHARE = 0.30
_TAIL_CHARS = 600

_NAME_CHARS = 64
_DATE_TOKENS = 6
_BRACKETS = lazy_regex(r"\[[^\[\]\n]{1,400}+\]")
_ENCODED_CHARS = 512  # hashes and keys are shorter, and so is any word
_ENCODED = lazy_regex(
    r"data:[\w.+-]{1,64}/[\w.+-]{1,64}(?:;[\w.+=-]{1,128}){0,8};base64,[A-Za-z0-9+/_=-]++"
    rf"|(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{_ENCODED_CHARS},}}+={{0,2}}",
    re.ASCII,
)
_NOTES = "|".join(re.split("[:：]", texts.omitted["message"][1:])[0] for texts in TEXTS.values())
# A line, wherever a reader may see one begin, that looks like the head of a message.
_FALSE_HEAD = lazy_regex(
    r"(?<=[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029])([ \t\xa0\u3000]{0,64}+)"
    rf"(?=(?:log:\d{{1,20}}[ \t]{{0,8}}+)?[\[［](?:User|Assistant|System|Tool|Date|{_NOTES})\b"
    r"|log:\d{1,20}[ \t]{0,8}+[\[［])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEntry(Numbered):
    """A message as the summariser reads it; `tokens` are those of its text, with the date before it on a new day.

    Attributes:
        text: Empty for a message that has nothing but thinking.
    """

    text: str


def transcript_entries(
    messages: Sequence[Numbered], *, tool_output_chars: int = TOOL_OUTPUT_CHARS, texts: Texts = ENGLISH
) -> tuple[TranscriptEntry, ...]:
    """The messages as the summariser reads them, one entry each.

    Args:
        messages: In order.
        tool_output_chars: The longest result, or arguments of a call; a CJK character counts for four.
        texts: Words of the talk's language for what is left out: a summary may quote them.
    """
    names: dict[str, str] = {}
    entries = []
    day = ""
    for message in without_secrets(messages):
        for call in tool_calls_of(message.message):
            names[call["id"]] = call["function"]["name"]
        text = "\n".join(_pieces(message, names, tool_output_chars, texts))
        tokens = (estimate_tokens(text) + 1 + _DATE_TOKENS * (message.at[:10] != day)) if text else 0
        day = message.at[:10] if text else day
        entries.append(
            TranscriptEntry(seq=message.seq, at=message.at, message=message.message, text=text, tokens=tokens)
        )
    return tuple(entries)


def transcript(entries: Sequence[TranscriptEntry]) -> str:
    """The entries as one text, the date wherever a new day begins."""
    lines: list[str] = []
    day = ""
    for entry in entries:
        if entry.text and entry.at[:10] and entry.at[:10] != day:
            day = entry.at[:10]
            lines.append(f"[Date]: {day}")
        if entry.text:
            lines.append(entry.text)
    return "\n".join(lines)


def omit_text(entry: TranscriptEntry, texts: Texts = ENGLISH) -> TranscriptEntry:
    """Copy of an entry with a note in place of its text."""
    text = omitted_note(entry, texts)
    return replace(entry, text=f"{handle(entry.seq)} {text}", tokens=estimate_tokens(text) + 4)


def omitted_note(entry: TranscriptEntry, texts: Texts = ENGLISH) -> str:
    """Note for a message too large for a summary: `[Omitted: large tool result, ~38K tokens; log:12]`."""
    role = "system" if is_system(entry.message) else entry.message["role"]
    size = f"{round(entry.tokens / 1_000)}K" if entry.tokens >= 1_000 else str(entry.tokens)
    return texts.omitted["message"].format(what=texts.omitted[role], size=size, handle=handle(entry.seq))


def inserted_markers(entries: Sequence[TranscriptEntry]) -> tuple[str, ...]:
    """Bracketed texts of the entries: markers written by this module, and any in the messages."""
    return tuple(dict.fromkeys(match[0] for entry in entries for match in _BRACKETS.finditer(entry.text)))


def _pieces(entry: Numbered, names: Mapping[str, str], limit: int, texts: Texts) -> Iterator[str]:
    message, at = entry.message, handle(entry.seq)
    if is_tool_result(message):
        name = names.get(message.get("tool_call_id", "")) or message.get("name") or "unknown tool"
        kind = ", failed" if message.get("is_error") else ""
        content = _clean("\n".join(_content_pieces(entry, texts)))
        text = _trim_text(content, limit, entry.seq, texts, has_failed=bool(kind)) or "(empty)"
        yield f"{at} [Tool result of {_label(name)}{kind}]: {text}"
        return
    text = _clean("\n".join(_content_pieces(entry, texts)))
    if text.strip():
        yield f"{at} [{_role(message)}]: {text}"
    for name, arguments in _calls(message):
        yield f"{at} [Assistant tool call]: {_label(name)}({_trim_text(_clean(arguments), limit, entry.seq, texts)})"


def _content_pieces(each_message: Numbered, texts: Texts) -> Iterator[str]:
    """Text of a message's content, media as labels."""
    message = each_message.message
    inline = 0
    for part in parts_of(message):
        if part["type"] in MEDIA:
            inline += is_inline(part)
            yield media_label(part, each_message.seq, inline, texts)
        elif part["type"] not in THINKING:
            text = text_of_part(part) or ("" if part["type"] in ("text", "refusal") else f"[{_label(part['type'])}]")
            yield without_thoughts(text) if message["role"] == "assistant" else text
    if message.get("refusal"):
        yield message.get("refusal") or ""
    transcript = _field(message, "audio").get("transcript")
    if isinstance(transcript, str):
        yield transcript


def _calls(message: Message) -> Iterator[tuple[str, str]]:
    """Names and arguments of what was called, in OpenAI's older form too."""
    for call in tool_calls_of(message):
        yield call["function"]["name"], call["function"]["arguments"]
    older = _field(message, "function_call")
    if isinstance(older.get("name"), str):
        yield str(older["name"]), str(older.get("arguments") or "")


def _field(message: Message, key: str) -> Mapping[str, object]:
    value = cast("Mapping[str, object]", message).get(key)
    return value if isinstance(value, Mapping) else {}


def _role(message: Message) -> str:
    role = "System" if is_system(message) else str(message["role"]).capitalize()
    return f"{role} {_label(message['name'])}" if message.get("name") else role


def _label(name: str) -> str:
    """A name on one line that cannot end the head it stands in."""
    return escape_frames(re.sub(r"[\s\[\]［］():]+", " ", name[: 4 * _NAME_CHARS]).strip()[:_NAME_CHARS]) or "unknown"


def _clean(text: str) -> str:
    """A text without encoded bytes, unable to close its fence or to begin another message."""
    text = _ENCODED.sub(_encoded_label, text)
    return _FALSE_HEAD.sub(r"\1\\", escape_frames(visible(text)))


def _encoded_label(match: re.Match[str]) -> str:
    run = match[0]
    if run.startswith("data:"):
        return f"[Attached {run[5:].partition(';')[0]}]"
    # One letter over and over encodes nothing.
    is_mixed = any(map(str.isdigit, run)) and any(map(str.isupper, run)) and any(map(str.islower, run))
    return f"[{len(run):,} encoded characters]" if is_mixed else run


def _trim_text(text: str, limit: int, seq: int, texts: Texts, *, has_failed: bool = False) -> str:
    """A text within a limit: its beginning, and its end where that tells what went wrong."""
    if quarters(text) <= limit:
        return text
    tail = (
        min(int(limit * _TAIL_SHARE), _TAIL_CHARS)
        if has_failed or ornament("outcomes", False, ends_in_error, text)
        else 0
    )
    return trim_middle(text, head_chars=limit - tail, tail_chars=tail, seq=seq, texts=texts)
