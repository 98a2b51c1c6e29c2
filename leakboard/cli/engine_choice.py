"""Which engine a run was asked to use."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from leakboard.errors import RequestError, nearest
from leakboard.execution.engines import Engine

ENGINES = ("local", "ray", "slurm")


def chosen_engine(console: Console, name: str, jobs: int | None, address: str, out: Path) -> Engine:
    """Return the engine of a name; warn where more local jobs are wanted than there are cores.

    Args:
        console: where to warn.
        name: of the engine.
        jobs: at once, None for as many as there are cores; of Slurm at most so many jobs at a time, 100 without.
        address: of a Ray cluster.
        out: folder of runs, which every node sees.

    Raises:
        RequestError: there is no such engine, or an option is another engine's.
    """
    from leakboard.execution.clusters import Ray, Slurm
    from leakboard.execution.local import Local, usable_cores

    if name not in ENGINES:
        raise RequestError(f"--engine: {name!r} is not one of {', '.join(ENGINES)}{nearest(name, ENGINES)}")
    if address and name != "ray":
        raise RequestError(f"--address {address}: only --engine ray has one")
    if name == "ray":
        if jobs:
            raise RequestError(f"--jobs {jobs}: a Ray cluster knows its cores itself")
        return Ray(address)
    if name == "slurm":
        return Slurm(out.resolve() / ".slurm", jobs or 100)
    cores = usable_cores()
    if jobs and jobs > cores:
        console.print(f"warning: {jobs} jobs on {cores} usable cores: slower, not faster")
    return Local(jobs or cores)
