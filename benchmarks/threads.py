"""One thread a cell and as many cells at once as cores, against two threads a cell: idle, and beside a busy process.

    python benchmarks/threads.py [--rounds 2] [--fine-tuning]

Two embedding bags are fitted on generated reviews, and a portfolio attacks each: small matrix products, in which
threads wait for each other whenever a core is taken. Imports count on both sides.

``--fine-tuning`` instead: two fits of MiniLM's last layer, and of all layers, with two threads one after the other,
against both at once with one. Fits alone count, in seconds and in the processor's time: what the threads of a fit
take of that together, another machine's load does not move.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _sides import alternate, busy, seconds, verdict

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


FITS = {"last_layer": {"train_layers": 1, "epochs": 4}, "all_layers": {"train_layers": "all", "epochs": 2}}
USERS = {"last_layer": 150, "all_layers": 60}
FIT = """
import sys, time
sys.path.insert(0, {root!r})
from leakboard.execution.resources import limit_threads
from leakboard.suite.registry import Registry
limit_threads({threads})
registry = Registry()
corpus = registry.load("datasets", "generated_reviews")(users={users}).load().only("train", "dev")
victim = registry.load("victims", "bert")(**{options})
print("ready", flush=True)
sys.stdin.readline()
start = time.process_time()
victim.fit(corpus, 0)
print(time.process_time() - start, flush=True)
"""


def fits(name: str, threads: int, at_once: int) -> tuple[float, float]:
    """Return how long two fits take, so many at once: seconds, and the processor's (seconds)."""
    script = FIT.format(root=str(ROOT), threads=threads, users=USERS[name], options=FITS[name])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    quiet = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}  # waiting for another thread is not computing
    started = [subprocess.Popen([sys.executable, "-c", script], text=True, env=quiet, **pipes) for _ in range(2)]
    for process in started:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    processor = 0.0

    def run_together(together: list[subprocess.Popen[str]]) -> None:
        nonlocal processor
        for process in together:
            assert process.stdin
            print(file=process.stdin, flush=True)
        processor += sum(float(process.stdout.readline()) for process in together if process.stdout)

    wall = sum(seconds(lambda i=i: run_together(started[i : i + at_once])) for i in range(0, 2, at_once))
    for process in started:
        process.communicate()
    print(
        f"  {name}, {threads} threads, {at_once} at once: {wall:.1f} s, {processor:.1f} s of the processor", flush=True
    )
    return wall, processor


def fine_tuning(rounds: int) -> None:
    """Print of each way to fine-tune both ratios."""
    for name in FITS:
        pairs = [(fits(name, threads=2, at_once=1), fits(name, threads=1, at_once=2)) for _ in range(rounds)]
        for i, unit in enumerate(("seconds", "processor_seconds")):
            ratio = statistics.median(two_threads[i] / at_once[i] for two_threads, at_once in pairs)
            verdict(f"threads_{name}_{unit}", ratio, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--fine-tuning", action="store_true")
    arguments = parser.parse_args()
    if arguments.fine_tuning:
        fine_tuning(arguments.rounds)
        return
    for name, beside in (("idle", False), ("beside_a_busy_process", True)):
        with busy(beside):
            times = alternate(arguments.rounds, two_threads=lambda: run(2, 1), two_cells=lambda: run(1, 2))
        verdict(f"threads_{name}", times["two_threads"] / times["two_cells"], 1.0)


if __name__ == "__main__":
    main()
