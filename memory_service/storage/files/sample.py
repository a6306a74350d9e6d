"""The bundled sample workspace and its recorded session: inside the package when installed, in `data/` in a checkout.

Invariants: what is bundled is only read; a workspace that is there is never replaced; what the service made beside the
sample at run time is no part of it; a message that is said again keeps its recorded time.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from memory_service.errors import Conflict, NotFound, StorageFailed
from memory_service.messages.reading import read_messages
from memory_service.messages.sizes import message_tokens
from memory_service.sessions.records import MessageRecord
from memory_service.storage.files.disk import FILE_MODE, make_folder
from memory_service.storage.files.jsonl_log import JsonlLog

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
        folder: The workspace of that copy.
        language: Of the sample, see `SAMPLES`.

    Raises:
        NotFound: The installation lacks the recording, or it cannot be read.
    """

    def __init__(self, folder: Path, language: str = "en") -> None:
        path = _recorded_session(SAMPLES[language])
        self.messages = [
            RecordedMessage(at=dt.datetime.fromisoformat(record.ts), text=record.body.text)
            for record in JsonlLog(path).read()
            if isinstance(record.body, MessageRecord)
        ]
        if not self.messages:
            raise NotFound(f"The recorded session at {path} holds no message. Reinstall memory-service.")
        self._now = self.messages[0].at
        # A session of the service notes the present moment, and the memories would speak of the wrong days.
        self._log = JsonlLog(folder / "sessions" / path.name, now=lambda: self._now)

    @cached_property
    def tokens(self) -> int:
        """Size of all messages."""
        return sum(map(message_tokens, read_messages([json.loads(message.text) for message in self.messages])))

    def say(self, message: RecordedMessage) -> None:
        """Append a message to the log of the copy, at its recorded time."""
        self._now = message.at
        self._log.append([MessageRecord(text=message.text)])


def _recorded_session(sample: Sample) -> Path:
    """The log of the recorded session, where it is bundled.

    Raises:
        NotFound: The installation lacks the sample.
    """
    path = _bundled_folder(sample) / "sessions" / f"{sample.session_id}.jsonl"
    if not path.is_file():
        raise NotFound(f"The recorded session is not at {path}. Reinstall memory-service.")
    return path


def copy_sample(home: Path, *, with_session: bool = True, language: str = "en") -> Path:
    """Copy the sample's Markdown, and its recorded session, to `<home>/default` and return that folder.

    Args:
        home: Where to; it is made if it is not there.
        with_session: Whether the recorded session is copied too.
        language: Of the sample, see `SAMPLES`.

    Raises:
        NotFound: The installation lacks the sample.
        Conflict: There is a workspace already, whose files it would replace.
        StorageFailed: It cannot be written there.
    """
    sample = SAMPLES[language]
    source = _bundled_folder(sample)
    target = home / "default"
    try:
        if target.is_dir() and any(target.iterdir()):
            raise Conflict(f"There is a workspace at {target} already. Choose an empty folder; nothing was changed.")
        for path in _files(source, sample if with_session else None):
            copied_path = target / path.relative_to(source)
            make_folder(copied_path.parent)
            shutil.copyfile(path, copied_path)
            copied_path.chmod(FILE_MODE)
    except OSError as error:
        raise StorageFailed(
            f"The sample cannot be written to {target} ({error.strerror or error}). Choose another folder."
        ) from error
    return target


def _bundled_folder(sample: Sample) -> Path:
    package = Path(__file__).parents[2]
    path, checkout = package / sample.installed, package.parent / "data" / sample.checkout
    source = path if path.is_dir() else checkout
    if not source.is_dir():
        raise NotFound(f"The sample workspace is not at {source}. Reinstall memory-service.")
    return source


def _files(source: Path, sample: Sample | None) -> Iterator[Path]:
    yield from sorted(source.rglob("*.md"))
    if sample is not None:
        yield _recorded_session(sample)
