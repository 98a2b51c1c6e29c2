"""Hidden states that left frozen layers, kept by the process for whoever takes the same texts through the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import cachetools
import torch

LIMIT = 3 * 2**30
"""Most that is kept (bytes): those used longest ago go first. What callers still hold is not counted."""

_kept: cachetools.LRUCache[Hashable, torch.Tensor] = cachetools.LRUCache(LIMIT, lambda states: states.nbytes)


def obtain(key: Hashable, size: int, make: Callable[[], torch.Tensor]) -> torch.Tensor | None:
    """Return the states of a key, made by ``make()`` if they are not there; None where ``size`` (bytes) is too much."""
    if size > _kept.maxsize:
        return None
    if (states := _kept.get(key)) is None:
        while _kept and _kept.currsize + size > _kept.maxsize:
            _kept.popitem()
        states = _kept[key] = make()
    return states


def clear(limit: int = LIMIT) -> None:
    """Forget everything, and keep at most ``limit`` bytes from now on."""
    global _kept
    _kept = cachetools.LRUCache(limit, lambda states: states.nbytes)
