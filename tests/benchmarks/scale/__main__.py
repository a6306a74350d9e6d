"""The command line of the scale benchmark.

`pip install -e . -r tests/benchmarks/peers.txt`, then
`python -m tests.benchmarks.scale [--sizes 1000,10000,100000] [--systems all] [--json scale.json]` and
`python -m tests.benchmarks.scale.picture scale.json`

Every system gets the same passages, vectors and questions, and runs in a process of its own, one after another: one
process builds and one, started afresh, answers. Vectors are given, so nothing is embedded while the clock runs. What
is not installed, fails or takes too long stands in the table with the reason.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.benchmarks.scale.run import Settings, all_systems, default_folder, run
from tests.benchmarks.scale.table import ratios, said_of, table, to_json
from tests.benchmarks.scale.values import Made, Report


def settings_from(arguments: list[str] | None = None) -> tuple[Settings, Path | None]:
    """What the command line asks for, and where the JSON goes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sizes", default="1000,10000,100000", help="passages; 1000000 takes an hour and 10 GB of disk"
    )
    parser.add_argument("--systems", default="all", help=f"all, or some of {','.join(all_systems())}")
    parser.add_argument("--vectors", default="clustered,minilm", help="made up in clusters, made by the bundled model")
    parser.add_argument("--minilm-most", type=int, default=10_000, help="embed no more passages than that by the model")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3, help="how often all questions are asked and timed")
    parser.add_argument("--build", choices=("files", "direct"), default="files", help="how ours is built")
    parser.add_argument(
        "--most-seconds", type=float, default=300.0, help="for a system to build at a size, and to answer"
    )
    parser.add_argument("--folder", type=Path, default=default_folder(), help="where corpora are kept between runs")
    parser.add_argument("--json", type=Path, help="write the report there too, after every line")
    given = parser.parse_args(arguments)
    systems = all_systems() if given.systems == "all" else tuple(given.systems.split(","))
    unknown = [name for name in systems if name not in all_systems()]
    if unknown:
        parser.error(f"there is no system {unknown[0]!r}; choose from {', '.join(all_systems())}")
    made: tuple[Made, ...] = ("clustered", "minilm")
    settings = Settings(
        sizes=tuple(int(size) for size in given.sizes.split(",")),
        systems=systems,
        made=tuple(kind for kind in made if kind in given.vectors.split(",")),
        minilm_most=given.minilm_most,
        questions=given.questions,
        rounds=given.rounds,
        direct=given.build == "direct",
        most_seconds=given.most_seconds,
        folder=given.folder,
    )
    return settings, given.json


def main() -> None:
    """Run and print the table."""
    settings, json_path = settings_from()
    settings.folder.mkdir(parents=True, exist_ok=True)

    def told(report: Report) -> None:
        print(said_of(report.lines[-1]), flush=True)
        if json_path:
            json_path.write_text(to_json(report), "utf-8")

    report = run(settings, told)
    print("\n" + table(report.lines))
    for said in ratios(report.lines):
        print(said)
    print(report.machine)
    print(", ".join(f"{name} {version}" for name, version in report.versions.items()))


if __name__ == "__main__":
    main()
