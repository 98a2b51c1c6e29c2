"""Hidden states that left frozen layers, kept for whoever takes the same texts through the same layers.

Those of a whole split are shared by the processes and runs on one store (`workspace`); others are kept by the process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cachetools
import torch

from leakboard.store import digest
from leakboard.workspace import shared_array

LIMIT = 3 * 2**30
"""Most that is kept (bytes): those used longest ago go first. What callers still hold is not counted."""

_kept: cachetools.LRUCache[str, torch.Tensor] = cachetools.LRUCache(LIMIT, lambda states: states.nbytes)


def obtain(
    identity: Mapping[str, Any], texts: Sequence[str], size: int, make: Callable[[], torch.Tensor]
) -> torch.Tensor | None:
    """Return the states of texts, made by ``make()`` if they are not there; None where ``size`` (bytes) is too much.

    Args:
        identity: what they depend on, as JSON values: the layers, the precision, the texts' tokens.
        texts: that went through the layers.
        size: of the states (bytes).
        make: computes them on the processor.
    """
    if size > _kept.maxsize:
        return None
    if (shared := shared_array("states", identity, texts, lambda: make().numpy())) is not None:
        return torch.from_numpy(shared)
    if (states := _kept.get(key := digest(identity))) is None:
        while _kept and _kept.currsize + size > _kept.maxsize:
            _kept.popitem()
        states = _kept[key] = make()
    return states


def clear(limit: int = LIMIT) -> None:
    """Forget everything, and keep at most ``limit`` bytes from now on."""
    global _kept
    _kept = cachetools.LRUCache(limit, lambda states: states.nbytes)
