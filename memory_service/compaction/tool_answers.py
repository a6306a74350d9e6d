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
from memory_service.messages.shapes import (
    Message,
    ToolCall,
    arguments_of,
    is_tool_result,
    own_text_of,
    text_of,
    tool_calls_of,
    with_text,
)
from memory_service.messages.sizes import Numbered
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
        if not name.startswith("mcp__") and (match := _REFUSED_WITH.match(text)):
            yield f"{name[:60]}?", single_line(match[1], _ANSWER_CHARS)
        return
    questions = dict(_questions(arguments_of(call)))
    if not questions or not _ASKS_USER.fullmatch(name):
        return
    matches = list(_PAIR.findall(text)) or list(_from_json(text, questions))
    if not matches and len(questions) == 1:
        tagged_match = _ANSWER_TAG.search(text)
        said_text = tagged_match[1] if tagged_match else _TOLD.sub("", text, count=1)
        matches = [(next(iter(questions.values())), said_text)] if len(said_text) <= _ANSWER_CHARS else []
    for question, answer in matches:
        if answer.strip():
            yield single_line(question, _ANSWER_CHARS), single_line(answer, _ANSWER_CHARS)


def _questions(arguments: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The questions of a call by their ids."""
    questions = arguments.get("questions")
    for at, argument in enumerate(questions if isinstance(questions, list) else [arguments]):
        if isinstance(argument, str):
            yield str(at), argument
        elif isinstance(argument, Mapping):
            words = (argument.get(key) for key in ("question", "prompt", "message", "text", "header"))
            text = next((word for word in words if isinstance(word, str) and word.strip()), "")
            if text:
                yield str(argument.get("id", at)), text


def _from_json(text: str, questions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    answers = value.get("answers", value) if isinstance(value, dict) else value
    if isinstance(answers, list):
        answers = {str(at): each_value for at, each_value in enumerate(answers)}
    for key, answer in answers.items() if isinstance(answers, dict) else ():
        words = ", ".join(_words(answer))
        if words:
            yield questions.get(str(key), str(key) if len(questions) != 1 else next(iter(questions.values()))), words


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each_value in value:
            yield from _words(each_value)
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
    calls = {call["id"]: (call, message.seq) for message in messages for call in tool_calls_of(message.message)}
    answers, left = list[QuestionAnswered](), list[Numbered]()
    number: int | None = None
    for each_message in messages:
        if is_tool_result(each_message.message):
            answers += _through_tool(each_message, calls.get(each_message.message.get("tool_call_id", "")))
        elif each_message.message["role"] == "assistant" and text_of(each_message.message).strip():
            number = len(left)
        elif (
            each_message.message["role"] == "user"
            and number is not None
            and (text := own_text_of(each_message.message).strip())
        ):
            question = _chosen_answer(left[number], each_message, text)
            if question is not None:
                answers.append(question)
                left[number] = _without_options(left[number], question.question)
                number = None
                continue
            number = None
        left.append(each_message)
    return answers, left


def _chosen_answer(message: Numbered, said_message: Numbered, text: str) -> QuestionAnswered | None:
    """The options that a reply takes; None if it takes none."""
    # The chain of imports is long: what reads calls alone has no use for this.
    from memory_service.text.choices import asked_in_one_line, chosen_options, options_in

    before = text_of(message.message)
    options = chosen_options(text, options_in(before))
    question = asked_in_one_line(before) if options else ""
    if not question:
        return None
    # "2, but with TLS" says more than its label.
    more = f" ({text})" if len(text.split()) > _LABEL_WORDS else ""
    words = "; ".join(option.text for option in options) + more
    return QuestionAnswered(question=question, words=words, question_seq=message.seq, reply=said_message)


_LABEL_WORDS = 3


def _without_options(message: Numbered, question: str) -> Numbered:
    """A message without its question and the options behind it."""
    from memory_service.text.choices import options_in

    text = text_of(message.message)
    at = text.find(question[:80].rstrip("…"))
    options = options_in(text)
    first = text.find(options[0].text[:40].rstrip("…")) if options else -1
    cut_place = min(
        (place for place in (at, text.rfind("\n", 0, max(first, 0)) + 1 if first >= 0 else -1) if place >= 0), default=0
    )
    return replace(message, message=with_text(message.message, text[:cut_place].rstrip()))


def _through_tool(result: Numbered, pair: tuple[ToolCall, int] | None) -> Iterator[QuestionAnswered]:
    for question, answer in tool_answers(pair[0], result.message) if pair else ():
        if not is_bare_assent(answer):
            yield QuestionAnswered(
                question=question, words=answer, question_seq=pair[1] if pair else result.seq, reply=result
            )
