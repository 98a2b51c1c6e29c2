"""What a stage may use of the machine, and what it used: threads, seconds, memory, device."""

from __future__ import annotations

import resource
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakboard.logs import PROGRESS
from leakboard.models.checkpoints import has_bfloat16
from leakboard.pipeline.environment import environment

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


QUIET = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
"""The environment of a worker: libraries that it loads later show no progress bars of their own."""


def limit_threads(threads: int) -> None:
    """Hold every library to this many threads, and give torch its defaults again, whatever was done before."""
    import torch

    _load_what_computes()
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    _controller(len(sys.modules)).limit(limits=threads)


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Return what limits the libraries that are loaded; they are looked for when a module was imported since."""
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()


def _load_what_computes() -> None:
    """Import the libraries that have threads: a limit reaches none that is loaded later."""
    import faiss  # noqa: F401
    import scipy.linalg  # noqa: F401
    import sklearn.linear_model  # noqa: F401


def silence_libraries() -> None:
    """Turn off the libraries' own progress bars: the runner shows progress by cell and stage.

    A library that is not loaded yet reads its setting from the environment (`QUIET`).
    """
    import datasets
    import huggingface_hub.utils
    import tqdm

    tqdm.tqdm.set_lock(threading.RLock())  # its own would leave a semaphore behind
    datasets.disable_progress_bars()
    huggingface_hub.utils.disable_progress_bars()
    if "transformers" in sys.modules:
        sys.modules["transformers"].utils.logging.disable_progress_bar()


@contextmanager
def settings_given_back() -> Iterator[None]:
    """Give this process back, in the end, what stages change of it.

    That is the numbers of threads, the global random states, the libraries' progress bars, the filters of warnings and
    who hears of progress.
    """
    import random

    import datasets
    import huggingface_hub.utils
    import numpy as np
    import threadpoolctl
    import torch
    import transformers

    _load_what_computes()
    bars = transformers.utils.logging
    with ExitStack() as end:
        end.callback(torch.set_num_threads, torch.get_num_threads())
        end.enter_context(threadpoolctl.threadpool_limits(limits=None))
        end.callback(random.setstate, random.getstate())
        end.callback(np.random.set_state, np.random.get_state())
        end.enter_context(torch.random.fork_rng())
        if not datasets.are_progress_bars_disabled():
            end.callback(datasets.enable_progress_bars)
        if not huggingface_hub.utils.are_progress_bars_disabled():
            end.callback(huggingface_hub.utils.enable_progress_bars)
        if bars.is_progress_bar_enabled():
            end.callback(bars.enable_progress_bar)
        end.enter_context(warnings.catch_warnings())
        end.callback(setattr, PROGRESS, "handlers", list(PROGRESS.handlers))
        yield


@contextmanager
def measured(stage: str, threads: int) -> Iterator[dict[str, Any]]:
    """Measure a stage: seconds, and the peak of the process's memory (MiB) where the system lets it be reset."""
    import torch

    cost: dict[str, Any] = {}
    with suppress(OSError):  # resets the peak on Linux
        Path("/proc/self/clear_refs").write_text("5")
    if torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    yield cost
    used = torch.cuda.is_initialized() and torch.cuda.max_memory_allocated() > 0
    cost |= {
        "stage": stage,
        "seconds": round(time.perf_counter() - start, 3),
        "peak_memory_mib": _peak_memory(),
        "device": torch.cuda.get_device_name(0) if used else "cpu",
        "threads": threads,
        "auto_precision": "bfloat16" if has_bfloat16(torch.device("cuda" if used else "cpu")) else "float32",
        "environment": environment(),
    }


def _peak_memory() -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
