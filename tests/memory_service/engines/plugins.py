"""A package with context engines, installed for a test: a module and its metadata in a folder on the path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import memory_service.engines

README_ENGINE = (memory_service.engines.__doc__ or "").split("```python\n")[1].split("```")[0]

SOURCE = '''
import time
from memory_service.engines import Assembled, Compacted, EngineInfo
from memory_service.messages.shapes import is_system, is_tool_result
from memory_service.messages.sizes import message_tokens
from memory_service.messages.repair import repair_messages

SECRET = "消息的正文"


class Window:
    """Keeps everything it hears, and sends the last of it."""

    owns = True

    def __init__(self, place):
        self.place, self.calls, self.heard, self.limit = place, [], {}, None
        self.info = EngineInfo(id="sliding-window", name="Sliding window", version="1.0", owns_compaction=self.owns)

    def ingest(self, session_id, message):
        self.calls.append("ingest")
        self.heard.setdefault(session_id, []).append(message)

    def assemble(self, session_id, *, token_budget, call):
        self.calls.append("assemble")
        messages = self.heard.get(session_id, [])
        room, kept = min(token_budget, self.limit or token_budget) - 20, []
        for message in reversed(messages):
            room -= message_tokens(message)
            if room < 0:
                break
            kept.append(message)
        kept.reverse()
        while kept and is_tool_result(kept[0]):
            del kept[0]
        return Assembled(messages=repair_messages(kept).messages)

    def compact(self, session_id, *, token_budget, call):
        self.calls.append(f"compact {call.trigger}")
        self.limit = token_budget
        return Compacted(compacted=True, reason="a smaller window", tokens_before=900, tokens_after=token_budget)


class Full(Window):
    owns = False

    def bootstrap(self, session_id):
        self.calls.append("bootstrap")
        return 2 if session_id == "known" else 0

    def ingest_batch(self, session_id, messages):
        self.calls.append(f"batch {len(messages)}")
        self.heard.setdefault(session_id, []).extend(messages)

    def after_turn(self, session_id):
        self.calls.append("after_turn")

    def prepare_subagent_spawn(self, parent, child, ttl):
        self.calls.append(f"spawn {parent} {child} {ttl}")

    def on_subagent_ended(self, child, reason):
        self.calls.append(f"ended {child} {reason}")

    def forget(self, session_id):
        self.calls.append("forget")
        del self.heard[session_id]

    def dispose(self):
        self.calls.append("dispose")


class Raises(Window):
    def assemble(self, session_id, *, token_budget, call):
        raise ZeroDivisionError(SECRET)


class RaisesAtIngest(Window):
    def ingest(self, session_id, message):
        raise KeyError(SECRET)


class Exits(Window):
    def assemble(self, session_id, *, token_budget, call):
        raise SystemExit(3)


class Orphan(Window):
    def assemble(self, session_id, *, token_budget, call):
        result = {"role": "tool", "tool_call_id": "x", "content": "答"}
        return Assembled(messages=[{"role": "user", "content": "问"}, result])


class Shapeless(Window):
    def assemble(self, session_id, *, token_budget, call):
        return Assembled(messages=[{"role": "narrator", "content": SECRET}])


class Numbers(Window):
    def assemble(self, session_id, *, token_budget, call):
        return Assembled(messages=7)


class Nothing(Window):
    def assemble(self, session_id, *, token_budget, call):
        return None


class Silent(Window):
    def assemble(self, session_id, *, token_budget, call):
        return Assembled(messages=[])


class Greedy(Window):
    def assemble(self, session_id, *, token_budget, call):
        return Assembled(messages=[{"role": "user", "content": "字" * (2 * token_budget)}])


class Slow(Window):
    def assemble(self, session_id, *, token_budget, call):
        time.sleep(30)


class Vandal(Window):
    def ingest(self, session_id, message):
        super().ingest(session_id, dict(message))
        message["content"] = "vandalised"

    def assemble(self, session_id, *, token_budget, call):
        for message in call.messages:
            message.clear()
        return super().assemble(session_id, token_budget=token_budget, call=call)


class Forgetless(Window):
    def assemble(self, session_id, *, token_budget, call):
        return Assembled(messages=[{"role": "user", "content": "只有这一句"}])


class Stubborn(Window):
    def compact(self, session_id, *, token_budget, call):
        return Compacted(compacted=False, reason="it does not")


class BadCompact(Full):
    def compact(self, session_id, *, token_budget, call):
        return "done"


class OddCompact(Window):
    def compact(self, session_id, *, token_budget, call):
        return Compacted(compacted=True, reason=None, tokens_before="many", tokens_after=-5, summary=7)


def unmakable(place):
    raise PermissionError(SECRET)


def no_engine(place):
    return object()
'''
ENTRY_POINTS = """
[memory_service.context_engines]
sliding-window = window_engines:Window
full = window_engines:Full
raises = window_engines:Raises
raises-at-ingest = window_engines:RaisesAtIngest
exits = window_engines:Exits
orphan = window_engines:Orphan
shapeless = window_engines:Shapeless
numbers = window_engines:Numbers
nothing = window_engines:Nothing
silent = window_engines:Silent
greedy = window_engines:Greedy
slow = window_engines:Slow
vandal = window_engines:Vandal
forgetless = window_engines:Forgetless
stubborn = window_engines:Stubborn
bad-compact = window_engines:BadCompact
odd-compact = window_engines:OddCompact
unmakable = window_engines:unmakable
no-engine = window_engines:no_engine
gone = a_module_that_is_not_there:Engine
last-messages = readme_engine:LastMessages
"""


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Have the package on the path until the block ends."""
    metadata = folder / "window_engines-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "window_engines.py").write_text(SOURCE, "utf-8")
    (folder / "readme_engine.py").write_text(README_ENGINE, "utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: window-engines\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in ("window_engines", "readme_engine"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
