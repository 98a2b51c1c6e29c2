"""What a file may take of this machine's memory once it is expanded: asked before anything of it is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from leakboard.errors import RequestError

GIB = 2**30
RATIO = 500
"""How often deflate shortens what may be large: vectors hardly, with 1 % of numbers that are not zero 100 times."""
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux tells how much memory a container may take (bytes); only one that is limited has such a file."""


def free_memory() -> int:
    """Return the memory that may still be taken (bytes); where the system does not tell, all that the machine has."""
    known = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        known.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    for path in LIMITS:
        with suppress(OSError, ValueError):  # unlimited is spelled "max"
            known.append(int(Path(path).read_text()))
    return min(known)


def check_expanded(path: Path, size: int, packed: int | None = None, free: int | None = None) -> None:
    """Refuse what does not fit into memory, or is compressed as only a file is that should do harm.

    Args:
        path: named in the error.
        size: expanded (bytes).
        packed: size in the file (bytes), where that is known.
        free: memory that there is (bytes); None: what is free now.

    Raises:
        RequestError: it is larger than what is free, or larger than 1 GiB and ``RATIO`` times what is in the file.
    """
    free = free_memory() if free is None else free
    if size > free:
        allowed = f"{free / GIB:.1f} GiB, the memory that is free"
    elif packed is not None and size > max(GIB, RATIO * packed):
        allowed = f"1 GiB, or {RATIO} times the {packed / 2**20:.1f} MiB in the file; uncompressed, what memory holds"
    else:
        return
    raise RequestError(f"{path}: would expand to {size / GIB:.1f} GiB; allowed: up to {allowed}")
