"""Map outputs that are words, texts, sets or other objects to scores, by the frequencies of outputs and of their parts.

The parts of a text are its words, with and without their positions. The parts of a set or a tuple are its members.
Draws that are used for nothing else give the frequencies. The events, their choice and their test are those of vectors:
a score that was learned badly weakens a bound, but never makes it wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from leakboard.privacy.auditing.events import Array, DescribedScore, Score, Threshold

MAX_OUTPUTS = 4_096
"""Number of the most frequent outputs, and of the most frequent parts, whose frequencies are learned."""
MAX_SINGLE_PARTS = 6
"""Number of parts with an event of their own: those whose frequencies differ most, in standard errors."""
MAX_NAMED_OUTPUTS, MAX_LETTERS = 3, 60
"""Number of outputs that the description of an event names, and number of letters of each."""


class Part(NamedTuple):
    """A word of a text, or a member of a set or a tuple."""

    value: Hashable
    position: int | None = None
    """Position in the text or tuple, from 0; None: anywhere."""

    def __str__(self) -> str:
        where = "" if self.position is None else f" at position {self.position + 1}"
        return f"{shortened(self.value)}{where}"

    def is_in(self, output: Hashable) -> bool:
        """Return whether an output has the part."""
        members = members_of(output)
        if self.position is None:
            return self.value in members
        return self.position < len(members) and members[self.position] == self.value


def as_objects(values: Iterable[Any]) -> Array:
    """Return objects as rows of one column, object (n, 1).

    Sets become frozen sets, lists tuples, and NumPy's scalars Python's.

    Raises:
        TypeError: an object is not hashable.
    """
    objects = [_hashable(value) for value in values]
    return np.fromiter(objects, object, len(objects))[:, None]


def members_of(output: Hashable) -> Sequence[Hashable]:
    """Return the words of a text, or the members of a set or a tuple; none of a single word or another object."""
    if isinstance(output, frozenset):
        return tuple(output)
    members = output.split() if isinstance(output, str) else output if isinstance(output, tuple) else ()
    return members if len(members) > 1 else ()


def parts_of(output: Hashable) -> Iterator[Part]:
    """Yield the parts of an output, each once. Members of a set have no positions."""
    members = members_of(output)
    if isinstance(output, frozenset):
        yield from map(Part, sorted(members, key=repr))  # the order of a set differs from process to process
    else:
        yield from map(Part, dict.fromkeys(members))
        yield from (Part(member, i) for i, member in enumerate(members))


def symbol_scores(
    first_input: Hashable, second_input: Hashable, first_outputs: Array, second_outputs: Array
) -> tuple[dict[str, Score], dict[str, Score]]:
    """Return scores that may tell two inputs apart, and scores whose single values may do so, by name.

    Args:
        first_input: the first input.
        second_input: the second input.
        first_outputs: outputs of the first input to learn from, object (n, 1).
        second_outputs: outputs of the second input, object (m, 1).
    """
    sides = [outputs[:, 0].tolist() for outputs in (first_outputs, second_outputs)]
    outputs = _log_ratios(Counter(sides[0]), Counter(sides[1]), sides)
    scores: dict[str, Score] = {"size of the output": _each(_size)}
    counts = [Counter(part for output in side for part in parts_of(output)) for side in sides]
    if any(counts):
        scores["density ratio of the parts"] = _sum_over_parts(_log_ratios(counts[0], counts[1], sides))
        first, second = (frozenset(members_of(value)) for value in (first_input, second_input))
        scores["parts of the first input minus parts of the second"] = _each(
            lambda output: len(first.intersection(found := members_of(output))) - len(second.intersection(found))
        )
        scores |= {f"part {part}": _has(part) for part in _telling_parts(counts[0], counts[1], sides)}
    return scores, {"output": _rank(outputs)}


def _log_ratios(first: Counter[Any], second: Counter[Any], sides: Sequence[Sequence[Any]]) -> dict[Any, float]:
    """Return ln of the ratio of the frequencies of the most frequent values, with half a count added."""
    frequent = [value for value, _ in (first + second).most_common(MAX_OUTPUTS)]
    shares = np.log(len(sides[1]) + 1) - np.log(len(sides[0]) + 1)
    return {value: float(np.log(first[value] + 0.5) - np.log(second[value] + 0.5) + shares) for value in frequent}


def _telling_parts(first: Counter[Part], second: Counter[Part], sides: Sequence[Sequence[Any]]) -> list[Part]:
    def difference(part: Part) -> float:
        rates = [(counts[part] + 0.5) / (len(side) + 1) for counts, side in zip((first, second), sides, strict=True)]
        variance = sum(rate * (1 - rate) / (len(side) + 1) for rate, side in zip(rates, sides, strict=True))
        return float(abs(rates[0] - rates[1]) / np.sqrt(variance))

    frequent = [part for part, _ in (first + second).most_common(MAX_OUTPUTS)]
    return sorted(frequent, key=difference, reverse=True)[:MAX_SINGLE_PARTS]


def _sum_over_parts(ratios: Mapping[Part, float]) -> Score:
    """Return a score that adds up the log ratios of an output's parts."""
    anywhere = {part.value: ratio for part, ratio in ratios.items() if part.position is None}
    placed = {(part.position, part.value): ratio for part, ratio in ratios.items() if part.position is not None}

    def score(output: Hashable) -> float:
        members = members_of(output)
        places = [] if isinstance(output, frozenset) else [placed.get(key, 0.0) for key in enumerate(members)]
        # the same sum in any order
        return math.fsum(places + [anywhere.get(member, 0.0) for member in set(members)])

    return _each(score)


def _rank(ratios: Mapping[Hashable, float]) -> DescribedScore:
    """Rank outputs by their log ratio: above 0 if the first input is likelier, below 0 if not; others have rank 0."""
    ordered = sorted(ratios, key=lambda output: ratios[output])
    negative = sum(ratio < 0 for ratio in ratios.values())
    ranks = {output: i - negative + (i >= negative) for i, output in enumerate(ordered)}

    def describe(threshold: Threshold) -> str:
        inside = threshold.holds(np.array([ranks[output] for output in ordered[::-1]], np.float64))
        is_other = bool(threshold.holds(np.zeros(1))[0])
        named = [output for output, holds in zip(ordered[::-1], inside, strict=True) if holds != is_other]
        shown = " or ".join(map(shortened, named[:MAX_NAMED_OUTPUTS]))
        more = f" or one of {len(named) - MAX_NAMED_OUTPUTS} more" if len(named) > MAX_NAMED_OUTPUTS else ""
        return f"the output is {'not ' if is_other else ''}{shown or 'another one'}{more}"

    return DescribedScore(_each(lambda output: ranks.get(output, 0)), describe)


def _has(part: Part) -> DescribedScore:
    def describe(threshold: Threshold) -> str:
        has = threshold.holds(np.ones(1))[0]
        return f"the output {'has' if has else 'does not have'} {part}"

    return DescribedScore(_each(part.is_in), describe)


def _each(function: Callable[[Any], float]) -> Score:
    """Return a score that computes a function of each distinct output once."""

    def score(outputs: Array) -> Array:
        objects = outputs[:, 0].tolist()
        values = {output: function(output) for output in set(objects)}
        return np.array([values[output] for output in objects], np.float64)

    return score


def _size(output: Hashable) -> int:
    """Return the number of words of a text, or of members of a set or tuple; 0 of other objects."""
    if isinstance(output, str):
        return len(output.split())
    return len(output) if isinstance(output, frozenset | tuple) else 0


def _hashable(value: Any) -> Hashable:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, set):
        value = frozenset(value)
    if isinstance(value, list):
        value = tuple(value)
    hash(value)
    return value


def shortened(value: object) -> str:
    """Return a Python literal, cut after `MAX_LETTERS` letters; members of a set are sorted."""
    text = f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, frozenset) else repr(value)
    return text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 1]}…"
