from __future__ import annotations

import pytest

from memory_service.messages.shapes import Message
from tests.memory_service.flush.stretches import call, found, result, texts

# What a user or an assistant says on 2026-11-20, and what is kept of it; nothing if that is empty.
SINGLE: dict[str, str] = {
    # Decisions, rules, preferences
    "u We decided to use PostgreSQL instead of MySQL.": "User: We decided to use PostgreSQL instead of MySQL.",
    "u Always run the linter before a commit.": "User: Always run the linter before a commit.",
    "u I prefer short answers without bullet points.": "User: I prefer short answers without bullet points.",
    "u Wow, great! I am allergic to peanuts.": "User: I am allergic to peanuts.",
    "u Please never push to the main branch.": "User: Please never push to the main branch.",
    "u Can you please always answer in metric units?": "User: Can you please always answer in metric units?",
    "u 我们决定把缓存从 Redis 换成 Valkey。": "用户：我们决定把缓存从 Redis 换成 Valkey。",
    "u 以后周报都用中文写，不要超过500字。": "用户：以后周报都用中文写，不要超过500字。",
    "u 好的，谢谢！我对花生过敏，不吃香菜。": "用户：我对花生过敏，不吃香菜。",
    "u 我更愿意上午开会，下午留给写代码。": "用户：我更愿意上午开会，下午留给写代码。",
    "u 太好了！线上环境统一用 UTC 时间，禁止改系统时区。": "用户：线上环境统一用 UTC 时间，禁止改系统时区。",
    # Deadlines, plans, days that must stay true
    "u The audit is due next Friday.": "User (2026-11-20): The audit is due next Friday.",
    "u The migration ran yesterday and took 40 minutes.": (
        "User (2026-11-20): The migration ran yesterday and took 40 minutes."
    ),
    "u The contract ends on 31 March 2027.": "User: The contract ends on 31 March 2027.",
    "u [2026-03-02] I moved to Porto last week.": "User (2026-03-02): I moved to Porto last week.",
    "u [Monday 2 March 2026, 13:56] I moved to Porto last week.": "User (2026-03-02): I moved to Porto last week.",
    "u 报价单下周三之前必须发给客户。": "用户（2026-11-20）：报价单下周三之前必须发给客户。",
    "u 我昨天把服务器迁移到了上海机房。": "用户（2026-11-20）：我昨天把服务器迁移到了上海机房。",
    "u 【2026年3月2日】我上周搬到了杭州。": "用户（2026-03-02）：我上周搬到了杭州。",
    "u 合同在2027年3月31日到期。": "用户：合同在2027年3月31日到期。",
    # Numbers, names, ids
    "u The staging host is `db-stage-2` with 16 GB.": "User: The staging host is `db-stage-2` with 16 GB.",
    "u Ticket OPS-417 is still blocked by the vendor.": "User: Ticket OPS-417 is still blocked by the vendor.",
    "u My sister Ingrid lives in Bergen.": "User: My sister Ingrid lives in Bergen.",
    "u 预算一共32万元，已经花了18万。": "用户：预算一共32万元，已经花了18万。",
    "u 我女儿叫小满，今年六岁。": "用户（2026-11-20）：我女儿叫小满，今年六岁。",
    # What an assistant found, not what it is about to do
    "a The tests failed because the fixture had no time zone.": (
        "Assistant: The tests failed because the fixture had no time zone."
    ),
    "a Let me check the config in `app.toml` first.": "",
    "a I'll now run the 12 tests.": "",
    "a Here is a summary of the 3 options.": "",
    "a 测试失败的原因是夹具没有时区。": "助手：测试失败的原因是夹具没有时区。",
    "a 让我先看一下 `app.toml` 的配置。": "",
    "a 需要我把 3 个方案都列出来吗？": "",
    # Nothing in it
    "u Hi!": "",
    "u Thanks a lot, that was great!": "",
    "u yes, that one": "",
    "u It was great!": "",
    "u What does this function do?": "",
    "u Looks good to me.": "",
    "a You're welcome! Have a great day!": "",
    "a Sure, no problem.": "",
    "u 你好！": "",
    "u 好的，没问题，谢谢！": "",
    "u 对，就是那个。": "",
    "u 太棒了！": "",
    "u 这个函数是做什么的？": "",
    "a 不客气，祝你周末愉快！": "",
    # Not for reading: code, markup
    "u ```\nx = 1  # decided yesterday\n```": "",
    "u - **Decision**: we ship on 3 May": "User: Decision: we ship on 3 May",
    "u | port | 8080 |": "",
    "s We decided to use PostgreSQL.": "",
    "u <relevant_context>\nWe decided to use MySQL 8.\n</relevant_context>": "",
    "u [Checkpoint: earlier messages were compacted.]\n\n<summary>\nWe use MySQL 8.\n</summary>": "",
    "u <relevant_context>旧的：端口是 8080。</relevant_context>新的端口是 9090。": "用户：新的端口是 9090。",
}


@pytest.mark.parametrize("said", SINGLE)
def test_what_is_kept_of_one_message(said: str) -> None:
    assert texts(said) == ([SINGLE[said]] if SINGLE[said] else [])


SECRETS = (
    "u The key for 3 services is sk-proj4abcdEFGHijkl9876.",
    "u Use ghp_abcdefghijklmnop1234567890 for the 2 repositories.",
    "u AWS gave us AKIAIOSFODNN7ABCDEFG yesterday.",
    "u The password is Hunter2-blue, changed yesterday.",
    "u Yesterday we set DB_PASSWORD=correcthorse in the file.",
    "u Passcode: 471199",
    "u Password for the 2 routers: correct-horse",
    "u Send the header Authorization: Bearer abcdef1234567890 to port 8080.",
    "u The database is at postgres://app:geheim77@db.example.com:5432/shop since 3 May.",
    "u The token we decided on is:\nzebra-koala-77",
    "u The session is eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc since yesterday.",
    "u We decided on this one: aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE",
    "u -----BEGIN RSA PRIVATE KEY-----\nMIIEow 2026\nWe decided on 3 May\n-----END RSA PRIVATE KEY-----",
    "u -----BEGIN PRIVATE KEY-----\nWe decided on 3 May",
    "u 数据库密码是 Hunter2xx，昨天改的。",
    "u 密码：红色大象123",
    "u 生产环境的密钥：abcd1234efgh，有效期3年。",
)


@pytest.mark.parametrize("said", SECRETS)
def test_secrets_are_left_out(said: str) -> None:
    assert texts(said) == []


def test_what_stands_beside_a_secret_is_kept() -> None:
    assert texts("u The password is Hunter2-blue. The host is `db-7` in Bergen.") == [
        "User: The host is `db-7` in Bergen."
    ]
    assert texts("u 密码是 Hunter2xx。服务器在 3 号机房。") == ["用户：服务器在 3 号机房。"]


@pytest.mark.parametrize("said", ["u The limit max_tokens: 4096 holds since May 2026.", "u 密码每90天必须换一次。"])
def test_what_only_speaks_of_secrets_is_kept(said: str) -> None:
    assert len(texts(said)) == 1


TALKS: dict[str, tuple[list[str], list[str]]] = {
    "names are kept, and who is spoken to goes": (
        [
            "u [Tuesday 3 March 2026] Ingrid: Hey Tomas! I adopted a grey cat called Mulle yesterday.",
            "a Tomas: Wow, Ingrid! That's so cool!",
            "u Ingrid: Thanks, Tomas! She sleeps on my laptop.",
            "a Tomas: I started a carpentry course in Bergen last week, Ingrid.",
        ],
        [
            "Ingrid (2026-03-03): I adopted a grey cat called Mulle yesterday.",
            "Tomas (2026-03-03): I started a carpentry course in Bergen last week.",
        ],
    ),
    "an answer that cannot stand alone has its question": (
        ["u Ingrid: Where did you learn to sail?", "a Tomas: In Bergen.", "u Ingrid: Nice!"],
        ['Tomas, asked "Where did you learn to sail?": In Bergen.'],
    ),
    "an answer that stands alone has none": (
        ["u Which port does the API listen on?", "a The API listens on port 8765 by default."],
        ["Assistant: The API listens on port 8765 by default."],
    ),
    "a picture is kept in short form": (
        [
            "u Ingrid: We built a shed by the lake. [shares an image: a photo of a red shed under snow]",
            "a Tomas: Wow!",
        ],
        ["Ingrid: We built a shed by the lake. [image: a red shed under snow]"],
    ),
    "that there is nothing is no fact": (
        ["u Any blockers?", "a No, none so far.", "u What is left?", "a Nothing yet.", "u 进展怎么样？", "a 还没有。"],
        [],
    ),
    "a second sentence in another language is kept": (
        ["u Backups run every night at 2. 备份由林负责。", "a OK, noted."],
        ["用户：Backups run every night at 2. 备份由林负责。"],
    ),
    "中文对话：姓名、回答、相对时间": (
        [
            "u [2026-03-03] 李雷：周末去哪儿玩了？",
            "a 韩梅：去爬山了。",
            "u 李雷：哇，太棒了！我上周刚买了新相机，花了八千块。",
            "a 韩梅：好羡慕！",
        ],
        [
            "韩梅（2026-03-03）（问：周末去哪儿玩了？）：去爬山了。",
            "李雷（2026-03-03）：我上周刚买了新相机，花了八千块。",
        ],
    ),
    "中文工作：决定、偏好、预算": (
        [
            "u 你好",
            "a 你好！有什么可以帮你的？",
            "u 我们昨天开会决定把上线时间改到12月3日，原因是支付接口还没通过验收。",
            "a 好的，已记录。",
            "u 王经理喜欢用表格，不喜欢长段落。",
            "a 明白了，我会注意。",
            "u 预算是多少来着？",
            "a 第四季度的预算是32万元。",
            "u 太好了，谢谢！",
        ],
        [
            "用户（2026-11-20）：我们昨天开会决定把上线时间改到12月3日，原因是支付接口还没通过验收。",
            "用户：王经理喜欢用表格，不喜欢长段落。",
            "助手：第四季度的预算是32万元。",
        ],
    ),
}


@pytest.mark.parametrize("talk", TALKS)
def test_talks(talk: str) -> None:
    lines, expected = TALKS[talk]
    assert texts(*lines) == expected


def test_an_answer_names_both_messages() -> None:
    (candidate,) = found("u Ingrid: Where did you learn to sail?", "a Tomas: In Bergen.", "u Ingrid: Nice!")
    assert candidate.seqs == (1, 2)


def test_the_day_of_a_talk_holds_until_the_next() -> None:
    days = [
        str(candidate.date)
        for candidate in found(
            "u [2026-03-02] Ingrid: I bought two kayaks.",
            "a Tomas: I sold three bicycles.",
            "u [5 March 2026] Ingrid: I lost one paddle in Bergen.",
        )
    ]
    assert days == ["2026-03-02", "2026-03-02", "2026-03-05"]


def test_a_label_is_no_speaker() -> None:
    assert texts("u Note: the port is 8080.", "a Noted.", "u Note: the host is `db-7`.") == [
        "User: Note: the port is 8080.",
        "User: Note: the host is `db-7`.",
    ]


OUTCOMES: dict[str, tuple[list[Message], list[str]]] = {
    "an error without its remedy leaves nothing": (
        [call("parse"), result("Traceback\n  File 'x.py', line 3\nValueError: bad date 2026-13-01", failed=True)],
        [],
    ),
    "what was made keeps its id and address": (
        [call("create_issue"), result('{"id": 4711, "url": "https://example.com/i/4711", "body": "long"}')],
        ["`create_issue` made id 4711, url https://example.com/i/4711"],
    ),
    "what was read leaves nothing": ([call("read_file"), result("We decided on 3 May.\n" * 100)], []),
    "a secret in a result": ([call("create_key"), result('{"id": "sk-abcdefghijklmnop1234"}')], []),
    "中文报错": ([call("部署"), result("开始\n部署失败：磁盘已满", failed=True)], []),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_outcomes_of_tools(case: str) -> None:
    messages, expected = OUTCOMES[case]
    assert texts(*messages) == expected
