"""Ornaments: meaning that is read into a text, without which the text goes on; and how often its readers failed.

Facts, days, names, greetings, relevance and the like are read by rules, and a rule may meet a text that nobody thought
of. What it then costs is the ornament.

Invariants: a reader that fails never costs a file, a workspace or a request; each failure is counted by its reader; the
first one of a kind is logged, without a word of the text; what is raised on purpose, or by a disk, passes through.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import ParamSpec, TypeVar

_Call = ParamSpec("_Call")
_Read = TypeVar("_Read")
_Without = TypeVar("_Without")

_log = logging.getLogger("indexer.language.ornaments")


class ReaderFailures:
    """Failures of readers since the process began. Safe to use from several threads."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._counts = Counter[str]()
        self._logged = set[tuple[str, str, str]]()

    def counts(self) -> Mapping[str, int]:
        """Number of failures of each reader that ever failed, by its name."""
        with self._changing:
            return dict(sorted(self._counts.items()))

    def add(self, reader: str, error: Exception) -> None:
        """Count a failure, and log it if it is the first one of its kind and place."""
        place = _place_of(error)
        kind = (reader, type(error).__name__, place)
        with self._changing:
            self._counts[reader] += 1
            is_new = kind not in self._logged
            self._logged.add(kind)
        if is_new:
            _log.warning(
                "The reader of %s failed (%s in %s): the text goes on without. Please report this line; more of the "
                "kind are counted, not logged.",
                *kind,
            )


FAILURES = ReaderFailures()


def ornament(
    reader: str, without: _Without, read: Callable[_Call, _Read], /, *args: _Call.args, **kwargs: _Call.kwargs
) -> _Read | _Without:
    """The meaning that a function reads into a text, or what stands for it where the function fails.

    Args:
        reader: The name of what is read, for the counter: one of a small fixed set.
        without: The result where nothing could be read.
        read: Reads the meaning; pure, so that its failure leaves nothing half done.
        *args: Its arguments.
        **kwargs: More of them, by name.

    Raises:
        IndexerError: From the function, as OSError and MemoryError.
    """
    try:
        return read(*args, **kwargs)
    except Exception as error:
        if _says_more(error):
            raise
        FAILURES.add(reader, error)
        return without


def _says_more(error: Exception) -> bool:
    """True if an error says more than that a reader is at fault."""
    from indexer.errors import IndexerError

    return isinstance(error, (IndexerError, MemoryError, OSError))


def _place_of(error: Exception) -> str:
    """File and line where an error was raised; of its message nothing, which may hold text."""
    places = traceback.extract_tb(error.__traceback__)
    return f"{PurePath(places[-1].filename).name}:{places[-1].lineno}" if places else "an unknown place"
