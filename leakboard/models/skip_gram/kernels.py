"""Compiled inner loops of skip-gram with negative sampling: per-unit gradients, clipped, summed over a batch.

Loss of a pair (centre c, context o) with negatives n_1..n_M (Mikolov et al. 2013, equation 4; Vu et al. 2019):
-ln s(u_o . w_c) - sum_m ln s(-u_{n_m} . w_c), s the logistic function. With targets j = o, n_1, ..., n_M and labels
y = 1, 0, ..., 0 its gradient is (s(u_j . w_c) - y_j) w_c for u_j, and the sum over j of (s(u_j . w_c) - y_j) u_j for
w_c. A word that occurs twice in a unit has one row, and its gradients add up before the norm is taken.

A batch works on copies of the rows that it touches, so its cost does not depend on the size of the tables. Norms and
sums are in float64, a clipped contribution is rounded to float32: it exceeds the clipping norm by one part in a million
at most. Sums are in whichever order suits the processor: the same seed gives the same vectors on one machine.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


_FAST = {"reassoc", "contract", "nsz"}
"""Sums may be reordered, so that they use the processor's vectors; NaN and infinity stay what they are."""


@numba.njit(cache=True)
def make_pairs(codes: Array, starts: Array, window: int) -> tuple[Array, Array, Array, Array, int]:
    """Return the (centre, context) pairs of known words at most ``window`` words apart in one text, in reading order.

    Args:
        codes: int32 (tokens,), the words of all texts one after the other; -1 for an unknown word, which keeps its
            position but is in no pair.
        starts: int64 (texts + 1,), where each text starts in ``codes``.
        window: largest distance.

    Returns:
        int32 (pairs,) centres and contexts; int64 (pairs,) the position of each among all pairs, those with unknown
        words included; int64 (texts,) the number of known pairs of each text; how many pairs there are in all.
    """
    counts = np.zeros(len(starts) - 1, np.int64)
    for text in range(len(counts)):
        for i in range(starts[text], starts[text + 1]):
            if codes[i] < 0:
                continue
            for j in range(max(starts[text], i - window), min(starts[text + 1], i + window + 1)):
                counts[text] += j != i and codes[j] >= 0
    known_pairs = counts.sum()
    centres, contexts, positions = (
        np.empty(known_pairs, np.int32),
        np.empty(known_pairs, np.int32),
        np.empty(known_pairs, np.int64),
    )
    row = position = 0
    for text in range(len(counts)):
        for i in range(starts[text], starts[text + 1]):
            for j in range(max(starts[text], i - window), min(starts[text + 1], i + window + 1)):
                if j == i:
                    continue
                if codes[i] >= 0 and codes[j] >= 0:
                    centres[row], contexts[row], positions[row] = (
                        codes[i],
                        codes[j],
                        position,
                    )
                    row += 1
                position += 1
    return centres, contexts, positions, counts, position


@numba.njit(cache=True)
def collect_rows(rows: Array, slots: Array, distinct: Array) -> int:
    """Number the distinct rows of a batch in order of appearance and return how many there are.

    Args:
        rows: int32 (references,).
        slots: int32 (table rows,), all -1; holds each row's number afterwards.
        distinct: int32 (references or more,), receives the rows.
    """
    count = 0
    for row in rows:
        if slots[row] < 0:
            slots[row] = count
            distinct[count] = row
            count += 1
    return count


@numba.njit(cache=True, fastmath=_FAST)
def read_rows(
    table: Array,
    applied_variance: Array,
    target_variance: float,
    noise: Array,
    distinct: Array,
    count: int,
    work: Array,
) -> None:
    """Bring the noise of the first ``count`` rows of ``distinct`` up to date, and copy the rows to ``work``.

    Args:
        table: float32 (rows, d).
        applied_variance: float64 (rows,), the summed variance of the noise that each row has had.
        target_variance: the summed variance of the noise that every row is to have had by now.
        noise: float32 (count, d), standard normal; (0, d) where no noise is to be added.
        distinct: int32.
        count: how many rows.
        work: float32 (count or more, d).
    """
    for slot in range(count):
        row = distinct[slot]
        if len(noise) and target_variance > applied_variance[row]:
            deviation = np.float32(math.sqrt(target_variance - applied_variance[row]))
            for k in range(table.shape[1]):
                table[row, k] += deviation * noise[slot, k]
        applied_variance[row] = target_variance
        for k in range(table.shape[1]):
            work[slot, k] = table[row, k]


@numba.njit(cache=True, fastmath=_FAST)
def summed_gradients(
    centres: Array,
    targets: Array,
    starts: Array,
    slots: Array,
    work: Array,
    clipping_norm: float,
    each_table: bool,
    unit: Array,
    total: Array,
    norms: Array,
) -> None:
    """Add up the clipped gradients of the units of a batch.

    Args:
        centres: int32 (pairs,), rows of the input table.
        targets: int32 (pairs, 1 + negatives), rows of the output table, the context first.
        starts: int64 (units + 1,), where each unit's pairs start.
        slots: int32 (table rows,), number of each row in ``work``.
        work: float32 (rows touched or more, d), their values.
        clipping_norm: largest 2-norm C of a unit's contribution; infinite to leave it.
        each_table: clip the two tables' parts by themselves, each to C.
        unit: float32 like ``work``, all 0, and again all 0 afterwards.
        total: float64 like ``work``, all 0; receives the sum.
        norms: float64 (units,), receives the norm of each unit's gradient before it is clipped.
    """
    d = work.shape[1]
    marked = np.zeros(len(work), np.bool_)
    of_output = np.zeros(len(work), np.bool_)
    touched = np.empty(len(work), np.int32)
    for i in range(len(starts) - 1):
        count = 0
        for pair in range(starts[i], starts[i + 1]):
            centre = slots[centres[pair]]
            if not marked[centre]:
                marked[centre] = True
                touched[count] = centre
                count += 1
            for t in range(targets.shape[1]):
                target = slots[targets[pair, t]]
                if not marked[target]:
                    marked[target] = True
                    of_output[target] = True
                    touched[count] = target
                    count += 1
                product = np.float32(0.0)
                for k in range(d):
                    product += work[centre, k] * work[target, k]
                error = np.float32(1.0 / (1.0 + math.exp(-product)) - (1.0 if t == 0 else 0.0))
                for k in range(d):
                    unit[centre, k] += error * work[target, k]
                    unit[target, k] += error * work[centre, k]
        squares = np.zeros(2)
        for n in range(count):
            square = np.float64(0.0)
            for k in range(d):
                square += np.float64(unit[touched[n], k]) * np.float64(unit[touched[n], k])
            squares[int(of_output[touched[n]])] += square
        norms[i] = math.sqrt(squares[0] + squares[1])
        if not each_table:
            squares[:] = squares[0] + squares[1]
        for n in range(count):
            slot = touched[n]
            norm = math.sqrt(squares[int(of_output[slot])])
            scale = np.float32(clipping_norm / norm if norm > clipping_norm else 1.0)
            for k in range(d):
                total[slot, k] += np.float64(scale * unit[slot, k])
                unit[slot, k] = np.float32(0.0)
            marked[slot] = False
            of_output[slot] = False


@numba.njit(cache=True, fastmath=_FAST)
def write_rows(table: Array, distinct: Array, count: int, slots: Array, work: Array, total: Array, rate: float) -> None:
    """Take ``rate`` times the summed gradients off the rows of a batch, and clear ``total`` and ``slots``."""
    step = np.float32(rate)
    for slot in range(count):
        row = distinct[slot]
        for k in range(table.shape[1]):
            table[row, k] = work[slot, k] - step * np.float32(total[slot, k])
            total[slot, k] = 0.0
        slots[row] = -1
