"""Answers that a user gave through a tool of the agent: questions and what was answered. Pure.

Invariants: linear; only tools that ask the user, by their names, give such answers; what they gave back is quoted.

Source: AskUserQuestion of Claude Code, request_user_input of Codex, question of opencode, ask_followup_question of
Cline and Roo Code; the words of the user in a call that Claude Code's user refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from indexer.text import lazy_regex
from memory_service.messages import Message, ToolCall, arguments_of, text_of
from memory_service.text.sentences import single_line

_ASKS_USER = lazy_regex(
    r"(?i)ask.?(?:the.?)?(?:user|human)|(?:user|human).?(?:input|question|choice|answer|confirm)|follow.?up.?question"
    r"|^question$|request.?(?:input|clarification)|elicit|clarify"
)
_PAIR = lazy_regex(r"\"([^\"\n]{1,600})\"\s{0,2}=\s{0,2}\"([^\"\n]{1,600})\"")
_ANSWER_TAG = lazy_regex(r"(?s)<(?:answer|user_answer|response)>\s*(.{1,2000}?)\s*</(?:answer|user_answer|response)>")
_TOLD = lazy_regex(
    r"(?i)\s*(?:the )?user(?:['’]s)? (?:has |have )?(?:answered|answer|selected|chose|chosen|responded|replied|said"
    r"|response)"
    r"[^:\n]{0,80}:\s*"
)
_REFUSED_WITH = lazy_regex(
    r"(?s)\Athe user (?:doesn['’]t|does not) want.*?the user (?:said|provided)[^:\n]{0,80}:\s*(\S.*)", 2
)
_ANSWER_CHARS = 600


def tool_answers(call: ToolCall, result: Message | None) -> Iterator[tuple[str, str]]:
    """Questions of a call to the user and the answers; none for other calls, and where nobody answered."""
    if result is None:
        return
    text = text_of(result)[:8_000]
    if refused := _REFUSED_WITH.match(text):
        yield f"{call['function']['name'][:60]}?", single_line(refused[1], _ANSWER_CHARS)
        return
    questions = dict(_questions(arguments_of(call)))
    if not questions or not _ASKS_USER.search(call["function"]["name"]) or result.get("is_error"):
        return
    found = list(_PAIR.findall(text)) or list(_from_json(text, questions))
    if not found and len(questions) == 1:
        tagged = _ANSWER_TAG.search(text)
        said = tagged[1] if tagged else _TOLD.sub("", text, count=1)
        found = [(next(iter(questions.values())), said)] if len(said) <= _ANSWER_CHARS else []
    for question, answer in found:
        if answer.strip():
            yield single_line(question, _ANSWER_CHARS), single_line(answer, _ANSWER_CHARS)


def _questions(arguments: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The questions of a call by their ids."""
    listed = arguments.get("questions")
    for at, each in enumerate(listed if isinstance(listed, list) else [arguments]):
        if isinstance(each, str):
            yield str(at), each
        elif isinstance(each, Mapping):
            words = (each.get(key) for key in ("question", "prompt", "message", "text", "header"))
            text = next((word for word in words if isinstance(word, str) and word.strip()), "")
            if text:
                yield str(each.get("id", at)), text


def _from_json(text: str, questions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    answers = value.get("answers", value) if isinstance(value, dict) else value
    if isinstance(answers, list):
        answers = {str(at): each for at, each in enumerate(answers)}
    for key, answer in answers.items() if isinstance(answers, dict) else ():
        words = ", ".join(_words(answer))
        if words:
            yield questions.get(str(key), str(key) if len(questions) != 1 else next(iter(questions.values()))), words


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _words(each)
    elif isinstance(value, dict):
        for key in ("answers", "answer", "value", "label", "text", "selected"):
            if key in value:
                yield from _words(value[key])
                return
