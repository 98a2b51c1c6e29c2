"""Draw releases of a mechanism; a fair coin for each row decides which of two inputs is released."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from leakboard.privacy.auditing.events import Array, Score

Release = Callable[[Array, np.random.Generator], Array]
"""Releases rows of inputs, (n, d), with noise from the generator."""

VALUES_AT_ONCE = 1 << 18
"""Number of released values in memory at once, unless a single row has more."""
TEXTS_AT_ONCE = 8_192
"""Number of releases of a text in memory at once."""
LARGEST_NUMBER = 1e60
"""Largest allowed number in a release, so that squares of sums and products are finite."""

MIN_CALLS, WANTED_CALLS = 16, 4_000
"""Least and wanted number of calls of `Release`. With few calls, noise that all rows of a call share could decide which
event is chosen.

- Texts: about `MIN_CALLS` calls.
- Vectors: one call for `MIN_ROWS` releases, but at least `MIN_CALLS` and at most `WANTED_CALLS`.
- With a delta: as many calls of at most `ROWS_WITH_DELTA` rows as needed.
- Both: more calls where one would exceed `VALUES_AT_ONCE` or `TEXTS_AT_ONCE`.
"""
MIN_ROWS = 16
"""Least number of rows of a call, if the number of draws and `VALUES_AT_ONCE` allow it."""
ROWS_WITH_DELTA = 16
"""Largest number of rows of a call if the claim has a delta (`leakboard.privacy.auditing.bound`)."""


def count_event(
    release: Release,
    inputs: tuple[Array, Array],
    holds: Score,
    total_draws: int,
    delta: float,
    generator: np.random.Generator,
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Draw ``total_draws`` releases; count the rows of each input in an event, and all rows of each input.

    Raises:
        ValueError: a release is not finite, or ``holds`` does not return one bool for each release.
    """
    scores = {"event": one_score_each(holds, bool)}
    in_event = scores_by_input(release, inputs, scores, total_draws, delta, generator)["event"]
    first_count, second_count = (int(np.count_nonzero(answers)) for answers in in_event)
    return (first_count, second_count), (len(in_event[0]), len(in_event[1]))


def one_score_each(score: Score, kind: type[bool | float]) -> Score:
    """Return a score that raises ValueError unless it gives one bool, or one finite number, for each release."""
    kinds, rule = "fiub", "a score is one finite number for each release"
    if kind is bool:
        kinds, rule = "b", "an event is one bool for each release"

    def checked(outputs: Array) -> Array:
        answer = np.asarray(score(outputs))
        if answer.shape != (len(outputs),) or answer.dtype.kind not in kinds:
            raise ValueError(f"{rule}, not {answer.dtype} of shape {answer.shape}")
        if not np.isfinite(answer).all():
            raise ValueError(f"{rule}, not NaN or infinity")
        return answer

    return checked


def scores_by_input(
    release: Release,
    inputs: tuple[Array, Array],
    scores: Mapping[str, Score],
    total_draws: int,
    delta: float,
    generator: np.random.Generator,
) -> dict[str, tuple[Array, Array]]:
    """Return the answers of each score for rows of the first input, (n,), and of the second input, (m,), by name.

    Args:
        release: the mechanism.
        inputs: the first and the second input.
        scores: by name.
        total_draws: n + m.
        delta: of the claim. Above 0, calls have at most `ROWS_WITH_DELTA` rows.
        generator: of coins; noise has one derived from it.

    Raises:
        ValueError: a release is not finite, or a score raises ValueError.
    """
    parts: dict[str, list[Array]] = {name: [] for name in scores}
    coins: list[Array] = []
    for outputs, chunk in coin_flip_releases(release, inputs, total_draws, delta, generator):
        coins.append(chunk)
        for name, score in scores.items():
            parts[name].append(score(outputs))
    is_first = np.concatenate(coins)
    answers = {name: np.concatenate(chunks) for name, chunks in parts.items()}
    return {name: (answer[is_first], answer[~is_first]) for name, answer in answers.items()}


def coin_flip_releases(
    release: Release, inputs: tuple[Array, Array], total_draws: int, delta: float, generator: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Yield ``total_draws`` releases in chunks, float (n, d), and whether each is of the first input, bool (n,).

    With a ``delta`` above 0, calls have at most `ROWS_WITH_DELTA` rows.

    Raises:
        ValueError: a release is not finite.
    """
    first, second = inputs
    noise = noise_generator(generator)
    calls_factor = 1 if first.dtype == object else WANTED_CALLS // MIN_CALLS  # encoders take many texts at once
    calls = MIN_CALLS * max(1, min(calls_factor, total_draws // (MIN_ROWS * MIN_CALLS)))
    most = ROWS_WITH_DELTA if delta > 0 else _rows_at_once(first)
    rows = min(most, _rows_at_once(first), -(-total_draws // calls))
    at_once = max(1, _rows_at_once(first) // rows) * rows
    for start in range(0, total_draws, at_once):
        coins = generator.random(min(at_once, total_draws - start)) < 0.5
        values = np.where(coins[:, None], first, second)
        released = [release(values[i : i + rows], noise) for i in range(0, len(values), rows)]
        yield finite(np.concatenate(released)), coins


def noise_generator(generator: np.random.Generator) -> np.random.Generator:
    """Return a new generator for a mechanism. A mechanism may copy it, and would know the coins of the given one."""
    (child,) = generator.spawn(1)
    return np.random.default_rng(child.integers(2**63, size=4))  # a child itself names its parent


def releases(release: Release, values: Array, draws: int, generator: np.random.Generator) -> Iterator[Array]:
    """Yield ``draws`` releases of one input in chunks, float (n, d).

    Raises:
        ValueError: a release is not finite.
    """
    rows = min(draws, _rows_at_once(values))
    inputs = np.tile(values, (rows, 1))
    for start in range(0, draws, rows):
        yield finite(release(inputs[: draws - start], generator))


def finite(outputs: Array) -> Array:
    """Check releases and return them unchanged; objects are not checked.

    Raises:
        ValueError: a release contains NaN, infinity, or a number beyond `LARGEST_NUMBER`.
    """
    if outputs.dtype == object:
        return outputs
    if not np.isfinite(outputs).all():
        raise ValueError("the mechanism released NaN or infinity")
    if (largest := float(np.abs(outputs).max(initial=0))) > LARGEST_NUMBER:
        raise ValueError(f"the mechanism released {largest:.3g}: numbers up to {LARGEST_NUMBER:.0e} can be audited")
    return outputs


def _rows_at_once(values: Array) -> int:
    return TEXTS_AT_ONCE if values.dtype == object else max(1, VALUES_AT_ONCE // len(values))
