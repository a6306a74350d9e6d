"""Compactions of talks in Chinese, in two languages, and of a talk that changes its language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from memory_service.compaction import compact
from memory_service.compaction.audit import Audit, audit_summary, drop_ungrounded
from memory_service.compaction.checkpoint import is_checkpoint, shorten_text
from memory_service.compaction.coverage import Coverage, read_coverage
from memory_service.compaction.ledger_text import fit_ledger, render_ledger
from memory_service.compaction.model_summary import SummaryRules, summarize
from memory_service.compaction.note import with_note
from memory_service.compaction.prompts import ANCHORED_HEADINGS
from memory_service.compaction.record import Head
from memory_service.compaction.summary import Summary, SummaryRequest
from memory_service.compaction.summary_format import Section, SummaryLine, parse_summary, render_summary
from memory_service.compaction.view import Conversation, ViewShape, project
from memory_service.llm.base import ChatModel
from memory_service.llm.litellm import LiteLLMModel
from memory_service.messages.reading import read_messages
from memory_service.messages.shapes import text_of
from memory_service.messages.sizes import count_tokens, number_message
from memory_service.schemas.compaction import LedgerEntry
from memory_service.testing import ScriptedModel, ScriptedServer
from memory_service.text.texts import CHINESE, ENGLISH, TEXTS, Texts, heading_in, names_in_every_language
from tests.memory_service.compaction.talk import asked, chat, log
from tests.memory_service.rooms import calls, result, says, user

EACH = pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
ASKED = ("周五绝不部署，请记住。", "订单 ORD-4711 到了吗？", "我们决定用景德镇的陶盆。", "明天上午十点前把库存表给我。")
ENGLISH_ASKED = ("Never deploy on Fridays.", "Has order ORD-4711 arrived?", "We decided on the pots of Jingdezhen.")
LINES = [
    SummaryLine(section=Section.GOAL, text="部署到生产环境", label="User", seq=1),
    SummaryLine(section=Section.GOAL, text="先备份。", label="User, latest", media="[image]", seq=9),
    SummaryLine(section=Section.RULES, text="周五绝不部署。", label="User", seq=2, day="2026-11-20"),
    SummaryLine(section=Section.FAILED, text="exit code: 2", label="Tool", seq=4),
    SummaryLine(section=Section.OPEN, text="什么时候？", label="Assistant"),
    SummaryLine(section=Section.FACTS, text="仓库白天 18 度。", label="Quoted", seq=5),
    SummaryLine(section=Section.TURN, text="林娜在看报价单。"),
]


def talk(asked: Sequence[str], answer: str, turns: int = 40) -> list[dict[str, Any]]:
    said = list[dict[str, Any]]()
    for at in range(turns):
        said.append(user(f"{asked[at % len(asked)]} {at}"))
        if at % 8 == 0:
            said += [calls(f"c{at}", name="bash", arguments={"command": f"ls /srv/{at}"})]
            said += [result(f"c{at}", f"error: no such file /srv/{at}\nexit code: 2")]
        said.append(says(f"{answer} {at}"))
    return said


def checkpoint(messages: Sequence[dict[str, Any]]) -> str:
    made = compact(messages, context_window=3_000, force=True)
    return next(text for each in made.messages if is_checkpoint(text := str(each.get("content"))))


def labels(text: str) -> list[str]:
    """Headings, speakers and lines in brackets: what nobody of the talk said."""
    speakers = "|".join(map(re.escape, names_in_every_language("speakers")))
    return re.findall(rf"^(?:## .+|\[.+|- (?:{speakers}|user|assistant)[:：])", text, re.MULTILINE)


def test_a_chinese_talk_has_no_english_label_in_its_checkpoint() -> None:
    text = checkpoint(talk(ASKED, "好的，仓库现在是 18 度，我会在明天上午把库存表发给你。"))
    assert {"## 目标", "## 用户的要求", "## 决定", "## 背景", "## 规则", "## 承诺和期限"} <= set(text.splitlines())
    assert text.startswith("[检查点：") and text.endswith("[检查点完]")
    assert [label for label in labels(text) if re.search("[A-Za-z]{2,}", label.replace("log:", ""))] == []
    assert re.search(r"^- 原文在 log:1-\d+：用户消息 \d+，助手消息 \d+，工具消息 \d+", text, re.MULTILINE)
    assert "- 用户：我们决定用景德镇的陶盆。" in text.partition("<ledger>")[2]


def test_an_english_talk_with_some_chinese_has_none_in_its_labels() -> None:
    text = checkpoint(talk((*ENGLISH_ASKED, "岳母生日的卡片上写什么？"), "Fine, I will send the list by Tuesday."))
    assert text.startswith("[Checkpoint:") and text.endswith("[End of checkpoint]")
    assert len(labels(text)) > 10 and [label for label in labels(text) if re.search("[\u4e00-\u9fff]", label)] == []


def test_a_talk_that_changes_its_language_changes_its_labels_and_loses_nothing() -> None:
    rule = "周五绝不部署，请记住。"
    first = checkpoint([*talk(ASKED, "好的。"), user(rule)])
    summary = first.partition("<summary>\n")[2].partition("\n</summary>")[0]
    english = SummaryRequest(messages=chat(4), previous=summary, language="en", target_tokens=2_000)
    from memory_service.compaction.extractive import extract

    again = extract(english).text
    assert not [line for line in again.splitlines() if line.startswith("## ") and not line.isascii()]
    assert f"- User: {rule}" in again and "用户：" not in again
    back = extract(SummaryRequest(messages=chat(4), previous=again, language="zh", target_tokens=2_000)).text
    assert f"- 用户：{rule}" in back and not re.search(r"^## [A-Z]|^- User", back, re.MULTILINE)


@EACH
def test_a_summary_reads_back_the_same(texts: Texts) -> None:
    text = render_summary(LINES, texts)
    read = parse_summary(text)
    assert [(line.section, line.label, line.media, line.text, line.seq, line.day) for line in read] == [
        (line.section, line.label, line.media, line.text, line.seq, line.day) for line in LINES
    ]
    assert render_summary(read, texts) == text
    for line in LINES:
        assert line.size(texts) == count_quarters(line.render(texts)) + 1


def count_quarters(text: str) -> int:
    from memory_service.messages.sizes import quarters

    return quarters(text)


@EACH
def test_coverage_reads_back(texts: Texts) -> None:
    plain = Coverage(first=1, last=88, user=30, assistant=40, tool=18)
    full = Coverage(first=1, last=8, user=3, assistant=4, tool=1, media=2, since="2026-11-20 09:00", until="2026-11-21")
    for coverage in (plain, full):
        assert read_coverage(coverage.render(texts)) == coverage
        assert read_coverage(f"{coverage.render(texts)}.") is None and read_coverage("log:1-2") is None


@pytest.mark.parametrize("first", TEXTS)
@pytest.mark.parametrize("then", TEXTS)
def test_notes_of_both_languages_become_one(first: str, then: str) -> None:
    one = with_note(SummaryRequest(messages=chat(20), language=first), "timeout", window_tokens=10).text
    two = with_note(
        SummaryRequest(messages=chat(20), previous=f"- 旧\n\n{one}", language=then), "timeout", window_tokens=10
    ).text
    assert two.startswith("- 旧\n\n[") and two.count("log:1-") == 1
    assert [int(number) for number in re.findall(r"(?<![:\d-])\d+", two)] == [160, 160]


def test_what_is_left_out_says_so_in_the_language_of_the_talk() -> None:
    text, audit = "## 决定\n- 端口是 6380\n## 背景\n- x", Audit(ungrounded_texts=("6380",))
    assert drop_ungrounded(text, audit, CHINESE.nothing) == "## 决定\n（无）\n## 背景\n- x"
    assert parse_summary("## 决定\n（无）\n## 背景\n- 甲")[0].text == "甲"
    short = shorten_text("备" * 500, 200, "log:7", CHINESE)
    assert "原文见 log:7" in short and not re.search("[a-z]{2,}", short.replace("log", ""))


def test_a_ledger_fits_in_the_language_that_it_is_written_in() -> None:
    entries = [
        LedgerEntry(kind="rule", text="周五绝不部署", seqs=[1]),
        LedgerEntry(kind="decision", text="user: 用景德镇的陶盆", seqs=[2]),
        LedgerEntry(kind="promise", text="assistant: 明天上午发", seqs=[3]),
        LedgerEntry(kind="command", text="make deploy (failed)", seqs=[4]),
        LedgerEntry(kind="command", text="make test (exit 2)", seqs=[5]),
        LedgerEntry(kind="command", text="say (failed) (exit 0) then", seqs=[5]),
        LedgerEntry(kind="file_modified", text="app.py", seqs=[5]),
    ]
    written = render_ledger(entries, CHINESE)
    assert written.splitlines()[:4] == [
        "## 规则",
        "- 周五绝不部署 (log:1)",
        "## 决定",
        "- 用户：用景德镇的陶盆 (log:2)",
    ]
    assert "- 助手：明天上午发 (log:3)" in written and "- make deploy（失败） (log:4)" in written
    assert "- make test（退出码 2） (log:5)" in written and "- say (failed) (exit 0) then (log:5)" in written
    assert "<modified-files>\n- app.py\n</modified-files>" in written
    assert render_ledger(entries, ENGLISH) == render_ledger(entries)
    for limit in range(0, 80):
        assert count_tokens(render_ledger(fit_ledger(entries, limit, CHINESE), CHINESE)) <= limit


# --- summaries that a model writes ---

RECORD = "\n".join(
    [f"## {heading}\n- 部署在周二进行。" for heading in ANCHORED_HEADINGS[:-1]] + ["## Context\n- 仓库现在是 18 度。"]
)


def latin(text: str) -> set[str]:
    """Latin words of a text, without tags, handles and what stands in backticks."""
    return set(re.findall("[A-Za-z]{2,}", re.sub(r"<[^<>]*>|`[^`]*`|log:[\d-]+(?:#\d+)?", "", text)))


def by_model(model: ChatModel, said: Sequence[dict[str, Any]]) -> tuple[str, Any]:
    """Checkpoint of a talk whose summary a model writes, and the receipt."""
    made = compact(said, context_window=3_000, force=True, model=model)
    return next(text for each in made.messages if is_checkpoint(text := str(each.get("content")))), made.receipt


@pytest.mark.parametrize("written", [RECORD, RECORD.replace("## Goal", "## 目标").replace("## Done", "## 已完成")])
def test_a_model_is_asked_in_the_language_of_the_talk_and_its_headings_are_in_it(written: str) -> None:
    model = ScriptedModel("## 目标\n- 部署", *[written] * 9)
    text, receipt = by_model(model, talk(ASKED, "好的，仓库现在是 18 度。"))
    assert receipt.method == "model" and receipt.calls == len(model.requests) >= 2
    headings = [heading_in(heading, CHINESE) for heading in ANCHORED_HEADINGS]
    summary = text.partition("<summary>\n")[2].partition("\n</summary>")[0]
    assert re.findall("^## (.+)", summary, re.MULTILINE) == headings
    assert latin(summary) == set()
    first, again = (asked(request) for request in model.requests[:2])
    assert all(f"\n## {heading}\n" in first for heading in headings) and CHINESE.record in first
    assert "These headings are missing: 用户的要求, " in again and "(none)" not in again


def test_a_record_in_english_is_carried_over_when_the_talk_has_become_chinese() -> None:
    def of(model: ChatModel, **given: Any) -> Summary:
        request = SummaryRequest(messages=chat(3, chinese=True), language="zh", **given)
        return summarize(request, SummaryRules(), model, window_tokens=32_000)

    model = ScriptedModel(*[RECORD] * 9)
    made = of(model, previous=RECORD)
    assert made.text == "\n".join(heading_in(line, CHINESE) for line in RECORD.splitlines())
    assert f"<previous-summary>\n{RECORD}" in asked(model.requests[0])
    audit = audit_summary(RECORD, request=SummaryRequest(messages=()), headings=ANCHORED_HEADINGS)
    assert audit.missing_headings == ()


def test_what_a_summary_leaves_out_is_named_in_chinese() -> None:
    told = [user("这是整本手册，请你读一读。" * 1_000), says("好的，读完了。"), *[user("周二部署。")] * 12]
    said = log(*read_messages(told))
    rules = SummaryRules(style="plain", headings=(), without_oversized=True)
    request = SummaryRequest(messages=said, language="zh")
    made = summarize(request, rules, ScriptedModel(*["部署在周二。"] * 9), window_tokens=8_000)
    assert re.search(r"^\[略去：过大的用户消息，约 \d+K 词元；log:1\]$", made.text, re.MULTILINE)
    assert latin(made.text) == set()
    short = summarize(request, rules, ScriptedModel(*["- 周二部署。\n" * 900] * 9), window_tokens=8_000)
    assert latin(short.text) == set() and count_tokens(short.text) <= request.target_tokens


@pytest.mark.litellm
@pytest.mark.filterwarnings("ignore::DeprecationWarning:(litellm|pydantic|aiohttp|httpx)")
def test_a_server_that_answers_with_english_headings_makes_a_chinese_record() -> None:
    with ScriptedServer(*[RECORD] * 9) as server:
        model = LiteLLMModel("openai/any", api_base=server.url, api_key="any")
        text, receipt = by_model(model, talk(ASKED, "好的，仓库现在是 18 度。"))
        sent = str(server.requests[0].body)
    assert receipt.method == "model" and "## 用户的要求" in sent and "整份记录用中文写" in sent
    assert "## 目标" in text and "## Goal" not in text


# --- what is pruned, cut and taken out ---


def worked(turns: int, lines: int, last: str = "现在怎么样了？") -> list[dict[str, Any]]:
    """A talk with large results of tools, some of them the same."""
    said = [user("帮我看看仓库的部署脚本，找出为什么周五失败。")]
    for at in range(turns):
        arguments = {"command": f"make {at}"} if at % 2 else {"path": "deploy.sh"}
        said.append(calls(f"c{at}", name="bash" if at % 2 else "read", arguments=arguments))
        text = "".join(f"第 {line} 行：部署脚本的输出\n" for line in range(lines))
        said.append(result(f"c{at}", text if at % 2 == 0 else f"{text}{at}\n退出码:{at}"))
    return [*said, says("看完了，脚本没有问题。"), user(last)]


def test_results_that_are_pruned_leave_chinese_stubs() -> None:
    made = compact(worked(40, 40), context_window=20_000)
    assert made.receipt.stage == "prune", made.receipt.reason
    shown = [str(each["content"]) for each in made.messages if each["role"] == "tool"]
    cleared = [text for text in shown if len(text) < 200]
    assert any(re.fullmatch(r"\[bash: `make \d+` -> 退出码 \d+，\d+ 行，已清除；log:\d+\]", text) for text in cleared)
    assert any(re.fullmatch(r"\[read: `deploy.sh`；同 log:\d+；log:\d+\]", text) for text in cleared)
    assert set().union(*map(latin, cleared)) <= {"bash", "read"}


@pytest.mark.parametrize("preset", ["opencode", "openclaw"])
def test_placeholders_of_other_systems_are_chinese_in_a_chinese_talk(preset: str) -> None:
    made = compact(worked(24, 400), context_window=60_000, preset=preset, trigger="overflow")
    shown = [str(each["content"]) for each in made.messages if each["role"] == "tool"]
    assert shown and not any(re.search(r"cleared|left out|truncated|removed", text) for text in shown)


def seen(said: Sequence[dict[str, Any]], window: int = 4_000, **head: Any) -> list[str]:
    """Texts of the view of a conversation."""
    read = read_messages(said)
    state = Conversation(
        messages=tuple(number_message(each, seq) for seq, each in enumerate(read, 1)),
        last_seq=len(read),
        head=Head(**head),
    )
    return [text_of(each) for each in project(state, ViewShape(window_tokens=window)).messages]


def test_a_result_that_is_too_large_for_the_window_is_cut_in_the_language_that_the_talk_began_in() -> None:
    said = worked(1, 400)
    cut = next(text for text in seen(said) if "部署脚本的输出" in text)
    assert re.search(r"\[\.\.\. 略去 [\d,]+ 个字符；log:3\]$", cut)
    # What was sent once stays as it was, whatever is said later; a compaction changes it over.
    later = [*said, *[user("Please tell me in English from now on, what went wrong?"), says("Nothing did.")] * 40]
    assert cut in seen(later)
    english = seen(later, seq=99, rounds=1, language="")
    assert any("characters left out; log:3]" in text for text in english)
    assert not any("略去" in text for text in english)


def test_media_that_were_stripped_have_chinese_labels() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    said = [user("这是仓库的平面图，看一下。"), says("好的。")]
    said[0]["content"] = [{"type": "text", "text": said[0]["content"]}, picture]
    assert "[附件 image/png：文件；log:1#1]" in seen(said, stripped=frozenset({1}))[0]


def test_a_talk_in_traditional_characters_has_chinese_labels() -> None:
    text = checkpoint(talk(("週五絕不部署，請記住。", "訂單什麼時候到？"), "好的，倉庫現在是 18 度，明天上午寄出。"))
    assert text.startswith(CHINESE.checkpoint_begin)
    assert latin(text) <= {"bash", "ls", "srv", "error", "no", "such", "file", "exit", "code"}
