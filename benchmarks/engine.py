"""What a run takes when victims and attacks do nothing: seconds a cell, a second run, memory of the main process.

    python benchmarks/engine.py [--cells 100 1000 10000] [--busy]

Cells are of a grid of victims and a grid of attacks on 120 texts, without a text classifier, two at once. What is left
is the engine's own, and scoring: a cell's intervals of 2,000 resamples each, whose time is measured alone and taken
off. Starting (imports) is told apart: a cell's share is the slope between two numbers of cells. ``--busy`` keeps one
core busy besides.
"""

import argparse
import json
import math
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from _sides import busy, seconds, verdict

ROOT = Path(__file__).parent.parent


def suite(cells: int) -> dict[str, object]:
    """Return a suite of about so many cells: as many victims as attacks."""
    side = math.isqrt(cells)
    grids = {name: {"grid": {"k": list(range(n))}} for name, n in (("zeros", cells // side), ("say_zero", side))}
    asked = {"victims": [{"zeros": grids["zeros"]}], "attacks": [{"say_zero": grids["say_zero"]}]}
    return {"datasets": ["few_texts"], "threads": 1, "text_classifier": False, **asked}


def scoring() -> float:
    """Return how long the guesses of one cell are scored, in one process of one thread (milliseconds)."""
    import leakboard

    leakboard.__path__.append(str(ROOT / "benchmarks" / "nothing"))
    import numpy as np

    from leakboard.datasets.few_texts import FewTexts
    from leakboard.execution.resources import limit_threads
    from leakboard.metrics.secret_scores import secret_metrics

    limit_threads(1)
    corpus = FewTexts().load()
    scores = {"age": np.zeros((len(corpus.splits["test"]), 2), np.float32)}

    def score(cells: int) -> None:
        for _ in range(cells):
            secret_metrics(corpus, corpus.secrets, scores, None)

    score(20)
    return 1000 * seconds(lambda: score(200)) / 200


def measured(folder: Path) -> tuple[float, float]:
    """Run the suite of a folder; return seconds and the peak memory of the main process (MiB)."""
    command = [sys.executable, str(ROOT / "benchmarks" / "nothing" / "run.py"), "run", str(folder / "nothing.yaml")]
    start = time.perf_counter()
    process = subprocess.Popen([*command, "--out", str(folder / "out"), "--jobs", "2"], stdout=-3)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"the run ended with status {status}")
    return time.perf_counter() - start, used.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--busy", action="store_true")
    arguments = parser.parse_args()
    first, second, memory = {}, {}, {}
    with busy(arguments.busy):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:  # whose memory no run inherits
            scored = pool.submit(scoring).result()
        print(f"  scoring alone: {scored:.1f} ms a cell on one core")
        for cells in arguments.cells:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "nothing.yaml").write_text(json.dumps(suite(cells)))
                first[cells], memory[cells] = measured(Path(folder))
                second[cells], again = measured(Path(folder))
                memory[cells] = max(memory[cells], again)
            print(
                f"  {cells} cells: {first[cells]:.1f} s, again {second[cells]:.1f} s, {memory[cells]:.0f} MiB",
                flush=True,
            )
    for fewer, more in zip(arguments.cells, arguments.cells[1:], strict=False):
        share = 1000 * (first[more] - first[fewer]) / (more - fewer)
        print(f"  {fewer} to {more} cells: {share:.1f} ms a cell, of which scoring takes {scored / 2:.1f}")
        verdict(f"engine_ms_per_cell_{fewer}_to_{more}", share - scored / 2, 5.0, at_most=True)
    last = max(arguments.cells)
    verdict(f"second_run_seconds_{last}", second[last], 5.0, at_most=True)
    verdict(f"memory_growth_mib_{last}", memory[last] - memory[min(arguments.cells)], 60.0, at_most=True)


if __name__ == "__main__":
    main()
