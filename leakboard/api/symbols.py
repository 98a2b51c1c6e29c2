"""Audit functions whose outputs are words, texts, sets or other hashable objects: their inputs and their releases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakboard.api.distances import WORDS_NAME
from leakboard.errors import RequestError
from leakboard.mechanism import MechanismDefaults

if TYPE_CHECKING:
    from leakboard.api.distances import ClaimedDistance
    from leakboard.privacy.auditing.events import Pair

SymbolRelease = Callable[[list[Any], np.random.Generator], Iterable[Any]]
"""Maps inputs and a generator to their outputs, one for each input, in order."""
MAX_PAIRS = 500
"""Largest number of pairs: each needs releases of its own."""
SYMBOL_BUDGET = 2_000_000
"""Largest number of outputs drawn to choose and test an event, if ``draws`` and ``budget`` are not given."""


@dataclass(frozen=True)
class SymbolFunction(MechanismDefaults):
    """A function with its claim, as audits need it."""

    function: SymbolRelease
    epsilon: float
    delta: float

    def release(self, values: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        """Return the outputs of inputs, object (n, 1), as objects of the same shape.

        Raises:
            ValueError: there is not one hashable output for each input.
        """
        from leakboard.privacy.auditing.symbols import as_objects

        given = self.function(values[:, 0].tolist(), generator)
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise ValueError(f"it gives {type(given).__name__} for {len(values)} inputs; allowed: a list of outputs")
        try:
            outputs = as_objects(given.tolist() if isinstance(given, np.ndarray) else given)
        except TypeError as error:
            raise ValueError(
                f"it gives an output that cannot be compared: {error}; allowed: hashable objects"
            ) from None
        if len(outputs) != len(values):
            raise ValueError(f"it gives {len(outputs)} outputs for {len(values)} inputs; allowed: one for each input")
        return outputs


def symbol_pairs(inputs: object, distance: ClaimedDistance | None) -> list[Pair]:
    """Return the given pairs, or all pairs of the given inputs, with their distances.

    A list in which each entry has two parts (but is no text) is a list of pairs.

    Raises:
        RequestError: no pairs, too many of them, a pair of equal inputs (for the distance ``words``, of equal words),
            or an input that is not hashable.
    """
    from leakboard.privacy.auditing.events import Pair
    from leakboard.privacy.auditing.symbols import as_objects, shortened

    if isinstance(inputs, str) or not isinstance(inputs, Iterable):
        raise RequestError(f"inputs: {inputs!r} is not allowed: a list of pairs, or a list of inputs")
    given = list(inputs)
    is_pairs = bool(given) and all(isinstance(entry, tuple | list) and len(entry) == 2 for entry in given)
    chosen: Sequence[Any] = given if is_pairs else list(combinations(given, 2))
    if not 1 <= len(chosen) <= MAX_PAIRS:
        raise RequestError(f"inputs: {len(chosen)} pairs are not allowed: from 1 to {MAX_PAIRS}")
    pairs = []
    for number, pair in enumerate(chosen):
        try:
            first, second = as_objects(pair)
        except TypeError as error:
            raise RequestError(f"inputs: {error}; allowed: hashable objects") from None
        if first[0] == second[0]:
            raise RequestError(f"inputs: pair {number} is twice {first[0]!r}; allowed: two inputs that differ")
        named = Pair(f"{shortened(first[0])} and {shortened(second[0])}", first, second)
        measured = named if distance is None else distance.measure(named, first[0], second[0])
        if distance is not None and distance.name == WORDS_NAME and measured.distance == 0:
            allowed = "with distance='words': texts that differ in a word"
            raise RequestError(f"inputs: pair {number}, {named.name}, differs in white space alone; allowed {allowed}")
        pairs.append(measured)
    return pairs
