"""Commands that compute nothing: seconds until their answer, beside those of importing Typer and rich alone.

    python benchmarks/commands.py [--rounds 5]

Every call is a process of its own. Seconds are the processor's, so that other programs do not count as much; the median
over rounds, after one that compiles the modules.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BARE = ("-c", "import typer, rich")
TARGETS = {"--help": 0.2, "list": 1.0, "show victim dpnr": 1.0, "run dpnr --dry-run": 2.0}
"""Seconds, by command."""


def seconds(*arguments: str, compiled: str) -> float:
    """Return how long an interpreter computes, called in the checkout; compiled modules are kept in a folder."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = kept | {"PYTHONPYCACHEPREFIX": compiled}
    subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    calls = {"import typer, rich": BARE} | {name: ("run_benchmark.py", *name.split()) for name in TARGETS}
    with tempfile.TemporaryDirectory() as compiled:
        times = [{name: seconds(*call, compiled=compiled) for name, call in calls.items()} for _ in range(rounds + 1)]
    medians = {name: statistics.median(row[name] for row in times[1:]) for name in calls}
    bare = medians.pop("import typer, rich")
    print(f"  import typer, rich: {bare:.2f} s")
    for name, median in medians.items():
        target = TARGETS[name]
        print(f"  {name}: {median / bare:.1f} times as long")
        print(f"{name!r} seconds={median:.2f} target=<={target} {'ok' if median <= target else 'short'}")


if __name__ == "__main__":
    main()
