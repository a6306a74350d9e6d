from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.documents.transcripts import _json_by_lines
from indexer.language.outcomes import is_acknowledgement
from tests.growth import at_most_readings

NOTHING = [
    '{"ok": true}',
    '{"sent": 1}',
    "done",
    "Done.",
    "exit code 0",
    "exit code 0\n0.9 s",
    '{"success": true, "message": "ok"}',
    '{"stdout": "", "stderr": "", "exit_code": 0}',
    "(no output)",
    '{"status": 200}',
    "已发送",
    "操作成功。",
    "退出码 0",
]
SOMETHING = [
    "",
    "exit code 1",
    "exit code 0\n3 files",
    '{"sent": 0}',
    '{"ok": false}',
    '{"sent": 1, "id": "m-20466"}',
    '{"deleted": "nl-0471"}',
    '{"count": 3}',
    '{"error": 1}',
    '{"status": 503}',
    "no",
    "42",
    "120 ms",
    "[]",
    "发送失败",
    "已发送给阿哲",
]


@pytest.mark.parametrize("text", NOTHING)
def test_what_only_says_that_it_went_well_is_an_acknowledgement(text: str) -> None:
    assert is_acknowledgement(text)


@pytest.mark.parametrize("text", SOMETHING)
def test_what_says_more_or_that_it_went_wrong_is_none(text: str) -> None:
    assert not is_acknowledgement(text)


def record(number: int) -> dict[str, object]:
    return {"order": f"WJ-{number}", "city": "慕尼黑", "total": 41.5, "note": "Bitte klingeln. Danke."}


def test_records_stand_in_lines_of_their_own() -> None:
    records = [record(number) for number in range(20)]
    text = json.dumps({"count": 20, "orders": records}, ensure_ascii=False)
    first, second, *lines = _json_by_lines(text, 1200).split("\n")
    assert (first, second) == ("count: 20", "orders:")
    assert [json.loads(line) for line in lines] == records


def test_a_record_that_takes_more_than_a_line_is_taken_apart() -> None:
    text = json.dumps([{"id": "m-1", "tags": ["a"] * 10, "body": "First line.\nSecond line. " + "More. " * 100}])
    lines = _json_by_lines(text, 400).split("\n")
    assert lines[0] == 'id: "m-1"'
    assert lines[1].startswith('tags: ["a", ')
    assert lines[2:4] == ["body: First line.", "Second line. " + "More. " * 100]


def test_numbers_stand_as_they_were_written() -> None:
    rows = ", ".join(f'{{"sku": "A-{n}", "eur": 32.90, "stock": 1e2}}' for n in range(40))
    lines = _json_by_lines(f'{{"rows": [{rows}], "big": {"9" * 500}}}', 400).split("\n")
    assert lines[1] == '{"sku": "A-0", "eur": 32.90, "stock": 1e2}'
    assert lines[-1] == "big: " + "9" * 500


def test_a_script_that_was_escaped_can_be_read() -> None:
    assert _json_by_lines(json.dumps({"to": "阿哲"}), 400) == '{"to": "阿哲"}'
    assert "阿哲" in _json_by_lines(json.dumps([{"to": "阿哲", "text": "今天先别发。" * 20}] * 9), 400)


@pytest.mark.parametrize(
    "text", ["", "plain words " * 100, "[1, 2", '{"a": 1} and words' * 99, "[" * 3000 + "]" * 3000]
)
def test_what_is_no_json_stays_as_it_is(text: str) -> None:
    assert _json_by_lines(text, 100) == text


def test_what_fits_stays_as_it_is() -> None:
    text = '{ "a":1,\n"b":[2] }'
    assert _json_by_lines(text, 100) == text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab 好。\\"{[,\n\u2028', max_size=30),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text("k键:", max_size=3), inner, max_size=5),
    max_leaves=30,
)


def leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, list) else [value]


@settings(max_examples=70, deadline=None)
@given(VALUES, st.integers(4, 200), st.booleans())
def test_nothing_is_lost(value: object, max_chars: int, escaped: bool) -> None:
    told = _json_by_lines(json.dumps(value, ensure_ascii=escaped), max_chars)
    for leaf in leaves(value):
        written = json.dumps(leaf, ensure_ascii=False)
        assert written in told or json.dumps(leaf) in told or (isinstance(leaf, str) and leaf in told)


@pytest.mark.parametrize("text", ["[" * 900 + "1" + "]" * 900, '"x"', '{"a":', "ok ", "1 ", "exit code "])
def test_hostile_text_takes_linear_time(text: str) -> None:
    with at_most_readings(80):
        for size in (190_000, 400_000):
            _json_by_lines(f"[{','.join([text.strip()] * (size // (len(text) + 1)))}]", 1200)
            _json_by_lines(text * (size // len(text)), 1200)
        is_acknowledgement(text * (400_000 // len(text)))
        is_acknowledgement((text * 120)[:119] + "x")
