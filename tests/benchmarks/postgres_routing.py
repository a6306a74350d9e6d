"""Simulation of replicas on one database: does a search find the pack of its workspace in memory, on the disk, or not.

`python -m tests.benchmarks.postgres_routing` searches 10,000 workspaces of 100,000 passages each, which are asked as
unevenly as people are (Zipf .9), through a proxy that chooses a replica by chance or by the workspace. The figures of
a search are arguments; those that stand here were measured on two shared cores, see docs/measurements.md.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Routing = Literal["random", "by workspace"]
ROUTINGS: tuple[Routing, ...] = ("random", "by workspace")
# Milliseconds of a search whose pack is in memory; so many more if it is on the disk, or in the database.
IN_MEMORY_MS, FROM_DISK_MS, DOWNLOAD_MS = 18.0, 30.0, 520.0
PACK_BYTES_A_PASSAGE = 580
_GB = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Replicas, and what each has room for."""

    replicas: int
    memory_bytes: int
    disk_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Searches in workspaces of one size, drawn unevenly.

    Attributes:
        zipf: The share of a workspace falls with its rank to this power.
    """

    workspaces: int
    passages: int
    searches: int
    zipf: float = 0.9
    seed: int = 1

    @property
    def pack_bytes(self) -> int:
        """The size of the pack of a workspace."""
        return self.passages * PACK_BYTES_A_PASSAGE

    def asked(self) -> Sequence[int]:
        """The workspace of each search."""
        shares = np.arange(1, self.workspaces + 1, dtype=np.float64) ** -self.zipf
        generator = np.random.default_rng(self.seed)
        places: list[int] = generator.choice(self.workspaces, self.searches, p=shares / shares.sum()).tolist()
        return places


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares of the searches by where the pack was, and how long they took."""

    in_memory: float
    on_disk: float
    downloads: float
    p50_ms: float
    p95_ms: float
    fetched_bytes_a_search: float


class _Kept:
    """As many packs as there is room for; the one that was used longest ago goes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._there = OrderedDict[int, None]()

    def use(self, workspace: int) -> bool:
        """Use a pack; gives whether it was there."""
        is_there = workspace in self._there
        self._there[workspace] = None
        self._there.move_to_end(workspace)
        if len(self._there) > self._most:
            self._there.popitem(last=False)
        return is_there


def simulate(cluster: Cluster, load: Load, routing: Routing) -> Shares:
    """The shares of a load's second half: in the first, the replicas fill up."""
    memories = [_Kept(cluster.memory_bytes // load.pack_bytes) for _ in range(cluster.replicas)]
    disks = [_Kept(cluster.disk_bytes // load.pack_bytes) for _ in range(cluster.replicas)]
    homes = [_home(workspace, cluster.replicas) for workspace in range(load.workspaces)]
    chances = np.random.default_rng(load.seed + 1).integers(cluster.replicas, size=load.searches).tolist()
    milliseconds = np.empty(load.searches)
    for number, workspace in enumerate(load.asked()):
        replica = homes[workspace] if routing == "by workspace" else chances[number]
        in_memory, on_disk = memories[replica].use(workspace), disks[replica].use(workspace)
        more = 0.0 if in_memory else FROM_DISK_MS if on_disk else DOWNLOAD_MS
        milliseconds[number] = IN_MEMORY_MS + more
    measured = milliseconds[load.searches // 2 :]
    downloads = float(np.mean(measured == IN_MEMORY_MS + DOWNLOAD_MS))
    in_memory_share = float(np.mean(measured == IN_MEMORY_MS))
    return Shares(
        in_memory=in_memory_share,
        on_disk=1 - in_memory_share - downloads,
        downloads=downloads,
        p50_ms=float(np.percentile(measured, 50)),
        p95_ms=float(np.percentile(measured, 95)),
        fetched_bytes_a_search=downloads * load.pack_bytes,
    )


def _home(workspace: int, replicas: int) -> int:
    """The replica of a workspace, the same as long as it is there: the one whose hash with it is the largest."""
    return max(range(replicas), key=lambda replica: hashlib.sha256(f"{replica}/{workspace}".encode()).digest())


def main() -> None:
    """Print a row for each cluster and routing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workspaces", type=int, default=10_000)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--searches", type=int, default=800_000)
    parser.add_argument(
        "--clusters", nargs="+", default=["8x16x100", "16x48x200"], help="replicas x GB memory x GB disk"
    )
    given = parser.parse_args()
    load = Load(workspaces=given.workspaces, passages=given.passages, searches=given.searches)
    sys.stdout.write(
        "replicas x (memory, disk) | routing | in memory / on disk / download | p50 / p95 ms | "
        "GB/s at 1,000 searches/s\n"
    )
    for text in given.clusters:
        replicas, memory, disk = map(int, text.split("x"))
        cluster = Cluster(replicas=replicas, memory_bytes=memory * _GB, disk_bytes=disk * _GB)
        for routing in ROUTINGS:
            shares = simulate(cluster, load, routing)
            sys.stdout.write(
                f"{replicas} x ({memory}, {disk} GB) | {routing} | {shares.in_memory:.3f} / {shares.on_disk:.3f} / "
                f"{shares.downloads:.4f} | {shares.p50_ms:.0f} / {shares.p95_ms:.0f} | "
                f"{shares.fetched_bytes_a_search * 1000 / _GB:.2f}\n"
            )


if __name__ == "__main__":
    main()
