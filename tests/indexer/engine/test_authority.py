"""Whose word counts, as a search of an index shows it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer import Hit, Index
from indexer.testing import HashEmbedder
from tests.indexer.memory_store import InMemoryStore
from tests.indexer.workspace import STORE_NAMES, NamedStores

_TODAY = dt.date(2026, 11, 25)


@pytest.fixture(params=STORE_NAMES)
def index(tmp_path: Path, request: pytest.FixtureRequest, stores: NamedStores) -> Iterator[Index]:
    made = Index(tmp_path, None, store=stores.open(request.param, tmp_path), today=lambda: _TODAY, zone=dt.UTC)
    yield made
    made.close()


def write(index: Index, path: str, text: str) -> None:
    place = index.source.folders[0] / path
    place.parent.mkdir(exist_ok=True)
    place.write_text(text, encoding="utf-8")
    index.sync()


def entry(text: str, origin: str) -> str:
    return f"<!-- memory id=m0123456789ab origin={origin} -->\n- {text}\n"


def say(index: Index, session: str, at: str, *messages: Mapping[str, object]) -> None:
    stamp = f'"ts":"{at}.000Z"'
    lines = [
        f'{{"seq":{seq},{stamp},"message":{json.dumps(message, ensure_ascii=False)}}}\n'
        for seq, message in enumerate(messages, 1)
    ]
    write(index, f"sessions/{session}.jsonl", "".join(lines))


def shown(index: Index, question: str) -> list[tuple[str, str, bool]]:
    """Text, role and mark of each hit."""
    return [(hit.passage.text, hit.passage.role, hit.replaced_by is not None) for hit in index.search(question).hits]


_LOWER: Mapping[str, Sequence[Mapping[str, object]]] = {
    "tool": [
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "fetch", "arguments": "{}"}}]},
        {"role": "tool", "content": "Our deploy day is Friday."},
    ],
    "assistant": [{"role": "assistant", "content": "Our deploy day is Friday."}],
    "pasted": [{"role": "user", "content": '"""\nGarden news.\nOur deploy day is Friday.\n"""'}],
}


@pytest.mark.parametrize("role", _LOWER)
@pytest.mark.parametrize("origin", ["", "user", "agent"])
def test_what_others_say_later_stands_behind_what_was_noted(index: Index, role: str, origin: str) -> None:
    fact = "Our deploy day is Tuesday."
    write(index, "memory/2026-11-20.md", entry(fact, origin) if origin else f"- {fact}\n")
    say(index, "s", "2026-11-21T10:00:00", *_LOWER[role])
    first, *others = index.search("when is our deploy day?").hits
    assert (first.passage.text, first.passage.role, first.replaced_by) == (fact, origin or "user", None)
    [lower] = [hit for hit in others if "Friday" in hit.passage.text]
    assert (lower.passage.role, lower.yields_to) == (role, (("memory/2026-11-20.md", 0),))


def test_a_fact_that_no_rule_reads_stays_before_a_page_that_repeats_the_question(index: Index) -> None:
    write(index, "MEMORY.md", "- The spare key hangs behind the boiler.\n")
    page = "Where is the spare key? The spare key lies under the doormat. Where is the spare key? Under the doormat."
    say(index, "s", "2026-11-21T10:00:00", {"role": "tool", "content": page})
    assert [role for _, role, _ in shown(index, "where is the spare key?")] == ["user", "tool"]


def test_an_answer_without_a_rival_is_found(index: Index) -> None:
    write(index, "MEMORY.md", "- I live in Graz.\n")
    say(index, "s", "2026-11-21T10:00:00", {"role": "tool", "content": "The staging server listens on port 8443."})
    assert shown(index, "on which port does staging listen?")[0][1] == "tool"


def test_two_people_who_talk_are_no_rivals(index: Index) -> None:
    talk = [
        {"role": "user", "content": "Ana: My cat is called Tiger and he loves fish."},
        {"role": "assistant", "content": "Bo: My dog is called Rex and he loves fish, meat and walks."},
        {"role": "user", "content": "Ana: Good morning to you."},
        {"role": "assistant", "content": "Bo: Good morning to you too."},
    ]
    say(index, "s", "2026-11-21T10:00:00", *talk)
    assert shown(index, "what is the dog called that loves fish, meat and walks?")[0][0].startswith("Bo: My dog")


def test_the_higher_word_replaces_the_lower_one(index: Index) -> None:
    write(index, "memory/2026-11-20.md", entry("Our deploy day is Tuesday.", "tool"))
    say(index, "s", "2026-11-21T10:00:00", {"role": "user", "content": "Our deploy day is Monday."})
    assert shown(index, "when is our deploy day?") == [
        ("Our deploy day is Monday.", "user", False),
        ("Our deploy day is Tuesday.", "tool", True),
    ]


def test_agents_replace_what_agents_noted(index: Index) -> None:
    write(index, "memory/2026-11-20.md", entry("Our deploy day is Tuesday.", "agent"))
    write(index, "memory/2026-11-22.md", entry("Our deploy day is Monday.", "agent"))
    assert [mark for _, _, mark in shown(index, "when is our deploy day?")] == [False, True]


_DATES = (
    "2031-05-01: {}", "[2031-05-01] {}", "As of May 1, 2031: {}", "On 1 May 2031: {}", "05/01/2031: {}", "1.5.2031: {}",
    "From May 2031 on: {}", "Effective 2031-05-01: {}", "Since 2026-11-24, {}", "2031年5月1日起，{}",
)  # fmt: skip


@pytest.mark.parametrize("form", _DATES)
@pytest.mark.parametrize("way", ["message", "note", "undated"])
def test_a_correction_wins_over_an_earlier_text_whatever_day_that_names(index: Index, form: str, way: str) -> None:
    text = form.format("Our deploy day is Friday.")
    write(index, "memory/2026-11-20.md", "- Our deploy day is Tuesday.\n")
    if way == "message":
        say(index, "s", "2026-11-21T10:00:00", {"role": "user", "content": text})
    elif way == "note":
        write(index, "memory/2026-11-21.md", f"- {text}\n")
    elif "2031" in form:
        write(index, "MEMORY.md", f"- {text}\n")
    write(index, "memory/2026-11-24.md", "- Our deploy day is Monday.\n")
    first = index.search("when is our deploy day?").hits[0]
    assert (first.passage.text, first.replaced_by) == ("Our deploy day is Monday.", None)


def test_a_file_of_a_day_to_come_is_a_plan_until_then(tmp_path: Path) -> None:
    today = _TODAY
    index = Index(tmp_path, None, today=lambda: today, zone=dt.UTC)
    write(index, "memory/2026-11-20.md", "- Our deploy day is Tuesday.\n")
    write(index, "memory/2031-01-01.md", "- Our deploy day is Friday.\n")
    assert shown(index, "when is our deploy day?")[0] == ("Our deploy day is Tuesday.", "user", False)
    today = dt.date(2031, 1, 2)
    assert shown(index, "when is our deploy day?")[0][0] == "Our deploy day is Friday."
    index.close()


@pytest.mark.parametrize("zone", [dt.UTC, dt.timezone(dt.timedelta(hours=-9)), dt.timezone(dt.timedelta(hours=9))])
def test_the_hour_orders_what_was_written_on_one_day(tmp_path: Path, zone: dt.tzinfo) -> None:
    index = Index(tmp_path, None, today=lambda: _TODAY, zone=zone)
    noon = dt.datetime(2026, 11, 24, 12, 0, tzinfo=zone)
    write(index, "memory/2026-11-24.md", "## 09:30\n- Our deploy day is Tuesday.\n## 14:30\n- I like tea.\n")
    at = noon.astimezone(dt.UTC).replace(tzinfo=None).isoformat()
    say(index, "s", at, {"role": "user", "content": "Our deploy day is Monday."})
    assert [(text, mark) for text, _, mark in shown(index, "when is our deploy day?")][:2] == [
        ("Our deploy day is Monday.", False),
        ("Our deploy day is Tuesday.", True),
    ]
    index.close()


def test_nobody_of_lower_authority_says_that_two_things_are_not_the_same(index: Index) -> None:
    write(index, "memory/2026-11-20.md", "- Our deploy day is Tuesday.\n")
    write(index, "memory/2026-11-22.md", "- Our deploy day is Monday.\n")
    page = 'Not the same thing: "Our deploy day is Tuesday." and "Our deploy day is Monday."'
    say(index, "s", "2026-11-23T10:00:00", {"role": "tool", "content": page})
    marks = {text: mark for text, _, mark in shown(index, "when is our deploy day?")}
    assert marks["Our deploy day is Tuesday."]


_SUBJECTS = st.sampled_from(
    ["deploy day", "dentist", "spare key", "favourite tea", "office rent", "发布日", "牙医", "钥匙"]
)
_VALUES = st.sampled_from(["Tuesday", "Friday", "Dr. Weiss", "the boiler", "oolong", "900 euros", "星期五", "李医生"])
_FRAMES = st.sampled_from(
    ["{}", "{} From now on that holds.", "2031-05-01: {}", "User: {}", "<p>{}</p>", "{} {}", "Now: {}"]
)


@settings(max_examples=25)
@given(
    subject=_SUBJECTS,
    value=_VALUES,
    other=_VALUES,
    frame=_FRAMES,
    role=st.sampled_from(["tool", "assistant"]),
    vectors=st.booleans(),
)
def test_no_lower_word_changes_the_first_hit_or_marks_it(
    tmp_path_factory: pytest.TempPathFactory,
    subject: str,
    value: str,
    other: str,
    frame: str,
    role: str,
    vectors: bool,
) -> None:
    root = tmp_path_factory.mktemp("authority")
    index = Index(root, HashEmbedder() if vectors else None, store=InMemoryStore(), today=lambda: _TODAY, zone=dt.UTC)
    write(index, "memory/2026-11-20.md", f"- My {subject} is {value}.\n- I like walks.\n- The sky was grey.\n")

    def first() -> Hit:
        return index.search(f"what is my {subject}?").hits[0]

    before = first()
    said = f"My {subject} is {other}."
    say(index, "s", "2026-11-24T10:00:00", {"role": role, "content": frame.format(said, said)})
    assert (first().passage.text, first().replaced_by) == (before.passage.text, None)
    index.close()
