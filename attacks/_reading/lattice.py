"""Read a text from a lattice of likely words under trigrams: the likeliest words, or the likeliest text.

With candidates x_t at each place t, the probability of a text and its publications y is

    P(end | x_{T-1}, x_T) prod_t P(x_t | x_{t-2}, x_{t-1}) P(y_t | x_t).

The forward-backward algorithm sums it over all texts of the lattice with a given word at a place, and Viterbi's finds
the largest (Rabiner 1989, sections III.A to III.C). States are pairs of neighbouring words, so both are exact for the
lattice. With all words in it they are the attacker's best guesses under this prior. A ``weight`` below 1 is an exponent
of the trigrams' probabilities.

Time grows with the third power of the number of candidates. So `pair_posteriors` chooses few from many first: under
pairs of words a state is one word.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._reading.likely_words import Lattice, Numbers
from leakboard.interfaces import Integers
from leakboard.models.trigrams import Trigrams


def likeliest_words(lattice: Lattice, law: Trigrams, weight: float = 1.0) -> Integers:
    """Return the word with the largest posterior probability at each place, codes, int64 (T,)."""
    codes, logs = _with_starts(lattice, law)
    steps, end = (weight * part for part in _transitions(codes, law))
    forward = [_first(logs)]
    for t, step in enumerate(steps):
        forward.append(_log_sum(forward[-1][:, :, None] + step, 0) + logs[t + 2])
    backward = end
    chosen = np.empty(len(steps), np.int64)
    for t in range(len(steps) - 1, -1, -1):
        chosen[t] = codes[t + 2, _log_sum(forward[t + 1] + backward, 0).argmax()]
        backward = _log_sum(steps[t] + (logs[t + 2] + backward)[None], 2)
    return chosen


def likeliest_text(lattice: Lattice, law: Trigrams, weight: float = 1.0) -> Integers:
    """Return the text with the largest posterior probability, codes, int64 (T,)."""
    codes, logs = _with_starts(lattice, law)
    steps, end = (weight * part for part in _transitions(codes, law))
    best, back = _first(logs), []
    for t, step in enumerate(steps):
        scores = best[:, :, None] + step
        back.append(scores.argmax(0))
        best = scores.max(0) + logs[t + 2]
    chosen = np.empty(len(steps), np.int64)
    before, last = np.unravel_index(int((best + end).argmax()), best.shape)
    for t in range(len(steps) - 1, -1, -1):
        chosen[t] = codes[t + 2, last]
        before, last = back[t][before, last], before
    return chosen


@dataclass(frozen=True)
class Pairs:
    """The logarithms of the probabilities of pairs of neighbouring candidates. They depend on no weight."""

    steps: Numbers
    """ln P(second | first), float64 (T, k, k); in the first place, ``first`` is the start mark."""
    end: Numbers
    """ln P(end | last), float64 (k,)."""

    @classmethod
    def of(cls, codes: Integers, law: Trigrams) -> "Pairs":
        """Look the pairs of a lattice's candidates up, int64 (T, k) with T at least 1."""
        before = np.concatenate([np.full((1, codes.shape[1]), law.start), codes[:-1]])
        return cls(law.log_pairs(before[:, :, None], codes[:, None, :]), law.log_pairs(codes[-1], law.end))


def pair_posteriors(logs: Numbers, pairs: Pairs, weight: float = 1.0) -> Numbers:
    """Return the posterior probability of each candidate under pairs of words, float64 (T, k).

    Args:
        logs: of a lattice, float64 (T, k) with T at least 1.
        pairs: of its candidates.
        weight: exponent of the pairs' probabilities.
    """
    steps = weight * pairs.steps
    forward = [steps[0, 0] + logs[0]]
    for step, likelihoods in zip(steps[1:], logs[1:], strict=True):
        forward.append(_log_sum(forward[-1][:, None] + step, 0) + likelihoods)
    backward = weight * pairs.end
    joint = np.empty_like(logs)
    for t in range(len(logs) - 1, -1, -1):
        joint[t] = forward[t] + backward
        backward = _log_sum(steps[t] + (logs[t] + backward)[None], 1)
    return shares(joint)


def shares(logs: Numbers) -> Numbers:
    """Return exp(logs) divided by their sum at each place, float64 (T, k); 0 at places where all are -inf."""
    total = _log_sum(logs, 1)[:, None]
    total[np.isneginf(total)] = 0
    divided: Numbers = np.exp(logs - total)
    return divided


def _with_starts(lattice: Lattice, law: Trigrams) -> tuple[Integers, Numbers]:
    """Return the lattice with two start marks before it."""
    width = lattice.codes.shape[1]
    marks = np.full((2, width), -np.inf)
    marks[:, 0] = 0.0
    return np.concatenate([np.full((2, width), law.start), lattice.codes]), np.concatenate([marks, lattice.logs])


def _first(logs: Numbers) -> Numbers:
    """Return the logs of the pairs of two start marks, float64 (k, k)."""
    return logs[0][:, None] + logs[1]


def _transitions(codes: Integers, law: Trigrams) -> tuple[NDArray[np.float64], Numbers]:
    """Return ln P(third | first, second) of each place, float64 (T, k, k, k), and of the end, float64 (k, k)."""
    first, second, third = codes[:-2, :, None, None], codes[1:-1, None, :, None], codes[2:, None, None, :]
    return law.log_probabilities(first, second, third), law.log_probabilities(codes[-2][:, None], codes[-1], law.end)


def _log_sum(logs: Numbers, axis: int) -> Numbers:
    """Return ln sum exp(logs) along an axis; -inf if all are."""
    most = logs.max(axis, keepdims=True)
    most[np.isneginf(most)] = 0
    with np.errstate(divide="ignore"):
        total: Numbers = np.log(np.exp(logs - most).sum(axis)) + most.squeeze(axis)
    return total
