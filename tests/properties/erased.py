"""What nobody may find again: sessions that were deleted while somebody else worked on them.

Each property stands in a function of its own, so that a mutant can ask for it alone. Two services on one home stand for
two processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from indexer.testing import HashEmbedder
from memory_service.errors import Conflict, MemoryServiceError, NotFound
from memory_service.llm.base import ChatMessage
from memory_service.service import MemoryService
from memory_service.shortterm.bench import Models
from memory_service.shortterm.contexts import ContextCall
from memory_service.shortterm.receipts import CompactionCall
from memory_service.testing import ScriptedModel
from tests.serving import settings

S, W = "talk", "default"
OLD, NEW = "zqold 旧的秘密", "zqnew 新的话题"
_FACTS = json.dumps({"facts": [{"text": f"The user wants {OLD} kept.", "messages": [1]}]}, ensure_ascii=False)

Act = Callable[[MemoryService], object]


@contextmanager
def opened(home: Path, model: ScriptedModel | None = None, **given: Any) -> Iterator[MemoryService]:
    """A service on a home."""
    values = {"context_window": 3_000, "max_file_bytes": 1 << 20, **given}
    made = MemoryService(
        settings(home, **values), embedder=HashEmbedder(), models=Models(summaries=model, memories=model)
    )
    with made as service:
        yield service


def say(service: MemoryService, text: str, *, count: int = 12) -> None:
    """A talk about a text, in one batch."""
    told = [
        {"role": ("user", "assistant")[at % 2], "content": f"{text} {at}. We decided: {text} stays. " + "word " * 120}
        for at in range(count)
    ]
    service.sessions(W, make=True).append(S, told)


def found(home: Path, text: str) -> list[str]:
    """The files below a home that hold a text, as it is or in JSON."""
    words = [word for part in text.split() for word in (part.encode(), json.dumps(part)[1:-1].encode())]
    return [
        str(path.relative_to(home))
        for path in sorted(home.rglob("*"))
        if path.is_file() and not path.is_symlink() and any(word in path.read_bytes() for word in words)
    ]


def _log(home: Path) -> Path:
    return home / W / "sessions" / f"{S}.jsonl"


def _erased(home: Path) -> None:
    with opened(home) as other:
        other.sessions(W).talks.delete(S)


def _anew(home: Path) -> None:
    _erased(home)
    with opened(home) as other:
        say(other, NEW)


def _forced(service: MemoryService) -> object:
    return service.sessions(W).compactions.compact(S, CompactionCall(force=True))


def _asked(service: MemoryService) -> object:
    return service.sessions(W).context(S, ContextCall(recall="always"))


def _flush(service: MemoryService) -> object:
    return service.sessions(W).flushes.flush(S)


def _outcome(act: Act, service: MemoryService) -> MemoryServiceError | None:
    try:
        act(service)
    except MemoryServiceError as error:
        return error
    return None


def check_a_delete_stops_what_is_under_way(home: Path) -> None:
    """A compaction, a flush, a context: the session is deleted while its model writes, or deleted and begun anew."""
    works: dict[str, Act] = {"compact": _forced, "flush": _flush, "context": _asked}
    for name, act in works.items():
        for number, meanwhile in enumerate((_erased, _anew)):
            place = home / f"{name}-{number}"

            def answer(messages: Sequence[ChatMessage], place: Path = place, gone: Any = meanwhile) -> str:
                if OLD.split()[0] in str(messages) and found(place / W / "sessions", OLD):
                    gone(place)
                return _FACTS

            with opened(place, ScriptedModel(*[answer] * 40)) as service:
                say(service, OLD)
                error = _outcome(act, service)
                assert isinstance(error, Conflict | NotFound) or name == "context", f"{name}: {error!r}"
            assert meanwhile is _anew or not _log(place).exists(), f"{name} made a log again"
            assert not found(place, OLD), f"{name}: what was erased is back in {found(place, OLD)}"


def check_a_session_begun_anew_is_read_alone(home: Path) -> None:
    """Deleted and begun anew elsewhere, with as many records or more: nothing of the old one is shown or found."""
    for count in (2, 12, 20):
        place = home / str(count)
        with opened(place) as service, opened(place) as other:
            say(service, OLD)
            sessions = service.sessions(W)
            assert OLD in str(sessions.recalls.search(sessions.look(S), OLD))
            other.sessions(W).talks.delete(S)
            say(other, NEW, count=count)
            look = sessions.look(S)
            assert len(look.state.messages) == count, "two sessions are read as one"
            assert OLD not in str(look.view().messages), "an erased session is shown"
            assert OLD not in str(sessions.recalls.search(look, f"{OLD} {NEW}")), "an erased session is found"


def check_a_session_is_gone_with_its_receipts(home: Path) -> None:
    """The last request of a session is the query of its receipts; those of others stay."""
    with opened(home) as service:
        sessions, kept = service.sessions(W, make=True), ""
        for session_id, text in ((S, OLD), (f"{S}-2", NEW)):
            sessions.append(session_id, [{"role": "user", "content": f'{text} "session_id": "{S}"}}'}])
            receipt = sessions.context(session_id, ContextCall(recall="always")).receipt
            assert receipt is not None and service.receipt(W, receipt.receipt_id) == receipt
            kept = receipt.receipt_id
        sessions.talks.delete(S)
        assert service.receipt(W, kept).query, "a receipt of another session is gone"
    assert not found(home, OLD), f"what was said stays in {found(home, OLD)}"


def check_no_receipt_follows_a_delete(home: Path) -> None:
    """A context that began before the session was deleted leaves no receipt behind it."""
    with opened(home) as service:
        say(service, OLD)
        sessions = service.sessions(W)
        search = service._workspaces.memory(W).search

        def late(*given: Any, **named: Any) -> Any:
            answer = search(*given, **named)
            _erased(home)
            return answer

        service._workspaces.memory(W).search = late  # type: ignore[method-assign]
        degraded = sessions.context(S, ContextCall(recall="always", auto=False)).degraded
        assert any("deleted meanwhile" in each for each in degraded), degraded
    assert not found(home, OLD), f"what was said stays in {found(home, OLD)}"


CHECKS: tuple[Callable[[Path], None], ...] = (
    check_a_delete_stops_what_is_under_way,
    check_a_session_begun_anew_is_read_alone,
    check_a_session_is_gone_with_its_receipts,
    check_no_receipt_follows_a_delete,
)
