"""Markup: stretches of a message that are written in HTML, XML, BBCode or LaTeX, and fenced code. Pure.

Invariants: linear; a stretch begins and ends at a tag, or ends with the text where something was cut off; what stands
between two stretches that are no whole documents belongs to them; a tag that is only spoken of, and one that sets a few
words in bold, are no markup.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from indexer.common.patterns import lazy_regex
from indexer.common.scripts import HAN, HANGUL, KANA
from indexer.language.tables import ANY

# An angle bracket as it is, or as an entity, escaped once or more.
_LESS: Final = r"(?:<|&(?:amp;){0,4}(?:lt|\#0{0,6}60|\#x0{0,6}3c);|\\u003c)"
_MORE: Final = r"(?:>|&(?:amp;){0,4}(?:gt|\#0{0,6}62|\#x0{0,6}3e);|\\u003e)"
_NAME: Final = r"[A-Za-z][\w.:-]{0,60}"
_TAG = lazy_regex(
    rf"""(?ix)
      (?P<skip><!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z))
    | (?P<special><[!?][a-z][^<>]{{0,2000}}>)
    | (?P<tag>{_LESS}\s?(?P<close>/?)(?P<name>{_NAME})
        (?P<rest>(?:(?=[\s/>&\\])(?:[^<>"'&\\]|"[^"<]{{0,2000}}"|'[^'<]{{0,2000}}'|["']|(?!{_MORE})[&\\])*+)){_MORE})
    | (?P<open>{_LESS}(?P<cut>{_NAME})\s+[\w:-]{{1,40}}\s?=)
    | \[(?P<bclose>/?)(?P<bname>quote|code|url|img|size|colou?r|font|list|cent(?:er|re)|spoiler|pre|php|html
        |noparse|table|tr|td|email|left|right|indent|[bius])(?:[=\s][^\[\]\n]{{0,300}})?\]
    | \\(?P<lside>begin|end)\{{(?P<lname>[a-z]{{1,40}})\*?\}}""",
    re.DOTALL,
)
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_DOCUMENTS = frozenset("html article body main document page rss feed svg quote blockquote pre code".split())
_EMPHASIS = frozenset("b i u s em strong mark code kbd sub sup small big q".split())
# What stands behind these goes on with them: they hold no more than a title or a picture.
_HEADS = frozenset("h1 h2 h3 h4 h5 h6 title header nav br hr img meta link time small label a b i u em strong".split())
_KNOWN = _VOID | _DOCUMENTS | _EMPHASIS | _HEADS | frozenset(
    "p div span section aside footer ul ol li dl dt dd table thead tbody tr td th caption form button select option"
    " textarea iframe script style head noscript template figure figcaption details summary center font marquee"
    " address abbr cite del ins audio video canvas object content text web email mail message output result data item"
    " entry node note memo post comment system instructions instruction rules rule context user assistant tool".split()
)  # fmt: skip
# "use the <b> tag": a tag that a sentence speaks of.
_SPOKEN_BEFORE = lazy_regex(r"[\w,，、)][^\S\n]{1,3}[\"'`“「]?\Z|[一-鿿][\"'`“「]?\Z|`\Z")
_SPOKEN_AFTER = lazy_regex(
    r"[\"'`”」]?(?:[^\S\n]+(?:[a-z\d&(+/<>—–-]|\Z)|[.,;:!?)、，。；：！？]|\s*\Z|`"
    rf"|\s*(?:{ANY.authorship.tag_words}))"
)
_HAN_RUN = f"[{HAN}{KANA}{HANGUL}]"
_LETTER = f"(?!{_HAN_RUN})[^\\W\\d_]"
_WORD = lazy_regex(rf"(?P<han>{_HAN_RUN})|(?:{_LETTER}){{2,}}(?:['’-](?:{_LETTER})+)*|\b[aiAI]\b")
_PROSE_CHARS: Final = 20_000
# A letter or a digit, and the small pictures that people write for words.
_WORD_SIGN = lazy_regex("[^\\W_]|[\u2600-\u27bf\U0001f000-\U0001faff]")
_IMAGE = lazy_regex(
    r"!\[\[[^\]\n]{0,2000}\]\]|!\[(?P<alt>[^\]\n]{0,2000})\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\]\n]*\])"
)
# A link around nothing, a data URI, an entity, the name of a block.
_NOTHING_SAID = lazy_regex(r"\[\s*\]\([^()\n]*\)|\bdata:[\w/+.;=-]{1,80},\S*|&#?\w{1,10};|^\s*\^[\w-]+\s*$")
_HTML_TAG = lazy_regex(r"</?([A-Za-z][A-Za-z0-9]*)(?:\s[^<>]*)?/?>")
_HTML_NAMES = frozenset(
    "a b i u p br hr img wbr input source track embed iframe video audio picture svg canvas object param div span "
    "center font table thead tbody tr td th sup sub em strong figure figcaption details summary section article "
    "header footer nav main ul ol li dl dt dd h1 h2 h3 h4 h5 h6 script style".split()
)
_DATA = lazy_regex(r"(\bdata:[\w/+.;=-]{1,80};base64,)[A-Za-z0-9+/=%_-]{64,}")
_FEWEST_OF_ALT: Final = 3
_HAN_PER_WORD: Final = 1.6
_GOES_ON = lazy_regex(rf"\s*\Z|{ANY.authorship.goes_on}", re.IGNORECASE)


@dataclass(slots=True)
class _Root:
    """An element that no other one holds."""

    start: int
    end: int
    name: str


def has_words(text: str) -> bool:
    """True if a text says something: not only pictures, embeds, tags, data or drawings.

    What is written in the place of a picture counts if it is a sentence rather than a name.
    """
    if "![" in text:
        text = _IMAGE.sub(_said_of_image, text)
    if "<" in text and "`" not in text:
        text = _HTML_TAG.sub(lambda tag: "" if tag[1].lower() in _HTML_NAMES else tag[0], text)
    if "](" in text or "data:" in text or "&" in text or "^" in text:
        text = _NOTHING_SAID.sub("", text)
    return _WORD_SIGN.search(text) is not None


def _said_of_image(image: re.Match[str]) -> str:
    text = image["alt"] or ""
    words = 0.0
    for match in _WORD.finditer(text):
        words += 1 / _HAN_PER_WORD if match["han"] else 1
    return text if words >= _FEWEST_OF_ALT else ""


def without_data(line: str) -> str:
    """A line whose data URIs are cut to what says their kind."""
    return _DATA.sub(r"\1…", line) if "base64," in line else line


def is_prose(text: str, words: int) -> bool:
    """True if a text has so many words, or Chinese characters that say as much."""
    count = 0.0
    for match in _WORD.finditer(text, 0, _PROSE_CHARS):
        count += 1 / _HAN_PER_WORD if match["han"] else 1
        if count >= words:
            return True
    return False


def markup_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each stretch of markup, in order."""
    if "<" not in text and "[" not in text and "&" not in text and "\\" not in text:
        return []
    spans = list[tuple[int, int]]()
    roots = _roots(text)
    if all(root.name in _EMPHASIS and not is_prose(text[root.start : root.end], 6) for root in roots):
        return []
    for before, root in zip((None, *roots), roots, strict=False):
        apart = before is None or (
            text[before.end : root.start].strip() and before.name in _DOCUMENTS and root.name in _DOCUMENTS
        )
        if apart:
            spans.append((root.start, root.end))
        else:
            spans[-1] = (spans[-1][0], root.end)
    if roots and roots[-1].name in _HEADS and not _GOES_ON.match(text, roots[-1].end):
        spans[-1] = (spans[-1][0], _paragraph_end(text, roots[-1].end))
    return [span for span in spans if is_prose(text[span[0] : span[1]], 3)]


def _paragraph_end(text: str, at: int) -> int:
    end = text.find("\n\n", at)
    return len(text) if end < 0 else end


def _roots(text: str) -> list[_Root]:
    """Elements that no other one holds, in order; one that is never closed goes to the end of the text."""
    roots = list[_Root]()
    opened_roots = list[_Root]()
    names = Counter[str]()
    for tag in _tags(text):
        if tag.kind == "open":
            opened_roots.append(_Root(start=tag.start, end=tag.end, name=tag.name))
            names[tag.name] += 1
        elif tag.kind == "alone":
            if not opened_roots:
                roots.append(_Root(start=tag.start, end=tag.end, name=tag.name))
        elif names[tag.name]:
            root = opened_roots[-1]
            while True:
                root = opened_roots.pop()
                names[root.name] -= 1
                if root.name == tag.name:
                    break
            if not opened_roots:
                roots.append(_Root(start=root.start, end=tag.end, name=tag.name))
        elif not opened_roots and roots:
            # Closes what began before: all of it is one page, whatever it says about its end.
            roots[:] = [_Root(start=roots[0].start, end=tag.end, name=tag.name)]
    if opened_roots:
        first = opened_roots[0]
        roots = [root for root in roots if root.start < first.start]
        roots.append(_Root(start=first.start, end=len(text), name="html"))
    return roots


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tag:
    kind: str
    name: str
    start: int
    end: int


def _tags(text: str) -> Iterator[_Tag]:
    tags = list(_all_tags(text))
    counts = Counter(tag.name for tag in tags if tag.kind == "close")
    for tag in tags:
        lone = tag.kind == "open" and not counts[tag.name]
        if tag.kind in ("open", "alone") and (lone or tag.kind == "alone") and _is_spoken_of(text, tag):
            continue
        if lone and tag.name not in _KNOWN and not text[tag.end : tag.end + 1].isalpha():
            continue
        yield tag


def _is_spoken_of(text: str, tag: _Tag) -> bool:
    """True if a sentence goes on around a tag: "never use <br> in templates"."""
    if "=" in text[tag.start : tag.end]:
        return False
    before = _SPOKEN_BEFORE.search(text[max(0, tag.start - 8) : tag.start])
    return before is not None and _SPOKEN_AFTER.match(text, tag.end) is not None


def _all_tags(text: str) -> Iterator[_Tag]:
    for match in _TAG.finditer(text):
        start, end = match.span()
        if match["skip"] or match["special"]:
            yield _Tag(kind="alone", name="!", start=start, end=end)
        elif match["open"]:
            yield _Tag(kind="open", name=match["cut"].lower(), start=start, end=end)
        elif match["bname"]:
            yield _Tag(
                kind="close" if match["bclose"] else "open", name=f"[{match['bname'].lower()}", start=start, end=end
            )
        elif match["lname"]:
            kind = "open" if match["lside"].lower() == "begin" else "close"
            yield _Tag(kind=kind, name=f"\\{match['lname'].lower()}", start=start, end=end)
        elif not _is_word(text, match):
            name = match["name"].lower()
            alone = name in _VOID or match["rest"].rstrip().endswith("/")
            kind = "close" if match["close"] else "alone" if alone else "open"
            yield _Tag(kind=kind, name=name, start=start, end=end)


def _is_word(text: str, match: re.Match[str]) -> bool:
    """True for what only looks like a tag: a type in code, an address, an email."""
    before = text[match.start() - 1 : match.start()]
    if "://" in match[0][:200] and "=" not in match[0]:
        return True
    return before.isascii() and (before.isalnum() or before == "_") and match["name"].lower() not in _KNOWN


_FENCE = lazy_regex(r"[ \t]*+(`{3,}+|~{3,}+)(.*)")


class Fences:
    """Scanner of fenced code in a text, line by line.

    Args:
        strict: A block ends as Markdown has it: with a fence as long as the first one and nothing behind, as models
            write it. Else any fence of the same sign ends it: people type "``` and what does that do?".
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._open = ""

    def kind(self, line: str) -> Literal["text", "code", "fence"]:
        """Kind of the next line; a block that is not closed goes to the end."""
        mark = _FENCE.match(line)
        if not self._open:
            opens = mark and not (self._strict and "`" in mark[2])
            self._open = mark[1] if mark and opens else ""
            return "fence" if opens else "text"
        if not mark or not self._closes(mark):
            return "code"
        self._open = ""
        return "fence"

    def _closes(self, mark: re.Match[str]) -> bool:
        if self._strict:
            return mark[1].startswith(self._open) and not mark[2].strip()
        return mark[1][0] == self._open[0]
