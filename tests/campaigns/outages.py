"""Two replicas on a PostgreSQL database, parts of which are killed, cut off or lost while clients write.

`python -m tests.campaigns.outages [--rounds 300] [--seed 1] [--faults database,standby] [--clients 6] [--folder F]`

A round: clients note memories, append messages to one session, flush, compact, forget, make and withdraw keys, and
reindex, each request with a key and sent again to the other replica until it is answered; at a drawn moment something
of `FAULTS` happens. After it both replicas have to work again by themselves. Then all that was acknowledged must be
there once, at both, searches included; the numbers of the session have no hole; nothing that was acknowledged for two
seconds was missing in an answer of the other replica at any time; and no two held one lock to its end. What an
asynchronous standby has lost may be gone, and then it is gone from every answer. One line of JSON for each round, and
one of sums; the exit code is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.campaigns.outage_checks import EventWatch, LockProbe, StaleWatch, check_answers, check_contents
from tests.campaigns.outage_clients import KeyClient, Ledger, WritingClient
from tests.campaigns.replicas import DATABASE, Cluster, client

_HEAL_SECONDS = 60.0
_ROUNDS_OF_A_WORKSPACE = 10
_STOPPED_SECONDS = 4.0


def _kill_database(cluster: Cluster, draw: random.Random) -> None:
    cluster.restart_database()


def _kill_backend(cluster: Cluster, draw: random.Random) -> None:
    """SIGKILL of one process of the server, which ends all others and recovers by itself."""
    pids = [pid for (pid,) in cluster.rows(_CONNECTIONS)]
    cluster.kill_process(int(str(draw.choice(pids))))


def _kill_replica(cluster: Cluster, draw: random.Random) -> None:
    replica = draw.choice(cluster.replicas)
    replica.kill()
    replica.start()


def _stop_replica(cluster: Cluster, draw: random.Random) -> None:
    """A replica that is stopped for longer than the database keeps its locks, and goes on then."""
    replica = draw.choice(cluster.replicas)
    replica.stop()
    time.sleep(_STOPPED_SECONDS)
    replica.wake()


def _end_connections(cluster: Cluster, draw: random.Random) -> None:
    for _ in range(draw.randint(1, 4)):
        pids = [str(pid) for (pid,) in cluster.rows(_CONNECTIONS)]
        chosen = draw.sample(pids, draw.randint(1, len(pids)))
        cluster.rows(f"SELECT pg_terminate_backend(pid) FROM unnest(ARRAY[{','.join(chosen)}]) pid")
        time.sleep(draw.uniform(0.0, 0.3))


def _cut_path(cluster: Cluster, draw: random.Random) -> None:
    with cluster.path.closed():
        time.sleep(draw.uniform(0.0, 2.0))


def _silence_path(cluster: Cluster, draw: random.Random) -> None:
    with cluster.path.silent():
        time.sleep(draw.uniform(1.0, _STOPPED_SECONDS))


def _lose_primary(cluster: Cluster, draw: random.Random) -> None:
    cluster.fail_over()


_CONNECTIONS = (
    f"SELECT pid FROM pg_stat_activity WHERE datname = '{DATABASE}' AND application_name = 'memory-service' "
    "AND pid <> pg_backend_pid()"
)
FAULTS: Mapping[str, Callable[[Cluster, random.Random], None]] = {
    "database": _kill_database,
    "backend": _kill_backend,
    "replica": _kill_replica,
    "stopped replica": _stop_replica,
    "connections": _end_connections,
    "path": _cut_path,
    "silent path": _silence_path,
    "standby": _lose_primary,
    "asynchronous standby": _lose_primary,
}


class Round:
    """One round of the campaign.

    Args:
        cluster: The servers.
        ledger: What was acknowledged in the workspace.
        fault: A name of `FAULTS`.
        draw: Draws.
        clients: How many write.
        admin_key: A key that may make keys.
    """

    def __init__(
        self, cluster: Cluster, ledger: Ledger, fault: str, draw: random.Random, *, clients: int, admin_key: str
    ) -> None:
        self.cluster, self.ledger, self.fault, self.draw = cluster, ledger, fault, draw
        self._clients, self._admin_key = clients, admin_key
        self.healed_seconds = 0.0

    def run(self) -> None:
        """Run it; what is wrong stands in the ledger."""
        cluster, ledger, draw = self.cluster, self.ledger, self.draw
        if "standby" in self.fault:
            cluster.add_standby()
        ledger.begin_round()
        with ExitStack() as stack:
            stale = stack.enter_context(StaleWatch(cluster, ledger, self._admin_key))
            stack.enter_context(LockProbe(cluster, ledger))
            events = stack.enter_context(EventWatch(cluster, ledger, self._admin_key))
            with ExitStack() as writing:
                for number in range(self._clients):
                    writing.enter_context(
                        WritingClient(cluster, ledger, self._admin_key, random.Random(draw.random()), stale, number)
                    )
                writing.enter_context(KeyClient(cluster, ledger, self._admin_key, random.Random(draw.random())))
                time.sleep(draw.uniform(0.3, 1.5))
                if self.fault == "asynchronous standby":
                    self._lose_some()
                else:
                    FAULTS[self.fault](cluster, draw)
                self.healed_seconds = self._await_health()
                time.sleep(0.5)
            ledger.await_age(2.0)
            check_contents(cluster, ledger)
            check_answers(cluster, ledger, self._admin_key, draw)
            events.check_hearing()

    def _lose_some(self) -> None:
        """Have the standby miss what is acknowledged for a while, and become the primary."""
        cluster, ledger = self.cluster, self.ledger
        ledger.is_losing = True
        ledger.losses += 1
        cluster.leave_standby_behind()
        time.sleep(self.draw.uniform(0.8, 2.0))
        before = ledger.states(cluster)
        _lose_primary(cluster, self.draw)
        ledger.is_losing = False
        after = ledger.states(cluster)
        ledger.note(*(f"{name} is the same after a loss" for name in before if before[name] == after[name]))

    def _await_health(self) -> float:
        """How long it takes until each replica is healthy, takes a memory and finds it, without any help."""
        start_time = time.monotonic()
        headers = {"Authorization": f"Bearer {self._admin_key}"}
        with client() as http:
            for number, replica in enumerate(self.cluster.replicas):
                while True:
                    try:
                        url = f"{replica.url}/v1/workspaces/{self.ledger.workspace}"
                        answers = [
                            http.get(f"{replica.url}/health/ready"),
                            http.post(f"{url}/memories", json={"text": self.ledger.draw_text()}, headers=headers),
                            http.post(f"{url}/search", json={"query": "parcel"}, headers=headers),
                        ]
                        if all(answer.is_success for answer in answers):
                            break
                        last = next(answer.text for answer in answers if not answer.is_success)
                    except OSError as error:
                        last = str(error)
                    except Exception as error:
                        if not type(error).__module__.startswith("httpx"):
                            raise
                        last = repr(error)
                    if time.monotonic() - start_time > _HEAL_SECONDS:
                        self.ledger.note(f"replica {number + 1} did not heal: {last[:300]}")
                        break
                    time.sleep(0.05)
        return time.monotonic() - start_time


def campaign(
    folder: Path, rounds: int, seed: int, tell: Callable[[Mapping[str, object]], None], *, faults: str, clients: int
) -> Iterator[str]:
    """Run it; gives what was found.

    Args:
        folder: An empty folder.
        rounds: How many.
        seed: Seed of the draws.
        tell: Takes a line for each round, and one of sums.
        faults: Names of `FAULTS` with commas, each as often as the others.
        clients: How many write.
    """
    draw, cluster = random.Random(seed), Cluster(folder)
    sums: dict[str, int] = defaultdict(int)
    seconds: dict[str, list[float]] = defaultdict(list)
    names = faults.split(",")
    try:
        with client() as http:
            new_key = {"name": "the campaign", "role": "admin", "workspaces": ["*"]}
            admin_key = http.post(f"{cluster.replicas[0].url}/v1/keys", json=new_key).raise_for_status().json()["key"]
        for number in range(rounds):
            if number % _ROUNDS_OF_A_WORKSPACE == 0:
                ledger = Ledger(f"w{seed}-{number // _ROUNDS_OF_A_WORKSPACE}", draw)
                names = draw.sample(names, len(names))
            fault = names[number % len(names)]
            start_time = time.monotonic()
            made = Round(cluster, ledger, fault, draw, clients=clients, admin_key=admin_key)
            made.run()
            seconds[fault].append(made.healed_seconds)
            defects, counts = ledger.take_round()
            for name, count in counts.items():
                sums[name] += count
            tell(
                {
                    "round": number + 1, "fault": fault, "healed_seconds": round(made.healed_seconds, 2),
                    "seconds": round(time.monotonic() - start_time, 1), **counts, "defects": defects,
                }
            )  # fmt: skip
            yield from (f"round {number + 1}, {fault}: {defect}" for defect in defects)
        tell(
            {
                "rounds": rounds,
                "seed": seed,
                "of each": {name: len(times) for name, times in sorted(seconds.items())},
                "healed_seconds": {
                    name: {"p50": round(statistics.median(times), 2), "max": round(max(times), 2)}
                    for name, times in sorted(seconds.items())
                },
                **sums,
            }
        )
    finally:
        cluster.close()


def main() -> int:
    """Run it; the exit code is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--folder", type=Path, help="where the replicas' logs stay")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        found = campaign(
            folder,
            arguments.rounds,
            arguments.seed,
            lambda line: print(json.dumps(line), flush=True),
            faults=arguments.faults,
            clients=arguments.clients,
        )
        return int(bool(list(found)))


if __name__ == "__main__":
    sys.exit(main())
