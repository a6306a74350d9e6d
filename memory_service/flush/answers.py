"""Answers of a user that need the question: options that were chosen, and answers that came through a tool. Pure.

Invariants: linear; question and answer are quoted; options that were not chosen are nobody's words, and neither is the
bare label of the one that was; a yes or a no is left to the talk around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from indexer.text.short_replies import is_bare_assent
from memory_service.compaction.tool_answers import tool_answers
from memory_service.messages import Numbered, ToolCall, is_tool_result, own_text_of, text_of, tool_calls_of
from memory_service.messages.shapes import with_text
from memory_service.text.choices import asked_in_one_line, chosen_options, options_in


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """An answer with its question.

    Attributes:
        asked_in: The number of the message that asks.
        said: The message that answers; its text is the answer.
    """

    question: str
    answer: str
    asked_in: int
    said: Numbered


def given_answers(messages: Sequence[Numbered]) -> tuple[list[GivenAnswer], list[Numbered]]:
    """The answers of some messages, and the messages without what they say: options, and labels of them."""
    calls = {call["id"]: (call, each.seq) for each in messages for call in tool_calls_of(each.message)}
    answers, left = list[GivenAnswer](), list[Numbered]()
    asked: int | None = None
    for each in messages:
        if is_tool_result(each.message):
            answers += _through_tool(each, calls.get(each.message.get("tool_call_id", "")))
        elif each.message["role"] == "assistant" and text_of(each.message).strip():
            asked = len(left)
        elif each.message["role"] == "user" and asked is not None and (text := own_text_of(each.message).strip()):
            chosen = _chosen(left[asked], each, text)
            if chosen is not None:
                answers.append(chosen)
                left[asked] = _without_options(left[asked], chosen.question)
                asked = None
                continue
            asked = None
        left.append(each)
    return answers, left


def _chosen(asked: Numbered, said: Numbered, text: str) -> GivenAnswer | None:
    """The options that a reply takes; None if it takes none."""
    before = text_of(asked.message)
    chosen = chosen_options(text, options_in(before))
    question = asked_in_one_line(before) if chosen else ""
    if not question:
        return None
    # "2, but with TLS" says more than its label.
    more = f" ({text})" if len(text.split()) > _LABEL_WORDS else ""
    words = "; ".join(option.text for option in chosen) + more
    return GivenAnswer(question=question, answer=words, asked_in=asked.seq, said=said)


_LABEL_WORDS = 3


def _without_options(asked: Numbered, question: str) -> Numbered:
    """A message without its question and the options behind it."""
    text = text_of(asked.message)
    at = text.find(question[:80].rstrip("…"))
    options = options_in(text)
    first = text.find(options[0].text[:40].rstrip("…")) if options else -1
    cut = min(
        (place for place in (at, text.rfind("\n", 0, max(first, 0)) + 1 if first >= 0 else -1) if place >= 0), default=0
    )
    return replace(asked, message=with_text(asked.message, text[:cut].rstrip()))


def _through_tool(result: Numbered, called: tuple[ToolCall, int] | None) -> Iterator[GivenAnswer]:
    for question, answer in tool_answers(called[0], result.message) if called else ():
        if not is_bare_assent(answer):
            yield GivenAnswer(
                question=question, answer=answer, asked_in=called[1] if called else result.seq, said=result
            )
