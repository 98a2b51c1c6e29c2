"""Refuse files that would not fit into memory, before they are expanded."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from leakboard.errors import RequestError

GIB = 2**30
RATIO = 500
"""Largest compression ratio of an accepted file above 1 GiB.

Vectors hardly compress; with 99 % zeros, deflate shortens them 100 times.
"""
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files in which Linux states the memory limit of a container (bytes)."""


def free_memory() -> int:
    """Return the free memory (bytes); if the system does not report it, all memory of the machine."""
    known = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        known.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    for path in LIMITS:
        with suppress(OSError, ValueError):  # unlimited is spelled "max"
            known.append(int(Path(path).read_text()))
    return min(known)


def check_expanded(path: Path, size: int, packed: int | None = None, free: int | None = None) -> None:
    """Refuse data that do not fit into memory, or that are compressed so strongly that they must be a zip bomb.

    Args:
        path: for the message.
        size: of the expanded data (bytes).
        packed: size in the file (bytes); None: not known.
        free: free memory (bytes); None: as measured now.

    Raises:
        RequestError: the data are larger than the free memory, or larger than both 1 GiB and ``RATIO`` times
            ``packed``.
    """
    free = free_memory() if free is None else free
    if size > free:
        allowed = f"{free / GIB:.1f} GiB, the memory that is free"
    elif packed is not None and size > max(GIB, RATIO * packed):
        allowed = f"1 GiB, or {RATIO} times the {packed / 2**20:.1f} MiB in the file; uncompressed, what memory holds"
    else:
        return
    raise RequestError(f"{path}: would expand to {size / GIB:.1f} GiB; allowed: up to {allowed}")
