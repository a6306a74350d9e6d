"""The page in Chromium against a server on loopback: first paint, keystroke to results, a long session, bytes, lines.

`python -m tests.benchmarks.page [--passages 10000] [--messages 10000] [--rounds 15]`

- `first_paint_ms`: from the request of a view to its first contentful paint, by the browser's own clock, p50 and p95;
- `keystroke_ms`: from the key that is pressed to its first result on the screen, by the browser's own clock;
- `session_ms`: from the request of a long session to its last message in the page;
- `processor_ms`: the server's processor time for a page, which other work on the machine leaves as it is; of a search,
  for a question that was not asked before;
- `gzip_bytes`: scripts and styles as the server sends them;
- `lines`: Python, templates and styles of ours.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from memory_service.config import Settings
from memory_service.service import MemoryService
from tests.benchmarks.postgres_search import sample_sentences, write_sample_notes
from tests.benchmarks.sessions import messages
from tests.serving import running_process, serving

_WEB = Path(__file__).resolve().parents[2] / "memory_service" / "web"
_VIEWS = ("", "/search", "/files", "/sessions", "/prompts", "/facts", "/review", "/health", "/operations")
# In the page: the moment of each key, and that at which the first of its results was on the screen.
_CLOCK = """(() => {
  window.__times = [];
  let pressed = 0;
  document.addEventListener("keydown", () => { pressed = performance.now(); }, true);
  new MutationObserver(() => {
    document.querySelector("#hits .said, #hits > p:last-child")?.setAttribute("elementtiming", "result");
  }).observe(document.getElementById("results"), { childList: true });
  new PerformanceObserver((list) => {
    window.__times.push(...list.getEntries().map((entry) => entry.renderTime - pressed));
    window.__shown?.();
  }).observe({ type: "element" });
})()"""
_SHOWN = "new Promise((done) => { window.__shown = () => { if (__times.length) done(__times[0]); }; __shown(); })"
_PAINT = """new Promise((done) => new PerformanceObserver((list) => {
  for (const entry of list.getEntriesByName("first-contentful-paint")) done(entry.startTime);
}).observe({ type: "paint", buffered: true }))"""


def percentiles(times: list[float]) -> dict[str, float]:
    """Median and the 95th part of a hundred."""
    ordered = sorted(times)
    return {"p50": round(statistics.median(ordered), 1), "p95": round(ordered[round(0.95 * (len(ordered) - 1))], 1)}


def paints(window: Any, rounds: int) -> dict[str, dict[str, float]]:
    """First contentful paints of the views."""
    by_view = dict[str, dict[str, float]]()
    for view in _VIEWS:
        times = list[float]()
        for _ in range(rounds):
            window.goto(f"/w/default{view}")
            times.append(window.evaluate(_PAINT))
        by_view[view or "/"] = percentiles(times)
    return by_view


def keystrokes(window: Any, rounds: int) -> dict[str, float]:
    """Times from a key to results; a person has typed a question but for its last letters."""
    window.goto("/w/default/search")
    window.evaluate(_CLOCK)
    times = list[float]()
    for sentence in sample_sentences()[: rounds * 3 : 3]:
        question = " ".join(sentence.split()[:5])
        window.locator("#q").fill(question)
        window.wait_for_timeout(1_500)
        window.locator("#q").press("End")
        window.evaluate("window.__times = []")
        window.keyboard.type("s")
        times.append(window.evaluate(_SHOWN))
    return percentiles(times)


def openings(window: Any, rounds: int) -> dict[str, float]:
    """Times until a long session is there: the first in a server that has not read it, then the others."""
    times = list[float]()
    for _ in range(max(3, rounds // 3)):
        begun = time.perf_counter()
        window.goto("/w/talks/sessions/long", wait_until="domcontentloaded")
        times.append(1000 * (time.perf_counter() - begun))
    return {"first": round(times[0], 1), **percentiles(times[1:])}


def processor_times(http: httpx.Client, rounds: int) -> dict[str, dict[str, float]]:
    """Processor time of this process, which is the server, for each view and for new questions."""

    def spent(path: str) -> float:
        begun = time.process_time()
        assert http.get(path, headers={"Accept": "text/html"}).is_success
        return 1000 * (time.process_time() - begun)

    questions = ["+".join(sentence.split()[:5]) + "+x" for sentence in sample_sentences()[: rounds * 3 : 3]]
    by_view = {view or "/": percentiles([spent(f"/w/default{view}") for _ in range(rounds)]) for view in _VIEWS}
    return {**by_view, "/search?q=": percentiles([spent(f"/w/default/search?q={asked}") for asked in questions])}


def sizes() -> dict[str, int]:
    """Bytes of scripts and styles, gzipped, and lines of ours."""
    scripts = [file for file in (_WEB / "static").iterdir() if file.suffix in (".js", ".css")]
    ours = [*_WEB.rglob("*.py"), *_WEB.rglob("*.html"), *(_WEB / "static").glob("page.*")]
    return {
        "gzip_bytes": sum(len(gzip.compress(file.read_bytes(), 9)) for file in scripts),
        "lines": sum(len(file.read_text("utf-8").splitlines()) for file in ours),
    }


def main(passages: int, count: int, rounds: int) -> dict[str, object]:
    """All measurements."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_sample_notes(home / "default", passages)
        with MemoryService(Settings(home=home)) as service:
            service.reindex("default", full=True)
            talk = messages(count)
            for first in range(0, count, 500):
                service.append("talks", "long", talk[first : first + 500])
            # A server would do that beside the measurements.
            service.reindex("talks")
            measured: dict[str, object] = {"passages": service.status("default").passages}
        with running_process(home, {}) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--no-proxy-server"]
            )
            window = browser.new_page(base_url=url)
            # The first look at the facts of a large workspace reads all of its statements.
            window.set_default_timeout(600_000)
            window.goto("/w/default/health")
            measured |= {
                "session_ms": openings(window, rounds),
                "first_paint_ms": paints(window, rounds),
                "keystroke_ms": keystrokes(window, rounds),
            }
            browser.close()
        with MemoryService(Settings(home=home)) as service, serving(service) as server:
            measured["processor_ms"] = processor_times(server.http, rounds)
    return measured | sizes()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    print(json.dumps(main(given.passages, given.messages, given.rounds), indent=1))
