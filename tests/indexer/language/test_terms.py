from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.language.terms import (
    MAX_TERM_CHARS,
    STOP_WORDS,
    ReadPart,
    fold,
    has_unspaced,
    identifier_parts,
    index_terms,
    query_terms,
    read_part,
    weight,
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Deploys go out on Tuesdays.", ["deploi", "go", "out", "on", "tuesdai"]),
        ("snake_case and kebab-case", ["snake", "case", "and", "kebab", "case"]),
        ("v2.10 10:30", ["v2", "10", "10", "30"]),
        ("Café NAÏVE", ["cafe", "naiv"]),
        ("cafe\u0301", ["cafe"]),
        ("İstanbul", ["istanbul"]),
        ("phở Hà Nội", ["pho", "ha", "noi"]),
        ("ＡＢＣ１２３", ["abc123"]),
        ("Straße", ["strass"]),
        ("ﬁle", ["file"]),
        ("Ёлка", ["елк"]),
        ("部署", ["部", "署", "部署"]),
        ("用Python写", ["用", "python", "写"]),
        ("開會紀錄", ["开", "会", "纪", "录", "开会", "会纪", "纪录"]),
        ("서울에서", ["서", "울", "에", "서", "서울", "울에", "에서"]),
        ("המטבח במטבח מטבחים", ["טבח", "טבח", "טבח"]),
        ("הישיבות הישיבה", ["ישיב", "ישיב"]),
        ("מלך מלכים", ["מלכ", "מלכ"]),
        ("שָׁלוֹם", ["לומ"]),
        ("ключи ключами йогурта", ["ключ", "ключ", "йогурт"]),
        ("новый новая", ["нов", "нов"]),
        ("κλειδιά κλειδί ΚΛΕΙΔΙΑ λόγος", ["κλειδ", "κλειδ", "κλειδ", "λογ"]),
        ("مُحَمَّد محمـــد الكتاب كتاب", ["محمد", "محمد", "كتاب", "كتاب"]),
        ("किताबें किताब ज़रूर जरूर", ["किताब", "किताब", "जरूर", "जरूर"]),
        ("٢٠٢٤ २०२४ ๒๕๖๗", ["2024", "2024", "2567"]),
        ("กาแฟร้อน", ["กา", "แฟ", "ร้", "กาแฟ", "แฟร้", "ร้อ", "อน"]),
        ("ກາເຟ", ["ກາ", "ເຟ", "ກາເຟ"]),
        ("កាហ្វេ", ["កា", "ហ្វេ", "កាហ្វេ"]),
        ("ကော်ဖီ", ["ကော်", "ဖီ", "ကော်ဖီ"]),
        ("คน", ["คน"]),
        ("ณ", ["ณ"]),
        ("Wi-Fi ไวไฟ", ["wi", "fi", "ไว", "ไฟ", "ไวไฟ"]),
        ("用ไวไฟ", ["用", "ไว", "ไฟ", "用ไว", "ไวไฟ"]),
        ("🎉 ... \x00 --", []),
        ("", []),
    ],
)
def test_index_terms(text: str, terms: list[str]) -> None:
    assert index_terms(text) == terms


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("When do we deploy?", ["deploi"]),
        ("deploy deploys deploying", ["deploi"]),
        ("the who", ["the", "who"]),
        ("to be or not to be", ["to", "be", "or", "not"]),
        ("什么时候部署?", ["部署", "部", "署"]),
        ("猫", ["猫"]),
        ("的", ["的"]),
        ("我的猫", ["猫"]),
        ("Python 怎么部署", ["python", "部署", "部", "署"]),
        ("為什麼要開會嗎", ["要开", "开会", "要", "开", "会"]),
        ("多久", ["多久", "多", "久"]),
        ("台湾有没有仓库", ["台湾", "台", "湾", "仓库", "仓", "库"]),
        ("S", ["s"]),
        ("?!", []),
    ],
)
def test_query_terms(question: str, terms: list[str]) -> None:
    assert query_terms(question) == terms


@pytest.mark.parametrize(
    ("word", "run", "other"),
    [
        ("กาแฟ", "พรุ่งนี้ซื้อกาแฟสองถุงที่ตลาด", "พรุ่งนี้ซื้อขนมปังสองก้อนที่ร้าน"),
        ("ກາເຟ", "ມື້ອື່ນຊື້ກາເຟສອງຖົງຢູ່ຕະຫຼາດ", "ມື້ອື່ນຊື້ເຂົ້າຈີ່ສອງກ້ອນຢູ່ຮ້ານ"),
        ("កាហ្វេ", "ថ្ងៃស្អែកទិញកាហ្វេពីរកញ្ចប់នៅផ្សារ", "ថ្ងៃស្អែកទិញនំប៉័ងពីរដុំនៅហាង"),
        ("ကော်ဖီ", "မနက်ဖြန်ဈေးမှာကော်ဖီနှစ်ထုပ်ဝယ်မယ်", "မနက်ဖြန်ဆိုင်မှာပေါင်မုန့်နှစ်လုံးဝယ်မယ်"),
    ],
    ids=["thai", "lao", "khmer", "burmese"],
)
def test_a_word_inside_a_run_is_found_and_its_letters_elsewhere_are_not(word: str, run: str, other: str) -> None:
    asked = set(query_terms(word))
    assert asked and asked <= set(index_terms(run))
    assert asked.isdisjoint(index_terms(other))
    spaced = run.replace(word, f"\u200b{word}\u200b")
    assert index_terms(spaced) == index_terms(run)


def test_a_mark_between_words_that_nobody_sees_joins_no_words_of_other_scripts() -> None:
    assert index_terms("foo\u200bbar") == ["foo", "bar"]
    assert index_terms("部\u200b署") == ["部", "署"]


@pytest.mark.parametrize("signs", ["\u0e48", "\u17d2\u1780", "\u1039\u1000", "\u0e31\u200b"])
def test_endless_signs_behind_a_letter_are_cut_into_terms(signs: str) -> None:
    terms = index_terms("ก" + signs * 5_000)
    assert terms and max(map(len, terms)) <= MAX_TERM_CHARS


def test_over_long_words_are_cut_alike_in_text_and_question() -> None:
    word = "q" * 5000
    assert index_terms(word) == query_terms(word) == ["q" * MAX_TERM_CHARS]
    assert len(index_terms("漢" * 5000)) == 9999


def test_a_joiner_within_a_word_and_an_accent_of_stress_change_nothing() -> None:
    assert index_terms("می\u200cخواهم") == index_terms("میخواهم")
    assert index_terms("за\u0301мок") == index_terms("замок")
    assert index_terms("copy\u00adright") == index_terms("copyright")


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("Где лежат ключи от гаража?", ["лежат", "ключ", "гараж"]),
        ("Πού είναι τα κλειδιά;", ["κλειδ"]),
        ("أين المفتاح؟", ["مفتاح"]),
        ("चाबी कहाँ है?", ["चाब"]),
        ("איפה המפתח?", ["פתח"]),
        ("где что как", ["где", "что", "как"]),
    ],
)
def test_words_of_asking_are_left_out_in_every_script(question: str, terms: list[str]) -> None:
    assert query_terms(question) == terms


@given(st.text())
def test_terms_are_letters_and_digits_in_folded_form(text: str) -> None:
    for term in index_terms(text):
        assert term
        # Vowel signs of Indian scripts are marks, some of them newer than the tables of Python.
        assert has_unspaced(term) or all(c.isalnum() or unicodedata.category(c)[0] in "MC" for c in term)
        assert not term.isascii() or term == term.lower()


@given(st.text())
def test_a_question_asks_only_for_terms_that_its_own_text_has(text: str) -> None:
    asked = query_terms(text)
    assert len(asked) == len(set(asked))
    assert set(asked) <= {*index_terms(text), *identifier_parts(text)}
    assert bool(asked) == bool(index_terms(text))


@given(st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x24F)))
def test_composed_and_decomposed_letters_are_the_same_word(text: str) -> None:
    assert index_terms(unicodedata.normalize("NFD", text)) == index_terms(unicodedata.normalize("NFC", text))


@given(st.text(alphabet=st.characters(max_codepoint=0x7F)))
def test_ascii_is_only_lowered(text: str) -> None:
    assert fold(text) == text.lower()


@pytest.mark.parametrize(
    ("traditional", "simplified"),
    [
        ("臺灣的倉庫", "台湾的仓库"),
        ("鬆緊帶壞了", "松紧带坏了"),
        ("２０２６年１１月發佈", "2026年11月发布"),
        ("記憶體", "记忆体"),
    ],
)
def test_traditional_and_simplified_are_the_same_terms(traditional: str, simplified: str) -> None:
    assert index_terms(traditional) == index_terms(simplified)
    assert query_terms(traditional) == query_terms(simplified)


@given(st.text(alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)))
def test_simplifying_twice_changes_nothing(text: str) -> None:
    once = [term for term in index_terms(text) if len(term) == 1]
    assert [term for term in index_terms("".join(once)) if len(term) == 1] == once


def test_folding_alone_keeps_traditional_characters() -> None:
    assert fold("臺灣Ａ") == "臺灣a"


def test_stop_words_are_folded_words() -> None:
    assert all(word == fold(word) and word.isalpha() for word in STOP_WORDS)


@pytest.mark.parametrize(
    ("text", "unspaced"), [("部署", True), ("カタカナ", True), ("ภาษาไทย", True), ("한국", True), ("abc é я", False)]
)
def test_has_unspaced(text: str, unspaced: bool) -> None:
    assert has_unspaced(text) is unspaced


@pytest.mark.parametrize(
    ("text", "words", "share"),
    [
        ("Redis 的端口是 6380 吗？", "Redis", 1 / 4),
        ("用Python写driver-app，行不行", "Python driver-app", 2 / 5.5),
        ("3月1日 14:30 花了 20 元", "", 0.0),
        ("どこ？ 어디 ที่ไหน 哪里", "", 0.0),
        ("Где мой PostgreSQL", "PostgreSQL", 1 / 3),
        ("What does the word гараж mean?", "What does the word mean", 5 / 6),
        ("Où est la forêt d’été, phở 5€?", "Où est la forêt d’été, phở 5€?", 1.0),
        ("14:30 !?", "14:30 !?", 1.0),
    ],
)
def test_the_part_of_a_text_that_a_model_reads(text: str, words: str, share: float) -> None:
    part = read_part(text, lambda _: False)
    assert part.text == words
    assert part.share == pytest.approx(share)
    assert read_part(text, lambda _: True) == ReadPart(text=text, share=1.0)


@pytest.mark.parametrize(
    ("term", "counts"),
    [("部署", 0.5), ("部", 1.0), ("ab", 1.0), ("カタ", 1.0), ("用カ", 1.0), ("서울", 1.0), ("", 1.0)],
)
def test_a_pair_of_han_characters_counts_half(term: str, counts: float) -> None:
    assert weight(term) == counts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("parseHttpHeader", ["pars", "http", "header"]),
        ("HTTPServer.start", ["http", "server"]),
        ("用parseHTTPHeader解析", ["pars", "http", "header"]),
        ("getById", ["get", "id"]),
        ("utf8Decode", ["utf", "decod"]),
        ("parse_http_header PARSE Parse APIs IDs 5PM iPhone LaTeX", []),
        ("aB3dEfGhIjKlMnOpQr", []),
        ("a" * 90 + "Bcd", []),
        ("", []),
    ],
)
def testidentifier_parts(text: str, parts: list[str]) -> None:
    assert identifier_parts(text) == parts


def test_a_question_of_a_name_asks_for_its_parts_and_one_of_a_word_does_not() -> None:
    assert query_terms("where is parseHttpHeader?") == ["parsehttphead", "pars", "http", "header"]
    assert query_terms("who uses GitHub?") == ["us", "github"]
