"""Decide whether LeakBoard's folder or a plugin caused an OSError."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import tempfile
from pathlib import Path

NO_ACCESS = (errno.EACCES, errno.EPERM, errno.ENOTDIR)
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
MIN_FREE = 2**26
"""Free space (bytes) below which a disk counts as full.

The file that did not fit may have been larger, or was removed again.
"""
NUMPY_MESSAGE = re.compile(r"\d+ requested and \d+ written|Not enough free space to write (\d+) bytes")
"""What `np.save` says of a full disk; its error has no number."""
PROBE = 2**20
"""Bytes to write when trying whether a folder can be written."""


def cannot_be_written(folder: Path, error: OSError) -> bool:
    """Return whether an error says that a folder cannot be written: no access, or its disk is full.

    An error that names files is about these files. Errors of writing into an open file name none: then a test file is
    written into the folder. If that works, the error has another cause.
    """
    names = [name for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    if names:
        root = os.path.realpath(folder)
        paths = [os.path.realpath(os.fsdecode(name)) for name in names]
        is_inside = any(os.path.commonpath([root, path]) in (root, path) for path in paths)
        return is_inside and error.errno in (*NO_ACCESS, *NO_SPACE)
    of_numpy = NUMPY_MESSAGE.search(str(error)) if error.errno is None else None
    is_limited = resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
    if is_limited and (of_numpy or error.errno == errno.EFBIG):
        return True
    needed = int(of_numpy[1] or 0) if of_numpy else 0
    return bool(of_numpy or error.errno in NO_SPACE) and _is_full(folder, needed)


def is_cut_short(path: Path) -> bool:
    """Return whether a NumPy file lacks its end: `np.save` loses it without an error if it fills the disk."""
    import numpy as np

    try:
        np.load(path, mmap_mode="r", allow_pickle=False)
    except EOFError:
        return True
    except ValueError as error:
        return "mmap length" in str(error) or "EOF" in str(error)
    except OSError:  # the file system cannot map files into memory
        return False
    return False


def _is_full(folder: Path, needed: int) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(os.urandom(PROBE))
            probe.flush()
            os.fsync(probe.fileno())
        return shutil.disk_usage(folder).free < max(MIN_FREE, needed)
    except OSError:
        return True
