"""Measure the engine alone: milliseconds per cell, seconds of a second run, memory of the main process.

Victims and attacks do nothing. Cells are a grid of victims and attacks on 120 texts, two at once, without a text
classifier. What remains is the engine and the scoring of each cell. Scoring is measured
alone and subtracted. The cost of a cell is the slope between two numbers of cells, so imports do not count.
"""

import json
import math
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import _leakboard
from _timing import busy, seconds, verdict

SIZES = (100, 1000, 10_000)
"""Numbers of cells."""


def suite(cells: int) -> dict[str, object]:
    """Return a suite of about this many cells: as many victims as attacks."""
    side = math.isqrt(cells)
    grids = {name: {"grid": {"k": list(range(n))}} for name, n in (("zeros", cells // side), ("say_zero", side))}
    plugins = {"victims": [{"zeros": grids["zeros"]}], "attacks": [{"say_zero": grids["say_zero"]}]}
    return {"datasets": ["few_texts"], "threads": 1, "text_classifier": False, **plugins}


def scoring() -> float:
    """Return the milliseconds that scoring the guesses of one cell takes, in one process with one thread."""
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


def run(folder: Path) -> tuple[float, float]:
    """Run the suite of a folder; return seconds and the peak memory of the main process (MiB)."""
    command = [sys.executable, _leakboard.__file__, "run", str(folder / "suite.yaml"), "--out", str(folder / "out")]
    start = time.perf_counter()
    process = subprocess.Popen([*command, "--jobs", "2"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"the run ended with status {status}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main(cells: int = max(SIZES), keep_busy: bool = False) -> None:
    """Measure all sizes up to ``cells``; ``keep_busy`` occupies one core meanwhile."""
    sizes = [size for size in SIZES if size <= cells]
    first, second, memory = {}, {}, {}
    with busy(keep_busy):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:  # runs must not inherit its memory
            scored = pool.submit(scoring).result()
        print(f"  scoring alone: {scored:.1f} ms a cell on one core")
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "suite.yaml").write_text(json.dumps(suite(size)))
                first[size], peak = run(Path(folder))
                second[size], peak_again = run(Path(folder))
                memory[size] = max(peak, peak_again)
            line = f"  {size} cells: {first[size]:.1f} s, again {second[size]:.1f} s, {memory[size]:.0f} MiB"
            print(line, flush=True)
    for fewer, more in pairwise(sizes):
        share = 1000 * (first[more] - first[fewer]) / (more - fewer)
        print(f"  {fewer} to {more} cells: {share:.1f} ms a cell, of which scoring takes {scored / 2:.1f}")
        verdict(f"engine_ms_per_cell_{fewer}_to_{more}", share - scored / 2, 5.0, at_most=True)
    largest = max(sizes)
    verdict(f"second_run_seconds_{largest}", second[largest], 5.0, at_most=True)
    verdict(f"memory_growth_mib_{largest}", memory[largest] - memory[min(sizes)], 60.0, at_most=True)
