"""Trying a mechanism: releases of an input, drawn in chunks, and counts of an event that they fall into."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

VALUES = 1 << 18
"""Released values held at once: as many as stay in a processor's cache."""
CHUNK = 8_192
"""Releases of a text held at once."""
LARGEST = 1e150
"""Largest number of a release: its square is a number, too."""

FEWEST_CALLS, MOST_CALLS = 16, 4_000
"""Calls that tosses are spread over, so that few events are chosen by what the rows of a few calls happen to share."""
ROWS_OF_CALL = 16
"""A call has at least so many rows, unless even `FEWEST_CALLS` calls have fewer. Texts always have `FEWEST_CALLS`:
encoders take many at once, so there rare noise that a call shares can decide which event is chosen."""


def counts_of_tosses(
    release: Callable[[Array, np.random.Generator], Array],
    inputs: tuple[Array, Array],
    holds: Callable[[Array], Array],
    draws: int,
    generator: np.random.Generator,
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return of how many rows of either input an event holds in ``draws`` `tosses`, and how many rows each input has.

    Raises:
        ValueError: a release is not finite, or the event does not answer with one bool for each release.
    """
    first, second = answers_of_tosses(release, inputs, {"": one_bool_each(holds)}, draws, generator)[""]
    return (int(np.count_nonzero(first)), int(np.count_nonzero(second))), (len(first), len(second))


def one_bool_each(holds: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return an event that raises ValueError where it does not answer with one bool for each release."""
    return _one_each(holds, "b", "an event is one bool for each release")


def one_number_each(score: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a score that raises ValueError where it does not answer with one finite number for each release."""
    return _one_each(score, "fiub", "a score is one finite number for each release")


def _one_each(question: Callable[[Array], Array], kinds: str, rule: str) -> Callable[[Array], Array]:
    def answers(outputs: Array) -> Array:
        answer = np.asarray(question(outputs))
        if answer.shape != (len(outputs),) or answer.dtype.kind not in kinds:
            raise ValueError(f"{rule}, not {answer.dtype} of shape {answer.shape}")
        if not np.isfinite(answer).all():
            raise ValueError(f"{rule}, not NaN or infinity")
        return answer

    return answers


def answers_of_tosses(
    release: Callable[[Array, np.random.Generator], Array],
    inputs: tuple[Array, Array],
    questions: Mapping[str, Callable[[Array], Array]],
    draws: int,
    generator: np.random.Generator,
) -> dict[str, tuple[Array, Array]]:
    """Return by name what each question answers of the rows of the first and of the second input, (n,) and (m,).

    Args:
        release: releases rows of inputs.
        inputs: the first and the second.
        questions: map releases (n, d) to one number or bool each, (n,).
        draws: `tosses`.
        generator: of coins and noise.

    Raises:
        ValueError: a release is not finite, or a question raises it.
    """
    parts: dict[str, list[Array]] = {name: [] for name in questions}
    coins: list[Array] = []
    for outputs, chunk in tosses(release, inputs, draws, generator):
        coins.append(chunk)
        for name, question in questions.items():
            parts[name].append(question(outputs))
    is_first = np.concatenate(coins)
    whole = {name: np.concatenate(chunks) for name, chunks in parts.items()}
    return {name: (found[is_first], found[~is_first]) for name, found in whole.items()}


def releases(
    release: Callable[[Array, np.random.Generator], Array],
    values: Array,
    draws: int,
    generator: np.random.Generator,
) -> Iterator[Array]:
    """Yield ``draws`` releases of one input in chunks, float (n, d).

    Raises:
        ValueError: a release is not finite.
    """
    rows = min(draws, _at_once(values))
    inputs = np.tile(values, (rows, 1))
    for start in range(0, draws, rows):
        yield finite(release(inputs[: draws - start], generator))


def tosses(
    release: Callable[[Array, np.random.Generator], Array],
    inputs: tuple[Array, Array],
    draws: int,
    generator: np.random.Generator,
) -> Iterator[tuple[Array, Array]]:
    """Yield ``draws`` releases in chunks, float (n, d), and whether each is of the first input, bool (n,).

    They are of many calls, and a fair coin of its own decides of every row of a call which input it is: what all rows
    share tells nothing of it.

    Raises:
        ValueError: a release is not finite.
    """
    first, second = inputs
    most = 1 if first.dtype == object else MOST_CALLS // FEWEST_CALLS  # encoders take many texts at once
    calls = FEWEST_CALLS * max(1, min(most, draws // (ROWS_OF_CALL * FEWEST_CALLS)))
    rows = min(_at_once(first), -(-draws // calls))
    at_once = max(1, _at_once(first) // rows) * rows
    for start in range(0, draws, at_once):
        coins = generator.random(min(at_once, draws - start)) < 0.5
        values = np.where(coins[:, None], first, second)
        released = [release(values[i : i + rows], generator) for i in range(0, len(values), rows)]
        yield finite(np.concatenate(released)), coins


def finite(outputs: Array) -> Array:
    """Return releases as they are.

    Raises:
        ValueError: one holds NaN, infinity, or a number beyond `LARGEST`.
    """
    if not np.isfinite(outputs).all():
        raise ValueError("the mechanism released NaN or infinity")
    if (largest := float(np.abs(outputs).max(initial=0))) > LARGEST:
        raise ValueError(f"the mechanism released {largest:.3g}: numbers up to {LARGEST:.0e} can be audited")
    return outputs


def _at_once(values: Array) -> int:
    """Return how many releases of an input are held at once."""
    return CHUNK if values.dtype == object else max(1, VALUES // len(values))
