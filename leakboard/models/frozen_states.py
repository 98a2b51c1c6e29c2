"""Cache the hidden states that leave frozen layers, so that the same texts pass those layers once.

States of a whole split are shared by all processes and runs on one store (`workspace`). Other states stay in the memory
of this process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from leakboard.store import digest
from leakboard.workspace import shared_array

LIMIT = 3 * 2**30
"""Most memory that this process's cache takes (bytes). States that callers still hold are not counted."""

_cache: dict[str, torch.Tensor] = {}
"""States by the digest of their identity; the least recently used come first."""
_limit = LIMIT


def obtain(
    identity: Mapping[str, Any], texts: Sequence[str], size: int, make: Callable[[], torch.Tensor]
) -> torch.Tensor | None:
    """Return the cached states of texts, or compute them; None if they are larger than the cache.

    Args:
        identity: what the states depend on, as JSON values: the layers, the precision, the texts' tokens.
        texts: the texts that pass the layers.
        size: of the states (bytes).
        make: computes the states, in main memory.
    """
    if size > _limit:
        return None
    if (shared := shared_array("states", identity, texts, lambda: make().numpy())) is not None:
        return torch.from_numpy(shared)
    key = digest(identity)
    states = _cache.pop(key, None)
    if states is None:
        while _cache and size + sum(kept.nbytes for kept in _cache.values()) > _limit:
            del _cache[next(iter(_cache))]
        states = make()
    _cache[key] = states
    return states


def clear(limit: int = LIMIT) -> None:
    """Empty the cache, and set its size to ``limit`` bytes."""
    global _limit
    _cache.clear()
    _limit = limit
