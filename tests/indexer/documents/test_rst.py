from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.documents.rst import split_rst
from tests.growth import at_most_readings

PAGE = """\
.. _start:

=======
Manual
=======

Some words
that go on.

Install
=======

:Author: Maria

- first
- second
  goes on

1. one
#. two

Run this::

    pip install x

      indented

.. code-block:: python
   :linenos:

   def f():

       return 1

After it.

Notes
-----

.. note:: Take care
   of the kettle.

   It is hot.

.. a comment
   that nobody sees

.. _link: https://example.org/x

Empty
=====

第二章
======

正文在这里。
"""


def found(text: str) -> list[tuple[int, int, str, str]]:
    passages = split_rst(text, path="@x/a.rst")
    return [(one.start_line, one.end_line, " > ".join(one.heading), one.text) for one in passages]


def test_a_page() -> None:
    assert found(PAGE) == [
        (7, 8, "Manual", "Some words\nthat go on."),
        (13, 13, "Manual > Install", ":Author: Maria"),
        (15, 15, "Manual > Install", "- first"),
        (16, 17, "Manual > Install", "- second\ngoes on"),
        (19, 19, "Manual > Install", "1. one"),
        (20, 20, "Manual > Install", "#. two"),
        (24, 26, "Manual > Install > Run this", "pip install x\n\n  indented"),
        (
            *(28, 33, "Manual > Install > Run this"),
            ".. code-block:: python\n   :linenos:\n\n   def f():\n\n       return 1",
        ),
        (35, 35, "Manual > Install", "After it."),
        (40, 41, "Manual > Install > Notes", "note: Take care\nof the kettle."),
        (43, 43, "Manual > Install > Notes", "It is hot."),
        (48, 48, "Manual > Install > Notes", ".. _link: https://example.org/x"),
        (50, 51, "Manual", "Empty"),
        (56, 56, "Manual > 第二章", "正文在这里。"),
    ]


def test_a_date_in_a_title_dates_what_is_below() -> None:
    (passage,) = split_rst("1.2 (2026-11-20)\n----------------\n\nFaster.\n", path="@x/changes.rst")
    assert passage.date == dt.date(2026, 11, 20)


def test_line_ends_and_no_end_at_the_last_line() -> None:
    assert found("\ufeffTitle\r\n=====\r\n\r\nWords") == [(4, 4, "Title", "Words")]
    assert found("") == found("\n\n") == found("====\n") == []


WORDS = [
    "",
    "a",
    "  b c",
    "=====",
    "-----",
    "== ==",
    "- x",
    ".. note:: y",
    ".. code::",
    "   :opt: 1",
    "say::",
    "+--+",
    ".. _t: u",
    "题",
]


@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_passages_are_what_their_lines_say(lines: list[str]) -> None:
    before = 0
    for start, end, _, text in found("\n".join(lines)):
        assert before < start <= end <= len(lines)
        before = end
        own = "".join("".join(lines[start - 1 : end]).split()).replace(".", "").replace(":", "")
        assert "".join(text.split()).replace(".", "").replace(":", "") in own


@pytest.mark.parametrize(
    "hostile",
    ["..\n" * 15_000, "a::\n\n" * 7_500, "=" * 250_000, "a\n=\n" * 7_500, ".. a::\n\n" * 7_500, ":" * 125_000],
)
def test_hostile_text_takes_no_time(hostile: str) -> None:
    with at_most_readings(40):
        found(hostile)
