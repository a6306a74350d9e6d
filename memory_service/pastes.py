"""Owns what of a message its writer typed, apart from what was pasted into it: code, logs, quoted mail.

Invariants: pure; linear; of a very long message both ends are read; a line is speech unless its form says otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from memory_service.sentences import MAIL_BELOW

END_CHARS: Final = 20_000

_FENCE = re.compile(r"\s{0,8}(?:```|~~~)")
_INLINE_FENCE = re.compile(r"```[^`\n]*```")
_OUTPUT = re.compile(
    r"""(?x)\s{0,40}(?:
      \[?\d{4}[-/]\d\d[-/]\d\d[T\ ]\d\d:\d\d | \[?\d\d:\d\d:\d\d\b | [A-Z][a-z]{2}\ +\d{1,2}\ \d\d:\d\d:\d\d\b
    | \[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE|CRITICAL)\]?[:\s] | at\ [\w.$<>/:-]{2,120}\s?\(
    | File\ ".{1,160}",\ line\ \d | Traceback\ \(most\ recent | Caused\ by: | [\w.]{1,80}(?:Error|Exception):\s
    | (?:npm|yarn|pip|cargo|make(?:\[\d\])?):?\ (?:ERR!|error|warning|WARN|\*\*\*) | \$\ \S | >>>\  | \^[~^]{0,80}$
    | @@\ -\d | (?:\+\+\+|---)\ [ab]/ | diff\ --git\ | ={5,} | -{5,}$ | \d{1,5}\ ?[|│] | =\ \d+\ passed )"""
)
_CODE = re.compile(
    r"""(?x)\s{0,80}(?:
      import\ [\w.]{1,80}(?:\ as\ \w{1,40})?;?$ | from\ [\w.]{1,80}\ import\ \S | (?:async\ )?def\ \w{1,80}\(
    | class\ \w{1,80}[:({] | (?:export\ )?(?:const|let|var)\ [\w{\[,\ \]}:]{1,80}\s?=
    | (?:async\ )?function\ ?\w{0,80}\( | return\ .{0,200};$ | \#include\ [<"] | (?:if|for|while|switch)\ ?\(.{0,200}\{$
    | (?:public|private|protected|static)\ .{1,160}[({;]$ | </?[a-zA-Z][^>]{0,160}>$ | [{}()\[\]]{1,4}[;,]?$
    | .{1,200}[{;]$ )"""
)
# These are code only beside other code: "deadline = Friday" is something that people type.
_WEAK = re.compile(
    r"""(?x)\s{4} | \t | \s{0,80}(?: ["']?[\w-]{1,80}["']?\s?:\s?["'{\[\d].{0,200},?$ | [\w.]{1,80}\ ?(?:=|\+=|:=)\ ?\S
    | [\w.]{1,80}\(.{0,200}\)$ | return\b | (?:\#|//|/\*|\*)\s )"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A message taken apart.

    Attributes:
        text: What its writer typed.
        quoted: What somebody else wrote in a mail below or between it.
        pasted: Whether there is code or output.
    """

    text: str
    quoted: str = ""
    pasted: bool = False


def typed_of(message: str) -> Typed:
    """Takes a message apart."""
    if len(message) > 2 * END_CHARS:
        message = f"{message[:END_CHARS]}\n{message[-END_CHARS:]}"
    text, count = _INLINE_FENCE.subn(" ", message)
    typed, quoted, pasted = list[str](), list[str](), count > 0
    lines = text.split("\n")
    kinds = _kinds(lines)
    for line, kind in zip(lines, kinds, strict=True):
        if kind == "quoted":
            quoted.append(line.lstrip("> "))
        elif kind == "pasted":
            pasted = True
        else:
            typed.append(line)
    return Typed(text="\n".join(typed).strip(), quoted="\n".join(quoted).strip(), pasted=pasted)


def _kinds(lines: list[str]) -> list[str]:
    """What each line is: `typed`, `quoted` or `pasted`."""
    kinds, fenced, below = list[str](), False, False
    for line in lines:
        head = line[:300].rstrip()
        if not fenced and not below and MAIL_BELOW.match(head):
            below = True
            kinds.append("pasted")
        elif _FENCE.match(head):
            fenced = not fenced
            kinds.append("pasted")
        elif fenced:
            kinds.append("pasted")
        elif below or (head.lstrip().startswith(">") and not head.startswith(">>> ")):
            kinds.append("quoted")
        else:
            kinds.append(_kind_alone(head))
    return _settled(kinds)


def _kind_alone(head: str) -> str:
    if not head.strip():
        return "blank"
    if _OUTPUT.match(head) or _CODE.match(head):
        return "pasted"
    return "weak" if _WEAK.match(head) and "?" not in head and "？" not in head else "typed"


def _settled(kinds: list[str]) -> list[str]:
    """The kinds when lines that may be code know their neighbours."""
    known = [kind for kind in kinds if kind != "blank"]
    settled, at = list[str](), 0
    for kind in kinds:
        if kind == "blank":
            settled.append("typed")
            continue
        if kind == "weak":
            beside = {*known[max(0, at - 1) : at], *known[at + 1 : at + 2]}
            kind = "pasted" if beside & {"pasted", "weak"} else "typed"
        settled.append(kind)
        at += 1
    return settled
