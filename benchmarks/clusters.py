"""Compare two Ray nodes of one core with one node, on independent tasks of two seconds.

Both clusters run on this machine, which needs two free cores. Starting them does not count.
"""

import os
import time

from _leakboard import FOLDER
from _timing import seconds, verdict
from ray.cluster_utils import Cluster

from leakboard.execution.ray import Ray
from leakboard.execution.tasks import Task

SECONDS = 2.0


def compute(warn: object) -> None:
    """Keep a core busy for two seconds of processor time."""
    end = time.process_time() + SECONDS
    while time.process_time() < end:
        pass


def measure(nodes: int, tasks: int) -> float:
    """Return the seconds that the tasks take on this many nodes."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(nodes - 1):
        cluster.add_node(num_cpus=1)
    try:
        engine, work = Ray(cluster.address), [Task(str(i), compute, ()) for i in range(tasks)]
        return seconds(lambda: list(engine.run(work, lambda task: False, lambda *event: None)))
    finally:
        cluster.shutdown()


def main(tasks: int = 12) -> None:
    """Time the tasks on one node and on two."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(FOLDER), str(FOLDER.parent)])  # nodes import this module by name
    one, two = (measure(nodes, tasks) for nodes in (1, 2))
    print(f"  {tasks} tasks of {SECONDS} s: one node {one:.1f} s, two nodes {two:.1f} s")
    verdict("ray_two_nodes", one / two, 1.8)
