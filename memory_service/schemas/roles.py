"""Whose word a memory is: the values of `role` and `origin` in every answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

# Whose words an entry of a file is: of what a flush writes, an assistant's too.
NotedOrigin = Literal["user", "agent", "assistant", "tool"]
# Whose word a passage is, the highest authority first; the last three have the same.
WhoseWord = Literal["user", "agent", "assistant", "tool", "pasted", "file"]
SourceRole = Annotated[
    WhoseWord, Field(description="Whose word it is; what stands later in the list never replaces what stands earlier.")
]
EntryOrigin = Annotated[WhoseWord | None, Field(description="Origin of the noted entry; null where it is none.")]
