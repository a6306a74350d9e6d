"""The cut of a message into sentences: what of it could stand in a summary, word for word.

Invariants: pure; linear in the size of a message, of which at most `HEAD_CHARS` and `TAIL_CHARS` are read; a
sentence occurs in its message as it is, but for white space where a line was wrapped; thinking, bytes and what
looks like a secret never become a sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from indexer.text.terms import has_unspaced
from memory_service.messages import Message, Numbered, is_system, is_tool_result, media_parts_of, text_of
from memory_service.messages.sizes import quarters
from memory_service.text.secrets import REDACTED
from memory_service.text.sentences import Sentence, Voice, is_others, others_words, split_sentences

# Roles with the names that say who speaks at the start of their messages.
Speakers: TypeAlias = frozenset[tuple[str, str]]

HEAD_CHARS = 8_000
TAIL_CHARS = 4_000
TOOL_CHARS = 2_000
SENTENCE_CHARS = 240
UNSPACED_CHARS = 90
CODE_LINES = 2
_NAME_CHARS = 64

_MARKS = re.compile(r"(?:[#>*+•|=~-]++|\d{1,3}[.)]|\[[ xX]\])(?:\s++|$)")
_BORDER = re.compile(r"[,;:](?=\s)|[，；：、]|\s(?=[-–(])|——")
_REASON = re.compile(
    r"(?i:because|since|the reason|so that|that way|reason:|due to|otherwise)\b|因为|原因|由于|这样|否则|理由|不然"
)
# When it was said, as a channel puts it in front.
_DAY = re.compile(r"\s*[\[【]\d{4}-\d\d-\d\d[^\]】\n]{0,30}[\]】]\s*")
_SPEAKER = re.compile(r"(?:\*\*)?([^\W\d_][\w .'’-]{0,30}?)(?:\*\*)?(?:：|:(?:\*\*)?\s)")
_NO_SPEAKERS = frozenset(
    "note notes todo fixme nb ps warning caution tip hint important update edit example error rule result http https "
    "task goal question answer observation thought action input output step status summary "
    "注意 备注 提示 待办 说明 警告 例如 重要 规则 结果 错误 报错".split()
)
_MEDIA = {"image_url": "[image]", "image": "[image]", "input_audio": "[audio]"}


def media_labels(message: Message) -> list[str]:
    """What a message shows beside its text, as words: `[image]`, `[audio]`, `[file]`."""
    return [_MEDIA.get(part["type"], "[file]") for part in media_parts_of(message)]


def speakers_of(messages: Sequence[Numbered]) -> Speakers:
    """The names, by role, that at least two messages begin with, as in "Maria: I moved".

    A message of the assistant's speaks as somebody only in a talk in which everybody is named.
    """
    spoken = [item.message for item in messages if not is_tool_result(item.message) and not is_system(item.message)]
    heads = [(message["role"], _SPEAKER.match(text_of(message)[:60])) for message in spoken]
    users = Counter(head[1] for role, head in heads if head and role == "user" and _is_name(head[1]))
    names = Counter(head[1] for role, head in heads if head and role != "user" and _is_name(head[1]))
    everybody = bool(users) and sum(users.values()) + sum(names.values()) == len(spoken)
    found = {("user", name) for name, count in users.items() if count > 1}
    if everybody:
        found |= {("assistant", name) for name, count in names.items() if count > 1 and name not in users}
    return frozenset(found)


def _name_of(message: Message) -> str:
    """The name that a message bears, on one line."""
    return " ".join((message.get("name") or "").split())[:_NAME_CHARS]


def _is_name(text: str) -> bool:
    words = text.split()
    plain = len(words) <= 3 and text.casefold() not in _NO_SPEAKERS
    return plain and all(word[0].isupper() or has_unspaced(word[0]) for word in words)


def sentences_of(item: Numbered, speakers: Speakers = frozenset()) -> list[Sentence]:
    """The sentences of a message in their order.

    Args:
        item: The message.
        speakers: See `speakers_of`.
    """
    message = item.message
    if is_system(message):
        return []
    text, name = _within(text_of(message), tool=is_tool_result(message)), ""
    dated = _DAY.match(text)
    text = text[dated.end() :] if dated else text
    head = _SPEAKER.match(text)
    if head is not None and (message["role"], head[1]) in speakers:
        name, text = head[1], text[head.end() :]
    voice: Voice = "tool" if message["role"] == "tool" else "assistant" if message["role"] == "assistant" else "user"
    others = others_words(text) if voice != "tool" else ""
    labels = "" if isinstance(message.get("content"), str) else " ".join(dict.fromkeys(media_labels(message)))
    return [
        Sentence(
            text=sentence,
            voice=voice,
            name=name or (_name_of(message) if voice == "user" else ""),
            seq=item.seq,
            place=place,
            day=item.at[:10],
            media=labels,
            failed=message.get("is_error") is True,
            quoted=voice != "tool" and is_others(sentence, others),
        )
        for place, sentence in enumerate(split_text(text, wrapped=voice != "tool"))
        # What is left of "my password is" tells nothing, and bytes do not either.
        if REDACTED not in sentence and ";base64," not in sentence
    ]


def split_text(text: str, *, wrapped: bool = True) -> list[str]:
    """The sentences of a text.

    Args:
        text: Prose, Markdown or the output of a program.
        wrapped: Whether a long line that the next one goes on with is one line with it.
    """
    lines = _lines(_within(text, tool=False))
    whole = (sentence for line in (_unwrapped(lines) if wrapped else lines) for sentence in _cut(line))
    return [clause for sentence in whole for clause in _clauses(sentence)]


def clip(text: str, room: int) -> str:
    """The beginning of a text that takes at most `room` quarters of a token, cut at a border; empty if none fits."""
    if quarters(text) <= room:
        return text
    end = min(len(text), max(room, 0))
    while end and quarters(text[:end]) > room:
        end = end * 3 // 4
    cut = _last_border(text, end)
    short = text[:cut].rstrip(" ,;:，；：、-–(").strip()
    return short if any(map(str.isalnum, short)) else ""


def _within(text: str, *, tool: bool) -> str:
    head, tail = (TOOL_CHARS, TOOL_CHARS) if tool else (HEAD_CHARS, TAIL_CHARS)
    if len(text) <= head + tail:
        return text
    first, last = text[:head], text[-tail:]
    # Half a word, and half a key, are nobody's words.
    return f"{first[: _last_space(first)]}\n{last[_first_space(last) :]}"


def _last_space(text: str) -> int:
    return max(text.rfind(" "), text.rfind("\n"), text.rfind("。") + 1, 0)


def _first_space(text: str) -> int:
    found = [at for at in (text.find(" "), text.find("\n"), text.find("。") + 1 or -1) if at >= 0]
    return min(found, default=len(text))


def _lines(text: str) -> list[str]:
    """The lines of a text without marks of Markdown; of code blocks only the short ones; a gap is an empty line."""
    kept: list[str] = []
    code: list[str] | None = None
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith(("```", "~~~")):
            if code is not None and len(code) <= CODE_LINES:
                kept += code
            kept.append("")
            code = [] if code is None else None
        elif code is not None:
            code.append(line)
        else:
            kept.append(_bare(line))
    return kept


def _bare(line: str) -> str:
    for _ in range(4):
        mark = _MARKS.match(line)
        if mark is None:
            break
        line = line[mark.end() :]
    return line.strip("| ").rstrip("= ")


def _unwrapped(lines: Sequence[str]) -> Iterator[str]:
    waiting: list[str] = []
    for line in lines:
        goes_on = (
            waiting and len(waiting[-1]) >= 60 and waiting[-1][-1] not in ".!?:;…。！？：；" and line[:1].islower()
        )
        if waiting and not goes_on:
            yield " ".join(waiting)
            waiting = []
        if line:
            waiting.append(line)
    if waiting:
        yield " ".join(waiting)


def _cut(line: str) -> Iterator[str]:
    """The sentences of a line; a reason stays with what it is the reason of."""
    waiting = ""
    for piece in split_sentences(line):
        if not waiting:
            waiting = piece
        elif len(waiting) <= UNSPACED_CHARS and _REASON.match(piece):
            waiting += piece if waiting[-1] in "。！？；" else f" {piece}"
        else:
            yield waiting
            waiting = piece
    if waiting:
        yield waiting


def _clauses(sentence: str) -> Iterator[str]:
    if len(sentence) <= UNSPACED_CHARS:
        yield sentence
        return
    limit = UNSPACED_CHARS if has_unspaced(sentence) else SENTENCE_CHARS
    while len(sentence) > limit:
        cut = _last_border(sentence, limit) or limit
        yield sentence[:cut].strip()
        sentence = sentence[cut:].strip()
    if sentence:
        yield sentence


def _last_border(text: str, end: int) -> int:
    borders = [match.end() for match in _BORDER.finditer(text, end // 2, end)]
    if borders:
        return borders[-1]
    space = text.rfind(" ", 0, end + 1)
    return space if space > 0 else end if has_unspaced(text[:end]) else 0 if end < SENTENCE_CHARS else end
