"""The parts of a message's content, and how they are put where the other side reads them.

A part is an OpenAI content part or an Anthropic content block. It is kept as it came; what the other side does
not know is translated only when it goes out, and a label stands for what cannot be translated.

Invariants: pure; no part is changed in place; a part that its own side takes in its place goes back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, Required, TypedDict, cast

Role = Literal["system", "developer", "user", "assistant", "tool"]


class Part(TypedDict, total=False):
    """A part of content; what else it holds, such as `cache_control` or `citations`, rides along."""

    type: Required[str]
    text: str
    refusal: str
    image_url: dict[str, object]
    file: dict[str, object]
    source: dict[str, object]
    title: str | None
    content: str | list[Part]
    thinking: str
    signature: str
    data: str


MEDIA = frozenset({"image_url", "input_audio", "file", "image", "document", "container_upload"})
THINKING = frozenset({"thinking", "redacted_thinking"})
_KNOWN = MEDIA | THINKING | {"text", "refusal", "tool_use", "tool_result", "search_result", "compaction"}

# What each API takes where. Sources: OpenAI API reference, chat completions, "messages"; Anthropic API reference,
# messages, "content" of the parameter `messages` and of `tool_result`.
_OPENAI_TAKES: dict[Role, frozenset[str]] = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
}
_ANTHROPIC_MEDIA = frozenset({"image", "document", "search_result", "container_upload"})
# Parts that tell whose shape a message came in.
ANTHROPIC_ALONE = THINKING | _ANTHROPIC_MEDIA | {"tool_use", "tool_result"}
_TEXT_ONLY = frozenset({"text"})
_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def is_known(kind: str) -> bool:
    """True if a part of this type belongs to either side; tools that run at the provider are known by their ending."""
    return kind in _KNOWN or kind.endswith(("_tool_use", "_tool_result"))


def text_part(text: str) -> Part:
    """A text as a part."""
    return {"type": "text", "text": text}


def text_of_part(part: Part) -> str:
    """Text of a part; empty for media."""
    match part["type"]:
        case "text":
            return part.get("text", "")
        case "refusal":
            return part.get("refusal", "")
        case "search_result" | "compaction":
            return _text_of_content(part.get("content"))
        case _:
            return ""


def is_blank(part: Part) -> bool:
    """True if a part is a text without text."""
    return part["type"] in ("text", "refusal") and not text_of_part(part).strip()


def openai_part(part: Part, role: Role, *, extensions: bool) -> Part | None:
    """A part as OpenAI takes it in a message of a role.

    Args:
        part: Any part.
        role: Whose message it stands in.
        extensions: Whether what only litellm understands may stay: cache marks, and images in tool results.

    Returns:
        The part itself if it can stay; None for a step of a tool that ran at another provider.
    """
    takes = _OPENAI_TAKES.get(role, _TEXT_ONLY)
    if part["type"] not in takes:
        part = _openai_form(part)
    if part["type"].endswith(("_tool_use", "_tool_result")):
        return None
    if part["type"] not in takes and not (extensions and role == "tool" and part["type"] == "image_url"):
        return text_part(text_of_part(part) or _label(part))
    if extensions:
        return part
    return text_part(part.get("text", "")) if part["type"] == "text" and len(part) > 2 else _without_cache_mark(part)


def anthropic_block(part: Part, role: Role) -> Part:
    """A part as Anthropic takes it in a message of a role; the part itself if it can stay."""
    part = _anthropic_form(part)
    return part if _anthropic_takes(part["type"], role) else text_part(text_of_part(part) or _label(part))


def _anthropic_takes(kind: str, role: Role) -> bool:
    if role == "assistant":
        return kind in ("text", "compaction") or kind.endswith(("_tool_use", "_tool_result"))
    return kind == "text" or (role in ("user", "tool") and kind in _ANTHROPIC_MEDIA)


def _openai_form(part: Part) -> Part:
    kind = part["type"]
    if kind not in ("image", "document"):
        return part
    source = part["source"]
    match kind, source.get("type"):
        case "image", "base64" | "url":
            return {"type": "image_url", "image_url": {"url": _url_of(source)}}
        case "document", "base64":
            return {"type": "file", "file": {"filename": part.get("title") or "document", "file_data": _url_of(source)}}
        case "document", "text":
            return text_part(str(source.get("data", "")))
        case "document", "content":
            return text_part(_text_of_content(source.get("content")))
        case _:
            return part


def _anthropic_form(part: Part) -> Part:
    match part["type"]:
        case "image_url":
            return {"type": "image", "source": _source_of(str(part["image_url"].get("url", ""))), **_cache_mark(part)}
        case "file" if (source := _source_of(str(part["file"].get("file_data", "")))).get(
            "media_type"
        ) == "application/pdf":
            name = part["file"].get("filename")
            title: Part = {"type": "document", "title": name} if isinstance(name, str) else {"type": "document"}
            return {**title, "source": source, **_cache_mark(part)}
        case _:
            return part


def _url_of(source: dict[str, object]) -> str:
    if source.get("type") == "url":
        return str(source.get("url", ""))
    return f"data:{source.get('media_type', '')};base64,{source.get('data', '')}"


def _source_of(url: str) -> dict[str, object]:
    match = _DATA_URL.fullmatch(url)
    if match is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": match[1], "data": match[2]}


def _cache_mark(part: Part) -> Part:
    mark = {key: value for key, value in part.items() if key == "cache_control"}
    return cast(Part, mark)


def _without_cache_mark(part: Part) -> Part:
    if "cache_control" not in part:
        return part
    return cast(Part, {key: value for key, value in part.items() if key != "cache_control"})


def _text_of_content(content: object) -> str:
    """The text of content within a part; it was never checked."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def _label(part: Part) -> str:
    """Label for a part that an API does not accept there, without its bytes."""
    return f"[{part['type'].removesuffix('_url').removeprefix('input_')} not shown]"
