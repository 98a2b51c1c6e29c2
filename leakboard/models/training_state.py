"""Save the state of training after an epoch, and go on from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from leakboard.errors import one_line
from leakboard.logs import log_progress
from leakboard.store import write_file

Tensors = Mapping[str, torch.Tensor]
SAVE_SECONDS = 30.0
"""The state is saved after an epoch if the last save is so long ago."""


@dataclass(frozen=True)
class TrainingState:
    """All that the next epoch depends on.

    Random numbers come from ``generator``, from torch's own generator on the processor, and on a GPU from that of the
    GPU.
    """

    path: Path
    """File of the state (.safetensors). Another training has another file."""
    module: torch.nn.Module
    optimiser: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler | None
    generator: torch.Generator
    """Draws the batches."""

    def save(self, history: list[float], kept: Tensors | None) -> None:
        """Write the state in one piece.

        Args:
            history: the dev loss after each epoch.
            kept: the weights of the best epoch.
        """
        from safetensors.torch import save

        saved = self.optimiser.state_dict()
        tensors = {
            **{f"module/{name}": value for name, value in self.module.state_dict().items()},
            **{f"kept/{name}": value for name, value in (kept or {}).items()},
            **{f"optimiser/{i}/{name}": value for i, one in saved["state"].items() for name, value in one.items()},
            "generator": self.generator.get_state(),
            "torch": torch.get_rng_state(),
            **({"cuda": torch.cuda.get_rng_state()} if self._on_gpu else {}),
        }
        scheduler = self.scheduler.state_dict() if self.scheduler else None
        about = json.dumps({"history": history, "groups": saved["param_groups"], "scheduler": scheduler})
        copies = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
        write_file(self.path, save(copies, {"about": about}))

    @property
    def _on_gpu(self) -> bool:
        return any(parameter.is_cuda for parameter in self.module.parameters())

    def load(self) -> tuple[list[float], Tensors | None]:
        """Return the dev losses and the best weights of a saved state, and take over the rest; without one, nothing."""
        from safetensors import SafetensorError, safe_open

        if not self.path.is_file():
            return [], None
        try:
            with safe_open(self.path, "pt") as file:
                about = json.loads(file.metadata()["about"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            self._take(about, tensors)
        except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
            log_progress(f"starts again: the saved state cannot be used ({one_line(error)[:80]})")
            return [], None
        log_progress(f"resumes after epoch {len(about['history'])}")
        return about["history"], _of("kept/", tensors) or None

    def _take(self, about: Mapping[str, Any], tensors: Tensors) -> None:
        weights, kept = _of("module/", tensors), _of("kept/", tensors)
        expected = {name: value.shape for name, value in self.module.state_dict().items()}
        if any({name: value.shape for name, value in part.items()} != expected for part in (weights, kept or weights)):
            raise ValueError("its weights are those of another module")
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in _of("optimiser/", tensors).items():
            row, key = name.split("/")
            state.setdefault(int(row), {})[key] = value
        setters = {"generator": self.generator.set_state, "torch": torch.set_rng_state}
        if self._on_gpu:
            setters["cuda"] = torch.cuda.set_rng_state
        numbers = {name: tensors[name] for name in setters}  # an error here changes nothing yet
        self.optimiser.load_state_dict({"state": state, "param_groups": about["groups"]})
        if self.scheduler:
            self.scheduler.load_state_dict(about["scheduler"])
        self.module.load_state_dict(weights)
        for name, set_state in setters.items():
            set_state(numbers[name])


def _of(prefix: str, tensors: Tensors) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
