"""Every route's way through, over a real socket."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from tests.serving import RunningServer, W
from tests.storages import read_documents, write_documents
from tests.waiting import until


def remember(server: RunningServer, text: str, **more: Any) -> dict[str, Any]:
    answer = server.http.post(f"{W}/memories", json={"text": text, **more})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def finished(server: RunningServer, operation_id: str) -> dict[str, Any]:
    route = f"{W}/operations/{operation_id}"
    until(lambda: server.http.get(route).json()["state"] in ("done", "failed", "cancelled"))
    return dict(server.http.get(route).json())


def test_a_memory_is_on_disk_and_found_when_it_is_answered(running_server: RunningServer) -> None:
    stored = remember(
        running_server,
        "Deploys go out on Tuesdays.",
        tags=["ops"],
        date="2026-11-20",
        origin="user",
        session_id="support-42",
    )
    assert stored["path"] == "memory/2026-11-20.md"
    assert stored["duplicate"] is False
    assert stored["degraded"] == []
    text = read_documents(running_server.home)[stored["path"]]
    assert "- Deploys go out on Tuesdays. #ops" in text.splitlines()[stored["start_line"] - 1]
    assert "session=support-42" in text
    found = running_server.http.post(f"{W}/search", json={"query": "when are deploys?"}).json()
    assert found["mode"] == "hybrid"
    assert found["degraded"] == []
    assert found["took_ms"] > 0
    best = found["results"][0]
    assert best["path"] == stored["path"]
    assert best["citation"] == f"memory/2026-11-20.md#L{stored['start_line']}"
    assert best["date"] == "2026-11-20"
    assert best["source"] == "memory"
    assert best["signals"] is None
    assert 0 <= best["score"] <= 1


def test_the_same_text_on_the_same_day_is_stored_once(running_server: RunningServer) -> None:
    first = remember(running_server, "Buy milk.", date="2026-11-20")
    again = remember(running_server, "Buy milk.", date="2026-11-20")
    assert again == first | {"duplicate": True}
    assert remember(running_server, "Buy milk.", date="2026-11-21")["duplicate"] is False


def test_files_are_listed_read_in_pieces_written_and_erased(running_server: RunningServer) -> None:
    http = running_server.http
    created = http.put(f"{W}/memories/MEMORY.md", json={"text": "one\ntwo\nthree\n"}, headers={"If-None-Match": "*"})
    assert created.status_code == 200, created.text
    etag = created.json()["etag"]
    assert created.headers["etag"] == f'"{etag}"'
    [file] = http.get(f"{W}/memories").json()["files"]
    assert (file["path"], file["bytes"], file["lines"], file["etag"]) == ("MEMORY.md", 14, 3, etag)
    assert dt.datetime.fromisoformat(file["modified_at"]).tzinfo
    piece = http.get(f"{W}/memories/MEMORY.md", params={"start_line": 2, "lines": 1})
    assert piece.headers["etag"] == f'"{etag}"'
    assert piece.json() == {
        "path": "MEMORY.md",
        "text": "two\n",
        "start_line": 2,
        "end_line": 2,
        "total_lines": 3,
        "next_start_line": 3,
        "etag": etag,
    }
    gone = http.delete(f"{W}/memories/MEMORY.md")
    answer = gone.json()
    # What is left in the files of a database is told by the tests of that engine.
    del answer["erased"]["pending"]
    assert answer == {
        "path": "MEMORY.md",
        "erased": {"passages": 1, "checked": ["files", "rows", "full text", "vectors"]},
        "degraded": [],
    }
    assert not (running_server.home / "default" / "MEMORY.md").exists()
    assert http.get(f"{W}/memories/MEMORY.md").status_code == 404


@pytest.mark.parametrize("form", ['"{}"', 'W/"{}"', "{}"])
def test_a_write_needs_the_etag_of_what_stands_there(running_server: RunningServer, form: str) -> None:
    http, place = running_server.http, f"{W}/memories/memory/plan.md"
    etag = http.put(place, json={"text": "a\n"}, headers={"If-None-Match": "*"}).json()["etag"]
    assert http.put(place, json={"text": "x\n"}, headers={"If-None-Match": "*"}).status_code == 412
    written = http.put(place, json={"text": "b\n"}, headers={"If-Match": form.format(etag)})
    assert written.status_code == 200, written.text
    stale = http.put(place, json={"text": "c\n"}, headers={"If-Match": form.format(etag)})
    assert stale.status_code == 412
    assert stale.json()["error"]["code"] == "precondition_failed"
    assert read_documents(running_server.home) == {"memory/plan.md": "b\n"}


def test_an_erasure_may_need_the_etag_of_what_stands_there(running_server: RunningServer) -> None:
    http, place = running_server.http, f"{W}/memories/memory/plan.md"
    etag = http.put(place, json={"text": "a\n"}, headers={"If-None-Match": "*"}).json()["etag"]
    write_documents(running_server.home, {"memory/plan.md": "a person was here\n"})
    refused = http.delete(place, headers={"If-Match": f'"{etag}"'})
    assert (refused.status_code, refused.json()["error"]["code"]) == (412, "precondition_failed")
    assert read_documents(running_server.home) == {"memory/plan.md": "a person was here\n"}
    now = http.get(place).headers["ETag"]
    assert http.delete(place, headers={"If-Match": now}).status_code == 200
    assert read_documents(running_server.home) == {}
    assert http.delete(place, headers={"If-Match": now}).status_code == 404


def test_a_persons_edit_wins_over_a_write_that_did_not_see_it(running_server: RunningServer) -> None:
    place = f"{W}/memories/MEMORY.md"
    etag = running_server.http.put(place, json={"text": "a\n"}, headers={"If-None-Match": "*"}).json()["etag"]
    write_documents(running_server.home, {"MEMORY.md": "a person was here\n"})
    answer = running_server.http.put(place, json={"text": "b\n"}, headers={"If-Match": f'"{etag}"'})
    assert answer.status_code == 412
    assert read_documents(running_server.home) == {"MEMORY.md": "a person was here\n"}


def test_forgetting_erases_from_disk_search_and_index(running_server: RunningServer) -> None:
    secret = "zanzibarium"
    stored = remember(running_server, f"The code word is {secret}.")
    remember(running_server, "Something else stays.")
    gone = running_server.http.delete(f"{W}/entries/{stored['memory_id']}")
    path = stored["path"]
    place = {"memory_id": stored["memory_id"], "path": path, "citation": f"{path}#L{stored['start_line']}"}
    told = {
        "memory_id": stored["memory_id"], "path": path, "paths": [path], "degraded": [],
        "dry_run": False, "named": None, "removed": [{**place, "role": "agent", "text": None}],
    }  # fmt: skip
    assert {name: value for name, value in gone.json().items() if name != "erased"} == told
    results = running_server.http.post(f"{W}/search", json={"query": secret, "mode": "text"}).json()["results"]
    assert all(secret not in result["text"] for result in results)
    for file in (running_server.home / "default").rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file
    assert running_server.http.delete(f"{W}/entries/{stored['memory_id']}").status_code == 404


def test_deleting_a_file_erases_its_bytes_from_the_index(running_server: RunningServer) -> None:
    secret = "xylophonist"
    stored = remember(running_server, f"Only here: {secret}.")
    assert running_server.http.delete(f"{W}/memories/{stored['path']}").status_code == 200
    for file in (running_server.home / "default").rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file


def test_search_takes_every_option(running_server: RunningServer) -> None:
    for day in ("2026-11-01", "2026-11-10", "2026-11-20"):
        remember(running_server, f"Standup notes of {day}", date=day)
    asked = {"query": "standup notes", "since": "2026-11-05", "until": "2026-11-15", "explain": True}
    found = running_server.http.post(f"{W}/search", json=asked).json()["results"]
    assert [result["date"] for result in found] == ["2026-11-10"]
    assert set(found[0]["signals"]) >= {"text", "vector"}
    narrow = {"query": "standup", "path_prefix": "memory/2026-11-2", "mode": "text", "sources": ["memory"]}
    answer = running_server.http.post(f"{W}/search", json=narrow).json()
    assert answer["mode"] == "text"
    assert [result["path"] for result in answer["results"]] == ["memory/2026-11-20.md"]
    assert answer["results"][0]["vector_score"] is None
    some = running_server.http.post(f"{W}/search", json={"query": "standup notes of 2026-11-10"}).json()["results"]
    cut = some[0]["score"]
    best = running_server.http.post(
        f"{W}/search", json={"query": "standup notes of 2026-11-10", "min_score": cut}
    ).json()
    assert [result["score"] for result in best["results"]] == [r["score"] for r in some if r["score"] >= cut]
    assert len(running_server.http.post(f"{W}/search", json={"query": "standup", "limit": 1}).json()["results"]) == 1


def test_a_context_goes_behind_the_system_prompt_and_leaves_a_receipt(running_server: RunningServer) -> None:
    remember(running_server, "Deploys go out on Tuesdays.")
    asked = {"query": "deploys", "system_prompt": "You are kind.", "budget_tokens": 200}
    made = running_server.http.post(f"{W}/context", json=asked).json()
    assert made["system_prompt"] == f"You are kind.\n\n{made['block']}"
    assert 0 < made["tokens"] <= 200
    assert made["receipt"]["included"][0]["path"].startswith("memory/")
    assert 0 <= made["receipt"]["included"][0]["score"] <= 1
    kept = running_server.http.get(f"{W}/receipts/{made['receipt']['receipt_id']}").json()
    assert kept == made["receipt"]
    bare = running_server.http.post(f"{W}/context", json={"query": "deploys"}).json()
    assert bare["system_prompt"] == bare["block"] != ""


def test_a_budget_too_small_gives_an_empty_block_and_says_why(running_server: RunningServer) -> None:
    remember(running_server, "Deploys go out on Tuesdays.")
    for budget in (0, 5):
        asked = {"query": "deploys", "system_prompt": "You are kind.", "budget_tokens": budget}
        made = running_server.http.post(f"{W}/context", json=asked).json()
        assert (made["block"], made["tokens"], made["system_prompt"]) == ("", 0, "You are kind.")
        assert "budget" in made["receipt"]["reason"]


def test_a_reindex_reports_progress_and_result(running_server: RunningServer) -> None:
    notes = {f"memory/note-{number}.md": f"- note {number} about apples\n" for number in range(30)}
    write_documents(running_server.home, notes)
    started = running_server.http.post(f"{W}/reindex", json={})
    assert started.status_code == 202
    operation = finished(running_server, started.json()["operation_id"])
    assert operation["state"] == "done"
    assert (operation["done"], operation["total"]) == (30, 30)
    assert operation["report"]["added"] == 30
    assert operation["error"] is None
    some = running_server.http.post(f"{W}/reindex", json={"full": True, "paths": ["memory/note-1.md"]})
    assert finished(running_server, some.json()["operation_id"])["state"] == "done"


def test_a_reindex_can_be_cancelled(running_server: RunningServer) -> None:
    facts = {number: "\n".join(f"- fact {number} {line}" for line in range(300)) for number in range(100)}
    write_documents(running_server.home, {f"memory/note-{number}.md": text for number, text in facts.items()})
    operation_id = running_server.http.post(f"{W}/reindex", json={}).json()["operation_id"]
    seen = running_server.http.delete(f"{W}/operations/{operation_id}")
    assert seen.status_code == 200
    operation = finished(running_server, operation_id)
    assert operation["state"] == "cancelled"
    assert operation["report"] is None
    assert running_server.http.get("/health/live").status_code == 200


def test_status_counts_and_names_what_is_dirty(running_server: RunningServer) -> None:
    remember(running_server, "One.", date="2026-11-20")
    remember(running_server, "Two.", date="2026-11-21")
    # A file that was written within the clock's grain is looked at again before it counts as clean.
    for _ in range(50):
        status = running_server.http.get(f"{W}/status").json()
        if status["dirty"] == 0:
            break
        finished(running_server, running_server.http.post(f"{W}/reindex", json={}).json()["operation_id"])
    assert (status["workspace"], status["files"], status["passages"], status["embedded"]) == ("default", 2, 2, 2)
    assert (status["coverage"], status["dirty"], status["failed"], status["degraded"]) == (1.0, 0, [], [])
    assert status["fingerprint"] == status["current_fingerprint"]
    assert status["index_bytes"] > 0
    write_documents(running_server.home, {"memory/2026-11-22.md": "- Three.\n"})
    assert running_server.http.get(f"{W}/status").json()["dirty"] == 1


def test_workspaces_are_listed(running_server: RunningServer) -> None:
    assert running_server.http.get("/v1/workspaces").json() == {"workspaces": [], "details": []}
    running_server.http.post("/v1/workspaces/team-a/memories", json={"text": "x"})
    remember(running_server, "y")
    listed = running_server.http.get("/v1/workspaces").json()
    assert listed["workspaces"] == ["default", "team-a"]
    assert [(each["memory_files"], each["sessions"]) for each in listed["details"]] == [(1, 0), (1, 0)]


def test_health_and_version(running_server: RunningServer) -> None:
    assert running_server.http.get("/health/live").json() == {"status": "ok", "degraded": []}
    until(lambda: running_server.http.get("/health/ready").status_code == 200)
    assert running_server.http.get("/health/ready").json() == {"status": "ok", "degraded": []}
    assert running_server.http.get("/version").json()["embedding_model"] == "hash"


def test_every_answer_has_a_request_id(running_server: RunningServer) -> None:
    assert running_server.http.get("/version", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = running_server.http.get("/nowhere", headers={"X-Request-ID": "bad id"}).headers["x-request-id"]
    assert made and " " not in made


def test_entries_are_listed_read_and_changed_under_a_condition(running_server: RunningServer) -> None:
    http = running_server.http
    stored = remember(running_server, "The lift is out of order.", tags=["house", "lift"], date="2026-11-20")
    [entry] = http.get(f"{W}/entries?tag=house&tag=LIFT&origin=agent&since=2026-11-20&limit=5").json()["entries"]
    place = f"{W}/entries/{stored['memory_id']}"
    read = http.get(place)
    assert read.json() == entry and read.headers["ETag"] == f'"{entry["etag"]}"'
    # A citation is as good as an id.
    cited = f"{W}/entries/{stored['path']}%23L{stored['start_line']}"
    assert http.get(cited).json() == entry
    changed = http.patch(place, json={"text": "The lift works."}, headers={"If-Match": read.headers["ETag"]})
    assert (changed.status_code, changed.json()["text"]) == (200, "The lift works. #house #lift")
    assert changed.headers["ETag"] == f'"{changed.json()["etag"]}"'
    again = http.patch(place, json={"tags": []}, headers={"If-Match": read.headers["ETag"]})
    assert (again.status_code, again.json()["error"]["code"]) == (412, "precondition_failed")
    assert http.patch(place, json={"text": "x", "origin": "tool"}).status_code == 409
    for body in ({}, {"text": ""}, {"text": "x", "day": "2026-11-20"}):
        assert http.patch(place, json=body).status_code == 422, body
    assert http.get(f"{W}/entries?limit=0").status_code == http.get(f"{W}/entries?cursor=x").status_code == 422
    assert http.delete(f"{place}?dry_run=true").json()["removed"][0]["text"] == "The lift works. #house #lift"
    assert http.delete(place).json()["paths"] == [stored["path"]]
    assert http.get(place).status_code == 404


def test_forgetting_by_place_or_words_is_done_once_for_one_key(running_server: RunningServer) -> None:
    http = running_server.http
    stored = remember(running_server, "The spare key hangs behind the door.", date="2026-11-20")
    assert http.post(f"{W}/forget", json={"query": "kettle"}).status_code == 409
    assert http.post(f"{W}/forget", json={}).status_code == 422
    done = [http.post(f"{W}/forget", json={"query": "spare key"}, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert done[0].json() == done[1].json() and done[0].json()["memory_id"] == stored["memory_id"]
    assert [answer.headers.get("Idempotency-Replayed") for answer in done] == [None, "true"]
    assert http.post(f"{W}/forget", json={"memory": f"{stored['path']}#L5"}).status_code == 404
