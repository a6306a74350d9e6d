from __future__ import annotations

from typing import Any, cast

import pytest

from memory_service.messages.shapes import Message, is_empty, media_parts_of, text_of, with_text, without_thinking
from tests.memory_service.messages.shared import IMAGE_URL, PDF, THINKING, read, text, tool_call


def test_text_and_media() -> None:
    (message,) = read(
        {"role": "user", "content": [text("one"), IMAGE_URL, text("two"), {"type": "document", "source": PDF}]}
    )
    assert text_of(message) == "one\ntwo"
    assert [part["type"] for part in media_parts_of(message)] == ["image_url", "document"]
    assert with_text(message, "cut")["content"] == [text("cut"), IMAGE_URL, {"type": "document", "source": PDF}]
    assert text_of(message) == "one\ntwo"


@pytest.mark.parametrize("content", ["", " \n", [], [text(" ")], None])
def test_messages_that_say_nothing(content: Any) -> None:
    assert is_empty({"role": "assistant", "content": content, "thinking_blocks": [cast(Any, THINKING)]})
    assert not is_empty(cast(Message, {"role": "assistant", "content": content, "tool_calls": [tool_call()]}))


def test_without_thinking_nothing_changes_where_there_is_none() -> None:
    message: Message = {"role": "assistant", "content": "hi"}
    assert without_thinking(message) is message
