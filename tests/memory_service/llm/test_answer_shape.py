from __future__ import annotations

import pytest

from memory_service.llm.answer_shape import is_opening, unwrapped_answer


@pytest.mark.parametrize(
    "last",
    ["Thanks to Kim, billing moved to Tuesday.", "I will send the invoice on Friday.", "Good night shift: 42 €."],
)
def test_a_last_line_that_names_something_is_no_farewell(last: str) -> None:
    assert unwrapped_answer(f"## Goal\n- Ship it.\n\n{last}").endswith(last)
    assert unwrapped_answer("## Goal\n- Ship it.\n\nLet me know if you need changes!").endswith("- Ship it.")


def test_a_sentence_without_spaces_before_the_headings_is_no_opening() -> None:
    assert not is_opening("李雷对花生过敏，点菜先问他。")
    assert is_opening("好的：") and is_opening("Sure!")
