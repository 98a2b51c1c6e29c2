"""Compute standard normal numbers from a counter: Philox 4x32-10 (Salmon et al. 2011), then Box and Muller (1958).

The n-th number of a key depends on the key and n alone, so the state of a noise stream is one integer. All steps work
on whole vectors, but NumPy draws float32 normals one by one. Logarithm, sine and cosine are polynomials of Moshier's
Cephes (logf, sinf, cosf).

Time of a whole fit with NumPy's ``Generator(Philox(key))`` over that with these functions, on AG and generated reviews:

============================ ==========
batches of 128 pairs         1.8 to 2.2
batches of 4,096 pairs       1.2 to 1.4
batches of 8,192 pairs       1.1 to 1.2
batches of documents, users  1.0 to 1.1
============================ ==========

A radius is made of 39 random bits, so no number is beyond 7.45 standard deviations; a true normal number is with
probability 1e-13. An angle is made of 24 bits. ``docs/privacy.md`` says what floating-point noise means for a claim.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from leakboard.interfaces import Floats

LANES = 64
"""Counters that are processed together."""
BLOCK = 4 * LANES
"""Numbers made together: four from each counter."""


@numba.njit(inline="always")
def philox(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    """Return four random words for a counter of four words and a key of two, all uint32."""
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * np.uint64(c0)
        p1 = np.uint64(0xCD9E8D57) * np.uint64(c2)
        c0 = np.uint32(np.uint32(p1 >> np.uint64(32)) ^ c1 ^ k0)
        c2 = np.uint32(np.uint32(p0 >> np.uint64(32)) ^ c3 ^ k1)
        c1, c3 = np.uint32(p1), np.uint32(p0)
        k0 = np.uint32(k0 + np.uint32(0x9E3779B9))
        k1 = np.uint32(k1 + np.uint32(0xBB67AE85))
    return c0, c1, c2, c3


@numba.njit(inline="always")
def _logarithm(x):  # type: ignore[no-untyped-def]
    """Return ln x of a normal float32 above 0, to about one unit in the last place."""
    bits = np.float32(x).view(np.int32)
    exponent = np.int32((bits >> 23) - 126)
    m = np.int32((bits & 0x007FFFFF) | 0x3F000000).view(np.float32)  # in [1/2, 1)
    small = m < np.float32(0.70710678)
    e = np.float32(exponent) - (np.float32(1.0) if small else np.float32(0.0))
    m = (m + m if small else m) - np.float32(1.0)
    z = m * m
    y = np.float32(7.0376836292e-2)
    y = y * m + np.float32(-1.1514610310e-1)
    y = y * m + np.float32(1.1676998740e-1)
    y = y * m + np.float32(-1.2420140846e-1)
    y = y * m + np.float32(1.4249322787e-1)
    y = y * m + np.float32(-1.6668057665e-1)
    y = y * m + np.float32(2.0000714765e-1)
    y = y * m + np.float32(-2.4999993993e-1)
    y = y * m + np.float32(3.3333331174e-1)
    y = y * m * z + e * np.float32(-2.12194440e-4) - np.float32(0.5) * z
    return m + y + e * np.float32(0.693359375)


@numba.njit(inline="always")
def _normals(radius, low, angle):  # type: ignore[no-untyped-def]
    """Return two independent normal numbers from 31 + 8 bits of radius and 24 of angle, all int32."""
    u = (np.float32(radius) * np.float32(256.0) + np.float32(low) + np.float32(0.5)) * np.float32(2.0**-39)
    r = np.sqrt(np.float32(-2.0) * _logarithm(u))
    quadrant, part = np.int32(angle >> 22), np.int32(angle & 0x3FFFFF)
    x = (np.float32(part) + np.float32(0.5)) * np.float32(2.0**-22 * math.pi / 2) - np.float32(0.7853981633974483)
    z = x * x
    sine = (
        (np.float32(-1.9515295891e-4) * z + np.float32(8.3321608736e-3)) * z + np.float32(-1.6666654611e-1)
    ) * z * x + x
    cosine = (np.float32(2.443315711809948e-5) * z + np.float32(-1.388731625493765e-3)) * z + np.float32(
        4.166664568298827e-2
    )
    cosine = cosine * z * z - np.float32(0.5) * z + np.float32(1.0)
    swapped = (quadrant & 1) != 0
    first = sine if swapped else cosine
    second = cosine if swapped else sine
    first = -first if quadrant > 1 else first
    second = -second if (quadrant == 1) | (quadrant == 2) else second
    return r * first, r * second


@numba.njit(cache=True, fastmath={"contract"})
def fill_normals(out: Floats, key: int, block: int) -> None:
    """Fill float32 (n,) with normal numbers; ``block`` is the first block of `BLOCK` numbers."""
    k0, k1 = np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32)
    made = np.empty(BLOCK, np.float32)
    for start in range(0, len(out), BLOCK):
        high, low = np.uint32(block >> 32), np.uint32(block & 0xFFFFFFFF)
        for lane in range(LANES):
            a, b, c, d = philox(np.uint32(lane), low, high, np.uint32(0), k0, k1)
            one, two = _normals(np.int32(a >> 1), np.int32(b & 0xFF), np.int32(b >> 8))
            made[lane] = one
            made[LANES + lane] = two
            one, two = _normals(np.int32(c >> 1), np.int32(d & 0xFF), np.int32(d >> 8))
            made[2 * LANES + lane] = one
            made[3 * LANES + lane] = two
        stop = min(BLOCK, len(out) - start)
        for i in range(stop):
            out[start + i] = made[i]
        block += 1
