"""From the service's values to the wire: whatever is made can be sent and read again."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from indexer import FileFailure, SyncReport
from indexer.testing import HashEmbedder
from memory_service import schemas
from memory_service.home import citation
from memory_service.memories.block import build_context
from memory_service.runtime import index_answers, search_answers
from memory_service.service import MemoryService
from tests.memory_service.memories.test_context import hit_lists
from tests.serving import settings
from tests.storages import write_documents

W = "default"
FUSIONS = ("evidence", "blend", "rrf")
SCORES = {name: {"__all__": {"score"}} for name in ("included", "omitted")}
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def round_trip(answer: BaseModel) -> None:
    assert type(answer).model_validate_json(answer.model_dump_json()) == answer


@pytest.mark.parametrize("fusion", FUSIONS)
@given(one=NUMBERS, other=NUMBERS)
def test_shown_scores_are_0_to_1_and_keep_the_order(fusion: str, one: float, other: float) -> None:
    low, high = (search_answers._shown_score(raw, fusion) for raw in sorted((one, other)))
    assert 0 <= low <= high <= 1


def test_near_scores_are_told_apart() -> None:
    shown = [search_answers._shown_score(raw / 10, "evidence") for raw in range(-60, 61)]
    assert shown == sorted(set(shown))
    assert search_answers._shown_score(0.0, "evidence") == 0.5
    assert search_answers._shown_score(0.25, "blend") == search_answers._shown_score(0.25, "rrf") == 0.25


@pytest.mark.parametrize(
    ("first", "last", "cited"), [(3, 3, "memory/2026-11-20.md#L3"), (3, 9, "memory/2026-11-20.md#L3-L9")]
)
def test_citation(first: int, last: int, cited: str) -> None:
    assert citation("memory/2026-11-20.md", first, last) == cited


@pytest.mark.parametrize("fusion", FUSIONS)
def test_what_a_search_found(tmp_path: Path, fusion: str) -> None:
    configured = settings(tmp_path, ranking={"fusion": fusion})
    with MemoryService(configured, embedder=HashEmbedder()) as service:
        for number in range(8):
            service.remember(W, f"Deploy number {number} 浇水\nof the staging database")
        answer = service.search(W, "deploy number 3", explain=True)
        scores = [result.score for result in answer.results]
        some = service.search(W, "deploy number 3", min_score=scores[2])
    round_trip(answer)
    # How relevant a hit is, is known for one ranking alone.
    assert [each.partition(":")[0] for each in answer.degraded] == ([] if fusion == "evidence" else ["relevance"])
    assert all((result.relevance is None) == (fusion != "evidence") for result in answer.results)
    assert answer.mode == "hybrid" and answer.took_ms > 0
    assert scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)
    first = answer.results[0]
    assert first.citation == f"{first.path}#L{first.start_line}-L{first.end_line}"
    assert first.signals and first.vector_score is not None
    assert [result.score for result in some.results] == [score for score in scores if score >= scores[2]]
    assert all(result.signals is None for result in some.results)


@pytest.mark.parametrize("fusion", FUSIONS)
@given(hits=hit_lists(), budget_tokens=st.integers(0, 300))
def test_contexts_and_receipts(fusion: str, hits: list[object], budget_tokens: int) -> None:
    made = build_context(
        hits,  # type: ignore[arg-type]  # the strategy is typed where it stands
        query="what?\x00",
        budget_tokens=budget_tokens,
        receipt_id="r20261120-0123456789abcdef",
        created_at=dt.datetime(2026, 11, 20, 14, 32, tzinfo=dt.UTC),
        system_prompt="You are kind.",
        degraded=("vector: none",),
    )
    round_trip(made)
    assert made.system_prompt == (f"You are kind.\n\n{made.block}" if made.block else "You are kind.")
    assert (made.tokens, made.degraded) == (made.receipt.tokens, ["vector: none"])
    receipt = search_answers.receipt(made.receipt, fusion=fusion)
    round_trip(receipt)
    assert receipt.model_dump(exclude=SCORES) == made.receipt.model_dump(exclude=SCORES)
    shown, stored = ((*each.included, *each.omitted) for each in (receipt, made.receipt))
    assert [item.score for item in shown] == [search_answers._shown_score(item.score, fusion) for item in stored]


def test_reports() -> None:
    report = SyncReport(
        added=1,
        changed=2,
        removed=3,
        unchanged=4,
        failed=(FileFailure(path="memory/a.md", reason="it is not UTF-8"),),
        embedded=5,
        reused=6,
        seconds=1.23456,
        degraded=("vector: none",),
    )
    shown = index_answers.reindex_report(report)
    round_trip(shown)
    assert shown.model_dump() == {
        "added": 1,
        "changed": 2,
        "removed": 3,
        "unchanged": 4,
        "failed": [{"path": "memory/a.md", "reason": "it is not UTF-8"}],
        "embedded": 5,
        "reused": 6,
        "seconds": 1.235,
        "degraded": ["vector: none"],
    }


def test_files_memories_and_the_status(tmp_path: Path) -> None:
    configured = settings(tmp_path)
    with MemoryService(configured, embedder=HashEmbedder()) as service:
        service.storage.make(W)
        empty = service.status(W)
        round_trip(empty)
        assert (empty.files, empty.coverage, empty.fingerprint, empty.updated_at) == (0, 1.0, None, None)
        stored = service.remember(W, "one\ntwo 浇水", idempotency_key="k")
        again = service.remember(W, "one\ntwo 浇水", idempotency_key="k")
        assert again.replayed and again.model_dump() == stored.model_dump(), "it has the answer of the first"
        assert service.remember(W, "one\ntwo 浇水").duplicate
        listed = service.files(W)
        text = service.get(W, stored.path, lines=2)
        write_documents(tmp_path, {"memory/new.md": "- new\n"})
        planned = service.plan(W)
        status = service.status(W)
    for answer in (stored, *listed, text, planned, status):
        round_trip(answer)
    assert (stored.start_line, stored.end_line, stored.duplicate) == (5, 6, False)
    assert [file.path for file in listed] == [stored.path]
    assert (text.end_line, text.next_start_line, text.etag) == (2, 3, listed[0].etag)
    assert (planned.added, planned.changed, planned.removed, planned.unchanged) == (1, 0, 0, 1)
    assert (status.files, status.passages, status.coverage, status.dirty) == (1, 1, 1.0, 1)
    assert status.fingerprint == status.current_fingerprint
    assert (status.timezone, status.degraded) == ("UTC", [])
    assert index_answers.failures([FileFailure(path="a", reason="b")]) == [schemas.FileFailure(path="a", reason="b")]


def test_the_status_names_an_outdated_index(tmp_path: Path) -> None:
    configured = settings(tmp_path)
    with MemoryService(configured, embedder=HashEmbedder()) as service:
        service.remember(W, "one")
    with MemoryService(configured, embedder=HashEmbedder(seed=1)) as service:
        status = service.status(W)
    round_trip(status)
    assert status.fingerprint != status.current_fingerprint
    (told,) = status.degraded
    assert told.startswith("index: The index was made with the model hash-")
    assert "Run `memory-service reindex --full`" in told


def test_the_status_says_that_an_outdated_index_is_being_made_anew(tmp_path: Path) -> None:
    configured = settings(tmp_path)
    with MemoryService(configured, embedder=HashEmbedder()) as service:
        service.remember(W, "one")
    told: list[str] = []
    with MemoryService(configured, embedder=HashEmbedder(seed=1)) as service:
        service.reindex(W, full=True, on_progress=lambda _: told.extend(service.status(W).degraded))
        assert service.status(W).degraded == []
    assert told and all("is being made anew: " in each and "reindex --full" not in each for each in told)
