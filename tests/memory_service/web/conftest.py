from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.memory_service.web.visits import Person
from tests.serving import RunningServer, W


@pytest.fixture
def server(running_server: RunningServer) -> RunningServer:
    """A server whose workspace has something of each kind."""
    http = running_server.http
    for body in (
        {"text": "Ana lives in Lisbon.", "date": "2026-03-01", "origin": "user"},
        {"text": "Ana lives in Porto now.", "date": "2026-09-01", "origin": "user"},
        {"text": "Deploys go out on Tuesdays.", "origin": "agent", "session_id": "s1"},
    ):
        assert http.post(f"{W}/memories", json=body).status_code == 201
    file = {"text": "# What always holds\n\n## Rules\n\n- Never deploy on Fridays.\n"}
    assert http.put(f"{W}/memories/MEMORY.md", json=file, headers={"If-None-Match": "*"}).status_code == 200
    said = [{"role": "user", "content": "When do we deploy?"}, {"role": "assistant", "content": "On Tuesdays."}]
    assert http.post(f"{W}/sessions/s1/messages", json={"messages": said}).status_code == 200
    assert http.post(f"{W}/sessions/s1/context", json={"recall": "always"}).status_code == 200
    return running_server


@pytest.fixture
def person(server: RunningServer) -> Iterator[Person]:
    with closing(Person(server=server)) as somebody:
        yield somebody
