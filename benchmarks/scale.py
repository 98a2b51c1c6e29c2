"""Simulate a run of 100,000 cells on clusters of several sizes.

Lengths of stages are drawn from the costs of the published boards. Each victim is fitted and published once, then
attacked by as many attacks as on its board. A free core takes the next task (list scheduling): a fit, then its
publication, then its attacks. The runner handles one task after another. Handling a task is measured with a thousand
tasks that do nothing; writing a record is measured on this disk. The last column names what limits the cluster: the
cores, the longest chain of tasks, the runner, or the shared folder.
"""

import csv
import heapq
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from _leakboard import FOLDER
from _timing import seconds

from leakboard.execution.local import Local
from leakboard.execution.tasks import Task
from leakboard.pipeline.records import Record, write_costs, write_record

CORES = (8, 64, 512, 4096)
BATCH_SECONDS = 0.5
"""Longest duration of several attacks that are sent together, as in the Ray engine."""

Victim = tuple[float, list[float]]
"""Seconds of fit and publication, and of each attack."""


def published_victims() -> list[Victim]:
    """Return the costs of every victim of the published boards, seed by seed."""
    victims: dict[tuple[str, ...], Victim] = {}
    for path in sorted((FOLDER.parent / "leaderboards").glob("*/costs.csv")):
        with path.open(encoding="utf-8") as file:
            stages: dict[tuple[str, ...], dict[str, float]] = {}
            attacks: dict[tuple[str, ...], list[float]] = {}
            for row in csv.DictReader(file):
                key = (path.parent.name, row["dataset"], row["victim"], row["seed"])
                cost = float(row["seconds"] or 0)
                if row["stage"] == "attack":
                    attacks.setdefault(key, []).append(cost)
                else:
                    stages.setdefault(key, {})[row["stage"]] = cost
        victims |= {key: (sum(stages.get(key, {}).values()), attacks[key]) for key in attacks}
    return list(victims.values())


def draw_victims(cells: int, rng: random.Random) -> list[Victim]:
    """Draw from the published victims until they have ``cells`` attacks in all."""
    known, chosen, count = published_victims(), [], 0
    while count < cells:
        chosen.append(rng.choice(known))
        count += len(chosen[-1][1])
    return chosen


def batches(attacks: list[float]) -> Iterator[float]:
    """Yield the seconds of attacks that are sent together."""
    total = 0.0
    for cost in attacks:
        if total and total + cost > BATCH_SECONDS:
            yield total
            total = 0.0
        total += cost
    if total:
        yield total


def simulate(victims: list[Victim], cores: int, handling: float) -> tuple[float, int]:
    """Return the seconds that a run takes, and the number of tasks that its runner handles."""
    free = [0.0] * cores
    ready = [(0.0, i, fit, attacks) for i, (fit, attacks) in enumerate(victims)]
    heapq.heapify(ready)
    runner, end, count = 0.0, 0.0, 0
    while ready:
        begin, i, length, attacks = heapq.heappop(ready)
        runner = max(runner, begin, heapq.heappop(free)) + handling
        finish = runner + length
        heapq.heappush(free, finish)
        end, count = max(end, finish), count + 1
        for batch in batches(attacks):
            heapq.heappush(ready, (finish, i, batch, []))
    return end, count


def do_nothing(warn: object) -> None:
    """Do nothing."""


def measure() -> tuple[float, float]:
    """Return the seconds of handling a task, and of writing the record of a cell."""
    tasks = [Task(str(i), do_nothing, ()) for i in range(1000)]
    engine = Local(1)
    list(engine.run(tasks[:1], lambda task: False, lambda *event: None))
    handling = seconds(lambda: list(engine.run(tasks, lambda task: False, lambda *event: None))) / len(tasks)
    with tempfile.TemporaryDirectory() as folder:

        def write() -> None:
            for i in range(200):
                write_costs(Path(folder) / str(i), [])
                write_record(Path(folder) / str(i), Record("d", "v", "a", 0, "ok"))

        return handling, seconds(write) / 200


def main(cells: int = 100_000) -> None:
    """Print hours, load and limit for each number of cores."""
    victims = draw_victims(cells, random.Random(0))  # noqa: S311
    handling, writing = measure()
    work = sum(fit + sum(attacks) for fit, attacks in victims)
    longest = max(fit + max(attacks) for fit, attacks in victims)
    cells = sum(len(attacks) for _, attacks in victims)
    print(f"{cells} cells of {len(victims)} victims, {work / 3600:,.0f} core hours; the longest chain {longest:,.0f} s")
    print(f"handling a task {1000 * handling:.2f} ms, writing a record {1000 * writing:.2f} ms")
    for cores in CORES:
        wall, tasks = simulate(victims, cores, handling)
        limits = {
            "the cores": work / cores,
            "the longest chain": longest,
            "the runner": tasks * handling,
            "the shared folder, one record after another": cells * writing,
        }
        limit = max(limits, key=lambda name: limits[name])
        print(f"{cores:5} cores: {wall / 3600:7.2f} hours, {100 * work / cores / wall:3.0f} % busy; limit: {limit}")
