"""Choose the engine that a run was asked to use."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from leakboard.errors import RequestError, nearest
from leakboard.execution.engines import Engine

ENGINES = ("local", "ray", "slurm")


def chosen_engine(console: Console, name: str, jobs: int | None, address: str, out: Path) -> Engine:
    """Return the engine of a name. Warn about more local jobs than cores.

    Args:
        console: prints the warning.
        name: of the engine.
        jobs: number at once. None means one for each core; for Slurm, 100.
        address: of a Ray cluster.
        out: folder of runs, which every node sees.

    Raises:
        RequestError: there is no such engine, or it does not have an option.
    """
    from leakboard.execution.local import Local
    from leakboard.execution.ray import Ray
    from leakboard.execution.resources import usable_cores
    from leakboard.execution.slurm import Slurm

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
