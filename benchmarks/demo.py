"""Measure the demo in an installed environment: first run, second run, peak memory of all its processes.

Targets on 2 cores: 90 s for the first run (120 s next to a busy process), 2 GB, and 5 s for the second run.
"""

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from _leakboard import FOLDER
from _timing import busy, seconds, verdict

COMMAND = [sys.executable, str(FOLDER.parent / "run_benchmark.py"), "run", "demo", "--out"]


def resident(pid: int) -> int:
    """Return the proportional memory of a process and its descendants (KiB)."""
    total, waiting = 0, [pid]
    while waiting:
        process = waiting.pop()
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, StopIteration):  # it ended meanwhile
            continue
    return total


def first_run(folder: str) -> int:
    """Run the demo; return its peak memory (KiB), looked at every second."""
    process = subprocess.Popen([*COMMAND, folder])
    done, peaks = threading.Event(), [0]

    def watch() -> None:
        while not done.is_set():
            peaks.append(resident(process.pid))
            time.sleep(1.0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    status = process.wait()
    done.set()
    watcher.join()
    if status:
        sys.exit(f"the demo ended with exit status {status}")
    return max(peaks)


def main(keep_busy: bool = False) -> None:
    """Run the demo twice; ``keep_busy`` occupies one core meanwhile."""
    with busy(keep_busy), tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        peak = 1024 * first_run(folder) / 1e9
        first = time.perf_counter() - start
        again = seconds(lambda: subprocess.run([*COMMAND, folder], check=True))
    print(f"first run {first:.0f} s, peak memory {peak:.2f} GB, second run {again:.1f} s")
    verdict("demo_second_run_seconds", again, 5.0, at_most=True)
    verdict("demo_memory_gb", peak, 2.0, at_most=True)
    verdict("demo_first_run_seconds", first, 120.0 if keep_busy else 90.0, at_most=True)
