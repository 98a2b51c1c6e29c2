"""Two runs of one suite in one folder against one, on independent fits of two seconds.

    python benchmarks/shared_folder.py [--fits 12]

A victim's fit waits, as if it were computed on another machine: runs need no core of their own. Each run has one job.
What counts is the time from the dataset, which the first of the runs has loaded, to the last record.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _sides import verdict

ROOT = Path(__file__).parent.parent
WAIT = "2"


def measured(runs: int, fits: int) -> float:
    """Return how long runs that are started together work (seconds)."""
    asked = {"victims": [{"zeros": {"grid": {"k": list(range(fits))}}}], "attacks": ["say_zero"]}
    with tempfile.TemporaryDirectory() as folder:
        suite, out = Path(folder) / "nothing.yaml", Path(folder) / "out"
        suite.write_text(json.dumps({"datasets": ["few_texts"], "text_classifier": False, "threads": 1, **asked}))
        program = [sys.executable, str(ROOT / "benchmarks" / "nothing" / "run.py"), "run", str(suite)]
        command = [*program, "--out", str(out), "--jobs", "1"]
        environment = os.environ | {"NOTHING_WAITS": WAIT}
        started = [subprocess.Popen(command, stdout=-3, env=environment) for _ in range(runs)]
        if sum(process.wait() for process in started):
            sys.exit("a run failed")
        (corpus,) = out.glob(".cache/corpora/*")
        return max(path.stat().st_mtime for path in out.glob("*/cells/*/result.json")) - corpus.stat().st_mtime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=12)
    arguments = parser.parse_args()
    times = {}
    for runs in (1, 2):
        times[runs] = measured(runs, arguments.fits)
        print(f"  {runs} runs: {times[runs]:.1f} s", flush=True)
    verdict("shared_folder", times[1] / times[2], 1.8)


if __name__ == "__main__":
    main()
