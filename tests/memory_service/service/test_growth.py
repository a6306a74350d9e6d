"""What a session takes on the disk: little more than its messages, however often it is compacted."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from memory_service.schemas.compaction import SessionContextRequest
from tests.evals.needles import Language, opened, turn
from tests.memory_service.rooms import words

ROUNDS = 20
CALL = SessionContextRequest(recall="never", memory_budget_tokens=0)


def share(home: Path, language: Language, result_tokens: int, window: int) -> float:
    """Bytes of the session's files by bytes of its messages, after it was compacted twenty times."""
    rng, size, number, rounds = random.Random(13), 0, 0, 0
    with opened(home, embedder=None, window=window) as service:
        sessions = service.sessions("default", make=True)
        while rounds < ROUNDS:
            said, number = turn(rng, language, number), number + 1
            said[2]["content"] += "\n" + words(result_tokens, chinese=language == "zh")
            size += sum(len(json.dumps(message, ensure_ascii=False).encode()) for message in said)
            sessions.append("s", said)
            rounds += sessions.context("s", CALL).compaction is not None
        folder = home / "default" / "sessions"
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / size


@pytest.mark.parametrize(("language", "most"), [("en", 1.2)])
def test_twenty_compactions_add_a_fifth_at_most(tmp_path: Path, language: Language, most: float) -> None:
    assert share(tmp_path, language, 500, 16_384) <= most


@pytest.mark.parametrize(("language", "most"), [("zh", 1.45)])
def test_where_messages_are_short_their_frames_weigh_more(tmp_path: Path, language: Language, most: float) -> None:
    assert share(tmp_path, language, 1, 8_192) <= most
