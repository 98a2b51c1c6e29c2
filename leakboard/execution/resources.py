"""What a stage may use of the machine, and what it used: threads, seconds, memory, device."""

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

from leakboard.execution import devices
from leakboard.execution.environment import environment
from leakboard.logs import PROGRESS
from leakboard.randomness import cards_in_use

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


QUIET = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
"""The environment of a worker: libraries that it loads later show no progress bars of their own."""


@dataclass(frozen=True)
class Needs:
    """What a stage is to have of the machine."""

    threads: int = 1
    uses_gpu: bool = False


def provide(needs: Needs, device: devices.Kind) -> None:
    """Put in force what a stage needs: its threads, and where it uses a GPU this device, elsewhere the processor.

    Raises:
        StopRun: torch sees no such device.
    """
    limit_threads(needs.threads)
    devices.use(device if needs.uses_gpu else "cpu")


@contextmanager
def provided(needs: Needs, device: devices.Kind = "cpu") -> Iterator[None]:
    """Put in force what a stage inside another needs, and give the other what it had.

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

    That is the numbers of threads, the device, the global random states, the libraries' progress bars, the filters of
    warnings and who hears of progress.
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
        end.callback(devices.use, devices.kind())
        for library in (torch.backends.cuda.matmul, torch.backends.cudnn):
            end.callback(setattr, library, "allow_tf32", library.allow_tf32)
        end.enter_context(torch.random.fork_rng(devices=cards_in_use()))
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
def measured(stage: str, needs: Needs, device: devices.Kind = "cpu") -> Iterator[dict[str, Any]]:
    """Put in force what a stage needs, and measure what it takes: seconds, and the peak of the process's memory (MiB).

    The system may not let the peak be reset. The device is the GPU where anything was placed on it; what the stage
    leaves unused there is given back.

    Raises:
        StopRun: torch sees no such device.
    """
    import torch

    cost: dict[str, Any] = {}
    with provided(needs, device):
        with suppress(OSError):  # resets the peak on Linux
            Path("/proc/self/clear_refs").write_text("5")
        before = _placed_on_gpu()
        start = time.perf_counter()
        try:
            yield cost
        finally:
            if used := _placed_on_gpu() > before:
                torch.cuda.empty_cache()  # the next to use this card is another process
        cost |= {
            "stage": stage,
            "seconds": round(time.perf_counter() - start, 3),
            "peak_memory_mib": _peak_memory(),
            "device": torch.cuda.get_device_name() if used else "cpu",
            "threads": needs.threads,
            "auto_precision": "bfloat16"
            if devices.has_bfloat16(torch.device("cuda" if used else "cpu"))
            else "float32",
            "environment": environment(),
        }


def _placed_on_gpu() -> int:
    """Return how often this process has taken memory of its GPU so far."""
    import torch

    return torch.cuda.memory_stats().get("allocation.all.allocated", 0) if torch.cuda.is_initialized() else 0


def _peak_memory() -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
