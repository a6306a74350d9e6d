"""Every kind of handle leads to its original, whole, in pieces that one answer can hold."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from memory_service.errors import InvalidName, InvalidRequest, NotFound
from memory_service.runtime.handles import read_handle
from memory_service.service import MemoryService
from tests.serving import settings

RULE = "发布只在周二进行，周五不发布。"
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 3000).decode()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as made:
        yield made


def said(service: MemoryService, session_id: str, *contents: object) -> int:
    """Messages of a user; gives the number of the first one."""
    messages = [{"role": "user", "content": content} for content in contents]
    store = service.sessions("default", make=True).store
    return store.append(session_id, messages).first_seq


def whole(service: MemoryService, handle: str) -> tuple[str, int]:
    """A text read to its end, and in how many pieces."""
    pieces, following = list[str](), handle
    while following:
        found = service.original("default", following)
        pieces.append(found.text)
        following = found.next_handle or ""
    return "".join(pieces), len(pieces)


def test_lines_of_a_file_and_their_memories(service: MemoryService) -> None:
    first = service.remember("default", RULE)
    second = service.remember("default", "Deploys go out on Tuesdays.")
    of_file = service.original("default", first.path)
    assert RULE in of_file.text and of_file.memory_ids == (first.memory_id, second.memory_id)
    line = service.original("default", f"{first.path}#L{first.start_line}")
    assert (line.text.strip(), line.memory_ids) == (f"- {RULE}", (first.memory_id,))
    assert line.place == f"{first.path}#L{first.start_line}"
    both = service.original("default", f"{first.path}#L1-L{second.end_line}")
    assert both.text == of_file.text


def test_an_item_that_a_person_wrote_has_the_id_that_forgets_it(service: MemoryService) -> None:
    service.put("default", "memory/2026-11-20.md", f"# 2026-11-20\n\n- {RULE}\n", if_none_match=True)
    (memory_id,) = service.original("default", "memory/2026-11-20.md").memory_ids
    assert service.forget("default", memory_id).paths == ["memory/2026-11-20.md"]


def test_what_a_search_names_is_found_again(service: MemoryService) -> None:
    seq = said(service, "support-42", RULE)
    assert service.original("default", f"sessions/support-42.jsonl#L{seq}").text == RULE
    assert service.original("default", f"log:{seq}").text == RULE
    assert service.original("default", f" log:{seq} ", session_id="support-42").title == f"support-42, message {seq}"


def test_a_range_says_who_said_what(service: MemoryService) -> None:
    seq = said(service, "one", "你好", "我叫韩梅梅。", "再见")
    found = service.original("default", f"log:{seq}-{seq + 1}")
    assert found.text == f"log:{seq} user: 你好\n\nlog:{seq + 1} user: 我叫韩梅梅。"
    assert found.place == f"sessions/one.jsonl#L{seq}-L{seq + 1}"
    assert service.original("default", "sessions/one.jsonl").text.endswith(f"log:{seq + 2} user: 再见")


def test_a_medium_is_given_back(service: MemoryService) -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    seq = said(service, "one", [{"type": "text", "text": "看这张图"}, image])
    found = service.original("default", f"log:{seq}#1")
    assert found.media == (base64.b64decode(PIXEL), "image/png")
    assert PIXEL not in service.original("default", f"log:{seq}").text
    with pytest.raises(NotFound, match="1 media, and none with the number 2"):
        service.original("default", f"log:{seq}#2")


def test_a_handle_needs_its_session_where_there_are_several(service: MemoryService) -> None:
    seq = said(service, "one", "from one")
    said(service, "two", "from two")
    with pytest.raises(InvalidRequest, match=r"there are 2 sessions; the last active are .*Name its session"):
        service.original("default", f"log:{seq}")
    assert service.original("default", f"log:{seq}", session_id="two").text == "from two"
    assert service.original("default", f"sessions/one.jsonl#L{seq}", session_id="two").text == "from one"


@pytest.mark.parametrize("size", [31_999, 32_000, 32_001, 100_000])
def test_a_long_message_comes_in_pieces(service: MemoryService, size: int) -> None:
    text = "记忆" * (size // 2) + "x" * (size % 2)
    seq = said(service, "one", text)
    assert whole(service, f"log:{seq}") == (text, -(-size // 32_000))


def test_a_long_file_comes_in_pieces(service: MemoryService) -> None:
    text = "".join(f"- line {number} 第{number}行\n" for number in range(1, 2_001))
    service.put("default", "memory/long.md", text, if_none_match=True)
    given, pieces = whole(service, "memory/long.md")
    assert given == text and pieces > 1
    part = "".join(text.splitlines(keepends=True)[99:1_900])
    assert whole(service, "memory/long.md#L100-L1900")[0] == part


def test_many_messages_come_in_pieces(service: MemoryService) -> None:
    seq = said(service, "one", *(f"message {number}" for number in range(450)))
    for handle in ("sessions/one.jsonl", f"log:{seq}-{seq + 449}"):
        text, pieces = whole(service, handle)
        assert pieces == 3 and all(f"message {number}" in text for number in range(450))


@pytest.mark.parametrize(
    ("handle", "error"),
    [
        ("", InvalidRequest),
        ("log:0", InvalidRequest),
        ("log:9-2", InvalidRequest),
        ("log:999999", NotFound),
        ("log:x", InvalidName),
        ("memory/2026-11-20.md#L9-L2", InvalidRequest),
        ("../secret.md", InvalidName),
        ("sessions/../secret.jsonl", InvalidName),
        ("sessions/no-such.jsonl#L1", NotFound),
        ("sessions/a%2Fb.jsonl#L1", InvalidName),
        ("memory/2020-01-01.md", NotFound),
        ("#C12", InvalidName),
    ],
)
def test_what_leads_nowhere_is_said(service: MemoryService, handle: str, error: type[Exception]) -> None:
    said(service, "one", "x")
    with pytest.raises(error):
        service.original("default", handle)


def test_a_handle_is_read_without_regard_to_its_dash() -> None:
    assert read_handle("log:3–9").last == read_handle("log:3-9").last == 9
    assert read_handle("memory/a.md#L3-9").last == 9
