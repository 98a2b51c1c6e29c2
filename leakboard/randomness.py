"""Derive random streams from names, not from order: adding a victim does not change the others' numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def derived_seed(*names: object) -> int:
    """Return a seed in [0, 2**31) for names such as ``(seed, dataset, victim, "fit")``; the same in every process."""
    text = "\x1f".join(map(str, names)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "big") >> 1


def stream(*names: object) -> np.random.Generator:
    """Return an independent generator for these names."""
    import numpy as np

    return np.random.default_rng(derived_seed(*names))


@dataclass(frozen=True)
class Streams:
    """The names from which the random streams of a cell are derived."""

    seed: int
    dataset: str
    victim: str
    attack: str = ""
    label: str = ""
    """The cell with all options: it names the draws of the scoring, so that no two cells share them."""
    salt: str = ""
    """Changes what plugins must not foresee. It is empty in ordinary runs, so that numbers reproduce."""

    def stream(self, purpose: str) -> np.random.Generator:
        """Return the generator for draws that plugins must not foresee: a publication's noise, the order of test rows.

        All its names are known to plugins, so a plugin could make it too. With a salt it cannot.
        """
        salt = [self.salt] if self.salt else []
        return stream(self.seed, self.dataset, self.victim, self.attack, purpose, *salt)

    def seed_for(self, purpose: str) -> int:
        """Return a seed for a purpose, to be given to a plugin."""
        return derived_seed(self.seed, self.dataset, self.victim, self.attack, purpose)


def seed_libraries(seed: int) -> None:
    """Seed the global generators, for libraries that accept no other: before each fit, publication and attack."""
    import random

    import numpy as np
    import torch

    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)  # `torch.manual_seed` is slow: it formats the stack
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


def cards_in_use() -> list[int]:
    """Return the CUDA device with a random state to keep; empty: CUDA is not initialised yet."""
    import torch

    return [torch.cuda.current_device()] if torch.cuda.is_initialized() else []


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generator for a block, then restore its state: layers and dropout accept no generator."""
    import torch

    with torch.random.fork_rng(devices=cards_in_use()):
        torch.manual_seed(seed)
        yield
