"""How many of our files a request enters on its way: what a reader has to know to follow it.

`python -m tests.benchmarks.walks [--messages 240] [--files]`

One line of JSON: for a warm `remember`, a session context and a flush by rules, over HTTP with the bundled model, how
many source files and distinct functions of `indexer` and `memory_service` were called, in all threads, until the answer
was there. `behind_api` leaves those of the HTTP layer out.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType

import httpx

from memory_service.service import MemoryService
from tests.benchmarks.sessions import messages
from tests.memory_service.old_home import ask, reindexed
from tests.serving import W, serving, settings

_ROOT = Path(__file__).resolve().parents[2]
_OURS = tuple(f"{_ROOT / package}/" for package in ("indexer", "memory_service"))
# A sync that ran behind has then ended, which would be counted with what is measured.
_QUIET_SECONDS = 1.0
_API = f"{_ROOT / 'memory_service' / 'api'}/"


class Walk:
    """Notes which of our functions are called, in this thread and in all that begin after it was made."""

    def __init__(self) -> None:
        self._called = set[CodeType]()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_OURS):
            self._called.add(frame.f_code)

    def measured(self, work: Callable[[], object]) -> dict[str, list[str]]:
        """The functions that some work calls, by file."""
        self._called.clear()
        work()
        found: dict[str, list[str]] = {}
        for code in sorted(self._called, key=lambda code: (code.co_filename, code.co_firstlineno)):
            found.setdefault(code.co_filename, []).append(code.co_qualname)
        return found


def _counts(found: dict[str, list[str]], *, names: bool) -> dict[str, object]:
    counts: dict[str, object] = {
        "files": len(found),
        "behind_api": sum(not file.startswith(_API) for file in found),
        "functions": sum(map(len, found.values())),
    }
    return {**counts, "names": [str(Path(file).relative_to(_ROOT)) for file in found]} if names else counts


def walks(http: httpx.Client, walk: Walk, count: int) -> dict[str, dict[str, list[str]]]:
    """Each request of the measure, asked twice: once to warm up, once to be followed."""
    requests: dict[str, tuple[str, dict[str, object]]] = {
        "remember": (f"{W}/memories", {"text": "The courier comes at {}."}),
        "session_context": (f"{W}/sessions/talk/context", {"query": "What was decided about the courier?"}),
        "flush": (f"{W}/sessions/talk/flush", {}),
    }
    found: dict[str, dict[str, list[str]]] = {}
    said = f"{W}/sessions/talk/messages"
    for name, (path, body) in requests.items():
        for hour in range(2):
            # Both times there is as much to do.
            ask(http, "POST", said, json={"messages": messages(count, hour * count)})
            reindexed(http)
            sent = {key: str(value).format(f"{hour + 9} o'clock") for key, value in body.items()}
            time.sleep(_QUIET_SECONDS)
            found[name] = walk.measured(partial(ask, http, "POST", path, json=sent or None))
    return found


def main() -> None:
    """Measure in a home of its own and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=240)
    parser.add_argument("--files", action="store_true", help="also print which files they are")
    arguments = parser.parse_args()
    walk = Walk()
    with tempfile.TemporaryDirectory() as home:
        # The server is in this process, for its threads to be followed.
        own = settings(Path(home), embedding_model="minilm", context_window=1_000_000)
        with MemoryService(own) as service, serving(service) as server:
            found = walks(server.http, walk, arguments.messages)
    sys.setprofile(None)
    print(json.dumps({name: _counts(files, names=arguments.files) for name, files in found.items()}))


if __name__ == "__main__":
    main()
