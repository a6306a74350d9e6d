"""Owns what of a tool's answer is worth a passage, and how records in it are laid out before it is cut. Pure.

Invariants: linear in the length of the answer; records and values stand as they were written, and stay whole as far
as they fit a line; what is no JSON stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

# Of a longer answer little is kept, and to read its records takes a second for each megabyte.
_MAX_CHARS = 200_000
# Each level is read once more, so that there has to be an end.
_LEVELS = 5
_ACKNOWLEDGED_CHARS = 120
# Python refuses to read longer ones.
_MAX_DIGITS = 400
_SPACE = re.compile(r"[ \t\n\r]*")
_WORD = re.compile(r"\w+(?:\.\d+)?")
_FINE = (
    "ok|okay|done|yes|true|success|successful|successfully|succeeded|accepted|complete|completed|finished"
    "|成功|已?完成|好的?|操作成功|执行成功|已确认"
)
_DEED = (
    "sent|saved|stored|updated|created|deleted|removed|written|added|delivered|received|applied|queued|scheduled"
    "|acknowledged|posted|moved|copied|renamed|已?(?:发送|保存|更新|创建|删除|添加|送达|提交)(?:成功)?"
)
# "exit code 0" and "1 sent" say that it went well; "exit code 1" and "0 sent" are news.
_CLAUSES = (
    f"(?:(?:status|result|state|message) )?(?:{_FINE})",
    f"(?:{_DEED})(?: (?:true|yes|ok|successfully|[1-9][0-9]{{0,2}}))?",
    "(?:[1-9][0-9]{0,2} )(?:sent|saved|stored|updated|created|deleted|removed|written|added|delivered)",
    "(?:exit_?code|exit_status|returncode|return_code|rc|(?:exit |return )?(?:code|status)) 0",
    "(?:status|code|status_code) 20[0-4]",
    "(?:errors?|stderr|stdout|output) (?:null|none|false|empty)",
    "stdout|stderr|no output|无输出|退出码 0",
)
_TIME = r"[0-9]{1,4}(?:\.[0-9]+)? ?(?:s|ms|seconds|秒)"
_ACKNOWLEDGEMENT = re.compile(f"(?:(?:{'|'.join(_CLAUSES)})(?: |$))+(?:{_TIME})?")


def is_acknowledgement(text: str) -> bool:
    """Whether an answer says that something went well, and nothing else: `{"ok": true}`, "exit code 0"."""
    if len(text) > _ACKNOWLEDGED_CHARS:
        return False
    return _ACKNOWLEDGEMENT.fullmatch(" ".join(_WORD.findall(text.casefold()))) is not None


def laid_out(text: str, max_chars: int) -> str:
    """An answer as it is cut best: of one that is JSON, each record in its own line.

    Args:
        text: What a tool answered.
        max_chars: How long a passage may be. What takes no more than half of that is a line: then there is a line
            end where the answer is to be cut.

    Returns:
        The text itself if it is short, very long or no JSON; else lines. A string that is longer than a line stands
        with its own line ends, and other scripts than Latin are not escaped.
    """
    stripped = text.strip()
    if not stripped.startswith(("{", "[")) or len(text) > _MAX_CHARS or (len(text) <= max_chars and "\\u" not in text):
        return text
    try:
        value = _PARSER.decode(stripped)
        if len(text) <= max_chars:
            return json.dumps(value, ensure_ascii=False)
        return "\n".join(_lines("", stripped, value, max_chars // 2, _LEVELS))
    except (ValueError, RecursionError):
        return text


def _lines(lead: str, written: str, value: object, line_chars: int, levels: int) -> Iterator[str]:
    """The lines of a value, as it was written behind its key."""
    if isinstance(value, str) and len(written) > line_chars:
        yield f"{lead}{value}"
    elif len(lead) + len(written) <= line_chars or not levels or not isinstance(value, dict | list):
        # As models and tools write them, other scripts may be escaped, and nobody would find them.
        yield lead + (json.dumps(value, ensure_ascii=False) if "\\u" in written else written)
    else:
        if lead:
            yield lead.rstrip()
        for part in _parts(written):
            yield from _lines(*part, line_chars, levels - 1)


def _parts(written: str) -> Iterator[tuple[str, str, object]]:
    """The parts of an object or a list that can be read: key with its colon, value as written, value."""
    at = _behind_space(written, 1)
    while written[at] not in "]}":
        lead = ""
        if written[0] == "{":
            key, end = _PARSER.raw_decode(written, at)
            lead, at = f"{key}: ", _behind_space(written, _behind_space(written, end) + 1)
        value, end = _PARSER.raw_decode(written, at)
        yield lead, written[at:end], value
        at = _behind_space(written, end)
        if written[at] == ",":
            at = _behind_space(written, at + 1)


def _behind_space(written: str, at: int) -> int:
    space = _SPACE.match(written, at)
    return space.end() if space else at


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _MAX_DIGITS else 0


_PARSER = json.JSONDecoder(parse_int=_integer)
