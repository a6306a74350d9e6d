"""litellm for real, against a provider on a loopback port that fails in the ways of real ones."""

from __future__ import annotations

import inspect
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from indexer.embeddings.base import CachedEmbedder, Embedder
from indexer.embeddings.litellm import LiteLLMEmbedder
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.testing import HashEmbedder, Request
from indexer.types import Vectors
from tests.indexer.embeddings.serving import (
    DIMENSIONS,
    Answer,
    Behaviour,
    Cut,
    EmbeddingServer,
    Hang,
    Said,
    failing,
    numbered,
    sound,
    texts_of,
    vectors,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:(litellm|pydantic|aiohttp|httpx)")

SECRET = "the vault opens with 4711"
KEY = "sk-not-for-anybody"
TEXTS = [f"note {number} about the harbour" for number in range(200)]
HASH = HashEmbedder(DIMENSIONS)


class Played:
    """A running provider and an embedder that asks it."""

    def __init__(self, server: EmbeddingServer, model: str = "openai/any", **options: object) -> None:
        self.server = server
        settings = {"api_base": server.url, "api_key": KEY, "backoff_seconds": 0.01, **options}
        self.embedder = LiteLLMEmbedder(model, **settings)  # type: ignore[arg-type]

    def refused(self, texts: list[str], kind: type[EmbeddingError] = EmbeddingError) -> EmbeddingError:
        with pytest.raises(EmbeddingError) as raised:
            self.embedder.embed_documents(texts)
        assert type(raised.value) is kind
        assert SECRET not in str(raised.value) and KEY not in str(raised.value)
        return raised.value


Play = Callable[..., Played]


@pytest.fixture
def play() -> Iterator[Play]:
    running: list[EmbeddingServer] = []

    def start(behaviour: Behaviour = sound, **options: object) -> Played:
        running.append(EmbeddingServer(behaviour).__enter__())
        return Played(running[-1], **options)  # type: ignore[arg-type]

    yield start
    for server in running:
        server.__exit__(None, None, None)
    if "litellm" in sys.modules:
        close_clients()


def close_clients() -> None:
    """litellm keeps a client for every address; here each test has its own."""
    kept: dict[str, object] = sys.modules["litellm"].in_memory_llm_clients_cache.cache_dict
    for client in kept.values():
        close = getattr(client, "close", None)
        if callable(close) and not inspect.iscoroutinefunction(close):
            close()
    kept.clear()


def times(*answers: Answer, then: Behaviour = sound) -> Behaviour:
    """These answers first, one for each request, then a behaviour."""
    left = iter(answers)
    lock = threading.Lock()

    def behave(asked: Request) -> Answer:
        with lock:
            return next(left, None) or then(asked)

    return behave


def expected(texts: list[str]) -> Vectors:
    return HASH.embed_documents(texts)


@pytest.mark.litellm
def test_is_an_embedder(play: Play) -> None:
    played = play()
    seam: Embedder = played.embedder
    assert (seam.name, seam.dimensions, seam.reads("数据库在哪里")) == ("litellm/openai/any", 0, False)
    assert seam.fingerprint.startswith("litellm-openai/any-")
    assert played.server.requests == [], "nothing is asked before the first text"
    query = seam.embed_query("where is the harbour?")
    assert query.shape == (DIMENSIONS,) and query.dtype == np.dtype(np.float32)
    assert np.allclose(query, HASH.embed_query("where is the harbour?"), atol=1e-6)
    assert seam.dimensions == DIMENSIONS
    assert seam.embed_documents([]).shape == (0, DIMENSIONS)


@pytest.mark.litellm
def test_many_texts_go_in_parallel_batches_and_keep_their_order(play: Play) -> None:
    together = threading.Barrier(3, timeout=60)

    def behave(asked: Request) -> Answer:
        if TEXTS[0] not in texts_of(asked):
            together.wait()  # three of them are here at once, or this breaks
        return sound(asked)

    played = play(behave)
    assert np.allclose(played.embedder.embed_documents(TEXTS), expected(TEXTS), atol=1e-6)
    assert sorted(played.server.sizes) == [8, 64, 64, 64]
    assert played.server.most_at_once == 3, "the first goes ahead"


@pytest.mark.litellm
def test_long_texts_make_smaller_batches(play: Play) -> None:
    played = play()
    texts = ["word " * 3_200] * 20  # 4,000 tokens each
    played.embedder.embed_documents(texts)
    assert played.server.sizes == [8, 8, 4] or sorted(played.server.sizes) == [4, 8, 8]


@pytest.mark.litellm
@pytest.mark.parametrize(
    ("message", "most"),
    [
        ("Too many inputs. The max number of inputs is 16.  We hope to increase the number of inputs soon.", 16),
        ("batch size is invalid, it should not be larger than 10.: input.contents", 10),
        ("Too many inputs in request, split into more batches.", 16),  # no number: found by halving
    ],
)
def test_the_most_texts_of_a_request_are_learned(play: Play, message: str, most: int) -> None:
    played = play(lambda asked: failing(message) if len(texts_of(asked)) > most else sound(asked))
    assert np.allclose(played.embedder.embed_documents(TEXTS[:100]), expected(TEXTS[:100]), atol=1e-6)
    refused = [size for size in played.server.sizes if size > most]
    assert 1 <= len(refused) <= 6
    played.server.requests.clear()
    played.embedder.embed_documents(TEXTS[100:])
    assert most // 2 <= max(played.server.sizes) <= most, "what was learned sticks"


@pytest.mark.litellm
def test_the_most_tokens_of_a_request_are_learned(play: Play) -> None:
    def behave(asked: Request) -> Answer:
        tokens = sum(len(text) // 2 for text in texts_of(asked))  # twice as many as estimated
        return failing(f"Too many tokens in batch. Max is 4000 got {tokens}") if tokens > 4000 else sound(asked)

    played = play(behave)
    texts = ["word " * 40 for _ in range(120)]
    assert len(played.embedder.embed_documents(texts)) == 120
    before = len(played.server.requests)
    played.embedder.embed_documents(["word " * 41 for _ in range(120)])
    later = played.server.requests[before:]
    assert all(sum(len(text) // 2 for text in texts_of(asked)) <= 4000 for asked in later)


@pytest.mark.litellm
@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 512 tokens, however you requested {given} tokens "
        "({given} in your prompt; 0 for the completion). Please reduce your prompt; or completion length.",
        "the input length exceeds the context length",
    ],
)
def test_a_text_that_is_too_long_is_cut(play: Play, message: str) -> None:
    def behave(asked: Request) -> Answer:
        longest = max(len(text) for text in texts_of(asked)) // 3
        return failing(message.format(given=longest)) if longest > 512 else sound(asked)

    played = play(behave)
    long = "word " * 2_000
    made = played.embedder.embed_documents([*TEXTS[:20], long, *TEXTS[20:30]])
    assert np.allclose(np.delete(made, 20, axis=0), expected(TEXTS[:30]), atol=1e-6)
    assert made[20].any()
    before = len(played.server.requests)
    played.embedder.embed_documents([long + "again"])
    assert len(played.server.requests) == before + 1, "cut before it is sent"
    assert long.startswith(texts_of(played.server.requests[-1])[0])
    assert len(texts_of(played.server.requests[-1])[0]) > 512, "not by more than it needs"


@pytest.mark.litellm
def test_one_text_that_is_refused_loses_no_other(play: Play) -> None:
    played = play(lambda asked: failing("inappropriate content") if SECRET in texts_of(asked) else sound(asked))
    texts = [*TEXTS[:90], SECRET, *TEXTS[90:]]
    error = played.refused(texts)
    assert "no usable vector for 1 of 201 texts" in str(error)
    assert error.vectors is not None
    assert not error.vectors[90].any()
    assert np.allclose(np.delete(error.vectors, 90, axis=0), expected(TEXTS), atol=1e-6)
    assert len(played.server.requests) <= 4 + 2 * 7
    before = len(played.server.requests)
    played.refused([SECRET])
    assert len(played.server.requests) == before, "it is not asked again"


@pytest.mark.litellm
def test_a_provider_that_refuses_everything_is_not_asked_for_every_text(play: Play) -> None:
    played = play(lambda _: failing("parameter 'input' is of a kind that nobody gave"))
    error = played.refused(TEXTS, EmbedderUnavailable)
    assert "refuses every text" in str(error) and error.vectors is None
    assert len(played.server.requests) < 60


@pytest.mark.litellm
@pytest.mark.parametrize(
    "answer",
    [
        Said(body="busy", status=503),
        Said(body="down", status=500),
        failing("Rate limit reached for requests per min.", 429, "rate_limit_exceeded"),
        Cut(),
    ],
    ids=["503", "500", "429", "cut"],
)
def test_what_may_pass_is_tried_again(play: Play, answer: Answer) -> None:
    played = play(times(answer, answer))
    assert np.allclose(played.embedder.embed_documents(TEXTS[:3]), expected(TEXTS[:3]), atol=1e-6)
    assert len(played.server.requests) == 3


@pytest.mark.litellm
def test_a_provider_that_does_not_answer_is_tried_again(play: Play) -> None:
    played = play(times(Hang()), try_seconds=3.0)
    assert len(played.embedder.embed_documents(TEXTS[:3])) == 3
    assert len(played.server.requests) == 2


@pytest.mark.litellm
@pytest.mark.parametrize("where", ["header", "text"])
def test_a_wait_that_is_asked_for_is_kept(play: Play, where: str) -> None:
    headers = {"retry_after": "0.7"} if where == "header" else {}
    told = "" if where == "header" else " Please try again in 700ms."
    played = play(times(failing(f"Rate limit reached.{told}", 429, None, **headers)))
    played.embedder.embed_documents(TEXTS[:3])
    first, second = (asked.at_seconds for asked in played.server.requests)
    assert second - first >= 0.7


@pytest.mark.litellm
def test_a_wait_that_is_too_long_is_named(play: Play) -> None:
    played = play(lambda _: failing("Rate limit reached.", 429, None, retry_after="3600"))
    error = played.refused(TEXTS[:3], EmbedderUnavailable)
    assert "asks to wait for 3,600 seconds" in str(error) and "then they get their vectors" in str(error)
    played.refused(TEXTS[3:6], EmbedderUnavailable)
    assert len(played.server.requests) == 1, "it is left alone"


@pytest.mark.litellm
def test_tries_come_to_an_end(play: Play) -> None:
    played = play(lambda _: Said(body="busy", status=503), retries=2)
    assert "cannot be reached or is overloaded (3 tries)" in str(played.refused(TEXTS[:3], EmbedderUnavailable))
    assert len(played.server.requests) == 3


@pytest.mark.litellm
def test_nobody_listens_at_the_address() -> None:
    with EmbeddingServer() as server:
        url = server.url
    embedder = LiteLLMEmbedder("openai/any", api_base=url, api_key=KEY, retries=1, backoff_seconds=0.01)
    with pytest.raises(EmbedderUnavailable, match="cannot be reached"):
        embedder.embed_query("a")


@pytest.mark.litellm
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (failing("You exceeded your current quota, please check your plan and billing details.", 429,
                 "insufficient_quota"), "has no quota or credit left"),
        (failing("Incorrect API key provided: sk-not*******body.", 401, "invalid_api_key"), "refused the key"),
        (failing("The model `any` does not exist or you do not have access to it.", 404, "model_not_found"),
         "is not there, or embeds no texts"),
    ],
    ids=["quota", "key", "model"],
)  # fmt: skip
def test_what_is_hopeless_stops_at_once_and_keeps_what_was_made(play: Play, answer: Answer, told: str) -> None:
    def behave(asked: Request) -> Answer:
        return sound(asked) if TEXTS[0] in texts_of(asked) else answer

    played = play(behave, rest_seconds=2.0)
    error = played.refused(TEXTS, EmbedderUnavailable)
    assert told in str(error)
    assert len(played.server.requests) <= 4, "none is tried again"
    assert error.vectors is not None
    assert np.allclose(error.vectors[:64], expected(TEXTS[:64]), atol=1e-6)
    assert not error.vectors[64:].any()
    before = len(played.server.requests)
    played.refused(TEXTS[70:80], EmbedderUnavailable)
    assert len(played.server.requests) == before, "it is left alone for a while"
    played.server.behaviour = sound
    threading.Event().wait(2.1)
    assert len(played.embedder.embed_documents(TEXTS)) == 200


@pytest.mark.litellm
def test_what_was_made_before_a_failure_is_not_made_again(play: Play) -> None:
    lock = threading.Lock()
    answered = itertools.count()

    def behave(asked: Request) -> Answer:
        with lock:
            return sound(asked) if next(answered) < 2 else failing("out of credits", 402)

    played = play(behave, rest_seconds=0.0)
    cached = CachedEmbedder(played.embedder)
    with pytest.raises(EmbedderUnavailable) as raised:
        cached.embed_documents(TEXTS)
    assert raised.value.vectors is not None
    done = int(raised.value.vectors.any(axis=1).sum())
    assert done in (72, 128)  # two batches
    played.server.behaviour = sound
    played.server.requests.clear()
    assert np.allclose(cached.embed_documents(TEXTS), expected(TEXTS), atol=1e-6)
    assert sum(played.server.sizes) == 200 - done


@pytest.mark.litellm
def test_a_question_does_not_wait_long(play: Play) -> None:
    played = play(lambda _: failing("Rate limit reached.", 429, None, retry_after="20"), query_seconds=5.0)
    with pytest.raises(EmbedderUnavailable):
        played.embedder.embed_query("where?")
    assert len(played.server.requests) == 1


def rows(texts: list[str]) -> list[list[float]]:
    found: list[list[float]] = HASH.embed_documents(texts).tolist()
    return found


@pytest.mark.litellm
def test_vectors_in_another_order_are_put_in_theirs(play: Play) -> None:
    played = play(lambda asked: numbered(list(reversed(list(enumerate(rows(texts_of(asked))))))))
    assert np.allclose(played.embedder.embed_documents(TEXTS[:9]), expected(TEXTS[:9]), atol=1e-6)


@pytest.mark.litellm
@pytest.mark.parametrize("index", [None, 0])
def test_vectors_without_numbers_are_in_order(play: Play, index: int | None) -> None:
    played = play(lambda asked: numbered([(index, row) for row in rows(texts_of(asked))]))
    assert np.allclose(played.embedder.embed_documents(TEXTS[:9]), expected(TEXTS[:9]), atol=1e-6)


@pytest.mark.litellm
@pytest.mark.parametrize(
    ("behave", "told"),
    [
        (lambda asked: vectors(texts_of(asked)[:-2]), "gave 7 vectors for 9 texts"),
        (lambda asked: vectors([*texts_of(asked), "more"]), "gave 10 vectors for 9 texts"),
        (lambda asked: numbered([]), "gave 0 vectors for 9 texts"),
        (
            lambda asked: numbered([*((5, row) for row in rows(texts_of(asked)[1:])), (6, [1.0] * DIMENSIONS)]),
            "some twice",
        ),
        (lambda asked: numbered([(n, [1.0] * (3 + n % 2)) for n in range(9)]), "not of one length ([3, 4])"),
        (lambda asked: numbered([(n, []) for n in range(9)]), "not of one length ([0])"),
    ],
    ids=["few", "many", "none", "numbers", "ragged", "empty"],
)
def test_an_answer_that_makes_no_sense_is_named_with_its_numbers(play: Play, behave: Behaviour, told: str) -> None:
    assert told in str(play(behave).refused(TEXTS[:9]))


@pytest.mark.litellm
@pytest.mark.parametrize("bad", [[0.0] * DIMENSIONS, [float("nan")] * DIMENSIONS, [float("inf")] + [0.0] * 7])
def test_a_row_that_is_no_vector_costs_that_text_alone(play: Play, bad: list[float]) -> None:
    played = play(
        lambda asked: numbered(list(enumerate([*rows(texts_of(asked))[:4], bad, *rows(texts_of(asked))[5:]])))
    )
    error = played.refused(TEXTS[:9])
    assert "no usable vector for 1 of 9 texts" in str(error)
    assert error.vectors is not None
    assert np.allclose(np.delete(error.vectors, 4, axis=0), np.delete(expected(TEXTS[:9]), 4, axis=0), atol=1e-6)
    assert not error.vectors[4].any()


@pytest.mark.litellm
def test_other_dimensions_than_before_are_named(play: Play) -> None:
    played = play()
    played.embedder.embed_documents(TEXTS[:3])
    played.server.behaviour = lambda asked: numbered([(n, [1.0] * 12) for n in range(len(texts_of(asked)))])
    assert f"vectors of 12 numbers, and of {DIMENSIONS} before" in str(played.refused(TEXTS[:3]))


@pytest.mark.litellm
def test_vectors_of_any_length_come_out_as_unit_vectors(play: Play) -> None:
    played = play(lambda asked: numbered([(n, [3.0, 4.0]) for n in range(len(texts_of(asked)))]))
    assert played.embedder.embed_documents(TEXTS[:2]) == pytest.approx(np.array([[0.6, 0.8]] * 2))


@pytest.mark.litellm
@pytest.mark.parametrize(
    ("model", "parameter", "document", "query"),
    [
        ("voyage/voyage-3.5", "input_type", "document", "query"),
        ("nvidia_nim/nv-embedqa-e5-v5", "input_type", "passage", "query"),
        ("jina_ai/jina-embeddings-v3", "task", "retrieval.passage", "retrieval.query"),
    ],
)
def test_providers_are_told_what_a_text_is_for(
    play: Play, model: str, parameter: str, document: str, query: str
) -> None:
    played = play(model=model)
    played.embedder.embed_documents(["a"])
    played.embedder.embed_query("a")
    assert [asked.body[parameter] for asked in played.server.requests] == [document, query]
    assert [texts_of(asked) for asked in played.server.requests] == [["a"], ["a"]]


@pytest.mark.litellm
def test_models_that_want_a_prefix_get_it(play: Play) -> None:
    played = play(model="openai/intfloat/multilingual-e5-small")
    played.embedder.embed_documents(["a"])
    played.embedder.embed_query("a")
    assert [texts_of(asked) for asked in played.server.requests] == [["passage: a"], ["query: a"]]
    assert played.embedder.reads("数据库")


@pytest.mark.litellm
@pytest.mark.parametrize("text", ["", " \n", "before \ud800 after", "a\x00b", "我昨天在上海买了一本书。" * 1_000])
def test_odd_texts_get_a_vector(play: Play, text: str) -> None:
    def behave(asked: Request) -> Answer:
        blank = any(not text.strip() for text in texts_of(asked))
        return failing("input cannot be an empty string") if blank else vectors(texts_of(asked))

    assert np.linalg.norm(play(behave).embedder.embed_query(text)) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.litellm
def test_the_key_goes_to_the_address_and_nowhere_else(play: Play) -> None:
    played = play()
    played.embedder.embed_query("a")
    (asked,) = played.server.requests
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.path == "/v1/embeddings"


@pytest.mark.litellm
def test_many_questions_are_asked_on_one_connection(play: Play) -> None:
    played = play()
    for number in range(20):
        played.embedder.embed_query(f"question {number}, 问题")
    assert len(played.server.requests) == 20
    assert len({asked.client_port for asked in played.server.requests}) == 1


def test_another_address_is_another_model() -> None:
    here = LiteLLMEmbedder("openai/any", api_base="http://here/v1")
    assert here.fingerprint == LiteLLMEmbedder("openai/any", api_base="http://here/v1/", api_key="x").fingerprint
    assert here.fingerprint != LiteLLMEmbedder("openai/any", api_base="http://there/v1").fingerprint
    assert here.fingerprint != LiteLLMEmbedder("openai/other", api_base="http://here/v1").fingerprint


def test_a_missing_package_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(EmbedderUnavailable, match=r'needs the package litellm.*pip install "memory-service\[llm\]"'):
        LiteLLMEmbedder("openai/any").embed_query("a")


def test_making_one_loads_nothing() -> None:
    code = (
        "import sys; from indexer import LiteLLMEmbedder; e = LiteLLMEmbedder('openai/any'); "
        "e.dimensions, e.fingerprint, e.reads('数据'); raise SystemExit('litellm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, env={**os.environ}).returncode == 0
