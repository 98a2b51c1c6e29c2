"""Planning, 10,000 cells: seconds to read a suite and work out every cell's identity, with nothing computed.

    python benchmarks/planning.py [--cells 10000]

Two suites of the same size: one of seeds (few plugins, many cells each), one of a grid (a thousand victims). Plugins
are imported before. Seconds are the process's own, so that other programs do not count; the median over rounds.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from leakboard.pipeline.runner import open_run
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite

TARGET = 2.0
"""Seconds for 10,000 cells."""


def suites(cells: int) -> dict[str, dict[str, object]]:
    """Return the content of each suite: ten attacks on two victims with many seeds, or on a grid of victims."""
    attacks = [{"nearest_neighbour": {"grid": {"iterations": list(range(1, 11))}}}]
    common = {"datasets": ["generated_reviews"], "attacks": attacks}
    rates = [(i + 1) / 1000 for i in range(cells // 10)]
    return {
        "seeds": {**common, "victims": ["word2vec", "embedding_bag"], "seeds": list(range(cells // 20))},
        "grid": {**common, "victims": [{"embedding_bag": {"grid": {"learning_rate": rates}}}]},
    }


def planned(path: Path, registry: Registry) -> tuple[float, int]:
    """Return how long a suite takes to be read and planned (seconds), and the number of identities."""
    start = time.process_time()
    suite = load_suite(str(path), registry)
    run = open_run(suite, suite.cells(), path.parent / "out", registry, reuse=True)
    return time.process_time() - start, len({job.key for job in run.jobs})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    slowest = 0.0
    for name, content in suites(arguments.cells).items():
        with tempfile.TemporaryDirectory() as folder:
            path, registry = Path(folder) / f"{name}.yaml", Registry()
            path.write_text(json.dumps(content))
            planned(path, registry)
            rounds = [planned(path, registry) for _ in range(arguments.rounds)]
        median, cells = statistics.median(seconds for seconds, _ in rounds), rounds[0][1]
        print(f"  {name}: {cells} cells in {median:.2f} s, {1e6 * median / cells:.0f} microseconds a cell")
        slowest = max(slowest, 10_000 * median / cells)
    print(f"planning seconds={slowest:.2f} target=<={TARGET} {'ok' if slowest <= TARGET else 'short'}")


if __name__ == "__main__":
    main()
