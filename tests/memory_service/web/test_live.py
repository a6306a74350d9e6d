"""Pages that follow their workspace: what changes is put in, and what a person does stays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.api.server import listening
from memory_service.schemas import NewKey
from memory_service.service import MemoryService
from tests.memory_service.web.test_browser import SLOWEST_MS, chromium, missing, wait_until, window, window_of
from tests.memory_service.web.visits import Person
from tests.serving import RunningServer, W, own_process, serving, settings
from tests.storages import write_documents
from tests.waiting import until

__all__ = ["chromium", "window"]
BROWSER = pytest.mark.skipif(bool(missing()), reason=missing())
SAID = [{"role": "user", "content": "And on Mondays?"}]
STREAM = "**/events?*"


def remember(server: RunningServer, text: str) -> None:
    body = {"text": text, "origin": "agent", "session_id": "s1"}
    assert server.http.post(f"{W}/memories", json=body).status_code == 201


def shows(text: str) -> str:
    return f"document.getElementById('main').innerText.includes({text!r})"


def settled(window: Any) -> None:
    """Wait until the first look after the page was opened is over."""
    window.wait_for_timeout(2_500)


@BROWSER
@pytest.mark.parametrize("view", ["", "/files", "/review", "/sessions", "/sessions/s1", "/facts"])
def test_what_others_change_is_put_in(window: Any, server: RunningServer, view: str) -> None:
    window.goto(f"/w/default{view}")
    settled(window)
    window.evaluate("window.__page = document.querySelector('h1')")
    if "sessions" in view:
        assert server.http.post(f"{W}/sessions/s1/messages", json={"messages": SAID * 3}).is_success
        assert server.http.post(f"{W}/sessions/s9/messages", json={"messages": SAID}).is_success
        wait_until(window, shows("Mondays" if view.endswith("s1") else "s9"))
    elif view == "/facts":
        remember(server, "Tom lives in Graz.")
        remember(server, "Tom lives in Linz now.")
        wait_until(window, shows("Linz"))
    else:
        write_documents(server.home, {"memory/plans.md": "- By hand.\n"})
        remember(server, "The pump stands in the cellar.")
        wait_until(window, shows("plans.md" if view == "/files" else "The pump stands"))
    assert window.evaluate("window.__page === document.querySelector('h1')"), "the page was not opened again"


@BROWSER
def test_focus_typed_text_open_folds_and_place_stay(window: Any, server: RunningServer) -> None:
    for number in range(30):
        remember(server, f"Number {number} is a lamp in the hall.")
    window.goto("/w/default/review")
    settled(window)
    items = window.locator("[data-item]")
    own_id, first = (items.nth(number).get_attribute("id") for number in (20, 0))
    correct = window.locator(f"#{own_id} details[data-do=correct]")
    correct.locator("summary").click()
    field = correct.locator("textarea")
    field.fill("A correction that is not sent yet.")
    field.evaluate("each => { window.__field = each; each.setSelectionRange(2, 5); }")
    top = field.evaluate("each => each.getBoundingClientRect().top")
    remember(server, "The pump stands in the cellar.")
    wait_until(window, shows("The pump stands"))
    assert window.evaluate("document.activeElement === window.__field && window.__field.isConnected")
    assert field.input_value() == "A correction that is not sent yet."
    assert field.evaluate("each => [each.selectionStart, each.selectionEnd]") == [2, 5]
    assert correct.evaluate("each => each.open")
    assert abs(field.evaluate("each => each.getBoundingClientRect().top") - top) < 40
    # Another one than that which is written in is forgotten meanwhile: that is no news for it.
    assert server.http.delete(f"{W}/entries/{first}").is_success
    wait_until(window, f"!document.getElementById({first!r})")
    assert field.input_value() == "A correction that is not sent yet."
    assert server.http.delete(f"{W}/entries/{own_id}").is_success
    window.locator("#stale").wait_for()
    assert field.input_value() == "A correction that is not sent yet.", "what was typed is not thrown away"


@BROWSER
def test_the_item_at_hand_stays_that(window: Any, server: RunningServer) -> None:
    window.goto("/w/default")
    settled(window)
    window.keyboard.press("j")
    text = window.evaluate("document.activeElement.innerText")
    remember(server, "The pump stands in the cellar.")
    wait_until(window, shows("The pump stands"))
    assert window.evaluate("document.activeElement.innerText") == text
    assert window.evaluate("document.activeElement.classList.contains('at')")


def stoppable(may_go_on: threading.Semaphore) -> Callable[[Any, Any], Any]:
    """Work that goes a step on when it may, and that ends when it must."""

    def work(on_progress: Any, cancelled: Any) -> Any:
        from indexer import SyncCancelled, SyncProgress

        for done in range(1, 100):
            on_progress(
                SyncProgress(
                    done=done, total=100, done_bytes=done, total_bytes=100, passages=done, path="", total_passages=100
                )
            )
            while not may_go_on.acquire(timeout=0.05):
                if cancelled():
                    raise SyncCancelled("It was stopped. Run it again.")
        raise AssertionError("nobody stopped it")

    return work


@BROWSER
def test_a_bar_moves_and_its_operation_is_stopped(chromium: Any, tmp_path: Path) -> None:
    may_go_on = threading.Semaphore(0)
    service = MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder())
    service.remember("default", "Deploys go out on Tuesdays.")

    with serving(service) as server, window_of(chromium, server.url) as window:
        window.goto("/w/default")
        settled(window)
        begun = service._operations.start("default", stoppable(may_go_on))
        bar = f"document.querySelector('#{begun.operation_id} progress')"
        wait_until(window, f"{bar}?.value === 1")
        window.evaluate(f"window.__bar = {bar}")
        for value in (2, 3):
            may_go_on.release()
            wait_until(window, f"{bar}.value === {value}")
        assert window.evaluate(f"window.__bar === {bar}"), "the bar itself moves"
        assert "3 / 100" in window.locator(f"#{begun.operation_id}").inner_text()
        window.get_by_role("button", name="Stop").click()
        window.wait_for_url("**/operations")
        wait_until(window, shows("cancelled"))
        assert service.operation("default", begun.operation_id).state == "cancelled"
        window.goto("/w/default")
        assert window.locator(".operation").count() == 0


@BROWSER
def test_work_that_ended_before_the_page_listened_is_shown_as_ended(chromium: Any, tmp_path: Path) -> None:
    service, streams = MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()), list[Any]()
    service.remember("default", "Deploys go out on Tuesdays.")
    with serving(service) as server, window_of(chromium, server.url) as window:
        begun = service._operations.start("default", stoppable(threading.Semaphore(0)))
        window.route(STREAM, lambda route: streams.append(route))
        window.goto("/w/default/operations")
        wait_until(window, shows("running"))
        service.cancel("default", begun.operation_id)
        until(lambda: service.operation("default", begun.operation_id).state == "cancelled")
        until(lambda: bool(window.evaluate("true") and streams))
        # The requests that wait go on with it.
        window.unroute(STREAM)
        wait_until(window, shows("cancelled"))


@BROWSER
def test_the_page_heals_after_a_restart(chromium: Any, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    with MemoryService(settings(home), embedder=HashEmbedder()) as service:
        service.remember("default", "Deploys go out on Tuesdays.")
    with own_process(home, {}, port=port) as (url, _):
        context = chromium.new_context(base_url=url, locale="en-US")
        context.set_default_timeout(SLOWEST_MS)
        window = context.new_page()
        with window.expect_response(STREAM):
            window.goto("/w/default")
    with MemoryService(settings(home), embedder=HashEmbedder()) as service:
        service.remember("default", "Said while the server was away.")
    window.locator("#stale").wait_for()
    with own_process(home, {}, port=port):
        wait_until(window, shows("Said while the server was away."))
        window.locator("#stale").wait_for(state="hidden")
        context.close()


@BROWSER
def test_a_key_that_is_withdrawn_sees_nothing_new(chromium: Any, tmp_path: Path) -> None:
    service = MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder())
    service.remember("default", "Deploys go out on Tuesdays.")
    service.remember("other", "A secret of others.")
    service.access.make(NewKey(name="admin", role="admin"))
    key = service.access.make(NewKey(name="reader", role="read", workspaces=["default"]))
    with serving(service) as server:
        context = chromium.new_context(base_url=server.url, locale="en-US")
        context.set_default_timeout(SLOWEST_MS)
        window = context.new_page()
        window.goto("/w/default")
        window.get_by_role("textbox", name="Key").fill(key.key)
        with window.expect_response(STREAM):
            window.get_by_role("button", name="Sign in").click()
        assert context.request.get("/w/other/events").status == 403
        service.remember("default", "The pump stands in the cellar.")
        wait_until(window, shows("The pump stands"))
        service.access.withdraw(key.key_id)
        # A stream ends within seconds, and is not to be had again.
        window.locator("#stale").wait_for()
        service.remember("default", "After the key.")
        settled(window)
        assert not window.evaluate(shows("After the key."))
        context.close()


def test_what_a_stream_may_say_is_asked_of_each_key(person: Person, server: RunningServer) -> None:
    with person.http.stream("GET", "/w/default/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert next(answer.iter_lines()) == "retry: 2000"
    assert person.http.get("/w/nothing/events").status_code == 404
    made = server.http.post("/v1/keys", json={"name": "others", "role": "read", "workspaces": ["other"]}).json()
    assert person.http.get("/w/default/events", follow_redirects=False).status_code == 303
    assert person.http.get("/w/default/events", headers={"X-API-Key": made["key"]}).status_code == 403


def test_a_page_that_was_made_before_a_change_hears_of_it(person: Person, server: RunningServer) -> None:
    page = person.opens("/w/default")
    since = page.partition("/events?since=")[2].partition('"')[0]
    remember(server, "In between.")
    with person.http.stream("GET", f"/w/default/events?since={since}") as answer:
        assert next(line for line in answer.iter_lines() if line.startswith("event:")) == "event: memories"
