"""Give a stage its threads and its device, and measure its seconds and memory."""

from __future__ import annotations

import resource
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakboard.errors import RequestError
from leakboard.execution import devices
from leakboard.execution.environment import environment
from leakboard.logs import PROGRESS
from leakboard.randomness import cards_in_use

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


NO_PROGRESS_BARS = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
"""Environment of a worker. Libraries that it loads later show no progress bars of their own."""
LEAST_SPACE = 4 << 30
"""Least address space (bytes) that importing torch and similar libraries takes, with room for small data."""
MANY_FILES = 4096
"""Open files that a run with many workers may need."""


@dataclass(frozen=True)
class Needs:
    """What a stage needs of the machine."""

    threads: int = 1
    uses_gpu: bool = False


def provide(needs: Needs, device: devices.Kind) -> None:
    """Set the number of threads, and the device: the given one if the stage uses a GPU, else the processor.

    Raises:
        StopRun: torch sees no such device.
    """
    limit_threads(needs.threads)
    devices.use(device if needs.uses_gpu else "cpu")


@contextmanager
def provided(needs: Needs, device: devices.Kind = "cpu") -> Iterator[None]:
    """Provide what an inner stage needs, then restore the outer stage's threads and device.

    Raises:
        StopRun: torch sees no such device.
    """
    import torch

    before = torch.get_num_threads(), devices.kind()
    if before == (needs.threads, device if needs.uses_gpu else "cpu"):
        yield
        return
    provide(needs, device)
    try:
        yield
    finally:
        limit_threads(before[0])
        devices.use(before[1])


def limit_threads(threads: int) -> None:
    """Limit every library to a number of threads, and restore torch's defaults, which a stage may have changed."""
    import torch

    _import_threaded_libraries()
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    _controller(len(sys.modules)).limit(limits=threads)


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Return the controller of all loaded libraries. It searches for them again when the number of modules changes."""
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()


def _import_threaded_libraries() -> None:
    """Import the libraries that have threads: a limit does not apply to a library that is loaded later."""
    import faiss  # noqa: F401
    import scipy.linalg  # noqa: F401
    import sklearn.linear_model  # noqa: F401


def silence_libraries() -> None:
    """Turn off the libraries' own progress bars: the runner shows progress by cell and stage.

    A library that is loaded later reads its setting from the environment (`NO_PROGRESS_BARS`).
    """
    import datasets
    import huggingface_hub.utils

    if tqdm := sys.modules.get("tqdm"):  # both libraries above use it for their bars
        tqdm.tqdm.set_lock(threading.RLock())  # its default lock would leak a semaphore
    datasets.disable_progress_bars()
    huggingface_hub.utils.disable_progress_bars()
    if "transformers" in sys.modules:
        sys.modules["transformers"].utils.logging.disable_progress_bar()


@contextmanager
def settings_restored() -> Iterator[None]:
    """Restore the process's global settings at the end, which stages change.

    These are the numbers of threads, the device, the global random states, the libraries' progress bars, the filters of
    warnings, and the handlers of progress.
    """
    import random

    import datasets
    import huggingface_hub.utils
    import numpy as np
    import threadpoolctl
    import torch
    import transformers

    _import_threaded_libraries()
    bars = transformers.utils.logging
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        stack.callback(torch.set_grad_enabled, torch.is_grad_enabled())
        default = torch.get_default_device()
        stack.callback(torch.set_default_device, None if default.type == "cpu" else default)
        stack.enter_context(threadpoolctl.threadpool_limits(limits=None))
        stack.callback(random.setstate, random.getstate())
        stack.callback(np.random.set_state, np.random.get_state())
        stack.callback(devices.use, devices.kind())
        for library in (torch.backends.cuda.matmul, torch.backends.cudnn):
            stack.callback(setattr, library, "allow_tf32", library.allow_tf32)
        stack.enter_context(torch.random.fork_rng(devices=cards_in_use()))
        if not datasets.are_progress_bars_disabled():
            stack.callback(datasets.enable_progress_bars)
        if not huggingface_hub.utils.are_progress_bars_disabled():
            stack.callback(huggingface_hub.utils.enable_progress_bars)
        if bars.is_progress_bar_enabled():
            stack.callback(bars.enable_progress_bar)
        stack.enter_context(warnings.catch_warnings())
        stack.callback(setattr, PROGRESS, "handlers", list(PROGRESS.handlers))
        yield


@contextmanager
def measured(stage: str, needs: Needs, device: devices.Kind = "cpu") -> Iterator[dict[str, Any]]:
    """Provide what a stage needs, and measure its seconds and the process's peak memory (MiB).

    The peak includes earlier stages if the system does not allow resetting it. The device is the GPU if the stage
    placed anything on it. GPU memory that the stage leaves unused is released.

    Raises:
        StopRun: torch sees no such device.
    """
    import torch

    cost: dict[str, Any] = {}
    with provided(needs, device):
        with suppress(OSError):  # resets the peak on Linux
            Path("/proc/self/clear_refs").write_text("5")
        before = _gpu_allocations()
        start = time.perf_counter()
        try:
            yield cost
        finally:
            if used_gpu := _gpu_allocations() > before:
                torch.cuda.empty_cache()  # the next task on this card is in another process
        cost |= {
            "stage": stage,
            "seconds": round(time.perf_counter() - start, 3),
            "peak_memory_mib": _peak_memory(),
            "device": torch.cuda.get_device_name() if used_gpu else "cpu",
            "threads": needs.threads,
            "auto_precision": "bfloat16"
            if devices.has_bfloat16(torch.device("cuda" if used_gpu else "cpu"))
            else "float32",
            "environment": environment(),
        }


def _gpu_allocations() -> int:
    """Return how often this process has allocated GPU memory."""
    import torch

    return torch.cuda.memory_stats().get("allocation.all.allocated", 0) if torch.cuda.is_initialized() else 0


def _peak_memory() -> int:
    """Return the process's peak memory (MiB)."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def require_room() -> None:
    """Refuse a process that may use too little memory for the libraries, and allow it as many files as it may open.

    Raises:
        RequestError: the address space is limited to less than `LEAST_SPACE`: no cell could import torch.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_SPACE:
        raise RequestError(
            f"the address space is limited to {limit / 2**30:.1f} GiB (ulimit -v); allowed: {LEAST_SPACE >> 30} GiB "
            "or more"
        )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, MANY_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
