"""Two Ray nodes of one core against one, on independent tasks of two seconds.

    python benchmarks/clusters.py [--tasks 12]

Both clusters are started on this machine, which needs two cores that are free. What starting them takes does not count.
"""

import argparse
import os
import time
from pathlib import Path

from _sides import seconds, verdict
from ray.cluster_utils import Cluster

from leakboard.execution.clusters import Ray
from leakboard.execution.tasks import Task

SECONDS = 2.0


def compute(warn: object) -> None:
    """Keep a core busy for two seconds of its own time."""
    end = time.process_time() + SECONDS
    while time.process_time() < end:
        pass


def measured(nodes: int, tasks: int) -> float:
    """Return how long so many tasks take on so many nodes (seconds)."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(nodes - 1):
        cluster.add_node(num_cpus=1)
    try:
        engine, work = Ray(cluster.address), [Task(str(i), compute, ()) for i in range(tasks)]
        return seconds(lambda: list(engine.run(work, lambda task: False, lambda *event: None)))
    finally:
        cluster.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=12)
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    taken = {nodes: measured(nodes, arguments.tasks) for nodes in (1, 2)}
    print(f"  {arguments.tasks} tasks of {SECONDS} s: one node {taken[1]:.1f} s, two nodes {taken[2]:.1f} s")
    verdict("ray_two_nodes", taken[1] / taken[2], 1.8)


if __name__ == "__main__":
    from clusters import main as by_name  # nodes import functions by the name of their module

    by_name()
