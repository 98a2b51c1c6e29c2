"""One thread a cell and as many cells at once as cores, against two threads a cell: idle, and beside a busy process.

    python benchmarks/threads.py [--rounds 2]

Two embedding bags are fitted on generated reviews, and a portfolio attacks each: small matrix products, in which
threads wait for each other whenever a core is taken. Imports count on both sides.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from _sides import alternate, busy, verdict

ROOT = Path(__file__).parent.parent
SUITE = {
    "datasets": ["generated_reviews"],
    "victims": [{"embedding_bag": {"dimension": 64, "epochs": 40}}],
    "attacks": ["attribute_inference"],
    "seeds": [0, 1],
    "text_classifier": False,
}


def run(threads: int, jobs: int) -> None:
    """Compute the suite from nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "threads.yaml"
        path.write_text(json.dumps(SUITE | {"threads": threads}))
        command = [sys.executable, str(ROOT / "run_benchmark.py"), "run", str(path), "--out", f"{folder}/out"]
        subprocess.run([*command, "--jobs", str(jobs)], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    for name, beside in (("idle", False), ("beside_a_busy_process", True)):
        with busy(beside):
            seconds = alternate(arguments.rounds, two_threads=lambda: run(2, 1), two_cells=lambda: run(1, 2))
        verdict(f"threads_{name}", seconds["two_threads"] / seconds["two_cells"], 1.0)


if __name__ == "__main__":
    main()
