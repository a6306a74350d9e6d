"""Files of extra folders: which are indexed, by their names, and how each is split. Plain text is split here. Pure.

Invariants: linear in the length of the text; every line with text is in one passage, with its exact line range; files
that a program wrote or packed are left out, by their names or their content; a name that is asked for by a glob is
taken whatever it is, and split as text if no better way is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from indexer.common.patterns import lazy_regex
from indexer.common.scripts import WIDE
from indexer.documents import code, rst
from indexer.documents.blocks import Kind, Line, Outline, dedent_lines
from indexer.documents.code import CodeLanguage
from indexer.documents.markdown import outline_passages, split_lines, split_markdown
from indexer.language.sentences import LIST_ITEM
from indexer.types import Passage

# Who writes lines of this length has an editor that wraps them: each is a paragraph of its own.
_UNWRAPPED_CHARS = 160
_UNWRAPPED_WIDE_CHARS = 60
_WIDE_CHARACTER = lazy_regex(f"[{WIDE}]")


def split_text(text: str, *, path: str) -> list[Passage]:
    """Split a plain text file into passages: list items and paragraphs, in the order of their lines.

    Args:
        text: The whole file; line ends may be of any kind.
        path: Path of the file; a date in its name dates the passages.
    """
    outline = Outline()
    for paragraph in _paragraphs(split_lines(text)):
        for kind, lines in _parts(paragraph):
            outline.add(kind, lines[0][0], lines[-1][0], dedent_lines(lines))
    return outline_passages(outline, path=path)


def _paragraphs(lines: list[str]) -> Iterator[list[Line]]:
    run: list[Line] = []
    for number, line in enumerate(lines, start=1):
        if line and not line.isspace():
            run.append((number, line.expandtabs(4) if "\t" in line else line))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _parts(paragraph: list[Line]) -> Iterator[tuple[Kind, list[Line]]]:
    """The list items of a paragraph apart, and its lines where each is a paragraph of its own."""
    apart = any(_is_unwrapped(text) for _, text in paragraph)
    kind, part = Kind.TEXT, list[Line]()
    for number, text in paragraph:
        begins = LIST_ITEM.match(text.lstrip()) is not None
        if part and (begins or (apart and kind is Kind.TEXT)):
            yield kind, part
            kind, part = Kind.TEXT, []
        if begins:
            kind = Kind.ITEM
        part.append((number, text))
    yield kind, part


def _is_unwrapped(text: str) -> bool:
    if len(text) > _UNWRAPPED_CHARS:
        return True
    return len(text) > _UNWRAPPED_WIDE_CHARS and len(_WIDE_CHARACTER.findall(text)) > len(text) // 2


# Part of an index's fingerprint: it changes whenever the same file could give other passages.
FILE_RULES = "files-2"

_MARKDOWN = frozenset("md markdown mdown mkd mdx qmd rmd".split())
_TEXT = frozenset("txt text adoc asciidoc org tex".split())
_RST = frozenset(("rst", "rest"))
_LANGUAGES: dict[str, CodeLanguage] = {
    **dict.fromkeys("py pyi pyx bzl star gd".split(), CodeLanguage.INDENTED),
    **dict.fromkeys(
        "js mjs cjs jsx ts mts cts tsx vue svelte java kt kts scala swift go rs c h cc cpp cxx hpp hh hxx inl m mm "
        "cs php dart groovy gradle proto thrift graphql gql scss less css sol zig v d cu glsl hlsl wgsl r pl pm "
        "awk".split(),
        CodeLanguage.BRACES,
    ),
    **dict.fromkeys(
        "rb rake ex exs lua jl sh bash zsh fish ps1 sql hs ml mli fs erl clj cljs lisp el nim cr tcl vim cmake mk tf "
        "hcl nix bat cmd f90 asm s".split(),
        CodeLanguage.INDENTED,
    ),
    **dict.fromkeys("yaml yml".split(), CodeLanguage.KEYS),
    **dict.fromkeys("toml ini cfg conf editorconfig".split(), CodeLanguage.TABLES),
}
# Files that have no ending, or one that says nothing.
_NAMES: dict[str, CodeLanguage | None] = {
    **dict.fromkeys(
        "makefile gnumakefile dockerfile justfile rakefile gemfile procfile vagrantfile".split(), CodeLanguage.INDENTED
    ),
    **dict.fromkeys("readme changelog changes news todo contributing authors history install".split(), None),
}
_MADE_BY_MACHINES = lazy_regex(
    r"[._-](?:min|bundle|chunk|generated|pb|g|freezed|[Dd]esigner)\.[a-z0-9]+$"
    r"|[._-](?:min|generated)\.[\w.]+$|-lock\.ya?ml$|_pb2(?:_grpc)?\.pyi?$"
)
# What a generator says of itself, by convention near the top.
_MARKS = ("@generated", "DO NOT EDIT", "Do not edit by hand", "do not edit manually")
_HEAD_CHARS = 1_000
# No person writes lines of this length on average.
_PACKED_CHARS = 5_000
_PACKED_LINE_CHARS = 300
_ENDINGS = frozenset((*_LANGUAGES, *_MARKDOWN, *_TEXT, *_RST))
LEFT_OUT_FOLDERS = frozenset(
    "node_modules bower_components __pycache__ venv virtualenv site-packages dist build target coverage htmlcov".split()
)


def is_known(name: str) -> bool:
    """True if a file of this name is indexed without being asked for."""
    stem, _, ending = name.rpartition(".")
    if not stem:
        return name.lower() in _NAMES
    return ending.lower() in _ENDINGS and not _MADE_BY_MACHINES.search(name)


def _is_generated(text: str) -> bool:
    """True if a text looks written or packed by a program."""
    if any(mark in text[:_HEAD_CHARS] for mark in _MARKS):
        return True
    return len(text) > _PACKED_CHARS and len(text) > _PACKED_LINE_CHARS * (text.count("\n") + text.count("\r") + 1)


def split_file(text: str, path: str) -> list[Passage]:
    """Split a file of an extra folder into passages, by its name.

    Args:
        text: The whole file; line ends may be of any kind.
        path: Path of the file; its ending decides the format, and a date in its name dates the passages.
    """
    name = path.rpartition("/")[2].lower()
    ending = name.rpartition(".")[2]
    language = _LANGUAGES.get(ending) if "." in name else _NAMES.get(name)
    if language is not None:
        return [] if _is_generated(text) else code.split_code(text, path=path, language=language)
    if ending in _MARKDOWN:
        return split_markdown(text, path=path)
    if ending in _RST:
        return rst.split_rst(text, path=path)
    return split_text(text, path=path)
