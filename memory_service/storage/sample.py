"""The bundled sample workspace and its recorded session: inside the package when installed, in `data/` in a checkout.

Invariants: what is bundled is only read; a workspace that is there is never replaced; what the service made beside the
sample at run time is no part of it; a message that is said again keeps its recorded time.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from memory_service.errors import Conflict, NotFound
from memory_service.messages.reading import read_messages
from memory_service.messages.sizes import message_tokens
from memory_service.schemas.memories import DEFAULT_WORKSPACE
from memory_service.sessions.codec import decode
from memory_service.sessions.records import MessageRecord, Record
from memory_service.storage.base import Storage

SAMPLE_SESSION_ID = "desk-2026-47"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A bundled workspace.

    Attributes:
        session_id: Id of its recorded session.
        installed: Its folder within the package.
        checkout: Its folder within `data/`.
    """

    session_id: str
    installed: str
    checkout: str


# By the language that it is in: the first has some Chinese among its English.
SAMPLES: Mapping[str, Sample] = MappingProxyType(
    {
        "en": Sample(session_id=SAMPLE_SESSION_ID, installed="_sample", checkout="default"),
        "zh": Sample(session_id="caigou-2026-47", installed="_sample_chinese", checkout="chinese"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMessage:
    """A message of the recorded session.

    Attributes:
        at: Time of recording.
        text: Its JSON.
    """

    at: dt.datetime
    text: str

    @property
    def role(self) -> str:
        """Role of the speaker."""
        return str(json.loads(self.text)["role"])


class Recording:
    """The recorded session, to be said again in a copy of the sample.

    Args:
        storage: The storage that has the copy.
        language: Of the sample, see `SAMPLES`.

    Raises:
        NotFound: The installation lacks the recording, or it cannot be read.
    """

    def __init__(self, storage: Storage, language: str = "en") -> None:
        sample = SAMPLES[language]
        self.messages = [
            RecordedMessage(at=dt.datetime.fromisoformat(record.ts), text=record.body.text)
            for record in _recorded_session(sample)
            if isinstance(record.body, MessageRecord)
        ]
        if not self.messages:
            raise NotFound(f"The recorded session {sample.session_id} holds no message. Reinstall memory-service.")
        self._log = storage.workspace(DEFAULT_WORKSPACE).logs.open(sample.session_id, must_exist=False)

    @cached_property
    def tokens(self) -> int:
        """Size of all messages."""
        return sum(map(message_tokens, read_messages([json.loads(message.text) for message in self.messages])))

    def say(self, message: RecordedMessage) -> None:
        """Append a message to the log of the copy, at its recorded time."""
        # A session of the service notes the present moment, and the memories would speak of the wrong days.
        self._log.append([MessageRecord(text=message.text)], at=message.at)


def copy_sample(storage: Storage, *, with_session: bool = True, language: str = "en") -> None:
    """Copy the sample's Markdown, and its recorded session, to the workspace `default`.

    Args:
        storage: Where to.
        with_session: Whether the recorded session is copied too.
        language: Of the sample, see `SAMPLES`.

    Raises:
        NotFound: The installation lacks the sample.
        Conflict: There is something in the workspace already.
        StorageFailed: It cannot be written there.
    """
    sample = SAMPLES[language]
    source = _bundled_folder(sample)
    if storage.contains(DEFAULT_WORKSPACE):
        contents = storage.contents(DEFAULT_WORKSPACE)
        if contents.documents or contents.sessions:
            raise Conflict(
                f"There is a workspace {DEFAULT_WORKSPACE} in {storage.place} already. Choose an empty folder; nothing "
                "was changed."
            )
    storage.make(DEFAULT_WORKSPACE)
    parts = storage.workspace(DEFAULT_WORKSPACE)
    for path in sorted(source.rglob("*.md")):
        parts.documents.replace(path.relative_to(source).as_posix(), path.read_bytes(), expected=None)
    if with_session:
        parts.logs.begin(sample.session_id, _recorded_session(sample))


def _recorded_session(sample: Sample) -> list[Record]:
    """The records of the recorded session.

    Raises:
        NotFound: The installation lacks the sample.
    """
    path = _bundled_folder(sample) / "sessions" / f"{sample.session_id}.jsonl"
    if not path.is_file():
        raise NotFound(f"The recorded session is not at {path}. Reinstall memory-service.")
    return [decode(line).record for line in path.read_bytes().splitlines(keepends=True)]


def _bundled_folder(sample: Sample) -> Path:
    package = Path(__file__).parents[1]
    path, checkout = package / sample.installed, package.parent / "data" / sample.checkout
    source = path if path.is_dir() else checkout
    if not source.is_dir():
        raise NotFound(f"The sample workspace is not at {source}. Reinstall memory-service.")
    return source
