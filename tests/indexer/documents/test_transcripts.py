from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.documents.markdown import MAX_CHARS, split_markdown
from indexer.documents.transcripts import (
    CALL_CHARS,
    RESULT_HEAD_CHARS,
    RESULT_TAIL_CHARS,
    Carried,
    grown_transcript,
    split_transcript,
    whole_transcript,
)
from indexer.types import Cue, Passage
from memory_service.messages.sizes import Usage
from memory_service.sessions.records import FlushRecord, MessageRecord
from memory_service.storage.files.jsonl_log import JsonlLog
from memory_service.storage.files.log_file import Offsets
from tests.growth import at_most_readings
from tests.indexer.talks import NOON, batches, log_of, message, turns
from tests.memory_service.storage.log_steps import trim

DAY = NOON.date()


def said(*bodies: MessageRecord) -> list[str]:
    return [passage.text for passage in split_transcript(log_of(*bodies))]


def test_messages_are_passages_with_their_numbers() -> None:
    passages = split_transcript(log_of(*turns("Hello", "你好，小明"), Usage(input_tokens=3), *turns("Bye")))
    assert [(p.start_line, p.end_line, p.text) for p in passages] == [
        (2, 2, "Hello"),
        (3, 3, "你好，小明"),
        (5, 5, "Bye"),
    ]
    assert {p.date for p in passages} == {DAY}
    assert [p.opens_section for p in passages] == [True, False, False]
    assert {p.heading for p in passages} == {("2026-11-20",)}


def test_nothing_gives_nothing() -> None:
    assert split_transcript(b"") == []
    assert split_transcript(b'{"role":"user","content":"the log of another program"}\n') == []


@pytest.mark.parametrize("role", ["system", "developer", "function", "", None, 7])
def test_only_what_was_said_in_the_talk_counts(role: object) -> None:
    odd = MessageRecord(text=json.dumps({"role": role, "content": "You are a helpful assistant."}))
    assert said(odd, message("Hello")) == ["Hello"]


def test_what_was_recalled_is_not_said_again() -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "memory-service_search", "arguments": '{"query":"gate"}'},
    }
    other = {"id": "c2", "type": "function", "function": {"name": "bash", "arguments": '{"command":"make"}'}}
    found = (
        '{"results":[{"id":"memory/a.md#L3","title":"Gate","url":"memory://default/memory/a.md#L3","text":"Oiled."}]}'
    )
    bodies = [
        {"role": "assistant", "content": None, "tool_calls": [call, other]},
        {"role": "tool", "tool_call_id": "c1", "content": found},
        {"role": "tool", "tool_call_id": "c2", "content": "Built 3 files in 2 s."},
    ]
    assert said(*(MessageRecord(text=json.dumps(body)) for body in bodies)) == [
        'bash {"command":"make"}', "Built 3 files in 2 s.",
    ]  # fmt: skip


@pytest.mark.parametrize("content", ["", "  \n ", None, [], 5, {"text": "x"}, [{"type": "text", "text": " "}], ["x"]])
def test_a_message_without_words_is_no_passage(content: object) -> None:
    assert said(message(content), message(content, "assistant"), message(content, "tool")) == []


def test_openai_and_anthropic_shapes() -> None:
    parts = [{"type": "text", "text": "看这张图"}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}]
    assert said(message(parts)) == ["看这张图"]
    assert said(
        message([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Yes"}])
    ) == ["Yes"]
    assert said(message([{"type": "refusal", "refusal": "I cannot."}], "assistant")) == ["I cannot."]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "3 files"}]}
    plain = {"type": "tool_result", "tool_use_id": "t2", "content": "部署失败"}
    assert said(message([result, plain, {"type": "text", "text": "And now?"}])) == ["3 files\n部署失败", "And now?"]
    assert said(message("exit code 1", "tool", tool_call_id="c1")) == ["exit code 1"]


def test_each_part_of_a_message_has_its_own_role() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "3 files"}
    pasted = 'What is this about?\n"""\nGarden news.\nOur deploy day is Friday.\n"""'
    told = [
        message([result, {"type": "text", "text": "And now?"}]),
        message("exit code 1", "tool", tool_call_id="c1"),
        message("It failed.", "assistant"),
        message(pasted),
        message("I set `port = 8080` in the [config](https://x/y)."),
    ]
    passages = split_transcript(log_of(*told))
    assert [(p.role, p.text.split("\n")[0]) for p in passages] == [
        ("tool", "3 files"),
        ("user", "And now?"),
        ("tool", "exit code 1"),
        ("assistant", "It failed."),
        ("user", "What is this about?"),
        ("pasted", '"""'),
        ("user", "I set `port = 8080` in the [config](https://x/y)."),
    ]


def test_calls_are_found_by_name_and_arguments() -> None:
    escaped = json.dumps({"path": "/srv/部署.md"})
    assert "\\u" in escaped
    call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": escaped}}
    assert said(message(None, "assistant", tool_calls=[call])) == ['read_file {"path": "/srv/部署.md"}']
    broken = {"id": "c", "type": "function", "function": {"name": "run", "arguments": '{"cmd": "ls \\u00'}}
    assert said(message("Look:", "assistant", tool_calls=[broken])) == ['Look:\nrun {"cmd": "ls \\u00']
    use = {"type": "tool_use", "id": "t", "name": "写文件", "input": {"path": "/srv/a.md", "text": "长" * 1000}}
    (text,) = said(message([{"type": "text", "text": "Writing."}, use], "assistant"))
    assert text.startswith('Writing.\n写文件 {"path": "/srv/a.md"')
    assert len(text) == len("Writing.\n") + CALL_CHARS


def test_a_message_with_line_ends_and_odd_characters() -> None:
    assert said(MessageRecord(text='{\n"role": "user",\n"content": "one\\r\\ntwo\\rthree"}')) == ["one\ntwo\nthree"]
    assert said(MessageRecord(text='{"role":"user","content":"half \\ud83d of\\u0000 it \\u001b[1m"}')) == [
        "half \ufffd of it [1m"
    ]
    assert said(message("\U0001f389 好")) == ["\U0001f389 好"]


@pytest.mark.parametrize("sentence", ["We deploy on Tuesdays after lunch. ", "我们每周二午饭之后部署到生产环境。"])
def test_a_long_message_is_several_passages(sentence: str) -> None:
    text = (sentence * (5000 // len(sentence))).strip()
    passages = split_transcript(log_of(message(text), message("End")))
    assert {p.start_line for p in passages[:-1]} == {2}
    assert 4 < len(passages) < 9
    assert all(len(p.text) <= MAX_CHARS and p.text[-1] in ".。" for p in passages[:-1])
    assert "".join(p.text for p in passages[:-1]).replace(" ", "") == text.replace(" ", "")
    assert [p.opens_section for p in passages] == [True] + [False] * (len(passages) - 1)


@pytest.mark.parametrize("line", ["line {} of the build log\n", "第{}行：编译完成\n"])
@pytest.mark.parametrize("shape", ["tool", "block"])
def test_of_a_long_result_the_beginning_and_the_end_are_kept(line: str, shape: str) -> None:
    whole = "".join(line.format(n) for n in range(3000))
    block = [{"type": "tool_result", "tool_use_id": "t", "content": whole}]
    texts = said(message(whole, "tool") if shape == "tool" else message(block))
    joined = "\n".join(texts)
    kept = joined.replace("…", "").split("\n")
    most = RESULT_HEAD_CHARS + RESULT_TAIL_CHARS
    assert 0.8 * most < len(joined) <= most + len("\n…\n")
    assert line.format(0).strip() in kept and line.format(2999).strip() in kept
    assert line.format(1500).strip() not in kept
    assert set(kept) - {""} <= set(whole.split("\n")), "lines are kept whole"
    assert joined.count("…") == 1


@pytest.mark.parametrize("shape", ["tool", "block"])
def test_a_result_of_records_is_cut_between_them(shape: str) -> None:
    records = [{"mail": n, "text": f"好的。 Until 27. November. Number {n}."} for n in range(60)]
    whole = json.dumps({"open": 60, "mails": records})
    block = [{"type": "tool_result", "tool_use_id": "t", "content": whole}]
    texts = said(message(whole, "tool") if shape == "tool" else message(block))
    assert len(texts) > 2
    assert all(len(text) <= MAX_CHARS for text in texts)
    lines = "\n".join(texts).split("\n")
    assert lines[:2] == ["open: 60", "mails:"]
    assert [json.loads(line) for line in lines[2:]] == records


@pytest.mark.parametrize("answer", ['{"ok": true}', '{"sent": 1}', "done", "exit code 0", "已发送"])
def test_an_answer_that_says_nothing_is_no_passage(answer: str) -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "content": answer}
    assert said(message(answer, "tool"), message([block]), message([block, {"type": "text", "text": "And?"}])) == [
        "And?"
    ]
    assert said(message(answer, "user")) == [answer], "what people say is kept"


def test_what_people_say_is_never_shortened() -> None:
    words = " ".join(f"word{n}" for n in range(5000))
    assert " ".join(said(message(words))) == words


def test_speakers_are_those_who_speak_more_than_once() -> None:
    def labels(*contents: str) -> list[str | None]:
        return [p.label for p in split_transcript(log_of(*turns(*contents)))]

    assert labels("Anna: hi", "Ben: hello", "Anna: tea?", "Once: x", "no name") == ["Anna", None, "Anna", None, None]
    assert labels("小明：早", "小红：早", "小明：喝茶吗？", "小红：好") == ["小明", "小红", "小明", "小红"]
    assert labels("[8 May 2023, 13:56] Anna: hi", "Anna: tea") == ["Anna", "Anna"]
    assert labels("【2023年5月8日】小明：早", "小明：喝茶") == ["小明", "小明"]
    assert labels("note: x", "Note: y", "Sure, here: x", "Sure, here: y") == [None] * 4
    tools = log_of(message("Error: x", "tool"), message("Error: y", "tool"))
    assert [p.label for p in split_transcript(tools)] == [None, None], "a tool is no speaker"
    long = log_of(message("Anna: " + "tea. " * 600))
    assert {p.label for p in split_transcript(long)} == {None}, "pieces of one message are one message"


def dates(*contents: str) -> list[str]:
    return [str(p.date) for p in split_transcript(log_of(*turns(*contents)))]


def test_the_name_of_a_message_is_its_speaker() -> None:
    said = [
        ("hi", "Emi"),
        ("Note: tea", "Elise"),
        ("Emi: x", "Elise"),
        ("y", " Emi\nKay "),
        ("z", "Emi"),
        ("a", "b" * 65),
    ]
    log = log_of(
        *(message(text, name=name) for text, name in said), message("b", name=7), message("c", "tool", name="Emi")
    )
    assert [p.label for p in split_transcript(log)] == ["Emi", "Elise", "Elise", None, "Emi", None, None, None]
    assert split_transcript(log)[0].text == "hi"


def test_a_date_that_is_said_holds_until_another() -> None:
    assert dates("hi", "[Monday 8 May 2023, 13:56] Anna: hi", "Ben: hello", "2023-05-09 Anna: hm", "Ben: yes") == [
        "2026-11-20", "2023-05-08", "2023-05-08", "2023-05-09", "2023-05-09",
    ]  # fmt: skip
    assert dates("2023年5月8日 小明：早", "小红：早", "【2023年5月9日 星期二】小明：早") == [
        "2023-05-08", "2023-05-08", "2023-05-09",
    ]  # fmt: skip


def test_a_date_that_is_said_holds_for_a_day_of_the_clock() -> None:
    lines = batches(*([m] for m in turns("2023-05-08 Anna: hi", "one", "two", "three")), step=dt.timedelta(hours=10))
    found = [str(p.date) for p in split_transcript(b"".join(lines))]
    assert found == ["2023-05-08", "2023-05-08", "2023-05-08", "2026-11-21"]


def test_dates_in_what_a_tool_answers_are_its_own_affair() -> None:
    log = log_of(message("2019-01-01 12:00:00 ERROR disk full", "tool"), message("Oh"))
    assert [p.date for p in split_transcript(log)] == [DAY, DAY]


@pytest.mark.parametrize(
    ("ts", "day"),
    [
        ("2026-11-20T23:59:59.999999Z", "2026-11-20"),
        ("2026-11-21T00:00:00.000000Z", "2026-11-21"),
        ("2026-11-21T07:59:00+08:00", "2026-11-20"),
        ("2026-11-21", "2026-11-21"),
        ("nonsense", "None"),
        ("0001-01-01T00:00:00+08:00", "None"),
    ],
)
def test_the_day_of_a_record_is_that_in_utc(ts: str, day: str) -> None:
    log = log_of(message("hi"))
    assert log.count(b"2026-11-20T12:00:00.000Z") == 2
    log = log.replace(b"2026-11-20T12:00:00.000Z", ts.encode())
    (passage,) = split_transcript(log)
    assert str(passage.date) == day
    assert passage.opens_section is (day != "None")
    assert bool(passage.heading) is (day != "None")


def test_a_section_is_a_day_as_in_dated_files() -> None:
    log = b"".join(batches(*([m] for m in turns("a?", "b", "c?", "d")), step=dt.timedelta(hours=8)))
    found = split_transcript(log)
    assert [(str(p.date)[-2:], p.opens_section) for p in found] == [
        ("20", True), ("20", False), ("21", True), ("21", False),
    ]  # fmt: skip
    stamped = log_of(*turns("[2026-05-08 10:00] Anna: a", "[2026-05-08 10:05] Ben: b"))
    assert [p.opens_section for p in split_transcript(stamped)] == [True, False], "the same day is the same section"


def test_cues_are_those_of_markdown() -> None:
    words = ["Anna: tea?", "Ben: yes", "Anna: yesterday?", "Ben: last week", "小明：什么时候？", "小红：昨天下午"]
    listed = split_markdown("# 2026-11-20\n\n" + "".join(f"- {w}\n" for w in words), path="memory/2026-11-20.md")
    talked = split_transcript(log_of(*turns(*words)))
    assert [(p.text, p.cues & ~Cue.ASKING, p.label, p.date, p.opens_section) for p in talked] == [
        (p.text, p.cues, p.label, p.date, p.opens_section) for p in listed
    ]


def test_a_tool_between_question_and_answer() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    log = log_of(
        message("Where is it?"),
        message(None, "assistant", tool_calls=[call]),
        message("found? yes?", "tool"),
        message("In the kitchen.", "assistant"),
    )
    asked, *quiet, answered = split_transcript(log)
    assert Cue.QUESTION in asked.cues
    assert {p.cues for p in quiet} == {Cue.NONE}
    assert answered.cues == Cue.ANSWER


def test_the_next_day_answers_no_question() -> None:
    for hours, answers in ((1, Cue.ANSWER), (13, Cue.NONE)):
        lines = batches(*([m] for m in turns("你去吗？", "好的")), step=dt.timedelta(hours=hours))
        assert split_transcript(b"".join(lines))[1].cues & Cue.ANSWER == answers


def test_a_stamp_is_no_word_of_time() -> None:
    first, second = split_transcript(log_of(*turns("[Monday 8 May 2023] Anna: hi", "Ben: on Monday")))
    assert (first.cues, second.cues) == (Cue.NONE, Cue.TIME)


DAMAGE = [
    b"",
    b"\n",
    b"not json\n",
    b'{"seq":3,"ts":"","message":{"role":"user","content":"x"\n',
    b'{"seq":3,"ts":"","message":[]}\n',
    b'{"seq":3,"ts":"","message":{"role":"user","content":NaN}}\n',
    b'{"seq":3,"ts":"","text":"{"}\n',
    b'{"seq":3,"batch":[3,3],"ts":"","message":{"role":"user","content":"no number of lines"}}\n',
    b'{"seq":1,"ts":"","message":{"role":"user","content":"a number twice"}}\n',
    b'{"seq":3,"ts":"","kind":"future.kind","message":{"role":"user","content":"unknown"}}\n',
    b'{"seq":3,"ts":"","message":{"role":"user","content":"\xff"}}\n',
    b'{"seq":3,"ts":"","message":{"role":"user","content":"\x00"}}\n',
    b'{"seq":3,"ts":"","kimd":"pin","text":"{\\"role\\":\\"user\\",\\"content\\":\\"no message\\"}"}\n',
    b'{"seq":3,"ts":"","batch":1,"message":{"role":"user","content":"not in this order"}}\n',
    b'{"seq":3,"batch":0,"ts":"","message":{"role":"user","content":"a batch of none"}}\n',
    b"\x00" * 300 + b"\n",
    b'{"seq":3,"ts":"","message":' + b"[" * 100_000 + b"\n",
    b'{"seq":3,"ts":"","message":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    b'{"seq":3,"ts":"","message":{"role":"user","content":' + b"9" * 9000 + b"}}\n",
]


@pytest.mark.parametrize("damage", DAMAGE, ids=range(len(DAMAGE)))
def test_damaged_lines_are_skipped(damage: bytes) -> None:
    header, first, _, third = batches(*([m] for m in turns("one", "two", "三")))
    assert [p.text for p in split_transcript(header + first + damage + third)] == ["one", "三"]


def test_a_batch_is_there_as_a_whole_or_not_at_all() -> None:
    lines = batches(turns("one"), turns("two", "three", "四"))
    log = b"".join(lines)
    first = len(b"".join(lines[:2]))
    for end in range(first, len(log)):
        assert [p.text for p in split_transcript(log[:end])] == ["one"], end
    assert [p.text for p in split_transcript(log)] == ["one", "two", "three", "四"]


def test_other_records_end_a_batch_too() -> None:
    lines = batches([*turns("one"), FlushRecord(from_seq=1, to_seq=2)])
    assert split_transcript(b"".join(lines[:-1])) == []
    assert [p.text for p in split_transcript(b"".join(lines))] == ["one"]


def test_a_damaged_end_of_an_earlier_batch_hides_that_line_alone() -> None:
    header, one, two, three = batches(turns("one", "two"), turns("three"))
    assert two.endswith(b"}\n")
    assert [p.text for p in split_transcript(header + one + two[:-9] + b"\n" + three)] == ["one", "three"]


def shown(raw: bytes) -> list[int]:
    """Numbers of the records that the log itself would read, but for its header."""
    offsets = Offsets()
    with TemporaryFile() as file:
        file.write(raw)
        file.flush()
        offsets.refresh(file.fileno())
        return list(offsets.after(1)[0])


@settings(max_examples=50, deadline=None)
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5), cut=st.integers(0, 900), broken=st.booleans())
def test_a_torn_log_shows_what_the_log_itself_shows(sizes: list[int], cut: int, broken: bool) -> None:
    raw = b"".join(batches(*(turns(*(f"text {n}" for n in range(size))) for size in sizes)))
    torn = raw[: max(0, len(raw) - cut)] + (b'{"seq":99,"batch' if broken else b"")
    assert [p.start_line for p in split_transcript(torn)] == shown(torn)


RUBBISH = [
    b"",
    b"\n",
    b"{}\n",
    b'{"seq":3,"ba\0\n',
    b'{"seq":3,"batch":2,"ts":"","message":{"role":"user","content":"\0"}}\n',
    b'{"seq":9,"ts":"","kind":"future"}\n',
    b'{"seq":4,"batch":3,"ts":"2026-11-20T12:00:00.000Z","message":{"role":"user","content":"of another batch"}}\n',
    b'{"seq":4,"batch":3,"ts":"","message":{"role":"user","content":"of another time"}}\n',
    b'{"seq":5,"ts":"2026-11-20T12:00:00.000Z","message":{"role":"user","content":"\xe9\x83\xa8"}}\n',
    b"torn",
]


def read_by_the_service(raw: bytes) -> list[int]:
    """Numbers of the messages that the service reads in a log, damaged or not."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "talk.jsonl")
        path.write_bytes(raw)
        return [record.seq for record in JsonlLog(path).read() if isinstance(record.body, MessageRecord)]


@settings(max_examples=70, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    at=st.integers(1, 12),
    rubbish=st.sampled_from(RUBBISH),
    instead=st.integers(0, 2),
    cut=st.integers(0, 250),
    hours=st.integers(0, 1),
)
def test_a_damaged_log_shows_what_the_log_itself_shows(
    sizes: list[int], at: int, rubbish: bytes, instead: int, cut: int, hours: int
) -> None:
    parts = (turns(*(f"第 {n} text" for n in range(size))) for size in sizes)
    lines = batches(*parts, step=dt.timedelta(hours=hours))
    lines[at : at + instead] = [rubbish]
    raw = b"".join(lines)
    raw = raw[: len(raw) - cut]
    assert [p.start_line for p in split_transcript(raw)] == read_by_the_service(raw)


def test_a_count_that_is_damaged_hides_nothing_that_was_said_later() -> None:
    lines = batches(turns("one", "two"), turns("three"), turns("四", "five"), step=dt.timedelta(hours=1))
    raw = b"".join(lines).replace(b'{"seq":2,"batch":2,', b'{"seq":2,"batch":7,')
    assert [p.text for p in split_transcript(raw)] == ["one", "two", "three", "四", "five"]
    assert [p.text for p in split_transcript(raw[:-9])] == ["one", "two", "three"]
    at_once = b"".join(batches(turns("one", "two"), turns("三", "four"))).replace(
        b'"seq":2,"batch":2,', b'"seq":2,"batch":7,'
    )
    assert [p.text for p in split_transcript(at_once)] == ["one", "two", "三", "four"]


def test_zeros_in_the_first_line_of_a_torn_batch() -> None:
    raw = b"".join(batches(turns("one"), turns("two", "three", "四"))).replace(b'"two"', b"\0\0\0")[:-9]
    assert [p.start_line for p in split_transcript(raw)] == read_by_the_service(raw) == [2, 4]


def test_reading_on_after_a_batch_that_lost_its_end() -> None:
    header, one, _, three, four = batches(turns("one", "two"), turns("three", "四"), step=dt.timedelta(hours=1))
    assert split_transcript(header + one) == []
    earlier = whole_transcript(header + one + three)
    assert [p.text for p in earlier.passages] == ["one"]
    grown = grown_transcript(header + one + three + four, earlier.carried_state)
    assert grown is not None
    assert [p.text for p in grown.passages] == ["three", "四"]


def test_a_trimmed_log_keeps_its_numbers(tmp_path: Path) -> None:
    log = JsonlLog(tmp_path / "talk.jsonl", now=lambda: NOON)
    for number in range(6):
        log.append(turns(f"text {number}"))
    trim(log, 3)
    found = split_transcript((tmp_path / "talk.jsonl").read_bytes())
    assert [(p.start_line, p.text) for p in found] == [(5, "text 3"), (6, "text 4"), (7, "text 5")]


TEXTS = st.sampled_from(
    [
        "Anna: tea?",
        "Anna: yes",
        "Ben: no",
        "小明：早上好",
        "小明：喝茶吗",
        "2023-05-08 Anna: hi",
        "",
        "long. " * 500,
        "plain?",
    ]
)


@settings(max_examples=70, deadline=None)
@given(
    parts=st.lists(st.lists(TEXTS, min_size=1, max_size=3), max_size=6), cuts=st.lists(st.integers(0, 9000), max_size=5)
)
def test_reading_on_gives_what_the_whole_gives(parts: list[list[str]], cuts: list[int]) -> None:
    step = dt.timedelta(hours=9)
    raw = b"".join(batches(*(turns(*texts) for texts in parts), step=step))
    read, carried = list[Passage](), Carried()
    for end in [*sorted(cuts), len(raw)]:
        grown = grown_transcript(raw[:end], carried)
        if grown is None:
            grown, read = whole_transcript(raw[:end]), []
        read += grown.passages
        carried = grown.carried_state
        assert read == split_transcript(raw[:end])
        assert carried == whole_transcript(raw[:end]).carried_state


def test_a_second_word_of_a_speaker_changes_the_first() -> None:
    header, *rest = batches(*([m] for m in turns("Anna: one", "Ben: two", "Anna: three", "Ben: four")))
    earlier = whole_transcript(header + rest[0])
    assert grown_transcript(header + b"".join(rest[:2]), earlier.carried_state) is not None
    assert grown_transcript(header + b"".join(rest[:3]), earlier.carried_state) is None


@pytest.mark.parametrize("part", ["[", "a: ", "Anna: tea? ", "[2026-11-20] ", "部署。", "\n", '{"a":', "\\u0061"])
@pytest.mark.parametrize("role", ["user", "tool"])
def test_a_hostile_message_takes_linear_time(part: str, role: str) -> None:
    log = log_of(message(part * (250_000 // len(part)), role))
    with at_most_readings(50):
        split_transcript(log)


def test_many_batches_of_many_speakers_take_linear_time() -> None:
    lines = batches(*([message(f"Name{'abcdefghij'[n % 10]}{n}x: hi")] for n in range(1500)))
    with at_most_readings(60):
        split_transcript(b"".join(lines))
