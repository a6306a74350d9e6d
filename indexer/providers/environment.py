"""Environment variables that other packages read while they are imported.

Invariants: nothing is changed for longer than that; what is set already stays as it is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_changing = threading.RLock()


@contextmanager
def variables(**values: str) -> Iterator[None]:
    """Set variables inside the block, except those that are set already."""
    with _changing:
        missing = {name: value for name, value in values.items() if name not in os.environ}
        os.environ.update(missing)
        try:
            yield
        finally:
            for name in missing:
                os.environ.pop(name, None)
