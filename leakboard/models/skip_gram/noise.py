"""Draw standard normal numbers from a stream that can be saved and resumed."""

from __future__ import annotations

from dataclasses import dataclass

from leakboard.interfaces import Floats


@dataclass
class NoiseStream:
    """A stream of standard normal numbers (`leakboard.models.skip_gram.normals`)."""

    key: int
    """Below 2**63; streams with different keys are independent."""
    block: int = 0
    """Number of blocks drawn so far; with ``key`` the whole state."""

    def fill(self, out: Floats) -> None:
        """Fill a contiguous float32 array with the next numbers; the rest of the last block is skipped."""
        from leakboard.models.skip_gram.normals import BLOCK, fill_normals  # compiled: importing it writes a cache

        flat = out.reshape(-1)
        fill_normals(flat, self.key, self.block)
        self.block += -(-flat.size // BLOCK)
