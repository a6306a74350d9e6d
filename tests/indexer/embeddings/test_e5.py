"""Runs the real bundled model for all languages."""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from indexer import Index
from indexer.embeddings import bundled
from indexer.embeddings.base import Embedder
from indexer.embeddings.bundled import MultilingualE5, multilingual_embedder
from indexer.errors import EmbedderUnavailable
from indexer.types import Vectors

FOLDER = bundled.E5_FOLDER
# The same sentence about a key and the same about a bus, in a language of each script.
KEY, BUS = (
    {
        "English": "The spare key of the garage hangs behind the blue door.",
        "German": "Der Ersatzschlüssel der Garage hängt hinter der blauen Tür.",
        "Vietnamese": "Chìa khóa dự phòng của nhà xe treo sau cánh cửa màu xanh.",
        "Chinese": "车库的备用钥匙挂在蓝色的门后面。",
        "Traditional Chinese": "車庫的備用鑰匙掛在藍色的門後面。",
        "Japanese": "車庫の予備の鍵は青いドアの裏に掛かっています。",
        "Korean": "차고의 예비 열쇠는 파란 문 뒤에 걸려 있습니다.",
        "Russian": "Запасной ключ от гаража висит за синей дверью.",
        "Ukrainian": "Запасний ключ від гаража висить за синіми дверима.",
        "Greek": "Το εφεδρικό κλειδί του γκαράζ κρέμεται πίσω από την μπλε πόρτα.",
        "Arabic": "المفتاح الاحتياطي للمرآب معلق خلف الباب الأزرق.",
        "Persian": "کلید یدکی گاراژ پشت در آبی آویزان است.",
        "Urdu": "گیراج کی اضافی چابی نیلے دروازے کے پیچھے لٹکی ہوئی ہے۔",
        "Hebrew": "המפתח הרזרבי של המוסך תלוי מאחורי הדלת הכחולה.",
        "Hindi": "गैराज की अतिरिक्त चाबी नीले दरवाज़े के पीछे टंगी है।",
        "Bengali": "গ্যারেজের অতিরিক্ত চাবি নীল দরজার পিছনে ঝুলছে।",
        "Tamil": "கேரேஜின் உதிரி சாவி நீலக் கதவின் பின்னால் தொங்குகிறது.",
        "Telugu": "గ్యారేజీ అదనపు తాళం నీలం తలుపు వెనుక వేలాడుతోంది.",
        "Kannada": "ಗ್ಯಾರೇಜಿನ ಹೆಚ್ಚುವರಿ ಕೀಲಿ ನೀಲಿ ಬಾಗಿಲಿನ ಹಿಂದೆ ನೇತಾಡುತ್ತಿದೆ.",
        "Malayalam": "ഗാരേജിന്റെ അധിക താക്കോൽ നീല വാതിലിനു പിന്നിൽ തൂങ്ങിക്കിടക്കുന്നു.",
        "Gujarati": "ગેરેજની વધારાની ચાવી વાદળી દરવાજા પાછળ લટકે છે.",
        "Punjabi": "ਗੈਰਾਜ ਦੀ ਵਾਧੂ ਚਾਬੀ ਨੀਲੇ ਦਰਵਾਜ਼ੇ ਦੇ ਪਿੱਛੇ ਲਟਕਦੀ ਹੈ।",
        "Thai": "กุญแจสำรองของโรงรถแขวนอยู่หลังประตูสีฟ้า",
        "Lao": "ກະແຈສຳຮອງຂອງບ່ອນຈອດລົດຫ້ອຍຢູ່ຫລັງປະຕູສີຟ້າ",
        "Khmer": "កូនសោបម្រុងនៃយានដ្ឋានព្យួរនៅខាងក្រោយទ្វារពណ៌ខៀវ។",
        "Burmese": "ကားဂိုဒေါင်၏ အပိုသော့သည် အပြာရောင်တံခါးနောက်တွင် ချိတ်ထားသည်။",
        "Georgian": "ავტოფარეხის სათადარიგო გასაღები ლურჯი კარის უკან ჰკიდია.",
        "Armenian": "Ավտոտնակի պահեստային բանալին կախված է կապույտ դռան հետևում։",
        "Amharic": "የጋራዡ ትርፍ ቁልፍ ከሰማያዊው በር ጀርባ ተሰቅሏል።",
        "Sinhala": "ගරාජයේ අමතර යතුර නිල් දොර පිටුපස එල්ලා ඇත.",
    },
    "The bus to the airport leaves every twenty minutes.",
)
ODD = {
    "empty": "",
    "spaces": " \n\t ",
    "nul": "a\x00b\x00",
    "one emoji": "🎉",
    "family": "👩‍👩‍👧‍👦🇩🇪",
    "lone surrogate": "before \ud800 after",
    "no space": "x" * 8_000,
    "no space, Chinese": "没有空格" * 2_000,
    "megabyte": "the cat sat on the mat " * 45_000,
    "private use": "\ue000\uf8ff\U000f0000",
    "right to left with numbers": "الطابق 12، الباب 7 — \u202e7 21\u202c",
    "two scripts in a word": "Wi-Fi密码Пароль",
    "special tokens": "<s> </s> <pad> <unk> <mask>",
    "combining": "e\u0301" * 500,
}


@pytest.fixture(scope="module")
def embedder() -> MultilingualE5:
    return MultilingualE5()


def test_is_an_embedder(embedder: MultilingualE5) -> None:
    seam: Embedder = embedder
    assert (seam.name, seam.dimensions) == ("multilingual-e5-small", 384)
    assert seam.fingerprint == f"e5-{bundled.E5_SHA256[:12]}-{bundled.E5_TOKENIZER_SHA256[:6]}-512"


@pytest.mark.parametrize(
    ("name", "digest"), [("model.onnx", bundled.E5_SHA256), ("tokenizer.model", bundled.E5_TOKENIZER_SHA256)]
)
def test_files_are_those_that_the_fingerprint_names(name: str, digest: str) -> None:
    assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest


def test_the_files_are_no_larger_than_was_agreed() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) <= 75_000_000


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE", "README.md"])
def test_model_comes_with_its_papers(name: str) -> None:
    assert (FOLDER / name).stat().st_size > 0


@pytest.mark.parametrize("language", KEY)
def test_every_script_is_read_without_unknown_pieces(embedder: MultilingualE5, language: str) -> None:
    ids = embedder._load().token_ids(KEY[language])
    assert ids[0] == 0 and ids[-1] == 2
    # Each is a piece of the full vocabulary, too: id 3 is what it gives for a character that it does not have.
    assert 3 not in ids
    assert embedder.reads(KEY[language])


@pytest.mark.parametrize("text", ["𒀀𒁉𒆠 𒂗𒍪", "\U000f0000\U000f0001", "\U0001d173"])
def test_what_has_no_pieces_is_not_read(embedder: MultilingualE5, text: str) -> None:
    assert not embedder.reads(text)


def test_a_question_finds_its_answer_in_every_language(embedder: MultilingualE5) -> None:
    rows = embedder.embed_documents([*KEY.values(), BUS])
    near = rows @ embedder.embed_query("Where do I find the second key?")
    assert (near[:-1] > near[-1]).all()


def test_a_question_and_a_passage_get_the_prompts_they_were_trained_with(embedder: MultilingualE5) -> None:
    text = KEY["English"]
    asked, stored = embedder.embed_query(text), embedder.embed_documents([text])[0]
    assert 0.8 < float(asked @ stored) < 0.999


def test_company_padding_and_threads_do_not_change_a_vector(embedder: MultilingualE5) -> None:
    texts = [*KEY.values(), "ok", BUS * 12, ""]
    alone = np.stack([embedder.embed_documents([text])[0] for text in texts])
    for made in (embedder.embed_documents(texts), MultilingualE5(threads=1).embed_documents(texts)):
        assert made.shape == (len(texts), 384) and made.dtype == np.float32
        assert (alone * made).sum(axis=1) == pytest.approx(1.0, abs=1e-4)


def test_the_same_text_has_the_same_bytes(embedder: MultilingualE5) -> None:
    assert np.array_equal(embedder.embed_query(BUS), MultilingualE5().embed_query(BUS))


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_odd_texts_get_a_vector(embedder: MultilingualE5, text: str) -> None:
    assert np.linalg.norm(embedder.embed_query(text)) == pytest.approx(1.0, abs=1e-5)


def test_making_one_loads_nothing() -> None:
    code = (
        "import sys; from indexer import MultilingualE5; MultilingualE5(); "
        "raise SystemExit(bool({'onnxruntime', 'sentencepiece', 'tokenizers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


ONE_FOR_THE_PROCESS = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from indexer import MiniLM, multilingual_embedder
from indexer.embeddings import bundled
loaded, load = [], bundled.load_engine
def counted(model, folder):
    loaded.append(model.name)
    return load(model, folder)
bundled.load_engine = counted
MiniLM().embed_query("An index in English loads the model for English alone.")
multilingual_embedder()
assert loaded == ["minilm"], loaded
start = threading.Barrier(8)
def vector(number):
    start.wait()
    return multilingual_embedder().embed_documents(["Bitte nicht anrufen."])[0].tobytes()
with ThreadPoolExecutor(8) as pool:
    rows = set(pool.map(vector, range(8)))
assert loaded == ["minilm", "multilingual-e5-small"], loaded
assert len(rows) == 1
"""


def test_one_for_the_process_is_loaded_once_when_it_is_asked() -> None:
    done = subprocess.run([sys.executable, "-c", ONE_FOR_THE_PROCESS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_one_for_the_process_gives_the_vectors_of_the_model(embedder: MultilingualE5) -> None:
    text = "Der Hausmeister heißt Lindqvist."
    one = multilingual_embedder()
    assert one.fingerprint == embedder.fingerprint and one.dimensions == embedder.dimensions
    np.testing.assert_allclose(one.embed_documents([text])[0], embedder.embed_documents([text])[0], atol=1e-6)
    np.testing.assert_allclose(one.embed_query(text), embedder.embed_query(text), atol=1e-6)
    assert not np.allclose(one.embed_query(text), one.embed_documents([text])[0], atol=1e-3)


def damaged(folder: Path, name: str) -> MultilingualE5:
    for each in ("model.onnx", "tokenizer.model"):
        shutil.copy(FOLDER / each, folder / each)
    (folder / name).write_bytes((FOLDER / name).read_bytes()[:100_000])
    return MultilingualE5(folder=folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.model"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmbedderUnavailable, match=rf"multilingual-e5-small model's file .*{name} cannot be read"):
        damaged(tmp_path, name).embed_query("a")


def test_words_go_on_where_the_model_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "MEMORY.md").write_text("- 车库的备用钥匙挂在蓝色的门后面。\n", "utf-8")
    index = Index(tmp_path / "home", damaged(tmp_path, "model.onnx"))
    report = index.sync()
    found = index.search("备用钥匙")
    index.close()
    assert any("model.onnx cannot be read" in each for each in report.degraded)
    assert [hit.passage.text for hit in found.hits] == ["车库的备用钥匙挂在蓝色的门后面。"]
    assert any("model.onnx" in each or "no vectors" in each for each in found.degraded)


@pytest.fixture(scope="module")
def convert() -> ModuleType:
    pytest.importorskip("onnx")
    return importlib.import_module("tests.models.e5")


def test_script_refuses_other_weights(convert: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "e5-small-q4.bin").write_bytes(b"other")
    with pytest.raises(ValueError, match="SHA-256"):
        convert._read_source(tmp_path / "e5-small-q4.bin")


@pytest.mark.skipif("E5_WEIGHTS" not in os.environ, reason="E5_WEIGHTS names no folder of e5-small-q4.bin")
def test_script_makes_the_shipped_files(convert: ModuleType) -> None:
    source = convert._read_source(Path(os.environ["E5_WEIGHTS"]) / "e5-small-q4.bin")
    made = convert._build(source).SerializeToString(deterministic=True)
    assert hashlib.sha256(made).hexdigest() == bundled.E5_SHA256
    pytest.importorskip("sentencepiece")
    assert hashlib.sha256(convert._tokenizer(source)).hexdigest() == bundled.E5_TOKENIZER_SHA256


def test_vectors_tell_paraphrases_from_other_texts(embedder: MultilingualE5) -> None:
    rows: Vectors = embedder.embed_documents(
        ["Tandarts: controle op donderdag om half tien.", "Das Auto ist bis Freitag in der Werkstatt.", BUS]
    )
    for question, answer in (("Wanneer laat ik mijn gebit nakijken?", 0), ("Wo steht unser Wagen gerade?", 1)):
        assert int((rows @ embedder.embed_query(question)).argmax()) == answer
