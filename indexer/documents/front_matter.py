"""Front matter of a Markdown file: its properties, title, day and tags.

Invariants: pure, linear; two rules are front matter only if all between them are properties in YAML or TOML, as far as
programs for notes write it; all that they say is in the text given back, so that it can be searched.

Source: what Obsidian, Jekyll, Hugo and Logseq write: scalars, lists in both styles, block texts, nested mappings.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from indexer.common.patterns import lazy_regex
from indexer.common.scripts import SENTENCE_ENDS
from indexer.documents.entries import is_tag
from indexer.language.dates import heading_day
from indexer.language.ornaments import ornament
from indexer.types import fold_tag

_YAML_KEY = lazy_regex(r"(?:\"([^\"\n]{1,60})\"|'([^'\n]{1,60})'|([^\W\d][\w .()/-]{0,59}?)):(?:[ \t]+(.*))?$")
_TOML_KEY = lazy_regex(r"[\"']?([\w][\w .-]{0,60})[\"']?[ \t]*=[ \t]*(.*)$")
_ITEM = lazy_regex(r"([ \t]*)-(?:[ \t]+(.*))?$")
_BLOCK = lazy_regex(r"[|>][+-]?\d?[+-]?(?:\s+#.*)?$")
_COMMENT = lazy_regex(r"(?:^|\s)#.*$")
_LINK = lazy_regex(r"\[\[([^\[\]|]*)(?:\|([^\[\]]*))?\]\]")
# Names by which programs know a property; a text with a colon, such as a talk, has others.
_KNOWN_KEYS = frozenset(
    "title date tags tag aliases alias created updated modified published draft publish author authors description"
    " summary category categories type status cssclass cssclasses layout permalink slug url source id lang language"
    " keywords version".split()
)
# Properties that say when a text is of, the surest first.
_DAYS = ("date", "published", "created", "updated")
# These alone make no passage of their own beside the text of a file.
_PLAIN = frozenset(
    "title date created updated modified published tags tag cssclass cssclasses layout permalink slug draft publish"
    " lang id".split()
)
_WORDS_OF_A_VALUE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """Front matter of a file.

    Attributes:
        lines: Number of its lines, with both rules; 0 for none.
        properties: First and last line, name and value of each property that has a value.
        tags: Its tags, folded.
        rules: Places of two lines that look like it and are rules.
    """

    lines: int = 0
    properties: tuple[tuple[int, int, str, str], ...] = ()
    title: str = ""
    date: dt.date | None = None
    tags: tuple[str, ...] = ()
    rules: tuple[int, ...] = ()

    def text(self, *, alone: bool) -> list[tuple[int, str]]:
        """Lines of the passage of its properties; none where they say nothing beside the text of the file.

        Args:
            alone: The file has no other passage.
        """
        names = {name.lower() for _, _, name, _ in self.properties}
        if not alone and names <= _PLAIN:
            return []
        shown_pairs = [(at, f"{name}: {value}") for at, _, name, value in self.properties if name.lower() != "title"]
        return shown_pairs or [(at, value) for at, _, _, value in self.properties if alone]


_NONE = FrontMatter()


@dataclass(slots=True)
class _Property:
    name: str
    start: int
    end: int
    values: list[str] = field(default_factory=list)


def read_front_matter(lines: Sequence[str]) -> FrontMatter:
    """The front matter that stands between two `---` or `+++` at the very start of a file."""
    mark = lines[0].rstrip()
    if mark not in ("---", "+++"):
        return _NONE
    ends = ("---", "...") if mark == "---" else ("+++",)
    end = next((at for at in range(1, len(lines)) if lines[at].rstrip() in ends), 0)
    if not end:
        return _NONE
    inner = lines[1:end]
    properties = _yaml(inner) if mark == "---" else _toml(inner)
    if properties is None or not (end == 1 or _look_like_properties(properties)):
        return FrontMatter(rules=(0, end))
    values = {each_property.name.lower(): each_property.values for each_property in reversed(properties)}
    days = (ornament("days", None, heading_day, " ".join(values.get(name, ()))) for name in _DAYS)
    return FrontMatter(
        lines=end + 1,
        properties=tuple((p.start, p.end, p.name, ", ".join(p.values)) for p in properties if any(p.values)),
        title=" ".join(values.get("title", ())),
        date=next((day for day in days if day is not None), None),
        tags=tuple(dict.fromkeys(_tags([*values.get("tags", ()), *values.get("tag", ())]))),
    )


def _look_like_properties(properties: Sequence[_Property]) -> bool:
    """True unless the names are capitalised words that no program knows, with sentences behind them."""
    names = [each_property.name for each_property in properties]
    if len(set(names)) < len(names) or not names:
        return False
    if any(name.lower() in _KNOWN_KEYS for name in names):
        return True
    return all(
        not each_property.name[0].isupper() or all(map(_is_value, each_property.values)) for each_property in properties
    )


def _is_value(text: str) -> bool:
    return len(text.split()) <= _WORDS_OF_A_VALUE and not text.endswith(SENTENCE_ENDS)


def _yaml(lines: Sequence[str]) -> list[_Property] | None:
    """The properties of YAML; None for anything else."""
    properties = list[_Property]()
    state, brackets = "", 0
    for number, line in enumerate(lines, start=2):
        body = line.strip()
        if state == "flow":
            brackets += _balance(body)
            properties[-1].values += _flow_values(body)
            properties[-1].end = number
            state = "flow" if brackets > 0 else ""
        elif state == "block" and (not body or line[0] in " \t"):
            if body:
                properties[-1].values.append(body)
                properties[-1].end = number
        elif not body:
            if not properties:
                return None  # a blank line below a rule: text follows
        elif body[0] == "#":
            continue
        elif properties and (line[0] in " \t" or _ITEM.match(line)):
            value = _nested_values(line)
            if value is None:
                return None
            properties[-1].values += value
            properties[-1].end = number
        else:
            key = _YAML_KEY.match(line)
            if key is None:
                return None
            name, value_text = key[1] or key[2] or key[3], (key[4] or "").strip()
            properties.append(_Property(name=name.strip(), start=number, end=number))
            state, brackets = "", 0
            if _BLOCK.match(value_text):
                state = "block"
            elif value_text[:1] in ("[", "{") and not value_text.startswith("[["):
                brackets = _balance(value_text)
                properties[-1].values += _flow_values(value_text)
                state = "flow" if brackets > 0 else ""
            else:
                scalar = _scalar(value_text)
                if scalar is None:
                    return None
                properties[-1].values += [scalar] if scalar else []
    return properties if state != "flow" else None


def _nested_values(line: str) -> list[str] | None:
    """The values on a line below a property: of a list item, a nested mapping, or a text that goes on."""
    item = _ITEM.match(line)
    body = ((item[2] or "") if item else line).strip()
    if body[:1] in ("[", "{") and not body.startswith("[["):
        return _flow_values(body)
    if (match := _YAML_KEY.match(body)) is not None:
        value = _scalar((match[4] or "").strip())
        return None if value is None else [f"{match[1] or match[2] or match[3]}: {value}"] if value else []
    value = _scalar(body) if item else body
    return None if value is None else [value] if value else []


def _scalar(text: str) -> str | None:
    """A value without quotes and comment; None for what YAML does not take."""
    if text[:1] in ("'", '"'):
        end = text.find(text[0], 1)
        while end >= 0 and (text[end - 1] == "\\" or text[end + 1 : end + 2] == text[0] == "'"):
            end = text.find(text[0], end + (1 if text[end - 1] == "\\" else 2))
        if end < 0 or _COMMENT.sub("", text[end + 1 :]).strip():
            return None
        return _plain(text[1:end])
    text = text if text.startswith("#") else _COMMENT.sub("", text).strip()
    if ": " in text or text.endswith(":") or text[:1] in ("`", "@", "%"):
        return None
    return "" if text in ("null", "~") else _plain(text)


def _plain(text: str) -> str:
    """A value as a person reads it: of a link to a note the name that is shown."""
    return _LINK.sub(lambda link: link[2] or link[1], text).strip()


def _balance(text: str) -> int:
    return text.count("[") + text.count("{") - text.count("]") - text.count("}")


def _flow_values(text: str) -> list[str]:
    body = _plain(text).strip("[]{} ,")
    return [value for part in body.split(",") if (value := part.strip().strip("\"'").strip())]


def _toml(lines: Sequence[str]) -> list[_Property] | None:
    """The properties of TOML; None for anything else."""
    properties, balance = list[_Property](), 0
    for number, line in enumerate(lines, start=2):
        body = line.strip()
        if balance > 0:
            balance += _balance(body)
            properties[-1].values += _flow_values(body)
            properties[-1].end = number
        elif not body or body[0] in "#[":
            continue
        elif (key := _TOML_KEY.match(body)) is not None:
            is_quoted = key[2][:1] in ("'", '"')
            values = [key[2].strip().strip("\"'")] if is_quoted else _flow_values(key[2])
            properties.append(_Property(name=key[1].strip(), start=number, end=number, values=values))
            balance = 0 if is_quoted else _balance(key[2])
        else:
            return None
    return properties


def _tags(values: Sequence[str]) -> Iterator[str]:
    for value in values:
        for word in value.split():
            if is_tag(tag := word.removeprefix("#")):
                yield fold_tag(tag)
