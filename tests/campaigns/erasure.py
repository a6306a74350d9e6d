"""Erasures that are killed at each of their steps: what was erased is nowhere below the home afterwards.

`python -m tests.campaigns.erasure --runs 300 --storage files` erases texts in every way there is, in English and in
Chinese, in a process that ends at its n-th step: before a call of the file system, a statement of SQLite, or a wait for
PostgreSQL. In every third run another process serves the same home meanwhile. Then an erasure that was not acknowledged
is asked for again, one that was is not, and every place of the storage is searched for the bytes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from indexer.testing import HashEmbedder
from memory_service.errors import NotFound
from memory_service.messages.shapes import text_of
from memory_service.runtime.models import Models
from memory_service.schemas.compaction import SessionContextRequest
from memory_service.schemas.entries import StoredMemory
from memory_service.service import MemoryService
from tests.kills import KILLED, killed_at
from tests.properties.erased import NEW, S, W, opened, say
from tests.storages import FILES, STORAGES, StorageCase

SECRETS = ("zqerased unrepeatable", "抹去的秘密 不可复得")
PATH = "memory/notes.md"
_SERVED_SECONDS = 0.05

Act = Callable[[MemoryService, str], object]


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to erase a text: what there is before, and how it is erased."""

    before: Act
    erase: Act


def _remembered(service: MemoryService, secret: str) -> StoredMemory:
    service.remember(W, NEW)
    return service.remember(W, f"The word is {secret}.")


def _forgotten(service: MemoryService, secret: str) -> object:
    return service.forget(W, service.remember(W, f"The word is {secret}.").memory_id)


def _edited(service: MemoryService, secret: str) -> object:
    memory = _remembered(service, secret)
    return service.edit(W, memory.memory_id, text=f"The word is {secret} since Monday.")


def _filed(service: MemoryService, secret: str) -> object:
    service.remember(W, NEW)
    service.put(W, PATH, f"- {secret}\n", if_none_match=True)
    return service.put(W, PATH, f"# Notes\n\n- {NEW}\n\n## More\n\n- {secret}\n", if_match="*")


def _talked(service: MemoryService, secret: str) -> object:
    service.remember(W, NEW)
    say(service, secret, count=4)
    # Word for word in a file, and out of it again.
    said = "".join(f"- {text_of(json.loads(text))}\n" for _, text in service.sessions(W).store.iter_messages(S)[0])
    service.put(W, PATH, said, if_none_match=True)
    service.put(W, PATH, f"- {NEW}\n", if_match="*")
    service.sessions(W).context(S, SessionContextRequest(recall="always", auto=False))
    return service.reindex(W)


def _trimmed(service: MemoryService, secret: str) -> object:
    _talked(service, secret)
    return service.sessions(W).store.trim(S, 2)


def _rebuilt_by_half(service: MemoryService, secret: str) -> object:
    """An index that is made anew, by a process that is killed when it has read the text."""
    _remembered(service, secret)
    service.put(W, PATH, f"- {NEW}\n", if_none_match=True)
    child = os.fork()
    if not child:
        with MemoryService(service.settings, embedder=HashEmbedder(), models=Models()) as other:
            other.reindex(W, full=True, on_progress=lambda _: os._exit(KILLED))
    os.waitpid(child, 0)
    return None


def _put(service: MemoryService, _: str) -> object:
    service.put(W, PATH, f"# Notes\n\n- {NEW}\n", if_match="*")
    # What was edited out stays in the history of a database until that is erased.
    return service.erase_versions(W, PATH)


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "forget": Kind(_remembered, _forgotten),
        "forget what was edited": Kind(_edited, _forgotten),
        "forget beside half a rebuild": Kind(_rebuilt_by_half, _forgotten),
        "DELETE file": Kind(_filed, lambda service, _: service.delete(W, PATH)),
        "PUT without the text": Kind(_filed, _put),
        "DELETE session": Kind(_talked, lambda service, _: service.sessions(W).store.delete(S)),
        "DELETE trimmed session": Kind(_trimmed, lambda service, _: service.sessions(W).store.delete(S)),
    }
)


def _memory_id(home: Path, storage: StorageCase, secret: str) -> str:
    """The id of the memory, as its comment tells it."""
    with closing(storage.open(home)) as opened_storage:
        documents = opened_storage.workspace(W).documents
        texts = [documents.read(path).raw.decode() for path in sorted(documents.scan().documents)]
    for text in texts:
        lines = text.splitlines()
        for above, line in itertools.pairwise(lines):
            if secret in line and "memory id=" in above:
                return above.partition("memory id=")[2].split()[0]
    return "m0123456789ab"


def _erase(kind: str, service: MemoryService, secret: str, memory_id: str) -> None:
    if kind.startswith("forget"):
        service.forget(W, memory_id)
    else:
        KINDS[kind].erase(service, secret)


def _killed(home: Path, storage: StorageCase, kind: str, secret: str, memory_id: str, last: int) -> tuple[bool, int]:
    """Erase in a process of its own that ends at a step; whether it was acknowledged, and how many steps it took."""

    def erase() -> None:
        _erase(kind, opened(home, storage=storage).__enter__(), secret, memory_id)

    return killed_at(home, last, erase, storage=storage)


class Serving:
    """Another process on the home, which searches until it is told to end."""

    def __init__(self, home: Path, storage: StorageCase) -> None:
        self._storage = storage
        down, self._down = os.pipe()
        self._up, up = os.pipe()
        self._child = os.fork()
        if not self._child:
            os.close(self._down)
            os.set_blocking(down, False)
            self._serve(home, down, up)
        os.close(down)
        os.close(up)
        os.read(self._up, 1)

    def again(self, kind: str, secret: str, memory_id: str) -> None:
        """Ask it for an erasure; or for nothing, without a kind."""
        os.write(self._down, f"{kind}\t{secret}\t{memory_id}".encode())
        os.read(self._up, 1)

    def end(self) -> None:
        """End it."""
        os.close(self._down)
        os.waitpid(self._child, 0)
        os.close(self._up)

    def _serve(self, home: Path, down: int, up: int) -> None:
        with opened(home, storage=self._storage) as service:
            service.search(W, NEW)
            os.write(up, b"s")
            while True:
                with suppress(BlockingIOError):
                    asked = os.read(down, 4096).decode()
                    if not asked:
                        os._exit(0)
                    kind, secret, memory_id = asked.split("\t")
                    with suppress(NotFound):
                        if kind:
                            _erase(kind, service, secret, memory_id)
                    # It looks at the disk once in a second.
                    service._workspaces.memory(W)._look_again = 0.0
                    service.search(W, NEW)
                    os.write(up, b"d")
                service.search(W, NEW)
                time.sleep(_SERVED_SECONDS)


def run(
    template: Path, home: Path, kind: str, secret: str, last: int, *, storage: StorageCase, served: bool
) -> list[str]:
    """One erasure, killed at a step; the places that hold the text afterwards."""
    storage.copy(template, home)
    memory_id = _memory_id(home, storage, secret)
    serving = Serving(home, storage) if served else None
    acknowledged, _ = _killed(home, storage, kind, secret, memory_id, last)
    if serving is not None:
        serving.again("" if acknowledged else kind, secret, memory_id)
        left = storage.found(home, secret)
        serving.end()
        return left
    with opened(home, storage=storage) as service:
        service.search(W, NEW)
        if not acknowledged:
            with suppress(NotFound):
                _erase(kind, service, secret, memory_id)
        return storage.found(home, secret)


def campaign(
    base: Path, runs: int, seed: int, told: Callable[[str], None], *, storage: StorageCase = FILES
) -> Iterator[str]:
    """Erasures of all kinds, killed at steps all over them; gives what was found, run by run."""
    dice = random.Random(seed)
    ways = list(itertools.product(KINDS, range(len(SECRETS))))
    share = -(-runs // len(ways))
    number = 0
    for kind, language in ways:
        secret, template = SECRETS[language], base / f"{kind}-{language}".replace(" ", "-")
        with opened(template, storage=storage) as service:
            KINDS[kind].before(service, secret)
        assert storage.found(template, secret), f"{kind}: there is nothing to erase"
        whole = base / "whole"
        storage.copy(template, whole)
        acknowledged, steps = _killed(whole, storage, kind, secret, _memory_id(whole, storage, secret), 0)
        assert acknowledged and steps > 3, kind
        storage.remove(whole)
        spread = [1 + at * steps // share + dice.randrange(max(1, steps // share)) for at in range(share)]
        leaks = 0
        for last in spread[: max(0, runs - number)]:
            number += 1
            home = base / "home"
            for left in run(template, home, kind, secret, last, storage=storage, served=number % 3 == 0):
                leaks += 1
                yield f"{kind}, killed at step {last} of {steps}{', served' if number % 3 == 0 else ''}: {left}"
            storage.remove(home)
        told(f"{kind} ({secret.split()[0]}): {steps} steps, {leaks} leaks")


def main() -> int:
    """Run the campaign; 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--storage", choices=STORAGES, default="files")
    asked = parser.parse_args()
    storage = STORAGES[asked.storage]
    with tempfile.TemporaryDirectory() as folder:
        told = campaign(Path(folder), asked.runs, asked.seed, lambda line: print(line, flush=True), storage=storage)
        leaks = list(told)
    for leak in leaks:
        print(f"LEAK  {leak}")
    print(f"{asked.runs} runs, {len(leaks)} leaks")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
