"""Processes that end at one of their steps: before a call of the file system, or before a statement of SQLite."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import apsw

from tests.disk import Call, recorded

KILLED = 137


class Steps:
    """Counts what is asked of the file system and of SQLite, and ends the process at one of them."""

    def __init__(self, last: int) -> None:
        self.last, self.count = last, 0

    def __call__(self, _: object) -> None:
        self.count += 1
        if self.count == self.last:
            os._exit(KILLED)

    def watch(self, connection: apsw.Connection) -> None:
        """Count the statements of a connection too."""
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, self)


def killed_at(home: Path, last: int, act: Callable[[], object]) -> tuple[bool, int]:
    """Do something in a process of its own that ends at a step; whether it was done, and how many steps it took.

    Args:
        home: The folder whose calls are counted.
        last: The step that it ends before; 0 for none.
        act: What is done. What it would go on with in the background is cut as well.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        steps = Steps(last)

        def told(call: Call) -> None:
            steps(call)

        with recorded(home, told):
            apsw.connection_hooks.append(steps.watch)
            act()
            os.write(theirs, b"%d\n" % steps.count)
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as answer:
        told_steps = answer.read()
    os.waitpid(child, 0)
    return bool(told_steps), int(told_steps or 0)
