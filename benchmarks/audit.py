"""Audits: the sanity check against a NumPy loop over as many draws, and one audit of 100,000 draws in 768 dimensions.

    python benchmarks/audit.py [--repeats 500000]

The loop is what the published experiment does: float64 uniform numbers through the inverse distribution function of the
Laplace law, rounded to bits, and a majority vote. Both sides must find the exact loss within four sampling errors.
"""

import argparse

import numpy as np
from _sides import alternate, seconds, verdict

from leakboard.privacy.auditing.audit import audit
from leakboard.privacy.auditing.events import corners
from leakboard.privacy.auditing.sanity import PlugIn, exact_loss, laplace_chances, plug_in, sampling_error
from leakboard.privacy.mechanisms.textbook import Laplace

EPSILON = 1.0
DIMENSIONS = (1, 2, 8, 32, 64, 128)
CHUNK = 100_000
"""Releases that the loop holds at once."""


def loop(dimensions: int, repeats: int, rng: np.random.Generator) -> PlugIn:
    scale, counts = dimensions / EPSILON, []
    for value in (0.0, 1.0):
        taken = 0
        for start in range(0, repeats, CHUNK):
            uniform = rng.random((min(CHUNK, repeats - start), dimensions))
            noise = -np.sign(uniform - 0.5) * np.log(1 - 2 * np.abs(uniform - 0.5))
            bits = np.where(value + scale * noise >= 0.5, 1, 0)
            taken += int(np.round(bits.mean(1)).sum())
        counts.append(taken)
    return PlugIn(counts[0], counts[1], repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    losses_of: dict[str, list[float]] = {}

    def ours() -> None:
        rng = np.random.default_rng(0)
        mechanisms = {d: Laplace(epsilon=EPSILON, sensitivity=float(d)) for d in DIMENSIONS}
        losses_of["ours"] = [plug_in(m, d, arguments.repeats, rng).loss for d, m in mechanisms.items()]

    def published() -> None:
        rng = np.random.default_rng(1)
        losses_of["loop"] = [loop(d, arguments.repeats, rng).loss for d in DIMENSIONS]

    times = alternate(arguments.rounds, ours=ours, loop=published)
    for i, d in enumerate(DIMENSIONS):
        chances = laplace_chances(d / EPSILON)
        exact, error = exact_loss(chances, d), sampling_error(chances, d, arguments.repeats)
        estimates = ", ".join(f"{side} {losses[i]:.4f}" for side, losses in losses_of.items())
        print(f"{d:4} dimensions: exact {exact:.4f} +- {error:.4f}, {estimates}")
        assert all(abs(losses_of[side][i] - exact) < 4 * error for side in losses_of), "a side is wrong"
    big = Laplace(epsilon=EPSILON, sensitivity=768.0)
    took = seconds(lambda: audit(big, corners(768), np.random.default_rng(0), 100_000))
    verdict("audit_seconds", took, 10.0, at_most=True)
    verdict("sanity_check", times["loop"] / times["ours"], 5.0)


if __name__ == "__main__":
    main()
