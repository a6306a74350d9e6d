"""Answers that are put together from chunks, of packages that differ in what they leave out and repeat."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest

from memory_service import InvalidRequest, UpstreamFailed
from memory_service.client._chunks import GrowingAnswer


def grown(*chunks: object) -> GrowingAnswer:
    growing = GrowingAnswer()
    for chunk in chunks:
        growing.add(chunk)
    return growing


def delta(finish_reason: str | None = None, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": fields, "finish_reason": finish_reason}]}


def test_what_only_opens_a_stream_says_nothing() -> None:
    opening = [
        {"choices": [], "prompt_filter_results": []},
        delta(role="assistant", content="", tool_calls=None),
        {"type": "ping"},
        {"type": "message_start", "message": {"role": "assistant", "usage": {"input_tokens": 7}}},
        "",
    ]
    assert [grown(chunk).said for chunk in opening] == [False] * 5
    speaking = [delta(content="a"), delta(reasoning_content="hm"), delta(tool_calls=[{"index": 0}]), "a"]
    assert [grown(chunk).said for chunk in speaking] == [True] * 4


def test_calls_without_numbers_are_told_apart_by_their_ids() -> None:
    pieces = [
        {"id": "a", "type": "function", "function": {"name": "one", "arguments": '{"城市": '}},
        {"id": None, "function": {"arguments": '"柏林"}'}},
        {"id": "b", "type": "function", "function": {"name": "two", "arguments": "{}"}, "extra_content": {"sign": "x"}},
    ]
    answer = grown(*(delta(tool_calls=[piece]) for piece in pieces), delta("tool_calls")).answer()
    assert answer.message == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "one", "arguments": '{"城市": "柏林"}'}},
            {"id": "b", "type": "function", "function": {"name": "two", "arguments": "{}"}}
            | {"extra_content": {"sign": "x"}},
        ],
    }


def test_thinking_that_litellm_gives_in_pieces_is_joined_up_to_its_signature() -> None:
    pieces: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Hm "},
        {"type": "thinking", "thinking": "hm."},
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "thinking", "thinking": "Oh."},
    ]
    growing = grown(*(delta(thinking_blocks=[piece]) for piece in pieces), delta("stop", content="Yes."))
    assert growing.answer().message["thinking_blocks"] == [
        {"type": "thinking", "thinking": "Hm hm.", "signature": "c2ln"},
        {"type": "thinking", "thinking": "Oh."},
    ]
    assert growing.answer(whole=False).message == {"role": "assistant", "content": "Yes."}


def test_of_several_choices_the_first_one_counts() -> None:
    answer = grown(delta(content="a"), delta(content="b", index=1), delta("length"), delta("stop", index=1)).answer()
    assert (answer.text, answer.finish_reason) == ("a", "length")


def test_blocks_of_anthropic_grow_each_by_itself() -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "See "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"at": 1}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "图."}},
        {"type": "a_kind_of_tomorrow", "index": 0},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ": 1"}},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}},
    ]
    before = copy.deepcopy(events)
    growing = grown(*events)
    answer = growing.answer()
    assert answer.message["content"] == [
        {"type": "text", "text": "See 图.", "citations": [{"at": 1}]},
        # Cut in the middle of its arguments, as an answer in one piece is kept.
        {"type": "tool_use", "id": "t", "input": {"_raw": '{"a": 1'}},
    ]
    assert growing.answer(whole=False).text == "See 图." and not growing.answer(whole=False).message["content"][1:]
    assert answer.usage is not None and (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 9)
    assert answer.is_cut and growing.finished
    growing.add({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "!"}})
    assert events == before


def test_objects_are_read_as_mappings_are() -> None:
    made = SimpleNamespace(content="a", role="assistant", tool_calls=None)
    choice = SimpleNamespace(index=0, delta=made, finish_reason="stop")
    growing = grown(SimpleNamespace(choices=[choice], usage=SimpleNamespace(prompt_tokens=3)))
    assert growing.answer().message == {"role": "assistant", "content": "a"} and made.content == "a"


@pytest.mark.parametrize("chunk", [7, None, {"type": "response.output_text.delta", "delta": "a"}, b"a"])
def test_what_is_no_chunk_is_refused(chunk: object) -> None:
    with pytest.raises(InvalidRequest, match="Return the stream of the model"):
        grown(chunk)


@pytest.mark.parametrize("error", [{"message": "Overloaded"}, "Overloaded"])
def test_an_error_among_the_chunks_is_raised(error: object) -> None:
    with pytest.raises(UpstreamFailed, match="Overloaded"):
        grown(delta(content="a"), {"type": "error", "error": error})


def test_only_a_stream_of_texts_ends_without_a_reason() -> None:
    assert not grown("a", "b").lacks_end() and grown("a", "b").answer().text == "ab"
    assert grown().lacks_end() and grown(delta(content="a")).lacks_end()
    assert not grown(delta(content="a"), delta("stop")).lacks_end()
