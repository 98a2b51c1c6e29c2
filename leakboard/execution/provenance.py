"""Describe where results were computed: LeakBoard's commit, versions of libraries, and the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import leakboard

PACKAGES = (
    "torch", "transformers", "tokenizers", "gensim", "scikit-learn", "datasets", "faiss-cpu", "pandas", "numpy",
    "scipy", "pyarrow", "dp-accounting", "concept-erasure", "numba", "llvmlite",
)  # fmt: skip


@cache
def environment() -> dict[str, Any]:
    """Return commit, versions and machine of this process."""
    return {
        "leakboard": leakboard.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "machine": {
            "system": platform.system(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        },
    }


def _commit() -> str:
    """Return the checkout's commit, with ``+`` if files were changed since; empty outside a checkout."""
    root = Path(leakboard.__file__).resolve().parent.parent  # Git resolves links, too

    def git(*arguments: str) -> str:
        command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")) != root:
            return ""
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
