"""Calls of tools that an agent writes into its words: code blocks of a shell, tags, blocks of an edit. Pure.

```
"I patch it." ```bash sed -i … a.py```, then <returncode>0</returncode>   -> bash {"command": "sed -i … a.py"}
<function=str_replace_editor><parameter=path>a.py</parameter>…            -> str_replace_editor {"path": "a.py", …}
a.py above <<<<<<< SEARCH                                                 -> edit {"path": "a.py"}
```
Invariants: linear; a code block is a command only where a tool's output follows it; what an assistant only shows stays
words.

Paths are as they stand in the words: relative to whatever folder the agent works in.

Source: the formats of SWE-agent 1.1, mini-swe-agent 2, OpenHands, Cline, Roo Code and aider 0.86.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from indexer.common import lazy_regex
from memory_service.messages.shapes import ToolCall

_FENCED = lazy_regex(r"^```[ \t]*(?P<language>[\w-]*)[ \t]*\n(?P<code>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_SHELLS = frozenset({"", "bash", "sh", "shell", "console", "mswea_bash_command", "zsh"})
_FUNCTION = lazy_regex(r"<function=(?P<name>[\w.:-]{1,80})>(?P<body>.*?)</function>", re.DOTALL)
_PARAMETER = lazy_regex(r"<parameter=(?P<key>[\w-]{1,60})>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL)
_TAGGED = lazy_regex(
    r"^<(?P<name>write_to_file|replace_in_file|apply_diff|insert_content|search_and_replace|read_file|execute_command"
    r"|ask_followup_question|update_todo_list)>\n(?P<body>.*?)</(?P=name)>",
    re.MULTILINE | re.DOTALL,
)
_FIELD = lazy_regex(r"<(?P<key>path|command|question|todos|content|diff)>(?P<value>.*?)</(?P=key)>", re.DOTALL)
_SEARCH = lazy_regex(r"^<{5,9} ?(?:SEARCH|ORIGINAL)[ \t]*$", re.MULTILINE)
_APPLIED = lazy_regex(r"^(?:> )?Applied edit to (?P<path>\S[^\n]{0,300}?)[ \t]*$", re.MULTILINE)
_OPENED = lazy_regex(r"^\[File: (?P<path>\S[^\n]{0,400}?) \(\d{1,9} lines total\)\]", re.MULTILINE)
_NAME = lazy_regex(r"[\w./\\@+~ -]{1,200}")
_MAX_CHARS = 200_000


def written_calls(text: str, call_id: str, *, has_answer: bool) -> list[ToolCall]:
    """The calls in an assistant's words.

    Args:
        text: What it said.
        call_id: The beginning of the ids that they get.
        has_answer: Whether a tool's output follows, so that a code block was run.
    """
    pairs = list(_calls_in(text[:_MAX_CHARS], has_answer=has_answer))
    return [
        {"id": f"{call_id}-{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for at, (name, arguments) in enumerate(pairs)
    ]


def applied_edits(text: str) -> Iterator[str]:
    """The files that an editor says it has changed: "Applied edit to src/app.py"."""
    if "Applied edit to " in text:
        yield from (match["path"] for match in _APPLIED.finditer(text))


def opened_file(text: str) -> str:
    """The file that an editor says it shows: "[File: /repo/a.py (120 lines total)]"; empty if it shows none."""
    match = _OPENED.search(text[:2_000] if len(text) < 4_000 else text[:2_000] + text[-2_000:])
    return match["path"] if match else ""


def _calls_in(text: str, *, has_answer: bool) -> Iterator[tuple[str, dict[str, str]]]:
    is_tagged = False
    if "<function=" in text:
        for match in _FUNCTION.finditer(text):
            is_tagged = True
            yield match["name"], {field["key"]: field["value"] for field in _PARAMETER.finditer(match["body"])}
    if "</" in text and not is_tagged:
        for match in _TAGGED.finditer(text):
            is_tagged = True
            yield match["name"], {field["key"]: field["value"].strip() for field in _FIELD.finditer(match["body"])}
    if "SEARCH" in text or "ORIGINAL" in text:
        for path in _searched_files(text):
            yield "edit", {"path": path}
    if has_answer and not is_tagged and (block := _command_block(text)):
        yield "bash", {"command": block}


def _searched_files(text: str) -> Iterator[str]:
    """The files of blocks that are to be searched and replaced, which stand above them."""
    path = ""
    for match in _SEARCH.finditer(text):
        above = text[: match.start()].rstrip("\n").split("\n")[-3:]
        names = [line.strip(" *`#:\t") for line in reversed(above) if not line.lstrip().startswith("```")]
        named_text = next((name for name in names[:2] if name), "")
        if (
            named_text
            and ("." in named_text or "/" in named_text)
            and " " not in named_text
            and _NAME.fullmatch(named_text)
        ):
            path = named_text
        if path:
            yield path


def _command_block(text: str) -> str:
    blocks = [match for match in _FENCED.finditer(text) if match["language"].lower() in _SHELLS]
    return blocks[-1]["code"].strip() if blocks else ""
