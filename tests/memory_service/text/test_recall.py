from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.text.recall import _MAX_QUERY_CHARS, decide_recall
from tests.growth import at_most_readings

LOG = """2026-11-20 14:32:01 INFO starting worker
2026-11-20 14:32:02 ERROR connection refused
Traceback (most recent call last):
  File "/srv/app/worker.py", line 12, in run
ConnectionError: refused"""
CODE = "```python\ndef pay(invoice):\n    return invoice.total\n```"
MAIL = "On Tue, 17 Nov 2026 at 10:12, Ola wrote:\n> The budget is 40,000.\n> Please confirm."

# What is said, and what is looked for.
SEARCHED = {
    "when do we deploy?": "when do we deploy?",
    "What did we decide about Redis?": "What did we decide about Redis?",
    "Hi! Can you please tell me the staging port? Thanks!": "tell me the staging port",
    "ok, now send the invoice to Marta": "now send the invoice to Marta",
    "Hey, who owns the billing service?": "who owns the billing service?",
    "please fix src/auth.py": "fix src/auth.py",
    "look at @README.md": "look at @README.md",
    "open `config/app.yaml`": "open `config/app.yaml`",
    "@deploy-notes what is next?": "@deploy-notes what is next?",
    "the Dockerfile is broken": "the Dockerfile is broken",
    "the invoice": "the invoice",
    "do it like last time": "do it like last time",
    "same as before": "same as before",
    "as usual please": "as usual",
    "you said it was fine": "you said it was fine",
    "remember?": "remember?",
    "no, remember that I told you": "remember that I told you",
    "yesterday": "yesterday",
    "no, Tuesday": "Tuesday",
    "4711": "4711",
    "port 8080": "port 8080",
    "2026-11-20": "2026-11-20",
    "write a poem about the sea": "write a poem about the sea",
    "Yes, use Postgres": "use Postgres",
    "thanks! and the second budget?": "and the second budget?",
    "is Anna coming?": "is Anna coming?",
    "really, the whole cluster?": "really, the whole cluster?",
    "deadline = Friday": "deadline = Friday",
    "let me know when the class starts": "let me know when the class starts",
    "import the contacts": "import the contacts",
    "return the book to Anna": "return the book to Anna",
    "Summary of the previous conversation?": "Summary of the previous conversation?",
    "/etc/hosts is wrong": "/etc/hosts is wrong",
    "/tmp is full": "/tmp is full",
    "/recall the deploy day": "the deploy day",
    "/Recall   the deploy\nday": "the deploy day",
    "/context billing": "billing",
    "/remember Deploys go out on Tuesdays.": "Deploys go out on Tuesdays.",
    "/deploy staging": "/deploy staging",
    f"why does this fail?\n{LOG}": "why does this fail?",
    f"{CODE}\nWhat does pay return for refunds?": "What does pay return for refunds?",
    f"Please answer this mail.\n\n{MAIL}": "answer this mail.",
    MAIL: "The budget is 40,000. Please confirm.",
    "<system-reminder>be brief</system-reminder>who owns billing?": "who owns billing?",
    "上次说的端口是多少": "上次说的端口是多少",
    "你好，请问部署是哪天？": "部署是哪天？",
    "我们之前决定用什么数据库？": "我们之前决定用什么数据库？",
    "我们之前決定用什麼資料庫？": "我们之前決定用什麼資料庫？",
    "还记得吗": "还记得吗",
    "我以前说过的那个": "我以前说过的那个",
    "曾经答应的事": "曾经答应的事",
    "好的，用Redis": "用Redis",
    "帮我写一封邮件给张伟，谢谢": "写一封邮件给张伟",
    "看看会议纪要.md": "看看会议纪要.md",
    "打开src/auth.py看看": "打开src/auth.py看看",
    "明天几点开会？": "明天几点开会？",
    "发票": "发票",
    "不对，是周二": "不对，是周二",
    "端口8080": "端口8080",
    "老样子": "老样子",
    "参考那份文档": "参考那份文档",
    "/回忆 部署日期": "部署日期",
    "/记住 周二部署": "周二部署",
    f"这个报错怎么解决？\n{LOG}": "这个报错怎么解决？",
    f"{CODE}\n退款时返回什么？": "退款时返回什么？",
    "请回复这封邮件。\n发件人：李娜\n预算是四万。": "回复这封邮件。",
}
NOT_SEARCHED = [
    "",
    "  \n",
    "hi",
    "Hello!",
    "hey there",
    "good morning",
    "How are you?",
    "thanks",
    "Thank you so much!",
    "thx",
    "ok",
    "OK.",
    "okay, cool",
    "yes",
    "yes please",
    "Yep!",
    "no",
    "nope",
    "sure, go ahead",
    "go on",
    "continue",
    "sounds good",
    "looks good, thanks",
    "LGTM",
    "perfect!",
    "do it",
    "got it",
    "why?",
    "👍",
    "🎉🎉",
    "...",
    "?",
    "？！",
    "1",
    "b)",
    "option 2",
    "bye",
    "have a nice day",
    "/compact",
    "/clear",
    "/compact keep the invoices",
    "/recall",
    "/remember  ",
    CODE,
    LOG,
    f"{CODE}\n\n{LOG}",
    "def f(x):\n    return x + 1",
    "import os\nx = 1;",
    "gracias",
    "merci!",
    "好",
    "好的",
    "好的，谢谢！",
    "谢谢",
    "謝謝你",
    "继续",
    "请继续",
    "嗯嗯，继续吧",
    "是的",
    "不用了",
    "可以",
    "没问题",
    "收到",
    "明白了",
    "你好",
    "早上好！",
    "哈哈哈",
    "太好了",
    "辛苦了",
    "选2",
    "方案二",
    "为什么？",
    "/回忆",
]


@pytest.mark.parametrize("said", SEARCHED)
def test_what_is_searched_and_for_what(said: str) -> None:
    decision = decide_recall(said)
    assert (decision.search, decision.query) == (True, SEARCHED[said])
    assert decision.reason


@pytest.mark.parametrize("said", NOT_SEARCHED)
def test_what_needs_no_memory(said: str) -> None:
    decision = decide_recall(said)
    assert (decision.search, decision.query) == (False, "")
    assert decision.reason


def test_the_table_is_large_enough() -> None:
    assert len(SEARCHED) + len(NOT_SEARCHED) >= 80


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("fix src/auth.py", "it names the file src/auth.py"),
        ("看看src/auth.py", "it names the file src/auth.py"),
        ("@deploy-notes please", "it names @deploy-notes"),
        ("what we agreed last time", "it asks about something said before: “we agreed”"),
        ("上次的端口", "it asks about something said before: “上次”"),
        ("/recall ports", "the command /recall"),
        ("/compact", "the command /compact needs no memory"),
        ("which port?", "it asks something"),
        ("哪个端口？", "it asks something"),
        ("pay 40 to Marta", "it names a number or a time"),
        ("thanks", "it is small talk, a yes or a go-on"),
        (CODE, "it is only code or output, without a question"),
    ],
)
def test_the_reason_says_why(said: str, reason: str) -> None:
    assert decide_recall(said).reason == reason


@pytest.mark.parametrize(
    "said", ["and/or", "1/2 of it", "version 1.2.3 is out", "see https://example.com/a", "e.g. this"]
)
def test_what_is_no_file(said: str) -> None:
    assert "file" not in decide_recall(said).reason


def test_mail_addresses_are_no_references() -> None:
    assert "names" not in decide_recall("write to bob@example.com").reason


@pytest.mark.parametrize(
    ("filler", "first", "asks", "last"),
    [
        ("The team met and spoke of many things. ", "Here is my report. ", "Which port has staging? ", "That is all."),
        ("团队开了会，聊到很多别的事情。", "这是我的报告。", "预发环境的端口是哪个？", "就这些内容。"),
    ],
)
def test_a_long_message_is_cut_to_what_it_asks_and_its_ends(filler: str, first: str, asks: str, last: str) -> None:
    decision = decide_recall(first + filler * 40 + asks + filler * 40 + last)
    assert decision.query.startswith(first.strip()) and decision.query.endswith(last.strip())
    assert asks.strip() in decision.query
    assert filler.strip() not in decision.query


def test_one_long_sentence_is_cut_at_a_word() -> None:
    query = decide_recall("compare " + "staging " * 400).query
    assert len(query) <= _MAX_QUERY_CHARS
    assert query.endswith("staging")


@settings(max_examples=70, deadline=None)
@given(st.text(max_size=400) | st.lists(st.sampled_from([*SEARCHED, *NOT_SEARCHED]), max_size=4).map("\n".join))
def test_it_never_fails_and_a_query_is_never_too_long(said: str) -> None:
    decision = decide_recall(said)
    assert decision == decide_recall(said)
    assert bool(decision.query.strip()) == decision.search
    assert len(decision.query) <= _MAX_QUERY_CHARS
    assert decision.reason


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "好",
        "/",
        "a.b",
        "a?b ",
        "> a\n",
        "hi, ",
        "<summary>",
        "((((",
        "\n",
        "for (",
        "``` ",
        "@",
        "~/",
        "2026-",
        "a'",
        "请",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = piece * (250_000 // len(piece))
    with at_most_readings(50):
        decide_recall(text)
