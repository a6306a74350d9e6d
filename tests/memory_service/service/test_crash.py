"""A process that is killed in the middle of its work: what it has acknowledged is there, and the session goes on."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from memory_service.messages.writing import to_openai
from tests.memory_service.rooms import Room, S, says, user
from tests.wire import problems

# Appends, compacts and flushes until it is killed; tells each append once it is answered.
_WORK = """
import sys
from memory_service.schemas.compaction import CompactRequest, SessionContextRequest
from memory_service.runtime.base import CompactionCall

from tests.memory_service.rooms import S, Room, words
from pathlib import Path

room = Room(Path(sys.argv[1]), context_window=8_000, embedding_model="none")
begin = int(sys.argv[2])
for number in range(begin, begin + 100_000):
    text = f"{number} 请记住：端口 {7000 + number} 归第 {number} 个服务。 " + words(80)
    room.sessions.append(S, [{"role": "user", "content": text}, {"role": "assistant", "content": f"{number} 好的"}])
    print(number, flush=True)
    if number % 5 == 0:
        room.sessions.flushes.flush(S)
    if number % 3 == 0:
        room.sessions.context(S, SessionContextRequest(recall="never"))
    if number % 7 == 0:
        room.sessions.compactions.compact(S, CompactionCall(request=CompactRequest(force=True)))
"""
KILLS = 3


def killed(room: Room, begin: int, rng: random.Random) -> int:
    """Run the work and kill it somewhere; gives the last number that was told."""
    command = [sys.executable, "-c", _WORK, str(room.home), str(begin)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = begin - 1
        for _ in range(rng.randint(2, 9)):
            told = int(process.stdout.readline())
        time.sleep(rng.random() * 0.02)
        process.kill()
        for line in process.stdout.read().splitlines():
            told = int(line)
    return told


def test_what_was_acknowledged_survives_being_killed(rooms: Callable[..., Room]) -> None:
    rng, told = random.Random(17), list[int]()
    room = rooms(context_window=8_000)
    for _ in range(KILLS):
        begin = told[-1] + 1_000 if told else 0
        last = killed(room, begin, rng)
        told += range(begin, last + 1)
        said = [message["content"].split()[0] for message in room.raw_log() if message["role"] == "user"]
        kept = [number for number in map(int, said) if number <= last]
        assert kept == told, "each once, in order; the one in work may be there too"
        told += [number for number in map(int, said) if number > last]
        room.say(user(f"{told[-1] + 1} 还在吗？"), says(f"{told[-1] + 1} 在。"))
        told.append(told[-1] + 1)
        view = to_openai(room.view())
        assert problems(view, "openai") == [] and "还在吗？" in json.dumps(view, ensure_ascii=False)
    assert room.sessions.compactions.past(S), "it was compacted on the way"
    flushed = [line for line in room.days.splitlines() if line.startswith("- ")]
    assert flushed and len(flushed) == len(set(flushed)), "no memory was written twice"


def test_a_line_that_was_cut_off_is_no_loss_of_others(room: Room) -> None:
    room.talk(5)
    before = room.raw_log()
    with room.log.open("ab") as log:
        log.write(b'{"seq":99,"ts":"2026-11-20T10:00:00.000Z","message":{"role":"user","con')
    room.talk(1, first=5)
    assert room.raw_log()[: len(before)] == before and len(room.raw_log()) == len(before) + 2
    assert room.sessions.store.summary(S).degraded


@pytest.mark.parametrize("chinese", [False, True])
def test_a_session_is_the_same_for_the_next_process(rooms: Callable[..., Room], chinese: bool) -> None:
    room = rooms(context_window=8_000)
    room.talk(40, 100, chinese=chinese)
    room.compact(force=True)
    room.talk(3, 100, first=40, chinese=chinese)
    room.service.close()
    again = rooms(context_window=8_000)
    assert again.view() == room.sessions.snapshot(S).view().messages
    assert again.sessions.store.summary(S).compactions == 1
