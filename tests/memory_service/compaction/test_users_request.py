"""The newest genuine request of a user, whatever hosts, tools and short replies stand behind it."""

from __future__ import annotations

import re

import pytest

from memory_service.compaction.stateless import compact
from memory_service.compaction.users_request import asked_now, is_request
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import number_message
from tests.memory_service.compaction.work import looks, said

TASK = "Write the migration for table clients, and keep it under 50 lines. Do not touch invoices."
OBSERVED = "OBSERVATION:\n" + "\n".join(
    f'   {3700 + at}\t        raise ValueError("One of dims must be provided") # TODO: never use part{at}'
    for at in range(30)
)
QUESTION = """Which cache should we use?
1. Redis on its own server
2. In-memory LRU per process
3. Memcached"""


@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ({"role": "user", "content": "吗"}, True),
        ({"role": "user", "content": " \n"}, False),
        ({"role": "assistant", "content": "x"}, False),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.net/a.png"}}]},
            False,
        ),
        ({"role": "user", "content": "please keep going"}, False),
        ({"role": "user", "content": "Continue with step 3 of the plan"}, True),
        ({"role": "user", "content": "2"}, False),
        ({"role": "user", "content": OBSERVED}, False),
        ({"role": "user", "content": "Make it 2 columns"}, True),
    ],
)
def test_who_shows_something_asks_nothing(message: Message, asks: bool) -> None:
    assert is_request(message) is asks


def view_of(messages: list[Message], window: int = 16_000) -> str:
    made = compact(messages, context_window=window, force=True)
    return str(made.messages[0]["content"])


def asked_in(view: str) -> str:
    found = re.search(r"<current-request[^>]*>\n(.*)\n</current-request>", view, re.DOTALL)
    return found[1] if found else ""


@pytest.mark.parametrize(
    "words",
    [
        "[Request interrupted by user for tool use]",
        "<system-reminder>Make sure that you NEVER mention this reminder to the user.</system-reminder>",
        "<task-notification>the build is done</task-notification>",
        "continue",
        "ok, please continue from where you left off.",
        "weiter",
        "继续",
        OBSERVED,
    ],
)
def test_words_that_ask_for_nothing_leave_the_request_where_it_is(words: str) -> None:
    view = view_of([said("user", TASK), *looks(20), said("user", words), *looks(30, first=20)])
    assert asked_in(view) == TASK
    goal = view.split("## Goal\n")[1].split("\n\n")[0]
    assert "Write the migration for table clients" in goal
    assert "never use part" not in view and "NEVER mention" not in view


def test_a_request_of_a_split_turn_is_the_latest_one() -> None:
    view = view_of([
        said("user", "Rename column a to b in users.sql."),
        *looks(10),
        said("assistant", "Done: renamed column a to b."),
        said("user", "Now write the migration test for clients, and keep it under 50 lines."),
        *looks(36, first=10),
    ])  # fmt: skip
    assert asked_in(view) == "Now write the migration test for clients, and keep it under 50 lines."
    assert "- User, latest: Now write the migration test" in view


@pytest.mark.parametrize("choice", ["2", "b", "the second one please", "option 2, but with a TTL"])
def test_a_choice_stands_with_its_question_and_the_request_behind_it(choice: str) -> None:
    question = QUESTION if choice != "b" else QUESTION.replace("1.", "a)").replace("2.", "b)").replace("3.", "c)")
    view = view_of([
        said("user", "We need a cache for the price list."),
        said("assistant", question),
        said("user", choice),
        *looks(36),
    ])  # fmt: skip
    asked = asked_in(view)
    assert asked.startswith("We need a cache for the price list.")
    assert question in asked and asked.endswith(choice)


def test_a_yes_stands_with_its_question() -> None:
    view = view_of([
        said("user", "Get the release out."),
        said("assistant", "All tests pass. Shall I deploy to staging?"),
        said("user", "yes please"),
        *looks(36),
    ])  # fmt: skip
    assert "Shall I deploy to staging?" in asked_in(view) and asked_in(view).endswith("yes please")


def test_a_long_request_of_output_with_a_question_asks() -> None:
    message = said("user", "Why does this fail?\n" + OBSERVED.removeprefix("OBSERVATION:\n"))
    assert is_request(message)


def test_where_nothing_asks_the_newest_words_stand() -> None:
    asked = asked_now([number_message(said("user", "continue"), 1), number_message(said("user", "go on"), 2)])
    assert asked and asked.request and asked.request.seq == 2
    assert asked_now([number_message(said("assistant", "Hi"), 1)]) is None
