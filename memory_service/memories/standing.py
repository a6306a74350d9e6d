"""Blocks that stand in the prompts of sessions, so that a prompt begins as the one before did; one file per session.

Invariants: a block has the same text in every prompt, whichever process makes it, until the view is compacted or
undone; nothing stands here that a file, or a session, does not say any more: it is looked at when a block is stored,
when it is used, and when something is erased; a file that cannot be read stands for no blocks, and costs a cache only;
what is there is never followed elsewhere nor waited for, and no more of it is read than memory has room for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from pathlib import Path

from indexer import Hit
from indexer.common import LRU
from memory_service.errors import InvalidName, StorageFailed, TooLarge
from memory_service.messages import Message, message_tokens, user_message
from memory_service.storage.files import disk
from memory_service.storage.files.disk import Signature, WriteLock, storage_errors

_FOLDER = "prompts"
_SUFFIX = ".json"
_LOCK = ".lock"
_KEPT_RECORDS = 64
# A pipe that somebody put there is not waited for.
_AT_ONCE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
# Of a message or a question: what tells it from others.
_KNOWN_MESSAGES = 20_000
_DIGEST_BYTES = 6


@dataclass(frozen=True, slots=True)
class StandingPassage:
    """A passage of a block: where it was found, and its text as it stands there."""

    source: str
    path: str
    text: str


def passage_of(hit: Hit) -> StandingPassage:
    """A passage that a search found."""
    return StandingPassage(hit.source, hit.path, hit.passage.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingBlock:
    """A block that was recalled for a turn; its text is empty where nothing was found that the view does not show.

    Attributes:
        seq: The number of the user's message that it stands before.
        said: Digest of this message.
        asked: Digest of the question, and of what limited the answer.
    """

    seq: int
    said: str
    asked: str
    text: str
    receipt_id: str
    passages: tuple[StandingPassage, ...] = ()

    @property
    def tokens(self) -> int:
        """Size of its message; none if it is empty."""
        return message_tokens(user_message(self.text)) if self.text else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRecord:
    """A session's last prompt.

    Attributes:
        view: The last record of the log that made the view another one when the blocks were recalled.
        blocks: In the order of their places.
        sent: Digests of the messages of the prompt.
        signature: That of the file which this was read from; None if there was none.
    """

    view: int = 0
    blocks: tuple[StandingBlock, ...] = ()
    sent: tuple[str, ...] = ()
    signature: Signature | None = None


def digest_of(value: object) -> str:
    """Short digest of something that JSON can hold, as hexadecimal digits."""
    raw = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return blake2b(raw.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


class SentDigests:
    """Digests of the messages of prompts, each made once: a message of a view stays the same object."""

    def __init__(self) -> None:
        self._known: LRU[tuple[str, int], tuple[Message, str]] = LRU(_KNOWN_MESSAGES)

    def of(self, messages: Sequence[Message], wire: str) -> tuple[str, ...]:
        """Digests of the messages of a prompt in the shape of a provider."""
        return tuple(self._of(message, wire) for message in messages)

    def _of(self, message: Message, wire: str) -> str:
        known = self._known.get((wire, id(message)))
        if known is None or known[0] is not message:
            known = self._known[wire, id(message)] = message, digest_of([wire, message])
        return known[1]


class StandingBlocks:
    """The last prompts of the sessions of a workspace.

    Args:
        folder: The folder of the workspace.
        stands: Whether a passage is still there where it was found.
    """

    def __init__(self, folder: Path, stands: Callable[[StandingPassage], bool]) -> None:
        self._folder = folder / _FOLDER
        self._stands = stands
        self._lock = WriteLock(self._folder / _LOCK)
        self._known: LRU[str, PromptRecord] = LRU(_KEPT_RECORDS)

    def of(self, session_id: str) -> PromptRecord:
        """The last prompt of a session, with those of its blocks that still say what files say."""
        known, path = self._known.get(session_id), self._path(session_id)
        signature = None
        with suppress(OSError):
            signature = disk.current_signature(path)
        if known is None or known.signature != signature:
            known = self._known[session_id] = _read(path, signature) or PromptRecord(signature=signature)
        return _sound(known, self._stands)

    def put(self, session_id: str, record: PromptRecord) -> PromptRecord | None:
        """Store a prompt in the place of the one that it was made from.

        Returns:
            What is stored; None if another process has stored one meanwhile, and nothing was.

        Raises:
            StorageFailed: The disk did not take it.
        """
        path = self._path(session_id)
        with self._writing(f"{_FOLDER}/{path.name}"):
            if disk.current_signature(path) != record.signature:
                return None
            kept = _sound(record, self._stands)
            disk.replace_undurably(path, _raw(kept))
            stored = self._known[session_id] = replace(kept, signature=disk.current_signature(path))
            return stored

    def fork(self, session_id: str, branch: str, *, before_seq: int) -> None:
        """Begin the last prompt of a branch with what the session's own has before a message."""
        record = self.of(session_id)
        shared = tuple(block for block in record.blocks if block.seq < before_seq)
        if shared and record.view < before_seq:
            self.put(branch, replace(record, blocks=shared, signature=self.of(branch).signature))

    def erase(self, session_id: str) -> None:
        """Remove what is kept of a session.

        Raises:
            StorageFailed: The disk did not let it go.
        """
        self._known.pop(session_id)
        path = self._path(session_id)
        if path.is_file() or path.is_symlink():
            with self._writing(f"{_FOLDER}/{path.name}"):
                disk.remove_durably(path)

    def sweep(self) -> None:
        """Remove what was erased elsewhere, what cannot be read, and drafts of crashed writers.

        Raises:
            StorageFailed: The disk did not let it go.
        """
        if not self._folder.is_dir():
            return
        with self._writing(_FOLDER):
            disk.sweep([self._folder])
            # Many conversations have the same passages.
            stands = cache(self._stands)
            for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
                if path.is_file() and not path.is_symlink():
                    _sweep(path, stands)

    @contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        """Others wait; whatever keeps something from being written is a fault of the disk."""
        try:
            with self._lock.held(), storage_errors(what):
                yield
        except InvalidName as error:
            raise StorageFailed(
                f"{what} cannot be written: a folder or a link stands there, or in the place of its lock. Remove it."
            ) from error

    @property
    def drafts(self) -> tuple[Path, ...]:
        """Temporary files of crashed writers."""
        return tuple(disk.draft_files(self._folder))

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{session_id}{_SUFFIX}"


def _sound(record: PromptRecord, stands: Callable[[StandingPassage], bool]) -> PromptRecord:
    """A prompt with those of its blocks whose passages are all still there."""
    blocks = tuple(block for block in record.blocks if all(map(stands, block.passages)))
    return record if len(blocks) == len(record.blocks) else replace(record, blocks=blocks)


def _sweep(path: Path, stands: Callable[[StandingPassage], bool]) -> None:
    """Take what does not stand any more out of a file; one that cannot be read may have that in it, and goes."""
    record = _read(path, disk.current_signature(path))
    sound = _sound(record, stands) if record else PromptRecord()
    if record and len(sound.blocks) == len(record.blocks):
        return
    disk.remove_durably(path)
    if sound.blocks:
        # Where the disk is full it is gone: that costs a cache, and what is erased is to leave the other files, too.
        with suppress(OSError):
            disk.replace_undurably(path, _raw(sound))


def _read(path: Path, signature: Signature | None) -> PromptRecord | None:
    """The record in a file, an empty one if there is no file; None if it cannot be read."""
    if signature is None:
        return PromptRecord()
    try:
        with disk.open_no_follow(path, _AT_ONCE) as descriptor:
            disk.check_size(descriptor, path.name)
            found = json.loads(disk.read_all(descriptor))
        blocks = tuple(_block(each) for each in found["blocks"])
        sent = tuple(map(str, found["sent"]))
        return PromptRecord(view=int(found["view"]), blocks=blocks, sent=sent, signature=signature)
    except (OSError, ValueError, TypeError, KeyError, RecursionError, OverflowError, TooLarge):
        return None


def _block(found: dict[str, object]) -> StandingBlock:
    passages = found["passages"]
    if not isinstance(passages, list) or not isinstance(seq := found["seq"], int):
        raise TypeError("no block")
    texts = {name: str(found[name]) for name in ("said", "asked", "text", "receipt_id")}
    return StandingBlock(seq=seq, **texts, passages=tuple(StandingPassage(*map(str, each)) for each in passages))


def _raw(record: PromptRecord) -> bytes:
    blocks = [
        {
            "seq": block.seq,
            "said": block.said,
            "asked": block.asked,
            "receipt_id": block.receipt_id,
            "text": block.text,
            "passages": [[each.source, each.path, each.text] for each in block.passages],
        }
        for block in record.blocks
    ]
    value = {"view": record.view, "blocks": blocks, "sent": record.sent}
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def common_beginning(sent: Sequence[str], before: Sequence[str]) -> int:
    """How many messages of a prompt are, one by one, the beginning of another one."""
    pairs = enumerate(zip(sent, before, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(sent), len(before)))


def block_tokens(blocks: Iterable[StandingBlock]) -> int:
    """Size of the messages of some blocks."""
    return sum(block.tokens for block in blocks)
