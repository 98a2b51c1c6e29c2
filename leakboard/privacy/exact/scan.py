"""Read a channel's matrix once, in blocks of rows, for several readings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from leakboard.errors import RequestError
from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import ROWS, FittedChannel
from leakboard.privacy.channels.words import Numbers

ROUNDING = 1e-6
"""Largest difference from 1 that the sum of a row may have."""


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

    Raises:
        RequestError: the matrix has another shape, or the probabilities of a row do not add up to 1.
    """
    rows = np.arange(len(channel)) if rows is None else rows
    for start in range(0, len(rows), ROWS):
        block = rows[start : start + ROWS]
        logs = channel.log_probabilities(block)
        _check(channel, block, logs)
        for reading in readings:
            reading.add(block, logs)


def _check(channel: FittedChannel, rows: Integers, logs: Numbers) -> None:
    """Refuse what are no logarithms of probabilities."""
    if logs.shape != (expected := (len(rows), len(channel))):
        raise RequestError(f"channel: log_probabilities has the shape {logs.shape}, not {expected}")
    with np.errstate(over="ignore"):
        sums = np.exp(logs).sum(1)
    is_wrong = ~(np.abs(sums - 1) < ROUNDING)  # NaN is wrong, too
    if is_wrong.any():
        at = int(is_wrong.argmax())
        word = channel.space.words[rows[at]]
        raise RequestError(f"channel: the probabilities of row {rows[at]} ({word}) add up to {sums[at]:.6g}, not to 1")
