"""Requests: which message of a user's asks for something, and what the newest one asks. Pure.

Invariants: what a host inserted, what a tool answered in a message of the user's, and words that only say to go on ask
for nothing; a choice, a yes and a no ask with the question that they answer; where no message asks, the newest one
with words of the user's stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indexer.language import is_client_command, is_continuation, is_tool_output, ornament
from memory_service.messages.shapes import Message, own_text_of, text_of
from memory_service.messages.sizes import Numbered
from memory_service.text.choices import answered_question, is_bare_reply


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedNow:
    """The newest request of a user.

    Attributes:
        request: The message that asks; None if nothing but an answer is left.
        question: Of the answer behind it, the question; empty if there is none.
        asked_in: The number of the message of that question.
        answer: The message that answers it.
    """

    request: Numbered | None
    question: str = ""
    asked_in: int = 0
    answer: Numbered | None = None


def is_request(message: Message) -> bool:
    """True if a user's message asks for something by itself."""
    if message["role"] != "user":
        return False
    text = own_text_of(message).strip()
    return bool(text) and not ornament("statements", False, _asks_for_nothing, text)


def says_something(message: Message) -> bool:
    """False for a user's message that only goes on, or is a command to a client."""
    text = own_text_of(message).strip()
    return not (is_continuation(text) or is_client_command(text))


def _asks_for_nothing(text: str) -> bool:
    return is_continuation(text) or is_bare_reply(text) or is_client_command(text) or is_tool_output(text)


def asked_now(messages: Sequence[Numbered]) -> AskedNow | None:
    """The newest request of a user; None if no user has said a word.

    Of "Add a cache.", "1. Redis 2. In memory?" and "2", with thirty calls and a "continue" behind them, it is the first
    message, with the question and the "2". A task, a host's reminder and the output of a tool give the task.

    Args:
        messages: All messages of a conversation, in order.
    """
    answer: AskedNow | None = None
    message: Numbered | None = None
    for at in range(len(messages) - 1, -1, -1):
        each_message = messages[at]
        if each_message.message["role"] != "user" or not (text := own_text_of(each_message.message).strip()):
            continue
        message = message or each_message
        answers = None if answer else ornament("statements", None, _answer, messages, at, text)
        if is_request(each_message.message):
            if answer is None and answers:
                return AskedNow(
                    request=each_message, question=answers.question, asked_in=answers.asked_in, answer=each_message
                )
            return AskedNow(
                request=each_message,
                question=answer.question if answer else "",
                asked_in=answer.asked_in if answer else 0,
                answer=answer.answer if answer else None,
            )
        answer = answer or answers
    return answer or (AskedNow(request=message) if message else None)


# What a host puts in between a question and its answer.
_NEAR = 6


def _says(message: Message) -> bool:
    return message["role"] in ("user", "assistant") and bool(own_text_of(message).strip())


def _answer(messages: Sequence[Numbered], at: int, text: str) -> AskedNow | None:
    """A reply with the question that it answers; None if it answers none."""
    before = next((message for message in reversed(messages[max(0, at - _NEAR) : at]) if _says(message.message)), None)
    if before is None or before.message["role"] != "assistant":
        return None
    question = answered_question(text, text_of(before.message))
    if not question:
        return None
    return AskedNow(request=None, question=question, asked_in=before.seq, answer=messages[at])
