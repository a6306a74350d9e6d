"""Edits of settings in their own text: what is added can be taken out again, and nothing else ever changes."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.errors import InvalidRequest
from memory_service.hosts.settings_text import (
    Edit,
    SettingsDialect,
    append_item,
    read,
    remove_item,
    set_key,
    table_span,
    with_table,
    without_table,
)

OURS = {"command": "memory-service", "args": ["mcp"]}
# As people write them: without and with indentation of their own, with comments, commas too many, other line ends.
TEXTS: list[tuple[str, SettingsDialect]] = [
    (text, "json")
    for text in (
        "{}",
        "{ }\n",
        "{\n}\n",
        '{"servers": {}}',
        '{"a": 1}',
        '{ "a": 1 }\n',
        '{"a": 1,}',
        '{\n  "a": 1\n}\n',
        '{\n\t"a": {\n\t\t"b": [1, 2]\n\t}\n}\n',
        '{\r\n    "a": 1,\r\n    "servers": {\r\n        "x": {}\r\n    }\r\n}\r\n',
        '\ufeff{\n  "a": 1\n}',
        '{\n  "a": 1 // behind, with a comma\n}\n',
        '{\n  "a": 1, // behind\n  // "b": 2\n}\n',
        '{\n  "servers": {\n    // none yet\n  }\n}\n',
        "{ /* none */ }",
        '{\n  "servers": {"x": {}},\n  "钥匙": "值 \\" // no comment"\n}\n',
        '{"servers": {\n  "x": {} /* one */, /* two */\n  },\n}',
    )
] + [
    (text, "json5")
    for text in (
        "{servers: {x: {a: 'it\\'s', b: +.5, c: 0xFF, d: Infinity}}}",
        "// mine\n{\n  servers: {\n    x: {},\n  },\n}\n",
        "{\n  a: 'one \\\ntwo',\n}",
    )
]


def undone(added: Edit, path: tuple[str, ...], dialect: SettingsDialect) -> str:
    """The text after the value was taken out, and what was made for it."""
    text = _taken(added.text, path, dict(added.filled), dialect)
    for made in reversed(added.made):
        text = _taken(text, made, dict(added.filled), dialect)
    return text


def _taken(text: str, path: tuple[str, ...], filled: dict[tuple[str, ...], str], dialect: SettingsDialect) -> str:
    container = read(text, dialect).find(path[:-1])
    assert container is not None
    place = next(n for n, each in enumerate(container.members) if each.key == path[-1])
    return remove_item(text, path[:-1], place, blank=filled.get(path[:-1], ""), dialect=dialect)


@pytest.mark.parametrize(("text", "dialect"), TEXTS)
@pytest.mark.parametrize("path", [("ours",), ("servers", "ours"), ("new", "servers", "ours")])
def test_a_member_comes_and_goes(text: str, dialect: SettingsDialect, path: tuple[str, ...]) -> None:
    added = set_key(text, path, OURS, dialect)
    assert _seen(added.text, path, dialect) == OURS
    assert set_key(added.text, path, OURS, dialect) == Edit(text=added.text)
    assert undone(added, path, dialect) == text


def _seen(text: str, path: tuple[str, ...], dialect: SettingsDialect) -> object:
    found = read(text, dialect).find(path)
    assert found
    return found.value


@pytest.mark.parametrize(("text", "dialect"), TEXTS)
def test_two_members_come_and_go_in_any_order(text: str, dialect: SettingsDialect) -> None:
    one = set_key(text, ("servers", "one"), OURS, dialect)
    two = set_key(one.text, ("servers", "two"), OURS, dialect)
    first = _taken(two.text, ("servers", "one"), {}, dialect)
    assert undone(Edit(text=first, made=one.made, filled=one.filled), ("servers", "two"), dialect) == text


@pytest.mark.parametrize(
    "text", ["{}", '{"hooks": {"Stop": []}}', '{\n  "hooks": {\n    "Stop": [\n      {"theirs": 1}\n    ]\n  }\n}\n']
)
def test_an_element_comes_and_goes(text: str) -> None:
    added = append_item(text, ("hooks", "Stop"), OURS)
    listed = json.loads(added.text)["hooks"]["Stop"]
    assert listed[-1] == OURS
    taken = remove_item(
        added.text, ("hooks", "Stop"), len(listed) - 1, blank=dict(added.filled).get(("hooks", "Stop"), "")
    )
    for made in reversed(added.made):
        taken = _taken(taken, made, dict(added.filled), "json")
    assert taken == text


def test_what_is_added_looks_as_what_is_there() -> None:
    text = '{\n    "a": 1, // one\n    "servers": {\n        "x": {}\n    }\n}\n'
    assert set_key(text, ("servers", "ours"), {"command": "m"}).text == (
        '{\n    "a": 1, // one\n    "servers": {\n        "x": {},\n        "ours": {\n            "command": "m"\n'
        "        }\n    }\n}\n"
    )


def test_a_value_that_differs_is_replaced_where_it_stands() -> None:
    text = '{\n  "slots": {"memory": "theirs"} // mine\n}\n'
    added = set_key(text, ("slots", "memory"), "ours")
    assert added.text == text.replace("theirs", "ours")
    assert added.replaced == ((("slots", "memory"), '"theirs"'),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        '{"a": nope}',
        "{a: 1}",
        "{'a': 1}",
        '{"a": 1}}',
        '{"a": "\n"}',
        "null",
    ],
)
def test_text_that_is_no_settings_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        set_key(text, ("ours",), OURS)


@pytest.mark.parametrize("text", ['{"servers": []}', '{"servers": "x"}', '{"servers": null}'])
def test_a_place_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="object is needed at servers"):
        set_key(text, ("servers", "ours"), OURS)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["a", "servers", "钥"]), VALUES, max_size=3),
    st.sampled_from([None, 0, 1, 4, "\t"]),
    st.booleans(),
)
def test_any_object_in_any_layout(value: dict[str, object], indent: int | str | None, ascii_only: bool) -> None:
    value["servers"] = value["servers"] if isinstance(value.get("servers"), dict) else {}
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    added = set_key(text, ("servers", "ours now"), OURS)
    assert json.loads(added.text)["servers"]["ours now"] == OURS
    assert undone(added, ("servers", "ours now"), "json") == text


NAME = "mcp_servers.memory-service"
BLOCK = f'[{NAME}]\ncommand = "memory-service"\nargs = ["mcp"]\n\n[{NAME}.env]\nA = "1"\n'
TOMLS = [
    "",
    "\n",
    'model = "o4"',
    'model = "o4"\n',
    'model = "o4"\n\n\n',
    'model = "o4"\r\n[mcp_servers.other]\r\ncommand = "x"\r\n',
    '# mine\n[mcp_servers.other] # theirs\nargs = [\n  "a", # one\n]\n',
    'text = """\n[mcp_servers.memory-service]\n"""\n',
]


@pytest.mark.parametrize("text", TOMLS)
def test_a_table_comes_and_goes(text: str) -> None:
    added = with_table(text, NAME, BLOCK)
    assert tomllib.loads(added)["mcp_servers"]["memory-service"] == {**OURS, "env": {"A": "1"}}
    assert without_table(added, NAME) == text


@pytest.mark.parametrize("text", TOMLS)
@pytest.mark.parametrize("more", ['\n# theirs\n[mcp_servers.later]\ncommand = "y"\n', "# a word at the end\n"])
def test_a_table_goes_whatever_was_added_behind(text: str, more: str) -> None:
    added = with_table(text, NAME, BLOCK)
    behind = added if added.endswith("\n") else f"{added}\n"
    left = without_table(behind + more, NAME)
    assert left == (text if text.endswith("\n") or not text else f"{text}\n") + more
    assert table_span(left, NAME) is None


@pytest.mark.parametrize("text", ["a = ", 'mcp_servers = {x = {command = "y"}}\n', f"[{NAME}]\n"])
def test_toml_that_cannot_take_a_table_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        with_table(text, NAME, BLOCK)
