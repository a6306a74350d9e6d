"""The seam of context engines: what one is, how it is found by its name, and what keeps a failing one harmless.

A context engine decides what of a session goes to the model. The default engine is this service. To write another one,
make a class, and name its factory under the entry points `memory_service.context_engines`:

```python
# my_engine.py
from memory_service.engines import Assembled, Compacted, EngineInfo
from memory_service.messages.shapes import is_tool_result
from memory_service.messages.sizes import message_tokens
from memory_service.messages.repair import repair_messages


class LastMessages:
    def __init__(self, place):  # place.workspace, and place.folder for files of your own
        self.info = EngineInfo(id="last-messages", name="Last messages", version="1.0", owns_compaction=True)

    def ingest(self, session_id, message):
        pass  # Each message once, in order, after the service has it on disk: put it into a store of your own.

    def assemble(self, session_id, *, token_budget, call):
        messages = call.messages  # What the service itself would send.
        start, room = len(messages), token_budget - 20
        while start and (room := room - message_tokens(messages[start - 1])) >= 0:
            start -= 1
        while start < len(messages) and is_tool_result(messages[start]):
            start += 1  # No result without its call.
        return Assembled(messages=repair_messages(messages[start:]).messages)

    def compact(self, session_id, *, token_budget, call):
        return Compacted(compacted=False, reason="a window needs none")
```
```toml
[project.entry-points."memory_service.context_engines"]
last-messages = "my_engine:LastMessages"
```
Then `pip install` it, set `context_engine = "last-messages"`, and run `memory-service doctor`. A program that runs the
service in process calls `register("last-messages", LastMessages)` before `MemoryService.open`. What else an engine may
do, such as remember beyond its process or forget an erased session, has a method in `OptionalMethods`.

Invariants: nothing of an engine is loaded before it is used; every message is in the log before an engine hears of
it; what an engine gives is checked, and one that fails is asked no more: the default engine answers, and says so.
"""

from typing import Any

from memory_service.engines.base import (
    DEFAULT,
    GROUP,
    AssembleCall,
    Assembled,
    CompactCall,
    Compacted,
    ContextEngine,
    EngineFactory,
    EngineInfo,
    EnginePlace,
    OptionalMethods,
    check_engine,
    engine_names,
    load_engine,
    register,
    unregister,
)
from memory_service.engines.guarded import GuardedEngine

__all__ = [
    "DEFAULT",
    "GROUP",
    "AssembleCall",
    "Assembled",
    "CompactCall",
    "Compacted",
    "ContextEngine",
    "EngineFactory",
    "EngineInfo",
    "EnginePlace",
    "GuardedEngine",
    "OptionalMethods",
    "check_engine",
    "engine_names",
    "load_engine",
    "register",
    "unregister",
]

# Each of the optional methods had a protocol of its own before; engines that inherit from some of them go on working.
_FORMER = {
    name: type(name, (OptionalMethods,), {})
    for name in (
        "BatchIngesting",
        "Bootstrapping",
        "Disposing",
        "Forgetting",
        "SubagentEnding",
        "SubagentSpawning",
        "TurnEnding",
    )
}


def __getattr__(name: str) -> Any:
    if name in _FORMER:
        return _FORMER[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
