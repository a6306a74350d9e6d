from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.messages.sizes import count_tokens, estimate_tokens, message_tokens
from tests.evals.scripts import load


def _digest(at: int) -> str:
    return hashlib.sha256(str(at).encode()).hexdigest()


def _row(at: int) -> dict[str, object]:
    return {
        "id": _digest(at)[:12],
        "user": f"u-{at * 37}",
        "total": at * 13.37,
        "paid": at % 3 == 0,
        "tags": ["a", "b7"],
    }


def _line(at: int) -> str:
    moment = f"2026-11-{at % 28 + 1:02d}T{at % 24:02d}:17:{at % 60:02d}.{at * 7 % 1000:03d}Z"
    return f"{moment} WARN [pool-{at}] GET /v1/items/{at * 91}?page={at} 504 {at * 113}ms"


def _passages(script: str) -> str:
    return "\n".join(pair.answer for pair in load(script).pairs)


_PYTHON = '''
class Shelf:
    """Books of one shelf, by their numbers."""

    def __init__(self, width_cm: float, *, books: Sequence[Book] = ()) -> None:
        self._width_cm = width_cm
        self._books = {book.number: book for book in books}

    def put(self, book: Book) -> bool:
        """Put a book on the shelf; tells whether there was room."""
        taken = sum(each.thickness_cm for each in self._books.values())
        if taken + book.thickness_cm > self._width_cm:
            return False
        self._books[book.number] = book
        return True

    def __iter__(self) -> Iterator[Book]:
        yield from sorted(self._books.values(), key=lambda book: (book.author.lower(), book.year))
'''
_SCRIPT = """
export async function loadShelf(id, { signal, retries = 3 } = {}) {
  const url = new URL(`/v1/shelves/${encodeURIComponent(id)}`, window.location.origin);
  for (let attempt = 0; attempt <= retries; attempt++) {
    const response = await fetch(url, { headers: { accept: "application/json" }, signal });
    if (response.ok) return (await response.json()).books.map((book) => ({ ...book, isLent: Boolean(book.lentTo) }));
    if (response.status < 500) throw new HttpError(response.status, await response.text());
    await new Promise((resolve) => setTimeout(resolve, 200 * 2 ** attempt));
  }
  throw new Error(`shelf ${id} is not available`);
}
"""
_ENGLISH = """
The library moved its oldest books to the cellar in spring, because the roof of the reading room had begun to
leak. Since then whoever wants to read one of them has to ask at the desk, and somebody goes down with a lamp
and brings it up. Most visitors do not mind the wait; a few have asked for a chair down there. The woman at
the desk says that the cellar is dry and that the books like it better than the light upstairs. In autumn the
roof will be mended, and then it has to be decided whether they come back at all, or whether the room becomes
one for children, as the school across the street has wished for a long time.
"""

# What o200k_base counts of each.
TEXTS: dict[str, tuple[Callable[[], str], int]] = {
    "json": (lambda: json.dumps([_row(at) for at in range(60)]), 2_740),
    "json, tight": (lambda: json.dumps([_row(at) for at in range(60)], separators=(",", ":")), 2_141),
    "json, indented": (lambda: json.dumps([_row(at) for at in range(60)], indent=2), 3_521),
    "logs": (lambda: "\n".join(map(_line, range(60))), 2_319),
    "hex": (lambda: "\n".join(map(_digest, range(40))), 1_507),
    "base64": (lambda: base64.b64encode(bytes.fromhex("".join(map(_digest, range(60))))).decode(), 1_721),
    "python": (lambda: _PYTHON, 172),
    "javascript": (lambda: _SCRIPT, 167),
    "diff": (
        lambda: "".join(f"{'+- '[at % 3]}{line}" for at, line in enumerate(_PYTHON.splitlines(keepends=True))),
        182,
    ),
    "english": (lambda: _ENGLISH, 147),
    "cyrillic": (lambda: _passages("cyrillic"), 1_150),
    "greek": (lambda: _passages("greek"), 1_494),
    "arabic": (lambda: _passages("arabic"), 974),
    "devanagari": (lambda: _passages("devanagari"), 1_120),
    "hebrew": (lambda: _passages("hebrew"), 1_071),
    "thai": (lambda: _passages("thai"), 1_186),
    "hangul": (lambda: _passages("hangul"), 1_072),
    "han": (lambda: _passages("han"), 821),
    "lao": (lambda: _passages("lao"), 1_639),
    "burmese": (lambda: _passages("burmese"), 687),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_an_estimate_is_within_a_fifth_of_what_a_tokenizer_counts(kind: str) -> None:
    text, counted = TEXTS[kind]
    assert 0.8 <= estimate_tokens(text()) / counted <= 1.2


def test_most_estimates_are_within_an_eighth() -> None:
    off = [abs(estimate_tokens(text()) / counted - 1) for text, counted in TEXTS.values()]
    assert sum(each <= 0.125 for each in off) >= 0.8 * len(off)


@given(st.text(st.sampled_from("abc Xyz,.\n"), max_size=400))
def test_prose_is_never_taken_for_less_than_characters_by_four(text: str) -> None:
    assert estimate_tokens(text) >= (len(text) - text.count("    ") * 4) // 4


@given(st.lists(st.text(max_size=200), max_size=6))
def test_parts_come_to_about_the_whole(parts: list[str]) -> None:
    whole, apart = estimate_tokens("".join(parts)), sum(map(estimate_tokens, parts))
    # A border is counted once or not at all, and each part is rounded up.
    assert abs(whole - apart) <= 4 * len(parts)


def test_a_very_long_text_is_estimated_by_slices_of_it() -> None:
    text = "".join(f"{_line(at)}\n{_ENGLISH}" for at in range(400))
    parts = sum(estimate_tokens(text[at : at + 20_000]) for at in range(0, len(text), 20_000))
    assert 0.95 <= estimate_tokens(text) / parts <= 1.05


def test_lone_surrogates_are_estimated_too() -> None:
    assert estimate_tokens("\ud800" * 10) > 0


def test_a_budget_is_counted_by_characters_and_a_window_by_estimate() -> None:
    text = TEXTS["hex"][0]()
    assert count_tokens(text) == -(-len(text) // 4)
    assert message_tokens({"role": "user", "content": text}) == estimate_tokens(text) + 4
