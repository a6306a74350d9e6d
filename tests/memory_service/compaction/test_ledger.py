"""What goes into the ledger, word for word; how it is merged, bounded and written."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.compaction.ledger import CAPS, _message_entries, ledger_of, merge_ledger
from memory_service.compaction.ledger_text import fit_ledger, render_ledger
from memory_service.messages.reading import read_messages
from memory_service.messages.sizes import Numbered, count_tokens, number_message
from memory_service.schemas.compaction import LedgerEntry
from tests.growth import at_most_readings


def talk(*raw: dict[str, object]) -> list[Numbered]:
    return [number_message(message, seq) for seq, message in enumerate(read_messages(list(raw)), 1)]


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def assistant(text: str, *calls: tuple[str, str, str]) -> dict[str, object]:
    made = [{"id": at, "type": "function", "function": {"name": name, "arguments": raw}} for at, name, raw in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def result(call_id: str, text: str, **more: object) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": call_id, "content": text, **more}


def texts(entries: tuple[LedgerEntry, ...], kind: str) -> list[str]:
    return [entry.text for entry in entries if entry.kind == kind]


@pytest.mark.parametrize(
    ("said", "kind", "found"),
    [
        ("Hi. Never deploy on Fridays! Bye.", "rule", ["Never deploy on Fridays!"]),
        ("Please always use pnpm. I never saw that.", "rule", ["Please always use pnpm."]),
        ("All ids must be lower case.", "rule", ["All ids must be lower case."]),
        ("I don't know. Don't touch the database.", "rule", ["Don't touch the database."]),
        ("Must I always do this?", "rule", []),
        ("你好。不要删除数据库。谢谢", "rule", ["不要删除数据库。"]),
        ("所有接口必须返回JSON，一律用UTF-8", "rule", ["所有接口必须返回JSON，一律用UTF-8"]),
        ("OK. Let's go with Postgres. Fine.", "decision", ["user: Let's go with Postgres."]),
        ("We decided to ship v2.0 first.", "decision", ["user: We decided to ship v2.0 first."]),
        ("超时改为30秒。别的不变。", "decision", ["user: 超时改为30秒。"]),
        ("就用方案二吧！", "decision", ["user: 就用方案二吧！"]),
        ("Set the request timeout to 30 s, ok", "number", ["Set the request timeout to 30 s"]),
        ("把超时时间设为30秒", "number", ["把超时时间设为30秒"]),
        ("My name is Ada.", "name", ["My name is Ada"]),
        ("我叫小明，你好", "name", ["我叫小明"]),
        ("see ORD-4711", "id", ["ORD-4711"]),
        ("在/tmp/a.txt里", "path", ["/tmp/a.txt"]),
        ("at https://ex.org/x.", "url", ["https://ex.org/x"]),
        ("由2026年11月20日开始", "date", ["2026年11月20日"]),
        ("We stay on 3.0 because 2.2 leaks memory.", "number", ["We stay on 3.0"]),
        ("It rose to 4.5 since 2.2 s was too short.", "number", ["It rose to 4.5", "2.2 s"]),
        ("我们留在3.0因为2.2有漏洞", "number", ["我们留在3.0"]),
        ("延迟改成 3.5 秒，因为 2.2 秒太短", "number", ["延迟改成 3.5 秒", "2.2 秒"]),
        ("The timeout of 30 s, then 9443.", "number", ["The timeout of 30 s", "then 9443"]),
    ],
)
def test_what_is_said_is_quoted(said: str, kind: str, found: list[str]) -> None:
    assert texts(_message_entries(talk(user(said))[0]), kind) == found


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "paths"),
    [
        ("read_file", '{"path": "a.py"}', "file_read", ["a.py"]),
        ("Read", '{"file_path": "数据/a.md"}', "file_read", ["数据/a.md"]),
        ("mcp__fs__read_multiple_files", '{"paths": ["a", "b"]}', "file_read", ["a", "b"]),
        ("Edit", '{"file_path": "a.py", "old": "x"}', "file_modified", ["a.py"]),
        ("create_file", '{"filename": "a.py"}', "file_modified", ["a.py"]),
        ("str_replace_based_edit_tool", '{"command": "view", "path": "a.py"}', "file_read", ["a.py"]),
        ("str_replace_based_edit_tool", '{"command": "insert", "path": "a.py"}', "file_modified", ["a.py"]),
        ("apply_patch", '{"input": "*** Begin Patch\\n*** Update File: a/b.py\\n@@"}', "file_modified", ["a/b.py"]),
        ("bash", '{"command": "echo 1 > out.txt 2>/dev/null"}', "file_modified", ["out.txt"]),
        ("Bash", '{"command": "cat -n a.md | grep x"}', "file_read", ["a.md"]),
        ("read_email", '{"id": 3}', "file_read", []),
        ("grep", '{"path": "a.py"}', "file_read", []),
        ("write_file", "{broken", "file_modified", []),
    ],
)
def test_calls_tell_files(name: str, arguments: str, kind: str, paths: list[str]) -> None:
    found = ledger_of(talk(assistant("", ("c", name, arguments)), result("c", "ok")))

    assert sorted(texts(found, kind)) == paths


@pytest.mark.parametrize(
    ("output", "error", "command"),
    [
        ("1 failed\nexit code: 1", False, "npm test (exit 1)"),
        ("Process exited with code 0", False, "npm test (exit 0)"),
        ('{"exit_code": 2}', False, "npm test (exit 2)"),
        ("退出码：127", False, "npm test (exit 127)"),
        ("no", True, "npm test (failed)"),
        ("fine", False, "npm test"),
    ],
)
def test_commands_tell_how_they_ended(output: str, error: bool, command: str) -> None:
    found = ledger_of(
        talk(assistant("", ("c", "bash", '{"command": "npm test"}')), result("c", output, is_error=error))
    )

    assert texts(found, "command") == [command]


@pytest.mark.parametrize(
    ("output", "failure"),
    [
        ("Traceback (most recent call last):\n  x\nValueError: no such id", ["ValueError: no such id"]),
        ("ERROR: first\nTraceback (most recent call last):\n  x\nValueError: last", ["ValueError: last"]),
        ("ok\nERROR in build: 找不到模块", ["ERROR in build: 找不到模块"]),
        ("错误：连接超时", ["错误：连接超时"]),
        ("bash: foo: command not found", ["bash: foo: command not found"]),
        ("0 errors, all fine", []),
        ("Error handling is described in docs: no errors here", []),
    ],
)
def test_failures_are_quoted(output: str, failure: list[str]) -> None:
    assert texts(ledger_of(talk(result("c", output))), "failure") == failure


def test_a_failed_write_wrote_nothing() -> None:
    found = ledger_of(
        talk(assistant("", ("c", "write_file", '{"path": "a.py"}')), result("c", "denied", is_error=True))
    )

    assert texts(found, "file_modified") == []


def test_asks_stay_open_until_they_are_answered() -> None:
    asked = talk(
        user("Can you fix the login?"),
        assistant("Fixed."),
        user("好。能查一下端口5433吗？"),
        assistant("", ("c", "x", "{}")),
    )
    answered = [*asked, number_message({"role": "assistant", "content": "查过了。"}, 5)]

    assert texts(ledger_of(asked), "ask") == ["能查一下端口5433吗？"]
    assert texts(ledger_of(answered), "ask") == []
    assert texts(merge_ledger(ledger_of(asked), ledger_of(talk(*[user("x")] * 5, user("see A-100")))), "ask") == []


def test_confirmations_quote_both_sides() -> None:
    found = ledger_of(
        talk(
            assistant("Ready. Shall I drop table t1?"),
            user("No, not yet."),
            assistant("要发布吗？"),
            user("好的，发布"),
            user("yes"),
        )
    )

    assert texts(found, "confirmation") == ["“Shall I drop table t1?” → “No, not yet.”", "“要发布吗？” → “好的，发布”"]


def test_secrets_never_enter() -> None:
    secret = "sk-" + "a1B2" * 8
    found = ledger_of(
        talk(
            user(f"Always use {secret}. 必须用密码：abc123!x"),
            assistant(
                f"Use {secret}?", ("c", "bash", '{"command": "curl -H \'Authorization: Bearer abcdefghijkl1234\'"}')
            ),
            result("c", f"Error: {secret} is bad"),
            user(f"yes, {secret}"),
        )
    )

    assert found
    assert not [entry for entry in found if "a1B2" in entry.text or "abc123" in entry.text or "ijkl1234" in entry.text]


def test_a_modified_file_is_no_longer_a_read_one() -> None:
    read: list[LedgerEntry] = [
        LedgerEntry(kind="file_read", text="a.py", seqs=[1]),
        LedgerEntry(kind="path", text="./a.py", seqs=[1]),
    ]
    ledger = merge_ledger(read, [LedgerEntry(kind="file_modified", text="./a.py", seqs=[4])])

    assert [(entry.kind, entry.seqs) for entry in ledger] == [("file_modified", [4])]


def test_the_same_thing_is_one_entry_and_moves_to_the_end() -> None:
    old: list[LedgerEntry] = [
        LedgerEntry(kind="id", text="A-1", seqs=list(range(1, 12))),
        LedgerEntry(kind="id", text="A-2", seqs=[12]),
    ]
    ledger = merge_ledger(old, [LedgerEntry(kind="id", text="A-1", seqs=[20])])

    assert [(entry.text, entry.seqs) for entry in ledger] == [("A-2", [12]), ("A-1", [1, 8, 9, 10, 11, 20])]


def test_rules_and_decisions_leave_last() -> None:
    rule: LedgerEntry = LedgerEntry(kind="rule", text="不要删除", seqs=[1])
    ids: list[LedgerEntry] = [LedgerEntry(kind="id", text=f"A-{at}", seqs=[at]) for at in range(2, 40)]

    assert [entry.text for entry in merge_ledger([rule], ids, cap=3)] == ["不要删除", "A-38", "A-39"]


ENTRIES = st.lists(
    st.builds(
        lambda kind, text, seqs: LedgerEntry(kind=kind, text=text, seqs=sorted(seqs)),
        st.sampled_from([*CAPS, "strange"]),
        st.sampled_from(["a.py", "./a.py", "不要删除", "Never!", "ORD-1", "</exact-identifiers>", "x" * 240])
        | st.text(max_size=8),
        st.sets(st.integers(1, 60), min_size=1, max_size=9),
    ),
    max_size=40,
)


@given(ENTRIES, ENTRIES, st.integers(0, 30))
def test_a_merge_is_bounded_and_stable(old: list[LedgerEntry], new: list[LedgerEntry], cap: int) -> None:
    ledger = merge_ledger(old, new, cap=cap)

    assert len(ledger) <= cap
    assert all(count <= CAPS.get(kind, 8) for kind, count in Counter(entry.kind for entry in ledger).items())
    assert all(len(entry.seqs) <= 6 for entry in ledger)
    assert merge_ledger(ledger, (), cap=cap) == ledger
    assert merge_ledger(ledger, ledger, cap=cap) == ledger
    assert [entry.seqs[-1] for entry in ledger] == sorted(entry.seqs[-1] for entry in ledger)


@given(ENTRIES, st.integers(0, 300))
def test_what_fits_is_within_the_limit(entries: list[LedgerEntry], limit: int) -> None:
    kept = fit_ledger(entries, limit)

    assert count_tokens(render_ledger(kept)) <= limit
    assert render_ledger(fit_ledger(entries, 100_000)) == render_ledger(entries)
    assert render_ledger(entries).count("</exact-identifiers>") <= 1


def test_rules_fit_first() -> None:
    entries: list[LedgerEntry] = [
        LedgerEntry(kind="rule", text="不要删除", seqs=[1]),
        LedgerEntry(kind="file_read", text="a.py", seqs=[2]),
    ]

    assert render_ledger(fit_ledger(entries, 13)) == "## Rules\n- 不要删除 (log:1)"
    assert render_ledger(entries).endswith("<read-files>\n- a.py\n</read-files>")


TEXT = st.text(max_size=60) | st.sampled_from(
    ["Never 不要 x?", "yes 30 s", "Error: /tmp/a", "```sh\nls\n```", "\n" * 5]
)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), TEXT, TEXT), max_size=8))
def test_any_conversation_is_taken(said: list[tuple[str, str, str]]) -> None:
    raw = [
        user(text) if role == "user" else result("c", text) if role == "tool" else assistant(text, ("c", "bash", more))
        for role, text, more in said
    ]
    messages = talk(*raw)
    found = ledger_of(messages)

    assert all(len(entry.text) <= 240 and "\n" not in entry.text for entry in found)


def test_two_thousand_messages_are_read_in_good_time() -> None:
    filler = "We looked at the code of the checkout and found that it waits for the payment. " * 4
    messages = talk(*(user(f"{filler} See ORD-{at} in /srv/app/f{at}.py, it took {at} ms.") for at in range(500)))
    with at_most_readings(200):
        merge_ledger((), ledger_of(messages))


@pytest.mark.parametrize("piece", ["never ", "不要", "decided ", "a. ", "?", "Error", "我叫", "don't a", "\n", "- "])
def test_hostile_messages_take_bounded_time(piece: str) -> None:
    messages = talk(user(piece * (250_000 // len(piece))), result("c", piece * 25_000))
    with at_most_readings(100):
        ledger_of(messages)
