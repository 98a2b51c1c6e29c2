"""Put a process on the device that its run has chosen (`leakboard.pipeline.schedule.chosen_device`).

`docs/scale.md` has a table of what computes on a GPU.
"""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Literal

from leakboard.errors import StopRun

if TYPE_CHECKING:
    import torch

DeviceKind = Literal["cpu", "cuda"]

_in_force: DeviceKind = "cpu"
_card: int | None = None


def device() -> torch.device:
    """Return the device that `use` chose last; at first, the processor."""
    import torch

    return torch.device(_in_force)


def kind() -> DeviceKind:
    """Return the kind of `device()`."""
    return _in_force


def use(kind: DeviceKind) -> None:
    """Choose the device of this process.

    Raises:
        StopRun: torch sees no CUDA device.
    """
    global _in_force
    if kind == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise StopRun("device: cuda: torch sees no CUDA device where a stage needs one")
        # keeps numbers close to those of a processor
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        if _card is not None:
            torch.cuda.set_device(_card)
        # `leakboard.randomness.seeded` restores the random state of a card only if CUDA was initialised before
        torch.cuda.init()
    _in_force = kind


def choose_card(number: int) -> None:
    """Remember which CUDA device a later `use` chooses: its number, from 0."""
    global _card
    _card = number


def cards() -> int:
    """Return how many CUDA devices the driver reports, without initialising any."""
    if importlib.metadata.version("torch").endswith("+cpu"):  # saves importing torch
        return 0
    import torch

    return torch.cuda.device_count()


def has_bfloat16(device: torch.device) -> bool:
    """Return whether a device computes bfloat16 products in hardware (AVX512-BF16, AMX, or a recent GPU)."""
    import torch

    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, check, lambda: False)() for check in checks)
