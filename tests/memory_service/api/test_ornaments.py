"""Readers of meaning that fail: every door answers, what was written is found, and the failure is counted and logged.

A new reader is a line of `READERS`; one that is no ornament is a line of `ESSENTIAL`, with the reason.
"""

from __future__ import annotations

import ast
import logging
import sys
from collections.abc import Collection, Iterator
from importlib import import_module
from inspect import isfunction, unwrap
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import indexer.testing
import memory_service.compaction.extractive  # noqa: F401  (imported late by who uses it)
from indexer.language.ornaments import FAILURES
from memory_service.compaction.ledger import ledger_of
from memory_service.messages.shapes import user_message
from memory_service.messages.sizes import number_message
from tests.memory_service.gateway.talking import Gateway, gateway
from tests.serving import W

pytestmark = pytest.mark.failing_readers
ROOT = Path(__file__).resolve().parents[3]

# Where meaning is read: what fails in each test, and the name that it is counted under.
PLACES: dict[str, dict[str, str]] = {
    "search": {
        "indexer.language.asked_days.asked_days": "days",
        "indexer.language.asked_days.without_days": "days",
        "indexer.language.dates.day_keys": "days",
        "indexer.language.dates.day_of_name": "days",
        "indexer.language.dates.heading_day": "days",
        "indexer.language.dates.leading_stamp": "days",
        "indexer.language.fact_words.is_beside": "facts",
        "indexer.language.fact_words.is_same": "facts",
        "indexer.language.fact_words.words_of": "facts",
        "indexer.language.facts.change_of": "facts",
        "indexer.language.facts.facts_of": "facts",
        "indexer.language.facts.is_named": "facts",
        "indexer.language.facts.thing_number": "facts",
        "indexer.language.facts.things_of": "facts",
        "indexer.language.facts_frame.claims_of": "facts",
        "indexer.language.facts_frame.is_frame": "facts",
        "indexer.language.identifiers.asked_identifiers": "identifiers",
        "indexer.language.identifiers.identifier_keys": "identifiers",
        "indexer.language.names.greeted_name": "greetings",
        "indexer.language.names.greeted_speakers": "greetings",
        "indexer.language.names.named_speakers": "names",
        "indexer.language.names.speaker_of": "names",
        "indexer.language.outcomes.is_acknowledgement": "acknowledgements",
        "indexer.language.questions.asks": "questions",
        "indexer.language.questions.asks_shortly": "questions",
        "indexer.language.questions.asks_when": "questions",
        "indexer.language.questions.only_ask": "questions",
        "indexer.language.questions.whose_word": "questions",
        "indexer.language.dates.has_time_words": "days",
        "indexer.language.sentences.end_of_part": "sentences",
        "indexer.language.sentences.sentences_of": "questions",
        "indexer.language.sentences.pieces": "sentences",
        "indexer.language.sentences.snippet": "snippets",
        "indexer.language.terms.index_terms": "words",
        "indexer.language.terms.is_unlatin": "scripts",
        "indexer.language.terms.query_terms": "words",
        "indexer.language.terms.read_part": "scripts",
        "indexer.engine.relevance.signals": "relevance",
        "indexer.engine.authority._rivals": "authority",
        "indexer.language.authorship.in_first_person": "authority",
        "indexer.language.authorship.message_parts": "authors",
        "indexer.language.facts.hedges_of": "restated",
        "indexer.language.facts.sentences_with_changes": "restated",
        "indexer.language.facts.topic_of": "facts",
        "indexer.language.restated.restating": "restated",
        "indexer.language.restated.sentences_of": "restated",
        "indexer.language.restated.words_in": "restated",
        "indexer.language.sentences.split_parts": "authority",
        "indexer.language.questions.requests": "authority",
    },
    "block": {
        "indexer.language.inserted.folder_told": "inserted",
        "indexer.language.inserted.is_auxiliary": "inserted",
        "indexer.language.inserted.is_inserted": "inserted",
        "memory_service.text.secrets._find_secrets": "secrets",
        "memory_service.text.similarity.comparable_text": "similarity",
        "memory_service.text.similarity.covers": "similarity",
        "memory_service.text.similarity.read_fact": "similarity",
        "memory_service.text.similarity.size_of": "similarity",
        "memory_service.text.similarity.statements_of": "similarity",
        "memory_service.text.similarity.words_of_statements": "similarity",
        "memory_service.text.recall._decision": "recall",
    },
    "flush": {
        "memory_service.text.speech.read_speech": "speech",
        "memory_service.text.lasting.asks_to_remember": "statements",
        "memory_service.text.lasting.is_about_self": "statements",
        "memory_service.text.lasting.names_nothing": "statements",
        "memory_service.text.lasting.tells_value": "statements",
        "memory_service.text.lasting.wishes_address": "statements",
        "memory_service.text.phrases.clean": "statements",
        "memory_service.text.phrases.is_aside": "statements",
        "memory_service.text.phrases.is_label": "statements",
        "memory_service.text.phrases.is_nothing": "statements",
        "memory_service.text.phrases.is_pleasantry": "statements",
        "memory_service.text.phrases.is_relative": "statements",
        "memory_service.text.phrases.statement_lines": "statements",
        "memory_service.text.phrases.without_joint": "statements",
        "memory_service.text.retelling._retells": "similarity",
        "memory_service.text.salience.content_of": "statements",
        "memory_service.text.salience.marks_of": "statements",
        "memory_service.text.salience.words_of": "statements",
        "memory_service.text.salience.worth_of": "statements",
        "memory_service.text.secrets.announces_secret": "statements",
        "memory_service.text.similarity._groups_of": "similarity",
        "memory_service.text.similarity.probe": "similarity",
        "memory_service.text.similarity.stands_in": "similarity",
        "memory_service.text.statements.is_order": "statements",
        "memory_service.text.statements.lays_down": "statements",
    },
    "compact": {
        "indexer.language.outcomes.command_exit_of": "outcomes",
        "indexer.language.outcomes.failure_lines": "outcomes",
        "memory_service.text.grounding.claims_of": "grounding",
        "memory_service.text.identifiers.find_identifiers": "identifiers",
        "memory_service.text.identifiers.with_measure": "identifiers",
        "memory_service.text.salience.is_bare_list": "statements",
        "memory_service.text.salience.worth": "salience",
        "memory_service.text.sentences.sentences_of": "statements",
        "memory_service.text.sentences.speakers_of": "statements",
        "memory_service.text.statements.decisions_of": "statements",
        "indexer.language.authorship.typed_text": "statements",
        "memory_service.text.statements.reports_will": "statements",
        "memory_service.text.statements.is_promise": "salience",
        "memory_service.text.statements.is_standing": "statements",
        "memory_service.text.statements.is_yes": "statements",
        "memory_service.text.statements.kind_of": "statements",
        "memory_service.text.statements.names_of": "statements",
        "memory_service.text.statements.promises_of": "statements",
        "memory_service.text.statements.question_of": "statements",
        "memory_service.text.statements.rules_of": "statements",
    },
}

# Readers of what a talk rarely has where it is cut; asked by themselves.
OF_LEDGERS = ("memory_service.text.statements.ask_of", "memory_service.text.statements.speaks_of_deciding")
# Functions that catch what the readers within them raise; those are in the table.
CAREFUL = {
    "memory_service.text.judged_kinds.judge_kinds",
    "indexer.language.facts.not_same_line",
    "indexer.language.ornaments.ornament",
    "indexer.language.sentences.parts_of",
    "indexer.language.terms.asked_names",
    "indexer.language.terms.asked_terms",
    "indexer.language.terms.passage_terms",
    "indexer.language.terms.stored_terms",
    "memory_service.text.recall.decide_recall",
    "memory_service.text.retelling.retells_any",
    "memory_service.text.secrets.has_secret",
    "memory_service.text.secrets.redact",
    "memory_service.text.secrets.without_secrets",
    "memory_service.text.similarity.groups_of",
}
# Functions of texts that are no ornaments, by why; and readers of one place, which its row of the table stands for.
ESSENTIAL = {
    "hashes and shares, which know no text": (*("term_hashes", "weight", "chance", "limit_marks", "writing_of"),),
    "frames, which keep text from being taken for the service's words": (
        *("attribute_lines", "escape_frames", "fence_text", "visible", "without_thoughts", "said_messages"),
    ),
    "tables of the service's own texts, and counts of characters that choose one": (
        *("texts_in", "in_every_language", "pattern_of", "names_in_every_language"),
        *("language_of", "talk_language", "written_in", "first_language", "heading_in", "heading_forms"),
    ),
    "stubs and labels of the service's own, which know no meaning": (
        *("trim_middle", "is_inline", "call_line", "shorten_result", "is_cleared", "stub_text", "placeholder_text"),
        *("telling_argument", "see_text", "media_label", "handle", "too_large_text", "without_media", "payload_bytes"),
    ),
    "readers within facts, of which others fail in the table": ("caption",),
    "where a line stands, and what is no word: of this what is stored is made": (
        "breadcrumb",
        "embedded_text",
        "name_title",
        "has_words",
        "without_data",
    ),
    "a command as it is written, and the moment that a message carries": ("words_to_keep", "said_moment"),
    "words of questions and passages, by which all else is found": ("asked_terms", "passage_terms", "stored_terms"),
    "tests of single characters": ("has_unspaced", "is_spaced", "fold", "has_term_rules"),
    "cuts at a length": ("clip", "single_line", "split_text"),
    "readers within one message of a flush, of which others fail in the table": (
        *("introduction", "is_narration", "is_own", "is_reported", "picture_of", "points_back"),
        *("requests_action", "without_public_blocks", "answering"),
    ),
    "readers of what a model wrote, which is dropped where it cannot be checked": (
        *("begins_as_error", "days_of", "is_range", "is_year", "names_user", "reports_nothing", "topics_of"),
        *("without_handles", "without_inserted"),
    ),
    "readers within an extractive summary, for which a note stands where all of it fails": (
        *("has_identifiers", "is_bare_ask", "media_labels", "particulars", "subject_of"),
    ),
    "readers of who asks and answers what, within requests, ledgers and flushes that fail as a whole": (
        *("is_bare_assent", "is_bare_reply", "is_client_command", "is_continuation", "is_tool_output"),
        *("answered_question", "asked_in_one_line", "chosen_options", "options_in"),
    ),
    "readers of outcomes and steps, within the lines of a summary": (
        *("has_failed", "is_exit_only", "is_passing", "names_outcome"),
    ),
    "words of names, within a fact of a model's, which is dropped where it cannot be checked": (
        *("begun_words", "capitalised_names"),
    ),
    "a tool of the memory itself, and what it gave: a call by its name, an answer by its mark": (
        *("is_own_tool", "is_recalled"),
    ),
    "readers of the looks of an answer to a question, beside one that fails in the table": ("is_no",),
    "labels of records, which others ask for in the table; forms of a model's answer, and what a tool's answer holds": (
        "asked_labels",
        "is_assent",
        "is_estimate",
        "is_labelled",
        "is_refusal",
        "label_of",
        "next_subjects",
        "section_subject",
        "split_sentences",
        "without_reminders",
    ),
    "the same of what a memory retells": ("holds_all", "retold_words"),
    "of long results of tools, where they are cut": ("ends_in_error",),
}

READERS = [(place, target, label) for place, rows in PLACES.items() for target, label in rows.items()]
_numbers = count(1)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway(tmp_path_factory.mktemp("home"), *["Fine."] * (len(READERS) + 8)) as opened:
        yield opened


def told(number: int) -> tuple[str, list[dict[str, Any]]]:
    """A file and a talk with something for every reader; their words are those of one test alone."""
    it = f"quokka{number}"
    file = f"""# Team of {it}

## 2026-11-20

- Kim: hello Lou, did the {it} release go out yesterday?
- Lou: Hi Kim, yes, it went out at 10:00.
- Kim: great, and who owns {it}?

The owner of {it} is Kim.

## 2026-11-24

The owner of {it} is Lou now.

Not the same: "owner of {it} is Kim" and "a lemur of {it}"

{f"A long sentence on the warehouse of {it} follows here. " * 30}
"""
    call = {"id": f"c{number}", "type": "function", "function": {"name": "shell", "arguments": '{"command": "make"}'}}
    talk: list[dict[str, Any]] = [
        {"role": "user", "content": f"[Tue Nov 24 2026 10:00] Please build {it}. Never push {it} to main on Fridays."},
        {"role": "assistant", "content": f"I will build {it} at /srv/{it}/make.py by Monday.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"error: {it} missing\nexit code 2\n" * 60},
        {"role": "assistant", "content": f"The build of {it} failed with exit code 2. Shall I move {it} to port 8080?"},
        {"role": "user", "content": f"Yes. We decided to move {it} to Postgres. My name is Mia Berg, I live in Graz."},
        {"role": "assistant", "content": f"Assistant: I remember that {it} runs on 12 servers in Vienna since May."},
        {
            "role": "user",
            "content": f"Remember: the invoice of {it} is 4,500 euros. Call me Mia. What is left of {it}?",
        },
    ]
    return file, talk


def story(gate: Gateway, number: int, folder: Path, places: Collection[str]) -> list[str]:
    """What people and agents do where meaning is read, of one test; gives what went wrong."""
    # One for eight tests: what earlier ones have written costs each later one more.
    workspace = f"w{number // 8}"
    http, it, here = gate.server.http, f"quokka{number}", f"/v1/workspaces/{workspace}"
    session, chosen = f"{here}/sessions/s{number}", {"X-Memory-Workspace": workspace}
    file, talk = told(number)
    path = f"memory/{it}-2026-11-20.md"
    question = f"when did Kim tell Lou who owns {it} yesterday?"
    hook = {"session_id": it, "cwd": str(folder), "hook_event_name": "UserPromptSubmit", "prompt": question}
    chat = {"model": "m", "messages": [{"role": "user", "content": question}]}
    asked = [
        ("remember", http.post(f"{here}/memories", json={"text": f"The spare key of {it} hangs in the cellar."})),
        ("put", http.put(f"{here}/memories/{path}", json={"text": file}, headers={"If-None-Match": "*"})),
        ("session", http.post(f"{here}/sessions", json={"session_id": f"s{number}", "context_window": 4_000})),
        ("append", http.post(f"{session}/messages", json={"messages": talk})),
    ]
    if "flush" in places:
        asked.append(("flush", http.post(f"{session}/flush")))
        http.post(f"{session}/messages", json={"messages": talk})
        asked.append(("flush again", http.post(f"{session}/flush")))
        # Talks of named people are read by rules.
        people = [
            {"role": "user", "content": f"{name}: {line} of {it}"}
            for name, line in (("Mia", "I painted the boat"), ("Tom", "When?"), ("Mia", "On 3 May 2026, at the house"))
        ]
        http.post(f"{session}-people/messages", json={"messages": people})
        asked.append(("flush of people", http.post(f"{session}-people/flush")))
    if "search" in places:
        asked.append(("search", http.post(f"{here}/search", json={"query": question})))
        asked.append(("talks", http.post(f"{here}/search", json={"query": f"{it} Postgres", "sources": ["sessions"]})))
    if "compact" in places:
        how = {"mode": "apply", "force": True, "target_tokens": 300}
        asked.append(("compact", http.post(f"{session}/compact", json=how)))
    if "block" in places:
        asked.append(("context", http.post(f"{here}/context", json={"query": question, "budget_tokens": 900})))
        asked.append(("hook", http.post("/v1/hooks/claude-code", json=hook, headers=chosen)))
        asked.append(("gateway", http.post("/v1/chat/completions", json=chat)))
    if "block" in places or "compact" in places:
        asked.append(("prompt", http.post(f"{session}/context", json={"query": question})))
    wrong = [f"{name}: {answer.status_code} {answer.text[:300]}" for name, answer in asked if not answer.is_success]
    for sought in (f"spare key {it}", f"owner of {it}"):
        found = http.post(f"{here}/search", json={"query": sought, "mode": "text"})
        if it not in found.text:
            wrong.append(f"nothing found of {sought!r}: {found.text[:300]}")
    if left := http.get(f"{here}/status").json()["failed"]:
        wrong.append(f"failed files: {left}")
    return wrong


def failures(gate: Gateway) -> dict[str, float]:
    # The parser takes its time: it is given the one family that is asked for.
    lines = gate.server.http.get("/metrics").text.splitlines(keepends=True)
    families = text_string_to_metric_families("".join(line for line in lines if "memory_service_reader_fail" in line))
    [family] = families
    return {sample.labels["reader"]: sample.value for sample in family.samples if sample.name.endswith("_total")}


def break_reader(patch: pytest.MonkeyPatch, target: str) -> None:
    """Make a reader fail wherever it is known by name."""
    module, _, name = target.rpartition(".")
    real = getattr(import_module(module), name)

    # A kind of its own, as each kind is logged once in a process.
    error = type(f"{name.title()}Failed", (RuntimeError,), {})

    def fail(*_: object, **__: object) -> None:
        raise error("quokka: words of a memory")

    for known in list(sys.modules.values()):
        # The embedder of these tests is made of terms; a model is not.
        if getattr(known, "__name__", "").startswith(("indexer.", "memory_service.")) and known is not indexer.testing:
            for at in [at for at, value in vars(known).items() if value is real]:
                patch.setattr(known, at, fail)


@pytest.mark.parametrize(("place", "target", "label"), READERS)
def test_a_reader_that_fails_costs_what_it_reads_alone(
    gate: Gateway,
    place: str,
    target: str,
    label: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = failures(gate)
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        break_reader(patch, target)
        assert story(gate, next(_numbers), tmp_path, {place}) == []
    after = failures(gate)
    assert after.get(label, 0) > before.get(label, 0), after
    assert gate.server.http.get(f"{W}/status").json()["reader_failures"] == after
    lines = [record.getMessage() for record in caplog.records if record.name.endswith("ornaments")]
    assert lines and len(lines) == len(set(lines)), lines
    assert not [record for record in caplog.records if record.exc_info]
    assert "quokka" not in caplog.text


@pytest.mark.parametrize("target", OF_LEDGERS)
def test_a_ledger_goes_without_what_cannot_be_read(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = user_message("We decided: never push to main. Please look at /srv/app/main.py again?")
    before = FAILURES.counts().get("statements", 0)
    break_reader(monkeypatch, target)
    found = ledger_of([number_message(said, 1)])
    assert [entry.text for entry in found if entry.kind == "path"] == ["/srv/app/main.py"]
    assert FAILURES.counts()["statements"] > before


def test_the_table_is_complete() -> None:
    named = {target for _, target, _ in READERS} | CAREFUL | {*OF_LEDGERS}
    bare = {name for names in ESSENTIAL.values() for name in names}
    imported = imported_readers()
    missing = {name for name in imported if name not in named and name.rpartition(".")[2] not in bare}
    assert not missing, "A place where meaning is read asks these: add each to the table, and call it by `ornament`."
    assert bare <= {name.rpartition(".")[2] for name in imported}, "Take out what nobody asks any more."


ROOMS = ("indexer.language", "memory_service.text")


def imported_readers() -> set[str]:
    """Functions of the two rooms of words that other packages import, by the full names of where they stand."""
    found = set[str]()
    for path in (*ROOT.glob("indexer/**/*.py"), *ROOT.glob("memory_service/**/*.py")):
        if path.relative_to(ROOT).parts[1] in ("language", "text"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(ROOMS):
                module = import_module(str(node.module))
                given = [unwrap(getattr(module, name.name)) for name in node.names if hasattr(module, name.name)]
                found |= {f"{one.__module__}.{one.__name__}" for one in given if isfunction(one)}
    return {name for name in found if name.startswith(ROOMS)}


def test_all_readers_may_fail_at_once(gate: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        for _, target, _ in READERS:
            break_reader(patch, target)
        assert story(gate, next(_numbers), tmp_path, PLACES) == []
    assert story(gate, next(_numbers), tmp_path, PLACES) == []
