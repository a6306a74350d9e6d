from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.messages.reading import read_messages
from memory_service.messages.sizes import Numbered, number_message, quarters
from memory_service.messages.units import REPAIR_TEXTS
from memory_service.text.frames import COMPACTED_CONTEXT, escape_frames
from memory_service.text.injected import _said_text
from memory_service.text.talk_language import language_of, talk_language, written_in
from memory_service.text.texts import (
    CHINESE,
    ENGLISH,
    TEXTS,
    Texts,
    in_every_language,
    names_in_every_language,
    pattern_of,
    texts_in,
)
from tests.memory_service.rooms import says, user

LATIN = re.compile("[A-Za-z]{2,}")


def in_order(said: list[dict[str, Any]]) -> list[Numbered]:
    return [number_message(message, at, "") for at, message in enumerate(read_messages(said), 1)]


def leaves(texts: Texts) -> dict[str, str]:
    """Every text of a table, by its name."""
    found = dict[str, str]()
    for field in dataclasses.fields(texts):
        value = getattr(texts, field.name)
        if isinstance(value, Mapping):
            found.update({f"{field.name}.{key}": text for key, text in value.items()})
        else:
            found[field.name] = value
    return found


def test_every_table_has_the_same_texts_with_the_same_places() -> None:
    english, chinese = leaves(ENGLISH), leaves(CHINESE)
    assert english.keys() == chinese.keys()
    for name, text in english.items():
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", chinese[name])), name


def test_texts_below_this_table_are_there_in_the_same_languages() -> None:
    assert REPAIR_TEXTS.keys() == TEXTS.keys()


def test_a_chinese_text_has_no_english_word() -> None:
    for name, text in leaves(CHINESE).items():
        words = [word for word in LATIN.findall(re.sub(r"\{\w+\}", "", text)) if word != "log"]
        assert words == [], name


@pytest.mark.parametrize(
    "names",
    [("checkpoint_begin", "checkpoint", "checkpoint_end"), ("pins_begin", "pins"), ("toolless",), ("block_note",)],
)
def test_no_frame_is_larger_than_the_english_one_that_a_plan_counts_with(names: tuple[str, ...]) -> None:
    for texts in TEXTS.values():
        assert sum(quarters(getattr(texts, name)) for name in names) <= sum(
            quarters(getattr(ENGLISH, name)) for name in names
        )


@pytest.mark.parametrize("name", ["checkpoint_begin", "checkpoint_end", "pins_begin"])
def test_no_text_may_hold_a_mark_of_any_language(name: str) -> None:
    for mark in in_every_language(name):
        assert mark not in escape_frames(f"x {mark} y") and mark not in escape_frames(mark.replace("[", "［"))


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_what_the_memory_put_there_is_taken_out_in_every_language(texts: Texts) -> None:
    checkpoint = f"{texts.checkpoint_begin}{texts.checkpoint}\n\n<summary>\n- a\n</summary>\n\n{texts.checkpoint_end}"
    assert _said_text(f"before\n{checkpoint}\nafter") == "before\n\nafter"
    assert _said_text(f"{texts.pins_begin}{texts.pins}\n<pinned>\n- b\n</pinned>") == ""
    assert COMPACTED_CONTEXT not in texts.checkpoint_begin


@pytest.mark.parametrize(
    ("said", "language"),
    [
        ((), "en"),
        (("",), "en"),
        (("👍", "1", "?!"), "en"),
        (("When do we deploy to production?",), "en"),
        (("什么时候部署到生产环境？",), "zh"),
        (("臺灣的倉庫什麼時候開門？",), "zh"),
        (("把 redis 的 maxmemory 改成 2gb，然后重启 worker，再看看日志有没有报错。",), "zh"),
        (("What does 部署 mean in this config file?",), "en"),
        (("明日の会議は何時ですか。資料を送ってください。",), "en"),
        (("서울에서 회의가 있습니다",), "en"),
        (("Please deploy it on Monday morning.", "请在周一上午部署。"), "en"),
        (("Где ключи от гаража, скажи пожалуйста?",), "en"),
    ],
)
def test_the_language_is_what_the_user_writes(said: tuple[str, ...], language: str) -> None:
    assert talk_language(said) == language


def test_one_word_says_nothing_and_then_the_others_count() -> None:
    assert talk_language(["好"]) == "en" and talk_language(["ok"], before="zh") == "zh"
    assert talk_language(["ok", "yes"], beside=["好的，仓库明天上午十点开门，我会提前通知你。"]) == "zh"
    assert talk_language(["好"], beside=["The warehouse opens at ten tomorrow morning."]) == "en"
    # Once it is known, what others say changes nothing.
    assert talk_language(["ok"], beside=["好的，仓库明天上午十点开门。"], before="en") == "en"


def test_a_talk_changes_over_once_and_a_word_of_another_language_does_not_do_it() -> None:
    chinese, english = "明天上午十点之前把库存表发给我。", "Please send me the stock list before ten tomorrow."
    assert talk_language([chinese] * 9 + [english] * 2, before="zh") == "zh"
    half = [chinese, english] * 10
    assert {talk_language(half, before=before) for before in ("zh", "en")} == {"zh", "en"}
    languages, said = list[str](), list[str]()
    for text in [chinese] * 20 + [english] * 60:
        said.append(text)
        languages.append(talk_language(said, before=languages[-1] if languages else ""))
    assert languages[0] == "zh" and languages[-1] == "en"
    assert sum(one != other for one, other in pairwise(languages)) == 1


def test_what_a_user_pastes_is_not_their_language() -> None:
    page = "Read this page:\n\n```\n" + "the quick brown fox jumps over the lazy dog\n" * 8 + "```"
    talk = [
        user(f"总结一下这个网页的内容，用三句话。\n{page}"),
        says("It is about a fox."),
        user("再短一点，一句话就够了。"),
    ]
    assert language_of(in_order(talk)) == "zh"
    assert (
        language_of(
            in_order([user("Please make it shorter, in one sentence."), says("好的，这是一只狐狸的故事。" * 9)])
        )
        == "en"
    )
    assert language_of(()) == "en" and language_of((), before="zh") == "zh"


def test_a_filled_in_text_is_read_back() -> None:
    for texts in TEXTS.values():
        filled = texts.noted_day.format(day="2026-11-20")
        found = pattern_of(texts.noted_day, day=r"[\d-]+").fullmatch(filled)
        assert found is not None and found["day"] == "2026-11-20"


def test_names_are_read_in_every_language() -> None:
    assert {names_in_every_language("speakers")[word] for word in ("User", "用户")} == {"User"}
    assert texts_in("zh") is CHINESE and texts_in("") is texts_in("tlh") is ENGLISH
    assert written_in("用 Redis 缓存") == "zh" and written_in("Redis 缓") == written_in("") == ""


@given(st.lists(st.text(), max_size=6), st.sampled_from(["", "en", "zh"]))
def test_any_text_has_a_language(said: list[str], before: str) -> None:
    assert talk_language(said, before=before) in TEXTS
