"""How many of our files a piece of work enters on its way: what a reader has to know to follow it.

`python -m tests.benchmarks.walks [--messages 240] [--files]`

One line of JSON: for a `remember`, an append with the session context behind it, the service's part of a gateway's turn
and a flush by rules, all warm and with the bundled model, how many source files and distinct functions of `indexer` and
`memory_service` the calling thread entered until the answer was there. `tests/test_walks.py` holds the files.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FrameType

from memory_service.config import Settings
from memory_service.conversations.client_calls import ConversationCall
from memory_service.schemas.compaction import SessionContextRequest
from memory_service.schemas.sessions import NewSession
from memory_service.service import MemoryService
from tests.benchmarks.sessions import messages
from tests.serving import settings

_ROOT = Path(__file__).resolve().parents[2]
_OURS = tuple(f"{_ROOT / package}/" for package in ("indexer", "memory_service"))
_WORKSPACE = "default"
# Each piece of work is done so often before it is followed.
_WARM_ROUNDS = 2
# The work that a round leaves to other threads has then ended, so that each round finds as much to do.
_QUIET_SECONDS = 1.0

Walk = Mapping[str, list[str]]
"""The functions that were entered, by file; paths are relative to the root."""


def follow(work: Callable[[], object]) -> Walk:
    """The files and functions of ours that this thread enters while it does some work."""
    entered = set[CodeType]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_OURS):
            entered.add(frame.f_code)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    walk: dict[str, list[str]] = {}
    for code in sorted(entered, key=lambda code: (code.co_filename, code.co_firstlineno)):
        walk.setdefault(str(Path(code.co_filename).relative_to(_ROOT)), []).append(code.co_qualname)
    return walk


class _Rounds:
    """The pieces of work; each round has new words, and as much to do as the one before."""

    def __init__(self, service: MemoryService, count: int) -> None:
        self._service = service
        self._count = count
        self._talk = [message for message in messages(count) if message["role"] != "tool" and message["content"]]

    def remember(self, number: int) -> object:
        return self._service.remember(_WORKSPACE, f"The courier comes at {number + 9} o'clock.")

    def context(self, number: int) -> object:
        line = {"role": "user", "content": f"And the courier of day {number}? What was decided about it?"}
        self._service.append(_WORKSPACE, "talk-0", [line])
        return self._service.session_context(_WORKSPACE, "talk-0", SessionContextRequest())

    def gateway_turn(self, number: int) -> None:
        self._talk.append({"role": "user", "content": f"What was decided about the courier of day {number}?"})
        prompt = self._service.conversation_prompt(_WORKSPACE, ConversationCall(messages=self._talk))
        answer: dict[str, object] = {"role": "assistant", "content": f"On day {number} it comes at nine."}
        self._talk.append(answer)
        self._service.conversations(_WORKSPACE).append_answer(prompt, [answer])

    def flush(self, number: int) -> object:
        return self._service.flush(_WORKSPACE, f"talk-{number}")

    def prepare(self, number: int) -> None:
        """A session that nothing was flushed of, and an index that is up to date."""
        self._service.create_session(_WORKSPACE, NewSession(session_id=f"talk-{number}"))
        self._service.append(_WORKSPACE, f"talk-{number}", messages(self._count, number * self._count))
        self._service.reindex(_WORKSPACE)


def walks(own: Settings, count: int) -> dict[str, Walk]:
    """What each piece of work enters, in a home with a session of so many messages."""
    found: dict[str, Walk] = {}
    with MemoryService(own) as service:
        rounds = _Rounds(service, count)
        for number in range(_WARM_ROUNDS + 1):
            rounds.prepare(number)
        service.flush(_WORKSPACE, "talk-0")
        for name in ("remember", "context", "gateway_turn", "flush"):
            work: Callable[[int], object] = getattr(rounds, name)
            for number in range(_WARM_ROUNDS + 1):
                time.sleep(_QUIET_SECONDS)
                if number < _WARM_ROUNDS:
                    work(number)
                else:
                    found[name] = follow(lambda work=work, number=number: work(number))  # type: ignore[misc]
    return found


def main() -> None:
    """Measure in a home of its own and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=240)
    parser.add_argument("--files", action="store_true", help="also print which files they are")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        own = settings(Path(home), embedding_model="minilm", context_window=1_000_000)
        found = walks(own, arguments.messages)
    for name, walk in found.items():
        row: dict[str, object] = {"walk": name, "files": len(walk), "functions": sum(map(len, walk.values()))}
        print(json.dumps(row | ({"names": list(walk)} if arguments.files else {})))


if __name__ == "__main__":
    main()
