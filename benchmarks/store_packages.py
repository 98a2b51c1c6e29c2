"""Link vectors that installed packages protected to their texts, without knowing a pair: AG, MiniLM.

The packages need an environment of their own, for instance
``python -m venv packages; packages/bin/pip install numpy turboquant-vectors==0.3.0 ironcore-alloy==0.16.1``. Only one
program of ours runs there, ``_protected_by_package.py``. Each run of a package has a fresh key. AG comes from
``LEAKBOARD_DATA``.

| column | what it is |
|---|---|
| linked | share of the stored vectors whose own text is nearest, among the stored texts and as many others |
| interval | of that share, 95 % |
| recall@10 | share of the ten nearest stored vectors of a query that the package's vectors keep |
"""

import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from _ag import ag_vectors, share_kept, ten_nearest

from leakboard.attacks._alignment.known_encoder import KnownEncoder, search
from leakboard.metrics.intervals import wilson

SETTINGS = (("turboquant-vectors", 1.0), *(("ironcore-alloy", factor) for factor in (2.0, 2.5, 7.2)))
"""Packages with a factor. The documentation of ironcore-alloy uses 2, 2.5 and 7.2; the other package has no factor."""
QUERIES = 300
WIDTH = 1.96
"""Normal quantile of a 95 % interval."""


def protected(python: Path, package: str, factor: float, parts: list[np.ndarray]) -> list[np.ndarray]:
    """Return vectors as the package makes them, all parts under one key."""
    program = Path(__file__).with_name("_protected_by_package.py")
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{i}.npy" for i in range(len(parts))]
        for file, part in zip(files, parts, strict=True):
            np.save(file, part)
        subprocess.run([python, program, package, str(factor), *files], check=True)
        return [np.load(file) for file in files]


def main(python: Path, rows: int = 4_000, keys: int = 3, releases: int = 1) -> None:
    """Protect ``rows`` vectors with each package and ``keys`` keys; the attacker has as many other texts.

    Args:
        python: interpreter of the environment that has the packages.
        rows: number of stored vectors.
        keys: number of keys for each setting.
        releases: how often the same rows are stored under one key; the attacker takes the mean of the vectors.
    """
    own, stored, queries = np.split(ag_vectors(2 * rows + QUERIES), [rows, 2 * rows])
    before = ten_nearest(queries, stored)
    candidates = np.concatenate([stored, own])
    print("| package | factor | key | linked | interval | recall@10 | attack, seconds |\n|---|---|---|---|---|---|---|")
    for package, factor in SETTINGS:
        for key in range(keys):
            *stores, asked = protected(python, package, factor, [*[stored] * releases, queries])
            begun, store = time.perf_counter(), np.mean(stores, axis=0, dtype=np.float32)
            mapped = KnownEncoder(own, None, store).align("auto", 0, candidates)(store)
            links = search(mapped, candidates, mapped, 1).rows[:, 0]
            taken = time.perf_counter() - begun
            right = float((links == np.arange(rows)).mean())
            low, high = wilson(right, rows, WIDTH)
            cells = (
                f"{right:.4f}",
                f"{low:.4f} to {high:.4f}",
                f"{share_kept(ten_nearest(asked, stores[0]), before):.3f}",
                f"{taken:.1f}",
            )
            print(f"| {package} | {factor:g} | {key} | {' | '.join(cells)} |", flush=True)
