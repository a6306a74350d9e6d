from __future__ import annotations

import pytest

from indexer.engine.search import AskedQuestion, is_echo


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where is the spare key?", "Where is the spare key?"),
        ("who could feed the cat over New Year", "who could feed the cat over New Year"),
        ("Where is the spare key?", "Do you know where the spare key is?"),
        ("Draft a note telling the customer when it comes.", "Draft a note telling the customer when it comes"),
        ("wer könnte nach den beiden Katzen sehen", "wer könnte nach den zwei Katzen sehen"),
        ("备用钥匙放在哪里？", "备用钥匙放在哪里"),
        ("合鍵はどこにありますか？", "合鍵はどこにありますか？"),
        ("여분 열쇠는 어디에 있어?", "여분 열쇠는 어디에 있어?"),
    ],
)
def test_what_asks_the_same_is_an_echo(question: str, text: str) -> None:
    assert is_echo(AskedQuestion(question), text, is_typed=True)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where is the spare key?", "The spare key is in the blue pot."),
        ("Does the server run on port 8080?", "The server runs on port 8080."),
        ("服务器跑在8080端口吗？", "服务器跑在8080端口"),
        ("Where is the spare key?", "Where is the invoice of the plumber?"),
        ("Where is the spare key?", "Where is the spare key? I put it into the blue pot."),
        ("Which day do we ship?", "We ship on Wednesdays, don't we?"),
    ],
)
def test_what_tells_is_none(question: str, text: str) -> None:
    assert not is_echo(AskedQuestion(question), text, is_typed=True)


def test_a_line_of_a_file_is_one_only_if_it_asks() -> None:
    assert not is_echo(AskedQuestion("the spare key"), "The spare key", is_typed=False)
    assert is_echo(AskedQuestion("the spare key"), "The spare key", is_typed=True)
    assert is_echo(AskedQuestion("where is the spare key"), "Where is the spare key?", is_typed=False)


def test_a_long_piece_of_a_question_is_one() -> None:
    piece = " ".join(f"word{number}" for number in range(60))
    assert is_echo(AskedQuestion(f"Please sum up: {piece}. Thanks."), piece, is_typed=True)
    assert not is_echo(AskedQuestion("Please sum up the minutes."), piece, is_typed=True)
