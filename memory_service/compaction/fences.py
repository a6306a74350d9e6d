"""Owns the tags that keep a text apart from what is said about it, in prompts and in what a summary ends up in.

Invariants: pure; linear; what is inside a fence cannot close it, and cannot open another one of ours; escaping twice
changes nothing more.
"""

from __future__ import annotations

import re

# The last four are those of the message that a summary is shown in.
_NAMES = (
    "conversation", "previous-summary", "partial-summary", "draft", "instructions", "identifier-rules", "refused",
    "summary", "ledger", "pinned", "current-request",
)  # fmt: skip
# Models read a tag with blanks or full-width signs in it as that tag.
_TAG = re.compile(rf"[<＜](?=\s*+[/／]?+\s*+(?:{'|'.join(_NAMES)})(?![\w-]))", re.IGNORECASE)


def escaped(text: str) -> str:
    """A text whose own tags with our names are tags no more; all other signs stay."""
    return _TAG.sub("&lt;", text)


def fenced(name: str, text: str, **attributes: str) -> str:
    """A text between the tags of a name.

    Args:
        name: One of ours.
        text: Anything.
        attributes: Values without quotation marks, written into the opening tag.
    """
    written = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{name}{written}>\n{escaped(text)}\n</{name}>"
