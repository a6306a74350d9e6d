"""The speed of durable appends to session logs on PostgreSQL, beside those to files.

`python -m tests.benchmarks.postgres_writes [--clients 16] [--seconds 4] [--rounds 3]`

A server of its own waits for the disk at each commit. Each client appends a question and an answer to its own sessions:
one client alone, all of them in one process, and in two processes, by turns, on the database and in files on the same
disk. The best round counts, as other work on the machine only takes away; the ratios are those that must be reached.
What bounds them is told beside: milliseconds of one `fdatasync`, and processor milliseconds of an append, those of the
clients and those of the database. One client waits for the disk; many can do no more than the processors.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from indexer.stores import PostgresDatabase
from memory_service.sessions.records import MessageRecord
from memory_service.storage.files.log_folder import LogFolder
from memory_service.storage.logs import LogStore, SessionLog
from memory_service.storage.postgres.postgres_logs import PostgresLogs
from tests.postgres import PostgresServer
from tests.postgres_tables import make_tables

SESSIONS = 16
TURN = (
    MessageRecord(text='{"role":"user","content":"When do we deploy, and who looks at the dashboards?"}'),
    MessageRecord(text='{"role":"assistant","content":"' + "On Tuesdays, behind the stand-up; Mara does. " * 8 + '"}'),
)


def _client(logs: list[SessionLog], start: threading.Event, seconds: float, counts: list[int]) -> None:
    start.wait()
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        logs[count % len(logs)].append(TURN)
        count += 1
    counts.append(count)


def append_for_seconds(store: LogStore, name: str, clients: int, seconds: float, ready: Callable[[], object]) -> int:
    """Turns that some clients have appended, once all of them are ready."""
    start, counts = threading.Event(), list[int]()
    threads = []
    for client in range(clients):
        logs = [store.open(f"{name}-{client}-{number}", must_exist=False) for number in range(SESSIONS)]
        for log in logs:
            log.append(TURN)
        threads.append(threading.Thread(target=_client, args=(logs, start, seconds, counts)))
    for thread in threads:
        thread.start()
    ready()
    start.set()
    for thread in threads:
        thread.join()
    return sum(counts)


def _work(place: str, name: str, clients: int, seconds: float) -> None:
    """A process of clients, which says when it is ready, and waits for a line to begin."""
    started_at = list[float]()

    def ready() -> None:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        started_at.append(time.process_time())

    if place.startswith("postgresql://"):
        database = PostgresDatabase(place, connections=clients)
        count = append_for_seconds(PostgresLogs(database, "writes"), name, clients, seconds, ready)
        database.close()
    else:
        count = append_for_seconds(LogFolder(Path(place)), name, clients, seconds, ready)
    sys.stdout.write(f"{count} {time.process_time() - started_at[0]}\n")


def measure(place: str, name: str, clients: int, processes: int, seconds: float) -> tuple[float, float]:
    """Appends a second of some clients in some processes, and processor milliseconds of these for each."""
    command = [sys.executable, "-m", "tests.benchmarks.postgres_writes", "--work", place]
    workers = [
        subprocess.Popen(
            [*command, f"{name}-{number}", "--clients", str(clients // processes), "--seconds", str(seconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(processes)
    ]  # fmt: skip
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    answers = [worker.communicate()[0].split() for worker in workers]
    count = sum(int(answer[0]) for answer in answers)
    return count / seconds, sum(float(answer[1]) for answer in answers) * 1e3 / max(1, count)


def server_seconds(postmaster: int) -> float:
    """Processor time of a server: of its processes, and of those that have ended."""
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in (str(postmaster), *children)]
    ticks = [*fields[0][11:15], *(ticks for own in fields[1:] for ticks in own[11:13])]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def disk_ms(folder: str) -> float:
    """Milliseconds until the disk has a page, the middle of some."""
    times = list[float]()
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(50):
            file.write(bytes(8_192))
            file.flush()
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begin)
    return round(statistics.median(times) * 1e3, 2)


def main() -> None:
    """Run all, and print one line of JSON for each engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        place, name = arguments.work
        _work(place, name, arguments.clients, arguments.seconds)
        return
    server = PostgresServer(is_durable=True)
    with tempfile.TemporaryDirectory(dir=server.folder.parent) as folder:
        try:
            make_tables(server.address())
            places = {"postgresql": server.address(), "files": folder}
            cases = {"one": (1, 1), "one_process": (arguments.clients, 1), "two_processes": (arguments.clients, 2)}
            best, cpu = defaultdict[str, dict[str, float]](dict), dict[str, list[float]]()
            for turn in range(arguments.rounds):
                for case, (clients, processes) in cases.items():
                    for engine, place in places.items():
                        spent = server_seconds(server.process_id)
                        rate, own_ms = measure(place, f"{case}-{turn}", clients, processes, arguments.seconds)
                        spent = server_seconds(server.process_id) - spent
                        if rate > best[engine].get(case, 0):
                            best[engine][case] = round(rate, 1)
                            database_ms = spent * 1e3 / (rate * arguments.seconds)
                            cpu[f"{engine} {case}"] = [round(own_ms, 3), round(database_ms, 3)]
            for engine, rates in best.items():
                ratios = {f"{case}_ratio": round(rates[case] / rates["one"], 1) for case in list(cases)[1:]}
                bounds = {case: cpu[f"{engine} {case}"] for case in cases}
                row = {"engine": engine, "appends_per_second": rates, **ratios, "cpu_ms_own_and_database": bounds}
                sys.stdout.write(json.dumps({**row, "disk_ms": disk_ms(folder)}) + "\n")
        finally:
            server.close()


if __name__ == "__main__":
    main()
