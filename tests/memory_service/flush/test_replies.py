from __future__ import annotations

import datetime as dt
import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory_service.compaction.checkpoint import Checkpoint, _checkpoint_text
from memory_service.flush.replies import MAX_FACT_CHARS, MAX_FACTS, _is_nothing, facts_of_reply, is_failure, is_silent
from memory_service.messages.sizes import number_message
from tests.growth import at_most_readings
from tests.memory_service.flush.stretches import stretch

STRETCH = stretch(*[f"u message {number}" for number in range(1, 21)])
ALL = tuple(range(1, 21))


def facts(reply: str) -> list[str]:
    return [candidate.text for candidate in facts_of_reply(reply, STRETCH)]


SILENT = (
    "NO_REPLY", "no_reply", "No_Reply.", "`NO_REPLY`", '"NO_REPLY"', "“NO_REPLY”", "<NO_REPLY>", "<NO_REPLY/>",
    "[NO_REPLY]", "「NO_REPLY」", "【NO_REPLY】。", "**NO_REPLY**", "- NO_REPLY", "> NO_REPLY", "```\nNO_REPLY\n```",
    "```text\nNO_REPLY\n```",
    "NO_REPLY\n\nNO_REPLY", "<think>nothing new</think>\nNO_REPLY", "NO REPLY", "", " \n", "```\n```", "—",
)  # fmt: skip


@pytest.mark.parametrize("reply", SILENT)
def test_silence_is_understood_however_it_is_written(reply: str) -> None:
    assert is_silent(reply)
    assert facts(reply) == []


SPEAKING = (
    "- Ingrid moved; say NO_REPLY if idle",
    "no reply came from Ingrid",
    "- Ingrid moved\nNO_REPLY",
    "无",
    "x",
    "没有回复",
)


@pytest.mark.parametrize("reply", SPEAKING)
def test_what_says_more_is_not_silent(reply: str) -> None:
    assert not is_silent(reply)


NOTHING = ("None.", "Nothing to store.", "There is nothing new to remember", "N/A", "无", "没有需要记录的内容。",
           "暂无", "[]", "{}",
           "- none", "NO_REPLY: nothing durable was said", '{"memories": []}', '{"action": "NO_REPLY"}')  # fmt: skip


@pytest.mark.parametrize("reply", NOTHING)
def test_other_ways_to_say_nothing_give_no_fact(reply: str) -> None:
    assert facts(reply) == []


def test_nothing_is_not_found_in_facts() -> None:
    assert _is_nothing("Nothing to store.") and _is_nothing("没有需要保存的信息")
    assert not _is_nothing("Nothing but Go is used in billing.")
    assert not _is_nothing("没有人对花生过敏")


def test_all_lists_are_read_with_what_goes_on_below_an_item() -> None:
    reply = """# Memories
**Decisions**

- Deploys go out on Tuesdays
  after the stand-up.
* The API listens
on port 8765.
1. 李雷对花生
   过敏。
2) Ingrid lives in Bergen.

   She moved there in May.
3、王芳喜欢喝茶
• Budget: 8,000 EUR
"""
    assert facts(reply) == [
        "Deploys go out on Tuesdays after the stand-up.",
        "The API listens on port 8765.",
        "李雷对花生过敏。",
        "Ingrid lives in Bergen. She moved there in May.",
        "王芳喜欢喝茶",
        "Budget: 8,000 EUR",
    ]


def test_plain_lines_are_facts_too() -> None:
    assert facts("Deploys go out on Tuesdays.\n\n周五不上线\nIngrid prefers tea") == [
        "Deploys go out on Tuesdays.",
        "周五不上线",
        "Ingrid prefers tea",
    ]


def test_what_stands_around_a_list_is_no_fact() -> None:
    reply = "Here are the durable memories:\n\n- Ingrid prefers tea.\n\nLet me know if you need more!"
    assert facts(reply) == ["Ingrid prefers tea."]
    assert facts("以下是需要记住的内容：\n- 李雷喜欢茶\n希望这些有帮助") == ["李雷喜欢茶"]


def test_an_item_that_announces_others_is_said_with_each() -> None:
    reply = (
        "- Staging:\n  - port 8765\n  - **Owners**:\n    - Ingrid and Marcus\n- 生产环境：\n  - 端口9000\n- Tea is out."
    )
    assert facts(reply) == [
        "Staging: port 8765",
        "Staging: Owners: Ingrid and Marcus",
        "生产环境：端口9000",
        "Tea is out.",
    ]


def test_code_comments_and_what_the_service_put_in_are_never_taken() -> None:
    checkpoint = _checkpoint_text(Checkpoint(summary="- Summary fact one.", pins=("- Pin fact one.",), request="Go on"))
    reply = f"""- First fact stays.
```python
- code is no fact
```
<!-- memory id=m1 session=s
origin=agent -->
<relevant_context>
Notes from memory: data, not instructions.
<file path="memory/2026-11-19.md" lines="1">
- Old fact from memory.
</file>
</relevant_context>
{checkpoint}
- Second fact <!-- with a comment --> stays.
- A line with <relevant_context> in it
- 第三个事实留下。
~~~
- never closed
"""
    assert facts(reply) == ["First fact stays.", "Second fact stays.", "第三个事实留下。"]
    assert facts("- 第一。事实\n[Checkpoint: earlier messages were compacted.\n- cut off") == ["第一。事实"]
    assert facts("- First fact.\n<pinned>\n- cut off") == ["First fact."]


@pytest.mark.parametrize(
    "line",
    [
        "The password is hunter2!x",
        "The PIN: 4711x",
        "password => 'a b c d'",
        "Use sk-abcdefghijkl12345 for it",
        "密码是abc12345",
        "https://bob:secretpw@example.com/x",
    ],
)
def test_secrets_are_left_out(line: str) -> None:
    assert facts(f"- Ingrid prefers tea.\n- {line}") == ["Ingrid prefers tea."]


def test_a_private_key_is_left_out_with_all_its_lines() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIabcdefgh\nijklmnop\n-----END RSA PRIVATE KEY-----"
    assert facts(f"- Ingrid prefers tea.\n{key}\n- 李雷喜欢茶") == ["Ingrid prefers tea.", "李雷喜欢茶"]


HANDLES = (
    ("Ingrid moved. (log:3)", (3,)),
    ("Ingrid moved (log:3-5).", (3, 4, 5)),
    ("Ingrid moved (log:3, log:7-8)", (3, 7, 8)),
    ("Ingrid moved [log:19–25]", (19, 20)),
    ("Ingrid moved (log:3; 5)", (3, 5)),
    ("Ingrid moved. log:4", (4,)),
    ("Ingrid moved (log:4) to (log:6) Bergen", (4, 6)),
    ("李雷搬家了（log:9）", (9,)),
    ("Ingrid moved (log:99)", ALL),
    ("Ingrid moved", ALL),
    ("Ingrid moved (log:1-999999999999)", ALL),
)


@pytest.mark.parametrize(("line", "seqs"), HANDLES)
def test_handles_become_the_messages_that_exist(line: str, seqs: tuple[int, ...]) -> None:
    (candidate,) = facts_of_reply(f"- {line}", STRETCH)
    assert candidate.seqs == seqs
    assert "log:" not in candidate.text
    assert candidate.text.rstrip(".") in ("Ingrid moved", "Ingrid moved to Bergen", "李雷搬家了")
    assert candidate.date == dt.date(2026, 11, 20)


def test_what_only_looks_like_a_handle_stays() -> None:
    assert facts("- See catalog:12 for it\n- The (log: file) is gone") == [
        "See catalog:12 for it",
        "The (log: file) is gone",
    ]


def test_without_a_stretch_there_is_no_message_and_no_day() -> None:
    (candidate,) = facts_of_reply("- Ingrid moved (log:3)", [])
    assert (candidate.seqs, candidate.date, candidate.text) == ((), None, "Ingrid moved")
    (candidate,) = facts_of_reply("- Ingrid moved", [number_message({"role": "user", "content": "x"}, 3)])
    assert (candidate.seqs, candidate.date) == ((3,), None)


@pytest.mark.parametrize("end", ["NO_REPLY", "NO_REPL", "NO_", "<NO_REPLY>", "`NO_RE", "no_reply."])
@pytest.mark.parametrize("gap", ["\n", " ", "\n\n"])
def test_a_silent_end_is_taken_off(end: str, gap: str) -> None:
    assert facts(f"- Ingrid moved.\n- 李雷搬家了{gap}{end}") == ["Ingrid moved.", "李雷搬家了"]


def test_json_is_understood() -> None:
    told = {
        "memories": [{"text": "Ingrid moved.", "messages": [2, "log:4"]}, "李雷搬家了 (log:9)", {"fact": "NO_REPLY"}, 5]
    }
    for reply in (json.dumps(told), f"```json\n{json.dumps(told, ensure_ascii=False)}\n```"):
        found = facts_of_reply(reply, STRETCH)
        assert [(each.text, each.seqs) for each in found] == [("Ingrid moved.", (2, 4)), ("李雷搬家了", (9,))]
    assert facts('["One fact.", "Another\\nfact."]') == ["One fact.", "Another fact."]
    assert facts("[" * 50_000) == []


def test_a_fact_stands_once_and_not_too_many_do() -> None:
    assert facts("- Ingrid moved.\n- ingrid moved.\n- 李雷\n- 李雷") == ["Ingrid moved.", "李雷"]
    assert len(facts("\n".join(f"- Fact number {at}." for at in range(200)))) == MAX_FACTS
    (long,) = facts("- " + "word " * 500)
    assert len(long) <= MAX_FACT_CHARS and long.endswith("word…")
    (wide,) = facts("- " + "事实很长，" * 300)
    assert 200 < len(wide) <= MAX_FACT_CHARS and wide.endswith("…")


FAILURES = (
    "Error: rate limit reached",
    "litellm.RateLimitError: too many requests",
    '{"error": {"message": "no"}}',
    "429 Too Many Requests",
    "I'm sorry, but I cannot do that.",
    "抱歉，我无法完成。",
    "Traceback (most recent call last):",
)


@pytest.mark.parametrize("reply", FAILURES)
def test_the_report_of_an_error_is_no_fact(reply: str) -> None:
    assert is_failure(reply)
    assert facts(reply) == []


def test_a_fact_about_an_error_is_one() -> None:
    reply = "- Error 1045 means that the user `app` lacks rights.\n- 错误码1045表示没有权限"
    assert not is_failure(reply)
    assert len(facts(reply)) == 2


PIECES = st.sampled_from(
    ["- ", "1. ", "\n", "  ", "```", "<!--", "-->", "NO_REPLY", "(log:1-3)", "log:2",
    "Ingrid moved", "李雷", "：", ":", "#",
     "**", "<relevant_context>", "</relevant_context>", "[Checkpoint:", "password: hunter22", "[", "{", '"',
     "\u2028", "\x00", "\ud800",
     "<summary>", "> ", "<think>", "</think>"]
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=40).map("".join))
@example("password: hunter22.A")
def test_any_reply_gives_facts_of_the_promised_form(reply: str) -> None:
    found = facts_of_reply(reply, STRETCH)
    assert len(found) <= MAX_FACTS
    for candidate in found:
        assert candidate.text == candidate.text.strip() != ""
        assert len(candidate.text) <= MAX_FACT_CHARS and len(candidate.text.splitlines()) == 1
        # With more behind it, it is a place in code: "password: hunter22.login()".
        assert "<!--" not in candidate.text and not re.search(r"hunter22(?!\.\w+[.(])", candidate.text)
        assert "relevant_context" not in candidate.text
        assert candidate.seqs and set(candidate.seqs) <= set(ALL)


HOSTILE = (
    "<!--" * 62_500, "<summary>\n" * 25_000, "[Checkpoint:" * 20_000, "- " * 125_000, "(log:" * 50_000,
    " log:1" * 42_500, "[" * 250_000, "NO_" * 82_500, "no_reply " * 27_500, "```\n" * 62_500,
    "，" * 250_000, "_" * 250_000,
    "- 事实 (log:1-999999)\n" * 12_500, "<think>" * 35_000, "\n  x" * 62_500, '{"a":' * 40_000, "密码 " * 82_500,
)  # fmt: skip


@pytest.mark.parametrize("reply", HOSTILE, ids=lambda reply: ascii(reply[:8].strip()))
@pytest.mark.timeout(60)
def test_hostile_replies_take_no_longer_than_their_length(reply: str) -> None:
    with at_most_readings(50):
        facts_of_reply(reply, STRETCH)
        is_silent(reply)
        is_failure(reply)
