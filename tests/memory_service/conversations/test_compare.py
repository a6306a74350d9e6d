"""Lists of clients are read as far as they are new."""

from __future__ import annotations

from typing import Any

from memory_service.conversations.compare import ShownDigests, alike, read_list
from memory_service.messages.reading import read_messages

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 200}}
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "When do we deploy?"},
    {"role": "assistant", "content": "On Tuesdays."},
    {"role": "user", "content": [{"type": "text", "text": "What is it?"}, PICTURE]},
    {"role": "assistant", "content": "A cat."},
]


def copied(talk: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The talk as the next call brings it: the same words in other objects."""
    return [dict(message) for message in talk]


def test_what_was_sent_before_is_not_read_again() -> None:
    first = read_list(copied(TALK))
    second = read_list([*copied(TALK), {"role": "user", "content": "Thanks."}], first)
    assert [one is other for one, other in zip(first, second, strict=False)] == [True, True, False, True]
    assert first[2].sent_message is None, "bytes of media are not kept"
    assert [each.comparison.digest for each in first if each.comparison] == [
        each.comparison.digest for each in second[:4] if each.comparison
    ]


def test_what_was_changed_is_read_anew() -> None:
    first = read_list(copied(TALK))
    changed = copied(TALK)
    changed[1]["content"] = "On Wednesdays."
    second = read_list(changed, first)
    assert second[0] is first[0] and second[1] is not first[1] and second[3] is first[3]
    assert second[1].shown_forms != first[1].shown_forms


def test_a_view_is_what_the_client_sent_or_not() -> None:
    digests, given = ShownDigests(), [shown for each in read_list(TALK[:2]) for shown in each.shown_forms]
    view = read_messages(TALK[:2])
    assert alike([digests.of(each) for each in view], given)
    assert digests.of(view[0]) is digests.of(view[0])
    assert not alike([digests.of(each) for each in view[:1]], given)
