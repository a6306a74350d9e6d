"""Locks, leases and messages, by which the processes of one home work together.

Invariants: a lock or a lease is held by one at a time, in this process and all others, and ends with the process that
holds it; the numbers of a channel's messages rise by one; a message that is lost costs
a look, as every reader asks for those behind the last one that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from memory_service.errors import StorageFailed

# So many messages of a channel are kept.
KEPT_MESSAGES = 256
LOCK_SECONDS = 30.0
LEASE_SECONDS = 30.0
_AGAIN_SECONDS = 1.0


def lock_taken(name: str, seconds: float) -> StorageFailed:
    """The error of a lock that others kept for longer than somebody waited: the one that says when to try again."""
    error = StorageFailed(f"Others kept the lock {name} for more than {seconds:g} s. Try again later.")
    error.retry_after_seconds = _AGAIN_SECONDS
    return error


class ChannelMessage(NamedTuple):
    """A message of a channel."""

    number: int
    raw: bytes


class Coordination(Protocol):
    """The coordination of the processes of one home."""

    def lock(self, name: str, *, timeout_seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """A lock while a block runs.

        Args:
            name: Parts with a slash between them.
            timeout_seconds: How long to wait for others.

        Raises:
            StorageFailed: Others kept the lock too long, the storage has none, or it was lost while the block ran.
        """

    def lane(self, name: str, *, timeout_seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """A lock for the work on one session, where processes of several machines share it; arguments as `lock`.

        Files leave the order between processes to the checks of the log, and give it at once.

        Raises:
            StorageFailed: Others kept it too long, see `lock_taken`.
            StorageFailed: The storage has none, or it was lost while the block ran.
        """

    def lease(self, name: str, seconds: float = LEASE_SECONDS) -> Callable[[], None] | None:
        """A lease until it is given back or the process ends, however it ends.

        Args:
            name: A name as of a file.
            seconds: How long others may take a process for alive that cannot be asked; less where its end is seen.

        Returns:
            What gives it back; None if somebody has it.
        """

    def is_leased(self, name: str) -> bool:
        """True if somebody has a lease."""

    def publish(self, channel: str, raw: bytes, *, first: int = 1, behind: int = 0) -> int:
        """Tell all processes; gives the number of the message.

        Args:
            channel: The channel.
            raw: The message.
            first: Its number, if it is the first one that is kept.
            behind: A number that it must be larger than, if it is not the first one.

        Raises:
            StorageFailed: The storage did not take it.
        """

    def messages(self, channel: str, after: int = 0) -> Sequence[ChannelMessage]:
        """The messages of a channel that are kept, behind a number, in order."""

    def follow(self, channel: str, heard: Callable[[], None]) -> Callable[[], None]:
        """Have something called soon after each message, in whichever process it was published; gives what ends it.

        Args:
            channel: The channel.
            heard: Called from any thread, once or more for a message: it asks for the messages itself.
        """
