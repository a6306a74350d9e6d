"""The models that write summaries in scripts: one that is fine, and one for each way to fail."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

from memory_service.errors import UpstreamFailed
from memory_service.llm.base import ChatMessage
from memory_service.testing import Hang, Reply, ScriptedModel
from tests.properties.sessions import Summariser

# What an error says must never be in a view.
ERROR_TEXT = "zzq quota exceeded for project 4711"
_MARK = re.compile(r"(?:mark|src/part)\d+x(?:\.py)?")
_CALLS = 60
Step = str | Reply | Hang | Exception | Callable[[Sequence[ChatMessage]], str]


def model_of(kind: Summariser, headings: Sequence[str]) -> ScriptedModel | None:
    """A model that behaves as its kind says, call after call; None for rules."""
    if kind == "rules":
        return None
    return ScriptedModel(*itertools.islice(_steps(kind, headings), _CALLS), name="scripted", context_window=32_000)


def _steps(kind: Summariser, headings: Sequence[str]) -> Iterator[Step]:
    def fine(prompt: Sequence[ChatMessage]) -> str:
        return _sections(headings, _marks(prompt)[-24:])

    def huge(prompt: Sequence[ChatMessage]) -> str:
        return _sections(headings, [*_marks(prompt)[-24:], *["and so the work went on as it had before"] * 1_000])

    def invents(prompt: Sequence[ChatMessage]) -> str:
        return _sections(headings, ["The ticket ZQX-99817 was closed at https://nowhere.example/never/said"])

    while True:
        match kind:
            case "fine":
                yield fine
            case "huge":
                yield huge
            case "invents":
                yield invents
            case "raises":
                yield UpstreamFailed(ERROR_TEXT, kind="content_filter")
            case "hangs":
                yield Hang(seconds=5)
            case "empty":
                yield Reply(text="  ")
            case "truncated":
                yield Reply(text=_sections(headings, ["half of zzq"]), finish_reason="length")
            case "tool_call":
                yield Reply(text=_sections(headings, ["toolmark zzq"]), tool_call="bash")
            case "error_text":
                yield Reply(text=f"Error generating summary: {ERROR_TEXT}")
            case _:
                yield Reply(text="\n".join(_heading(each) for each in headings) or "## Summary")


def _marks(prompt: Sequence[ChatMessage]) -> list[str]:
    return list(dict.fromkeys(found for message in prompt for found in _MARK.findall(message["content"])))


def _sections(headings: Sequence[str], lines: Sequence[str]) -> str:
    said = "\n".join(f"- {line}" for line in lines) or "- nothing"
    return "\n".join(f"{_heading(each)}\n{said if at == 0 else '- none'}" for at, each in enumerate(headings)) or said


def _heading(heading: str) -> str:
    return heading if heading.startswith("#") else f"## {heading}"
