"""What goes wrong around a person at the page: large texts, erasure, withdrawal, forms sent twice, no scripts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.schemas import NewKey
from memory_service.service import MemoryService
from tests.memory_service.web.test_browser import (
    axe,
    chromium,
    is_at,
    missing,
    overflow_of,
    window,
    window_of,
)
from tests.memory_service.web.visits import VIEWS
from tests.serving import RunningServer, W, own_process, serving, settings
from tests.waiting import until

__all__ = ["chromium", "window"]
pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
PHONE = {"width": 390, "height": 844}


def is_light(window: Any) -> None:
    """The page that is open is small enough to be drawn at once, and no wider than its window."""
    assert window.evaluate("document.querySelectorAll('*').length") < 20_000
    assert window.evaluate("document.documentElement.outerHTML.length") < 2_000_000
    assert overflow_of(window) <= 0


def sign_in(window: Any, key: str) -> None:
    window.locator("input[type=password]").fill(key)
    with window.expect_navigation():
        window.keyboard.press("Enter")
    assert "/sign-in" not in window.url


def write_file(server: RunningServer, name: str, text: str) -> None:
    (server.home / "default" / "memory" / name).write_text(text, "utf-8")


def erase(server: RunningServer) -> None:
    """The workspace is no more, whatever is written to it at this moment."""
    folder = server.home / "default"

    def is_gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    until(is_gone)


def notes(server: RunningServer) -> str:
    return "".join(file.read_text("utf-8") for file in server.home.glob("default/memory/*.md"))


def test_a_file_of_8_mib_is_read_part_by_part(window: Any, server: RunningServer) -> None:
    lines = [f"- Line {number} says that the pump stands in cellar {number}.\n" for number in range(1, 150_000)]
    text = "".join(lines)[: 8 * 1024 * 1024 - 10].rpartition("\n")[0] + "\n"
    count = text.count("\n")
    write_file(server, "2026-05-01.md", text)
    for width in (390, 1440):
        window.set_viewport_size({"width": width, "height": 900})
        for query in ("", "?as=source", "?from=50000", "?as=source&from=50000"):
            window.goto(f"/w/default/files/memory/2026-05-01.md{query}")
            is_light(window)
    assert window.get_by_text("Line 50000 says").count()
    window.goto("/w/default/files/memory/2026-05-01.md")
    window.get_by_role("link", name="Later lines").first.click()
    is_at(window, "from=1001")
    assert window.get_by_text("Line 1001 says").count()
    window.get_by_role("link", name="Earlier lines").first.click()
    is_at(window, "from=1")
    window.goto(f"/w/default/files/memory/2026-05-01.md?from={count - 20}#L{count}")
    assert window.locator(":target").count() == 1 and window.get_by_role("link", name="Later lines").count() == 0
    window.get_by_text("The entries of a file this long are not listed.").wait_for()
    window.goto("/w/default/edit/memory/2026-05-01.md")
    window.get_by_text("too large for a form").wait_for()


@pytest.mark.parametrize("word", ["word ", "x"])
def test_a_text_of_one_line_of_1_mb_is_read_and_edited(window: Any, server: RunningServer, word: str) -> None:
    line = word * (1_000_000 // len(word) - 10)
    write_file(server, "line.md", f"# One line\n\n{line}\n")
    said = [{"role": "user", "content": line}, {"role": "assistant", "content": "Yes."}]
    assert server.http.post(f"{W}/sessions/line/messages", json={"messages": said}).is_success
    for width in (390, 1440):
        window.set_viewport_size({"width": width, "height": 900})
        for path in ("/files/memory/line.md", "/files/memory/line.md?as=source", "/sessions/line", "/search?q=word"):
            window.goto(f"/w/default{path}")
            is_light(window)
    window.goto("/w/default/files/memory/line.md")
    window.get_by_text("Long lines are cut here.").wait_for()
    window.goto("/w/default/edit/memory/line.md")
    editor = window.get_by_label("Your text")
    assert len(editor.input_value()) == len(f"# One line\n\n{line}\n"), "nothing of it is cut in the form"
    window.evaluate("document.querySelector('textarea').setRangeText('# Two', 0, 5)")
    window.get_by_role("button", name="Save").click()
    is_at(window, "/files/memory/line.md")
    assert (server.home / "default/memory/line.md").read_text("utf-8") == f"# Two line\n\n{line}\n"


def test_a_session_of_50_000_messages_is_read_part_by_part(window: Any, server: RunningServer, chromium: Any) -> None:
    for first in range(1, 50_001, 1_000):
        talk = [
            {"role": ("assistant", "user")[number % 2], "content": f"Message {number} of a long talk."}
            for number in range(first, first + 1_000)
        ]
        assert server.http.post(f"{W}/sessions/long/messages", json={"messages": talk}).is_success
    # A server that has not read it yet shows the log at once, and the view as soon as all of it is read.
    with own_process(server.home, {}) as (url, _), window_of(chromium, url) as fresh:
        with fresh.expect_response(lambda response: "view=yes" in response.url):
            answer = fresh.goto("/w/default/sessions/long?until=25001&at=25001#m25001")
        assert "Message 25000 of" in answer.text() and "What the model sees is put beside it" in answer.text()
        fresh.locator("dl.figures", has_text="50000").wait_for()
        assert fresh.locator("#m25001[aria-current=true] .seen").inner_text() == "the same"
        fresh.reload()
        assert fresh.locator("#m25001 .seen").count() == 1, "it is read now"
    for width in (390, 1440):
        window.set_viewport_size({"width": width, "height": 900})
        window.goto("/w/default/sessions/long")
        is_light(window)
        assert window.get_by_text("Message 50000 of").count() and not window.get_by_text("Message 49000 of").count()
    window.get_by_role("link", name="Earlier messages").click()
    window.get_by_text("Message 49800 of").first.wait_for()
    window.goto("/w/default/sessions/long?until=25001")
    is_light(window)
    window.get_by_text("Message 25000 of").first.wait_for()


def test_a_file_that_is_edited_on_disk_meanwhile_is_merged_without_scripts(
    server: RunningServer, chromium: Any
) -> None:
    file = server.home / "default" / "MEMORY.md"
    with window_of(chromium, server.url, java_script_enabled=False, viewport=PHONE) as window:
        window.goto("/w/default/edit/MEMORY.md")
        window.get_by_label("Your text").fill("- Mine.\n")
        file.write_text("- Theirs.\n", "utf-8")
        window.get_by_role("button", name="Save").click()
        assert window.get_by_label("What the file says now").input_value() == "- Theirs.\n"
        assert window.get_by_label("Your text").input_value() == "- Mine.\n"
        file.write_text("- Theirs, again.\n", "utf-8")
        window.get_by_role("button", name="Save over").click()
        assert window.get_by_label("What the file says now").input_value() == "- Theirs, again.\n", "a second conflict"
        window.get_by_label("Your text").fill("- Theirs, again, and mine.\n")
        window.get_by_role("button", name="Save over").click()
        is_at(window, "/files/MEMORY.md")
        assert file.read_text("utf-8") == "- Theirs, again, and mine.\n"
        window.goto("/w/default/edit/MEMORY.md")
        file.unlink()
        window.get_by_label("Your text").fill("- It was gone.\n")
        window.get_by_role("button", name="Save").click()
        window.get_by_role("alert").wait_for()
        window.get_by_role("button", name="Save").click()
        assert file.read_text("utf-8") == "- It was gone.\n"


def test_a_workspace_that_is_erased_while_it_is_looked_at_is_named(window: Any, server: RunningServer) -> None:
    window.goto("/w/default/search?q=deploy")
    erase(server)
    window.locator("#q").fill("where does Ana live")
    window.wait_for_timeout(500)
    assert window.locator("nav").count(), "the page stands"
    for path in VIEWS:
        answer = window.goto(f"/w/default{path}")
        assert answer.status == 404 and window.get_by_text("There is no workspace").count()
    assert axe(window, server.url) == []
    window.get_by_role("link", name="Overview").click()
    window.get_by_text("Nothing is remembered yet.").wait_for()


def test_a_form_of_an_erased_workspace_does_nothing(window: Any, server: RunningServer) -> None:
    window.goto("/w/default/files")
    window.get_by_label("A new memory").fill("The pump stands in the cellar.")
    erase(server)
    window.get_by_role("button", name="Remember").click()
    window.get_by_text("There is no workspace").wait_for()
    assert not (server.home / "default").exists()


def test_a_key_that_is_withdrawn_leads_to_the_sign_in_and_nothing_is_sent(chromium: Any, tmp_path: Path) -> None:
    service = MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder())
    service.remember("default", "Deploys go out on Tuesdays.")
    service.access.make(NewKey(name="me", role="admin"))
    writer = service.access.make(NewKey(name="writer", role="write"))
    with serving(service) as server, window_of(chromium, server.url) as window:
        window.goto("/w/default/files")
        sign_in(window, writer.key)
        window.get_by_label("A new memory").fill("The pump stands in the cellar.")
        service.access.withdraw(writer.key_id)
        window.get_by_role("button", name="Remember").click()
        is_at(window, "/sign-in")
        assert "pump" not in "".join(file.read_text("utf-8") for file in server.home.rglob("*.md"))
        window.get_by_label("Key", exact=True).fill(writer.key)
        window.keyboard.press("Enter")
        window.get_by_role("alert").wait_for()


def test_a_form_that_is_sent_twice_is_done_once(window: Any, server: RunningServer) -> None:
    window.goto("/w/default/files")
    window.get_by_label("A new memory").fill("The pump stands in the cellar.")
    window.evaluate(
        """() => {
            const form = document.querySelector("main form");
            const body = () => new URLSearchParams(new FormData(form));
            return Promise.all([1, 2, 3].map(() => fetch(form.action, {method: "POST", body: body()}))).then(() => 1);
        }"""
    )
    window.get_by_role("button", name="Remember").dblclick()
    other = window.context.new_page()
    other.goto("/w/default/files")
    until(lambda: "The pump stands in the cellar." in notes(server))
    assert notes(server).count("The pump stands in the cellar.") == 1
    other.goto("/w/default/sessions/s1")
    other.get_by_text("Pins (0)").click()
    other.get_by_label("What every view keeps").fill("Never deploy on Fridays.")
    other.get_by_role("button", name="Pin", exact=True).dblclick()
    until(lambda: bool(server.http.get(f"{W}/sessions/s1/pins").json()["pins"]))
    third = window.context.new_page()
    third.goto("/w/default/sessions/s1")
    third.get_by_text("Pins (1)").wait_for()


def test_every_view_and_form_works_without_scripts(server: RunningServer, chromium: Any) -> None:
    with window_of(chromium, server.url, java_script_enabled=False, viewport=PHONE) as window:
        for view in VIEWS:
            assert window.goto(f"/w/default{view}").ok
            assert window.locator("h1").count() and window.locator("nav.views a").count() == 8
            window.locator("nav.views a").nth(2).click()
            is_at(window, "/files")
        window.get_by_label("A new memory").fill("The pump stands in the cellar.")
        window.get_by_role("button", name="Remember").click()
        window.goto("/w/default/search")
        window.get_by_label("Question").fill("pump")
        window.get_by_text("Filters").click()
        window.get_by_label("By").select_option("text")
        window.get_by_role("button", name="Search").click()
        window.get_by_text("The pump stands in the cellar.").first.wait_for()
        is_at(window, "mode=text")
        window.goto("/w/default/review?since=2026-01-01")
        window.locator("details summary", has_text="Correct").first.click()
        window.get_by_label("What it says from now on").first.fill("Deploys go out on Mondays.")
        window.get_by_role("button", name="Save").first.click()
        window.get_by_text("Deploys go out on Mondays.").first.wait_for()
        window.goto("/w/default/facts")
        window.get_by_role("button", name="Not the same as the one before").first.click()
        window.get_by_text("No fact has changed.").wait_for()
        window.goto("/w/default/sessions/s1")
        window.get_by_text("Pins (0)").click()
        window.get_by_label("What every view keeps").fill("Never deploy on Fridays.")
        window.get_by_role("button", name="Pin", exact=True).click()
        window.get_by_role("button", name="Unpin").click()
        window.get_by_role("link", name="Branch from here").first.click()
        window.get_by_label("Name of a session that begins").fill("Another question")
        window.get_by_role("button", name="Branch", exact=True).click()
        is_at(window, "/sessions/s1.branch-another-question-")
        window.goto("/w/default/prompts")
        window.locator("td a").first.click()
        window.get_by_text("Left out").first.wait_for()
        window.goto("/w/default/health")
        window.get_by_role("link", name="All findings").click()
        window.locator("tr.good").first.wait_for()
        window.get_by_role("button", name="Reindex").last.click()
        is_at(window, "/operations")
        window.goto("/w/default/files/memory/2026-03-01.md")
        window.get_by_role("link", name="Forget", exact=True).click()
        window.get_by_role("button", name="Erase for good").click()
        window.get_by_text("Looked for, and not found").wait_for()
        window.get_by_role("link", name="中文").click()
        assert window.locator("html").get_attribute("lang") == "zh-Hans"


def test_keys_see_what_their_roles_may_and_every_view_is_accessible(chromium: Any, tmp_path: Path) -> None:
    service = MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder())
    service.remember("default", "Deploys go out on Tuesdays.", origin="agent")
    service.put("default", "MEMORY.md", "# What always holds\n\n- Never deploy on Fridays.\n", if_none_match=True)
    service.append("default", "s1", [{"role": "user", "content": "When do we deploy?"}])
    service.access.make(NewKey(name="first", role="admin"))
    wrong = list[str]()
    for role, language in (("read", "zh-CN"), ("write", "en-US"), ("admin", "zh-CN")):
        key = service.access.make(NewKey.model_validate({"name": role, "role": role}))
        with (
            serving(service) as server,
            window_of(chromium, server.url, locale=language, viewport=PHONE, color_scheme="dark") as window,
        ):
            window.goto("/w/default")
            sign_in(window, key.key)
            for path in (*(f"/w/default{view}" for view in VIEWS), *(("/keys",) if role == "admin" else ())):
                may_open = role != "read" or "/edit/" not in path
                assert window.goto(path).status == (200 if may_open else 403)
                forms = window.locator("main form[method=post]").count()
                links = window.locator("main a[href*=branch], main a[href*=forget], main a[href*='/edit/']").count()
                assert role != "read" or not (forms + links), f"{path} has a change for a key that may only read"
                if overflow_of(window) > 0:
                    wrong.append(f"{role} {path}: {overflow_of(window)} pixels too wide")
                wrong += [f"{role} {path}: {finding}" for finding in axe(window, server.url)]
    assert not wrong, "\n".join(wrong)
