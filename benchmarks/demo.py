"""The demo from a warm environment: first run, second run, and peak memory of the process tree.

    python benchmarks/demo.py [--busy]

Targets on 2 cores: first run in 60 s, or 120 s beside a busy process, and 3 GiB; second under 5 s.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from _sides import busy, seconds, verdict

COMMAND = [sys.executable, str(Path(__file__).parent.parent / "run_benchmark.py"), "run", "demo", "--out"]


def resident(pid: int) -> int:
    """Return the proportional memory of a process and its descendants (KiB)."""
    total, waiting = 0, [pid]
    while waiting:
        here = waiting.pop()
        try:
            lines = Path(f"/proc/{here}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            for task in Path(f"/proc/{here}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, StopIteration):
            continue
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", action="store_true")
    arguments = parser.parse_args()
    peak = 0

    def first(folder: str) -> None:
        nonlocal peak
        process = subprocess.Popen([*COMMAND, folder])
        done = threading.Event()

        def watch() -> None:
            nonlocal peak
            while not done.is_set():
                peak = max(peak, resident(process.pid))
                time.sleep(1.0)

        watcher = threading.Thread(target=watch)
        watcher.start()
        status = process.wait()
        done.set()
        watcher.join()
        if status:
            sys.exit(f"the demo ended with exit status {status}")

    with busy(arguments.busy), tempfile.TemporaryDirectory() as folder:
        fresh = seconds(lambda: first(folder))
        again = seconds(lambda: subprocess.run([*COMMAND, folder], check=True))
    print(f"first run {fresh:.0f} s, peak memory {peak / 2**20:.2f} GiB, second run {again:.1f} s")
    verdict("demo_second_run_seconds", again, 5.0, at_most=True)
    verdict("demo_memory_gib", peak / 2**20, 3.0, at_most=True)
    verdict("demo_first_run_seconds", fresh, 120.0 if arguments.busy else 60.0, at_most=True)


if __name__ == "__main__":
    main()
