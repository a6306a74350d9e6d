"""Clients of two replicas that send a request again until it is answered, and a ledger of what was acknowledged."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import httpx
from pydantic import SecretStr

from indexer.stores import PostgresDatabase
from indexer.stores.postgres.postgres_heads import PostgresHeads
from memory_service.storage.postgres.postgres_logs import PostgresLogs
from tests.campaigns.replicas import Cluster, client

# So long a request is sent again.
_PATIENCE_SECONDS = 90.0
_STALE_SECONDS = 2.0
_LETTERS = "abcdefghijkmnopqrstuvwxyz23456789"
_ACTS = ("remember",) * 5 + ("append",) * 7 + ("flush", "compact", "forget", "reindex")


@dataclass(slots=True)
class Note:
    """A text with a word that no other text has, which was sent to be stored.

    Attributes:
        kind: `memory` or `message`.
        is_acknowledged: Whether it was said to be stored.
        may_be_lost: Whether a standby that others did not wait for may lack it.
        is_indexed: Whether it was said to be found at once, too.
        is_forgotten: None as long as nobody wants it gone; then whether that was acknowledged.
    """

    kind: str
    word: str
    memory_id: str = ""
    acknowledged_at: float = 0.0
    may_be_lost: bool = False
    is_indexed: bool = True
    is_forgotten: bool | None = None

    @property
    def is_acknowledged(self) -> bool:
        return self.acknowledged_at > 0


class Ledger:
    """What was acknowledged in one workspace, and what was found to be wrong.

    Args:
        workspace: The workspace.
        draw: Draws.
    """

    def __init__(self, workspace: str, draw: random.Random) -> None:
        self.workspace = workspace
        self.session = f"{workspace}-talk"
        self.notes: list[Note] = []
        self.is_losing = False
        # How often something was lost, in the whole life of the workspace.
        self.losses = 0
        self._draw = random.Random(draw.random())
        self._changing = threading.Lock()
        self._defects: list[str] = []
        self.counts: Counter[str] = Counter()
        self._first_of_round = 0
        self._last_at = 0.0

    def begin_round(self) -> None:
        """Begin to count anew."""
        self._first_of_round = len(self.notes)

    def take_round(self) -> tuple[list[str], dict[str, int]]:
        """What was found in the round, and what was counted."""
        with self._changing:
            defects, counts = self._defects, dict(sorted(self.counts.items()))
            self._defects, self.counts = [], Counter()
        return defects, counts

    @property
    def notes_of_round(self) -> list[Note]:
        """The notes that were begun in the round."""
        return self.notes[self._first_of_round :]

    def note(self, *defects: str) -> None:
        """Note what is wrong."""
        with self._changing:
            self._defects += defects

    def count(self, name: str, by: int = 1) -> None:
        """Count something."""
        with self._changing:
            self.counts[name] += by

    def begin(self, kind: str) -> Note:
        """A note that is about to be sent."""
        with self._changing:
            word = "q" + "".join(self._draw.choices(_LETTERS, k=9))
            made = Note(kind, word, may_be_lost=self.is_losing)
            self.notes.append(made)
        return made

    def draw_text(self) -> str:
        """A text that is noted, and that nobody waits for."""
        return f"The parcel {self.begin('memory').word} went through."

    def acknowledge(self, made: Note, epoch: object) -> None:
        """Note that it was acknowledged; whoever began before a loss cannot be sure of it."""
        made.may_be_lost = made.may_be_lost or epoch != self.epoch
        made.acknowledged_at = self._last_at = time.monotonic()
        self.count(f"acknowledged {made.kind}")

    def await_age(self, seconds: float) -> None:
        """Wait until the last acknowledgement is so old."""
        time.sleep(max(0.0, self._last_at + seconds - time.monotonic()))

    @property
    def epoch(self) -> object:
        """Something that is the same later, unless something was lost between."""
        return object() if self.is_losing else self.losses

    def forgettable(self, draw: random.Random) -> Note | None:
        """A memory that is there, and that nobody else forgets."""
        with self._changing:
            there = [note for note in self.notes if note.memory_id and note.is_forgotten is None]
            if len(there) < 5:
                return None
            chosen = draw.choice(there)
            chosen.is_forgotten = False
        return chosen

    def states(self, cluster: Cluster) -> dict[str, object]:
        """The names of the states of the session's log and of the index, as a replica sees them now."""
        database = PostgresDatabase(cluster.primary.address("memory"))
        try:
            edition = PostgresLogs(database, self.workspace).open(self.session, must_exist=False).follow().edition
            row = PostgresHeads(database, self.workspace).row()
            return {"edition": edition or object(), "generation": row.generation if row else object()}
        finally:
            database.close()


class Acknowledged(Protocol):
    """Whoever is to hear of an acknowledged memory."""

    def watch(self, note: Note, path: str, replica: int) -> None:
        """Take it."""


class Client:
    """A client in a thread of its own while a block runs.

    Args:
        cluster: The servers.
        ledger: What was acknowledged.
        key: Its key.
        draw: Draws.
    """

    def __init__(self, cluster: Cluster, ledger: Ledger, key: SecretStr | str, draw: random.Random) -> None:
        self.cluster, self.ledger, self.draw = cluster, ledger, draw
        self._key = str(key)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.http = client()
        self.replica = draw.randrange(2)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self.http.close()

    def act(self) -> None:
        """Do one thing."""
        raise NotImplementedError

    def ask(
        self, method: str, path: str, body: object = None, *, key: str = "", replica: int | None = None
    ) -> httpx.Response | None:
        """Ask one replica after another until one answers; None if none does for very long.

        What is asked is the same each time, with the same key, so it is done once.
        """
        end = time.monotonic() + _PATIENCE_SECONDS
        headers = {"Authorization": f"Bearer {self._key}"} | ({"Idempotency-Key": key} if key else {})
        last = ""
        while time.monotonic() < end:
            if replica is None:
                self.replica = 1 - self.replica
            url = self.cluster.replicas[self.replica if replica is None else replica].url
            try:
                answer = self.http.request(method, url + path, json=body, headers=headers)
            except httpx.TransportError as error:
                last = repr(error)
                self.ledger.count("no answer")
            else:
                if answer.status_code not in (409, 429, 500, 502, 503):
                    return answer
                last = f"{answer.status_code} {answer.text[:300]}"
                self.ledger.count(f"answered {answer.status_code}")
                if answer.status_code == 500:
                    self.ledger.note(f"{method} {path}: {last}")
            time.sleep(0.05)
        self.ledger.note(f"{method} {path} was never answered: {last}")
        return None

    def expect(self, answer: httpx.Response | None, *statuses: int) -> bool:
        """True for an answer of success; notes one of other statuses than these as a defect."""
        if answer is None or answer.is_success:
            return answer is not None
        if answer.status_code not in statuses:
            request = answer.request
            self.ledger.note(f"{request.method} {request.url.path}: {answer.status_code} {answer.text[:300]}")
        return False

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self.act()
            except Exception as error:
                self.ledger.note(f"the client failed: {error!r}")
                return


class WritingClient(Client):
    """A client that notes, says, flushes, compacts, forgets and reindexes; see `Client`.

    Args:
        stale: Hears of acknowledged memories.
        number: Its number.
    """

    def __init__(
        self, cluster: Cluster, ledger: Ledger, key: str, draw: random.Random, stale: Acknowledged, number: int
    ) -> None:
        super().__init__(cluster, ledger, key, draw)
        self._stale = stale
        self._number = number
        self._w = f"/v1/workspaces/{ledger.workspace}"
        self._session = f"{self._w}/sessions/{ledger.session}"

    def act(self) -> None:
        acts: dict[str, Callable[[], None]] = {
            "remember": self._remember, "append": self._append, "flush": self._flush, "compact": self._compact,
            "forget": self._forget, "reindex": self._reindex,
        }  # fmt: skip
        acts[self.draw.choice(_ACTS)]()

    def _draw_key(self) -> str:
        return f"{self._number}-{self.draw.getrandbits(60)}"

    def _remember(self) -> None:
        epoch, note = self.ledger.epoch, self.ledger.begin("memory")
        body = {"text": f"The parcel {note.word} lies on shelf {self._number}."}
        answer = self.ask("POST", f"{self._w}/memories", body, key=self._draw_key())
        if self.expect(answer) and answer is not None:
            self.ledger.acknowledge(note, epoch)
            note.memory_id = answer.json()["memory_id"]
            if answer.json()["degraded"]:
                note.is_indexed = False
                self.ledger.count("memories that say that they are not indexed yet")
            self._stale.watch(note, answer.json()["path"], 1 - self.replica)

    def _append(self) -> None:
        epoch, note = self.ledger.epoch, self.ledger.begin("message")
        messages = [
            {"role": "user", "content": f"Remember: the port of {note.word} is {self.draw.randint(1024, 9999)}."},
            {"role": "assistant", "content": f"Noted by {self._number}. " * 20},
        ]
        answer = self.ask("POST", f"{self._session}/messages", {"messages": messages}, key=self._draw_key())
        if self.expect(answer):
            self.ledger.acknowledge(note, epoch)

    def _flush(self) -> None:
        self._ask_for("flush", {})

    def _compact(self) -> None:
        self._ask_for("compact", {"mode": "apply", "force": True})

    def _ask_for(self, what: str, body: object) -> None:
        # There is no session until somebody has said something.
        if self.expect(self.ask("POST", f"{self._session}/{what}", body, key=self._draw_key()), 404):
            self.ledger.count(f"acknowledged {what}")

    def _forget(self) -> None:
        note = self.ledger.forgettable(self.draw)
        if note is None:
            return
        epoch = self.ledger.epoch
        answer = self.ask("POST", f"{self._w}/forget", {"memory": note.memory_id}, key=self._draw_key())
        # One that was lost cannot be forgotten, and one that was forgotten without an answer is not there any more.
        if answer is not None and (self.expect(answer, 404) or answer.status_code == 404):
            note.is_forgotten = True
            note.may_be_lost = note.may_be_lost or epoch != self.ledger.epoch
            self.ledger.count("acknowledged forget")

    def _reindex(self) -> None:
        epoch = self.ledger.epoch
        answer = self.ask("POST", f"{self._w}/reindex", {}, key=self._draw_key())
        if answer is None or not self.expect(answer, 404):
            return
        path, end = f"{self._w}/operations/{answer.json()['operation_id']}", time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end:
            answer = self.ask("GET", path)
            if answer is None or epoch != self.ledger.epoch:
                return
            if not self.expect(answer):
                return
            if answer.json()["state"] not in ("queued", "running"):
                self.ledger.count(f"operation {answer.json()['state']}")
                return
            time.sleep(0.1)
        self.ledger.note(f"an operation did not end: {answer.text[:300]}")


class KeyClient(Client):
    """A client that makes keys, tries them at the other replica, and withdraws them; see `Client`."""

    def act(self) -> None:
        epoch, workspace = self.ledger.epoch, self.ledger.workspace
        new_key = {"name": "somebody", "role": "read", "workspaces": [workspace]}
        answer = self.ask("POST", "/v1/keys", new_key)
        if answer is None or not self.expect(answer):
            return
        made = answer.json()
        self.ledger.count("acknowledged key")
        self._pause()
        for replica in range(2):
            if self._status(replica, made["key"]) == 401 and epoch == self.ledger.epoch:
                self.ledger.note(f"replica {replica + 1} does not know a key that was made")
        answer = self.ask("DELETE", f"/v1/keys/{made['key_id']}")
        # A loss takes a key; and who is not answered withdraws again what is withdrawn.
        if answer is None or not (self.expect(answer, 404) or answer.status_code == 404):
            return
        self.ledger.count("acknowledged withdrawal")
        self._pause()
        for replica in range(2):
            status = self._status(replica, made["key"])
            if status != 401 and epoch == self.ledger.epoch:
                self.ledger.note(f"replica {replica + 1} answers {status} to a key that was withdrawn")
        self._ending.wait()

    def _status(self, replica: int, key: str) -> int:
        asking = Client(self.cluster, self.ledger, key, self.draw)
        with asking.http:
            answer = asking.ask("GET", f"/v1/workspaces/{self.ledger.workspace}/memories", replica=replica)
        return answer.status_code if answer is not None else 0

    def _pause(self) -> None:
        time.sleep(_STALE_SECONDS)
