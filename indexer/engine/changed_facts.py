"""The facts of an index whose value was replaced, all of them, without a question."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

from indexer.engine.chains import DayChains, FactResolver
from indexer.language.facts import thing_number
from indexer.stores.base import IndexStore, OfSharedThings, StoredPassage
from indexer.types import SearchFilter, Statement

# The last stored passages are looked at; to read the facts in one takes milliseconds.
_LOOKED_AT = 400
# Of each fact so many dated values, and as many others.
_MOST_VALUES = 64


def changed_facts(store: IndexStore, chains: DayChains, filter: SearchFilter) -> list[tuple[Statement, ...]]:
    """The facts whose value was replaced, each with its values, oldest first; the last changed first.

    Args:
        store: The index, within a read.
        chains: The chains of its state.
        filter: The passages that are looked at.
    """
    passages = [
        passage
        for passage in store.passages(OfSharedThings(_LOOKED_AT, filter.sources)).values()
        if filter.passes(passage.source, passage.path, passage.passage)
    ]
    # What has no day stands at the end.
    return sorted(
        _facts_of(store, chains, filter, passages),
        key=lambda values: max(value.date or dt.date.min for value in values),
        reverse=True,
    )


def _facts_of(
    store: IndexStore, chains: DayChains, filter: SearchFilter, passages: Sequence[StoredPassage]
) -> Iterator[tuple[Statement, ...]]:
    resolver = FactResolver(store, chains, filter, history=True)
    claims = {statement.claim.thing: statement.claim for passage in passages for statement in chains.stated_in(passage)}
    chains.read(store, claims.values(), _MOST_VALUES)
    for thing in claims:
        chain = chains.chain(thing_number(thing), _MOST_VALUES)
        if "=" in thing or all(resolver.replacer(chain, old) is None for old in chain.statements):
            continue
        current = chain.current
        values = [statement.to_statement(current=statement is current) for statement in chain.in_order()]
        # One passage may state a value twice.
        yield tuple({(value.path, value.start_line, value.text): value for value in values}.values())
