"""The story that `demo` tells."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memory_service.cli.demo.story import story_in
from memory_service.messages.sizes import count_tokens
from memory_service.service import MemoryService
from memory_service.storage.sample import SAMPLE_SESSION_ID, SAMPLES
from tests.memory_service.cli.commands import CommandLine
from tests.pages import blocks
from tests.picture import COMMAND, PICTURE, lines_of
from tests.storages import read_documents

ENGLISH_STORY, CHINESE_STORY = story_in("en"), story_in("zh")
STEPS = ("files and index", "conversation", "flush", "reindex", "compaction", "context", "pins, and another language")


def check_story(told: str) -> None:
    """Every step is named in order, and the blocks it shows are within the budget it names."""
    assert re.findall(r"^(\d)\. (.+)$", told, re.MULTILINE) == [
        (str(number), title) for number, title in enumerate(STEPS, 1)
    ]
    steps = re.split(r"^\d\. .+$", told, flags=re.MULTILINE)[1:]
    _, conversation, flush, _, compaction, *questions = steps
    bars = re.findall(r"message +(\d+)  (█*░*)  +([\d,]+) tokens", conversation)
    assert len(bars) >= 14 and {len(bar) for _, bar, _ in bars} == {32}
    assert all(abs(bar.count("█") * 256 - int(tokens.replace(",", ""))) <= 128 for _, bar, tokens in bars)
    assert "flush: " in conversation and "compaction: " in conversation
    assert len(re.findall(r"^   │ - .+", flush, re.MULTILINE)) >= 3
    assert re.search(r"found by the very next search at memory/\d{4}-\d\d-\d\d\.md:\d+$", flush, re.MULTILINE)
    assert "all equal" in compaction and "140 of 140 messages, byte for byte" in compaction
    assert "NOT" not in told
    assert len(questions) == 2
    for question, answer in zip(questions, ("40 g off", "祝妈妈身体健康"), strict=True):
        _check_question(question, answer)
    assert f"in view: {ENGLISH_STORY.pin}" in questions[1]
    assert "\x1b" not in told
    assert re.search(r"│ rule .*never ship plants", compaction)


def readme_lines() -> list[str]:
    """What the README shows of the story."""
    (shown,) = (text for language, text in blocks("README.md") if not language and text.startswith("2. conversation"))
    return shown.splitlines()


def without_figures(told: str) -> str:
    """A text on one line, without what differs from run to run: figures, bars and ids of receipts."""
    told = re.sub(r"receipt r[\w-]+|[█░]+|│", " ", told)
    return " ".join(re.sub(r"\d[\d,.]*", "0", told).split())


def _check_question(told: str, answer: str) -> None:
    shown = "\n".join(line[5:] for line in told.splitlines() if line.startswith("   │ "))
    block = shown[: shown.index("</relevant_context>") + len("</relevant_context>")]
    counted = re.search(r"^   (\d+) of (\d+) tokens", told, re.MULTILINE)
    assert counted is not None
    tokens, budget = map(int, counted.groups())
    assert count_tokens(block) == tokens <= budget
    assert answer in block
    assert "stands nowhere else in the prompt" in told


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[CommandLine, Any]:
    """A home that the demo left, and what it printed with `--json`."""
    home = tmp_path_factory.mktemp("kept") / "my notes"
    cli = CommandLine(home=home)
    return cli, json.loads(cli.ok("demo", "--keep", str(home), "--json"))


@pytest.mark.timeout(300)
def test_the_demo_tells_its_story_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    configured = {
        # Not called: there is none at that address.
        "MEMORY_SERVICE_LLM_MODEL": "openai/none",
        "MEMORY_SERVICE_LLM_API_BASE": "http://127.0.0.1:9",
    }
    run = CommandLine(home=tmp_path / "home", environment=configured).spawn("demo", seconds=280, cwd=folder)
    assert (run.code, run.err) == (0, "")
    check_story(run.out)
    for shown in (readme_lines(), lines_of(PICTURE.read_text("utf-8"))[1:]):
        printed = without_figures(run.out)
        assert 12 <= len(shown) <= 60
        assert [line for line in shown if without_figures(line) not in printed] == [], f"draw it anew: {COMMAND}"
    assert list(folder.iterdir()) == [] and not (tmp_path / "home").exists()


def of_line(story: Any, name: str) -> list[Any]:
    """The figures of each line of that name."""
    return [figures for figures in story["lines"] if figures["line"] == name]


def test_json_has_every_number_and_they_agree(kept: tuple[CommandLine, Any]) -> None:
    cli, story = kept
    (replay,), compactions, (log,) = of_line(story, "summary"), of_line(story, "compacted"), of_line(story, "log")
    assert story["home"] == str(cli.home)
    assert replay["contexts"] > 60 and replay["window"] == 8_192
    assert replay["tokens"] > replay["window"] > replay["peak"] > 4_000
    assert len(compactions) >= 2
    for done in compactions:
        assert 0 < done["after"] < done["before"] < replay["window"]
        assert done["equal"] == ENGLISH_STORY.lines["equal"] and done["bytes"] > 10_000
    assert sum(done["covered_messages"] for done in compactions) > 60
    assert log["logged"] == replay["messages"] == 140 and log["equal"] == ENGLISH_STORY.lines["byte_for_byte"]
    (passages,) = of_line(story, "before_after")
    assert passages["after"] > passages["before"] > 150


def test_flushes_wrote_what_they_say(kept: tuple[CommandLine, Any]) -> None:
    cli, story = kept
    flushes = of_line(story, "flush")
    assert flushes and sum(flush["written"] for flush in flushes) >= 20
    texts = {flush["path"]: cli.read(flush["path"]) for flush in flushes}
    days = read_documents(cli.home)
    entries = sum(text.count(f"session={SAMPLE_SESSION_ID} ") for text in days.values())
    assert entries == sum(flush["written"] for flush in flushes)
    for flush in flushes:
        assert len(flush["entries"]) >= 3 and all(entry in texts[flush["path"]] for entry in flush["entries"])
        assert flush["place"].startswith(flush["path"])


def test_memories_speak_of_the_days_of_the_recording(kept: tuple[CommandLine, Any]) -> None:
    cli, story = kept
    text = cli.read(of_line(story, "flush")[0]["path"])
    days = set(re.findall(r"\((2\d{3}-\d\d-\d\d)\)|（(2\d{3}-\d\d-\d\d)）", text))
    assert {"".join(day) for day in days} <= {f"2026-11-{day}" for day in (17, 18, 19, 20)} and days


def test_answers_come_from_memory_within_the_budget(kept: tuple[CommandLine, Any]) -> None:
    made = zip(*(of_line(kept[1], name) for name in ("prompt", "block", "whole")), strict=True)
    recalls = [
        {**prompt, "size": size["tokens"], "budget": size["budget"], "whole": whole} for prompt, size, whole in made
    ]
    assert len(recalls) == 2
    for recall in recalls:
        assert recall["is_in_block"] and recall["whole"]["where"] == ENGLISH_STORY.lines["answer_in_block"]
        assert count_tokens(recall["block"]) == recall["size"] <= recall["budget"]
        assert recall["whole"]["tokens"] < recall["whole"]["window"]
    sources = of_line(kept[1], "source")
    assert sources and all(any(source["path"] in recall["block"] for recall in recalls) for source in sources)


def test_what_is_kept_can_be_worked_with(kept: tuple[CommandLine, Any]) -> None:
    cli, story = kept
    assert cli.run("search", "quince").out
    with MemoryService.open(cli.home, embedding_model="none") as service:
        sessions = service.sessions("default")
        active = [past for past in sessions.compactions.past(SAMPLE_SESSION_ID) if past.active]
        assert [past.compaction_id for past in active] == [done["id"] for done in reversed(of_line(story, "compacted"))]


def test_the_sample_never_replaces_a_workspace(tmp_path: Path) -> None:
    home = tmp_path / "my notes"
    cli = CommandLine(home=home)
    mine = home / "default" / "MEMORY.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("- My own note.\n", "utf-8")
    cli.run("demo", "--keep", str(home)).failed_with("workspace", str(home))
    assert mine.read_text("utf-8") == "- My own note.\n"
    blocked = tmp_path / "file"
    blocked.write_text("", "utf-8")
    cli.run("demo", "--keep", str(blocked / "below")).failed_with(str(blocked))


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> tuple[CommandLine, str]:
    """A home that the demo in Chinese left, and what it printed."""
    home = tmp_path_factory.mktemp("chinese") / "my notes"
    cli = CommandLine(home=home)
    return cli, cli.ok("demo", "--language", "zh", "--keep", str(home))


def test_how_to_go_on_names_the_home(chinese: tuple[CommandLine, str]) -> None:
    cli, told = chinese
    assert f"serve --home '{cli.home}'" in told and "MemoryClient" in told


def test_the_demo_in_chinese_tells_the_same_steps(chinese: tuple[CommandLine, str]) -> None:
    told = chinese[1]
    titles = [(str(at), title) for at, (title, _) in enumerate(CHINESE_STORY.steps, 1)]
    assert re.findall(r"^(\d)\. (.+)$", told, re.MULTILINE) == titles and len(titles) == len(STEPS)
    assert len(re.findall("记下 [1-9]", told)) >= 3 and len(re.findall(r"压缩：[\d,]+ -> [\d,]+", told)) >= 2
    assert CHINESE_STORY.lines["equal"] in told and CHINESE_STORY.lines["not_equal"] not in told
    assert f"还在：{CHINESE_STORY.pin}" in told and "不在：" not in told
    steps = re.split(r"^\d\. .+$", told, flags=re.MULTILINE)[1:]
    for (question, answer), step in zip(CHINESE_STORY.questions, steps[5:], strict=True):
        assert question in step and CHINESE_STORY.lines["answer_in_block"] in step
        block = step.partition("<relevant_context>")[2].partition("</relevant_context>")[0]
        assert answer in block
    assert all(f"   │ {label}" in steps[4] for label in ("规则  ", "目标  "))


def test_the_demo_in_chinese_prints_no_english_sentence(chinese: tuple[CommandLine, str]) -> None:
    ours = [line for line in chinese[1].splitlines() if "│" not in line and "memory-service" not in line]
    words = re.compile(r"[A-Za-z]+(?: [A-Za-z]+)+")
    assert [line for line in ours if words.search(line) and "session" not in line] == []


def test_nothing_in_the_files_of_a_chinese_talk_is_labelled_in_english(chinese: tuple[CommandLine, str]) -> None:
    cli, _ = chinese
    flushed = [text for text in read_documents(cli.home).values() if "session=caigou" in text]
    entries = [line for text in flushed for line in text.splitlines() if line.startswith("- ")]
    assert len(entries) >= 15 and all(line.startswith(("- 用户", "- 助手", "- `")) for line in entries)
    headings = {line for text in flushed for line in text.splitlines() if line.startswith("#")}
    assert all(re.fullmatch(r"# \d{4}-\d\d-\d\d|## \d\d:\d\d", heading) for heading in headings)
    shown = cli.ok("sessions", "show", SAMPLES["zh"].session_id)
    assert "[检查点：" in shown and "[Checkpoint" not in shown


def test_every_story_fills_in_the_same_places() -> None:
    assert CHINESE_STORY.lines.keys() == ENGLISH_STORY.lines.keys()
    for name, text in CHINESE_STORY.lines.items():
        assert sorted(re.findall(r"\{(\w+)", text)) == sorted(re.findall(r"\{(\w+)", ENGLISH_STORY.lines[name])), name
