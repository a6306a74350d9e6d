"""A library leaves the process alone that it is imported into; what a server does to its own is the server's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from indexer.common.throttle import THROTTLE
from memory_service.api.server import _shorten_turns
from tests.indexer.workspace import run_python

_PROGRAM = """
import json, locale, logging, os, signal, sys, threading, warnings
from contextlib import closing
from pathlib import Path

def state():
    return {
        "environment": dict(os.environ),
        "switch interval": sys.getswitchinterval(),
        "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "warnings": list(map(str, warnings.filters)),
        "logging": [str(logging.root.handlers), logging.root.level, logging.root.manager.disable],
        "hooks": [str(hook) for hook in (sys.excepthook, sys.unraisablehook, threading.excepthook)],
        "recursion": sys.getrecursionlimit(),
        "folder": os.getcwd(),
        "locale": locale.setlocale(locale.LC_ALL),
    }

import numpy  # it changes the filters of warnings itself
home = Path(sys.argv[1])
seen = [state()]
import indexer, memory_service
from memory_service import MemoryClient
from memory_service.service import MemoryService
from memory_service.config import load_settings
seen.append(state())
during = set()
class Watched(indexer.MiniLM):
    def embed_documents(self, texts):
        during.add(sys.getswitchinterval())
        return super().embed_documents(texts)
from indexer.common.throttle import THROTTLE
with THROTTLE.background():
    during.add(sys.getswitchinterval())
(home / "default" / "memory").mkdir(parents=True)
note = "# Day\\n\\nThe port of the staging server is 8443.\\n预发布端口是 8443。\\n"
(home / "default" / "memory" / "2026-11-20.md").write_text(note)
with closing(indexer.Index(home / "default", Watched())) as index:
    index.sync()
    assert index.search("staging port").hits and index.search("预发布端口").hits
with closing(MemoryService(load_settings(home=home))) as service:
    assert service.search("default", "staging port").results
seen.append(state())
changed = [{name for name in seen[0] if seen[0][name] != later[name]} for later in seen[1:]]
print(json.dumps([*map(sorted, changed), [*during] == [seen[0]["switch interval"]]]))
"""


def test_importing_and_searching_leave_the_process_as_it_was(tmp_path: Path) -> None:
    assert json.loads(run_python(_PROGRAM, tmp_path)) == [[], [], True]


_SERVER = """
import os, sys, threading, time
from indexer.common.throttle import THROTTLE
from memory_service.api.server import serve
from memory_service.config import load_settings

usual, deadline = sys.getswitchinterval(), time.monotonic() + 120
settings = load_settings(home=sys.argv[1], port=0, embedding_model="none")
threading.Thread(target=serve, args=(settings,), daemon=True).start()
while sys.getswitchinterval() == usual and time.monotonic() < deadline:
    time.sleep(0.05)
short = sys.getswitchinterval()
with THROTTLE.background():
    shorter = sys.getswitchinterval()
print(short < usual / 2, shorter < short, sys.getswitchinterval() == short, flush=True)
os._exit(0)
"""


def test_serving_is_what_shortens_the_turns(tmp_path: Path) -> None:
    assert run_python(_SERVER, tmp_path) == "True True True"


def test_a_server_takes_short_turns_while_there_is_work_behind_and_no_longer() -> None:
    before = sys.getswitchinterval()
    # Python's own value: a server that ran in this process may have left the shorter one.
    sys.setswitchinterval(0.005)
    _shorten_turns()
    usual = sys.getswitchinterval()
    try:
        assert usual < 0.005 / 2
        with THROTTLE.background(), THROTTLE.background():
            assert sys.getswitchinterval() < usual
        assert sys.getswitchinterval() == usual
        with pytest.raises(KeyError), THROTTLE.background():
            raise KeyError
        assert sys.getswitchinterval() == usual
    finally:
        THROTTLE.on_work_behind(lambda busy: None)
        sys.setswitchinterval(before)


def test_turns_that_were_shorter_stay_so() -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    try:
        _shorten_turns()
        with THROTTLE.background():
            assert sys.getswitchinterval() <= 0.00011
        assert sys.getswitchinterval() <= 0.00011
    finally:
        THROTTLE.on_work_behind(lambda busy: None)
        sys.setswitchinterval(usual)
