"""Checks of two replicas beside what was acknowledged: stale answers, locks, events, and what is stored in the end."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Self

import httpx

from indexer.stores import PostgresDatabase
from memory_service.errors import StorageFailed
from memory_service.storage.postgres.postgres_coordination import PostgresCoordination
from tests.campaigns.outage_clients import Ledger, Note
from tests.campaigns.replicas import Cluster, client
from tests.serving import events_of

_STALE_SECONDS = 2.0
_HELD_SECONDS = 0.05
_HEARD_SECONDS = 20.0
_MOST_CONFLICTS = 20
_SEARCHED = 4
_COMPACTION = {"mode": "apply", "force": True}


class _Threads:
    """Threads while a block runs."""

    def __init__(self, cluster: Cluster, ledger: Ledger) -> None:
        self.cluster, self.ledger = cluster, ledger
        self.ending = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self.run, args=(number,), daemon=True) for number in range(2)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        for thread in self._threads:
            thread.join()

    def run(self, number: int) -> None:
        """What the thread of a number does."""
        raise NotImplementedError


class StaleWatch(_Threads):
    """Asks the other replica for each memory two seconds after it was acknowledged; see `Ledger`.

    Args:
        cluster: The servers.
        ledger: What was acknowledged.
        key: A key.
    """

    def __init__(self, cluster: Cluster, ledger: Ledger, key: str) -> None:
        super().__init__(cluster, ledger)
        self._headers = {"Authorization": f"Bearer {key}"}
        self._waiting: tuple[deque[tuple[Note, str]], ...] = (deque(), deque())

    def watch(self, note: Note, path: str, replica: int) -> None:
        """Ask a replica for it when it is time."""
        self._waiting[replica].append((note, path))

    def run(self, number: int) -> None:
        with client() as http:
            while not self.ending.is_set() or self._waiting[number]:
                if not self._waiting[number]:
                    self.ending.wait(0.05)
                    continue
                due = self._waiting[number].popleft()
                time.sleep(max(0.0, due[0].acknowledged_at + _STALE_SECONDS - time.monotonic()))
                # All that are due are asked for by one look.
                notes = [due]
                while self._waiting[number] and len(notes) < 50:
                    if self._waiting[number][0][0].acknowledged_at + _STALE_SECONDS > time.monotonic():
                        break
                    notes.append(self._waiting[number].popleft())
                self._look(http, number, notes)

    def _look(self, http: httpx.Client, number: int, notes: list[tuple[Note, str]]) -> None:
        url = f"/v1/workspaces/{self.ledger.workspace}"
        for path in {path for _, path in notes}:
            text = _text(partial(self._answer, http, number, "GET"), f"{url}/memories/{path}")
            for note, place in notes:
                if place == path and note.word not in text:
                    self._note(note, f"replica {number + 1} read a file without {note.word}, two seconds later")
        self.ledger.count("looks at the other replica", len(notes))
        indexed_notes = [note for note, _ in notes if note.is_indexed]
        if not indexed_notes:
            return
        note = indexed_notes[-1]
        found = self._answer(http, number, "POST", f"{url}/search", {"query": note.word, "limit": 5})
        if note.word not in str(found.get("results")):
            if any("index: " in reason for reason in found.get("degraded", ())):
                # The answer says that it lacks what was written last.
                self.ledger.count("searches that say what they lack")
            else:
                self._note(note, f"replica {number + 1} did not find {note.word}, two seconds later: {found}"[:600])

    def _note(self, note: Note, defect: str) -> None:
        if not note.may_be_lost and note.is_forgotten is None and not self.ledger.is_losing:
            self.ledger.note(defect)

    def _answer(self, http: httpx.Client, number: int, method: str, path: str, body: Any = None) -> Any:
        """The first answer of success; of a refusal, what it says."""
        while True:
            with suppress(httpx.TransportError):
                url = self.cluster.replicas[number].url + path
                answer = http.request(method, url, json=body, headers=self._headers)
                if answer.is_success or (answer.status_code < 429 and answer.status_code != 409):
                    return answer.json()
            time.sleep(0.05)


class LockProbe(_Threads):
    """Two processes that take one lock again and again: no two may have held it at once, and to its end."""

    def __init__(self, cluster: Cluster, ledger: Ledger) -> None:
        super().__init__(cluster, ledger)
        self._held: list[tuple[float, float, int]] = []

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        last_end, last_number = 0.0, 0
        for start, end, number in sorted(self._held):
            if start < last_end:
                self.ledger.note(f"{last_number + 1} and {number + 1} held one lock, for {last_end - start:.3f} s")
            last_end, last_number = max(end, last_end), number
        self.ledger.count("locks held", len(self._held))

    def run(self, number: int) -> None:
        database = PostgresDatabase(self.cluster.addresses[number], connections=2)
        coordination = PostgresCoordination(database)
        try:
            while not self.ending.is_set():
                try:
                    with coordination.lock("campaign/.locks/probe", timeout_seconds=1.0):
                        start = time.monotonic()
                        time.sleep(_HELD_SECONDS)
                        end = time.monotonic()
                except StorageFailed:
                    self.ledger.count("locks lost or not had")
                    time.sleep(0.05)
                else:
                    self._held.append((start, end, number))
                    time.sleep(_HELD_SECONDS)
        finally:
            coordination.close()
            database.close()


class EventWatch(_Threads):
    """Listens to the session at both replicas: no id is that of two events, and what happens is heard."""

    def __init__(self, cluster: Cluster, ledger: Ledger, key: str) -> None:
        super().__init__(cluster, ledger)
        self._headers = {"Authorization": f"Bearer {key}"}
        self._events: dict[int, set[str]] = defaultdict(set)
        self._ids: tuple[set[int], set[int]] = (set(), set())

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for number, contents in self._events.items():
            if len(contents) > 1:
                self.ledger.note(f"the id {number} is that of several events: {sorted(contents)}")
        self.ledger.count("events heard", len(self._events))

    def run(self, number: int) -> None:
        last = 0
        path = f"/v1/workspaces/{self.ledger.workspace}/sessions/{self.ledger.session}/events"
        with httpx.Client(timeout=httpx.Timeout(10, read=1.0), trust_env=False, verify=False) as http:
            while not self.ending.is_set():
                with suppress(httpx.TransportError):
                    url = self.cluster.replicas[number].url + path
                    asked = {"after": last} if last else {}
                    with http.stream("GET", url, params=asked, headers=self._headers) as answer:
                        if answer.is_success:
                            for event in events_of(answer.iter_lines()):
                                if event.id and event.name != "dropped":
                                    if int(event.id) <= last:
                                        # The database never took it: it has no id of its own.
                                        self.ledger.count("events told by one replica alone")
                                        continue
                                    self._events[int(event.id)].add(f"{event.name} {event.text}")
                                    self._ids[number].add(int(event.id))
                                    last = int(event.id)
                                if self.ending.is_set():
                                    return
                self.ending.wait(0.02)

    def check_hearing(self) -> None:
        """Have one replica compact the session: both must hear of it."""
        session = f"/v1/workspaces/{self.ledger.workspace}/sessions/{self.ledger.session}"
        with client() as http:
            for replica in self.cluster.replicas:
                before = [set(ids) for ids in self._ids]
                text = {"messages": [{"role": "user", "content": "How are you? " * 50}]}
                http.post(f"{replica.url}{session}/messages", json=text, headers=self._headers).raise_for_status()
                for _ in range(_MOST_CONFLICTS):
                    url = f"{replica.url}{session}/compact"
                    answer = http.post(url, json=_COMPACTION, headers=self._headers)
                    # A compaction whose client was cut off may end only now.
                    if answer.status_code != httpx.codes.CONFLICT:
                        break
                answer.raise_for_status()
                end = time.monotonic() + _HEARD_SECONDS
                while time.monotonic() < end and not all(map(set.difference, self._ids, before)):
                    time.sleep(0.02)
                for number in range(2):
                    if not self._ids[number] - before[number]:
                        self.ledger.note(f"events of {replica.url} are not heard at replica {number + 1}")


def check_contents(cluster: Cluster, ledger: Ledger) -> None:
    """What the database has: all that was acknowledged, once, and records without holes."""
    memories, lines, seqs = _stored(cluster, ledger)
    for note in list(ledger.notes):
        if note.kind == "message":
            # The word of a message comes into a memory by a flush, once.
            count = lines.count(note.word)
            if memories.count(note.word) > 1:
                ledger.note(f"what was said as {note.word} is {memories.count(note.word)} times in the memories")
        else:
            count = memories.count(note.word)
        if count > 1:
            ledger.note(f"{note.kind} {note.word} is there {count} times")
        if note.may_be_lost:
            if not count:
                ledger.count("lost with the primary")
        elif note.is_forgotten and count:
            ledger.note(f"{note.word} was forgotten, and is there")
        elif note.is_acknowledged and note.is_forgotten is None and not count:
            ledger.note(f"{note.kind} {note.word} was acknowledged, and is lost")
    if seqs != list(range(1, len(seqs) + 1)):
        ledger.note(f"the records of the session are torn: {len(seqs)} of {seqs[-1:]}")


def check_answers(cluster: Cluster, ledger: Ledger, key: str, draw: random.Random) -> None:
    """What each replica answers: what the database has, and nothing else."""
    headers = {"Authorization": f"Bearer {key}"}
    memories, lines, _ = _stored(cluster, ledger)
    lost = [note for note in ledger.notes if note.may_be_lost and note.word not in memories + lines]
    there = [note for note in ledger.notes_of_round if note.word in memories]
    asked = draw.sample(there, min(_SEARCHED, len(there))) + draw.sample(lost, min(_SEARCHED, len(lost)))
    with client() as http:
        for number, replica in enumerate(cluster.replicas, start=1):
            url = f"{replica.url}/v1/workspaces/{ledger.workspace}"
            files = http.get(f"{url}/memories", headers=headers).raise_for_status().json()["files"]
            texts = [
                _text(lambda path: http.get(path, headers=headers).raise_for_status().json(), f"{url}/memories/{name}")
                for name in sorted(file["path"] for file in files)
            ]
            if "".join(texts) != memories:
                ledger.note(f"replica {number} reads other memories than are stored")
            answer = http.get(f"{url}/sessions/{ledger.session}/messages", params={"view": "log"}, headers=headers)
            said = [str(message["content"]) for message in (answer.json()["messages"] if answer.is_success else [])]
            if [text for text in said if text not in lines] or len(said) != lines.count('"role"'):
                ledger.note(f"replica {number} reads other messages than are stored")
            for note in asked:
                asked_body = {"query": note.word, "limit": 5}
                found = http.post(f"{url}/search", json=asked_body, headers=headers).raise_for_status().json()
                is_found = any(note.word in result["text"] for result in found["results"])
                if not is_found and note not in lost and any("index: " in reason for reason in found["degraded"]):
                    ledger.count("searches that say what they lack")
                elif is_found == (note in lost):
                    ledger.note(f"replica {number} {'finds' if is_found else 'does not find'} {note.word}")
            ledger.count("searches compared", len(asked))


def _text(ask: Callable[[str], Any], path: str) -> str:
    """The text of a file, of which each answer has a part."""
    text, start_line = "", 1
    while start_line:
        answer = ask(f"{path}?start_line={start_line}")
        text += answer.get("text", "")
        start_line = answer.get("next_start_line")
    return text


def _stored(cluster: Cluster, ledger: Ledger) -> tuple[str, str, list[int]]:
    """The memories of the workspace, the lines of the session, and their numbers."""
    is_of = f"ws = (SELECT ws FROM workspaces WHERE name = '{ledger.workspace}')"
    documents = cluster.rows(f"SELECT content FROM documents WHERE {is_of} ORDER BY path")
    records = cluster.rows(
        f"SELECT seq, kind, rest FROM log_records WHERE {is_of} AND session = '{ledger.session}' ORDER BY seq"
    )
    # Only what was said: summaries and records of other kinds may name it, too.
    lines = "\n".join(bytes(rest).decode() for _, kind, rest in records if kind == "message")  # type: ignore[call-overload]
    return (
        "".join(bytes(content).decode() for (content,) in documents),  # type: ignore[call-overload]
        lines,
        [int(str(seq)) for seq, *_ in records],
    )
