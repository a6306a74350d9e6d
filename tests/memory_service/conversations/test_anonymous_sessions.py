"""`identifier_policy = anonymize`: no identifier of what was compacted is in the view, whoever writes the summary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory_service.compaction.presets import PRESETS
from memory_service.schemas.compaction import StatelessRequest
from memory_service.testing import ScriptedModel
from tests.memory_service.rooms import Room, S, calls, result, says, summary, turn, user

Rooms = Callable[..., Room]
SECRET = ("ORD-4711-XYZ", "lena@example.com", "src/billing/invoice.py", "13812345678", "11010519491231002X")
SAID = {
    False: "My name is Lena. My order is ORD-4711-XYZ, mail lena@example.com, phone 13812345678, 11010519491231002X.",
    True: "我叫王小明，订单 ORD-4711-XYZ，邮箱 lena@example.com，手机 13812345678，身份证 11010519491231002X。",
}
IGNORES = "The user's order is ORD-4711-XYZ, mail lena@example.com, phone 13812345678; see src/billing/invoice.py."
OBEYS = "The user's order is [id 1], mail [email 1]."


def talked(rooms: Rooms, preset: str, answer: str | None, *, chinese: bool = False) -> Room:
    headings = PRESETS[preset].summary.headings
    text = (summary(answer, headings) or answer) if answer else ""
    model = ScriptedModel(*[text] * 40) if answer else None
    compaction = {"preset": preset, "identifier_policy": "anonymize"}
    room = rooms(context_window=32_000, model=model, compaction=compaction, flush={"mode": "off"})
    room.say(user(SAID[chinese]), calls("c1", arguments={"path": "src/billing/invoice.py"}))
    room.say(result("c1", "Error: src/billing/invoice.py not found for lena@example.com"), says("Noted."))
    room.talk(20, 300, first=1, chinese=chinese)
    return room


def leaks(text: str) -> list[str]:
    return [secret for secret in (*SECRET, "王小明") if secret in text]


# Each preset is met with each answer, and in both languages; so is each answer.
@pytest.mark.parametrize(
    ("preset", "answer", "chinese"),
    [
        (preset, answer, bool((row + column) % 2))
        for row, preset in enumerate(PRESETS)
        for column, answer in enumerate((IGNORES, OBEYS, None))
    ],
)
def test_the_checkpoint_names_nothing(rooms: Rooms, preset: str, answer: str | None, chinese: bool) -> None:
    room = talked(rooms, preset, answer, chinese=chinese)
    made = room.compact(force=True)
    assert made.applied and made.method == ("model" if answer else "extractive")
    assert leaks(f"{room.view_text()}{made.summary}{made.ledger}{made.audit}{made.notes}") == []
    assert "[email 1]" in room.view_text() and "[id 1]" in room.view_text()
    assert any("Labels such as [email 1]" in note for note in made.notes)
    assert any("they were replaced" in note for note in made.notes) is (answer == IGNORES)
    assert "lena@example.com" in room.sessions.store.message(S, 2), "the log keeps the original"


def test_no_identifier_is_sent_to_the_model(rooms: Rooms) -> None:
    model = ScriptedModel(*["A record."] * 40)
    room = rooms(
        context_window=32_000, model=model, flush={"mode": "off"},
        compaction={"preset": "openclaw", "identifier_policy": "anonymize"},
    )  # fmt: skip
    room.say(user(SAID[True]), says("好"))
    room.talk(20, 300, first=1)
    room.compact(force=True)
    assert [secret for secret in SECRET if secret in str(model.requests)] == []


def test_labels_stay_the_same_over_rounds_restarts_and_undo(rooms: Rooms) -> None:
    room = talked(rooms, "openclaw", None)
    room.compact(force=True)
    first = room.view_text()
    label = next(line for line in first.splitlines() if "[email 1]" in line)
    room.say(user("Also bo@example.com, and again lena@example.com."), says("Yes."))
    room.talk(20, 300, first=50)
    made = room.compact(force=True)
    after = room.view_text()
    assert leaks(after) == [] and "bo@example.com" not in after and label.split(" (log:")[0] in after
    assert after.count("- [email 1]") == 1 and "- [email 2]" in after
    room.service.close()
    again = rooms(context_window=32_000, compaction={"preset": "openclaw", "identifier_policy": "anonymize"})
    assert again.view_text() == after
    again.undo(made.compaction_id)
    assert leaks(again.view_text().split("Also bo@")[0]) == []


def test_an_identifier_that_nobody_said_is_refused(rooms: Rooms) -> None:
    made = talked(rooms, "openclaw", "The order is ORD-9999-QQQ.").compact(force=True)
    assert made.method == "note" and "ORD-9999-QQQ" not in str(made.summary)


def test_pins_and_the_last_request_stand_as_they_were_said(rooms: Rooms) -> None:
    room = talked(rooms, "default", None)
    room.sessions.store.pin(S, text="Write to bo@example.com")
    room.compact(force=True)
    assert "Write to bo@example.com" in room.view_text() and leaks(room.view_text()) == []


def test_strict_is_another_name_for_preserve(rooms: Rooms) -> None:
    asked = list[str]()
    for policy in ("preserve", "strict"):
        model = ScriptedModel(*["A record."] * 40)
        room = rooms(context_window=32_000, model=model, compaction={"preset": "openclaw", "identifier_policy": policy})
        messages: list[Any] = [message for number in range(30) for message in turn(number, 300)]
        made = room.service.compact_messages(StatelessRequest(messages=messages, context_window=32_000, force=True))
        assert made.receipt.method == "model" and made.messages
        asked.append(str(model.requests))
        room.service.close()
    assert asked[0] == asked[1] and "character by character" in asked[0]
