"""Patterns that are compiled at first use: the same answers, and none compiled by an import."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from indexer.common.patterns import lazy_regex

# The patterns that the modules of words and wordings compile while they are imported.
_COMPILED = """
import re
import memory_service.schemas
made, inner = [], re._compiler.compile
re._compiler.compile = lambda pattern, flags=0: made.append(str(pattern)) or inner(pattern, flags)
import indexer.providers.wordings, indexer.language.dates
import memory_service.text.recall, memory_service.text.salience, memory_service.text.secret_kinds
import memory_service.text.similarity
print([pattern for pattern in made if "prompt is too long" in pattern or "记" in pattern])
"""


def test_it_answers_as_a_compiled_pattern_does() -> None:
    late, early = lazy_regex(r"(?P<word>茶|tea)", re.IGNORECASE), re.compile(r"(?P<word>茶|tea)", re.IGNORECASE)
    for text in ("Green TEA", "绿茶", "coffee", ""):
        assert late.findall(text) == early.findall(text)
        assert late.sub(r"<\g<word>>", text) == early.sub(r"<\g<word>>", text)
        assert bool(late.search(text)) == bool(early.search(text))
    assert (late.pattern, late.flags, late.groupindex) == (early.pattern, early.flags, early.groupindex)


def test_a_pattern_that_cannot_be_compiled_says_so_when_it_is_used() -> None:
    late = lazy_regex("(")
    for _ in range(2):
        with pytest.raises(re.error, match="unterminated"):
            late.search("x")


def test_an_import_compiles_none_of_them() -> None:
    done = subprocess.run([sys.executable, "-c", _COMPILED], capture_output=True, check=True, encoding="utf-8")
    assert done.stdout.strip() == "[]"
