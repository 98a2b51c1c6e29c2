"""Whose an error of a file is: of the folder that LeakBoard writes into, or of what a plugin does elsewhere."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import tempfile
from pathlib import Path

ACCESS = (errno.EACCES, errno.EPERM, errno.ENOTDIR)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
LEAST = 2**26
"""Free space (bytes) below which a disk counts as full: what did not fit may have been larger, or is removed again."""
NUMPY = re.compile(r"\d+ requested and \d+ written|Not enough free space to write (\d+) bytes")
"""What `np.save` says of a full disk, without a number of the error."""
PROBE = 2**20
"""What is written to try whether a folder can be written (bytes)."""


def cannot_be_written(folder: Path, error: OSError) -> bool:
    """Return whether an error says that a folder cannot be written: no access, or its disk is full.

    An error that names files is about these. Writing into an open file names none: then the folder is tried, and where
    it can be written, the error came from elsewhere.
    """
    names = [name for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    if names:
        root = os.path.realpath(folder)
        is_inside = any(os.path.commonpath([root, path]) in (root, path) for path in map(_real, names))
        return is_inside and error.errno in (*ACCESS, *FULL)
    of_numpy = NUMPY.search(str(error)) if error.errno is None else None
    is_limited = resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
    if is_limited and (of_numpy or error.errno == errno.EFBIG):
        return True
    needed = int(of_numpy[1] or 0) if of_numpy else 0
    return bool(of_numpy or error.errno in FULL) and _is_full(folder, needed)


def is_cut_short(path: Path) -> bool:
    """Return whether a file of NumPy lacks its end, which `np.save` loses in silence where a disk fills up with it."""
    import numpy as np

    try:
        np.load(path, mmap_mode="r", allow_pickle=False)
    except EOFError:
        return True
    except ValueError as error:
        return "mmap length" in str(error) or "EOF" in str(error)
    except OSError:  # a file system that maps nothing into memory
        return False
    return False


def _real(name: str | bytes) -> str:
    return os.path.realpath(os.fsdecode(name))


def _is_full(folder: Path, needed: int) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(os.urandom(PROBE))
            probe.flush()
            os.fsync(probe.fileno())
        return shutil.disk_usage(folder).free < max(LEAST, needed)
    except OSError:
        return True
