"""Shell commands as simple commands: words, redirections, and here-documents apart. Pure.

Invariants: linear; nothing inside of quotes or of a here-document is an operator; what cannot be parsed gives what was
read before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from indexer.common import lazy_regex

MAX_CHARS = 40_000
_HEREDOC = lazy_regex(r"<<(?P<dash>-?)[ \t]*(?P<quote>['\"]?)(?P<word>\w[\w.-]{0,60})(?P=quote)")
# A word, an operator, a quoted string or a blank at a time.
_TOKEN = lazy_regex(
    r"""(?xs)(?P<blank>[ \t]+|\\\n) | (?P<comment>(?<![^\s;&|()])\#[^\n]*) | (?P<end>\n|;;?|&&|\|\|?|&(?!>)|[()])
    | (?P<redirect>(?:\d|&)?>>?\|?&?|<<<|<>?) | (?P<document>\x00)
    | (?P<word>(?:[^\s\x00;&|()<>'"`\\#]|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|`[^`]*`
      |(?<=\S)\#)+) | (?P<other>.)"""
)
_ESCAPED = lazy_regex(r"\\(.)|'([^']*)'|\"((?:[^\"\\]|\\.)*)\"")
# Of redirections, those of what a command says.
_OUTPUT = frozenset({"1", ""})
# Words in front of a command.
_LEADING = frozenset("then do else elif if while until ! { sudo time nohup env exec command builtin xargs".split())
_ASSIGNED = lazy_regex(r"\w+=.*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCommand:
    """A simple command.

    Attributes:
        words: Its words without quotes, the name first.
        raw_words: The files that its output goes to.
        document: The here-document that it reads; empty for none.
    """

    words: tuple[str, ...]
    raw_words: tuple[str, ...] = ()
    document: str = ""


@dataclass(slots=True)
class _Open:
    words: list[str] = field(default_factory=list)
    raw_words: list[str] = field(default_factory=list)
    document: str = ""

    def close(self) -> ShellCommand:
        words = self.words
        while words and (words[0] in _LEADING or _ASSIGNED.fullmatch(words[0])):
            words = words[1:]
        return ShellCommand(words=tuple(words), raw_words=tuple(self.raw_words), document=self.document)


def shell_commands(text: str) -> Iterator[ShellCommand]:
    """The simple commands of a command line or a script, in order."""
    plain, documents = _without_documents(text[:MAX_CHARS])
    command, target = _Open(), ""
    for token in _TOKEN.finditer(plain):
        kind, found_text = token.lastgroup, token[0]
        if kind == "end":
            if command.words or command.raw_words:
                yield command.close()
            command, target = _Open(), ""
        elif kind == "redirect":
            target = found_text
        elif kind == "word" and target:
            into_stream = target.endswith("&") and found_text.isdigit()
            if target[:1] != "<" and target.strip(">|&") in _OUTPUT and not into_stream:
                command.raw_words.append(_unquote(found_text))
            target = ""
        elif kind == "word":
            command.words.append(_unquote(found_text))
        elif kind == "document":
            command.document = documents.pop(0)
    if command.words or command.raw_words:
        yield command.close()


# Stands where a here-document begins.
_MARK = "\x00"


def _without_documents(text: str) -> tuple[str, list[str]]:
    """A script whose here-documents are marks, and what they hold."""
    if "<<" not in text:
        return text.replace(_MARK, " "), []
    lines, kept_texts, documents = text.replace(_MARK, " ").split("\n"), list[str](), list[str]()
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        for opening in _HEREDOC.finditer(line):
            if line[opening.start() - 1 : opening.start()] == "<" or line[opening.end() : opening.end() + 1] == "<":
                continue
            body = list[str]()
            while at < len(lines) and lines[at].strip("\t " if opening["dash"] else "").rstrip() != opening["word"]:
                body.append(lines[at])
                at += 1
            at += 1
            documents.append("\n".join(body))
        kept_texts.append(_HEREDOC.sub(_MARK, line) if "<<<" not in line else line)
    return "\n".join(kept_texts), documents


def _unquote(word: str) -> str:
    return _ESCAPED.sub(lambda match: match[1] or match[2] or match[3] or "", word)
