from __future__ import annotations

import pytest

from memory_service.text.phrases import clean, statement_lines

SPLIT: dict[str, list[list[str]]] = {
    "One. Two! Three?": [["One.", "Two!", "Three?"]],
    "It took 3.5 h, e.g. on v1.2.3. Then Dr. Berg came.": [["It took 3.5 h, e.g. on v1.2.3.", "Then Dr. Berg came."]],
    "第一句。第二句！第三句？": [["第一句。", "第二句！", "第三句？"]],
    "- one\n2. two\n> three": [["one"], ["two"], ["three"]],
    "before\n```\ncode\n```\nafter": [["before"], ["after"]],
    "| a | b |": [],
    "See [the plan](https://example.com/p). [shares a map: Bergen]": [
        ["See the plan (https://example.com/p).", "[shares a map: Bergen]"]
    ],
}
CLEAN = {
    "Wow, Ingrid! We sold it.": "We sold it.",
    "Hey Tom, well, yeah, so, we sold it, Ingrid!": "we sold it!",
    "So tired of it": "So tired of it",
    "No problem with that port": "No problem with that port",
    "Thanks, Ing!": "",
    "Thanks, Ingrid!": "",
    "好的，没问题，端口是 9090。": "端口是 9090。",
    "对了，李雷，我卖了车": "李雷，我卖了车",
    "真好，我卖了车，李雷！": "我卖了车！",
    "可以用 Go 写": "可以用 Go 写",
    "we **must** ship 🎉": "we must ship 🎉",
}


@pytest.mark.parametrize("text", SPLIT)
def test_split_lines(text: str) -> None:
    assert statement_lines(text) == SPLIT[text]


@pytest.mark.parametrize("text", CLEAN)
def test_clean(text: str) -> None:
    assert clean(text, ("Ingrid", "李雷")) == CLEAN[text]
