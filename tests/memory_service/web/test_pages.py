"""Every view of the page over real HTTP: what it shows, what its forms do, and whom it refuses."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from indexer.testing import HashEmbedder
from memory_service.hosts.progress import note_faults
from memory_service.schemas import NewKey
from memory_service.service import MemoryService
from memory_service.web.render import words
from tests.memory_service.web.hostile import texts
from tests.memory_service.web.visits import VIEWS, Person, area_of, field_of, read, write_hostile_texts
from tests.serving import RunningServer, W, serving, settings
from tests.waiting import until

RUNNING = ("style", "iframe", "object", "embed", "base", "img", "video", "audio", "template", "marquee")
NEW = {"If-None-Match": "*"}
TEMPLATES = Path(__file__).parents[3] / "memory_service" / "web" / "templates"


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_whole_in_both_languages_and_asks_nobody_else(person: Person, view: str) -> None:
    for language in ("en", "zh-CN"):
        answer = person.http.get(f"/w/default{view}", headers={"Accept-Language": language})
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy
        page = read(answer.text)
        for tag, attributes in page.elements:
            # No script and no style in the page itself, nothing from elsewhere, no handler.
            assert tag != "style" and "style" not in attributes
            assert tag != "script" or attributes["src"].startswith("/static/")
            assert not any(name.startswith("on") for name in attributes)
            for name in ("src", "href", "action", "hx-get", "hx-post"):
                assert re.match(r"(?:/(?!/)|#|\?|data:,|$)", attributes.get(name, "")), (tag, attributes)
        labels = [attributes for tag, attributes in page.elements if tag == "html"]
        assert labels[0]["lang"] == ("zh-Hans" if language == "zh-CN" else "en")


def test_the_words_of_the_templates_are_there_in_chinese() -> None:
    literals = set[str]()
    for file in TEMPLATES.glob("*.html"):
        literals |= {a or b for a, b in re.findall(r"""\bt\((?:'([^']*)'|"([^"]*)")""", file.read_text("utf-8"))}
    missing = {word for word in literals if word not in words("zh") and word != "/"}
    assert not missing
    for word in words("zh"):
        assert set(re.findall(r"{\w+}", word)) == set(re.findall(r"{\w+}", words("zh")[word]))


def test_a_hit_leads_to_its_line_and_says_what_replaced_it(person: Person) -> None:
    page = person.opens("/w/default/search?q=where does Ana live")
    links = [attributes["href"] for tag, attributes in read(page).elements if tag == "a" and "#L" in attributes["href"]]
    assert links
    path, _, line = links[0].partition("#")
    assert f'id="{line}"' in person.opens(path)
    assert "Since replaced by" in page


@pytest.mark.parametrize("question", ["where does Ana live", "when do we deploy", "Fridays in Lisbon", "什么时候部署"])
def test_the_results_are_those_of_the_search_over_http(person: Person, server: RunningServer, question: str) -> None:
    def are_equal() -> bool:
        page = person.opens(f"/w/default/search?q={quote(question)}")
        shown = re.findall(r'class="hit" data-item>\s*<header><a [^>]*>([^<]+)#L(\d+)', page)
        results = server.http.post(f"{W}/search", json={"query": question, "limit": 20}).json()["results"]
        return len(shown) >= 3 and shown == [(hit["path"], str(hit["start_line"])) for hit in results]

    # Between the two searches, what was said in the session may be indexed.
    until(are_equal)


def test_a_line_of_a_long_file_is_reached_in_whatever_part_it_is(person: Person, server: RunningServer) -> None:
    lines = [f"- Note {number} of the year. {'More of it. ' * 50}\n" for number in range(1, 501)]
    made = server.http.put(f"{W}/memories/memory/2026-05-01.md", json={"text": "".join(lines)}, headers=NEW)
    assert made.status_code == 200
    for line in (1, 250, 340, 370, 500, 9_999):
        shown = person.opens(f"/w/default/files/memory/2026-05-01.md?as=source&at={line}")
        assert f'<li id="L{min(line, 500)}">' in shown, line
    assert '<li id="L1">' in person.opens("/w/default/files/memory/2026-05-01.md?as=source&at=20")


def test_the_calendar_leads_to_the_notes_of_a_day(person: Person, server: RunningServer) -> None:
    for name in ("2026-09-01-talk.md", "2026-09-02.md"):
        made = server.http.put(f"{W}/memories/memory/{name}", json={"text": "- By hand.\n"}, headers=NEW)
        assert made.status_code == 200
    links = {attributes.get("href", "") for tag, attributes in read(person.opens("/w/default")).elements if tag == "a"}
    assert {"/w/default/files?day=2026-09-01", "/w/default/files/memory/2026-09-02.md"} <= links
    listed = person.opens("/w/default/files?day=2026-09-01")
    assert "memory/2026-09-01.md" in listed and "2026-09-01-talk.md" in listed and "2026-09-02" not in listed


def test_any_line_is_forgotten_from_the_source_of_its_file(person: Person, server: RunningServer) -> None:
    page = person.opens("/w/default/files/MEMORY.md?as=source")
    links = [attributes["href"] for _, attributes in read(page).elements if "/forget?" in attributes.get("href", "")]
    assert len(links) == 3, "a blank line has nothing to forget"
    asked = person.opens(links[-1])
    assert "Never deploy on Fridays." in asked and "Rules" not in asked
    person.sends("/w/default/forget", memory=field_of(asked, "memory"))
    kept = server.http.get(f"{W}/memories/MEMORY.md").json()["text"]
    assert "Rules" in kept and "Fridays" not in kept


def test_an_edit_is_saved_and_a_conflict_shows_both(person: Person, server: RunningServer) -> None:
    page = person.opens("/w/default/edit/MEMORY.md")
    etag, text = field_of(page, "etag"), area_of(page, "text")
    assert "Never deploy on Fridays." in text
    server.home.joinpath("default/MEMORY.md").write_text("- Somebody with an editor was faster.\n", "utf-8")
    conflict = person.sends("/w/default/files/MEMORY.md", 409, etag=etag, text="- Mine.\r\n")
    assert area_of(conflict, "text") == "- Mine.\n"
    assert "Somebody with an editor was faster." in conflict and "nothing is saved yet" in conflict
    person.sends("/w/default/files/MEMORY.md", etag=field_of(conflict, "etag"), text="- Both.\r\n")
    assert server.home.joinpath("default/MEMORY.md").read_text("utf-8") == "- Both.\n"
    # A form that is sent twice is no conflict; what is sent after another edit is one.
    assert "nothing is saved yet" not in person.sends(
        "/w/default/files/MEMORY.md", etag=field_of(conflict, "etag"), text="- Both.\r\n"
    )
    person.sends("/w/default/files/MEMORY.md", 409, etag=field_of(conflict, "etag"), text="- Mine.\r\n")


def test_an_entry_leads_to_the_messages_that_it_is_from(person: Person, server: RunningServer) -> None:
    comment = "<!-- memory id=m0123456789ab session=s1 messages={} origin=agent at=2026-11-20T13:32:07.412Z -->"
    for name, messages in (("memory/2026-11-20.md", "2-3"), ("memory/2026-11-21.md", "many")):
        text = f"# Notes\n\n{comment.format(messages)}\n- We deploy on Tuesdays.\n"
        made = server.http.put(f"{W}/memories/{name}", json={"text": text}, headers=NEW)
        assert made.status_code == 200
    page = person.opens("/w/default/files/memory/2026-11-20.md")
    link = next(
        attributes["href"] for _, attributes in read(page).elements if "/sessions/s1" in attributes.get("href", "")
    )
    assert link == "/w/default/sessions/s1?at=2&until=23#m2" and "s1, messages 2–3" in page
    assert 'aria-current="true"' in person.opens(link).partition('id="m2"')[2][:40]
    assert 'href="/w/default/sessions/s1">s1</a>' in person.opens("/w/default/files/memory/2026-11-21.md")


def test_a_new_file_is_made_once(person: Person, server: RunningServer) -> None:
    person.opens("/w/default/edit/memory/plans.md")
    person.sends("/w/default/files/memory/plans.md", etag="", text="# Plans\n")
    assert server.home.joinpath("default/memory/plans.md").read_text("utf-8") == "# Plans\n"
    person.sends("/w/default/files/memory/plans.md", 409, etag="", text="# Others\n")
    person.sends("/w/default/files/notes.txt", 400, etag="", text="x")


def test_what_is_forgotten_is_shown_first_and_then_looked_for(person: Person) -> None:
    page = person.opens("/w/default/files/memory/2026-03-01.md")
    link = next(
        attributes["href"]
        for tag, attributes in read(page).elements
        if tag == "a" and "/forget?memory=m" in attributes["href"]
    )
    asked = person.opens(link)
    assert "Ana lives in Lisbon." in asked
    assert "Ana lives in Lisbon." in person.opens("/w/default/search?q=Lisbon"), "nothing is erased by looking"
    done = person.sends("/w/default/forget", memory=field_of(asked, "memory"))
    assert "Looked for, and not found" in done
    assert "Ana lives in Lisbon." not in person.opens("/w/default/search?q=Lisbon")
    person.sends("/w/default/forget", 404, memory=field_of(asked, "memory"))


def test_log_and_view_stand_side_by_side_and_a_compaction_is_undone(person: Person, server: RunningServer) -> None:
    talk = [
        {"role": role, "content": f"{role} says number {number}. " + "More of it. " * 60}
        for number in range(30)
        for role in ("user", "assistant")
    ]
    assert server.http.post(f"{W}/sessions/long/messages", json={"messages": talk}).status_code == 200
    made = server.http.post(f"{W}/sessions/long/compact", json={"force": True, "target_tokens": 2_000}).json()
    assert made["applied"]
    page = person.opens("/w/default/sessions/long")
    assert page.count('class="pair gone"') > 10 and "says number 29" in page
    assert f"{made['tokens_before']} → {made['tokens_after']}" in page
    # The fold of the compaction stands in the log between what it covered and what it kept, beside the checkpoint.
    first = made["first_kept"]
    names = (f"m{first - 1}", made["compaction_id"], f"m{first}")
    last_covered, fold, kept = (page.index(f'id="{name}"') for name in names)
    assert last_covered < fold < kept
    told = read(page[fold - 100 : kept]).text
    for part in (f"{first - 2} messages", "Kept word for word", "Dropped", "Cost", "Method", "Undo", "checkpoint"):
        assert part in told, part
    assert 'class="compaction"' not in person.opens(f"/w/default/sessions/long?until={first - 5}")
    person.sends("/w/default/sessions/long/undo", compaction=made["compaction_id"])
    assert 'class="pair gone"' not in person.opens("/w/default/sessions/long")
    assert "undone" in read(person.opens("/w/default/sessions/long").partition('class="compaction"')[2]).text
    person.sends("/w/default/sessions/long/undo", 409, compaction=made["compaction_id"])
    person.sends("/w/default/sessions/long/pins", seq="4")
    pinned = person.opens("/w/default/sessions/long")
    assert "· pinned" in pinned.partition('id="m4"')[2].partition('id="m5"')[0]
    person.sends("/w/default/sessions/long/unpin", pin=field_of(pinned, "pin"))
    person.sends("/w/default/sessions/long/pins", text="Never deploy on Fridays.")
    pinned = person.opens("/w/default/sessions/long")
    assert "Never deploy on Fridays." in pinned
    person.sends("/w/default/sessions/long/unpin", pin=field_of(pinned, "pin"))
    assert "Never deploy on Fridays." not in person.opens("/w/default/sessions/long")


def test_a_call_of_a_tool_is_read_as_a_list_wherever_messages_are_shown(person: Person, server: RunningServer) -> None:
    asked = {
        "path": "src/retry.py",
        "text": "for each in range(3):\n" * 40,
        "how": {"dry_run": True, "tags": ["a", "b"]},
    }
    functions = [
        {"name": "edit_file", "arguments": json.dumps(asked)},
        {"name": "list_files", "arguments": "{}"},
        {"name": "bash", "arguments": '{"command": "cut off'},
    ]
    calls = [{"id": f"c{at}", "type": "function", "function": each} for at, each in enumerate(functions)]
    said = [
        {"role": "user", "content": "Where is the retry limit set?"},
        {"role": "assistant", "content": "The retry limit is set in retry.py.", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": each["id"], "content": "ok"} for each in calls),
    ]
    assert server.http.post(f"{W}/sessions/tools/messages", json={"messages": said}).status_code == 200
    assert server.http.post(f"{W}/reindex", json={}).is_success
    question = {"query": "Where is the retry limit set in retry.py?"}

    def receipt() -> str | None:
        told = server.http.post(f"{W}/context", json=question).json()["receipt"]
        paths = [each["path"] for each in (*told["included"], *told["omitted"])]
        return str(told["receipt_id"]) if "sessions/tools.jsonl" in paths else None

    until(lambda: receipt() is not None)
    citation = quote("sessions/tools.jsonl#L3")
    for view in ("/sessions/tools", f"/prompts/{receipt()}", f"/forget?memory={citation}"):
        shown = person.opens(f"/w/default{view}")
        lists = re.findall(r'<dl class="arguments">(.*?)</dl>', shown, re.DOTALL)
        terms = [re.findall(r"<dt>(.*?)</dt>", each) for each in lists]
        assert ["path", "text", "how.dry_run", "how.tags"] in terms and ["_raw"] in terms, view
        assert "list_files" in shown and "a, b" in shown and "tool_calls" not in shown and "&#34;path&#34;" not in shown
        # A long one is folded.
        assert re.search(r"<dt>text</dt><dd><details[^>]*><summary>for each in range\(3\):", shown)


def test_a_session_is_branched_at_a_message(person: Person, server: RunningServer) -> None:
    page = person.opens("/w/default/sessions/s1")
    link = next(attributes["href"] for _, attributes in read(page).elements if "branch=2" in attributes.get("href", ""))
    form = person.opens(f"/w/default/sessions/s1{link}")
    assert field_of(form, "seq") == "2" and form.count('class="branch"') == 1
    for _ in range(2):
        branch = person.sends("/w/default/sessions/s1/branches", seq="2", title="换一种问法")
        assert "换一种问法" in branch and "When do we deploy?" in branch and "On Tuesdays." not in branch
    names = [each["session_id"] for each in server.http.get(f"{W}/sessions").json()["sessions"]]
    assert len(names) == 2
    assert "换一种问法" in person.opens("/w/default/sessions/s1")
    person.sends("/w/default/sessions/s1/branches", 409, seq="3", title="换一种问法")
    for seq in ("", "x", "99", "0"):
        person.sends("/w/default/sessions/s1/branches", 404 if seq == "99" else 422, seq=seq, title="other")
    assert len(server.http.get(f"{W}/sessions").json()["sessions"]) == 2


def test_the_window_over_time_is_a_picture_and_a_table(person: Person, server: RunningServer) -> None:
    place = f"{W}/sessions/budget"
    assert server.http.post(f"{W}/sessions", json={"session_id": "budget", "context_window": 32_000}).status_code == 201
    for number in range(3):
        said = [{"role": "user", "content": f"When do we deploy number {number}? " + "More of it. " * 200}]
        assert server.http.post(f"{place}/messages", json={"messages": said}).status_code == 200
        prompt = {"recall": "always", "system_prompt": "You help."}
        assert server.http.post(f"{place}/context", json=prompt).status_code == 200
        if number == 1:
            compacted = server.http.post(f"{place}/compact", json={"force": True, "target_tokens": 700})
            assert compacted.json()["applied"]
    measures = server.http.get(f"{place}/prompts").json()["prompts"]
    page = read(person.opens("/w/default/prompts?session=budget"))
    classes = [attributes.get("class", "") for tag, attributes in page.elements if tag == "rect"]
    assert classes.count("cached") == 3 and classes.count("compacted") == 1
    assert {"part0", "part3", "part4", "part5", "part6"} <= {*classes}
    for measure in measures:
        assert str(measure["tail"]) in page.text and str(measure["cached_prefix_tokens"]) in page.text
    receipts = [attributes["href"] for _, attributes in page.elements if "/prompts/r" in attributes.get("href", "")]
    assert f"tail {measures[-1]['tail']}" in " ".join(read(person.opens(receipts[0])).text.split())
    person.sends("/w/default/forget", memory="sessions/budget.jsonl#L2")
    # With a message go the prompts that it stood in.
    assert server.http.get(f"{place}/prompts").json()["prompts"] == []
    assert "The window over time" not in person.opens("/w/default/prompts?session=budget")


def test_a_prompt_tells_what_went_in_and_what_stayed_out(person: Person) -> None:
    listed = person.opens("/w/default/prompts?session=s1")
    link = re.search(r'href="(/w/default/prompts/r[^"]+)"', listed)
    assert link
    page = person.opens(link[1])
    assert "When do we deploy?" in page and "memory/" in page and "Left out" in page
    assert "Nothing yet." in person.opens("/w/default/prompts?session=other")


def test_two_facts_are_told_apart_by_a_line_that_people_can_read(person: Person, server: RunningServer) -> None:
    page = person.opens("/w/default/facts")
    assert page.index("Ana lives in Lisbon.") < page.index("Ana lives in Porto now.")
    person.sends("/w/default/facts", one=field_of(page, "one"), other=field_of(page, "other"))
    notes = "".join(file.read_text("utf-8") for file in server.home.glob("default/memory/*.md"))
    assert 'Not the same: "Ana lives in Lisbon" and "Ana lives in Porto now"' in notes
    assert "No fact has changed." in person.opens("/w/default/facts")


def test_a_review_changes_nothing_before_a_person_says_so(person: Person, server: RunningServer) -> None:
    before = {file: file.read_bytes() for file in server.home.glob("default/memory/*.md")}
    page = person.opens("/w/default/review?since=2026-01-01")
    assert "Deploys go out on Tuesdays." in page and "Ana lives" not in page, "what a person noted needs no review"
    assert {file: file.read_bytes() for file in server.home.glob("default/memory/*.md")} == before
    memory, etag = field_of(page, "memory"), field_of(page, "etag")
    for status in (200, 409):
        text = "Deploys go out on Mondays."
        shown = person.sends("/w/default/review", status, do="correct", memory=memory, etag=etag, text=text)
        assert text in shown
    page = person.opens("/w/default/review?since=2026-01-01")
    person.sends("/w/default/review", do="forget", memory=field_of(page, "memory"))
    assert "Mondays." not in person.opens("/w/default/search?q=Deploys go out on Mondays")
    person.sends("/w/default/review", 409, do="forget", memory=memory)


def test_a_reindex_shows_how_far_it_is(person: Person) -> None:
    person.opens("/w/default/health")
    page = person.sends("/w/default/health", full="yes")
    operation = re.search(r'id="(op-\w+)"', page)
    assert operation
    person.sends("/w/default/operations", cancel=operation[1])
    person.sends("/w/default/operations", 404, cancel="op-none")


def test_a_form_of_another_site_or_another_time_does_nothing(person: Person, server: RunningServer) -> None:
    person.opens("/w/default/files")
    person.sends("/w/default/files", 403, token="wrong", text="x")
    foreign = person.http.post("/w/default/files", data={"text": "x"}, headers={"Origin": "http://evil.example"})
    assert foreign.status_code == 403
    json = person.http.post("/w/default/files", json={"text": "x"})
    assert json.status_code == 422
    assert person.http.get("/w/default/files").text.count("data-item") == 4
    for referer, target in (
        ("http://evil.example//evil.example", "/"),
        (f"{server.url}/w/default?q=1", "/w/default?q=1"),
    ):
        to_chinese = person.http.get("/static/language?to=zh", headers={"Referer": referer}, follow_redirects=False)
        assert to_chinese.headers["location"] == target
    assert server.http.post("/w/default/files", data={"text": "x"}).status_code == 403


def test_what_is_not_there_is_told_on_a_page(person: Person) -> None:
    assert "There is no workspace" in person.opens("/w/nowhere", 404)
    person.opens("/w/default/files/memory/none.md", 404)
    person.opens("/w/default/sessions/none", 404)
    person.opens("/w/default/prompts/r20260101-0000000000000000", 404)
    person.opens("/w/default/nowhere", 404)
    person.opens("/w/Default", 400)
    person.opens("/static/../site.py", 404)


def test_a_read_only_key_sees_and_cannot_change(tmp_path: Path) -> None:
    service = MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder())
    service.remember("default", "Deploys go out on Tuesdays.")
    service.remember("other", "Nobody but its own sees this.")
    admin = service.access.make(NewKey(name="me", role="admin"))
    reader = service.access.make(NewKey(name="reader", role="read", workspaces=["default"]))
    with serving(service) as server, closing(Person(server=server)) as person:
        assert "Sign in" in person.opens("/w/default")
        asked = person.opens("/w/default/files?day=2026-03-01&x=a%26b")
        assert field_of(asked, "next") == "/w/default/files?day=2026-03-01&x=a%26b", "one address for each state"
        person.sends("/sign-in", 401, key="ms_000000000000_wrong")
        person.sends("/sign-in", 403, key=reader.key, token="wrong")
        page = person.sends("/sign-in", key=reader.key, next="/w/default")
        assert "Deploys go out on Tuesdays." in page
        for view in VIEWS[:5]:
            shown = person.http.get(f"/w/default{view}").text
            forms = [attributes for tag, attributes in read(shown).elements if tag == "form"]
            assert all(form.get("method") != "post" or form["action"] == "/sign-out" for form in forms)
        person.sends("/w/default/files", 403, text="x")
        person.opens("/w/other", 403)
        person.opens("/keys", 403)
        person.sends("/sign-out", 403, token="wrong")
        person.sends("/sign-out")
        person.sends("/sign-in", key=reader.key)
        cookie = next(each for each in person.http.cookies.jar if each.name == "page_sign_in")
        assert cookie.has_nonstandard_attr("HttpOnly") and cookie.get_nonstandard_attr("SameSite") == "strict"
        assert reader.key not in str(cookie.value)
        service.access.withdraw(reader.key_id)
        assert "Sign in" in person.opens("/w/default"), "a key that is withdrawn is none any more"
        person.sends("/sign-in", key=admin.key)
        known = field_of(person.opens("/keys"), "known")
        made = person.sends("/keys", known=known, name="third", role="write", workspaces="default")
        key = re.search(r"<pre>(ms_\w+_[\w-]+)</pre>", made)
        assert key and "<pre>" not in person.opens("/keys"), "a key is shown once"
        # A form that is sent twice makes one.
        assert "none was made" in person.sends("/keys", 409, known=known, name="third")
        assert [each.name for each in service.access.keys()].count("third") == 1
        assert server.http.get(f"{W}/status", headers={"X-API-Key": key[1]}).status_code == 200
        person.sends("/sign-out")
        assert "Sign in" in person.opens("/w/default")


def test_hostile_texts_are_text_in_every_place(
    server: RunningServer, person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    hostile = list(texts())
    assert len(hostile) >= 300
    views = write_hostile_texts(server, hostile, tmp_path)
    pages = [person.opens(f"/w/default{view}") for view in views]
    pages += [person.http.get("/w/default/search", params={"q": text[:2_000]}).text for text in hostile[::7]]
    pages += [person.http.get(f"/w/default/{quote(text[:60])}").text for text in hostile[::11]]
    for page in pages:
        for tag, attributes in read(page).elements:
            assert tag not in (
                "style",
                "iframe",
                "object",
                "embed",
                "base",
                "img",
                "video",
                "audio",
                "template",
                "marquee",
            )
            assert tag != "script" or attributes["src"].startswith("/static/")
            assert not any(name.startswith(("on", "hx-on", "data-hx")) or name == "style" for name in attributes)
            for name, value in attributes.items():
                if name in ("src", "href", "action", "formaction", "hx-get", "xlink:href", "srcset"):
                    assert not re.match(r"\s*(?:javascript|vbscript|data:(?!,)|//)", value, re.IGNORECASE), (tag, value)
                    # A link of a note may lead away, when a person follows it.
                    assert not value.startswith("http") or (tag == "a" and name == "href" and "rel" in attributes)


def test_settings_and_hosts_are_an_admins(person: Person, server: RunningServer) -> None:
    note_faults(server.home, "cursor", "stop", ("The <b>disk</b> is full.",))
    page = person.opens("/w/default/health")
    assert "receipt_days" in page and "The &lt;b&gt;disk&lt;/b&gt; is full." in page and "hooks.log" in page
    proxied = person.http.get("/w/default/health", headers={"X-Forwarded-For": "203.0.113.7"})
    assert "receipt_days" not in proxied.text and "is full" not in proxied.text
    for path in ("/v1/settings", "/v1/hosts"):
        assert server.http.get(path).status_code == 200
        assert server.http.get(path, headers={"X-Forwarded-For": "203.0.113.7"}).status_code == 403
    first = server.http.post("/v1/keys", json={"name": "first", "role": "admin"}).json()
    admin = {"X-API-Key": first["key"]}
    for role, workspaces, sees in (("write", ["*"], False), ("admin", ["default"], False), ("admin", ["*"], True)):
        body = {"name": role, "role": role, "workspaces": workspaces}
        key = server.http.post("/v1/keys", json=body, headers=admin).json()["key"]
        for path in ("/v1/settings", "/v1/hosts"):
            assert server.http.get(path, headers={"X-API-Key": key}).status_code == (200 if sees else 403)
        with closing(Person(server=server)) as other:
            other.opens("/sign-in")
            other.sends("/sign-in", key=key, next="/w/default/health")
            assert ("receipt_days" in other.opens("/w/default/health")) == sees


def test_a_finding_that_a_reindex_mends_has_its_button(person: Person, server: RunningServer) -> None:
    (server.home / "default" / "memory" / "plans.md").write_text("- By hand.\n", "utf-8")
    page = person.opens("/w/default/health?checks=yes")
    findings = page.partition('id="checks"')[2].partition("</section>")[0]
    assert "files changed since the last reindex" in findings and "<button" in findings
    person.sends("/w/default/health")
    until(lambda: "<button" not in person.opens("/w/default/health?checks=yes").partition("<h2>Index")[0])
