"""The arguments and answers of the tools that agents call, in as few fields as an agent needs.

Invariants: an unknown argument is refused; a number or a day that came as text is read, since models write both.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from memory_service.schemas.base import MAX_BUDGET_TOKENS, MAX_QUERY_CHARS, Answer, Degraded
from memory_service.schemas.memories import MAX_TEXT_CHARS, Day, Source
from memory_service.schemas.roles import WhoseWord

_MAX_HITS = 50
_MAX_HANDLE_CHARS = 1_000


class Arguments(BaseModel):
    """The arguments of a tool."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SearchArguments(Arguments):
    """A question, and where to look for its answer."""

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS)
    limit: int = Field(default=6, ge=1, le=_MAX_HITS)
    sources: list[Source] = []
    tags: list[str] = []
    since: Day | None = Field(default=None, description="YYYY-MM-DD")
    until: Day | None = None
    history: bool = Field(default=False, description="all values of a fact")


class GetArguments(Arguments):
    """A handle, and the conversation that it belongs to."""

    id: str = Field(min_length=1, max_length=_MAX_HANDLE_CHARS)
    session: str | None = Field(default=None, description="of a log: handle")


class RememberArguments(Arguments):
    """Something to remember."""

    text: str = Field(min_length=1, max_length=MAX_TEXT_CHARS)
    tags: list[str] = Field(default=[], max_length=16)
    date: Day | None = None


class ContextArguments(Arguments):
    """A topic, and the room that there is for it in a prompt."""

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS)
    budget_tokens: int = Field(default=2000, ge=0, le=MAX_BUDGET_TOKENS)
    tags: list[str] = []


class ForgetArguments(Arguments):
    """A memory to erase: the id of its entry, or where a result says that it stands."""

    memory_id: str = Field(min_length=1, max_length=_MAX_HANDLE_CHARS, description="or a result's id")


class StatusArguments(Arguments):
    """Nothing: there is one status."""


class StatedValue(Answer):
    """A value that a fact has had; its `id` leads to the original.

    Attributes:
        date: Day since which it holds, or on which it was stated; None where neither is known.
        current: Whether it holds now.
    """

    id: str
    text: str
    date: dt.date | None = None
    current: bool | None = None


class FoundPassage(Answer):
    """A passage that was found; its `id` leads to the original.

    Attributes:
        role: Whose word it is.
        origin: Origin of the entry that it is; None if it is none.
        memory_id: Id of the entry that it is of; None if it is of none.
        relevance: The probability that it bears on the question; None where it is not known.
        replaced_by: The id of what holds now, if the passage states a value that was replaced since.
        history: All values of its fact, oldest first, where they were asked for; at the fact's first passage.
    """

    id: str
    title: str
    url: str
    text: str
    date: dt.date | None = None
    role: WhoseWord = "user"
    origin: WhoseWord | None = None
    memory_id: str | None = None
    score: float
    relevance: float | None = None
    replaced_by: str | None = None
    # A host's model sees the shape when there is one; in the list of tools it would cost every conversation.
    history: list[Annotated[StatedValue, WithJsonSchema({"type": "object"})]] | None = None


class FoundPassages(Answer):
    """Passages, best first."""

    results: list[FoundPassage]
    degraded: Degraded = Field(default=[])


class OriginalText(Answer):
    """The text behind a handle.

    Attributes:
        metadata: `next` is the handle of what follows; `memory_ids` are those of the entries in the text.
    """

    id: str
    title: str
    url: str
    text: str
    metadata: dict[str, str] = Field(default={})


class ContextBlock(Answer):
    """A block of memories for a prompt."""

    block: str
    tokens: int
    receipt_id: str
    degraded: Degraded = Field(default=[])
