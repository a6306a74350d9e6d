"""What counts as an identifier, and whether one stands in a text; English and Chinese, and hostile input."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_service.text.grounding import SourceText, occurs
from memory_service.text.identifiers import find_identifiers
from tests.growth import assert_grows_at_most

TABLE = [
    ("see src/a.py:12 and ./b/c or ~/d.txt", ["path src/a.py", "path ./b/c", "path ~/d.txt"]),
    (r"open C:\Users\x\b.txt now", [r"path C:\Users\x\b.txt"]),
    ("订单号ORD-4711在/tmp/a.txt里", ["id ORD-4711", "path /tmp/a.txt"]),
    ("放在/tmp/报告.txt里", ["path /tmp/报告.txt"]),
    ("README.md, not Node.js, and/or 24/7, TCP/IP", ["path README.md"]),
    ("https://Ex.com/a?b=c. 见https://ex.cn/路径。", ["url https://Ex.com/a?b=c", "url https://ex.cn/"]),
    ("mail bob@ex.org; 邮箱li@ex.cn。", ["email bob@ex.org", "email li@ex.cn"]),
    ("id 0b9c6a1e-7f3d-4a52-9c1e-2f6f0d6c9a11.", ["uuid 0b9c6a1e-7f3d-4a52-9c1e-2f6f0d6c9a11"]),
    ("commit 3f2a9bc, decade, 提交deadbeef1", ["hash 3f2a9bc", "hash deadbeef1"]),
    ("T-318/T-319 #1234 user_42 sess_9fab UTF-8 SHA-256",
        ["id T-318", "id T-319", "id #1234", "id user_42", "id sess_9fab"]),
    ("v1.2.3 and 3.11.4, 版本v2.0", ["version v1.2.3", "version 3.11.4", "version v2.0"]),
    ("on 2026-11-20 at 10:30, Nov 20, 2026", ["date 2026-11-20", "time 10:30", "date Nov 20, 2026"]),
    ("2026-11-20T10:00:00Z，2026年11月20日下午3点半",
        ["date 2026-11-20T10:00:00Z", "date 2026年11月20日", "time 3点半"]),
    ("127.0.0.1:8080 localhost:99", ["address 127.0.0.1:8080", "address localhost:99"]),
    ("set API_KEY_NAME, 变量HOME_DIR", ["variable API_KEY_NAME", "variable HOME_DIR"]),
    ("42 ms, 3.5 GB, 16,384 tokens, €19.90, 80 %",
        ["number 42 ms", "number 3.5 GB", "number 16,384 tokens", "number €19.90", "number 80 %"]),
    ("30天，5 万元，99.5%", ["number 30天", "number 5 万元", "number 99.5%"]),
    ("port 5433 in 2026 with 3 files, 0.75", ["number 5433", "number 0.75"]),
    ('he said "keep it simple" and "done"', ["quote keep it simple"]),
    ("他说“不要删除”。「全部保留吧」", ["quote 不要删除", "quote 全部保留吧"]),
    ("run `npm test` on `Foo`", ["command npm test", "code Foo"]),
    ("```bash\n$ make all\n```\n```py\nx = 1\n```", ["command make all"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found"), TABLE)
def test_identifiers_are_found(text: str, found: list[str]) -> None:
    assert [f"{identifier.kind} {identifier.text}" for identifier in find_identifiers(text)] == found


@pytest.mark.parametrize(
    ("identifier", "source"),
    [
        ("30s", "timeout 30 s"), ("30 s", "timeout_ms=30000"), ("1,000", "1000 rows"), ("Nov 20", "2026-11-20"),
        ("2026-11-20", "11月20日"), ("#12", "PR 12"), ("v1.2.3", "Version 1.2.3."), ("10 pm", "22:00"),
        ("22:00", "晚上10点"),
        ("5 minutes", "five minutes"), ("3天", "花了三天"), ("50,000 元", "5万元"),
        ("https://EX.com/a", "https://ex.com/a"),
        ("DEADBEEF1", "at deadbeef1"), ("src/a.py", "/srv/src/a.py"), ("./src/a.py", "src/a.py"),
        (r"C:\a\b.txt", r'{"p": "C:\\a\\b.txt"}'),
        ("/srv/src/a.py", "cd /srv; cat src/a.py"), ("ORD-4711", "订单ORD-4711号"),
        ("user_42", "user_42."), ("1.5 GB", "1500 MB"),
    ],
)  # fmt: skip
def test_two_ways_of_writing_are_one(identifier: str, source: str) -> None:
    assert occurs(identifier, source)


@pytest.mark.parametrize(
    ("identifier", "source"),
    [
        ("12", "112"), ("12", "12.5"), ("12", "1,12"), ("1.2", "1.2.3"), ("ORD-4711", "ORD-47112"),
        ("ORD-4711", "XORD-4711"), ("/tmp/a", "/tmp/a.txt"),
        ("30 MB", "30 s"), ("30 s", "31 s"), ("README.md", "readme.md"), ("2026-11-20", "2025-11-20"),
        ("10:30", "10:31"),
        ("8万元", "5万元"), ("src/api.py", "src docs/api.py"), ("#12", "#123"), ("订单A-101", "订单A-1011"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_found(identifier: str, source: str) -> None:
    assert not occurs(identifier, source)


@example("./")
@example("see ../ and ~/")
@example("`00`0")
@given(st.text() | st.text('a1/.-_:@#"`中月日 $\n\\%,', max_size=80))
def test_any_text_is_taken(text: str) -> None:
    found = find_identifiers(text)

    assert all(text[each.start : each.end] == each.text for each in found)
    assert [each.start for each in found] == sorted(each.start for each in found)
    source = SourceText(text)
    assert [each for each in found if not source.holds(each)] == [] or "\\" in text


HOSTILE = ["a", "a-", "a/", "1,111", "1.", "\\", "`", '"', '"a ', "```sh\n", "http://", "1:",
"/中a", "一", "#1", "jan 1 ", "@a.",
           "1 ", "中", "A_", "“", "0a", "../", "::", "v1"]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    number = itertools.count()  # no text twice: runs of characters are remembered
    assert_grows_at_most(
        10, lambda size: find_identifiers(f"{next(number)}{piece * (size // len(piece))}"), 30_000, 120_000
    )
