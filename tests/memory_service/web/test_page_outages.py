"""A page while answers are late, refused or cut off: the last question is answered, what was away is tried again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from indexer.testing import HashEmbedder
from memory_service.service import MemoryService
from tests.memory_service.web.test_browser import SLOWEST_MS, chromium, missing, wait_until, window
from tests.network_path import NetworkPath
from tests.serving import RunningServer, serving, settings
from tests.waiting import until

__all__ = ["chromium", "window"]
pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
QUESTION = "where does Ana live and when do we deploy what stands in notes"
# The results that are shown are those of the question that stands in the field.
IS_ANSWERED = "document.getElementById('hits')?.dataset.query === document.getElementById('q').value.trim()"


@pytest.fixture
def free_window(chromium: Any) -> Iterator[Any]:
    """A window of no server, in which requests may fail."""
    context = chromium.new_context(locale="en-US", viewport={"width": 390, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(SLOWEST_MS)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("delay_ms", [0, 4, 10, 30])
def test_the_answer_to_the_last_of_sixty_keys_is_shown(window: Any, delay_ms: int) -> None:
    assert len(QUESTION) >= 60
    window.goto("/w/default/search")
    window.evaluate("window.__results = document.getElementById('results')")
    for _ in range(3):
        window.locator("#q").fill("")
        window.locator("#q").press_sequentially(QUESTION, delay=delay_ms)
        wait_until(window, IS_ANSWERED)
        assert window.locator("article.hit").count() > 0
    assert window.evaluate("window.__results.isConnected"), "who listens to the results hears of each change"


def test_a_question_that_the_network_lost_is_asked_again(free_window: Any, server: RunningServer) -> None:
    path = NetworkPath(server.port)
    try:
        free_window.goto(f"http://127.0.0.1:{path.port}/w/default/search?q=deploy")
        with path.closed():
            free_window.locator("#q").press_sequentially("s where Ana", delay=5)
            free_window.wait_for_timeout(1_500)
            assert not free_window.evaluate(IS_ANSWERED)
        wait_until(free_window, IS_ANSWERED)
        assert free_window.locator("article.hit").count() > 0
    finally:
        path.close()


def test_a_page_names_a_database_that_is_away_and_heals(
    migrated_database: str, free_window: Any, tmp_path: Path
) -> None:
    path = NetworkPath(urlsplit(migrated_database).port or 0)
    address = migrated_database.replace(f":{path.target_port}/", f":{path.port}/")
    service = MemoryService(settings(tmp_path / "home", database_url=address), embedder=HashEmbedder())
    try:
        service.remember("default", "Deploys go out on Tuesdays.")
        with serving(service) as server:
            other = free_window.context.new_page()
            other.goto(f"{server.url}/w/default")
            other.get_by_text("Deploys go out on Tuesdays.").first.wait_for()
            free_window.goto(f"{server.url}/w/default/search?q=deploy")
            with path.closed():
                assert free_window.request.get(f"{server.url}/w/default/files").status == 503
                free_window.locator("#q").press_sequentially("s on", delay=5)
                free_window.locator("#results #failure").wait_for()
                third = free_window.context.new_page()
                assert third.goto(f"{server.url}/w/default/files").status == 503
                text = third.locator("#failure").inner_text()
                assert "database" in text and "tried again" in text, "what is away is named, and what to do"
                assert migrated_database.rpartition("/")[0] not in text
            wait_until(free_window, IS_ANSWERED)
            third.get_by_label("A new memory").wait_for()
            until(lambda: server.http.get("/v1/workspaces").is_success)
            service.remember("default", "The pump stands in the cellar.")
            other.get_by_text("The pump stands in the cellar.").first.wait_for()
            other.locator("#stale").wait_for(state="hidden")
    finally:
        service.close()
        path.close()
