"""Compute the success of the best attacker who sees one published word and knows the words' frequencies.

The attacker who guesses argmax_x prior(x) P(y | x) is right most often (Bayes' rule). For text sanitisers: Tong et al.
(2025). This is the context-free bound. It is no bound for attackers who read the sentence around the word.
"""

from __future__ import annotations

import numpy as np

from leakboard.interfaces import Integers
from leakboard.privacy.channels.words import Numbers


class BestGuess:
    """The likeliest input of each output."""

    def __init__(self, frequencies: Numbers):
        with np.errstate(divide="ignore"):
            self.log_prior = np.log(frequencies / frequencies.sum())
        self.log_joint = np.full(len(frequencies), -np.inf)
        """ln of the largest prior(x) P(y | x) of each output y, float64 (V,)."""
        self.guess = np.full(len(frequencies), -1)
        """The input that attains it, int64 (V,); -1: no input that occurs gives this output."""

    def add(self, rows: Integers, logs: Numbers) -> None:
        """Read some rows."""
        joint = logs + self.log_prior[rows, None]
        at = joint.argmax(0)
        best = joint[at, np.arange(joint.shape[1])]
        is_better = best > self.log_joint
        self.log_joint[is_better] = best[is_better]
        self.guess[is_better] = rows[at[is_better]]

    def success(self) -> Numbers:
        """Return the probability that each word is guessed when it was the input, float64 (V,)."""
        outputs = np.flatnonzero(self.guess >= 0)
        guessed = self.guess[outputs]
        right = np.exp(self.log_joint[outputs] - self.log_prior[guessed])  # P(y | x) of the guessed x
        success: Numbers = np.bincount(guessed, right, minlength=len(self.guess)).astype(np.float64)
        return success

    def success_over(self, counts: Numbers) -> float:
        """Return the share of a corpus's words that are guessed on average; ``counts`` are its words, float64 (V,)."""
        return float(counts @ self.success() / counts.sum())
