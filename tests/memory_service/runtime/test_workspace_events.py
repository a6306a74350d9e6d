"""Events of whole workspaces: what is seen, who else made it, and that nothing is looked at for nobody."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer import SyncCancelled
from indexer.testing import HashEmbedder
from memory_service.errors import StorageFailed
from memory_service.runtime.events import Subscription
from memory_service.runtime.workspace_events import WorkspaceEvents, WorkspaceState
from memory_service.schemas.sessions import SessionEvent
from memory_service.service import MemoryService
from tests.memory_service.storage.in_memory_records import event_hub
from tests.serving import settings
from tests.waiting import PATIENCE_SECONDS, until

W = "default"
SAID = [{"role": "user", "content": "When do we deploy?"}]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as made:
        made.remember(W, "Deploys go out on Tuesdays.")
        yield made


def heard(events: Subscription, kind: str) -> SessionEvent:
    """The next event of a kind."""
    return next(event for event in events.events(PATIENCE_SECONDS) if event.kind == kind)


def test_changes_are_seen_whoever_makes_them(service: MemoryService, tmp_path: Path) -> None:
    with service.workspace_events(W) as events:
        service.remember(W, "The pump stands in the cellar.")
        assert heard(events, "memories").fields["count"] == 1
        service.append(W, "s1", SAID)
        assert heard(events, "session").session_id == "s1"
        with MemoryService(service.settings, embedder=HashEmbedder()) as other:
            other.append(W, "s2", SAID)
        assert heard(events, "session").session_id == "s2"
        (tmp_path / "home" / W / "memory" / "plans.md").write_text("- By hand.\n", "utf-8")
        assert heard(events, "memories").fields == {"count": 1, "path": "memory/plans.md"}
        (tmp_path / "home" / W / "memory" / "plans.md").unlink()
        assert heard(events, "memories").fields == {"count": 1, "path": "memory/plans.md"}
        service.bring_up_to_date(W)
        assert heard(events, "index").fields == {"done": None, "total": None}


def test_many_sessions_are_one_event(service: MemoryService) -> None:
    with service.workspace_events(W) as events:
        for number in range(30):
            service.append(W, f"s{number}", SAID)
        seen = {event.session_id for event in events.events(3) if event.kind == "session"}
    assert "" in seen or len(seen) == 30


def test_an_operation_is_followed_to_its_end(service: MemoryService) -> None:
    may_end = threading.Event()

    def work(_: object, cancelled: object) -> object:
        assert may_end.wait(PATIENCE_SECONDS) and callable(cancelled)
        if cancelled():
            raise SyncCancelled("It was stopped. Run it again.")
        raise AssertionError("nobody stopped it")

    with service.workspace_events(W) as events:
        begun = service._operations.start(W, work)  # type: ignore[arg-type]
        seen = heard(events, "operation")
        assert seen.fields["operation_id"] == begun.operation_id
        assert [each.operation_id for each in service.operations(W)] == [begun.operation_id]
        assert service.operations("another") == []
        service.cancel(W, begun.operation_id)
        may_end.set()
        until(lambda: heard(events, "operation").fields["state"] == "cancelled")
    second = service.start_reindex(W)
    assert [each.operation_id for each in service.operations(W)] == [second.operation_id, begun.operation_id]
    with MemoryService(service.settings, embedder=HashEmbedder()) as other:
        assert {each.operation_id for each in other.operations(W)} == {second.operation_id, begun.operation_id}


def test_what_changed_before_the_listener_came_is_told_if_it_asks(service: MemoryService) -> None:
    before = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
    with service.workspace_events(W, since=before) as events:
        assert heard(events, "memories").fields == {}
    with service.workspace_events(W, since=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)) as events:
        assert events.take() == []


def test_nobody_is_told_twice_and_nothing_is_looked_at_for_nobody(caplog: pytest.LogCaptureFixture) -> None:
    looks = list[str]()

    def look(workspace: str) -> WorkspaceState:
        looks.append(workspace)
        if len(looks) in (2, 3):
            raise StorageFailed("The disk is away. Try again.")
        return WorkspaceState(documents={}, sessions={}, index_revision=len(looks))

    hub = event_hub()
    events = WorkspaceEvents(hub, look, lambda _: [])
    with events.subscribe(W) as first, events.subscribe(W) as second:
        # The looks that failed are made good by the next one, and their failure is told once.
        number = next(first.events(PATIENCE_SECONDS)).id
        assert next(second.events(PATIENCE_SECONDS)).id == number
    assert caplog.text.count("could not be looked at") == 1
    until(lambda: events._thread is None)
    count = len(looks)
    assert not hub.is_followed(W)
    threading.Event().wait(1.5)
    assert len(looks) == count
    events.close()
