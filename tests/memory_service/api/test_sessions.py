"""Routes of sessions, their messages and pins, over a real socket."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import count

import pytest

from tests.memory_service.api.talking import Json, anthropic_talk, begin, ok, refused, say, talk, talking
from tests.serving import RunningServer, W
from tests.wire import problems

NAMES = count()
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with talking(tmp_path_factory.mktemp("sessions")) as running:
        yield running


@pytest.fixture
def place(server: RunningServer) -> str:
    """A session of its own."""
    name = f"s{next(NAMES)}"
    begin(server, name, context_window=16_000)
    return f"{W}/sessions/{name}"


def test_a_session_is_begun_listed_changed_and_erased(server: RunningServer) -> None:
    made = begin(server, "first", model="gpt-4o", settings={"compaction": {"preset": "openclaw"}})
    assert (made["session_id"], made["model"], made["preset"]) == ("first", "gpt-4o", "openclaw")
    assert made["settings"] == {"compaction": {"preset": "openclaw"}}
    assert (made["messages"], made["tokens"], made["pressure"], made["degraded"]) == (0, 0, "ok", [])
    window = made["context_window"]
    assert (window["tokens"], window["source"], window["problem"]) == (128_000, "model", "")
    assert window["considered"]["session"] is None and window["considered"]["model"] == 128_000
    assert "first" in [each["session_id"] for each in ok(server.http.get(f"{W}/sessions"))["sessions"]]
    place = f"{W}/sessions/first"
    changed = ok(server.http.patch(place, json={"context_window": 20_000}))
    assert (changed["context_window"]["tokens"], changed["context_window"]["source"]) == (20_000, "session")
    assert changed["context_window"]["problem"] == "warn" and changed["context_window"]["message"]
    assert (changed["model"], changed["preset"]) == ("gpt-4o", "openclaw")
    assert ok(server.http.get(place)) == changed
    unset = ok(server.http.patch(place, json={"context_window": None}))
    assert (unset["context_window"]["tokens"], unset["context_window"]["source"]) == (128_000, "model")
    assert (unset["model"], unset["preset"]) == ("gpt-4o", "openclaw"), "what is left out stays"
    unset = ok(server.http.patch(place, json={"model": None, "settings": None}))
    assert (unset["model"], unset["settings"], unset["preset"]) == (None, {}, "default")
    assert unset["context_window"]["source"] == "default" and ok(server.http.get(place)) == unset
    say(server, [{"role": "user", "content": "x"}], place)
    log = server.home / "default/sessions/first.jsonl"
    assert log.is_file()
    assert ok(server.http.delete(place)) == {
        "session_id": "first",
        "erased": {"passages": 0, "checked": ["files", "rows", "full text", "vectors"], "pending": []},
        "degraded": [],
    }
    assert not log.exists()
    refused(server.http.get(place), 404, "not_found")


def test_a_session_without_an_id_gets_one(server: RunningServer) -> None:
    made = ok(server.http.post(f"{W}/sessions", json={}), 201)
    assert ok(server.http.get(f"{W}/sessions/{made['session_id']}"))["session_id"] == made["session_id"]


def test_the_same_session_is_not_begun_twice(server: RunningServer) -> None:
    begin(server, "once")
    refused(server.http.post(f"{W}/sessions", json={"session_id": "once"}), 409, "conflict")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"session_id": "../x"}, 400),
        ({"session_id": "会话"}, 400),
        ({"session_id": ""}, 400),
        ({"settings": {"compaction": {"preset": "nope"}}}, 422),
        ({"settings": {"ranking": {}}}, 422),
        ({"context_window": 0}, 422),
        ({"context_window": 10**12}, 422),
        ({"modle": "x"}, 422),
    ],
)
def test_what_cannot_be_a_session_is_refused_and_makes_no_workspace(
    server: RunningServer, body: dict[str, object], status: int
) -> None:
    answer = server.http.post("/v1/workspaces/unborn/sessions", json=body)
    refused(answer, status, "invalid_name" if status == 400 else "invalid_request")
    assert not (server.home / "unborn").exists()


def test_what_cannot_be_said_is_refused_and_makes_no_workspace(server: RunningServer) -> None:
    unborn = "/v1/workspaces/unborn/sessions/s"
    for messages in ([], [{"role": "", "content": "x"}], ["x"], [{"role": "user", "content": [{"type": "text"}]}]):
        refused(server.http.post(f"{unborn}/messages", json={"messages": messages}), 422, "invalid_request")
    for body in ({"text": " "}, {"seq": 3}, {}, {"text": "x", "seq": 3}):
        refused(server.http.post(f"{unborn}/pins", json=body), 422, "invalid_request")
    bad = "/v1/workspaces/unborn/sessions/.hidden/messages"
    refused(server.http.post(bad, json={"messages": [{"role": "user", "content": "x"}]}), 400, "invalid_name")
    assert not (server.home / "unborn").exists()


def test_the_first_message_begins_session_and_workspace(server: RunningServer) -> None:
    place = "/v1/workspaces/newborn/sessions/hello"
    made = say(server, [{"role": "user", "content": "你好"}], place, model="gpt-4o")
    assert made["first_seq"] == made["last_seq"]
    assert (made["source"], made["pressure"], made["degraded"]) == ("estimate", "ok", [])
    assert ok(server.http.get(place))["model"] == "gpt-4o"


def test_messages_are_given_back_as_they_were_given(server: RunningServer, place: str) -> None:
    messages: list[Json] = [
        {"role": "user", "content": '部署什么时候？ 😀 \u2028 "quoted" \\ /', "name": "anna"},
        {"content": [{"type": "text", "text": "b"}], "role": "assistant", "x_own": {"z": 1, "a": [1.5, None, True]}},
    ]
    first = say(server, messages, place)["first_seq"]
    log = ok(server.http.get(f"{place}/messages", params={"view": "log"}))
    assert log == {"messages": messages, "seqs": [first, first + 1], "system": None, "degraded": []}
    for seq, message in zip(log["seqs"], messages, strict=True):
        answer = server.http.get(f"{place}/messages/{seq}")
        assert answer.headers["content-type"] == "application/json"
        assert answer.text == json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    refused(server.http.get(f"{place}/messages/999"), 404, "not_found")
    refused(server.http.get(f"{place}/messages/x"), 422, "invalid_request")


def test_half_a_character_and_no_number_break_nothing(server: RunningServer, place: str) -> None:
    half = rb'{"messages": [{"role": "user", "content": "\ud83d"}]}'
    seq = ok(server.http.post(f"{place}/messages", content=half, headers=JSON))["first_seq"]
    assert server.http.get(f"{place}/messages/{seq}").content == rb'{"role":"user","content":"\ud83d"}'
    assert rb"\ud83d" in server.http.get(f"{place}/messages", params={"view": "log"}).content
    # No provider takes half a character.
    assert "\ufffd".encode() in server.http.get(f"{place}/messages", params={"view": "model"}).content
    no_number = b'{"messages":[{"role":"user","content":"x","n":NaN}]}'
    refused(server.http.post(f"{place}/messages", content=no_number, headers=JSON), 422, "invalid_request")


def test_the_log_is_read_in_pieces(server: RunningServer, place: str) -> None:
    first = say(server, talk(4), place)["first_seq"]
    params = {"view": "log", "since_seq": first + 1, "limit": 2}
    piece = ok(server.http.get(f"{place}/messages", params=params))
    assert piece["seqs"] == [first + 2, first + 3]
    refused(server.http.get(f"{place}/messages", params={"view": "all"}), 422, "invalid_request")
    refused(server.http.get(f"{place}/messages", params={"limit": 0}), 422, "invalid_request")


def test_media_stand_beside_the_log_and_come_with_their_type(server: RunningServer, place: str) -> None:
    raw = b"\x89PNG" + bytes(range(256)) * 4
    url = "data:image/png;base64," + base64.b64encode(raw).decode()
    page = "data:text/html;base64," + base64.b64encode(b"<script>alert(1)</script>" * 9).decode()
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "image_url", "image_url": {"url": page}}]
    seq = say(server, [{"role": "user", "content": parts}], place)["first_seq"]
    image = server.http.get(f"{place}/messages/{seq}/media/1")
    assert (image.content, image.headers["content-type"]) == (raw, "image/png")
    # What somebody sent must not run in the browser of somebody else.
    other = server.http.get(f"{place}/messages/{seq}/media/2")
    assert other.headers["content-disposition"] == "attachment"
    assert other.headers["x-content-type-options"] == "nosniff"
    for number in (0, 3):
        refused(server.http.get(f"{place}/messages/{seq}/media/{number}"), 404, "not_found")


def test_anthropic_in_and_every_shape_out(server: RunningServer, place: str) -> None:
    system = {"role": "system", "content": "你很友好。"}
    say(server, [system, *anthropic_talk(3), {"role": "user", "content": "And now?"}], place)
    shapes = {
        name: ok(server.http.get(f"{place}/messages", params={"format": name}))
        for name in ("openai", "anthropic", "mistral")
    }
    assert problems(shapes["openai"]["messages"], "openai", ready=True) == []
    assert problems(shapes["anthropic"]["messages"], "anthropic", ready=True) == []
    assert problems(shapes["mistral"]["messages"], "mistral", ready=True) == []
    assert shapes["anthropic"]["system"] == "你很友好。"
    assert shapes["openai"]["system"] is None
    assert shapes["openai"]["messages"][0] == system
    refused(server.http.get(f"{place}/messages", params={"format": "gemini"}), 422, "invalid_request")


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930}, 930),
        ({"prompt_tokens": 900, "completion_tokens": 30, "prompt_tokens_details": {"cached_tokens": 800}}, 930),
        ({"prompt_tokens": 900, "completion_tokens": 30, "prompt_tokens_details": None}, 930),
        ({"input_tokens": 100, "output_tokens": 30, "cache_read_input_tokens": 700, "service_tier": "x"}, 830),
        ({"input_tokens": 100, "output_tokens": 30, "cache_creation_input_tokens": 600}, 730),
        ({"input_tokens": 900, "output_tokens": 30, "input_tokens_details": {"cached_tokens": 800}}, 930),
        ({"input_tokens": 100, "output_tokens": 30, "cache_read_tokens": 700, "cache_write_tokens": 50}, 880),
        ({"prompt_tokens": 900, "completion_tokens": 30, "cache_read_input_tokens": 800}, 930),
    ],
)
def test_what_a_provider_counted_is_understood(
    server: RunningServer, place: str, usage: dict[str, object], tokens: int
) -> None:
    say(server, [{"role": "user", "content": "When?"}], place)
    made = say(server, [{"role": "assistant", "content": "On Tuesday."}], place, usage=usage)
    assert made["source"] == "usage"
    assert made["tokens"] == pytest.approx(tokens, abs=20)
    assert made["degraded"] == []


def test_a_usage_that_says_nothing_is_named_and_loses_no_message(server: RunningServer, place: str) -> None:
    made = say(server, [{"role": "user", "content": "x"}], place, usage={"promptTokenCount": 7})
    assert (made["source"], [reason.partition(":")[0] for reason in made["degraded"]]) == ("estimate", ["usage"])
    answer = server.http.post(f"{place}/messages", json={"messages": talk(1), "usage": {"prompt_tokens": -1}})
    assert "usage.prompt_tokens" in refused(answer, 422, "invalid_request")


def test_counts_of_prompts_correct_later_estimates(server: RunningServer, place: str) -> None:
    say(server, talk(3), place)
    before = ok(server.http.post(f"{place}/context", json={"recall": "never"}))["tokens"]
    real = 2 * before["total"]
    say(server, [{"role": "assistant", "content": "Done."}], place, usage={"prompt_tokens": real})
    # One count belongs to one prompt: the next has none to be compared with.
    say(server, [{"role": "user", "content": "More."}], place, usage={"prompt_tokens": 10 * real})
    after = ok(server.http.post(f"{place}/context", json={"recall": "never"}))["tokens"]
    assert after["total"] == pytest.approx(real, rel=0.1)


def test_pins_are_made_listed_and_removed(server: RunningServer, place: str) -> None:
    seq = say(server, [{"role": "user", "content": "周五不要部署。"}], place)["first_seq"]
    text = ok(server.http.post(f"{place}/pins", json={"text": "Never deploy on Fridays."}), 201)
    message = ok(server.http.post(f"{place}/pins", json={"seq": seq}), 201)
    assert (message["text"], message["seq"], text["seq"]) == ("周五不要部署。", seq, None)
    assert ok(server.http.get(f"{place}/pins"))["pins"] == [text, message]
    assert ok(server.http.get(place))["pins"] == 2
    assert ok(server.http.delete(f"{place}/pins/{text['pin_id']}")) == {"pin_id": text["pin_id"], "degraded": []}
    refused(server.http.delete(f"{place}/pins/{text['pin_id']}"), 404, "not_found")
    refused(server.http.post(f"{place}/pins", json={"seq": 10_000}), 404, "not_found")
    assert [pin["pin_id"] for pin in ok(server.http.get(f"{place}/pins"))["pins"]] == [message["pin_id"]]


def test_a_call_that_runs_for_long_is_awaited(server: RunningServer, place: str) -> None:
    call = {"id": "call_long", "type": "function", "function": {"name": "build", "arguments": "{}"}}
    say(
        server,
        [{"role": "user", "content": "Build."}, {"role": "assistant", "content": None, "tool_calls": [call]}],
        place,
    )
    assert ok(server.http.post(f"{place}/pending", json={"call_ids": ["call_long"]}))["call_ids"] == ["call_long"]
    refused(server.http.post(f"{place}/pending", json={"call_ids": []}), 422, "invalid_request")


def test_a_log_is_shortened_and_has_it_all_back(server: RunningServer, place: str) -> None:
    say(server, talk(6), place)
    whole = ok(server.http.get(f"{place}/messages", params={"view": "log"}))
    assert ok(server.http.post(f"{place}/trim", json={"keep_last": 4}))["backup"]
    less = ok(server.http.get(f"{place}/messages", params={"view": "log"}))
    assert less["seqs"] == whole["seqs"][-len(less["seqs"]) :] and len(less["seqs"]) <= 4
    ok(server.http.post(f"{place}/restore"))
    assert ok(server.http.get(f"{place}/messages", params={"view": "log"})) == whole
    refused(server.http.post(f"{place}/trim", json={"keep_last": -1}), 422, "invalid_request")


def test_a_trim_keeps_a_hundred_lines(server: RunningServer, place: str) -> None:
    say(server, talk(60), place)
    ok(server.http.post(f"{place}/trim", json={}))
    kept = ok(server.http.get(f"{place}/messages", params={"view": "log"}))["seqs"]
    assert 98 <= len(kept) <= 100


def test_a_session_is_searched_by_words(server: RunningServer, place: str) -> None:
    say(server, [*talk(2), {"role": "user", "content": "数据库密码在保险箱里。 The zanzibar key."}], place)
    for query in ("zanzibar", "保险箱"):
        results = ok(server.http.get(f"{place}/search", params={"q": query, "limit": 1}))["results"]
        assert [result["role"] for result in results] == ["user"] and "zanzibar" in results[0]["text"]
    assert ok(server.http.get(f"{place}/search", params={"q": "nowhere"}))["results"] == []
    for params in ({}, {"q": ""}, {"q": "x", "limit": "0"}):
        refused(server.http.get(f"{place}/search", params=params), 422, "invalid_request")


ROUTES = [
    ("GET", ""),
    ("PATCH", ""),
    ("DELETE", ""),
    ("GET", "/messages"),
    ("GET", "/messages/1"),
    ("GET", "/messages/1/media/1"),
    ("POST", "/context"),
    ("POST", "/compact"),
    ("GET", "/compactions"),
    ("GET", "/compactions/c1"),
    ("POST", "/compactions/c1/undo"),
    ("POST", "/flush"),
    ("GET", "/flush-prompt"),
    ("POST", "/overflow"),
    ("GET", "/pins"),
    ("DELETE", "/pins/p1"),
    ("POST", "/pending"),
    ("POST", "/branches"),
    ("POST", "/trim"),
    ("POST", "/restore"),
    ("GET", "/events"),
    ("GET", "/idle"),
    ("GET", "/search?q=x"),
]
BODIES: dict[str, Json] = {
    "/overflow": {"error": "x"},
    "/pending": {"call_ids": ["x"]},
    "/branches": {"seq": 2},
    "/trim": {"keep_last": 1},
}


@pytest.mark.parametrize(("method", "route"), ROUTES)
def test_what_is_not_there_is_404_everywhere(server: RunningServer, method: str, route: str) -> None:
    body = BODIES.get(route, {}) if method in ("POST", "PATCH") else None
    for place in (f"{W}/sessions/nobody", "/v1/workspaces/nowhere/sessions/nobody"):
        refused(server.http.request(method, f"{place}{route}", json=body), 404, "not_found")
    malformed = server.http.request(method, f"{W}/sessions/%20x{route}", json=body)
    refused(malformed, 400, "invalid_name")
    assert not (server.home / "nowhere").exists()


@pytest.mark.parametrize(("method", "route"), [each for each in ROUTES if each[0] in ("POST", "PATCH")])
def test_an_unknown_field_is_refused_everywhere(server: RunningServer, place: str, method: str, route: str) -> None:
    if route in ("/restore", "/compactions/c1/undo"):
        return
    answer = server.http.request(method, f"{place}{route}", json={**BODIES.get(route, {}), "unknwon": 1})
    assert "unknwon" in refused(answer, 422, "invalid_request")
