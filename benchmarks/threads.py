"""Compare two threads per cell with two cells at once on one thread each: idle, and next to a busy process.

Two embedding bags are fitted on generated reviews, and a portfolio attacks each. Their matrix products are small:
threads wait for each other whenever a core is taken. Imports count on both sides.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from _leakboard import FOLDER
from _timing import alternate, busy, verdict

ROOT = FOLDER.parent
SUITE = {
    "datasets": ["generated_reviews"],
    "victims": [{"embedding_bag": {"dimension": 64, "epochs": 40}}],
    "attacks": ["attribute_inference"],
    "seeds": [0, 1],
    "text_classifier": False,
}


def run(threads: int, jobs: int) -> None:
    """Compute the suite in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "threads.yaml"
        path.write_text(json.dumps(SUITE | {"threads": threads}))
        command = [sys.executable, str(ROOT / "run_benchmark.py"), "run", str(path), "--out", f"{folder}/out"]
        subprocess.run([*command, "--jobs", str(jobs)], check=True, stdout=subprocess.DEVNULL)


def main(rounds: int = 2) -> None:
    """Time both ways to compute two cells."""
    for name, keep_busy in (("idle", False), ("beside_a_busy_process", True)):
        with busy(keep_busy):
            times = alternate(rounds, two_threads=lambda: run(2, 1), two_cells=lambda: run(1, 2))
        verdict(f"threads_{name}", times["two_threads"] / times["two_cells"], 1.0)
