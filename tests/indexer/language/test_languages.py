from __future__ import annotations

import pytest

from indexer.language.languages import language_of, writing_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Deploys go out on Tuesdays.", "English"),
        ("Do not use tabs", "English"),
        ("I bought a car in São Paulo, and the keys are in the blue box.", "English"),
        ("the die is cast, de facto", "English"),
        ("The restaurant 海底捞 is good for the team.", "English"),
        ("Die Wartung des Aufzugs ist am Dienstag", "German"),
        ("Le code du garage est 4711", "French"),
        ("El contrato del gimnasio vence en junio", "Spanish"),
        ("O carro fica na oficina até sexta, não antes", "Portuguese"),
        ("La riunione è stata spostata alla fine della settimana", "Italian"),
        ("De vergadering is verplaatst naar het einde van de week", "Dutch"),
        ("Spotkanie zostało przełożone na piątek i nie wiem dlaczego", "Polish"),
        ("Toplantı cuma gününe alındı ve herkes gelecek", "Turkish"),
        ("Cuộc họp của chúng tôi đã dời sang thứ sáu", "Vietnamese"),
        ("Rapat kami dipindahkan ke hari Jumat dan tidak ada perubahan", "Indonesian"),
        ("Mötet har flyttats till fredag och det är inte mitt fel", "Swedish"),
        ("我们明天下午三点开会，用 Redis 做缓存", "Chinese"),
        ("車庫の鍵はどこですか", "Japanese"),
        ("열쇠는 어디에 있나요", "Korean"),
        ("порт Redis это 6380", "Cyrillic"),
        ("Πού είναι το κλειδί;", "Greek"),
        ("أين المفتاح؟ في الطابق 12", "Arabic script"),
        ("איפה המפתח", "Hebrew"),
        ("चाबी कहाँ है", "Devanagari"),
        ("กุญแจอยู่ที่ไหน", "Thai"),
        ("კარის გასაღები", "another script"),
    ],
)
def test_a_text_tells_its_language(text: str, expected: str) -> None:
    assert language_of(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Postgres 16",
        "+49 30 1234567",
        "🎉",
        "`SELECT the_name FROM the_table`",
        "https://example.org/the/of",
        "\ue000",
    ],
)
def test_what_is_no_prose_tells_nothing(text: str) -> None:
    assert language_of(text) == ""


def test_texts_count_with_their_weights() -> None:
    found = writing_of([("English", 1.0), ("Chinese", 1.0), ("", 9.0), ("English", 2.0)])
    assert found.shares == {"English": 0.75, "Chinese": 0.25}
    assert found.foreign == 0.25
    assert list(found.shares) == ["English", "Chinese"]
    assert writing_of([]).foreign == 0
