"""Making any sequence of messages valid on the wire, without touching the log that it comes from.

What providers refuse, and what is done about it:
```
orphan_result     result without its call            kept as the user's text, dropped if it says nothing
duplicate_result  two results of one call            one counts, see `units`
late_result       the other came later, says more    kept as the user's text
moved_result      result not behind its call         moved there, in the order of the calls
missing_result    call without a result              answered, unless everything still waits for it: see `close_calls`
call_id           two calls with one id, or none     the later one gets a new id
empty             message that says nothing          dropped
thinking          thinking where it may not stand    dropped
mid_system        system message in the middle       kept as the user's text
first_user        another than the user begins       a short user message is put before it
after_result      user right behind a result         a short assistant message between them, for Mistral
```
Invariants: pure; linear; nothing that the system, the user or the assistant said is lost, nor what a tool said of a
call that is not there; repairing twice is repairing once; a valid list comes back with the same objects. The texts
put in are fixed, one for each language, so that the same log always gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from memory_service.messages.cache_marks import with_marks_taken
from memory_service.messages.providers import provider_rules
from memory_service.messages.shapes import (
    Message,
    Part,
    is_empty,
    is_system,
    is_tool_result,
    parts_of,
    text_part,
    tool_calls_of,
    tool_result,
    user_message,
    with_texts,
    without_thinking,
)
from memory_service.messages.units import (
    REPAIR_TEXTS,
    RepairTexts,
    UnitCall,
    UnitReply,
    new_ids,
    replies_of,
    says_more,
    winner_of,
)
from memory_service.messages.writing import to_mistral, to_openai
from memory_service.messages.writing_anthropic import to_anthropic

MessageRepairKind = Literal[
    "orphan_result",
    "duplicate_result",
    "late_result",
    "moved_result",
    "missing_result",
    "call_id",
    "empty",
    "thinking",
    "mid_system",
    "first_user",
    "after_result",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules that differ between providers.

    Attributes:
        mid_system: Whether system messages behind the first others become the user's text. Only OpenAI takes them.
        after_result: Whether the user may speak right behind a tool's result. Only Mistral refuses it.
    """

    mid_system: Literal["user", "keep"] = "user"
    after_result: Literal["any", "assistant"] = "any"


PORTABLE = Rules()
MISTRAL = Rules(after_result="assistant")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRepair:
    """A repair that was made.

    Attributes:
        kind: See the table above.
        index: The message it was done to, or before which one was put in: its position in the list given.
        detail: A sentence with ids and roles, without what was said.
    """

    kind: MessageRepairKind
    index: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """A list that every provider takes, and what was done for that."""

    messages: list[Message]
    repairs: tuple[MessageRepair, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    """A message, where it was given, and the id of the call if it stands in for that call's result."""

    index: int
    message: Message
    stands_in_for: str | None = None


_Step = Callable[[Sequence[_Item]], Iterator[_Item | MessageRepair]]


def repair_messages(
    messages: Sequence[Message], *, pending: Collection[str] = (), rules: Rules = PORTABLE, language: str = "en"
) -> Repaired:
    """Makes a sequence of messages valid on the wire.

    Args:
        messages: Any sequence.
        pending: Ids of calls that are known to run still. Of their results the last one counts; where none is there
            but other messages follow, the answer put in says that the call runs.
        rules: What the provider at hand refuses beyond what all refuse.
        language: Of the texts that are put in; English for one that has none.

    Returns:
        A list that may be sent, or sent once the results have come that its last message waits for.
    """
    running, texts = frozenset(pending), REPAIR_TEXTS.get(language, REPAIR_TEXTS["en"])
    steps: tuple[_Step, ...] = (
        _drop_empty,
        lambda items: _pair(items, running, texts),
        _leave_open,
        *([lambda items: _settle_system(items, texts)] if rules.mid_system == "user" else []),
        _place_thinking,
        lambda items: _begin_with_user(items, texts),
        *([lambda items: _answer_results(items, texts)] if rules.after_result == "assistant" else []),
    )
    items = [_Item(index, message) for index, message in enumerate(messages)]
    repairs: list[MessageRepair] = []
    for step in steps:
        done_step = list(step(items))
        items = [value for value in done_step if isinstance(value, _Item)]
        repairs += [value for value in done_step if isinstance(value, MessageRepair)]
    return Repaired(messages=[item.message for item in items], repairs=tuple(repairs))


def _drop_empty(items: Sequence[_Item]) -> Iterator[_Item | MessageRepair]:
    for item in items:
        if not is_tool_result(item.message) and is_empty(item.message):
            yield MessageRepair(kind="empty", index=item.index, detail=f"A message of the role {item.message['role']}.")
        else:
            yield item


def _pair(items: Sequence[_Item], running: frozenset[str], texts: RepairTexts) -> Iterator[_Item | MessageRepair]:
    """Puts one result behind each call, and keeps as text what has no call."""
    messages = [item.message for item in items]
    replies = replies_of(messages)
    winners = {
        (at, position): winner_of(found_replies, runs=tool_calls_of(messages[at])[position]["id"] in running)
        for (at, position), found_replies in replies.items()
    }
    owners = {reply.at: (reply, winners[call]) for call, found_replies in replies.items() for reply in found_replies}
    ids = new_ids(messages)
    for at, item in enumerate(items):
        if is_tool_result(item.message):
            reply, winner = owners.get(at, (None, None))
            yield from _loose_result(item, reply, winner, texts)
        elif tool_calls_of(item.message):
            yield from _unit(items, at, winners, ids, running, texts)
        else:
            yield item


def _loose_result(
    item: _Item, reply: UnitReply | None, winner: UnitReply | None, texts: RepairTexts
) -> Iterator[_Item | MessageRepair]:
    """A result where it stood; the one that counts is put behind its call instead."""
    call_id = item.message.get("tool_call_id", "")
    if reply is None or winner is None:
        yield MessageRepair(kind="orphan_result", index=item.index, detail=f"There is no call {call_id!r} before it.")
        if not is_empty(item.message):
            yield _Item(item.index, _as_user(texts.orphan, item.message))
    elif reply is not winner and says_more(reply, winner):
        yield MessageRepair(kind="late_result", index=item.index, detail=f"The call {call_id!r} has another result.")
        yield _Item(item.index, _as_user(texts.late, item.message))
    elif reply is not winner:
        yield MessageRepair(
            kind="duplicate_result", index=item.index, detail=f"The call {call_id!r} has another result."
        )


def _unit(
    items: Sequence[_Item],
    at: int,
    winners: dict[UnitCall, UnitReply | None],
    ids: dict[UnitCall, str],
    running: frozenset[str],
    texts: RepairTexts,
) -> Iterator[_Item | MessageRepair]:
    """An assistant message with calls and one result for each, in their order."""
    item, calls = items[at], tool_calls_of(items[at].message)
    wire_ids = [ids.get((at, position), call["id"]) for position, call in enumerate(calls)]
    yield from _with_ids(item, wire_ids)
    before = at
    for position, call_id in enumerate(wire_ids):
        reply = winners[at, position]
        if reply is None:
            text = texts.running if calls[position]["id"] in running else texts.missing
            yield _Item(item.index, tool_result(call_id, text), call_id)
            continue
        if reply.late or reply.at < before:
            yield MessageRepair(
                kind="moved_result", index=items[reply.at].index, detail=f"Put behind the call {call_id!r}."
            )
        before = max(before, reply.at)
        same = reply.message.get("tool_call_id") == call_id
        message = reply.message if same else cast(Message, {**reply.message, "tool_call_id": call_id})
        yield _Item(items[reply.at].index, message)


def _with_ids(item: _Item, wire_ids: Sequence[str]) -> Iterator[_Item | MessageRepair]:
    calls = tool_calls_of(item.message)
    renamed_pairs = [(call["id"], new) for call, new in zip(calls, wire_ids, strict=True) if call["id"] != new]
    for old, new in renamed_pairs:
        yield MessageRepair(
            kind="call_id", index=item.index, detail=f"The id {old!r} is taken or empty; it is now {new!r}."
        )
    if renamed_pairs:
        changed_fields = [{**call, "id": new} for call, new in zip(calls, wire_ids, strict=True)]
        item = _Item(item.index, cast(Message, {**item.message, "tool_calls": changed_fields}))
    yield item


def _leave_open(items: Sequence[_Item]) -> Iterator[_Item | MessageRepair]:
    """Takes back what stands in for results that may still come: those of the last message."""
    last = max((at for at, item in enumerate(items) if not is_tool_result(item.message)), default=-1)
    for at, item in enumerate(items):
        if item.stands_in_for is None:
            yield item
        elif at < last:
            detail = f"The call {item.stands_in_for!r} has none."
            yield MessageRepair(kind="missing_result", index=item.index, detail=detail)
            yield item


def _settle_system(items: Sequence[_Item], texts: RepairTexts) -> Iterator[_Item | MessageRepair]:
    """Lets system messages stand at the beginning only."""
    has_begun = False
    for item in items:
        system = is_system(item.message)
        has_begun = has_begun or not system
        if has_begun and system:
            yield MessageRepair(kind="mid_system", index=item.index, detail="It stood behind other messages.")
            item = _Item(item.index, _as_user(texts.system, item.message))
        yield item


def _place_thinking(items: Sequence[_Item]) -> Iterator[_Item | MessageRepair]:
    """Lets thinking stand at the beginning of an assistant's turn only.

    Anthropic reads neighbouring assistant messages as one turn, so thinking of the second would stand in its middle.
    """
    before = ""
    for item in items:
        role = item.message["role"]
        if "thinking_blocks" in item.message and (role != "assistant" or before == "assistant"):
            yield MessageRepair(
                kind="thinking", index=item.index, detail="It stood where no turn of the assistant begins."
            )
            item = _Item(item.index, without_thinking(item.message))
        before = role
        yield item


def _begin_with_user(items: Sequence[_Item], texts: RepairTexts) -> Iterator[_Item | MessageRepair]:
    has_begun = False
    for item in items:
        if not has_begun and not is_system(item.message):
            has_begun = True
            if item.message["role"] != "user":
                yield MessageRepair(kind="first_user", index=item.index, detail=f"The {item.message['role']} began.")
                yield _Item(item.index, user_message(texts.first_user))
        yield item


def _answer_results(items: Sequence[_Item], texts: RepairTexts) -> Iterator[_Item | MessageRepair]:
    before = ""
    for item in items:
        if before == "tool" and item.message["role"] not in ("tool", "assistant"):
            yield MessageRepair(kind="after_result", index=item.index, detail="The user spoke right behind a result.")
            yield _Item(item.index, {"role": "assistant", "content": texts.after_result})
        before = item.message["role"]
        yield item


def _as_user(label: str, message: Message) -> Message:
    """A message as the user's text below a label; its media stay."""
    content = message.get("content")
    if isinstance(content, list):
        return {"role": "user", "content": [text_part(label), *parts_of(message)]}
    return user_message(f"{label}\n{content or ''}")


def to_wire(
    messages: Sequence[Message],
    wire: Literal["openai", "anthropic", "mistral"],
    *,
    pending: Collection[str] = (),
    language: str = "en",
    model: str | None = None,
) -> tuple[list[dict[str, object]], str | list[Part] | None]:
    """Messages of a view in the shape of a provider, and the system prompt that stands beside them at Anthropic.

    Half a surrogate pair, which no provider can be sent, is U+FFFD there.

    Args:
        messages: The view.
        wire: The shape.
        pending: See `repair_messages`.
        language: See `repair_messages`.
        model: The model that is asked; some want what others refuse.
    """
    messages = [with_texts(message, _encodable) if _is_torn(message) else message for message in messages]
    if wire == "anthropic":
        system, turns = to_anthropic(messages)
        most = provider_rules(wire, model).cache_marks
        ahead, marked_fields = with_marks_taken(system if isinstance(system, list) else [], turns, most)
        return marked_fields, ahead or system
    if wire == "mistral":
        return to_mistral(repair_messages(messages, pending=pending, rules=MISTRAL, language=language).messages), None
    return to_openai(messages, model=model), None


def close_calls(
    messages: Sequence[Message], *, pending: Collection[str] = (), language: str = "en"
) -> Sequence[Message]:
    """Messages whose last calls all have a result: one that is not there is told as interrupted, or as running.

    For what a model is asked with now; a result that comes later takes that place.

    Args:
        messages: A list that is valid but for the results that its last message waits for.
        pending: See `repair_messages`.
        language: See `repair_messages`.
    """
    at = len(messages) - 1
    while at >= 0 and is_tool_result(messages[at]):
        at -= 1
    calls = tool_calls_of(messages[at]) if at >= 0 else []
    results = {message.get("tool_call_id"): message for message in messages[at + 1 :]}
    if all(call["id"] in results for call in calls):
        return messages
    texts = REPAIR_TEXTS.get(language, REPAIR_TEXTS["en"])
    filled_messages = [
        results.get(call["id"]) or tool_result(call["id"], texts.running if call["id"] in pending else texts.missing)
        for call in calls
    ]
    return [*messages[: at + 1], *filled_messages]


def _is_torn(message: Message) -> bool:
    """True if a message holds half a surrogate pair."""
    try:
        json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _encodable(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
