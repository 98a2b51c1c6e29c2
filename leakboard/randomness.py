"""Random streams derived from names, not from order: adding a victim changes nobody else's numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def derived_seed(*names: object) -> int:
    """Return a seed in [0, 2**31) from names such as ``(seed, dataset, victim, "fit")``; stable across processes."""
    text = "\x1f".join(map(str, names)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "big") >> 1


def stream(*names: object) -> np.random.Generator:
    """Return an independent generator for these names."""
    import numpy as np

    return np.random.default_rng(derived_seed(*names))


@dataclass(frozen=True)
class Streams:
    """What the random streams of a cell are named after."""

    seed: int
    dataset: str
    victim: str
    attack: str = ""
    label: str = ""
    """The cell with all options: names the draws of the scoring, so that no two cells share them."""

    def stream(self, purpose: str) -> np.random.Generator:
        """Return the generator for a purpose."""
        return stream(self.seed, self.dataset, self.victim, self.attack, purpose)

    def seed_for(self, purpose: str) -> int:
        """Return a seed for a purpose."""
        return derived_seed(self.seed, self.dataset, self.victim, self.attack, purpose)


def seed_libraries(seed: int) -> None:
    """Seed the global generators, for libraries that take none. Only the runner calls this."""
    import random

    import numpy as np
    import torch

    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def cards_in_use() -> list[int]:
    """Return the CUDA device whose random state there is to keep; none where CUDA was not initialised by now."""
    import torch

    return [torch.cuda.current_device()] if torch.cuda.is_initialized() else []


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Give torch's global generator a seed for a while, and its state back: layers and dropout take no generator."""
    import torch

    with torch.random.fork_rng(devices=cards_in_use()):
        torch.manual_seed(seed)
        yield
