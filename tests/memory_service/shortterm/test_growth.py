"""What a session takes on the disk: little more than its messages, however often it is compacted."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from memory_service.shortterm.compactions import CompactionCall
from tests.evals.needles import Language, opened, turn
from tests.memory_service.shortterm.rooms import words

MOST = 1.2
LANGUAGES: tuple[Language, ...] = ("en", "zh")


def share(home: Path, language: Language, result_tokens: int) -> float:
    """Bytes of the session's files by bytes of its messages, after twenty rounds."""
    rng, size, number = random.Random(13), 0, 0
    with opened(home, embedder=None, window=16_384) as service:
        sessions = service.sessions("default", make=True)
        for _ in range(20):
            for number in range(number + 1, number + 9):
                said = turn(rng, language, number)
                said[2]["content"] += "\n" + words(result_tokens, chinese=language == "zh")
                size += sum(len(json.dumps(message, ensure_ascii=False).encode()) for message in said)
                sessions.append("s", said)
            sessions.compactions.compact("s", CompactionCall(force=True))
        folder = home / "default" / "sessions"
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / size


@pytest.mark.parametrize("language", LANGUAGES)
def test_twenty_rounds_add_a_fifth_at_most(tmp_path: Path, language: Language) -> None:
    assert share(tmp_path, language, 300) <= MOST
