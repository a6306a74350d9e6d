"""Answers of a user that need their questions: through a tool of the agent, and by the label of an option. Pure.

Invariants: linear; only an agent's own tools that ask the user, by their names, give answers, and a host that tells of
a refusal, never a tool of some server; what they gave back is quoted; options that were not chosen are nobody's words,
and neither is the bare label of the one that was; a yes or a no is left to the talk around it.

Source: AskUserQuestion of Claude Code, request_user_input of Codex, question of opencode, ask_followup_question of
Cline and Roo Code; the words of the user in a call that Claude Code's user refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from indexer.common import lazy_regex
from indexer.language import is_bare_assent
from memory_service.messages import (
    Message,
    Numbered,
    ToolCall,
    arguments_of,
    is_tool_result,
    own_text_of,
    text_of,
    tool_calls_of,
)
from memory_service.messages.shapes import with_text
from memory_service.text.sentences import single_line

# The whole of a name: a tool of some server, such as `mcp__shop__ask_user`, could put words into the user's mouth.
_ASKS_USER = lazy_regex(
    r"(?i)ask_?(?:the_?)?(?:user|human)(?:_?(?:for_?)?(?:questions?|input|choice|clarification))?"
    r"|(?:request|get)_?(?:user|human)_?(?:input|answer|choice|confirmation)|(?:user|human)_?(?:input|question|choice)"
    r"|ask_?follow_?up_?questions?|question|request_?(?:input|clarification)|clarify"
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
    text, name = text_of(result)[:8_000], call["function"]["name"]
    if result.get("is_error"):
        # A server of tools could say so itself.
        if not name.startswith("mcp__") and (refused := _REFUSED_WITH.match(text)):
            yield f"{name[:60]}?", single_line(refused[1], _ANSWER_CHARS)
        return
    questions = dict(_questions(arguments_of(call)))
    if not questions or not _ASKS_USER.fullmatch(name):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered:
    """An answer with its question.

    Attributes:
        words: The answer, an option spelled out.
        question_seq: The number of the message that asks.
        reply: The message that answers.
    """

    question: str
    words: str
    question_seq: int
    reply: Numbered


def given_answers(messages: Sequence[Numbered]) -> tuple[list[QuestionAnswered], list[Numbered]]:
    """The answers of some messages, and the messages without what they say: options, and labels of them."""
    calls = {call["id"]: (call, each.seq) for each in messages for call in tool_calls_of(each.message)}
    answers, left = list[QuestionAnswered](), list[Numbered]()
    asked: int | None = None
    for each in messages:
        if is_tool_result(each.message):
            answers += _through_tool(each, calls.get(each.message.get("tool_call_id", "")))
        elif each.message["role"] == "assistant" and text_of(each.message).strip():
            asked = len(left)
        elif each.message["role"] == "user" and asked is not None and (text := own_text_of(each.message).strip()):
            chosen = _chosen_answer(left[asked], each, text)
            if chosen is not None:
                answers.append(chosen)
                left[asked] = _without_options(left[asked], chosen.question)
                asked = None
                continue
            asked = None
        left.append(each)
    return answers, left


def _chosen_answer(asked: Numbered, said: Numbered, text: str) -> QuestionAnswered | None:
    """The options that a reply takes; None if it takes none."""
    # The chain of imports is long: what reads calls alone has no use for this.
    from memory_service.text.choices import asked_in_one_line, chosen_options, options_in

    before = text_of(asked.message)
    chosen = chosen_options(text, options_in(before))
    question = asked_in_one_line(before) if chosen else ""
    if not question:
        return None
    # "2, but with TLS" says more than its label.
    more = f" ({text})" if len(text.split()) > _LABEL_WORDS else ""
    words = "; ".join(option.text for option in chosen) + more
    return QuestionAnswered(question=question, words=words, question_seq=asked.seq, reply=said)


_LABEL_WORDS = 3


def _without_options(asked: Numbered, question: str) -> Numbered:
    """A message without its question and the options behind it."""
    from memory_service.text.choices import options_in

    text = text_of(asked.message)
    at = text.find(question[:80].rstrip("…"))
    options = options_in(text)
    first = text.find(options[0].text[:40].rstrip("…")) if options else -1
    cut = min(
        (place for place in (at, text.rfind("\n", 0, max(first, 0)) + 1 if first >= 0 else -1) if place >= 0), default=0
    )
    return replace(asked, message=with_text(asked.message, text[:cut].rstrip()))


def _through_tool(result: Numbered, called: tuple[ToolCall, int] | None) -> Iterator[QuestionAnswered]:
    for question, answer in tool_answers(called[0], result.message) if called else ():
        if not is_bare_assent(answer):
            yield QuestionAnswered(
                question=question, words=answer, question_seq=called[1] if called else result.seq, reply=result
            )
