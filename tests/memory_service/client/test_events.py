"""Bytes of an event stream become events, whatever the bytes are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.api.streams import _frame
from memory_service.client._event_stream import MAX_EVENT_BYTES, Listening
from memory_service.errors import ServerFailed
from memory_service.messages.server_events import EventSplitter, ServerEvent
from tests.growth import at_most_readings
from tests.memory_service.storage.in_memory_records import event_hub


def test_what_the_server_writes_is_read_back() -> None:
    hub = event_hub()
    told = [
        hub.publish("default", "compaction_end", "支持-42", reason="窗口\n已满\u2028\x85", ratio=0.25, will_retry=True),
        hub.publish("default", "undo", "支持-42", compaction_id=None),
    ]
    raw = "".join(["retry: 2000\n\n", _frame(told[0]), ": still here\n\n", _frame(told[1])]).encode()
    reader = EventSplitter()
    first, second = reader.feed(raw)
    assert first.id == str(told[0].id) and first.name == "compaction_end"
    assert first.json() == {
        "id": told[0].id,
        "at": told[0].at.isoformat(),
        "kind": "compaction_end",
        "session_id": "支持-42",
        "fields": {"reason": "窗口\n已满\u2028\x85", "ratio": 0.25, "will_retry": True},
    }
    assert second.json()["fields"] == {"compaction_id": None}
    assert (reader.last_id, reader.retry_ms) == (str(told[1].id), 2000)


def read(text: str) -> list[ServerEvent]:
    return list(EventSplitter().feed(text.encode()))


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("", []),
        ('data: {"a": 1}\n\n', [("", "", {"a": 1})]),
        ('data:{"a": 1}\n\n', [("", "", {"a": 1})]),
        ('\ufeffdata: {"a": 1}\n\n', [("", "", {"a": 1})]),
        ('data: {"a":\ndata:  1}\n\n', [("", "", {"a": 1})]),
        ("id: 7\nevent: flush\ndata: {}\n\ndata: {}\n\n", [("7", "flush", {}), ("7", "", {})]),
        ("id: 7\ndata: {}\n\nid\ndata: {}\n\n", [("7", "", {}), ("", "", {})]),
        ("id: 7\x00\ndata: {}\n\n", [("", "", {})]),
        ("event: flush\n\ndata: {}\n\n", [("", "", {})]),
        (': hello\nunknown: 1\nretry: soon\ndata: {"名": "值"}\n\n', [("", "", {"名": "值"})]),
        ('data: {"a": 1}\n', []),
    ],
)
def test_the_standard_is_followed(text: str, events: list[tuple[str, str, dict[str, object]]]) -> None:
    assert [(event.id, event.name, event.json()) for event in read(text)] == events


def test_a_cut_off_event_is_asked_for_again() -> None:
    reader = EventSplitter()
    assert len(list(reader.feed(b"id: 7\ndata: {}\n\nid: 8\ndata: {}\n"))) == 1
    assert reader.last_id == "7"


@pytest.mark.parametrize(
    "text", ["hello", "[1]", '{"a": 1\ndata: 2}', '"值"', "{", "null", "[" * 100_000, '{"a": ' + "9" * 5000 + "}"]
)
def test_what_is_no_event_of_ours_is_refused(text: str) -> None:
    with pytest.raises(ServerFailed, match=r"none of memory-service's.*Check the URL"):
        Listening(0).feed_line(f"data: {text}\n\n".encode())


def test_no_event_is_larger_than_it_may_be() -> None:
    listening, reader = Listening(0), EventSplitter(MAX_EVENT_BYTES)
    with pytest.raises(ServerFailed, match="too long"):
        for _ in range(MAX_EVENT_BYTES):
            listening.feed_line("data: 文文\n".encode())
    largest = json.dumps({"a": "a" * (MAX_EVENT_BYTES - 100)}).encode()
    assert len(list(reader.feed(b"data: " + largest + b"\n\ndata: " + largest + b"\n\n"))) == 2


def test_a_megabyte_of_anything_is_read_in_linear_time() -> None:
    with at_most_readings(500):
        for hostile in (":" * 1_000_000, "id" * 500_000, "data:\n" * 160_000, "\n" * 1_000_000, "事件: " * 250_000):
            assert read(hostile) == []


@given(st.lists(st.text(alphabet=st.sampled_from("dataeventid:retry \0{}1\ufeff文"), max_size=12)))
def test_any_lines_give_events_or_our_error(lines: list[str]) -> None:
    listening = Listening(0)
    for line in lines:
        try:
            assert listening.feed_line(f"{line}\n".encode()) == []
        except ServerFailed:
            return
