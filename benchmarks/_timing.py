"""Time calls in one process, alternating between them, and print a ratio with its target."""

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator


def seconds(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def alternate(rounds: int, **sides: Callable[[], object]) -> dict[str, float]:
    """Run all sides in turn, ``rounds`` times. Print every time, and return the median seconds of each side."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            times[name].append(seconds(side))
            print(f"  {name}: {times[name][-1]:.2f} s", flush=True)
    return {name: statistics.median(values) for name, values in times.items()}


def verdict(name: str, ratio: float, target: float, at_most: bool = False) -> None:
    """Print a result next to its target, with ``ok`` or ``short``."""
    good = ratio <= target if at_most else ratio >= target
    print(f"{name} ratio={ratio:.3g} target={'<=' if at_most else ''}{target} {'ok' if good else 'short'}")


@contextlib.contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """Keep one core busy inside the block, if ``wanted``."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if wanted else None
    try:
        yield
    finally:
        if process:
            process.kill()
