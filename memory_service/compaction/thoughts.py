"""Owns what a model wrote into its answer while it thought, in tags such as `<think>`, and takes it out.

Invariants: pure; linear; a tag that is only spoken of, in the middle of a line, is no thought; what was never closed
is a thought only when nothing was said before it.
"""

from __future__ import annotations

import re

# Source: the chat templates of DeepSeek-R1 and Qwen3 (`think`); prompts that ask for an `analysis` before an answer.
_TAG = re.compile(
    r"(?:(?m:^)[ \t]*+|(?<=>))<(?P<opened>think|thinking|analysis)>"
    r"|</(?P<closed>think|thinking|analysis)>(?P<ends>[ \t]*+(?:\n|\Z))?",
    re.IGNORECASE,
)


def without_thoughts(text: str) -> str:
    """A text without its thoughts; the text itself if it has none."""
    kept: list[str] = []
    at, inside = 0, ""
    for tag in _TAG.finditer(text):
        opened, closed = (tag["opened"] or "").lower(), (tag["closed"] or "").lower()
        if opened and not inside:
            kept.append(text[at : tag.start()])
            at, inside = tag.start(), opened
        elif closed and closed == inside:
            at, inside = tag.end(), ""
        elif closed and not inside and at == 0 and not kept and tag["ends"] is not None:
            # Some templates put the opening tag into the prompt: the answer begins with the thought.
            at = tag.end()
    if not inside or any(piece.strip() for piece in kept):
        kept.append(text[at:])
    return "".join(kept) if at or inside else text
