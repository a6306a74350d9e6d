"""The first answer of a server that comes new to a database, over HTTP, where another one has indexed and packed.

`python -m tests.benchmarks.postgres_first_answer [--passages 100000] [--rounds 5]` prints, in seconds and the median:

- `first`, `second`: a search of a server that has just said that it is ready, and the same question again;
- `from_start`: the first answer from the start of its process;
- `own_cpu`, `database_cpu`: processor seconds of both for the first answer;
- `older`: the same question at the server that was there before.

Each server has an empty folder of its own. The vectors of notes are hashes under the name of the bundled model, which
would take an hour for them; questions are embedded by it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import httpx
import psycopg
from pydantic import SecretStr

from indexer import MiniLM
from indexer.testing import HashEmbedder
from memory_service.config import Settings
from memory_service.service import MemoryService
from tests.benchmarks.postgres_search import database_seconds, write_sample_notes
from tests.postgres import databases
from tests.serving import NO_TLS, W, own_process

_QUESTION = "Who looks at the dashboards?"
_DIMENSIONS = 384


class _NamedHashes(HashEmbedder):
    """Hashed vectors under the name of the bundled model."""

    def __init__(self) -> None:
        super().__init__(_DIMENSIONS)
        self.name, self.fingerprint = "minilm", MiniLM.fingerprint


def index_notes(address: str, folder: Path, passages: int) -> None:
    """Notes in a database, indexed and packed by a service that ends then."""
    write_sample_notes(folder / "notes", passages)
    settings = Settings(home=folder / "first", database_url=SecretStr(address), embedding_model="minilm")
    with closing(MemoryService(settings, embedder=_NamedHashes())) as service:
        documents = service.storage.workspace("default").documents
        for file in sorted((folder / "notes").rglob("*.md")):
            documents.append(str(file.relative_to(folder / "notes")), file.read_bytes(), expected=None)
        service.reindex("default")
        with psycopg.connect(address, autocommit=True) as watch:
            while not watch.execute("SELECT EXISTS (SELECT FROM index_packs)").fetchone() == (True,):
                service.search("default", _QUESTION)
                time.sleep(1)
            watch.execute("ANALYZE")


def processor_seconds(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def ask(http: httpx.Client) -> float:
    """Seconds of a search over HTTP, which finds something."""
    begin = time.perf_counter()
    answer = http.post(f"{W}/search", json={"query": _QUESTION, "limit": 6}).raise_for_status().json()
    assert answer["results"] and not answer["degraded"], answer
    return time.perf_counter() - begin


def measure(address: str, folder: Path, rounds: int) -> dict[str, float]:
    """Medians of some servers that come one after another."""
    environment = {"MEMORY_SERVICE_DATABASE_URL": address, "MEMORY_SERVICE_EMBEDDING_MODEL": "minilm"}
    rows = list[dict[str, float]]()
    with own_process(folder / "older", environment) as (older, _), psycopg.connect(address, autocommit=True) as watch:
        with httpx.Client(base_url=older, timeout=120, verify=NO_TLS) as http:
            ask(http)
            for number in range(rounds):
                start = time.perf_counter()
                with (
                    own_process(folder / f"new-{number}", environment) as (url, pid),
                    httpx.Client(base_url=url, timeout=120, verify=NO_TLS) as new,
                ):
                    own, of_database = processor_seconds(pid), database_seconds(watch)
                    row = {"first": ask(new), "from_start": time.perf_counter() - start}
                    own, of_database = processor_seconds(pid) - own, database_seconds(watch) - of_database
                    rows.append({**row, "own_cpu": own, "database_cpu": of_database, "second": ask(new)})
                rows[-1]["older"] = ask(http)
    return {name: round(statistics.median(row[name] for row in rows), 3) for name in rows[0]}


def main() -> None:
    """Measure, and print a line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with databases() as made, tempfile.TemporaryDirectory() as name:
        address, folder = made.migrated(), Path(name)
        index_notes(address, folder, options.passages)
        sys.stdout.write(json.dumps({"passages": options.passages, **measure(address, folder, options.rounds)}) + "\n")


if __name__ == "__main__":
    main()
