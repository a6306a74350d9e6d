"""Records of the last prompts of sessions, so that a prompt begins as the one before did: blocks, sizes; one a session.

Invariants: a block has the same text in every prompt, whichever process makes it, until the view is compacted or
undone; nothing stands here that a file, or a session, does not say any more: it is looked at when a block is stored,
when it is used, and when something is erased; a record that cannot be read stands for no blocks, and costs a
cache only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b

from indexer import Hit
from indexer.common import LRU
from memory_service.errors import StorageFailed
from memory_service.messages.shapes import Message, user_message
from memory_service.messages.sizes import message_tokens
from memory_service.schemas.compaction import PromptMeasure
from memory_service.storage.record_store import RecordKind, RecordStore, RecordVersion, StoredRecord

_KEPT_RECORDS = 64
# Of a session, the sizes of so many prompts are stored: a picture of more has no room on a screen.
_KEPT_MEASURES = 120
# The numbers of a prompt as its record has them, behind its time and its receipt.
_NUMBERS = tuple(name for name in PromptMeasure.model_fields if name not in ("created_at", "receipt_id"))
# Of a message or a question: what tells it from others.
_KNOWN_MESSAGES = 20_000
_DIGEST_BYTES = 6


@dataclass(frozen=True, slots=True)
class InjectedPassage:
    """A passage of a block: where it was found, and its text as it stands there."""

    source: str
    path: str
    text: str


def passage_of(hit: Hit) -> InjectedPassage:
    """A passage that a search found."""
    return InjectedPassage(hit.source, hit.path, hit.passage.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedBlock:
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
    passages: tuple[InjectedPassage, ...] = ()

    @property
    def tokens(self) -> int:
        """Size of its message; none if it is empty."""
        return message_tokens(user_message(self.text)) if self.text else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRecord:
    """A session's last prompt, and the sizes of those before it.

    Attributes:
        view: The last record of the log that made the view another one when the blocks were recalled.
        blocks: In the order of their places.
        sent: Digests of the messages of the prompt.
        measures: The sizes of the last prompts, the oldest first.
        version: That of the record which this was read from; None if there was none.
    """

    view: int = 0
    blocks: tuple[InjectedBlock, ...] = ()
    sent: tuple[str, ...] = ()
    measures: tuple[PromptMeasure, ...] = ()
    version: RecordVersion | None = None

    def with_measure(self, measure: PromptMeasure) -> PromptRecord:
        """Copy of the record with the sizes of its prompt behind those of the last ones."""
        return replace(self, measures=(*self.measures[1 - _KEPT_MEASURES :], measure))


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
        known_pair = self._known.get((wire, id(message)))
        if known_pair is None or known_pair[0] is not message:
            known_pair = self._known[wire, id(message)] = message, digest_of([wire, message])
        return known_pair[1]


class PromptRecords:
    """The last prompts of the sessions of a workspace.

    Args:
        records: The small records of the workspace.
        still_in_file: Whether a passage, given its source, path and text, is still there where it was found.
    """

    def __init__(self, records: RecordStore, still_in_file: Callable[[str, str, str], bool]) -> None:
        self._records = records
        self._still_in_file = still_in_file
        self._known: LRU[str, PromptRecord] = LRU(_KEPT_RECORDS)

    def of(self, session_id: str) -> PromptRecord:
        """The last prompt of a session, with those of its blocks that still say what files say."""
        prompt_record, version = self._known.get(session_id), None
        with suppress(StorageFailed):
            version = self._records.version(RecordKind.PROMPT, session_id)
        if prompt_record is None or prompt_record.version != version:
            prompt_record = self._known[session_id] = self._read(session_id) or PromptRecord(version=version)
        return _valid_record(prompt_record, self._is_said)

    def put(self, session_id: str, record: PromptRecord) -> PromptRecord | None:
        """Store a prompt in the place of the one that it was made from.

        Returns:
            What is stored; None if another process has stored one meanwhile, and nothing was.

        Raises:
            StorageFailed: The disk did not take it.
        """
        while True:
            sound = _valid_record(record, self._is_said)
            version = self._records.put(
                RecordKind.PROMPT, session_id, _raw(sound), expected=record.version, session=session_id
            )
            if version is None:
                return None
            record = replace(sound, version=version)
            # An erasure that has looked at the prompts before this one was stored is over: its text is gone by now.
            if _valid_record(record, self._is_said) is record:
                self._known[session_id] = record
                return record

    def fork(self, session_id: str, branch: str, *, before_seq: int) -> None:
        """Begin the last prompt of a branch with what the session's own has before a message."""
        record = self.of(session_id)
        blocks = tuple(block for block in record.blocks if block.seq < before_seq)
        if blocks and record.view < before_seq:
            self.put(branch, replace(record, blocks=blocks, measures=(), version=self.of(branch).version))

    def erase(self, session_id: str) -> None:
        """Remove what is kept of a session.

        Raises:
            StorageFailed: The disk did not let it go.
        """
        self._known.pop(session_id)
        self._records.erase(RecordKind.PROMPT, key=session_id)

    def sweep(self) -> None:
        """Remove what was erased elsewhere, what cannot be read, and what killed writers left.

        Raises:
            StorageFailed: The disk did not let it go.
        """
        self._records.sweep()
        # Many conversations have the same passages.
        is_said = cache(self._is_said)
        left = set(self._records.keys(RecordKind.PROMPT))
        for session_id, stored in self._records.newest(RecordKind.PROMPT):
            left.discard(session_id)
            self._sweep(session_id, _prompt_of(stored), is_said)
        for session_id in left:
            self._sweep(session_id, self._read(session_id), is_said)

    def _sweep(self, session_id: str, record: PromptRecord | None, is_said: Callable[[InjectedPassage], bool]) -> None:
        """Take what does not stand any more out of a prompt; one that cannot be read may have that in it, and goes."""
        sound = _valid_record(record, is_said) if record else PromptRecord()
        if record is not None and sound is record:
            return
        self._records.erase(RecordKind.PROMPT, key=session_id)
        if sound.blocks or sound.measures:
            # Where the disk is full it is gone: that costs a cache, and what is erased is to leave the others, too.
            with suppress(StorageFailed):
                self._records.put(RecordKind.PROMPT, session_id, _raw(sound), expected=None, session=session_id)

    def _is_said(self, passage: InjectedPassage) -> bool:
        return self._still_in_file(passage.source, passage.path, passage.text)

    def _read(self, session_id: str) -> PromptRecord | None:
        """The record of a session, an empty one if there is none; None if it cannot be read."""
        try:
            record = self._records.get(RecordKind.PROMPT, session_id)
        except StorageFailed:
            return None
        return PromptRecord() if record is None else _prompt_of(record)


def _prompt_of(record: StoredRecord) -> PromptRecord | None:
    """The prompt that is stored in a record; None if it cannot be read."""
    try:
        value = json.loads(record.raw)
        blocks = tuple(_block(each_value) for each_value in value["blocks"])
        sent_texts = tuple(map(str, value["sent"]))
        return PromptRecord(
            view=int(value["view"]),
            blocks=blocks,
            sent=sent_texts,
            measures=tuple(_measure(*row) for row in value.get("measures", ())),
            version=record.version,
        )
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None


def _valid_record(record: PromptRecord, is_said: Callable[[InjectedPassage], bool]) -> PromptRecord:
    """A prompt with those of its blocks whose passages are all still there."""
    blocks = tuple(block for block in record.blocks if all(map(is_said, block.passages)))
    return record if len(blocks) == len(record.blocks) else replace(record, blocks=blocks)


def _block(fields: dict[str, object]) -> InjectedBlock:
    passages = fields["passages"]
    if not isinstance(passages, list) or not isinstance(seq := fields["seq"], int):
        raise TypeError("no block")
    texts = {name: str(fields[name]) for name in ("said", "asked", "text", "receipt_id")}
    return InjectedBlock(seq=seq, **texts, passages=tuple(InjectedPassage(*map(str, passage)) for passage in passages))


def _measure(created_at: str, receipt_id: str | None, *numbers: int) -> PromptMeasure:
    numbers_by_name = dict(zip(_NUMBERS, numbers, strict=True))
    return PromptMeasure.model_validate({"created_at": created_at, "receipt_id": receipt_id, **numbers_by_name})


def _raw(record: PromptRecord) -> bytes:
    blocks = [
        {
            "seq": block.seq,
            "said": block.said,
            "asked": block.asked,
            "receipt_id": block.receipt_id,
            "text": block.text,
            "passages": [[passage.source, passage.path, passage.text] for passage in block.passages],
        }
        for block in record.blocks
    ]
    measures = [
        [measure.created_at.isoformat(), measure.receipt_id, *(getattr(measure, name) for name in _NUMBERS)]
        for measure in record.measures
    ]
    value = {"view": record.view, "blocks": blocks, "sent": record.sent, "measures": measures}
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def common_beginning(sent_texts: Sequence[str], before: Sequence[str]) -> int:
    """How many messages of a prompt are, one by one, the beginning of another one."""
    pairs = enumerate(zip(sent_texts, before, strict=False))
    return next((at for at, (text, other_text) in pairs if text != other_text), min(len(sent_texts), len(before)))


def block_tokens(blocks: Iterable[InjectedBlock]) -> int:
    """Size of the messages of some blocks."""
    return sum(block.tokens for block in blocks)
