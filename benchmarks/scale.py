"""What a run of 100,000 cells would take on clusters of several sizes, by simulation.

    python benchmarks/scale.py [--cells 100000]

Lengths of stages are drawn from the costs of the published boards: a victim is fitted and published once, and attacked
by as many attacks as on the boards. Cores take the next task when they are free (list scheduling), a fit before its
publication before its attacks. The runner handles one task after another; how long that takes is measured here, by a
thousand tasks that do nothing, and so is writing a cell's record to the disk. What is printed last is what limits each
cluster: the cores, the longest chain of tasks, the runner, or the shared folder.
"""

import argparse
import csv
import heapq
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from _sides import seconds

from leakboard.execution.local import Local
from leakboard.execution.tasks import Task
from leakboard.pipeline.records import Record, write_costs, write_record

BOARDS = Path(__file__).parent.parent / "leaderboards"
CORES = (8, 64, 512, 4096)
BATCH = 0.5
"""Small tasks are sent together until they may last so long (seconds), as by the Ray engine."""

Victim = tuple[float, list[float]]
"""Seconds to fit and publish, and of each attack."""


def published() -> list[Victim]:
    """Return what every victim of the published boards took, seed by seed."""
    victims: dict[tuple[str, ...], Victim] = {}
    for path in sorted(BOARDS.glob("*/costs.csv")):
        with path.open(encoding="utf-8") as file:
            stages: dict[tuple[str, ...], dict[str, float]] = {}
            attacks: dict[tuple[str, ...], list[float]] = {}
            for row in csv.DictReader(file):
                key = (path.parent.name, row["dataset"], row["victim"], row["seed"])
                taken = float(row["seconds"] or 0)
                if row["stage"] == "attack":
                    attacks.setdefault(key, []).append(taken)
                else:
                    stages.setdefault(key, {})[row["stage"]] = taken
        victims |= {key: (sum(stages.get(key, {}).values()), attacks[key]) for key in attacks}
    return list(victims.values())


def drawn(cells: int, rng: random.Random) -> list[Victim]:
    """Return victims drawn from the published ones, with so many attacks in all."""
    known, chosen, count = published(), [], 0
    while count < cells:
        chosen.append(rng.choice(known))
        count += len(chosen[-1][1])
    return chosen


def batches(attacks: list[float]) -> Iterator[float]:
    """Yield the lengths of attacks that are sent together."""
    together = 0.0
    for taken in attacks:
        together += taken
        if together >= BATCH:
            yield together
            together = 0.0
    if together:
        yield together


def makespan(victims: list[Victim], cores: int, handling: float) -> tuple[float, int]:
    """Return how long a run takes (seconds), and how many tasks the runner handles."""
    free = [0.0] * cores
    ready = [(0.0, i, fit, attacks) for i, (fit, attacks) in enumerate(victims)]
    heapq.heapify(ready)
    runner, end, count = 0.0, 0.0, 0
    while ready:
        begins, i, length, followers = heapq.heappop(ready)
        core = heapq.heappop(free)
        runner = max(runner, begins, core) + handling
        ended = runner + length
        heapq.heappush(free, ended)
        end, count = max(end, ended), count + 1
        for length_of_batch in batches(followers):
            heapq.heappush(ready, (ended, i, length_of_batch, []))
    return end, count


def nothing(warn: object) -> None:
    """Do nothing."""


def measured() -> tuple[float, float]:
    """Return seconds that handling a task, and writing a cell's record, take here."""
    tasks = [Task(str(i), nothing, ()) for i in range(1000)]
    engine = Local(1)
    list(engine.run(tasks[:1], lambda task: False, lambda *event: None))
    handling = seconds(lambda: list(engine.run(tasks, lambda task: False, lambda *event: None))) / len(tasks)
    with tempfile.TemporaryDirectory() as folder:

        def write() -> None:
            for i in range(200):
                write_costs(Path(folder) / str(i), [])
                write_record(Path(folder) / str(i), Record("d", "v", "a", 0, "ok"))

        return handling, seconds(write) / 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=100_000)
    arguments = parser.parse_args()
    victims = drawn(arguments.cells, random.Random(0))  # noqa: S311
    handling, writing = measured()
    work = sum(fit + sum(attacks) for fit, attacks in victims)
    longest = max(fit + max(attacks) for fit, attacks in victims)
    cells = sum(len(attacks) for _, attacks in victims)
    print(f"{cells} cells of {len(victims)} victims, {work / 3600:,.0f} core hours; the longest chain {longest:,.0f} s")
    print(f"handling a task {1000 * handling:.2f} ms, writing a record {1000 * writing:.2f} ms")
    for cores in CORES:
        taken, tasks = makespan(victims, cores, handling)
        limits = {
            "the cores": work / cores,
            "the longest chain": longest,
            "the runner": tasks * handling,
            "the shared folder, one record after another": cells * writing,
        }
        limit = max(limits, key=lambda name: limits[name])
        print(f"{cores:5} cores: {taken / 3600:7.2f} hours, {100 * work / cores / taken:3.0f} % busy; limit: {limit}")


if __name__ == "__main__":
    main()
