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

from leakboard.attacks._alignment.known_encoder import KnownEncoder, search
from leakboard.datasets.ag import Ag
from leakboard.interfaces import Texts
from leakboard.metrics.intervals import wilson
from leakboard.models.search import nearest
from leakboard.victims.sentence_encoder import SentenceEncoder

SETTINGS = (("turboquant-vectors", 1.0), *(("ironcore-alloy", factor) for factor in (2.0, 2.5, 7.2)))
"""Packages with a factor. The documentation of ironcore-alloy uses 2, 2.5 and 7.2; the other package has no factor."""
QUERIES = 300
WIDTH = 1.96
"""Normal quantile of a 95 % interval."""


def protected(python: Path, package: str, factor: float, parts: list[np.ndarray]) -> list[np.ndarray]:
    """Return stored vectors and queries as the package makes them."""
    program = Path(__file__).with_name("_protected_by_package.py")
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{i}.npy" for i in range(len(parts))]
        for file, part in zip(files, parts, strict=True):
            np.save(file, part)
        subprocess.run([python, program, package, str(factor), *files], check=True)
        return [np.load(file) for file in files]


def kept(queries: np.ndarray, stored: np.ndarray, before: np.ndarray) -> float:
    """Return the share of the ten nearest rows of ``before`` that queries still find."""
    found = nearest(queries, stored, before.shape[1]).rows
    return float(np.mean([np.isin(now, then).mean() for now, then in zip(found, before, strict=True)]))


def main(python: Path, rows: int = 4_000, keys: int = 3) -> None:
    """Protect ``rows`` vectors with each package and ``keys`` keys; the attacker has as many other texts.

    Args:
        python: interpreter of the environment that has the packages.
        rows: number of stored vectors.
        keys: number of keys for each setting.
    """
    texts = Texts(list(dict.fromkeys(Ag().load().texts("train"))))
    chosen = Texts([texts[i] for i in np.random.default_rng(0).permutation(len(texts))[: 2 * rows + QUERIES]])
    vectors = SentenceEncoder().load(Path()).publish_documents(chosen, np.random.default_rng(0))
    own, stored, queries = np.split(vectors, [rows, 2 * rows])
    before = nearest(queries, stored, 10).rows
    candidates = np.concatenate([stored, own])
    print("| package | factor | key | linked | interval | recall@10 | attack, seconds |\n|---|---|---|---|---|---|---|")
    for package, factor in SETTINGS:
        for key in range(keys):
            store, asked = protected(python, package, factor, [stored, queries])
            begun = time.perf_counter()
            mapped = KnownEncoder(own, None, store).align("auto", 0, candidates)(store)
            found = search(mapped, candidates, mapped, 1).rows[:, 0]
            taken = time.perf_counter() - begun
            right = float((found == np.arange(rows)).mean())
            low, high = wilson(right, rows, WIDTH)
            cells = (f"{right:.4f}", f"{low:.4f} to {high:.4f}", f"{kept(asked, store, before):.3f}", f"{taken:.1f}")
            print(f"| {package} | {factor:g} | {key} | {' | '.join(cells)} |", flush=True)
