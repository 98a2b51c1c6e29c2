"""One-run audits: the bound for Gaussian noise (Mahloujifar et al. 2024) against that for any, by either theorem.

    python benchmarks/one_run.py [--audits 20]

Both sides get the same guesses and the same error, 0.05 for six numbers of guesses. The first lines are counts of the
boards' audits and of perfect ones; the others the median of audits of canaries that each are released with Gaussian
noise of epsilon 8 at delta 1e-5, which is the truth that either side stays below. The two sides do not say the same:
the larger one is a bound on epsilon only where the noise of the training is Gaussian.
"""

import argparse

import numpy as np
from _sides import verdict

from leakboard.privacy.auditing.guesses import SHARES, audit_scores, largest_bound
from leakboard.privacy.auditing.one_run import ERROR, one_run_bound
from leakboard.privacy.auditing.one_run_curve import epsilon_bound, epsilon_if_gaussian
from leakboard.privacy.mechanisms.textbook import gaussian_scale

DELTA, EPSILON, TARGET = 1e-5, 8.0, 1.3
COUNTS = {
    "all right, 67 canaries": (67, 60, 60),
    "all right, 123 canaries": (123, 111, 111),
    "all right, 500 canaries": (500, 450, 450),
    "None-DP on AG, attacker disjoint": (500, 450, 440),
    "gensim on AG, attacker disjoint": (500, 450, 346),
    "all right, 1000 canaries": (1000, 900, 900),
}
"""Canaries, guesses, right guesses."""
NOISY = (123, 500, 1000, 4000)
"""Canaries under Gaussian noise."""


def if_gaussian(canaries: int, guesses: int, right: int, error: float) -> float:
    return epsilon_if_gaussian(canaries, guesses, right, DELTA, error)


def noisy(canaries: int, audits: int) -> tuple[float, float]:
    """Return the median bounds of audits of Gaussian noise: for any training, and for Gaussian noise."""
    rng, scale = np.random.default_rng(canaries), gaussian_scale(EPSILON, DELTA, 1.0)
    found = []
    for _ in range(audits):
        coins = rng.random(canaries) < 0.5
        scores = coins + rng.normal(0.0, scale, canaries)
        found.append((audit_scores(scores, coins, DELTA).epsilon, largest_bound(scores, coins, if_gaussian).epsilon))
    general, gaussian = np.median(found, axis=0)
    return float(general), float(gaussian)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=20)
    arguments = parser.parse_args()
    error = ERROR / len(SHARES)
    sides = {
        name: (epsilon_bound(*counts, DELTA, error), if_gaussian(*counts, error)) for name, counts in COUNTS.items()
    }
    sides |= {f"noise of epsilon {EPSILON:g}, {m} canaries": noisy(m, arguments.audits) for m in NOISY}
    for name, (general, gaussian) in sides.items():
        print(f"{name:34} any training {general:6.2f}, Gaussian noise {gaussian:6.2f}")
    for delta in (1e-5, 1e-4, 1e-3):
        bounds = [bound(*COUNTS["all right, 500 canaries"], delta, error) for bound in (one_run_bound, epsilon_bound)]
        print(
            "all right, 500 canaries, any training, delta {:g}: {:.2f} by Steinke et al. (2023) alone, "
            "{:.2f} by either".format(delta, *bounds)
        )
    for name in ("None-DP on AG, attacker disjoint", f"noise of epsilon {EPSILON:g}, 500 canaries"):
        general, gaussian = sides[name]
        verdict(name.replace(" ", "_").replace(",", ""), gaussian / general, TARGET)


if __name__ == "__main__":
    main()
