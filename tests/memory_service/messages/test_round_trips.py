from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.messages.reading import read_messages
from memory_service.messages.writing import to_openai
from memory_service.messages.writing_anthropic import to_anthropic
from tests.memory_service.messages.shared import IMAGE_URL, PDF, PNG, REDACTED, THINKING, text

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
said = words.filter(lambda word: bool(word.strip()))
names = st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True)
json_objects = st.dictionaries(
    words, st.recursive(st.none() | st.booleans() | st.integers() | words, st.lists), max_size=3
)
call_ids = st.from_regex(r"[a-zA-Z0-9_-]{1,40}", fullmatch=True)


def built(required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(required, optional=optional)


openai_text = built({"type": st.just("text"), "text": words})
openai_media = st.sampled_from(
    [
        IMAGE_URL,
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"file_id": "f"}},
    ]
)
openai_calls = st.builds(
    lambda call_id, name, given: {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(given, separators=(",", ":"))},
    },
    call_ids,
    names,
    json_objects,
)
openai_messages = st.one_of(
    built(
        {"role": st.sampled_from(["system", "developer"]), "content": words | st.lists(openai_text, min_size=1)},
        name=names,
    ),
    built({"role": st.just("user"), "content": words | st.lists(openai_text | openai_media, min_size=1)}, name=names),
    built(
        {"role": st.just("assistant"), "content": st.none() | words, "tool_calls": st.lists(openai_calls, min_size=1)},
        refusal=st.none(),
        annotations=st.just([]),
    ),
    built(
        {"role": st.just("assistant"), "content": words, "refusal": st.none() | words, "audio": st.just({"id": "a"})}
    ),
    built(
        {"role": st.just("tool"), "tool_call_id": call_ids, "content": st.text() | st.lists(openai_text, min_size=1)}
    ),
)


@settings(max_examples=70)
@given(st.lists(openai_messages, max_size=6))
def test_from_openai_to_openai_nothing_changes(raw: list[dict[str, object]]) -> None:
    before = copy.deepcopy(raw)
    assert to_openai(read_messages(raw)) == raw == before


thinking_blocks = st.sampled_from([THINKING, REDACTED])
anthropic_text = built({"type": st.just("text"), "text": said}, cache_control=st.just({"type": "ephemeral"}))
anthropic_uses = st.builds(
    lambda call_id, name, given: {"type": "tool_use", "id": call_id, "name": name, "input": given},
    call_ids,
    names,
    json_objects,
)
anthropic_media = st.sampled_from(
    [
        {"type": "image", "source": PNG},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "document", "source": PDF, "title": "Plan", "citations": {"enabled": True}},
        {"type": "search_result", "source": "a", "title": "A", "content": [{"type": "text", "text": "found"}]},
    ]
)
results_of_tools = built(
    {"type": st.just("tool_result"), "tool_use_id": call_ids},
    content=said | st.lists(anthropic_text | anthropic_media, min_size=1),
    is_error=st.booleans(),
    cache_control=st.just({"type": "ephemeral"}),
)


@st.composite
def anthropic_conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 3))):
        results: list[Any] = draw(st.lists(results_of_tools, max_size=2))
        spoken: list[Any] = draw(st.lists(anthropic_text | anthropic_media, max_size=2))
        made.append({"role": "user", "content": [*results, *spoken] or "go"})
        contents: list[Any] = draw(st.lists(st.one_of(anthropic_text, thinking_blocks), max_size=4))
        uses: list[Any] = draw(st.lists(anthropic_uses, max_size=2))
        if any(block["type"] != "text" for block in contents):  # then Anthropic wants it to begin and not to end it
            contents = [THINKING, *contents, text("so")]
        made.append({"role": "assistant", "content": [*contents, *uses] or "well"})
    return made


def in_blocks(raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with every string as one text block."""
    return [{**message, "content": [*map(result_in_blocks, as_blocks(message["content"]))]} for message in raw]


def as_blocks(content: Any) -> list[Any]:
    return [text(content)] if isinstance(content, str) else content


def result_in_blocks(block: dict[str, Any]) -> dict[str, Any]:
    return (
        {**block, "content": as_blocks(block["content"])} if block.get("content") and "tool_use_id" in block else block
    )


@settings(max_examples=70)
@given(anthropic_conversations())
def test_from_anthropic_to_anthropic_nothing_is_lost(raw: list[dict[str, Any]]) -> None:
    before = copy.deepcopy(raw)
    system, written = to_anthropic(read_messages(raw))
    assert raw == before
    assert system == ""
    assert json.dumps(written, sort_keys=True) == json.dumps(in_blocks(raw), sort_keys=True)


@settings(max_examples=40)
@given(anthropic_conversations())
def test_the_inner_form_reads_as_itself(raw: list[dict[str, Any]]) -> None:
    inner = read_messages(raw)
    assert read_messages(json.loads(json.dumps(inner))) == inner
