"""Prompts that begin as the one before did, over a real socket: what a provider's prompt cache lives on."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from memory_service.memories.block_text import is_block
from memory_service.storage.files.disk import MAX_READ_BYTES
from memory_service.text.texts import in_every_language
from tests.memory_service.api.talking import Json, begin, ok, talking
from tests.serving import RunningServer, W
from tests.wire import problems

NAMES = count()
SUBJECTS = [
    ("When is the deploy of the api gateway?", "The deploy of the api gateway is on Tuesday number {}."),
    ("Who owns the billing service?", "The billing service is owned by Marta, desk {}."),
    ("仓库的门禁密码是什么？", "仓库的门禁密码是{}8842。"),
    ("Where is the spare key of the lab?", "The spare key of the lab lies in drawer {}."),
    ("周会改到什么时候？", "周会改到星期四{}点。"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with talking(tmp_path_factory.mktemp("cached")) as running:
        yield running


@pytest.fixture
def name(server: RunningServer) -> str:
    """A session of its own."""
    made = f"c{next(NAMES)}"
    begin(server, made, context_window=16_000)
    return made


def prompt(server: RunningServer, name: str, **given: object) -> Json:
    return ok(server.http.post(f"{W}/sessions/{name}/context", json={"system_prompt": "You help.", **given}))


def heard(server: RunningServer, name: str, messages: list[Json]) -> None:
    ok(server.http.post(f"{W}/sessions/{name}/messages", json={"messages": messages}))


def remember(server: RunningServer, text: str) -> str:
    return str(ok(server.http.post(f"{W}/memories", json={"text": text}), 201)["memory_id"])


def turn(server: RunningServer, name: str, text: str, **given: object) -> Json:
    """The prompt for something that the user says, which is answered then."""
    heard(server, name, [{"role": "user", "content": text}])
    made = prompt(server, name, **given)
    heard(server, name, [{"role": "assistant", "content": f"Noted: {len(made['messages'])}."}])
    return made


def blocks(made: Json) -> list[str]:
    return [each["content"] for each in made["messages"] if is_block(str(each["content"]))]


# The first line of a block, in the language of the talk.
FRAME = in_every_language("block_note")


def lines(made: Json) -> list[str]:
    """The lines of all blocks but those of the frame."""
    return [line for block in blocks(made) for line in block.splitlines() if not line.startswith(("<", *FRAME))]


def begins_as(made: Json, before: Json) -> bool:
    shown: list[Json] = before["messages"]
    return bool(json.dumps(made["messages"][: len(shown)]) == json.dumps(shown))


def hold(made: Json) -> None:
    tokens = made["tokens"]
    assert sum(tokens[part] for part in ("system", "memory", "summary", "tail")) == tokens["total"] <= tokens["window"]
    assert problems(made["messages"], "openai") == []
    assert 0 <= made["cached_prefix_tokens"] <= tokens["total"]


def test_each_prompt_is_the_beginning_of_the_next_until_a_compaction(server: RunningServer, name: str) -> None:
    before, first = None, True
    for number in range(30):
        question, fact = SUBJECTS[number % len(SUBJECTS)]
        remember(server, fact.format(number))
        made = turn(server, name, f"{question} ({number})")
        hold(made)
        if before is not None:
            assert begins_as(made, before), number
            assert made["cached_prefix_tokens"] == before["tokens"]["total"], number
        assert made["receipt"]["cached_prefix_tokens"] == made["cached_prefix_tokens"]
        before, first = made, False
    assert not first and before is not None and len(blocks(before)) > 10
    shown = lines(before)
    assert len(shown) == len(set(shown)), "something is shown twice"
    ok(server.http.post(f"{W}/sessions/{name}/compact", json={"force": True}))
    after = turn(server, name, "And when is the deploy of the api gateway now?")
    hold(after)
    assert not begins_as(after, before) and len(blocks(after)) <= 1
    assert after["cached_prefix_tokens"] <= after["tokens"]["system"]
    remember(server, "The deploy of the api gateway has moved to Friday noon.")
    again = turn(server, name, "Is the deploy of the api gateway still on Tuesday?")
    assert begins_as(again, after), "summary and pins stay where they are"


def test_a_receipt_tells_what_stands_already(server: RunningServer, name: str) -> None:
    remember(server, "The orchard gate opens with the code 5519.")
    made = turn(server, name, "What is the code of the orchard gate?")
    assert any("5519" in block for block in blocks(made))
    again = turn(server, name, "Say again: the code of the orchard gate?", recall="always")
    assert sum("5519" in block for block in blocks(again)) == 1
    reasons = [item["reason"] for item in again["receipt"]["omitted"]]
    assert any(reason.startswith("already shown") for reason in reasons)


def test_the_same_turn_has_the_same_block_until_the_question_differs(server: RunningServer, name: str) -> None:
    remember(server, "The ferry to Sifnos leaves at 7:25.")
    heard(server, name, [{"role": "user", "content": "When does the ferry to Sifnos leave?"}])
    made = prompt(server, name)
    remember(server, "The ferry to Sifnos has a new pier, number 3.")
    again = prompt(server, name)
    assert again["messages"] == made["messages"]
    assert again["receipt"]["receipt_id"] == made["receipt"]["receipt_id"]
    assert again["cached_prefix_tokens"] == again["tokens"]["total"]
    call = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    heard(server, name, [{"role": "assistant", "content": None, "tool_calls": [call]}])
    heard(server, name, [{"role": "tool", "tool_call_id": "t1", "content": "It is sunny."}])
    hop = prompt(server, name)
    assert begins_as(hop, made) and len(hop["messages"]) == len(made["messages"]) + 2
    other = prompt(server, name, query="Which pier has the ferry to Sifnos?")
    assert len(blocks(other)) == 1 and "pier" in blocks(other)[0]
    hold(other)


def test_what_is_erased_stands_in_no_prompt_and_in_no_file(server: RunningServer, name: str, tmp_path: Path) -> None:
    memory_id = remember(server, "The alarm of the vault is disarmed with 77-zebra-41.")
    made = turn(server, name, "How is the alarm of the vault disarmed?")
    assert "77-zebra-41" in json.dumps(made["messages"])
    kept = [path for path in server.home.rglob("prompts/*.json") if "77-zebra-41" in path.read_text()]
    assert len(kept) == 1
    ok(server.http.delete(f"{W}/entries/{memory_id}"))
    assert not [path for path in server.home.rglob("prompts/*") if "77-zebra-41" in path.read_text()]
    assert "77-zebra-41" not in json.dumps(turn(server, name, "And the alarm of the hall?")["messages"])
    turn(server, name, "仓库的门禁密码是什么？")
    ok(server.http.delete(f"{W}/sessions/{name}"))
    assert not list(server.home.rglob(f"prompts/{name}.json"))


def test_what_a_person_takes_out_of_a_file_leaves_the_prompt(server: RunningServer, name: str) -> None:
    path = server.home / "default" / "memory" / "notes.md"
    text = "- The boat is moored at berth 19-heron.\n- 小船停在十九号泊位。\n"
    ok(server.http.put(f"{W}/memories/memory/notes.md", json={"text": text}, headers={"If-None-Match": "*"}))
    made = turn(server, name, "Where is the boat moored? 小船停在哪里？")
    assert "19-heron" in json.dumps(made["messages"])
    path.write_text("- 小船停在十九号泊位。\n", encoding="utf-8")
    assert "19-heron" not in json.dumps(turn(server, name, "Thanks, that is all.")["messages"])


def test_an_undo_leaves_no_block_behind(server: RunningServer, name: str) -> None:
    remember(server, "The heron counts are due on the ninth.")
    for number in range(12):
        turn(server, name, f"When are the heron counts due? {number} " + "word " * 400)
    done = ok(server.http.post(f"{W}/sessions/{name}/compact", json={"force": True}))
    made = turn(server, name, "When are the heron counts due, again?")
    ok(server.http.post(f"{W}/sessions/{name}/compactions/{done['compaction_id']}/undo"))
    after = turn(server, name, "Thanks for the counts of herons.")
    hold(after)
    assert len(blocks(after)) <= 1 and made["tokens"]["summary"] and not after["tokens"]["summary"]


def test_blocks_of_earlier_turns_go_at_once_where_they_take_too_much(server: RunningServer) -> None:
    name = f"c{next(NAMES)}"
    begin(server, name, context_window=4_096)
    for number in range(40):
        text = f"Crate {number} of the wine cellar holds {'red white dry sweet old new'.split()[number % 6]} bottles. "
        remember(server, text + f"It weighs {number + 20} kilos and stands at place {number}.")
    before, drops = 0, 0
    for number in range(12):
        made = turn(
            server,
            name,
            f"What is in the crate {number * 3} of the wine cellar?",
            recall="always",
            memory_budget_tokens=400,
        )
        hold(made)
        standing = len(blocks(made))
        drops += standing < before
        before = standing
        assert made["compaction"] is None, "blocks are no reason to compact"
    assert drops and before


def test_a_prompt_without_memories_has_no_block_and_takes_none_away(server: RunningServer, name: str) -> None:
    remember(server, "The lighthouse was painted in 1987.")
    made = turn(server, name, "When was the lighthouse painted?")
    assert turn(server, name, "Go on.", recall="never")["tokens"]["memory"] == made["tokens"]["memory"] > 0
    assert turn(server, name, "Go on.", memory_budget_tokens=0)["tokens"]["memory"] == 0
    assert begins_as(turn(server, name, "Go on."), made)


def test_a_restart_and_another_process_give_the_same_beginning(tmp_path: Path) -> None:
    with talking(tmp_path) as first:
        begin(first, "talk", context_window=16_000)
        remember(first, "The heating of the greenhouse is set to 21 degrees.")
        made = turn(first, "talk", "What is the heating of the greenhouse set to?")
        with talking(tmp_path) as second:
            beside = turn(second, "talk", "And at night?")
            assert begins_as(beside, made) and beside["cached_prefix_tokens"] == made["tokens"]["total"]
        assert begins_as(turn(first, "talk", "And at noon?"), beside)
    with talking(tmp_path) as third:
        assert begins_as(turn(third, "talk", "And in winter?"), beside)


def _endless(file: Path) -> None:
    file.write_text('{"view": Infinity, "blocks": [], "sent": []}')


def _torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def _huge(file: Path) -> None:
    os.truncate(file, MAX_READ_BYTES + 1)


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize("spoil", [_endless, _torn, _huge, _pipe], ids=lambda each: each.__name__.strip("_"))
def test_a_record_that_cannot_be_read_costs_a_cache_alone(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    with talking(tmp_path) as server:
        for name in ("talk", "idle"):
            begin(server, name, context_window=16_000)
        kept = remember(server, "The lock of the boathouse opens with 4711-stork.")
        for name in ("talk", "idle"):
            assert blocks(turn(server, name, "How does the lock of the boathouse open?"))
            spoil(tmp_path / "default" / "prompts" / f"{name}.json")
        made = turn(server, "talk", "And who has the key of the boathouse?")
        hold(made)
        assert made["degraded"] == [] and begins_as(turn(server, "talk", "Thanks."), made)
        assert ok(server.http.delete(f"{W}/entries/{kept}"))["degraded"] == []
        records = [path for path in tmp_path.rglob("prompts/*.json") if path.is_file()]
        assert not [path for path in records if b"4711-stork" in path.read_bytes()], "what cannot be read goes, too"
        ok(server.http.delete(f"{W}/sessions/talk"))
        assert not (tmp_path / "default" / "prompts" / "talk.json").exists()


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _link_of_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("elsewhere"))
    file.parent.symlink_to("elsewhere")


def _no_folder(file: Path) -> None:
    shutil.rmtree(file.parent)
    file.parent.write_text("a note")


@pytest.mark.parametrize("spoil", [_folder, _link_of_folder, _no_folder], ids=lambda each: each.__name__.strip("_"))
def test_a_prompt_that_cannot_be_stored_is_given_and_says_so(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    with talking(tmp_path) as server:
        begin(server, "talk", context_window=16_000)
        remember(server, "The lock of the boathouse opens with 4711-stork.")
        turn(server, "talk", "How does the lock of the boathouse open?")
        spoil(tmp_path / "default" / "prompts" / "talk.json")
        made = turn(server, "talk", "Say it again: the lock of the boathouse?", recall="always")
        hold(made)
        assert "4711-stork" in json.dumps(made["messages"])
        assert [told for told in made["degraded"] if told.startswith("prompt: ") and "prompts" in told], made[
            "degraded"
        ]
        ok(server.http.get(f"{W}/receipts/{made['receipt']['receipt_id']}"))
