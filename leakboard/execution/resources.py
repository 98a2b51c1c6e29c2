"""Give a stage its threads and its device, and measure its seconds and memory."""

from __future__ import annotations

import math
import os
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
from leakboard.execution.provenance import environment
from leakboard.logs import PROGRESS
from leakboard.randomness import cards_in_use

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


NO_PROGRESS_BARS = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
"""Environment variables that turn off progress bars; libraries read them when imported."""
LEAST_SPACE = 4 << 30
"""Least address space for importing torch (bytes)."""
MANY_FILES = 4096
"""Number of open files that a run may need."""
CGROUP = Path("/sys/fs/cgroup")
"""Folder with the limits of a container (Linux)."""


@dataclass(frozen=True)
class Needs:
    """The threads that a stage needs, and whether it uses a GPU."""

    threads: int = 1
    uses_gpu: bool = False


def usable_cores() -> int:
    """Return how many cores this process may use, at least 1. CPU affinity and a container's quota limit it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no quota, or "max"
        if (version_2 := CGROUP / "cpu.max").exists():
            quota, period = map(int, version_2.read_text().split())
        else:
            quota, period = (int((CGROUP / f"cpu/cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
        if quota > 0:
            cores = min(cores, math.ceil(quota / period))
    return max(1, cores)


def provide(needs: Needs, device: devices.DeviceKind) -> None:
    """Set the number of threads and the device. A stage that uses no GPU gets the processor.

    Raises:
        StopRun: torch sees no such device.
    """
    limit_threads(needs.threads)
    devices.use(device if needs.uses_gpu else "cpu")


@contextmanager
def provided(needs: Needs, device: devices.DeviceKind = "cpu") -> Iterator[None]:
    """Set threads and device for a block, then restore the earlier ones.

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
    """Limit every library to a number of threads, and reset torch's defaults."""
    import torch

    _import_threaded_libraries()
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    _controller(len(sys.modules)).limit(limits=threads)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit every library to one thread inside a block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _controller(len(sys.modules)).limit(limits=1):
            yield
    finally:
        torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    # the number of modules is a cache key: after an import, libraries are searched again
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()


def _import_threaded_libraries() -> None:
    # a limit misses libraries that are loaded later
    import faiss  # noqa: F401
    import scipy.linalg  # noqa: F401
    import sklearn.linear_model  # noqa: F401


def silence_libraries() -> None:
    """Turn off the progress bars of libraries."""
    import datasets
    import huggingface_hub.utils

    if tqdm := sys.modules.get("tqdm"):  # both libraries above draw their bars with tqdm
        tqdm.tqdm.set_lock(threading.RLock())  # its default lock would leak a semaphore
    datasets.disable_progress_bars()
    huggingface_hub.utils.disable_progress_bars()
    if "transformers" in sys.modules:
        sys.modules["transformers"].utils.logging.disable_progress_bar()


@contextmanager
def settings_restored() -> Iterator[None]:
    """Restore the global settings of libraries after a block: threads, device, random numbers, messages."""
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
def measured(stage: str, needs: Needs, device: devices.DeviceKind = "cpu") -> Iterator[dict[str, Any]]:
    """Set threads and device for a stage, and measure its time (seconds) and peak memory (MiB).

    The device is reported as a GPU if the stage used GPU memory. Outside Linux, the peak includes earlier stages.

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
                torch.cuda.empty_cache()  # another process may need the memory
        cost |= {
            "stage": stage,
            "seconds": round(time.perf_counter() - start, 3),
            "peak_memory_mib": _peak_memory_mib(),
            "device": torch.cuda.get_device_name() if used_gpu else "cpu",
            "threads": needs.threads,
            "auto_precision": "bfloat16"
            if devices.has_bfloat16(torch.device("cuda" if used_gpu else "cpu"))
            else "float32",
            "environment": environment(),
        }


def _gpu_allocations() -> int:
    import torch

    return torch.cuda.memory_stats().get("allocation.all.allocated", 0) if torch.cuda.is_initialized() else 0


def _peak_memory_mib() -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024
    except (OSError, StopIteration):  # not Linux
        unit = 1 << 20 if sys.platform == "darwin" else 1 << 10  # macOS counts bytes, other systems KiB
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


def check_process_limits() -> None:
    """Check the limit of the address space, and raise the limit of open files.

    Raises:
        RequestError: the limit of the address space is below `LEAST_SPACE`.
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
