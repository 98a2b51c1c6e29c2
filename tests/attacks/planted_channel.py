"""Make a channel of four words with a given matrix."""

from dataclasses import dataclass

import numpy as np

from leakboard.privacy.channels.channel import ChannelClaim, FittedChannel
from leakboard.privacy.channels.texts import TOKEN, TextChannel
from leakboard.privacy.channels.words import WordSpace

WORDS = ["red", "green", "blue", TOKEN]
SPACE = WordSpace(WORDS, np.eye(4))
MATRIX = np.array([[0.1, 0.7, 0.1, 0.1], [0.1, 0.2, 0.6, 0.1], [0.7, 0.1, 0.1, 0.1], [0.2, 0.1, 0.1, 0.6]])
"""It is far from symmetric."""


@dataclass(frozen=True)
class Planted(FittedChannel):
    matrix: np.ndarray

    @property
    def claim(self):
        return ChannelClaim(0.0, "different words")

    def log_probabilities(self, rows):
        return np.log(self.matrix)[rows]


def channel(matrix=MATRIX, **more):
    return TextChannel(Planted(SPACE, matrix), **more)
