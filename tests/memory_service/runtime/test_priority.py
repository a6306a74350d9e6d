"""Work in the background is known as such, so that it gives way to what people wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from indexer.common.throttle import THROTTLE
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from memory_service.hooks import Intent
from memory_service.service import MemoryService
from tests.memory_service.hosts.hooks.test_hook_calls import Agent
from tests.serving import settings
from tests.waiting import until


class Told:
    """Whether there was work in the background whenever it was looked."""

    def __init__(self) -> None:
        self.busy = False
        self.seen = list[tuple[str, bool]]()

    def hear(self, busy: bool) -> None:
        self.busy = busy

    def look(self, what: str) -> None:
        self.seen.append((what, self.busy))


class Watched(HashEmbedder):
    """Looks whenever it embeds something."""

    def __init__(self, told: Told) -> None:
        super().__init__()
        self._told = told

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self._told.look(texts[0])
        return super().embed_documents(texts)


@pytest.fixture
def told() -> Iterator[Told]:
    told = Told()
    THROTTLE.on_work_behind(told.hear)
    yield told
    THROTTLE.on_work_behind(lambda busy: None)


@pytest.fixture
def service(tmp_path: Path, told: Told) -> Iterator[MemoryService]:
    with MemoryService(settings(tmp_path / "home"), embedder=Watched(told)) as service:
        yield service


def test_a_log_is_indexed_as_what_people_wait_for(service: MemoryService, told: Told) -> None:
    service.remember("default", "The port of the staging server is 8443.")
    service.append("default", "s1", [{"role": "user", "content": "预发布端口是 8443。"}])
    until(lambda: len(told.seen) == 2)
    # Recall of what left the view waits for it.
    assert [busy for _, busy in told.seen] == [False, False]
    until(lambda: not told.busy)


def test_what_comes_after_the_answer_to_a_hook_is_behind(service: MemoryService, told: Told, tmp_path: Path) -> None:
    def look(intent: Intent) -> None:
        told.look(intent.work)

    service.hooks.before_flush(look)
    project = tmp_path / "shop"
    project.mkdir()
    agent = Agent(service, project)
    agent.says("user", "We decided: deploys go out on Tuesdays at 10:00, never on Fridays.")
    agent.hook("Stop")
    assert ("flush", True) in told.seen
    until(lambda: not told.busy)
