"""Read a channel's matrix once, in blocks of rows, for several readings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import ROWS, FittedChannel
from leakboard.privacy.channels.words import Numbers


class Reading(Protocol):
    """Something that is computed from the rows of a matrix."""

    def add(self, rows: Integers, logs: Numbers) -> None:
        """Read some rows.

        Args:
            rows: inputs, int64 (n,), larger than all before.
            logs: ln P(y | x), float64 (n, V). It must not be changed.
        """


def scan(channel: FittedChannel, readings: Sequence[Reading], rows: Integers | None = None) -> None:
    """Give every reading the rows of the matrix.

    A block of the matrix and its copies take about 0.5 GB at 34,573 words.

    Args:
        channel: the mechanism.
        readings: what is computed.
        rows: inputs in increasing order, int64; None: all.
    """
    rows = np.arange(len(channel)) if rows is None else rows
    for start in range(0, len(rows), ROWS):
        block = rows[start : start + ROWS]
        logs = channel.log_probabilities(block)
        for reading in readings:
            reading.add(block, logs)
