"""Streams of standard normal numbers that can be put aside and taken up again."""

from __future__ import annotations

from dataclasses import dataclass

from leakboard.interfaces import Floats


@dataclass
class NoiseStream:
    """A stream of standard normal numbers that goes on where it stopped (``normals``)."""

    key: int
    """Below 2**63; streams of different keys are independent."""
    block: int = 0
    """How many blocks have been drawn: with ``key`` the whole state."""

    def fill(self, out: Floats) -> None:
        """Fill a contiguous float32 array with the next numbers; a part of a block uses it up."""
        from leakboard.models.skip_gram.normals import BLOCK, fill_normals  # compiled: importing it writes a cache

        flat = out.reshape(-1)
        fill_normals(flat, self.key, self.block)
        self.block += -(-flat.size // BLOCK)
