"""Prompt frames: tags around texts, escaping of what is inside, and removal of reasoning tags.

Invariants: pure; linear; a text that went through `escape_frames` opens and closes no frame and says of no text that it
was replaced, however its signs are spelled, and holds no character that a model reads and nobody sees; escaping twice
changes nothing more; all other signs stay. Of a text that is not the user's every line begins with whose it is, and
none like a turn of a conversation. A
reasoning tag such as `<think>` that is only spoken of, in the middle of a line, is no thought; what was never closed is
a thought only when nothing was said before it.
"""

from __future__ import annotations

import re
import unicodedata
from html import unescape

from indexer.common import lazy_regex
from indexer.language import ANY
from memory_service.text.texts import ENGLISH, TEXTS, Texts, in_every_language

# What a prompt for a summary or for memories is made of.
PROMPT_TAGS = (
    "conversation", "previous-summary", "partial-summary", "draft", "instructions", "identifier-rules",
)  # fmt: skip
# What a view holds: the checkpoint with its ledger, and the block of memories.
VIEW_TAGS = (
    "summary", "ledger", "pinned", "current-request", "modified-files", "exact-identifiers", "read-files",
    "relevant_context",
)  # fmt: skip
# The first line of a block of memories; that of another language is no longer.
BLOCK_NOTE = ENGLISH.block_note
# The mark behind a text that was replaced since.
REPLACED_TAG = "replaced"
# The mark behind a text that was written on other days too.
ALSO_TAG = "also"
# Another system's name for a checkpoint, which its prompts rely on.
COMPACTED_CONTEXT = "[COMPACTED_CONTEXT]"

# Control characters, and what no screen shows: zero-width marks, soft hyphens, marks that reorder a line, halves of
# characters, and the letters of tags, in which whole sentences can be spelled unseen.
UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
# These change the character beside them, which has one selector, or a selector and a joiner.
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINERS = "\u200c\u200d"
# The flags of England, Scotland and Wales are spelled in letters of tags.
_FLAG = "\U0001f3f4\U000e0067\U000e0062(?:{})\U000e007f".format(
    "|".join("".join(chr(0xE0000 + ord(char)) for char in land) for land in ("eng", "sct", "wls"))
)
_HINT = lazy_regex(f"[{UNSEEN}{_SELECTORS}{_JOINERS}\u2028\u2029]")
_LINE_END = lazy_regex("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_HIDDEN = lazy_regex(f"({_FLAG})|[{UNSEEN}]+")
# After the hidden ones are gone: a sentence can be spelled in selectors too.
REPEATED = lazy_regex(
    f"(?:(?<=[{_SELECTORS}])[{_SELECTORS}]|(?<=[{_SELECTORS}{_JOINERS}]{{2}})[{_SELECTORS}{_JOINERS}])"
    f"[{_SELECTORS}{_JOINERS}]*"
)

# A sign that is, or decodes to, the first one of a tag or of a line in brackets; and what may follow up to the next.
_FIRST = lazy_regex(
    r"(?P<tag>[<＜﹤]|&(?:lt|#0{0,8}60(?!\d)|#x0{0,8}3c(?![\da-f]));?)"
    r"|(?P<line>[\[［【]|&(?:lbrack|lsqb|#0{0,8}91(?!\d)|#x0{0,8}5b(?![\da-f]));?)",
    re.IGNORECASE,
)
_REST = lazy_regex(r"[\s/／\\!！?？]*+([^<＜﹤\[［【&]{0,400})")
_ENTITIES = {"tag": "&lt;", "line": "&lsqb;"}
# What another form of a mark of ours says, in brackets of any kind: "[2026-11-20; since replaced (memory/a.md#L3)]".
_MARK = lazy_regex(
    r"(?P<opening>[\[［【〔〖﹝⟦❲『「{｛(（]|&(?:lbrack|lsqb|lpar|lcub|lbrace|#0{0,8}(?:40|91|123)|#x0{0,8}(?:28|5b|7b));)"
    r"(?=(?P<inner>[^\]］】〕〗﹞⟧❳』」}｝)）]{1,200}))",
    re.IGNORECASE,
)
_MARK_WORDS = lazy_regex(
    r"(?:since|been|is|was|now)[\W_]{0,8}replaced(?![a-z])|\A\W*(?:recalled\W*\Z|replaced[\W_]{1,6}by\b)"
)
_BROKEN = {"(": "&lpar;", "（": "&lpar;", "{": "&lcub;", "｛": "&lcub;"}
# Letters of other alphabets that look like ours.
_LOOKALIKES = str.maketrans("аеіјорсутхԁһԛԝѕոαεικνορυ", "aeijopcytxdhqwsnaeikvopu")


def _loosely(*names: str) -> str:
    """A pattern for names that may have blanks between their letters, and `-` for `_`."""
    return "|".join(r"\s*".join("[-_]*" if char in "-_ " else re.escape(char) for char in name) for name in names)


_NAMES = {
    "tag": lazy_regex(
        rf"(?:{_loosely(*PROMPT_TAGS, *VIEW_TAGS)})(?![\w-])|{_loosely('file')}(?:\s+path|\s*>)|--\s*memory\s+id"
        rf"|{_loosely(REPLACED_TAG)}\s+(?:by|date)\b|{_loosely(ALSO_TAG)}\s+days\b"
    ),
    "line": lazy_regex(
        _loosely(
            *(
                unicodedata.normalize("NFKC", line).strip("[]").lower()
                for name in ("checkpoint_begin", "checkpoint_end", "pins_begin")
                for line in in_every_language(name)
            ),
            COMPACTED_CONTEXT.strip("[]").lower(),
        )
    ),
}


def visible(text: str) -> str:
    """A text without the characters that nobody sees; what ends a line is a line feed."""
    return REPEATED.sub("", _HIDDEN.sub(r"\1", _LINE_END.sub("\n", text))) if _HINT.search(text) else text


def escape_frames(text: str) -> str:
    """A text as it may stand within our frames: what would open or close one begins with an entity instead."""
    return _without_marks(_FIRST.sub(_as_entity, visible(text)))


def fence_text(name: str, text: str, **attributes: str) -> str:
    """A text between the tags of a name.

    Args:
        name: One of `PROMPT_TAGS` or `VIEW_TAGS`.
        text: Anything.
        attributes: Values without quotation marks, written into the opening tag.
    """
    written_text = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{name}{written_text}>\n{escape_frames(text)}\n</{name}>"


def _as_entity(match: re.Match[str]) -> str:
    kind, rest = str(match.lastgroup), _REST.match(match.string, match.end())
    return _ENTITIES[kind] if rest and _NAMES[kind].match(_fold_letters(rest[1])) else match[0]


def _without_marks(text: str) -> str:
    """A text in which no bracket begins what looks like a mark of ours."""
    # Few texts have the words; folding each bracket of the others would be dear.
    plain = _fold_letters(unescape(text))
    return _MARK.sub(_as_bracket, text) if "replaced" in plain or "recalled" in plain else text


def _as_bracket(match: re.Match[str]) -> str:
    opening = match["opening"]
    if len(opening) > 1 or not _MARK_WORDS.search(_fold_letters(unescape(match["inner"]))):
        return opening
    return _BROKEN.get(opening, "&lsqb;")


def _fold_letters(text: str) -> str:
    """A text as it reads: wide, styled and foreign letters that look like ours are ours, marks on them are gone."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text).casefold().translate(_LOOKALIKES)
    return "".join(char for char in plain if unicodedata.category(char) not in ("Mn", "Me", "Cf"))


# Who speaks at the beginning of a line, as chat templates and transcripts write it.
_SPEAKER = f"(?:{ANY.phrases.speaker_words})"
_TURN = lazy_regex(
    rf"[^\w\[<(【#]{{0,8}}(?:(?P<head>\[/?\s*(?:inst|sys|{_SPEAKER})\s*\]|#{{1,6}}\s*(?:{_SPEAKER}|response|input)\b\s*:?\s*\Z"
    rf"|[(【]\s*{_SPEAKER}\s*[)】]|<{{1,2}}[|/]?\s*(?:{_SPEAKER}|sys|im_start|im_end|start_of_turn|end_of_turn|s|inst)\b)"
    rf"|(?P<colon>[^\w:]{{0,6}}{_SPEAKER}(?:{ANY.phrases.turn_words})?\W{{0,4}}?(?:\([^()]{{0,24}}\))?\W{{0,3}}?:))"
)
_TURN_CHARS = 60


def _noted_by(*roles: str) -> str:
    return "|".join(texts.noted[role] for texts in TEXTS.values() for role in roles)


_NOTED = {
    "agent": lazy_regex(rf"(?:{_noted_by('user', 'assistant')})\b"),
    "assistant": lazy_regex(rf"(?:{_noted_by('assistant')})\b"),
    "tool": lazy_regex(r"(?!)"),
}
_COLON = lazy_regex("[:：︰﹕꞉∶︓]")
_HEADS = {
    "[": "&lsqb;",
    "［": "&lsqb;",
    "【": "&lsqb;",
    "#": "&num;",
    "＃": "&num;",
    "(": "&lpar;",
    "（": "&lpar;",
    "<": "&lt;",
}
_HEAD = lazy_regex(r"[\[［【#＃(（<]")


def attribute_lines(text: str, speaker: str, texts: Texts = ENGLISH) -> str:
    """A text that is not the user's: each line begins with whose it is, and none as a turn of a conversation does.

    Args:
        text: As it may stand within a frame, so that no line of it has a `>`.
        speaker: Whose it is, by the role.
        texts: Words of the language that this is said in.
    """
    first, *other_texts = text.split("\n")
    # A note says in front whose words it tells: "User: I live in Graz."
    begin = first if _NOTED.get(speaker, _NOTED["tool"]).match(first) else _unspoken(first)
    label = texts.whose.get(speaker, speaker)
    return "\n".join(f"{label}> {line}" for line in (begin, *map(_unspoken, other_texts)))


def _unspoken(line: str) -> str:
    """A line without the meaning of a turn of a conversation that its beginning has."""
    turn = _TURN.match(_fold_letters(unescape(line[:_TURN_CHARS]).strip()))
    if turn is None:
        return line
    if turn["colon"]:
        return _COLON.sub("&colon;", line, count=1)
    return _HEAD.sub(lambda head: _HEADS[head[0]], line, count=1)


# Source: the chat templates of DeepSeek-R1 and Qwen3 (`think`); prompts that ask for an `analysis` before an answer.
_TAG = lazy_regex(
    r"(?:(?m:^)[ \t]*+|(?<=>))<(?P<opened>think|thinking|analysis)>"
    r"|</(?P<closed>think|thinking|analysis)>(?P<ends>[ \t]*+(?:\n|\Z))?",
    re.IGNORECASE,
)


def without_thoughts(text: str) -> str:
    """A text without its thoughts; the text itself if it has none."""
    kept_texts: list[str] = []
    at, inside = 0, ""
    for tag in _TAG.finditer(text):
        opened_text, closed_text = (tag["opened"] or "").lower(), (tag["closed"] or "").lower()
        if opened_text and not inside:
            kept_texts.append(text[at : tag.start()])
            at, inside = tag.start(), opened_text
        elif closed_text and closed_text == inside:
            at, inside = tag.end(), ""
        elif closed_text and not inside and at == 0 and not kept_texts and tag["ends"] is not None:
            # Some templates put the opening tag into the prompt: the answer begins with the thought.
            at = tag.end()
    if not inside or any(piece.strip() for piece in kept_texts):
        kept_texts.append(text[at:])
    return "".join(kept_texts) if at or inside else text
