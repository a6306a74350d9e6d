"""The languages that the engines know, and the tables of all of them as one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indexer.language.base import Language

# The order is that of the alternatives in the patterns. A language that is one file needs no row: its name is that of
# the language with this ending, and its value has that name in capitals.
_ROOMS = ("english", "chinese")
_ENDING = "_language"


def _read(file: str) -> Any:
    """The value of a file: it is imported late, so that the chain of imports is none longer for the words."""
    return getattr(import_module(f"{__package__}.{file}"), file.removesuffix(_ENDING).upper())


def _files() -> list[str]:
    """Names of the files that are a language, in order."""
    folders = import_module(__package__).__path__
    return sorted(module.name for module in iter_modules(folders) if module.name.endswith(_ENDING))


LANGUAGES: tuple[Language, ...] = (*map(_read, (*_ROOMS, *_files())), *_read("others"))


def _unite(tables: Sequence[Any]) -> Any:
    """One table of several of a kind: the alternatives, words and entries of all."""
    first = tables[0]
    if None in tables:
        return None
    match first:
        case str():
            return "|".join(filter(None, tables))
        case tuple():
            return tuple(entry for table in tables for entry in table)
        case frozenset():
            return first.union(*tables[1:])
        case Mapping():
            keys = dict.fromkeys(key for table in tables for key in table)
            return {key: _unite([table[key] for table in tables if key in table]) for key in keys}
        case int() | float():
            return first
    # Those of all languages that have no words of a kind are one.
    tables = list(dict.fromkeys(tables))
    fields = [field.name for field in dataclasses.fields(first)]
    return type(first)(**{name: _unite([getattr(table, name) for table in tables]) for name in fields})


# Words of whatever language: each table has the entries of all.
ANY: Language = dataclasses.replace(_unite(LANGUAGES), name="")
