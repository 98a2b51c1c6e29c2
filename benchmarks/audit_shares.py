"""Measure audits that do not know the density of the noise, as a share of what the exact likelihood ratio attains.

For each kind of noise, dimension and epsilon the table has three results:

- the bound of the exact ratio, at the best of its thresholds;
- the bound of the event that the audit chose, and its share of the former;
- the seconds of choosing.

Both bounds are for as many tested draws, at the expected counts: their rates come from many more draws. The best events
are rare, so the counts of a single audit vary by more than the shares do.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import typer
from _timing import seconds, verdict
from scipy import special

from leakboard.mechanism import MechanismDefaults
from leakboard.privacy.auditing.audit import rounds
from leakboard.privacy.auditing.bound import bound_from_counts, log_ratios_from_counts
from leakboard.privacy.auditing.choosing import choose_event
from leakboard.privacy.auditing.events import Event, corners
from leakboard.privacy.auditing.trials import count_event

DIMENSIONS, EPSILONS = (2, 8, 64), (0.5, 1.0, 5.0)
CUT = 2.0
"""Largest size of truncated noise, in scales."""
RELEASES = 1_000_000
"""Releases of either input, from which rates are estimated."""

Draw = Callable[[np.random.Generator, tuple[int, ...], float], np.ndarray]
LogDensity = Callable[[np.ndarray, float], np.ndarray]
"""Returns the log density of noise (n, d) with a scale, up to a constant, float64 (n,)."""


def truncated(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> np.ndarray:
    """Return Laplace noise, conditioned on sizes of at most `CUT` scales."""
    magnitude = -np.log1p(-rng.random(shape) * -np.expm1(-CUT))
    return scale * magnitude * rng.choice([-1.0, 1.0], shape)


def mixed(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> np.ndarray:
    """Return rows of Laplace noise; half of the rows have a third of the scale."""
    return rng.laplace(0, scale, shape) * np.where(rng.random((shape[0], 1)) < 0.5, 1.0, 1 / 3)


def log_mixed(noise: np.ndarray, scale: float) -> np.ndarray:
    """Return the log density of mixed noise."""
    size, d = np.abs(noise).sum(1) / scale, noise.shape[1]
    return special.logsumexp([-size, d * np.log(3) - 3 * size], axis=0)


def log_averaged(noise: np.ndarray, scale: float) -> np.ndarray:
    """Return the log density of the mean of two Laplace draws."""
    size = 2 * np.abs(noise) / scale
    return (np.log1p(size) - size).sum(1)


def log_truncated(noise: np.ndarray, scale: float) -> np.ndarray:
    """Return the log density of truncated noise."""
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
    """Additive noise of scale d/epsilon (Gaussian: 2 sqrt(d)/epsilon). The audit does not get its density."""

    name: str
    dimension: int
    claimed: float
    epsilon: float = 0.0
    delta: float = 0.0

    @property
    def scale(self) -> float:
        """Scale of the noise; of Gaussian noise the standard deviation."""
        d = self.dimension
        return (2 * np.sqrt(d) if self.name == "gaussian" else d) / self.claimed

    def release(self, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the values with noise."""
        return values + NOISES[self.name][0](rng, values.shape, self.scale)


def exact_bound(noise: Noise, draws: int) -> float:
    """Return the bound of the exact ratio for zeros and ones on ``draws`` of either, at its best threshold."""
    rng, log = np.random.default_rng(9), NOISES[noise.name][1]
    sides = []
    for value in (0.0, 1.0):
        parts = []
        for _ in range(10):
            outputs = noise.release(np.full((RELEASES // 10, noise.dimension), value), rng)
            with np.errstate(invalid="ignore"):
                ratio = log(outputs, noise.scale) - log(outputs - 1, noise.scale)
            parts.append(np.rint(np.nan_to_num(ratio, posinf=1e3, neginf=-1e3) * 1e9))  # audits round to 1e-9
        sides.append(np.sort(np.concatenate(parts)))
    ranks = RELEASES - np.unique(np.geomspace(1, RELEASES, 2000).astype(int))
    thresholds = np.unique(np.concatenate([sides[0][ranks], sides[1][ranks]]))
    p, q = (1 - np.searchsorted(side, thresholds, "left") / RELEASES for side in sides)
    return max(0.0, float(np.max(log_ratios_from_counts(p * draws, q * draws, (draws, draws), 0.0, 0.05))))


def chosen_event(noise: Noise, draws: int, seed: int) -> Event:
    """Return the event that an audit chooses on half of its draws, for a test on the other half."""
    sizes = rounds(draws, 0, noise.dimension)
    return choose_event(noise, corners(noise.dimension), np.random.default_rng(seed), sizes, 0.05).event


def expected_bound(noise: Noise, event: Event, draws: int) -> float:
    """Return the bound of an event at its expected counts among ``draws`` of either input."""
    releases = RELEASES if noise.dimension < 64 else RELEASES // 4
    inputs = event.pair.first, event.pair.second
    counted, rows = count_event(noise.release, inputs, event.holds, 2 * releases, 0.0, np.random.default_rng(8))
    return bound_from_counts(*(draws * np.divide(counted, rows)), (draws, draws), 0.0, 0.05)


def measure(name: str, d: int, epsilon: float, draws: int, seeds: int) -> float:
    """Print the row of one case, and return the audit's share of the exact bound."""
    noise, events, tested = Noise(name, d, epsilon), list[Event](), draws - draws // 2

    def choose() -> None:
        events.append(chosen_event(noise, draws, seed=len(events)))

    times = [seconds(choose) for _ in range(seeds)]
    exact, mean = exact_bound(noise, tested), np.mean([expected_bound(noise, event, tested) for event in events])
    share = mean / exact if exact > 0 else 1.0
    numbers = [f"{exact:.2f}", f"{mean:.2f}", f"{100 * share:.0f} %", events[0].score_name, f"{np.mean(times):.1f}"]
    print("|", " | ".join([name, str(d), str(epsilon), *numbers]), "|", flush=True)
    return float(share)


def main(draws: int = 100_000, seeds: int = 2, only: str = "") -> None:
    """Measure all kinds of noise, or ``only`` one; half of the draws choose an event, the others test it."""
    if only not in ("", *NOISES):
        raise typer.BadParameter(f"{only!r} is not a kind of noise: {', '.join(NOISES)}")
    print("| noise | d | epsilon | exact ratio | audit | share | statistic | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    cases = [(name, d, epsilon) for name in NOISES for d in DIMENSIONS for epsilon in EPSILONS if only in ("", name)]
    verdict("least_share", min(1.0, *(measure(*case, draws, seeds) for case in cases)), 0.9)
