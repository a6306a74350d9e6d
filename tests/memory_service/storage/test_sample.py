from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.errors import Conflict, InvalidName
from memory_service.messages.reading import read_messages
from memory_service.messages.sizes import message_tokens
from memory_service.messages.writing import to_mistral, to_openai
from memory_service.messages.writing_anthropic import to_anthropic
from memory_service.service import MemoryService
from memory_service.sessions.records import MessageRecord, SessionHeader
from memory_service.storage.files.jsonl_log import JsonlLog
from memory_service.storage.sample import SAMPLE_SESSION_ID
from tests.memory_service.storage.log_steps import header
from tests.serving import settings
from tests.storages import sample_folder
from tests.wire import Provider, problems, to_litellm

BUNDLED = Path(__file__).parents[3] / "data/default"
SESSION = f"sessions/{SAMPLE_SESSION_ID}.jsonl"


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != ".locks")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def recorded() -> list[dict[str, Any]]:
    """The messages of the recorded session."""
    bodies = [record.body for record in JsonlLog(BUNDLED / SESSION).read()]
    return [json.loads(body.text) for body in bodies if isinstance(body, MessageRecord)]


def test_the_sample_is_copied_file_by_file(tmp_path: Path) -> None:
    folder = sample_folder(tmp_path / "deep/home")
    assert folder == tmp_path / "deep/home/default"
    copied = contents(folder)
    log = copied.pop(SESSION)
    assert copied == {name: raw for name, raw in contents(BUNDLED).items() if name.endswith(".md")}
    assert {"MEMORY.md", "USER.md"} < copied.keys()
    # Its header has what headers have today, every message its bytes.
    assert log.splitlines()[1:] == (BUNDLED / SESSION).read_bytes().splitlines()[1:]


def test_it_may_be_copied_without_its_session(tmp_path: Path) -> None:
    folder = sample_folder(tmp_path, with_session=False)
    assert contents(folder) == {name: raw for name, raw in contents(BUNDLED).items() if name.endswith(".md")}


def test_the_sample_can_be_indexed_whole(tmp_path: Path) -> None:
    copied = contents(sample_folder(tmp_path))
    with MemoryService(settings(tmp_path), embedder=HashEmbedder()) as service:
        report = service.reindex("default")
        assert (report.added, report.failed, report.degraded) == (len(copied), [], [])
        assert service.context("default", "why did the release day change?").block


def test_a_workspace_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    folder = sample_folder(tmp_path)
    (folder / "MEMORY.md").write_text("- mine\n")
    before = contents(folder)
    with pytest.raises(Conflict, match="nothing was changed"):
        sample_folder(tmp_path)
    assert contents(folder) == before


def test_a_home_that_cannot_hold_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(InvalidName, match=str(tmp_path / "home")):
        sample_folder(tmp_path / "home")


def test_the_session_is_a_sound_log(tmp_path: Path) -> None:
    before = contents(BUNDLED / "sessions")
    log = JsonlLog(BUNDLED / SESSION)
    records = list(log.read())
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert log.status().repairs == () and header(log) == SessionHeader(session_id=SAMPLE_SESSION_ID)
    assert all(isinstance(record.body, MessageRecord) for record in records[1:])
    moments = [dt.datetime.fromisoformat(record.ts) for record in records]
    assert all(earlier <= later for earlier, later in pairwise(moments))
    assert len({moment.date() for moment in moments}) == 4
    # Reading what is bundled leaves nothing beside it.
    assert contents(BUNDLED / "sessions") == before


def test_it_has_the_size_that_the_readme_names() -> None:
    messages = recorded()
    assert 110 <= len(messages) <= 140
    assert 13_500 <= sum(map(message_tokens, read_messages(messages))) <= 18_000
    sizes = [len(str(message["content"]).encode()) for message in messages if message["role"] == "tool"]
    assert max(sizes) > 5_500
    told = (BUNDLED.parent / "README.md").read_text("utf-8")
    assert f"{len(messages)} messages" in told and SAMPLE_SESSION_ID in told


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "mistral"])
def test_every_provider_takes_it(provider: Provider) -> None:
    inner = read_messages(recorded())
    wire = {
        "openai": lambda: to_openai(inner),
        "anthropic": lambda: to_anthropic(inner)[1],
        "gemini": lambda: to_litellm(inner),
        "mistral": lambda: to_mistral(inner),
    }[provider]()
    assert problems(list(wire), provider) == []


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("user", "never ship plants when it is below 5 °C at the destination"),  # a rule
        ("user", "no meetings for me before 09:00 on Wednesdays"),  # a preference
        ("user", "no discounts on Black Friday, this year and next"),  # a decision
        ("user", "祝妈妈身体健康，天天开心"),  # what a Chinese customer wants
        ("user", "by Friday the 27th at noon"),  # a deadline
        ("user", "quince jelly"),  # small talk
        ("assistant", "https://lindewater.example/offers/4471"),
        ("assistant", "€3.63 landed per pot"),
        ("assistant", "软水机调到电导率 0.6 以下再用"),  # in a call's arguments
        ("tool", "exit code 1"),
        ("tool", '"status": 422'),
        ("tool", "SAN-TRI-12;虎尾兰 Sansevieria trifasciata;12;0;40"),
    ],
)
def test_it_says_what_the_story_needs(role: str, words: str) -> None:
    texts = [json.dumps(message, ensure_ascii=False) for message in recorded() if message["role"] == role]
    escaped = json.dumps(words, ensure_ascii=False)[1:-1]
    assert any(words in text or escaped in text for text in texts)


def test_a_retry_fails_as_the_call_did() -> None:
    failures = Counter(message["content"] for message in recorded() if "carrier_unavailable" in str(message["content"]))
    assert list(failures.values()) == [2]


def test_it_keeps_the_shops_own_rule_about_customers() -> None:
    """No name, address or key of anybody: orders are named by their number."""
    text = (BUNDLED / SESSION).read_text("utf-8")
    assert len(set(re.findall(r"WJ-49\d{3}", text))) > 15
    assert re.findall(r"[\w.]+@[\w.]+|\bsk-\w+|password\W+\w+", text) == []
    assert set(re.findall(r"https?://([\w.-]+)", text)) == {"lindewater.example", "admin.example.com"}
