"""The page in headless Chromium, as a person uses it: by keys, by forms, in both languages, light and dark.

axe-core comes from `npm ci --ignore-scripts` in tests/memory_service/web/packages, or in a copy of that folder which
PAGE_PACKAGES names; Chromium is Debian's, and playwright what drives it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.schemas import NewKey
from memory_service.service import MemoryService
from tests.memory_service.web.hostile import texts
from tests.memory_service.web.visits import VIEWS, write_hostile_texts
from tests.serving import RunningServer, W, serving, settings

AXE = Path(os.environ.get("PAGE_PACKAGES") or Path(__file__).parent / "packages") / "node_modules/axe-core/axe.min.js"
CHROMIUM = shutil.which("/usr/bin/chromium") or shutil.which("chromium") or ""
WIDTHS = (390, 1440)
SCHEMES = ("light", "dark")
LANGUAGES = ("en-US", "zh-CN")
SLOWEST_MS = 120_000


def missing() -> str:
    """Why the page cannot be driven here; empty if it can."""
    if not CHROMIUM:
        return "Chromium is not installed: apt-get install chromium"
    if find_spec("playwright") is None:
        return "playwright is not installed: pip install playwright"
    return "" if AXE.is_file() else "axe-core is not installed: npm ci in tests/memory_service/web/packages"


pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser, which is started once."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # As root, which containers often are, it has no sandbox of its own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--no-proxy-server"])
        yield browser
        browser.close()


@contextmanager
def window_of(chromium: Any, url: str, **options: Any) -> Iterator[Any]:
    """A window of its own cookies; at its end nothing has failed in it, and it has asked nobody but its server."""
    options = {"locale": "en-US", "viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce", **options}
    context = chromium.new_context(base_url=url, **options)
    context.set_default_timeout(SLOWEST_MS)
    window = context.new_page()
    requests, failures = list[str](), list[str]()
    context.on("request", lambda request: requests.append(request.url))
    window.on("pageerror", lambda error: failures.append(str(error)))
    # A status that is no success is told there, too: what a test asks for.
    window.on("console", lambda said: failures.append(said.text) if said.type == "error" else None)
    yield window
    assert window.evaluate("window.__ran === undefined")
    context.close()
    assert [request for request in requests if not request.startswith((f"{url}/", "data:"))] == []
    assert [failure for failure in failures if "the server responded with a status of 4" not in failure] == []


@pytest.fixture
def window(server: RunningServer, chromium: Any) -> Iterator[Any]:
    with window_of(chromium, server.url) as opened:
        yield opened


def is_at(window: Any, path: str) -> None:
    window.wait_for_url(lambda url: path in url)


def wait_until(window: Any, condition: str) -> None:
    """Wait for what an expression says; playwright's own waiting needs `eval`, which the policy of the page forbids."""
    from playwright.sync_api import Error

    for _ in range(SLOWEST_MS // 50):
        # While another page is opened there is none to ask.
        with suppress(Error):
            if window.evaluate(condition):
                return
        window.wait_for_timeout(50)
    raise AssertionError(f"it did not come to {condition}")


def overflow_of(window: Any) -> int:
    """By how many pixels the page is wider than its window."""
    pixels: int = window.evaluate("document.documentElement.scrollWidth - innerWidth")
    return pixels


def test_results_appear_while_a_person_types_and_keys_lead_to_a_line(window: Any) -> None:
    window.goto("/w/default")
    window.keyboard.press("/")
    is_at(window, "/w/default/search")
    window.keyboard.type("where does Ana", delay=20)
    window.get_by_text("Ana lives in Porto now.").first.wait_for()
    is_at(window, "q=where+does+Ana")
    window.keyboard.type(" live", delay=20)
    is_at(window, "q=where+does+Ana+live")
    assert window.evaluate("document.activeElement.id") == "q", "the swap of results takes no focus"
    window.keyboard.press("Escape")
    window.keyboard.press("j")
    first = window.evaluate("document.activeElement.textContent")
    window.keyboard.press("j")
    assert window.evaluate("document.activeElement.textContent") != first
    window.keyboard.press("k")
    assert window.evaluate("document.activeElement.textContent") == first
    target = window.evaluate("document.activeElement.querySelector('a').getAttribute('href')")
    window.keyboard.press("Enter")
    is_at(window, target)
    assert window.locator(":target").count() == 1
    window.go_back()
    window.get_by_text("Ana lives in Porto now.").first.wait_for()
    assert window.locator("#q").input_value() == "where does Ana live", "one URL for each state"


def test_a_filter_changes_the_results_at_once(window: Any) -> None:
    window.goto("/w/default/search?q=deploy")
    assert window.locator("article.hit").count() >= 2
    window.get_by_text("Filters").click()
    window.get_by_label("Path").fill("MEMORY")
    wait_until(window, "[...document.querySelectorAll('.hit header')].every(e => e.innerText.includes('MEMORY'))")
    is_at(window, "path=MEMORY")
    assert window.locator("article.hit").count() == 1


def test_what_the_doctor_finds_comes_behind_the_page(window: Any) -> None:
    window.goto("/w/default/health")
    wait_until(window, "document.querySelectorAll('#checks [data-item]').length >= 5")
    assert window.locator("#checks [role=status]").count() == 0


def test_letters_open_the_views_and_a_question_mark_the_help(window: Any) -> None:
    window.goto("/w/default")
    for key, path in zip("fswcrho", ("files", "sessions", "prompts", "facts", "review", "health", ""), strict=True):
        window.keyboard.press(key)
        window.wait_for_url(f"**/w/default/{path}" if path else "**/w/default")
        assert window.locator("nav.views [aria-current=page]").count() == 1
    window.keyboard.press("?")
    window.locator("dialog[open]").wait_for()
    window.keyboard.press("f")
    window.keyboard.press("Escape")
    window.locator("dialog[open]").wait_for(state="hidden")
    window.wait_for_url("**/w/default")
    window.keyboard.press("?")
    window.get_by_role("button", name="Close").click()
    window.locator("dialog[open]").wait_for(state="hidden")


def test_enter_opens_what_an_item_leads_to_or_folds(window: Any, server: RunningServer) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.md"}'}}
    said = [{"role": "assistant", "content": "I look.", "tool_calls": [call]}, {"role": "user", "content": "Well?"}]
    assert server.http.post(f"{W}/sessions/folds/messages", json={"messages": said}).status_code == 200
    window.goto("/w/default/sessions/folds")
    window.keyboard.press("j")
    window.keyboard.press("Enter")
    window.locator("dl.arguments", has_text="a.md").wait_for()
    window.get_by_role("link", name="Branch from here").first.click()
    wait_until(window, "document.activeElement.name === 'title'")
    window.keyboard.type("j and k are letters")
    window.keyboard.press("Enter")
    is_at(window, "/sessions/folds.branch-j-and-k-are-letters-")
    window.locator("h1", has_text="j and k are letters").wait_for()


def test_a_file_is_edited_and_a_conflict_is_merged(window: Any, server: RunningServer) -> None:
    file = server.home / "default" / "MEMORY.md"
    window.goto("/w/default/files/MEMORY.md")
    window.keyboard.press("e")
    is_at(window, "/edit/MEMORY.md")
    editor = window.get_by_label("Your text")
    editor.press("Control+End")
    editor.type("- Ask before a release, always: 'e' and 'j' are letters.\n")
    window.get_by_role("button", name="Save").dblclick()
    is_at(window, "/files/MEMORY.md")
    assert window.get_by_text("Ask before a release").count()
    assert file.read_text("utf-8").endswith("are letters.\n")
    window.keyboard.press("e")
    is_at(window, "/edit/MEMORY.md")
    file.write_text("- Somebody with an editor was faster.\n", "utf-8")
    window.get_by_label("Your text").fill("- Mine.\n")
    window.get_by_role("button", name="Save").click()
    assert window.get_by_label("What the file says now").input_value() == "- Somebody with an editor was faster.\n"
    assert window.get_by_label("Your text").input_value() == "- Mine.\n"
    window.get_by_label("Your text").fill("- Both of us.\n")
    window.get_by_role("button", name="Save over").click()
    window.locator(".markdown", has_text="Both of us.").wait_for()
    assert file.read_text("utf-8") == "- Both of us.\n"


def test_a_memory_is_noted_and_forgotten_after_a_look(window: Any) -> None:
    window.goto("/w/default/files")
    window.get_by_label("A new memory").fill("The spare key lies with Berta.")
    with window.expect_navigation():
        window.get_by_role("button", name="Remember").click()
    window.keyboard.press("Escape")
    window.keyboard.press("j")
    window.keyboard.press("Enter")
    entry = window.locator(".entry", has_text="Berta")
    entry.get_by_role("link", name="Forget").click()
    window.get_by_text("This will be erased").wait_for()
    window.get_by_role("button", name="Erase for good").dblclick()
    window.get_by_text("Looked for, and not found").wait_for()
    window.goto("/w/default/search?q=Berta")
    assert "Berta" not in window.locator("#results").inner_text()


def test_a_review_is_made_with_one_key_each(window: Any, server: RunningServer) -> None:
    for text in ("The office is in Graz.", "Lunch is at noon.", "The printer is broken."):
        body = {"text": text, "origin": "agent", "session_id": "s1"}
        assert server.http.post(f"{W}/memories", json=body).status_code == 201

    def notes() -> str:
        return "".join(file.read_text("utf-8") for file in server.home.glob("default/memory/*.md"))

    before = notes()
    window.goto("/w/default/review")
    items = window.locator("[data-item]")
    assert items.count() == 4
    seen = [items.nth(number).locator(".said").inner_text() for number in range(4)]
    window.keyboard.press("j")
    window.keyboard.press("y")
    assert window.evaluate("document.activeElement.textContent").startswith(seen[1])
    assert notes() == before
    window.keyboard.press("e")
    window.keyboard.press("Control+A")
    window.keyboard.type("Corrected by a person.")
    window.locator("details[open]").get_by_role("button", name="Save").click()
    window.locator(".said", has_text="Corrected by a person.").wait_for()
    assert "Corrected by a person." in notes() and seen[1] not in notes()
    # After each decision the next item is at hand.
    at_hand = "document.activeElement.querySelector('.said')?.textContent"
    wait_until(window, f"{at_hand} === {seen[2]!r}")
    window.keyboard.press("d")
    wait_until(window, f"document.querySelectorAll('[data-item]').length === 3 && {at_hand} === {seen[3]!r}")
    assert seen[2] not in notes() and seen[3] in notes()


def test_a_compaction_is_unfolded_and_undone(window: Any, server: RunningServer) -> None:
    talk = [
        {"role": role, "content": f"{role} says number {number}. " + "More of it. " * 60}
        for number in range(30)
        for role in ("user", "assistant")
    ]
    assert server.http.post(f"{W}/sessions/long/messages", json={"messages": talk}).status_code == 200
    asked = {"force": True, "target_tokens": 2_000}
    assert server.http.post(f"{W}/sessions/long/compact", json=asked).json()["applied"]
    window.goto("/w/default/sessions/long")
    assert window.locator(".pair.gone").count() > 10
    window.locator(".compaction > summary").click()
    window.get_by_role("button", name="Undo").click()
    wait_until(window, "!document.querySelector('.pair.gone')")
    window.locator(".compaction > summary", has_text="undone").wait_for()


def test_the_language_is_switched_and_stays(window: Any) -> None:
    window.goto("/w/default/search?q=deploy")
    window.locator("#q").fill("Lisbon")
    is_at(window, "/search?q=Lisbon")
    window.get_by_role("link", name="中文").click()
    window.locator("html[lang=zh-Hans]").wait_for(state="attached")
    is_at(window, "/search?q=Lisbon")
    window.goto("/w/default/health")
    assert window.locator("html").get_attribute("lang") == "zh-Hans"
    window.get_by_role("link", name="English").click()
    window.locator("html[lang=en]").wait_for(state="attached")


def test_somebody_signs_in_with_a_key_and_out_again(chromium: Any, tmp_path: Path) -> None:
    service = MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder())
    service.remember("default", "Deploys go out on Tuesdays.")
    admin = service.access.make(NewKey(name="me", role="admin"))
    reader = service.access.make(NewKey(name="reader", role="read"))
    with serving(service) as server, window_of(chromium, server.url) as window:
        window.goto("/w/default/files")
        window.keyboard.type("ms_000000000000_wrong")
        window.keyboard.press("Enter")
        window.get_by_role("alert").wait_for()
        assert not axe(window, server.url)
        window.get_by_label("Key", exact=True).fill(reader.key)
        window.keyboard.press("Enter")
        is_at(window, "/w/default/files")
        assert window.locator("textarea").count() == 0
        assert window.evaluate("document.cookie") == "", "no script can read the cookies"
        window.get_by_role("button", name="Sign out").click()
        window.get_by_label("Key", exact=True).fill(admin.key)
        window.keyboard.press("Enter")
        window.get_by_role("link", name="Access keys").click()
        window.get_by_label("Name", exact=True).fill("third")
        window.get_by_role("button", name="Make it").dblclick()
        assert window.locator("pre").inner_text().startswith("ms_")
        row = window.locator("tr", has_text="reader")
        row.get_by_role("button", name="Withdraw").click()
        wait_until(window, "document.querySelectorAll('button.danger').length === 2")
        window.get_by_role("button", name="Sign out").click()
        window.goto("/w/default")
        is_at(window, "/sign-in")


def test_the_page_is_read_without_scripts(server: RunningServer, chromium: Any) -> None:
    with window_of(chromium, server.url, java_script_enabled=False) as window:
        window.goto("/w/default/search")
        window.get_by_label("Question").fill("where does Ana live")
        window.get_by_role("button", name="Search").click()
        window.get_by_text("Ana lives in Porto now.").first.wait_for()


AXE_RUN = """() => axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations
    .filter(each => ["serious", "critical"].includes(each.impact))
    .map(each => each.id + ": " + each.nodes.slice(0, 3).map(node => node.target.join(" ") + " " +
        node.any.map(check => check.message).join("; ")).join(" | ")))"""


def test_the_reference_is_filtered_and_leads_to_a_route(window: Any) -> None:
    window.goto("/docs")
    window.keyboard.press("/")
    window.keyboard.type("undo")
    wait_until(window, "[...document.querySelectorAll('#contents li li')].filter(each => !each.hidden).length === 1")
    window.keyboard.press("Escape")
    window.keyboard.press("?")
    window.locator("dialog[open]", has_text="The filter").wait_for()
    window.keyboard.press("Escape")
    window.locator("#contents li li:visible a").click()
    is_at(window, "#undo_")
    assert window.evaluate("document.querySelector('article:target h3').textContent") == "Undo a compaction"


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_the_reference_is_accessible(server: RunningServer, chromium: Any, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900}
    with window_of(chromium, server.url, bypass_csp=True, viewport=size, color_scheme=scheme) as window:
        window.goto("/docs")
        assert findings(window) == [] and overflow_of(window) <= 0


def axe(window: Any, url: str) -> list[str]:
    """Serious and critical findings on what a window shows, as its server has given it."""
    # The policy of the page lets no script of others in: the same page is opened once more, without it.
    context = window.context.browser.new_context(
        base_url=url, bypass_csp=True, storage_state=window.context.storage_state(), reduced_motion="reduce"
    )
    other = context.new_page()
    other.goto(window.url)
    found: list[str] = findings(other)
    context.close()
    return found


def findings(window: Any) -> list[str]:
    """Serious and critical findings of axe in a window that lets its script in."""
    window.add_script_tag(path=str(AXE))
    found: list[str] = window.evaluate(AXE_RUN)
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_view_is_accessible_and_as_wide_as_its_window(
    server: RunningServer, chromium: Any, language: str
) -> None:
    receipt = server.http.get(f"{W}/receipts").json()["receipts"][0]["receipt_id"]
    views = [*VIEWS, f"/prompts/{receipt}", "/forget?memory=MEMORY.md", "/nowhere"]
    wrong = list[str]()
    with window_of(chromium, server.url, locale=language, bypass_csp=True) as window:
        for path in ("/", "/keys", *(f"/w/default{view}" for view in views)):
            window.goto(path)
            window.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true")
            for width in WIDTHS:
                window.set_viewport_size({"width": width, "height": 900})
                for scheme in SCHEMES:
                    window.emulate_media(color_scheme=scheme)
                    here = f"{path} {width} {scheme}"
                    wrong += [f"{here}: {found}" for found in findings(window)]
                    if overflow_of(window) > 0:
                        wrong.append(f"{here}: {overflow_of(window)} pixels too wide")
    assert not wrong, "\n".join(wrong)


def test_no_hostile_text_runs_or_leaves(
    server: RunningServer, chromium: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    hostile = list(texts())
    assert len(hostile) >= 300
    views = write_hostile_texts(server, hostile, tmp_path)
    receipts = server.http.get(f"{W}/receipts").json()["receipts"]
    views += [f"/prompts/{each['receipt_id']}" for each in receipts[:4]]
    with window_of(chromium, server.url, viewport={"width": 390, "height": 900}) as window:
        for view in views:
            window.goto(f"/w/default{view}")
            window.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true")
            assert window.evaluate("window.__ran === undefined"), view
            assert overflow_of(window) <= 0, view
        window.goto("/w/default/search")
        for text in hostile[::9]:
            with window.expect_response(lambda response: "/search?" in response.url):
                window.locator("#q").fill(text[:2_000])
            wait_until(window, "!document.querySelector('.htmx-request')")
            assert window.evaluate("window.__ran === undefined"), text
