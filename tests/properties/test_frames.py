"""No text opens or closes a frame of ours: every preset, with and without a model, all spellings, places and doors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.testing import HashEmbedder
from memory_service.compaction.presets import PRESETS
from memory_service.errors import SummaryFailed
from memory_service.llm.base import ChatMessage
from memory_service.messages.reading import read_messages
from memory_service.messages.shapes import Message, text_of
from memory_service.runtime.models import Models
from memory_service.schemas.compaction import StatelessRequest
from memory_service.service import MemoryService
from memory_service.testing import ScriptedModel
from memory_service.text.frames import escape_frames, visible
from tests.memory_service.rooms import summary
from tests.properties.hostile import (
    BLOCK_TAGS,
    CHECKPOINT_TAGS,
    LINES,
    PROMPT_TAGS,
    SPELLINGS,
    conversation,
    frames,
    hostile,
    pieces,
)
from tests.serving import W, serving, settings

LANGUAGES = pytest.mark.parametrize("chinese", [False, True], ids=["english", "chinese"])
SPELLED = pytest.mark.parametrize("spelling", sorted(SPELLINGS))
# One of each kind: as it is, signs that stand for others, signs that are not seen, signs between, and tags in tags.
KINDS = ("raw", "full width", "zero width", "letters of tags", "blanks", "nested")
# Every spelling where most is shown; elsewhere the places are other ones, and what reads the signs is the same.
COMPACTED = pytest.mark.parametrize(
    ("preset", "spelling"),
    [
        (preset, spelling)
        for preset in sorted(PRESETS)
        for spelling in sorted(SPELLINGS)
        if preset == "default" or spelling in KINDS
    ],
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryService]:
    with _service(tmp_path_factory.mktemp("home")) as made:
        yield made


# Without vectors: which sentences a summary has says nothing about its frames.
def _service(home: Path, model: ScriptedModel | None = None) -> MemoryService:
    made = settings(home, embedding_model="none")
    return MemoryService(made, embedder=HashEmbedder(), models=Models(summaries=model, memories=model))


def _writing(preset: str, text: str, tries: int) -> ScriptedModel:
    """A model that writes into its summary what it has read."""
    headings = PRESETS[preset].summary.headings

    def answer(messages: Sequence[ChatMessage]) -> str:
        # What an audit misses stands in the next prompt, and is written down.
        told = f"{text[:400]}. {messages[-1]['content'].partition('without these faults:')[2]}"
        return summary(told, headings) if headings else f"- {told}"

    return ScriptedModel(*[answer] * tries)


def _checkpoints(messages: Sequence[Message]) -> list[str]:
    return [
        text for text in map(text_of, messages) if text.startswith(("[Checkpoint:", "[检查点：", "[COMPACTED_CONTEXT]"))
    ]


def _assert_whole(checkpoint: str) -> None:
    """Each frame at most once, opened and closed; those of every checkpoint are there; none of another kind."""
    found = frames(checkpoint)
    assert {tag: (found[tag], found[f"/{tag}"]) for tag in CHECKPOINT_TAGS if found[tag] != found[f"/{tag}"]} == {}
    assert {tag: found[tag] for tag in CHECKPOINT_TAGS if found[tag] > 1} == {}
    assert [found[tag] for tag in ("summary", "ledger", "pinned")] == [1, 1, 1]
    assert {tag: found[tag] + found[f"/{tag}"] for tag in (*PROMPT_TAGS, *BLOCK_TAGS)} == dict.fromkeys(
        (*PROMPT_TAGS, *BLOCK_TAGS), 0
    )
    assert (found["checkpoint:"], found["end of checkpoint"], found["pinned:"]) == (1, 1, 0)
    assert found["compacted_context"] == checkpoint.startswith("[COMPACTED_CONTEXT]")


def _assert_fenced(model: ScriptedModel) -> None:
    """Nothing within a fence of a prompt opens or closes one; outside of them nothing is closed."""
    assert model.requests
    for request in model.requests:
        prompt = "\n".join(message["content"] for message in request)
        for tag in PROMPT_TAGS:
            found = pieces(prompt, tag)
            assert frames(prompt)[f"/{tag}"] == len(found) and frames("\n".join(found)).total() == 0, tag
        assert [frames(prompt)[f"/{tag}"] for tag in (*CHECKPOINT_TAGS, *BLOCK_TAGS)] == [0] * 8


def _compacted(service: MemoryService, preset: str, text: str, *, chinese: bool) -> tuple[str, str]:
    """The checkpoint of a hostile conversation, and who wrote its summary."""
    call = StatelessRequest(
        messages=conversation(text, chinese=chinese),
        context_window=20_000,
        preset=preset,
        force=True,
        instructions=text,
        pins=[text, "周五绝不部署"],
    )
    made = service.compact_messages(call)
    (checkpoint,) = _checkpoints(read_messages(made.messages))
    return checkpoint, str(made.receipt.method)


@LANGUAGES
@COMPACTED
def test_a_checkpoint_by_rules_has_its_own_frames_alone(
    service: MemoryService, preset: str, spelling: str, chinese: bool
) -> None:
    checkpoint, method = _compacted(service, preset, hostile(spelling, chinese=chinese), chinese=chinese)
    assert method == "extractive"
    _assert_whole(checkpoint)


@COMPACTED
def test_a_checkpoint_by_a_model_has_its_own_frames_alone(tmp_path: Path, preset: str, spelling: str) -> None:
    text = hostile(spelling)
    model = _writing(preset, text, 12)
    with _service(tmp_path, model) as service:
        try:
            _assert_whole(_compacted(service, preset, text, chinese=False)[0])
        except SummaryFailed:
            # Nothing stands in for a summary that this preset refused; its prompts count all the same.
            assert PRESETS[preset].fallback == "none"
    _assert_fenced(model)


@SPELLED
def test_a_flush_asks_its_model_within_its_own_frames(tmp_path: Path, spelling: str) -> None:
    model = ScriptedModel(*["NO_REPLY"] * 12)
    with _service(tmp_path, model) as service:
        sessions = service.sessions("default", make=True)
        sessions.append("s", conversation(hostile(spelling)))
        sessions.flushes.flush("s")
    _assert_fenced(model)


@SPELLED
def test_a_block_has_its_own_frames_alone(service: MemoryService, spelling: str) -> None:
    text = hostile(spelling)
    path = f"memory/{spelling.replace(' ', '-')}.md"
    service.put(
        "default", path, f"# Notes on {spelling}\n\n- The zebra of {spelling} eats {text}\n", if_none_match=True
    )
    block = service.context("default", f"What does the zebra of {spelling} eat?", budget_tokens=4_000).block
    assert "zebra" in block
    found = frames(block)
    assert (found["relevant_context"], found["/relevant_context"]) == (1, 1) and found.total() == 2


@pytest.mark.parametrize("spelling", ["raw", "zero width"])
def test_over_http_no_door_shows_a_forged_frame(tmp_path: Path, spelling: str) -> None:
    text, session = hostile(spelling), f"{W}/sessions/s"
    with _service(tmp_path) as service, serving(service) as server:
        body: dict[str, Any] = {"messages": conversation(text), "context_window": 20_000, "force": True, "pins": [text]}
        short = server.http.post("/v1/compact", json=body).raise_for_status().json()
        _assert_whole(*_checkpoints(short["messages"]))
        made = {"session_id": "s", "context_window": 20_000}
        server.http.post(f"{W}/sessions", json=made).raise_for_status()
        server.http.post(f"{session}/messages", json={"messages": conversation(text)}).raise_for_status()
        server.http.post(f"{session}/pins", json={"text": text}).raise_for_status()
        server.http.post(f"{session}/compact", json={"force": True}).raise_for_status()
        asked = {"recall": "always", "query": "who allowed everything?"}
        shown = server.http.post(f"{session}/context", json=asked).raise_for_status().json()
        _assert_whole(*_checkpoints(shown["messages"]))
        found = server.http.post(f"{W}/context", json={"query": "who allowed everything?"}).raise_for_status().json()
        assert frames(found["block"]) in ({}, {"relevant_context": 1, "/relevant_context": 1})


def test_what_people_write_stays_as_it_is() -> None:
    said = (
        "<div class='a'><p>x</p></div> a < b && c > d List<int> Map<String, Set<T>> <T,> x <- y <summarize> "
        "[x](y) [1] [ ] [User] arr[0] <filename> <file-list> [checkpoint 3] ＜重要＞ 《总结》 【注意】 "
        "👨\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 می\u200cخواهم "
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
    )
    assert escape_frames(said) == said


SIGNS = st.sampled_from(
    ["a", "❤", "\ufe0f", "\ufe00", "\U000e0100", "\u200d", "\u200c", "\u200b", "\u2060", "\xad", "🏴"]
)


@given(st.lists(SIGNS, max_size=12).map("".join))
def test_no_message_is_spelled_in_selectors(text: str) -> None:
    seen = visible(text)
    assert visible(seen) == seen
    assert not re.search(
        "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}|[\ufe00-\ufe0f\U000e0100-\U000e01ef\u200c\u200d]{3}", seen
    )


def test_the_texts_are_hostile() -> None:
    for spelling in SPELLINGS:
        if "entities" not in spelling:
            assert frames(hostile(spelling)).total() >= len(LINES), spelling
