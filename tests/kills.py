"""Processes that end at one of their steps, of those that a storage takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.storages import FILES, StorageCase

KILLED = 137


def killed_at(home: Path, last: int, act: Callable[[], object], *, storage: StorageCase = FILES) -> tuple[bool, int]:
    """Do something in a process of its own that ends at a step; whether it was done, and how many steps it took.

    Args:
        home: The home that it is done to.
        last: The step that it ends before; 0 for none.
        act: What is done. What it would go on with in the background is cut as well.
        storage: The storage of the home.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        count = 0

        def step() -> None:
            nonlocal count
            count += 1
            if count == last:
                os._exit(KILLED)

        with storage.steps(home, step):
            act()
            os.write(theirs, b"%d\n" % count)
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as answer:
        told_steps = answer.read()
    os.waitpid(child, 0)
    return bool(told_steps), int(told_steps or 0)
