"""What providers refuse in a list of chat messages, each rule a function of its own.

`problems` judges a list as a provider gets it: for OpenAI what `to_openai` gives; for Anthropic the messages that
`to_anthropic` gives; for Mistral what `to_mistral` gives; for Gemini what `to_litellm` gives, turned into Gemini's
contents as litellm does (neighbours of a role are one turn, results of calls are a turn of their own). Nobody can ask
the providers in a test, so where documentation and public error messages differ, the stricter one counts.

A list is judged as what a conversation holds before the next request: its last calls may still wait for their
results. With `ready`, what is refused at the end of a request counts too.

Left out on purpose: limits of size, and what depends on a model or on tools given beside the messages.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

from memory_service.messages.providers import PROVIDERS as RULES_OF
from memory_service.messages.shapes import Message
from memory_service.messages.writing import _Dialect, _openai_message

Provider = Literal["openai", "anthropic", "gemini", "mistral"]
Wire = Mapping[str, Any]
Rule = Callable[[Sequence[Wire]], Iterator[str]]

# litellm knows for itself what its provider takes.
_LITELLM = _Dialect(
    id_of=str,
    extensions=True,
    rules=replace(RULES_OF["gemini"], images=RULES_OF["gemini"].images | RULES_OF["openai"].images),
)

PROVIDERS: tuple[Provider, ...] = ("openai", "anthropic", "gemini", "mistral")


def to_litellm(messages: Sequence[Message]) -> list[dict[str, object]]:
    """Messages in OpenAI's shape with what litellm translates for other providers.

    Thinking, cache marks, ids of any form (some hold Gemini's signatures), images in results, and what else a provider
    has put on a call stay; a refusal, which litellm leaves out, goes as text.
    """
    return [_openai_message(message, _LITELLM) for message in messages]


def problems(messages: Sequence[Wire], provider: Provider, *, ready: bool = False) -> list[str]:
    """Everything that a provider would refuse, as `rule: what and where`."""
    rules = RULES[provider] + (READY[provider] if ready else ())
    return [f"{rule.__name__}: {found}" for rule in rules for found in rule(messages)]


def calls_of(message: Wire) -> list[Wire]:
    return message.get("tool_calls") or [] if message["role"] == "assistant" else []


def texts_of(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if part["type"] == "text"] if isinstance(content, list) else []


def results_behind(messages: Sequence[Wire], at: int) -> list[Wire]:
    end = at + 1
    while end < len(messages) and messages[end]["role"] == "tool":
        end += 1
    return list(messages[at + 1 : end])


# -- OpenAI's shape -----------------------------------------------------------------------------------------------


def roles_are_known(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: OpenAI API reference, "Create chat completion", `messages`."""
    for at, message in enumerate(messages):
        if message["role"] not in ("system", "developer", "user", "assistant", "tool"):
            yield f"{at}: {message['role']}"


def only_documented_keys(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: OpenAI API reference, "Create chat completion"; keys of a message by role."""
    known = {"role", "content", "name", "refusal", "audio", "tool_calls", "tool_call_id", "function_call"}
    for at, message in enumerate(messages):
        yield from (f"{at}: {key}" for key in message if key not in known)
        for call in calls_of(message):
            yield from (f"{at}: {key}" for key in call if key not in {"id", "type", "function"})


def content_is_there(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: OpenAI API reference: `content` is required but for an assistant that calls or refuses; errors
    "Invalid value for 'content': expected a string, got null" and "[] is too short".
    """
    for at, message in enumerate(messages):
        content = message.get("content")
        may_miss = message["role"] == "assistant" and any(
            message.get(key) for key in ("tool_calls", "refusal", "audio", "function_call")
        )
        if content == [] or (content is None and not may_miss):
            yield f"{at}: {content!r}"


def parts_fit_their_role(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: OpenAI API reference: only users send images, audio and files; tools and systems text."""
    fit = {"user": {"text", "image_url", "input_audio", "file"}, "assistant": {"text", "refusal"}}
    for at, message in enumerate(messages):
        content = message.get("content")
        for part in content if isinstance(content, list) else []:
            if part["type"] not in fit.get(message["role"], {"text"}):
                yield f"{at}: {part['type']}"


def parts_fit_mistral(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Mistral API reference, "ContentChunk"."""
    fit = {"user": {"text", "image_url", "document_url", "input_audio", "file"}, "assistant": {"text", "thinking"}}
    for at, message in enumerate(messages):
        content = message.get("content")
        for part in content if isinstance(content, list) else []:
            if part["type"] not in fit.get(message["role"], {"text"}):
                yield f"{at}: {part['type']}"


def calls_are_answered_at_once(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: OpenAI API, error "An assistant message with 'tool_calls' must be followed by tool messages"."""
    for at, message in enumerate(messages):
        results = results_behind(messages, at)
        answered = {result.get("tool_call_id") for result in results}
        missing = [call["id"] for call in calls_of(message) if call["id"] not in answered]
        if missing and at + len(results) + 1 < len(messages):
            yield f"{at}: {missing}"


def results_follow_their_call(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: OpenAI API, error "messages with role 'tool' must be a response to a preceeding message"."""
    asked: set[str] = set()
    for at, message in enumerate(messages):
        if message["role"] != "tool":
            asked = {call["id"] for call in calls_of(message)}
        elif message.get("tool_call_id") not in asked:
            yield f"{at}: {message.get('tool_call_id')}"


def results_keep_the_order_of_calls(messages: Sequence[Wire]) -> Iterator[str]:
    """No provider's rule for ids, but Gemini's without them: responses are matched to calls by their order.

    Source: Gemini API, "Function calling", parallel calls.
    """
    for at, message in enumerate(messages):
        order = [call["id"] for call in calls_of(message)]
        got = [result.get("tool_call_id") for result in results_behind(messages, at)] if order else []
        if got != [call_id for call_id in order if call_id in got]:
            yield f"{at}: {got}"


def one_result_for_each_call(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic API, error "each tool_use must have a single result"; Gemini API, "number of function
    response parts"; OpenAI accepts the pair but documents one.
    """
    counts = Counter(message.get("tool_call_id") for message in messages if message["role"] == "tool")
    yield from (f"{call_id}: {count}" for call_id, count in counts.items() if count > 1)


def call_ids_are_unique(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic API, error "`tool_use` ids must be unique"; kept for all, since histories move."""
    counts = Counter(call["id"] for message in messages for call in calls_of(message))
    yield from (f"{call_id}: {count}" for call_id, count in counts.items() if count > 1 or not call_id)


def ids_are_short(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: OpenAI API, error "string too long. Expected a string with maximum length 40"."""
    for at, message in enumerate(messages):
        ids = [call["id"] for call in calls_of(message)] + [message.get("tool_call_id", "")]
        yield from (f"{at}: {call_id}" for call_id in ids if len(call_id) > 40)


def arguments_are_json_objects(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: OpenAI, "Function calling": arguments are JSON; Gemini and Anthropic read them as an object."""
    for at, message in enumerate(messages):
        for call in calls_of(message):
            try:
                valid = isinstance(json.loads(call["function"]["arguments"]), dict)
            except ValueError:
                valid = False
            if not valid:
                yield f"{at}: {call['id']}"


def names_fit(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: OpenAI API reference, `function.name`; mistral-common, `_validate_function_call`."""
    for at, message in enumerate(messages):
        for call in calls_of(message):
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"]):
                yield f"{at}: {call['function']['name']}"


def systems_come_first(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Gemini API, `systemInstruction`, and Anthropic API, `system`: there is no such role behind them;
    mistral-common, `_validate_message_order`. OpenAI takes them anywhere, and is not asked.
    """
    begun = False
    for at, message in enumerate(messages):
        system = message["role"] in ("system", "developer")
        if begun and system:
            yield str(at)
        begun = begun or not system


def user_comes_first(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Gemini API, error "function call turn comes immediately after a user turn"; Anthropic API, "first
    message must use the user role". OpenAI takes any, but templates of open models behind its API do not.
    """
    first = next((message["role"] for message in messages if message["role"] not in ("system", "developer")), "user")
    if first != "user":
        yield first


def no_open_calls(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: as `calls_are_answered_at_once`."""
    yield from calls_are_answered_at_once([*messages, {"role": "user", "content": "."}])


# -- Gemini -------------------------------------------------------------------------------------------------------

Turn = tuple[str, list[Wire]]


def gemini_turns(messages: Sequence[Wire]) -> list[Turn]:
    """Contents as litellm makes them. Source: litellm, `_gemini_convert_messages_with_history`."""
    roles = {"assistant": "model", "tool": "function"}
    turns: list[Turn] = []
    for message in messages:
        if message["role"] in ("system", "developer"):
            continue
        role = roles.get(message["role"], "user")
        if turns and turns[-1][0] == role:
            turns[-1][1].append(message)
        else:
            turns.append((role, [message]))
    return turns


def call_turns_follow_user_or_results(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Gemini API, error "Please ensure that function call turn comes immediately after a user turn or
    after a function response turn".
    """
    turns = [("", []), *gemini_turns(messages)]
    for (before, _), (role, held) in pairwise(turns):
        if role == "model" and any(map(calls_of, held)) and before not in ("user", "function"):
            yield f"after {before!r}"


def response_turns_answer_call_turns(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Gemini API, errors "function response turn comes immediately after a function call turn" and "the
    number of function response parts is equal to the number of function call parts". The last turn may still wait.
    """
    turns = gemini_turns(messages)
    last = len(turns) - 1
    for at, (role, held) in enumerate(turns):
        calls = sum(len(calls_of(message)) for message in held)
        behind = turns[at + 1] if at < last else ("", [])
        responses = len(behind[1]) if behind[0] == "function" else 0
        waits = at >= last - (behind[0] == "function")
        if role == "model" and responses != calls and not (waits and responses < calls):
            yield f"turn {at}: {calls} calls, {responses} responses"


def turns_have_parts(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Gemini API, error "contents.parts must not be empty"; litellm leaves out empty texts."""
    for at, (role, held) in enumerate(gemini_turns(messages)):
        said = any(any(texts_of(message.get("content"))) or calls_of(message) for message in held)
        shown = any(
            part["type"] != "text" for message in held for part in message["content"] or [] if isinstance(part, dict)
        )
        if role != "function" and not said and not shown:
            yield f"turn {at}"


def last_turn_is_not_the_models(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Gemini API: a request ends with the user's turn or with function responses."""
    turns = gemini_turns(messages)
    if not turns or turns[-1][0] == "model":
        yield "model"


# -- Mistral ------------------------------------------------------------------------------------------------------


def mistral_order(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: mistral-common, `_validate_message_order`; API error 3230 "Unexpected role 'user' after role 'tool'"."""
    may_follow = {
        "system": {"user", "assistant", "system"},
        "user": {"assistant", "system", "user"},
        "assistant": {"assistant", "user", "tool"},
        "tool": {"assistant", "tool"},
    }
    roles = [message["role"].replace("developer", "system") for message in messages]
    for at, (before, role) in enumerate(pairwise(roles)):
        if role not in may_follow[before]:
            yield f"{at + 1}: {role} after {before}"


def mistral_counts(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: mistral-common, `_validate_tool_calls_followed_by_tool_messages`; API error "Not the same number of
    function calls and responses". The last calls may still wait.
    """
    due = 0
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            due -= 1
        elif due:
            yield f"{at}: {due}"
        if message["role"] != "tool":
            due = len(calls_of(message))
    if due < 0:
        yield f"end: {due}"


def mistral_ids(messages: Sequence[Wire]) -> Iterator[str]:
    """A matter of writing, not of repair: ids stay in the log as they came, `to_mistral` derives new ones.

    Source: mistral-common, `MistralRequestValidatorV3`; API error 3280 "Tool call id was ... but must be a-z, A-Z,
    0-9, with a length of 9".
    """
    for at, message in enumerate(messages):
        ids = [call["id"] for call in calls_of(message)]
        ids += [message["tool_call_id"]] if message["role"] == "tool" else []
        yield from (f"{at}: {call_id}" for call_id in ids if not re.fullmatch(r"[a-zA-Z0-9]{9}", call_id))


def mistral_assistants_say_something(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Mistral API, error "Assistant message must have either content or tool_calls"; both at once is refused
    by the oldest tokenizers only, see mistral-common, `_allow_tool_call_and_content`.
    """
    for at, message in enumerate(messages):
        if message["role"] == "assistant" and not calls_of(message) and not any(texts_of(message.get("content"))):
            yield str(at)


def mistral_last_role(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: mistral-common, `_validate_last_message`; "Expected last role User or Tool"."""
    if not messages or messages[-1]["role"] not in ("user", "tool"):
        yield messages[-1]["role"] if messages else "none"


# -- Anthropic's shape --------------------------------------------------------------------------------------------


def blocks_of(message: Wire, kind: str) -> list[Wire]:
    content = message["content"]
    return [block for block in content if block["type"] == kind] if isinstance(content, list) else []


def turns_alternate(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic API reference, `messages`: user and assistant in turn. The API joins neighbours; Bedrock
    refuses them ("roles must alternate between user and assistant").
    """
    for at, (before, message) in enumerate(pairwise(messages)):
        if before["role"] == message["role"]:
            yield str(at + 1)
    yield from (f"role {message['role']}" for message in messages if message["role"] not in ("user", "assistant"))


def anthropic_user_comes_first(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic API, error "messages: first message must use the "user" role"."""
    if messages and messages[0]["role"] != "user":
        yield messages[0]["role"]


def anthropic_content_is_there(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic API, errors "all messages must have non-empty content" and "text content blocks must contain
    non-whitespace text".
    """
    for at, message in enumerate(messages):
        content = message["content"]
        nested = [block.get("content") for block in blocks_of(message, "tool_result")]
        if not content or not all(text.strip() for held in (content, *nested) for text in texts_of(held)):
            yield str(at)


def tool_uses_are_answered_next(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic API, error "`tool_use` ids were found without `tool_result` blocks immediately after". The
    last turn may still wait, also when some of its results are there.
    """
    for at, message in enumerate(messages):
        asked = [block["id"] for block in blocks_of(message, "tool_use")]
        behind = messages[at + 1] if at + 1 < len(messages) else {"content": []}
        missing = set(asked) - {block["tool_use_id"] for block in blocks_of(behind, "tool_result")}
        only_results = all(block["type"] == "tool_result" for block in behind["content"])
        if missing and not (at + 2 >= len(messages) and only_results):
            yield f"{at}: {sorted(missing)}"


def tool_results_answer_the_turn_before(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic API, error "unexpected `tool_use_id` found in `tool_result` blocks ... Each `tool_result`
    block must have a corresponding `tool_use` block in the previous message"; and one result for each.
    """
    for at, message in enumerate(messages):
        asked = [block["id"] for block in blocks_of(messages[at - 1], "tool_use")] if at else []
        counts = Counter(block["tool_use_id"] for block in blocks_of(message, "tool_result"))
        yield from (f"{at}: {found}" for found, count in counts.items() if found not in asked or count > 1)


def tool_results_come_first(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic, "Implement tool use": in a user message, results come before all text."""
    for at, message in enumerate(messages):
        kinds = [block["type"] == "tool_result" for block in message["content"]]
        if kinds != sorted(kinds, reverse=True):
            yield str(at)


def tool_uses_come_last(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic API: a `tool_use` with text behind it counts as one "without `tool_result` immediately
    after".
    """
    for at, message in enumerate(messages):
        kinds = [block["type"] == "tool_use" for block in message["content"]]
        if kinds != sorted(kinds):
            yield str(at)


def tool_use_ids_fit(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic API, errors "String should match pattern '^[a-zA-Z0-9_-]+$'", "ids must be unique"."""
    ids = [block["id"] for message in messages for block in blocks_of(message, "tool_use")]
    yield from (f"{found}: {count}" for found, count in Counter(ids).items() if count > 1)
    yield from (found for found in ids if not re.fullmatch(r"[a-zA-Z0-9_-]+", found))


def tool_inputs_are_objects(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic API, error "tool_use.input: Input should be a valid dictionary"."""
    for at, message in enumerate(messages):
        yield from (
            f"{at}: {block['id']}" for block in blocks_of(message, "tool_use") if not isinstance(block["input"], dict)
        )


def thinking_begins_a_turn(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic, "Extended thinking": blocks begin an assistant turn, unchanged and signed; error "The final
    block in an assistant message cannot be `thinking`". Thinking between contents is taken as the model wrote it,
    so it only has to be in a turn that begins with thinking.
    """
    kinds = ("thinking", "redacted_thinking")
    for at, message in enumerate(messages):
        blocks = message["content"]
        thinks = [block["type"] in kinds for block in blocks]
        if any(thinks) and (message["role"] != "assistant" or not thinks[0] or thinks[-1]):
            yield f"{at}: place"
        if any(
            think and not (block.get("signature") or block.get("data"))
            for think, block in zip(thinks, blocks, strict=True)
        ):
            yield f"{at}: not signed"


def anthropic_blocks_fit_their_role(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic API reference, content blocks of the parameter `messages`."""
    fit = {
        "user": {"text", "image", "document", "search_result", "tool_result", "container_upload"},
        "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
    }
    for at, message in enumerate(messages):
        yield from (
            f"{at}: {block['type']}" for block in message["content"] if block["type"] not in fit[message["role"]]
        )


def anthropic_request_is_complete(messages: Sequence[Wire]) -> Iterator[str]:
    """Source: Anthropic API: at least one message; an end on an assistant's turn is a prefill, which newer models
    refuse; calls as in `tool_uses_are_answered_next`.
    """
    if not messages or messages[-1]["role"] == "assistant":
        yield "the last turn is not the user's"
    yield from tool_uses_are_answered_next(
        [*messages, {"role": "assistant", "content": []}, {"role": "user", "content": []}]
    )


_ORDER: tuple[Rule, ...] = (
    roles_are_known,
    content_is_there,
    calls_are_answered_at_once,
    results_follow_their_call,
    results_keep_the_order_of_calls,
    one_result_for_each_call,
    call_ids_are_unique,
    arguments_are_json_objects,
    names_fit,
    user_comes_first,
)
_KEYS: tuple[Rule, ...] = (only_documented_keys, parts_fit_their_role, ids_are_short)
_GEMINI: tuple[Rule, ...] = (
    systems_come_first,
    call_turns_follow_user_or_results,
    response_turns_answer_call_turns,
    turns_have_parts,
)
_MISTRAL: tuple[Rule, ...] = (
    systems_come_first,
    mistral_order,
    mistral_counts,
    mistral_ids,
    mistral_assistants_say_something,
)
RULES: dict[Provider, tuple[Rule, ...]] = {
    "openai": _ORDER + _KEYS,
    "gemini": _ORDER + _GEMINI,  # keys and ids are litellm's matter
    "mistral": (*_ORDER, only_documented_keys, ids_are_short, parts_fit_mistral, *_MISTRAL),
    "anthropic": (
        turns_alternate,
        anthropic_user_comes_first,
        anthropic_content_is_there,
        anthropic_blocks_fit_their_role,
        tool_uses_are_answered_next,
        tool_results_answer_the_turn_before,
        tool_results_come_first,
        tool_uses_come_last,
        tool_use_ids_fit,
        tool_inputs_are_objects,
        thinking_begins_a_turn,
    ),
}
READY: dict[Provider, tuple[Rule, ...]] = {
    "openai": (no_open_calls,),
    "gemini": (no_open_calls, last_turn_is_not_the_models),
    "mistral": (no_open_calls, mistral_last_role),
    "anthropic": (anthropic_request_is_complete,),
}
