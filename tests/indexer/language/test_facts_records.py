"""Of what a line in a record tells."""

from __future__ import annotations

import pytest

from indexer.language.facts import _is_newest_first, _names_another, caption, facts_of, label_before
from indexer.language.facts_frame import is_frame


def things(text: str, heading: tuple[str, ...] = ()) -> set[str]:
    """Things that a text tells of, without those that are one value, and without clauses as they stand."""
    claims = facts_of(text, heading).claims
    return {claim.thing for claim in claims if "=" not in claim.thing and not is_frame(claim.thing)}


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("| Oven | Cost: 1141 € |", "oven|price"),
        ("Van – price: 9000 €", "van|price"),
        ("web01: Port: 8080", "web01|port"),
        ("Name: Mia Berg\nPhone: 0664 111", "berg mia|phone"),
        ("Mia Berg\nPhone: 0664 111", "berg mia|phone"),
        ("[web01]\nport = 8080", "web01|port"),
        ("> 张伟\n> 电话：13800001111", "张伟|phone"),
    ],
)
def test_a_label_in_the_line_or_above_the_block_says_of_what_it_tells(text: str, thing: str) -> None:
    assert things(text, ("Lists",)) == {thing}


@pytest.mark.parametrize(
    "text",
    [
        "Phone: 0664 111 (Mia)",
        "He lives in Graz (Tom's uncle).",
        "Name: Mia Berg",
        "6、用 curl 给请求计时",
        "（1）住在北京的同事：小张",
        "一个使用 Electron 制作的下载器。",
        "这里介绍如何改用手机记账。",
        "考古学家在南美洲发现了五万年前的石器。",
        "这个函数调用了 wget 接口，现在更快。",
        "批量改名工具叫做 B。",
        "图片转换为 PNG。",
    ],
)
def test_what_is_named_nowhere_or_elsewhere_is_no_fact(text: str) -> None:
    assert things(text, ("Lists",)) == set()


def test_a_key_alone_is_of_the_titles_above_and_is_borrowed() -> None:
    (claim,) = (each for each in facts_of("Port: 8080", ("Servers", "web01")).claims if each.thing.endswith("|port"))
    assert claim.thing == "server web01|port"
    assert claim.is_borrowed
    (named,) = (each for each in facts_of("The port of web01 is 8080").claims if each.thing.endswith("|port"))
    assert not named.is_borrowed


def test_a_date_is_no_version() -> None:
    assert not any(thing.endswith("|version") for thing in things("Warranty until: 9.3.2028"))
    assert "gateway|version" in things("gateway: 9.3.20")


@pytest.mark.parametrize(
    ("heading", "path", "newest"),
    [
        (("Changelog", "2.0"), "notes.md", True),
        (("[1.4.0] - 2026-01-02",), "notes.md", True),
        (("Anything",), "docs/CHANGELOG.md", True),
        (("14:30",), "memory/2026-01-02.md", False),
        (("Staging",), "memory/2026-01-02.md", False),
    ],
)
def test_lists_of_changes_have_the_newest_first(heading: tuple[str, ...], path: str, newest: bool) -> None:
    assert _is_newest_first(heading, path) is newest
    assert bool(facts_of("The port of staging is 8080", heading, None, path).claims) is not newest


def test_a_caption_is_the_nearest_label_or_name() -> None:
    assert caption(["Status: up", "Port: 8080", "web01"]) == {"web01"}
    assert caption(["Phone: 0664 111", "Nombre: Ana Gil", "Name: Bo"]) == {"ana", "gil"}
    assert caption(["details", "Mia Berg", "Port: 8080", "web01"]) == {"detail", "mia", "berg"}
    assert caption(["We moved the server. It is slow now.", "web01"]) == set()


def test_hours_and_days_are_no_label() -> None:
    assert label_before("14:30 – Port: 8080")[0] == ""
    assert label_before("2026-01-02: Port: 8080")[0] == ""
    assert label_before("web01 / Port: 8080") == ("web01", "Port: 8080")


def test_brackets_tell_of_whom_a_value_is_or_since_when() -> None:
    assert _names_another("Birthday: June 9 (Bo Lind)")
    assert not _names_another("Port: 8080 (was 7070)")
    assert not _names_another("价格：99 元（原价 79 元）")


@pytest.mark.parametrize(
    "text", ["王静是我的表姐，其年龄是46岁。", "我的上司是个医生。", "我住的那个龙湖小区真不错，绿化很多。"]
)
def test_a_clause_that_only_describes_or_refers_back_tells_no_value(text: str) -> None:
    attributes = {thing.rpartition("|")[2] for thing in things(text)}
    assert attributes.isdisjoint({"age", "manager", "location"})
