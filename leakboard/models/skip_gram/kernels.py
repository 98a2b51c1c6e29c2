"""Compute the inner loops of skip-gram with negative sampling: gradients by unit, clipped and summed over a batch.

A pair has a centre c and a context o. With negatives n_1, ..., n_M its loss is (Mikolov et al. 2013, equation 4;
Vu et al. 2019), where s is the logistic function::

    -ln s(u_o . w_c) - sum_m ln s(-u_{n_m} . w_c)

Its targets are j = o, n_1, ..., n_M, with labels y = 1, 0, ..., 0. Its gradients are:

- for u_j: (s(u_j . w_c) - y_j) w_c;
- for w_c: the sum over j of (s(u_j . w_c) - y_j) u_j.

A word that occurs twice in a unit has one row. Its gradients are added up before the norm is taken.

A batch works on copies of the rows that it touches, so its cost does not depend on the size of the tables. Norms and
sums are float64. A clipped contribution is rounded to float32, so it exceeds the clipping norm by at most one part in a
million. Sums are in the processor's order: the same seed gives the same vectors on one machine.

These arrays are shared:

======== ============================ ================================================
table    float32 (table rows, d)      both word tables
rows     int32 (rows,)                the distinct rows of the table that a batch touches
slots    int32 (table rows,)          number of each row in ``rows``; -1 outside a step
work     float32 (rows or more, d)    values of these rows
total    float64 (rows or more, d)    summed gradients; 0 outside a step
======== ============================ ================================================
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

FAST_MATH = {"reassoc", "contract", "nsz"}
"""Lets the compiler reorder sums, so that they use vector instructions. NaN and infinity keep their meaning."""


@numba.njit(cache=True)
def collect_rows(references: Array, slots: Array, rows: Array) -> int:
    """Number the distinct rows of a batch in order of appearance: fill ``slots`` and ``rows``, return their number.

    ``references``, int32 (references,), has each row as often as the batch refers to it; ``rows`` has room for as many.
    """
    count = 0
    for row in references:
        if slots[row] < 0:
            slots[row] = count
            rows[count] = row
            count += 1
    return count


@numba.njit(cache=True, fastmath=FAST_MATH)
def read_rows(
    table: Array, applied_variance: Array, target_variance: float, noise: Array, rows: Array, work: Array
) -> None:
    """Add the noise that is due to ``rows``, and copy these rows to ``work``.

    Args:
        table: both tables.
        applied_variance: float64 (table rows,), summed variance of the noise that each row has received.
        target_variance: summed variance of the noise that every row is to receive by now.
        noise: float32 (rows, d), standard normal; (0, d) to add no noise.
        rows: of the batch.
        work: receives their values.
    """
    for slot, row in enumerate(rows):
        if len(noise) and target_variance > applied_variance[row]:
            deviation = np.float32(math.sqrt(target_variance - applied_variance[row]))
            for k in range(table.shape[1]):
                table[row, k] += deviation * noise[slot, k]
        applied_variance[row] = target_variance
        for k in range(table.shape[1]):
            work[slot, k] = table[row, k]


@numba.njit(cache=True, fastmath=FAST_MATH)
def sum_gradients(
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
        slots: numbers of the rows.
        work: their values.
        clipping_norm: C, largest 2-norm of a unit's contribution; infinite to clip nothing.
        each_table: clip the parts of the two tables separately, each to C.
        unit: float32 like ``work``, all 0 before and after.
        total: receives the sum.
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


@numba.njit(cache=True, fastmath=FAST_MATH)
def write_rows(table: Array, rows: Array, slots: Array, work: Array, total: Array, rate: float) -> None:
    """Subtract ``rate`` times the summed gradients from the rows of a batch, and clear ``total`` and ``slots``."""
    step = np.float32(rate)
    for slot, row in enumerate(rows):
        for k in range(table.shape[1]):
            table[row, k] = work[slot, k] - step * np.float32(total[slot, k])
            total[slot, k] = 0.0
        slots[row] = -1
