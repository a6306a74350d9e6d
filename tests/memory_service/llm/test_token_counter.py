"""Exact counts: with the vocabularies of litellm's package where it is installed, and with none."""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.llm import token_counter
from memory_service.llm.token_counter import _is, _Remembered, exact_counter
from memory_service.messages.sizes import count_tokens
from tests.growth import at_most_readings

INSTALLED = importlib.util.find_spec("litellm") is not None


class Words:
    """An encoding that has a token for each word, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked = list[str]()

    def encode(self, text: str) -> list[int]:
        self.asked.append(text)
        return [len(word) for word in text.split()]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail whatever asks for an address, and start without anything loaded."""

    def refused(*args: object, **kwargs: object) -> object:
        raise AssertionError(f"no network: {args!r}")

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    token_counter._counter.cache_clear()
    yield
    token_counter._counter.cache_clear()


@pytest.mark.parametrize(
    "model", ["", "any", "openai/any", "claude-haiku-4-5", "gemini/gemini-2.5-pro", "通义千问", "gpt2", "davinci-002x"]
)
def test_models_without_a_tokenizer_at_hand_have_no_counter(model: str) -> None:
    assert exact_counter(model) is None


@pytest.mark.skipif(INSTALLED, reason="litellm is there")
def test_without_the_package_there_is_none() -> None:
    assert exact_counter("gpt-4o") is None


@pytest.mark.litellm
@pytest.mark.parametrize("broken", [b"", b"bm90IGE=\n"])
def test_a_vocabulary_that_is_not_what_it_should_be_is_not_loaded(
    broken: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / token_counter._VOCABULARIES["cl100k_base"][0]
    if broken:
        file.write_bytes(broken)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert exact_counter("gpt-4") is None
    assert file.exists() == bool(broken)


@pytest.mark.litellm
@pytest.mark.parametrize(
    ("model", "text", "tokens"),
    [
        ("gpt-4o", "hello world", 2),
        ("openai/gpt-4o-mini", "hello world", 2),
        ("azure/gpt-4", "hello world", 2),
        ("gpt-oss-120b", "hello world", 2),
        ("gpt-4o", "", 0),
        ("gpt-4o", "<|endoftext|>", 7),
        ("gpt-4", "浇水", 3),
        ("gpt-4o", "\ud800", 1),
    ],
)
def test_counts(model: str, text: str, tokens: int) -> None:
    count = exact_counter(model)
    assert count is not None
    assert count(text) == tokens


@pytest.mark.litellm
def test_the_setting_stays_as_litellm_would_leave_it() -> None:
    assert exact_counter("gpt-4o") is not None
    folder = Path(os.environ["TIKTOKEN_CACHE_DIR"])
    assert folder.parts[-3:] == ("litellm", "litellm_core_utils", "tokenizers")


@pytest.mark.litellm
@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300))
def test_no_text_fails_and_none_has_more_tokens_than_bytes(text: str) -> None:
    count = exact_counter("gpt-4o")
    assert count is not None
    assert (not text) == (count(text) == 0)
    assert count(text) <= len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.litellm
@pytest.mark.parametrize("piece", ["a", " ", "\n", "aA", "^", "浇水", "0"])
def test_a_million_hostile_characters_take_no_time(piece: str) -> None:
    count = exact_counter("gpt-4o")
    assert count is not None
    with at_most_readings(500):
        assert count(piece * (1_000_000 // len(piece))) > 0


@pytest.mark.litellm
def test_the_estimate_is_not_far_off() -> None:
    count = exact_counter("gpt-4o")
    assert count is not None
    for text in ("Deploys go out on Tuesdays after the stand-up. ", "每周二站会之后部署，浇水系统先于灯光。"):
        assert 0.6 < count(text * 20) / count_tokens(text * 20) < 2.5


def test_a_text_is_counted_once() -> None:
    words = Words()
    remembered = _Remembered(words.encode)
    assert [remembered.count("one two"), remembered.count("浇 水 \ud800"), remembered.count("one two")] == [2, 3, 2]
    remembered.count("浇 水 ?")
    assert words.asked == ["one two", "浇 水 \ud800", "浇 水 ?"]


@pytest.mark.parametrize("text", ["浇水 " * 40_000, "a" * 50_000, "b" * 50_001])
def test_long_texts_are_counted_in_pieces(text: str) -> None:
    words = Words()
    _Remembered(words.encode).count(text)
    assert "".join(words.asked) == text
    assert max(map(len, words.asked)) == 50_000


@pytest.mark.litellm
@pytest.mark.parametrize(
    "piece", ["the quick brown fox; ", "浇水系统每周二检查一次。", "def add(a, b):\n    return a + b\n"]
)
def test_the_pieces_of_a_long_text_add_up(piece: str) -> None:
    count = exact_counter("gpt-4o")
    assert count is not None
    short = piece * (50_000 // len(piece))
    assert abs(count(short * 4) - 4 * count(short)) <= 4 * 4


def test_what_is_remembered_is_bounded_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_counter, "_REMEMBERED", 3)
    words = Words()
    remembered = _Remembered(words.encode)
    for text in ("a", "b", "c", "a", "d", "a", "b"):
        remembered.count(text)
    assert words.asked == ["a", "b", "c", "d", "b"]
    assert len(remembered._counts) == 3


def test_several_threads_may_count() -> None:
    remembered = _Remembered(Words().encode)
    wrong = list[int]()

    def work() -> None:
        for size in range(1, 300):
            if (count := remembered.count("w " * size)) != size:
                wrong.append(count)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_file_is_held_against_its_digest(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert _is(tmp_path / "file", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    assert not _is(tmp_path / "file", "0" * 64)
    assert not _is(tmp_path / "none", "0" * 64)
