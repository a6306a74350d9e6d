from __future__ import annotations

import json
import re
from typing import Any, cast, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indexer.language.outcomes import ends_in_error
from memory_service.messages.shapes import Message, Part, media_parts_of, text_of
from memory_service.messages.sizes import quarters
from memory_service.messages.writing import to_openai
from memory_service.messages.writing_anthropic import to_anthropic
from memory_service.text.placeholders import (
    OLD_CLEARED,
    OUTPUT_REMOVED,
    TRUNCATED,
    Superseded,
    is_cleared,
    media_label,
    payload_bytes,
    placeholder_text,
    see_text,
    shorten_result,
    stub_text,
    too_large_text,
    trim_middle,
    without_media,
)
from memory_service.text.texts import CHINESE
from tests.growth import assert_grows_at_most


def result(text: str, **keys: Any) -> Message:
    return cast(Message, {"role": "tool", "tool_call_id": "c1", "content": text, **keys})


def part(**fields: object) -> Part:
    return cast(Part, fields)


PNG = part(type="image_url", image_url={"url": "data:image/png;base64,AAAA"})
LOG = "".join(f"line {number}\n" for number in range(1_000))


# -- A result that is cut -----------------------------------------------------------------------------------------


def test_a_small_result_is_the_same_object() -> None:
    message = result("ok")
    assert shorten_result(message, 1_000, 7) is message
    chinese = result("中" * 250)
    assert shorten_result(chinese, 1_000, 7) is chinese


def test_a_large_result_keeps_its_beginning_and_says_what_is_missing() -> None:
    cut = shorten_result(result("a" * 10_000), 1_000, 12)
    head, notice = text_of(cut).split("\n")
    assert set(head) == {"a"}
    assert notice == f"[... {10_000 - len(head):,} characters left out; log:12]"
    assert 950 <= len(text_of(cut)) <= 1_000
    assert cut.get("tool_call_id") == "c1"


@pytest.mark.parametrize(
    "end", ["ValueError: no such column", "npm ERR! exit code 1", "构建失败:找不到文件", "退出码:1"]
)
def test_the_end_of_a_failure_stays(end: str) -> None:
    cut = text_of(shorten_result(result(LOG + end), 2_000, 3))
    assert cut.startswith("line 0\n")
    assert cut.endswith(end)
    assert 500 <= len(cut.rpartition("log:3]\n")[2]) <= 600


def test_the_end_of_what_went_well_goes() -> None:
    assert text_of(shorten_result(result(LOG), 2_000, 3)).endswith("left out; log:3]")
    assert not ends_in_error(LOG + "done\n")
    assert not ends_in_error("错误" + "好" * 3_000)


def test_a_chinese_result_is_cut_to_as_many_tokens_as_any_other() -> None:
    cut = text_of(shorten_result(result("上下文" * 2_000), 1_000, 5))
    assert 220 <= cut.count("上") + cut.count("下") + cut.count("文") <= 250
    assert quarters(cut) <= 1_000


def test_the_words_of_a_preset_come_before_the_count() -> None:
    assert f"\n{TRUNCATED} [... " in text_of(shorten_result(result("x" * 5_000), 1_000, 9, notice=TRUNCATED))


def test_trimming_keeps_as_much_as_it_is_told() -> None:
    head, notice, tail = trim_middle("h" * 2_500 + "t" * 2_500, head_chars=1_500, tail_chars=1_500, seq=4).split("\n")
    assert (head, notice, tail) == ("h" * 1_500, "[... 2,000 characters left out; log:4]", "t" * 1_500)
    assert trim_middle("short", head_chars=3, tail_chars=2, seq=4) == "short"


GLUED = ["\r\n", "e\u0301", "\ud83d\ude00", "👨\u200d👩", "👍🏽", "नि", "☎\ufe0f", "か\u3099"]


@pytest.mark.parametrize("seen", GLUED)
def test_no_cut_goes_through_what_is_seen_as_one(seen: str) -> None:
    whole = "-" * 40 + seen * 3 + "-" * 40
    for head, tail in ((head, tail) for head in range(38, 70) for tail in range(38, 70)):
        cut = trim_middle(whole, head_chars=head, tail_chars=tail, seq=1)
        if cut != whole:
            start, _, rest = cut.partition("\n[... ")
            end = rest.partition("log:1]")[2].removeprefix("\n")
            for at, by in ((at, by) for at in (len(start), len(whole) - len(end)) for by in range(1, len(seen))):
                assert whole[at - by : at - by + len(seen)] != seen


@pytest.mark.parametrize("piece", ["a", "\u0301", "exit ", "[", "退出码", "\r\n"])
def test_hostile_text_takes_linear_time(piece: str) -> None:
    def shortened(chars: int) -> None:
        text = piece * (chars // len(piece))
        shorten_result(result(text), 50_000, 1)
        stub_text(text, text, result(text), 1)

    assert_grows_at_most(10, shortened, 100_000, 400_000)


texts = st.text(st.sampled_from("ab \n\r中文é\u0301😀\ud800\udc00]`"), max_size=600)


@given(texts, st.integers(-10, 1_500), st.sampled_from(["", TRUNCATED, "内容过长"]))
def test_a_cut_is_within_its_limit_and_is_not_cut_again(text: str, limit: int, notice: str) -> None:
    message = result(text)
    once = shorten_result(message, limit, 12, notice=notice)
    assert quarters(text_of(once)) <= max(limit, quarters(text) if limit < 300 else limit)
    assert quarters(text_of(once)) <= quarters(text)
    assert shorten_result(once, limit, 12, notice=notice) is once
    assert once is message or "log:12]" in text_of(once)


@given(texts, st.integers(0, 700), st.integers(0, 700))
def test_what_trimming_leaves_is_the_beginning_and_the_end(text: str, head: int, tail: int) -> None:
    cut = trim_middle(text, head_chars=head, tail_chars=tail, seq=1)
    if cut != text:
        start, _, rest = cut.rpartition("[... ")
        left_out, _, end = rest.partition(" characters left out; log:1]")
        assert text.startswith(start.removesuffix("\n"))
        assert text.endswith(end.removeprefix("\n"))
        assert abs(len(start) + len(end) + int(left_out) - len(text)) <= 2


# -- A result that is cleared -------------------------------------------------------------------------------------

STUBS = {
    "a command": (
        ("bash", '{"command": "npm test"}', result("x\n" * 46 + "Process exited with code 1"), 12),
        "[bash: `npm test` -> exit 1, 47 lines, cleared; log:12]",
    ),
    "a command in pieces": (
        ("shell", '{"command": ["bash", "-lc", "ls"], "timeout": 5}', result('{"output": "", "exit_code": 0}'), 3),
        "[shell: `bash -lc ls` -> exit 0, 30 characters, cleared; log:3]",
    ),
    "a file that tells of exit codes": (
        ("read", '{"limit": 9, "file_path": "src/a.py"}', result("a\nsys.exit(1)\nexit 1"), 4),
        "[read: `src/a.py` -> 3 lines, cleared; log:4]",
    ),
    "Chinese": (
        ("bash", '{"command": "构建 项目"}', result("第一行\n退出码:2"), 5),
        "[bash: `构建 项目` -> exit 2, 2 lines, cleared; log:5]",
    ),
    "an error": (
        ("fetch", '{"url": "u"}', result("no", is_error=True), 6),
        "[fetch: `u` -> error, 2 characters, cleared; log:6]",
    ),
    "no call": (("", "", result("a\nb\n"), 7), "[tool -> 2 lines, cleared; log:7]"),
    "no JSON": (
        ("run", '{"command": "cut of', result("a"), 8),
        '[run: `{"command": "cut of` -> 1 characters, cleared; log:8]',
    ),
    "backticks and lines": (
        ("run", json.dumps({"command": "echo `date`\nls"}), result("a"), 8),
        "[run: `echo 'date' ls` -> 1 characters, cleared; log:8]",
    ),
}


@pytest.mark.parametrize("case", STUBS)
def test_a_stub_says_what_was_there(case: str) -> None:
    arguments, expected = STUBS[case]
    assert stub_text(*arguments) == expected
    assert is_cleared(expected, arguments[3])
    assert not is_cleared(expected, 99)


@given(st.text(max_size=200), st.text(max_size=300), texts, st.integers(1, 10**9))
@example("中" * 500, json.dumps({"command": "中" * 500}, ensure_ascii=False), "", 1)
def test_a_stub_is_one_short_line_whatever_the_call_was(name: str, arguments: str, text: str, seq: int) -> None:
    stub = stub_text(name, arguments, result(text), seq)
    assert len(stub.splitlines()) == 1
    assert quarters(stub) <= 240
    assert stub.endswith(f"log:{seq}]")


def test_placeholders_carry_the_handle() -> None:
    assert placeholder_text(OLD_CLEARED, 12) == "[Old tool result content cleared] log:12"
    assert placeholder_text(OUTPUT_REMOVED, 12) == "[compacted: tool output removed to free context] log:12"
    assert is_cleared(placeholder_text(OLD_CLEARED, 12), 12)


def test_what_still_says_something_is_not_cleared() -> None:
    see = see_text("read", '{"path": "文档.md"}', "same", 30, 12)
    assert see == "[read: `文档.md`; same as log:30; log:12]"
    assert not is_cleared(see, 12)
    assert not is_cleared(trim_middle("x" * 200, head_chars=20, tail_chars=0, seq=12), 12)


# -- In Chinese ---------------------------------------------------------------------------------------------------

CHINESE_STUBS = {
    "a command": "[bash: `npm test` -> 退出码 1，47 行，已清除；log:12]",
    "Chinese": "[bash: `构建 项目` -> 退出码 2，2 行，已清除；log:5]",
    "an error": "[fetch: `u` -> 出错，2 个字符，已清除；log:6]",
    "no call": "[工具 -> 2 行，已清除；log:7]",
}


@pytest.mark.parametrize("case", CHINESE_STUBS)
def test_a_stub_of_a_chinese_talk_is_chinese_and_known_as_cleared(case: str) -> None:
    arguments, _ = STUBS[case]
    assert stub_text(*arguments, texts=CHINESE) == CHINESE_STUBS[case]
    assert is_cleared(CHINESE_STUBS[case], arguments[3]) and not is_cleared(CHINESE_STUBS[case], 99)


def test_what_is_cut_read_again_or_attached_says_so_in_chinese() -> None:
    cut = text_of(shorten_result(result("上下文" * 2_000), 1_000, 5, notice=TRUNCATED, texts=CHINESE))
    assert quarters(cut) <= 1_000
    assert re.fullmatch(r"[上下文]+\n\[已截断：输出超出上限\] \[\.\.\. 略去 5,\d{3} 个字符；log:5\]", cut)
    assert not is_cleared(cut, 5)
    arguments = '{"path": "文档.md"}'
    seen = [see_text("read", arguments, why, 30, 12, texts=CHINESE) for why in get_args(Superseded)]
    assert seen == [
        "[read: `文档.md`；同 log:30；log:12]",
        "[read: `文档.md`；又读过，见 log:30；log:12]",
        "[read: `文档.md`；文件后来改过，见 log:30；log:12]",
    ]
    assert not any(is_cleared(text, 12) for text in seen)
    assert placeholder_text(OLD_CLEARED, 12, CHINESE) == "[旧的工具结果已清除] log:12"
    assert placeholder_text("[gone]", 12, CHINESE) == "[gone] log:12"
    assert is_cleared(placeholder_text(OUTPUT_REMOVED, 12, CHINESE), 12) and is_cleared(too_large_text(3, CHINESE), 3)
    assert media_label(PNG, 12, 1, CHINESE) == "[附件 image/png：文件；log:12#1]"
    assert media_label(PNG, None, 1, CHINESE) == "[附件 image/png：文件]"
    assert media_label(PNG, None, 1) == "[Attached image/png: file]"


@given(st.text(max_size=200), st.text(max_size=300), texts, st.integers(1, 10**9))
@example("", "", "", 1)
def test_a_chinese_stub_is_short_too(name: str, arguments: str, text: str, seq: int) -> None:
    stub = stub_text(name, arguments, result(text), seq, texts=CHINESE)
    assert len(stub.splitlines()) == 1 and quarters(stub) <= 240 and stub.endswith(f"log:{seq}]")


# -- Media --------------------------------------------------------------------------------------------------------

PDF = {"type": "base64", "media_type": "application/pdf", "data": "A"}
LINK = {"url": "https://h.test/a/图.png?key=secret"}
HELD = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}
LABELS = [
    (PNG, "[Attached image/png: file; log:12#1]"),
    (part(type="image_url", image_url=LINK), "[Attached image: 图.png; log:12]"),
    (part(type="image", source={**PDF, "media_type": "image/jpeg"}), "[Attached image/jpeg: file; log:12#1]"),
    (part(type="document", title="报告", source=PDF), "[Attached application/pdf: 报告; log:12#1]"),
    (part(type="document", source={"type": "file", "file_id": "f_1"}), "[Attached document: f_1; log:12]"),
    (part(type="input_audio", input_audio={"data": "A", "format": "wav"}), "[Attached audio/wav: file; log:12#1]"),
    (part(type="file", file=HELD), "[Attached application/pdf: a.pdf; log:12#1]"),
    (part(type="file", file={"file_id": "f_2"}), "[Attached file: f_2; log:12]"),
    (part(type="container_upload", file_id="f_3"), "[Attached container_upload: file; log:12]"),
    (part(type="image_url"), "[Attached image: file; log:12]"),
]


@pytest.mark.parametrize(("medium", "label"), LABELS)
def test_a_label_says_what_was_attached(medium: Part, label: str) -> None:
    assert media_label(medium, 12, 1) == label


def test_media_give_way_to_labels_in_their_places() -> None:
    linked = part(type="image_url", image_url={"url": "https://h.test/b.png"})
    content = [PNG, part(type="text", text="看这张图"), linked, PNG]
    message = cast(Message, {"role": "user", "content": content})
    bare = without_media(message, 4)
    assert text_of(bare).split("\n") == [
        "[Attached image/png: file; log:4#1]",
        "看这张图",
        "[Attached image: b.png; log:4]",
        "[Attached image/png: file; log:4#2]",
    ]
    assert media_parts_of(message) == [PNG, linked, PNG]
    assert without_media(bare, 4) is bare
    plain = result("text")
    assert without_media(plain, 4) is plain


def test_a_result_without_media_is_still_a_result_on_both_wires() -> None:
    message = cast(Message, {"role": "tool", "tool_call_id": "c1", "content": [PNG]})
    bare = without_media(message, 4)
    assert to_openai([bare])[0]["tool_call_id"] == "c1"
    assert "image" not in json.dumps(to_anthropic([bare])[1]).replace("image/png", "")


def test_only_what_is_sent_counts_as_bytes() -> None:
    assert payload_bytes(PNG) == len("data:image/png;base64,AAAA")
    assert payload_bytes(part(type="image_url", image_url={"url": "https://h.test/" + "x" * 999})) == 0
    assert payload_bytes(part(type="document", source={"type": "text", "data": "中文"})) == 6
