from __future__ import annotations

from pathlib import Path

import pytest

from indexer.embeddings.tokenization import Vocabulary, read_vocabulary

FILE = Path(__file__).parents[3] / "indexer/embeddings/minilm_model/tokenizer.json"


@pytest.fixture(scope="module")
def english() -> Vocabulary:
    vocabulary = read_vocabulary(FILE)
    assert vocabulary is not None
    return vocabulary


@pytest.mark.parametrize(
    "text",
    [
        "Where are the keys of the garage?",
        "Où se trouvent les clés du garage à côté de la forêt où l’été dernier nous avons mangé des crêpes",
        "¿Cuándo vendrá el señor Muñoz a la reunión del año próximo según la última decisión?",
        "Größe der Straßenbahn überprüfen für die Qualität äußerst schöner Häuser in München",
        "Thủ đô của nước Việt Nam là thành phố nào và người dân ở đó ăn phở lúc mấy giờ",
        "Çocuğun doğum günü hangi ay ve İstanbul'da ağaçların gölgesinde ne yapıldı",
        "Która książka leży na stole obok łóżka w żółtym pokoju",
        "Příliš žluťoučký kůň úpěl ďábelské ódy, kde je můj dům",
    ],
)
def test_latin_with_its_accents_is_read(english: Vocabulary, text: str) -> None:
    assert english.reads(text)


@pytest.mark.parametrize(
    "text",
    [
        "Где находится ключ от гаража и когда мы поедем на дачу?",
        "Коли їдемо до Києва і хто забере ключі від квартири",
        "Πού είναι τα κλειδιά του γκαράζ και πότε θα πάμε στο χωριό;",
        "أين مفتاح المرآب ومتى سنذهب إلى القرية مع الأطفال؟",
        "کلید گاراژ کجاست و کی به روستا می‌رویم",
        "गैराज की चाबी कहाँ है और हम गाँव कब जाएंगे",
        "איפה המפתח של המוסך ומתי ניסע לכפר עם הילדים",
        "กุญแจโรงรถอยู่ที่ไหน และเราจะไปหมู่บ้านเมื่อไหร่",
        "차고 열쇠는 어디에 있고 우리는 언제 시골에 가나요",
        "車庫の鍵はどこですか、いつ田舎に行きますか",
        "车库的钥匙在哪里，我们什么时候去乡下",
        "Որտեղ է ավտոտնակի բանալին",
        "სად არის ავტოფარეხის გასაღები",
        "கேரேஜ் சாவி எங்கே உள்ளது",
        "গ্যারেজের চাবি কোথায় এবং আমরা কখন গ্রামে যাব",
        "\ud800",
    ],
)
def test_letters_alone_are_not_read(english: Vocabulary, text: str) -> None:
    assert not english.reads(text)


def test_a_file_that_is_no_tokenizer_has_no_vocabulary(tmp_path: Path) -> None:
    assert read_vocabulary(tmp_path / "tokenizer.json") is None
    (tmp_path / "tokenizer.json").write_text("{}")
    assert read_vocabulary(tmp_path / "tokenizer.json") is None
