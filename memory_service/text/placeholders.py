"""Placeholders for content taken out of a view: shortened results, stubs, labels of media.

Invariants: pure; every text names the handle by which the log gives the original back; a result stays the result of
its call; no cut goes through a character as people see it, nor through the end of a line. Characters are counted as
`sizes.quarters` does: a CJK one, which costs a token, counts for four. All of them are in the language of the talk, and
known in every one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Literal, cast

from indexer.language import ends_in_error, exit_code_of, ornament
from memory_service.messages.shapes import (
    MEDIA,
    Message,
    Part,
    arguments_object,
    media_parts_of,
    parts_of,
    text_of,
    text_part,
    with_text,
)
from memory_service.messages.sizes import quarters
from memory_service.text.texts import ENGLISH, TEXTS, Texts

# The texts of other systems, as rules may ask for them.
OLD_CLEARED = ENGLISH.pruned["old_cleared"]
OUTPUT_REMOVED = ENGLISH.pruned["output_removed"]
TRUNCATED = ENGLISH.pruned["truncated"]

# How much of a cut result is its end, if that end tells what went wrong. Source: OpenClaw's cap on tool results.
_TAIL_SHARE = 0.30
_TAIL_CHARS = 4_000

_EXIT_CHARS = 300  # where an exit code stands: at the very beginning or the very end

# What tells most about a call, the most telling first.
_COMMANDS = ("command", "cmd", "script")
_TELLING = (*_COMMANDS, "path", "file_path", "filePath", "filename", "file", "url", "query", "pattern", "name")
_ARGUMENT_CHARS = 80
_NAME_CHARS = 40
_CLEARED_ENDS = tuple(texts.pruned["cleared"].rpartition("{facts}")[2] for texts in TEXTS.values())
_OF_OTHERS = ("old_cleared", "output_removed", "truncated")
_GLUE_STEPS = 64  # hostile text may be nothing but marks


def handle(seq: int) -> str:
    """Handle by which the log finds the message with this number."""
    return f"log:{seq}"


def shorten_result(
    message: Message, limit_chars: int, seq: int, *, notice: str = "", texts: Texts = ENGLISH
) -> Message:
    """A result cut to a size: its beginning, and its end too if that tells of an error.

    Args:
        message: The result of a tool call.
        limit_chars: The largest text wanted, what says that something is missing included; a CJK character counts
            for four. A limit too small for that to be said is raised.
        seq: Its number in the log.
        notice: Words put before the count of what is left out, such as `TRUNCATED`.
        texts: Words of the talk's language.

    Returns:
        The message itself if it is small enough.
    """
    text = text_of(message)
    number = quarters(_notice(10**12, seq, notice, texts)) + 2
    limit = max(limit_chars, 2 * number)
    if 4 * len(text) <= limit or quarters(text) <= limit:
        return message
    room = limit - number
    tail = min(int(room * _TAIL_SHARE), _TAIL_CHARS) if ornament("outcomes", False, ends_in_error, text) else 0
    middle = trim_middle(text, head_chars=room - tail, tail_chars=tail, seq=seq, notice=notice, texts=texts)
    return with_text(message, middle)


def trim_middle(
    text: str, *, head_chars: int, tail_chars: int, seq: int, notice: str = "", texts: Texts = ENGLISH
) -> str:
    """The beginning and the end of a text, and between them how much is left out; the text itself if that is nothing.

    Args:
        text: Any text.
        head_chars: How much of its beginning stays; a CJK character counts for four.
        tail_chars: How much of its end stays.
        seq: The number of its message in the log.
        notice: Words put before the count.
        texts: Words of the talk's language.
    """
    head = _head_end(text, head_chars)
    tail = _tail_start(text, tail_chars)
    if tail <= head:
        return text
    said_notice = _notice(tail - head, seq, notice, texts)
    return "\n".join(piece for piece in (text[:head], said_notice, text[tail:]) if piece)


def stub_text(call_name: str, arguments: str, result_message: Message, seq: int, *, texts: Texts = ENGLISH) -> str:
    """One line for a result that was cleared: ``[bash: `npm test` -> exit 1, 47 lines, cleared; log:12]``.

    Args:
        call_name: The name of the tool; may be empty.
        arguments: Of the call, as the model wrote them, valid JSON or not.
        result_message: The result as the log has it.
        seq: Its number in the log.
        texts: Words of the talk's language.

    Returns:
        At most some 60 tokens, whatever the call was.
    """
    text = text_of(result_message)
    values = arguments_object(arguments)
    command = any(key in values for key in _COMMANDS)
    facts = [*_outcome(text, result_message, texts, command=command), _extent(text, texts)]
    written_text = texts.pruned["separator"].join(facts)
    return texts.pruned["cleared"].format(
        call=call_line(call_name, values, texts), facts=written_text, handle=handle(seq)
    )


Superseded = Literal["same", "read_again", "changed"]


def see_text(
    call_name: str, arguments: str, why: Superseded, other_seq: int, seq: int, *, texts: Texts = ENGLISH
) -> str:
    """One line for a result that a later one took the place of: ``[read: `a.py`; same as log:30; log:12]``."""
    call, words = call_line(call_name, arguments_object(arguments), texts), texts.pruned[why]
    return texts.pruned["superseded"].format(call=call, why=words, other=handle(other_seq), handle=handle(seq))


def placeholder_text(placeholder: str, seq: int, texts: Texts = ENGLISH) -> str:
    """A fixed text for a cleared result, with the handle behind it; another system's is in the talk's language."""
    return f"{_in_language(placeholder, texts)} {handle(seq)}"


def too_large_text(seq: int, texts: Texts = ENGLISH) -> str:
    """The text for all results of one message, which only together can be cut, with the handle behind it."""
    return f"{texts.pruned['too_large']} {handle(seq)}"


def _in_language(words: str, texts: Texts) -> str:
    """Words of another system in a language; words of anybody else as they are."""
    known_name = next((name for name in _OF_OTHERS if ENGLISH.pruned[name] == words), "")
    return texts.pruned[known_name] if known_name else words


def is_cleared(text: str, seq: int) -> bool:
    """True if a text stands for a whole result; one that was shortened or has a double still says something."""
    end = handle(seq)
    if text.endswith(f"] {end}"):
        return text.startswith("[") and "\n" not in text
    return text.endswith(tuple(ending.format(handle=end) for ending in _CLEARED_ENDS))


def call_line(name: str, arguments: Mapping[str, object], texts: Texts = ENGLISH) -> str:
    """A call in a few words: its name and what tells most of its arguments."""
    telling = telling_argument(arguments)
    short = _short(name, _NAME_CHARS) or texts.pruned["tool"]
    return f"{short}: `{telling.replace('`', chr(39))}`" if telling else short


def telling_argument(arguments: Mapping[str, object]) -> str:
    """The argument of a call that tells most about it, short and on one line; empty where none does."""
    telling = next(filter(None, map(_words, (arguments[key] for key in _TELLING if key in arguments))), "")
    return _short(telling or next(filter(None, map(_words, arguments.values())), ""), _ARGUMENT_CHARS)


def media_label(part: Part, seq: int | None, n: int, texts: Texts = ENGLISH) -> str:
    """Label in place of a medium: `[Attached image/png: plan.png; log:12#1]`.

    Args:
        part: An image, audio, a document or a file, in either side's form.
        seq: The number of its message in the log; None for what has none, so that it can be had nowhere else.
        n: Which of the media in that message it is, counted from 1, of those that hold their content.
        texts: Words of the talk's language.
    """
    mime, name = _kind_and_name(part)
    template = texts.pruned["attached"]
    if seq is None:
        template, where = f"{template.partition('{name}')[0]}{{name}}]", ""
    else:
        where = f"{handle(seq)}#{n}" if is_inline(part) else handle(seq)
    short = _short(name, _ARGUMENT_CHARS) or texts.pruned["file"]
    return template.format(mime=_short(mime, _NAME_CHARS), name=short, where=where)


def without_media(message: Message, seq: int, texts: Texts = ENGLISH) -> Message:
    """Copy of a message with a label in place of each medium; the message itself if it has none."""
    if not media_parts_of(message):
        return message
    content: list[Part] = []
    inline = 0
    for part in parts_of(message):
        if part["type"] in MEDIA:
            inline += is_inline(part)
            part = text_part(media_label(part, seq, inline, texts))
        content.append(part)
    return cast(Message, {**message, "content": content})


def is_inline(part: Part) -> bool:
    """True if a medium holds its content; else it is only referred to."""
    return _payload(part) is not None


def payload_bytes(part: Part) -> int:
    """Bytes that a medium adds to a request as base64 or text; 0 if it is only referred to."""
    payload = _payload(part)
    return 0 if payload is None else len(payload) if payload.isascii() else len(payload.encode("utf-8", "replace"))


def _notice(left_out: int, seq: int, notice: str, texts: Texts) -> str:
    text = texts.pruned["left_out"].format(count=f"{left_out:,}", handle=handle(seq))
    return f"{_in_language(notice, texts)} {text}" if notice else text


def _head_end(text: str, chars: int) -> int:
    at = _fitting(text[: max(chars, 0)], chars)
    for _ in range(_GLUE_STEPS):
        if not _is_glued(text, at):
            break
        at -= 1
    return at


def _tail_start(text: str, chars: int) -> int:
    end = text[-chars:] if chars > 0 else ""
    at = len(text) - _fitting(end[::-1], chars)
    for _ in range(_GLUE_STEPS):
        if not _is_glued(text, at):
            break
        at += 1
    return at


def _fitting(text: str, chars: int) -> int:
    """Number of characters from the beginning whose size is at most `chars`."""
    if text.isascii():
        return min(len(text), max(chars, 0))
    at = 0
    # A quarter of the room always fits, whatever the characters are.
    while chars >= 4 and at < len(text):
        piece = text[at : at + chars // 4]
        chars -= quarters(piece)
        at += len(piece)
    while at < len(text) and quarters(text[at]) <= chars:
        chars -= quarters(text[at])
        at += 1
    return at


def _is_glued(text: str, at: int) -> bool:
    """True if the characters on both sides of a place are seen as one."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if after.isascii():
        return before == "\r" and after == "\n"
    return (
        "\u200d" in (before, after)
        or "\udc00" <= after <= "\udfff"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or unicodedata.category(after).startswith("M")
    )


def _outcome(text: str, message: Message, texts: Texts, *, command: bool) -> list[str]:
    # What a file says of exit codes is no outcome of reading it.
    for piece in (text[-_EXIT_CHARS:], text[:_EXIT_CHARS]) if command else ():
        if code := ornament("outcomes", "", exit_code_of, piece):
            return [texts.pruned["exit"].format(code=code)]
    return [texts.pruned["error"]] if message.get("is_error") else []


def _extent(text: str, texts: Texts) -> str:
    lines = text.count("\n") + (not text.endswith("\n"))
    words, count = ("lines", lines) if lines > 1 else ("characters", len(text))
    return texts.pruned[words].format(count=f"{count:,}")


def _words(value: object) -> str:
    if isinstance(value, list):
        return " ".join(word for word in value[:16] if isinstance(word, str))
    return value if isinstance(value, str) else ""


def _short(text: str, chars: int) -> str:
    """A text on one line within a size."""
    line = " ".join(text[: 4 * chars].split())
    if quarters(line) <= chars and len(text) <= 4 * chars:
        return line
    return f"{line[: _head_end(line, chars - 1)].rstrip()}…"


def _payload(part: Part) -> str | None:
    """The base64 or the text that a medium holds."""
    match part["type"]:
        case "image_url":
            url = part.get("image_url", {}).get("url")
            return url if isinstance(url, str) and url.startswith("data:") else None
        case "file":
            held_value = part.get("file", {}).get("file_data")
        case "input_audio":
            held_value = _fields(part, "input_audio").get("data")
        case _:
            held_value = part.get("source", {}).get("data")
    return held_value if isinstance(held_value, str) else None


def _kind_and_name(part: Part) -> tuple[str, str]:
    """Kind and name of a medium; never an address, which may hold secrets."""
    match part["type"]:
        case "image_url":
            url = str(part.get("image_url", {}).get("url", ""))
            return _mime_of_url(url) or "image", "" if url.startswith("data:") else _file_of_url(url)
        case "input_audio":
            return f"audio/{_fields(part, 'input_audio').get('format', 'unknown')}", ""
        case "file":
            file = part.get("file", {})
            mime = _mime_of_url(str(file.get("file_data", "")))
            return mime or "file", str(file.get("filename") or file.get("file_id") or "")
        case _:
            source = part.get("source", {})
            name = str(part.get("title") or source.get("file_id") or _file_of_url(str(source.get("url", ""))))
            return str(source.get("media_type") or part["type"]), name


def _fields(part: Part, key: str) -> Mapping[str, object]:
    value = cast("Mapping[str, object]", part).get(key)
    return value if isinstance(value, Mapping) else {}


def _mime_of_url(url: str) -> str:
    return url[5:200].partition(",")[0].partition(";")[0] if url.startswith("data:") else ""


def _file_of_url(url: str) -> str:
    return url[:2_000].partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2]
