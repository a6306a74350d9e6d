"""Markdown as HTML that cannot do anything: no HTML of its own, no pictures, links to places of the web alone."""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

_LINKS = ("http://", "https://", "mailto:")


def to_html(text: str, first: int | None = None) -> str:
    """Markdown as HTML, each block with the number of its first line, if `first` is that of the text."""
    reader = _reader()
    tokens = reader.parse(text)
    for token in tokens:
        if first is not None and token.map and token.nesting == 1:
            token.attrSet("id", f"L{token.map[0] + first}")
        for child in token.children or ():
            _make_safe(child)
    html: str = reader.renderer.render(tokens, reader.options, {})
    return html


def outline_of(text: str, first: int = 1) -> list[tuple[int, int, str]]:
    """The headings of a text: level, line, and words; `first` is the line of the first one."""
    tokens = _reader().parse(text)
    return [
        (int(token.tag[1]), token.map[0] + first, tokens[at + 1].content)
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.map
    ]


@cache
def _reader() -> MarkdownIt:
    # Comments of entries are told beside them, so HTML is text here, and shown as such.
    reader = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
    # What stands in a note says which level a heading has, not what it is on this page.
    return reader


def _make_safe(token: Token) -> None:
    if token.type == "link_open":
        address = str(token.attrGet("href") or "")
        if not address.lower().startswith(_LINKS):
            token.attrs.pop("href", None)
        token.attrSet("rel", "noopener noreferrer nofollow")
