from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.embeddings.litellm import Limits, estimated_tokens
from indexer.providers.errors import EmbeddingFailure, FailureKind
from tests.growth import at_most_readings

texts = st.lists(st.text("ab 字", max_size=300) | st.builds(lambda n: "word " * n, st.integers(0, 9_000)), max_size=150)
failures = st.builds(
    EmbeddingFailure,
    kind=st.sampled_from(["items", "request", "text"]),
    limit=st.none() | st.integers(1, 5_000),
    given=st.none() | st.integers(1, 5_000),
)


def test_tokens_are_estimated_with_cjk_in_mind() -> None:
    assert [estimated_tokens(text) for text in ("", "a", "four", "fives", "数据库", "ab数")] == [1, 1, 1, 2, 3, 2]


@given(texts)
def test_every_place_is_in_one_batch_and_in_order(texts: list[str]) -> None:
    batches = list(Limits().batches(texts))
    assert [place for batch in batches for place in batch] == list(range(len(texts)))
    for batch in batches:
        assert len(batch) <= 64
        assert len(batch) == 1 or sum(estimated_tokens(texts[place]) for place in batch) <= 32_000


@given(texts.filter(len), failures)
def test_what_was_refused_is_sent_in_another_way_or_not_learned(texts: list[str], failure: EmbeddingFailure) -> None:
    limits = Limits()
    sent = texts[: len(next(limits.batches(texts)))]
    if limits.learn(failure, sent):
        cut = [limits.truncate(text) for text in sent]
        assert len(list(limits.batches(sent))) > 1 or cut != sent
        assert all(text.startswith(short) for text, short in zip(sent, cut, strict=True))


@pytest.mark.parametrize("kind", ["text", "request"])
@pytest.mark.parametrize("text", ["word " * 20_000, "数据库" * 9_000, "a" * 90_000 + "数" * 9_000])
def test_learning_comes_to_an_end(kind: FailureKind, text: str) -> None:
    limits = Limits()
    lengths = []
    while limits.learn(EmbeddingFailure(kind=kind), [text]):
        text = limits.truncate(text)
        lengths.append(len(text))
    assert lengths == sorted(set(lengths), reverse=True)
    assert 16 <= lengths[-1] <= 32 and len(lengths) < 30


def test_numbers_are_taken_in_the_proportion_of_the_estimate() -> None:
    limits = Limits()
    text = "{}[]" * 1_000  # 1,000 tokens by our estimate, 4,000 by the provider's
    assert limits.learn(EmbeddingFailure(kind="text", limit=2_000, given=4_000), [text])
    assert 440 <= estimated_tokens(limits.truncate(text)) <= 450
    assert limits.truncate("short") == "short"


def test_a_limit_only_goes_down() -> None:
    limits = Limits()
    assert limits.learn(EmbeddingFailure(kind="items", limit=8), ["a"] * 64)
    assert limits.learn(EmbeddingFailure(kind="items", limit=16), ["a"] * 20)
    assert {len(batch) for batch in limits.batches(["a"] * 64)} == {8}


def test_a_text_of_a_megabyte_is_cut_in_no_time() -> None:
    limits = Limits()
    limits.learn(EmbeddingFailure(kind="text", limit=512), ["word " * 1_000])
    with at_most_readings(40):
        assert estimated_tokens(limits.truncate("数" + "a" * 1_000_000)) <= 512
