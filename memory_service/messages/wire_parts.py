"""Parts of content as each provider takes them: media by their types, blocks by their fields, else labels. Pure.

Invariants: a part that its provider takes in its place goes back unchanged; what one provider alone has a form for is
written in that of another where there is one, and as a label otherwise, without its bytes; a part that nobody knows
goes back as it came to its own side. What a media part holds is told by its bytes, where these tell it, and not by what
it says of itself.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from memory_service.messages.opaque import is_chat_shaped, opaque_label, unwrap_part
from memory_service.messages.providers import PROVIDERS, ProviderRules
from memory_service.messages.shapes import Part, Role, is_known, is_thought, text_of_part, text_part

_Fields = TypeVar("_Fields", bound=Mapping[str, object])

# What each API takes where. Sources: OpenAI API reference, chat completions, "messages"; Anthropic API reference,
# messages, "content" of the parameter `messages` and of `tool_result`; Mistral API reference, "ContentChunk".
_OPENAI_TAKES: dict[Role, frozenset[str]] = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
}
_MISTRAL_TAKES: dict[Role, frozenset[str]] = {
    "user": frozenset({"text", "image_url", "document_url", "input_audio", "file", "reference"}),
    "assistant": frozenset({"text", "thinking", "reference"}),
}
_ANTHROPIC_MEDIA = frozenset({"image", "document", "search_result", "container_upload"})
_TEXT_ONLY = frozenset({"text"})
# Fields of Anthropic's blocks, and of sources that are neither bytes nor an address; it refuses any other.
_ANTHROPIC_KEYS: dict[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control"}),
    "document": frozenset({"type", "source", "cache_control", "citations", "context", "title"}),
    "search_result": frozenset({"type", "source", "title", "content", "cache_control", "citations"}),
}
_SOURCE_KEYS: dict[str, frozenset[str]] = {
    "text": frozenset({"type", "media_type", "data"}),
    "file": frozenset({"type", "file_id"}),
    "content": frozenset({"type", "content"}),
}
_PDF = "application/pdf"
_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]+)*?);base64,(.*)", re.DOTALL | re.IGNORECASE)
# How the base64 of a content begins.
_BEGINNINGS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "JVBERi": _PDF,
}
# Other names of types.
_SAME_TYPES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
_TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Media:
    """Content of a part for media: bytes of a type, or an address, or neither that a provider could read.

    Attributes:
        kind: Its type, such as "image/png"; empty for one that is not known.
        data: In base64.
        name: Of a file.
    """

    kind: str = ""
    data: str = ""
    address: str = ""
    name: str = ""


# OpenAI's shape


def openai_part(part: Part, role: Role, rules: ProviderRules, *, extensions: bool) -> Part | None:
    """A part as a provider of OpenAI's shape takes it in a message of a role.

    Args:
        part: Any part.
        role: Whose message it stands in.
        rules: Those of the provider.
        extensions: Whether what only litellm understands may stay: cache marks, and images in tool results.

    Returns:
        The part itself if it can stay; None for a step of a tool that ran at another provider, and for thinking.
    """
    takes = _OPENAI_TAKES.get(role, _TEXT_ONLY)
    part = _by_its_id(_by_its_name(part))
    if is_thought(part):
        return None
    if not is_known(part["type"]) and is_chat_shaped(part) and not rules.own_keys_alone:
        return cast(Part, unwrap_part(part))
    if part["type"].endswith(("_tool_use", "_tool_result")):
        return None
    form = _openai_media(part, rules) if _holds_media(part) else part
    if form["type"] not in takes and not (extensions and role == "tool" and form["type"] == "image_url"):
        return text_part(text_of_part(form) or _label(part))
    if extensions:
        return form
    return text_part(form.get("text", "")) if form["type"] == "text" and len(form) > 2 else _without_cache_mark(form)


def _openai_media(part: Part, rules: ProviderRules) -> Part:
    """An image or a file in OpenAI's form; a text for what the provider does not take."""
    media = _media_of(part)
    if _is_image(media, part):
        if not _is_image_taken(media, rules):
            return text_part(_label(part))
        url = media.address or f"data:{media.kind};base64,{media.data}"
        if part["type"] == "image_url" and part["image_url"].get("url") == url:
            return part
        kept_fields = {key: value for key, value in part.items() if key == "cache_control"}
        detail = part["image_url"] if part["type"] == "image_url" else {}
        return cast(Part, {"type": "image_url", "image_url": {**detail, "url": url}, **kept_fields})
    if part["type"] == "file":
        return part
    if media.data and (part["type"] == "document" or media.kind == _PDF):
        data = f"data:{media.kind};base64,{media.data}"
        return {"type": "file", "file": {"filename": media.name or "document", "file_data": data}}
    return text_part(_text_of_document(part) or _label(part))


# Mistral's


def mistral_part(part: Part, role: Role) -> Part | None:
    """A part as Mistral takes it: text, images, documents by their address, and nothing beside their fields."""
    takes = _MISTRAL_TAKES.get(role, _TEXT_ONLY)
    part = _by_its_name(part)
    if part["type"].endswith(("_tool_use", "_tool_result")):
        return None
    if not is_known(part["type"]):
        value = unwrap_part(part)
        kind = value.get("type") if isinstance(value, Mapping) else None
        if kind in takes:
            return cast(Part, value)
        return None if is_thought(part) else text_part(opaque_label(part))
    form = _mistral_media(part) if _holds_media(part) else part
    if form["type"] not in takes:
        return text_part(text_of_part(form) or _label(part))
    return text_part(form.get("text", "")) if form["type"] == "text" else form


def _mistral_media(part: Part) -> Part:
    media = _media_of(part)
    if _is_image(media, part):
        form = _openai_media(part, PROVIDERS["mistral"])
        if form["type"] != "image_url":
            return form
        image = {key: value for key, value in form["image_url"].items() if key in ("url", "detail")}
        return {"type": "image_url", "image_url": image}
    if media.kind == _PDF or (media.address.startswith(PROVIDERS["mistral"].addresses)):
        address = media.address or f"data:{_PDF};base64,{media.data}"
        named_fields = {"document_name": media.name} if media.name else {}
        return cast(Part, {"type": "document_url", "document_url": address, **named_fields})
    return text_part(_decode_text(media) or _text_of_document(part) or _label(part))


# Anthropic's


def anthropic_block(part: Part, role: Role) -> Part | None:
    """A part as Anthropic takes it in a message of a role; the part itself if it can stay, None for alien thinking."""
    part = _by_its_id(_by_its_name(part))
    if not is_known(part["type"]):
        if is_thought(part):
            return None
        is_theirs = is_chat_shaped(part) or role in ("system", "developer")
        return text_part(opaque_label(part)) if is_theirs else cast(Part, unwrap_part(part))
    form = _anthropic_media(part) if _holds_media(part) else part
    if not _anthropic_takes(form["type"], role):
        form = cast(Part, {**text_part(text_of_part(form) or _label(part)), **_cache_mark(part)})
    return _with_keys(form, _ANTHROPIC_KEYS.get(form["type"]))


def _anthropic_takes(kind: str, role: Role) -> bool:
    if role == "assistant":
        return kind in ("text", "compaction") or kind.endswith(("_tool_use", "_tool_result"))
    return kind == "text" or (role in ("user", "tool") and kind in _ANTHROPIC_MEDIA)


def _anthropic_media(part: Part) -> Part:
    """An image or a file in Anthropic's form; a text for what it does not take."""
    media = _media_of(part)
    source = part.get("source")
    if isinstance(source, Mapping) and (source_key := _SOURCE_KEYS.get(str(source.get("type")))):
        left = _with_keys(source, source_key)
        return part if left is source else {**part, "source": left}
    if _is_image(media, part):
        if not _is_image_taken(media, PROVIDERS["anthropic"]):
            return text_part(_label(part))
        return _source_block(part, "image", _source_of(media))
    if media.kind == _PDF or media.address.startswith(PROVIDERS["anthropic"].addresses):
        return _source_block(part, "document", _source_of(media), media.name)
    if words := _decode_text(media):
        return _source_block(part, "document", {"type": "text", "media_type": "text/plain", "data": words}, media.name)
    return text_part(_label(part))


def _source_of(media: _Media) -> dict[str, object]:
    if media.address:
        return {"type": "url", "url": media.address}
    return {"type": "base64", "media_type": media.kind, "data": media.data}


def _source_block(part: Part, kind: str, source: dict[str, object], name: str = "") -> Part:
    """A block of a source; the part itself if it is that already."""
    if part["type"] == kind:
        return part if part["source"] == source else {**part, "source": source}
    title = {"title": name} if name else {}
    return cast(Part, {"type": kind, **title, "source": source, **_cache_mark(part)})


# Media


def _holds_media(part: Part) -> bool:
    return part["type"] in ("image_url", "image", "file", "document")


def _by_its_name(part: Part) -> Part:
    """An image that is told by its address alone, as Mistral takes it, in OpenAI's form; any other part itself."""
    value = unwrap_part(part)
    if isinstance(value, Mapping) and value.get("type") == "image_url" and isinstance(value.get("image_url"), str):
        return cast(Part, {**value, "image_url": {"url": value["image_url"]}})
    return part


def _by_its_id(part: Part) -> Part:
    """A file that is told by its id, as Mistral takes it, in OpenAI's form; any other part itself."""
    value = unwrap_part(part)
    if isinstance(value, Mapping) and value.get("type") == "file" and isinstance(value.get("file_id"), str):
        return {"type": "file", "file": {"file_id": value["file_id"]}}
    return part


def _media_of(part: Part) -> _Media:
    match part:
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return _of_url(url)
        case {"type": "file", "file": {"file_data": str(url), **rest}}:
            name = rest.get("filename")
            return _of_url(url, name if isinstance(name, str) else "")
        case {"source": {"type": "base64", "data": str(data), **rest}}:
            title = part.get("title")
            return _of_data(str(rest.get("media_type", "")), data, title if isinstance(title, str) else "")
        case {"source": {"type": "url", "url": str(url)}}:
            title = part.get("title")
            return _of_url(url, title if isinstance(title, str) else "")
        case _:
            return _Media()


def _of_url(url: str, name: str = "") -> _Media:
    match = _DATA_URL.fullmatch(url)
    return _of_data(match[1], match[3], name) if match else _Media(address=url, name=name)


def _of_data(kind: str, data: str, name: str) -> _Media:
    text = next(
        (known_text for beginning, known_text in _BEGINNINGS.items() if data.startswith(beginning)), kind.lower()
    )
    if data.startswith("UklGR") and data[12:16] == "RUJQ":
        text = "image/webp"
    return _Media(kind=_SAME_TYPES.get(text, text), data=data, name=name)


def _is_image(media: _Media, part: Part) -> bool:
    """True for a picture, whatever part it is in; a file is one by its bytes alone."""
    if media.kind:
        return media.kind.startswith("image/")
    return part["type"] in ("image_url", "image")


def _is_image_taken(media: _Media, rules: ProviderRules) -> bool:
    if media.address:
        return media.address.lower().startswith(rules.addresses)
    return media.kind in rules.images and bool(media.data)


def _decode_text(media: _Media) -> str:
    """The words of a file that is text; empty for any other."""
    if not (media.kind.startswith("text/") or media.kind in _TEXT_TYPES):
        return ""
    try:
        return base64.b64decode(media.data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _text_of_document(part: Part) -> str:
    """The words of a document that is given as text or as parts."""
    match part.get("source"):
        case {"type": "text", "data": str(words)}:
            return words
        case {"type": "content", "content": content}:
            return text_of_part(cast(Part, {"type": "search_result", "content": content}))
        case _:
            return ""


def _with_keys(fields: _Fields, known_keys: frozenset[str] | None) -> _Fields:
    """Fields without those that are not known; the same object if all are."""
    if known_keys is None or known_keys.issuperset(fields):
        return fields
    return cast(_Fields, {key: value for key, value in fields.items() if key in known_keys})


def _cache_mark(part: Part) -> Part:
    mark = {key: value for key, value in part.items() if key == "cache_control"}
    return cast(Part, mark)


def _without_cache_mark(part: Part) -> Part:
    if "cache_control" not in part:
        return part
    return cast(Part, {key: value for key, value in part.items() if key != "cache_control"})


def _label(part: Part) -> str:
    """Label for a part that an API does not accept there, without its bytes."""
    return f"[{part['type'].removesuffix('_url').removeprefix('input_')} not shown]"
