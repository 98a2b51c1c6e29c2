"""Audits that do not know the density of the noise: which share of what the exact likelihood ratio attains they reach.

    python benchmarks/audit_shares.py [--draws 100000] [--seeds 2] [--only laplace]

For each kind of noise, dimension and epsilon: the bound that the exact ratio attains on as many tested draws, with the
best of its thresholds; that of the event that the audit chose on as many again, and its share; the seconds of choosing.
Both bounds are at the expected counts, from rates over many more draws: a single audit's counts vary by more than the
shares do, for the best events are rare.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from _sides import seconds, verdict
from scipy import special

from leakboard.mechanism import MechanismDefaults
from leakboard.privacy.auditing.audit import rounds
from leakboard.privacy.auditing.bound import bound_from_counts, log_ratios_from_counts
from leakboard.privacy.auditing.choosing import choose_event
from leakboard.privacy.auditing.events import Event, corners
from leakboard.privacy.auditing.trials import count_event

DIMENSIONS, EPSILONS = (2, 8, 64), (0.5, 1.0, 5.0)
CUT = 2.0
"""Truncated noise stays within as many scales."""
KNOWN = 1_000_000
"""Releases of either input from which rates are taken."""

Draw = Callable[[np.random.Generator, tuple[int, ...], float], np.ndarray]
LogDensity = Callable[[np.ndarray, float], np.ndarray]
"""Of noise (n, d) with a scale: the logarithm of its density, up to a constant, float64 (n,)."""


def truncated(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> np.ndarray:
    """Return Laplace noise, given that it stays within the cut."""
    magnitude = -np.log1p(-rng.random(shape) * -np.expm1(-CUT))
    return scale * magnitude * rng.choice([-1.0, 1.0], shape)


def mixed(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> np.ndarray:
    """Return rows of Laplace noise, half of them of a third of the scale."""
    return rng.laplace(0, scale, shape) * np.where(rng.random((shape[0], 1)) < 0.5, 1.0, 1 / 3)


def log_mixed(noise: np.ndarray, scale: float) -> np.ndarray:
    size, d = np.abs(noise).sum(1) / scale, noise.shape[1]
    return special.logsumexp([-size, d * np.log(3) - 3 * size], axis=0)


def log_averaged(noise: np.ndarray, scale: float) -> np.ndarray:
    size = 2 * np.abs(noise) / scale
    return (np.log1p(size) - size).sum(1)


def log_truncated(noise: np.ndarray, scale: float) -> np.ndarray:
    size = np.abs(noise) / scale
    return np.where((size <= CUT).all(1), -size.sum(1), -np.inf)


NOISES: dict[str, tuple[Draw, LogDensity]] = {
    "laplace": (lambda rng, shape, b: rng.laplace(0, b, shape), lambda z, b: -np.abs(z).sum(1) / b),
    "gaussian": (lambda rng, shape, b: rng.normal(0, b, shape), lambda z, b: -(z**2).sum(1) / (2 * b**2)),
    "averaged": (lambda rng, shape, b: (rng.laplace(0, b, shape) + rng.laplace(0, b, shape)) / 2, log_averaged),
    "truncated": (truncated, log_truncated),
    "mixed": (mixed, log_mixed),
}


@dataclass(frozen=True)
class Noise(MechanismDefaults):
    """Additive noise of scale d/epsilon (Gaussian: 2 sqrt(d)/epsilon), whose density the audit is not given."""

    name: str
    dimension: int
    claimed: float
    epsilon: float = 0.0
    delta: float = 0.0

    @property
    def scale(self) -> float:
        """Scale of the noise; for a normal one its standard deviation."""
        d = self.dimension
        return (2 * np.sqrt(d) if self.name == "gaussian" else d) / self.claimed

    def release(self, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the values with noise."""
        return values + NOISES[self.name][0](rng, values.shape, self.scale)


def attained(noise: Noise, draws: int) -> float:
    """Return the bound that the exact ratio of zeros and ones promises on as many draws, at its best threshold."""
    rng, log = np.random.default_rng(9), NOISES[noise.name][1]
    sides = []
    for value in (0.0, 1.0):
        parts = []
        for _ in range(10):
            outputs = noise.release(np.full((KNOWN // 10, noise.dimension), value), rng)
            with np.errstate(invalid="ignore"):
                ratio = log(outputs, noise.scale) - log(outputs - 1, noise.scale)
            parts.append(np.rint(np.nan_to_num(ratio, posinf=1e3, neginf=-1e3) * 1e9))  # in 1e-9, as audits round
        sides.append(np.sort(np.concatenate(parts)))
    ranks = KNOWN - np.unique(np.geomspace(1, KNOWN, 2000).astype(int))
    thresholds = np.unique(np.concatenate([sides[0][ranks], sides[1][ranks]]))
    p, q = (1 - np.searchsorted(side, thresholds, "left") / KNOWN for side in sides)
    return max(0.0, float(np.max(log_ratios_from_counts(p * draws, q * draws, (draws, draws), 0.0, 0.05))))


def chosen(noise: Noise, draws: int, seed: int) -> Event:
    """Return the event that an audit chooses on half of its draws to be tested on the other half."""
    sizes = rounds(draws, 0, noise.dimension)
    return choose_event(noise, corners(noise.dimension), np.random.default_rng(seed), sizes, 0.05).event


def expected(noise: Noise, event: Event, draws: int) -> float:
    """Return the bound of an event at its expected counts among ``draws`` of either input."""
    known = KNOWN if noise.dimension < 64 else KNOWN // 4
    inputs = event.pair.first, event.pair.second
    counted, rows = count_event(noise.release, inputs, event.holds, 2 * known, np.random.default_rng(8))
    return bound_from_counts(*(draws * np.divide(counted, rows)), (draws, draws), 0.0, 0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", choices=NOISES, default=None)
    arguments = parser.parse_args()
    least = 1.0
    print("| noise | d | epsilon | exact ratio | audit | share | statistic | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for name in [arguments.only] if arguments.only else NOISES:
        for d in DIMENSIONS:
            for epsilon in EPSILONS:
                noise, found, tested = Noise(name, d, epsilon), [], arguments.draws - arguments.draws // 2

                def choose(noise: Noise = noise, found: list = found) -> None:
                    found.append(chosen(noise, arguments.draws, len(found)))

                times = [seconds(choose) for _ in range(arguments.seeds)]
                exact, mean = attained(noise, tested), np.mean([expected(noise, event, tested) for event in found])
                share = mean / exact if exact > 0 else 1.0
                least = min(least, share)
                columns = [name, d, epsilon, f"{exact:.2f}", f"{mean:.2f}", f"{100 * share:.0f} %"]
                columns += [found[0].statistic, f"{np.mean(times):.1f}"]
                print("|", " | ".join(map(str, columns)), "|", flush=True)
    verdict("least_share", least, 0.9)


if __name__ == "__main__":
    main()
