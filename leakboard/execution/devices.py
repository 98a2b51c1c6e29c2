"""Which device computes: one place says so to all that trains or encodes with torch.

Encoders, their heads and adversaries, and the networks of attackers are placed on `device()`. What is small, or
computed by another library, stays on the processor: noise and the order of batches (drawn there, so that a seed means
the same on every device), LEACE, nearest neighbours, logistic regression, and skip-gram, differentially private or not.

On CUDA transformers compute in bfloat16 where the card has it (autocast, see `checkpoints.Precision`), everything else
in float32: TF32 is off, so that numbers stay as near to the processor's as they can.
"""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Literal

from leakboard.errors import StopRun

if TYPE_CHECKING:
    import torch

Kind = Literal["cpu", "cuda"]

_in_force: Kind = "cpu"
_card: int | None = None


def device() -> torch.device:
    """Return the device in force: that of the stage that runs, outside of a stage the processor."""
    import torch

    return torch.device(_in_force)


def kind() -> Kind:
    """Return what kind of device is in force."""
    return _in_force


def use(kind: Kind) -> None:
    """Put a device in force for this process.

    Raises:
        StopRun: torch sees no CUDA device.
    """
    global _in_force
    if kind == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise StopRun("device: cuda: torch sees no CUDA device where a stage needs one")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        if _card is not None:
            torch.cuda.set_device(_card)
        torch.cuda.init()  # before anything is seeded, so that seeds reach the card whatever ran here before
    _in_force = kind


def choose_card(number: int) -> None:
    """Say which of several CUDA devices this process uses from now on, where it uses one."""
    global _card
    _card = number


def cards() -> int:
    """Return how many CUDA devices torch sees here; they are counted by the driver, and none is initialised."""
    if importlib.metadata.version("torch").endswith("+cpu"):  # it need not be imported
        return 0
    import torch

    return torch.cuda.device_count()


def has_bfloat16(device: torch.device) -> bool:
    """Return whether the processor computes bfloat16 products in hardware (AVX512-BF16, AMX, or a recent GPU)."""
    import torch

    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, check, lambda: False)() for check in checks)
