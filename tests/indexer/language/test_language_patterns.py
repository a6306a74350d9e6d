"""Patterns of several languages: each is tried where its words stand, and all find what one pattern of all would."""

import re

import pytest

from indexer.language import ANY, LANGUAGES, LanguagePattern

RULES = LanguagePattern(lambda each: each.statements.strong_rules, lambda each: each.statements.rule_words)
FAILED = LanguagePattern(lambda each: each.outcomes.failed)
ASKS = LanguagePattern(lambda each: each.statements.asks)
SENTENCES = (
    "never push to main",
    "bitte immer erst testen",
    "künftig auf deutsch antworten",
    "禁止直接推送",
    "make sure that 测试 passes",
    "the build failed again",
    "das update ist fehlgeschlagen",
    "部署失败",
    "nothing happened today",
    "es gab kuchen",
    "今天天气很好",
    "",
)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_each_language_finds_what_all_would(sentence: str) -> None:
    words = frozenset(re.findall(r"[a-zß-ÿ]+", sentence))
    assert RULES.is_in(sentence, words) == bool(re.search(ANY.statements.strong_rules, sentence))
    assert FAILED.is_in(sentence) == bool(re.search(ANY.outcomes.failed, sentence))


def test_a_language_is_tried_only_with_a_word_of_its_own() -> None:
    assert RULES.is_in("never push to main", {"never"}) and not RULES.is_in("never push to main", {"immer", "push"})
    assert RULES.is_in("禁止直接推送")


@pytest.mark.parametrize(
    ("sentence", "begins"), [("please fix it", True), ("i said please", False), ("你好，帮我看看", True)]
)
def test_beginnings(sentence: str, begins: bool) -> None:
    assert ASKS.begins(sentence) == begins


def test_a_pattern_that_no_language_has_is_in_nothing() -> None:
    assert not LanguagePattern(lambda each: "").is_in("任何话 anything")


def test_languages_without_spaces_have_no_words_in_ascii() -> None:
    for language in LANGUAGES:
        if not language.is_spaced and (rules := language.statements.strong_rules):
            assert not re.search(rules, "never always must only avoid")
