"""A recorder of what a piece of code asks of the file system, in order, and the rules for what has to last.

It stands around the functions of `os` in this process, so every write of our own code is seen; SQLite's own are not.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NAMES = ("open", "write", "pwrite", "ftruncate", "truncate", "fsync", "fdatasync", "close")
_WRITES = frozenset({"write", "pwrite", "ftruncate", "truncate"})
_RENAMES = frozenset({"replace", "rename", "link"})
_REMOVALS = frozenset({"unlink", "remove", "rmdir"})
_MOVES = ("replace", "rename", "link", "unlink", "remove", "mkdir", "rmdir")
# What is made anew from the rest, or is of use only while a process lives.
_DERIVED = ("index.sqlite", "index-", ".locks", ".rebuild", ".shared")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the system: its name, the path below the root, and where a name was moved to."""

    name: str
    path: str
    to: str = ""


class NotDurable(AssertionError):
    """A rule is broken."""


Hook = Callable[[Call], None]


@dataclass
class Tape:
    """The calls that were recorded.

    Attributes:
        root: What lies elsewhere is not recorded.
        before: Is told of each call before it is done, of a close behind it; what it raises, the call raises.
    """

    root: Path
    before: Hook | None = None
    calls: list[Call] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    _open: dict[int, str] = field(default_factory=dict)
    _busy: threading.local = field(default_factory=threading.local)

    def names(self, name: str) -> list[Call]:
        """The calls of one name."""
        return [call for call in self.calls if call.name == name]

    def below(self, path: object) -> str | None:
        """A path relative to the root; None for one that does not count."""
        if isinstance(path, int):
            return self._open.get(path)
        try:
            rest = os.path.relpath(os.path.abspath(os.fsdecode(path)), self.root)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return None
        parts = rest.split("/")
        if parts[0] == ".." or any(part.startswith(_DERIVED) for part in parts):
            return None
        return rest

    def note(self, call: Call) -> None:
        """Take note of a call that is about to be done."""
        if self.before is not None:
            self._busy.hook = True
            try:
                self.before(call)
            finally:
                self._busy.hook = False
        if call.name != "close":
            self.calls.append(call)

    def is_hooked(self) -> bool:
        """Whether this thread is in the hook: what that does is somebody else's."""
        return getattr(self._busy, "hook", False)


_tape: Tape | None = None
_audited = False


def _audit(event: str, given: tuple[Any, ...]) -> None:
    tape = _tape
    if tape is None or event != "open" or tape.is_hooked():
        return
    path, mode, _ = given
    # The functions of `os` have no mode: what has one is Python's own `open`, whose writes nobody sees.
    if isinstance(mode, str) and set(mode) & set("wax+") and not isinstance(path, int) and tape.below(path) is not None:
        tape.unseen.append(str(path))


@contextmanager
def recorded(root: Path, before: Hook | None = None) -> Iterator[Tape]:
    """Record what is done below a folder until the block ends; gives the tape."""
    global _tape, _audited
    tape = Tape(Path(os.path.abspath(root)), before)
    real = {name: getattr(os, name) for name in (*_NAMES, *_MOVES) if hasattr(os, name)}
    if not _audited:
        sys.addaudithook(_audit)
        _audited = True
    for name, act in real.items():
        setattr(os, name, _watched(name, act, tape))
    _tape = tape
    try:
        yield tape
    finally:
        _tape = None
        for name, act in real.items():
            setattr(os, name, act)


def _watched(name: str, act: Callable[..., Any], tape: Tape) -> Callable[..., Any]:
    def watched(*given: Any, **named: Any) -> Any:
        path = tape.below(given[0])
        if path is None or tape.is_hooked():
            return act(*given, **named)
        if name == "open":
            return _opened(tape, path, act, given, named)
        if name == "close":
            tape._open.pop(given[0], None)
            act(*given)
            return tape.note(Call(name, path))
        tape.note(Call(name, path, tape.below(given[1]) or "" if name in _RENAMES else ""))
        return act(*given, **named)

    return watched


def _opened(tape: Tape, path: str, act: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> int:
    flags = given[1] if len(given) > 1 else named.get("flags", 0)
    if flags & os.O_CREAT and not os.path.lexists(given[0]):
        tape.note(Call("create", path))
    descriptor: int = act(*given, **named)
    tape._open[descriptor] = path
    return descriptor


def check_durable(tape: Tape, *, volatile: tuple[str, ...] = ()) -> None:
    """Hold what was recorded against the rules.

    Every byte of a file is synced before a rename shows it, and before the end; every name that is made, moved or
    removed is synced with its folder before the end; nothing is written in a way that cannot be seen.

    Args:
        tape: What was recorded.
        volatile: Folders of which nothing is promised.

    Raises:
        NotDurable: One is broken.
    """
    state = _Unsynced()
    for call in tape.calls:
        if not set(call.path.split("/")) & set(volatile):
            state.take(call)
    unseen = [path for path in tape.unseen if not set(path.split("/")) & set(volatile)]
    if left := [*state.contents, *state.names, *unseen]:
        raise NotDurable(f"not synced at the end, or written unseen: {left}")


class _Unsynced:
    """What a power cut would take: contents of files, and names in folders."""

    def __init__(self) -> None:
        self.contents, self.names = set[str](), set[str]()

    def take(self, call: Call) -> None:
        if call.name in _WRITES:
            self.contents.add(call.path)
        elif call.name in ("fsync", "fdatasync"):
            self.contents.discard(call.path)
            folder = "" if call.path == "." else call.path
            self.names = {name for name in self.names if os.path.dirname(name) != folder}
        elif call.to:
            self._moved(call)
        elif call.name in _REMOVALS:
            self.contents.discard(call.path)
            # A draft that came and went leaves nothing.
            (self.names.discard if call.path.endswith(".tmp") else self.names.add)(call.path)
        else:
            self.names.add(call.path)

    def _moved(self, call: Call) -> None:
        if call.path in self.contents:
            raise NotDurable(f"{call.path} is shown as {call.to} before it is synced")
        self.names.discard(call.path)
        self.names.add(call.to)
