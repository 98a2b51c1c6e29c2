"""Give running work access to its kept state, and to arrays that other work shares.

The stages of a run set both. Outside a run, for instance in a notebook, nothing is kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Make = Callable[[], NDArray[np.float32]]

T = TypeVar("T")


@dataclass(frozen=True)
class Sharing:
    """How arrays that are computed from the run's texts are shared."""

    keep: Callable[[str, Mapping[str, Any], Make], NDArray[np.float32]]
    """Returns the kept array, given its kind, its identity and the function that computes it."""
    texts: Callable[[], frozenset[str]]
    """Returns the digests of the texts of whole splits: only their arrays are shared, since other work needs them."""


_unfinished: ContextVar[Path | None] = ContextVar("state of unfinished work", default=None)
_sharing: ContextVar[Sharing | None] = ContextVar("arrays that other work needs too", default=None)


@contextmanager
def in_force(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a variable to a value for a block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def resumable(folder: Path) -> AbstractContextManager[None]:
    """Let the work in a block keep its state in ``folder``, which is made at the first call of `resume_dir`."""
    return in_force(_unfinished, folder)


def resume_dir() -> Path | None:
    """Return the folder for the state of the running work; None: no state is kept (tests, an attacker's own models).

    Files in it were left by the same work: same code, options, data and seed.
    """
    if folder := _unfinished.get():
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def sharing(how: Sharing) -> AbstractContextManager[None]:
    """Let the work in a block share arrays."""
    return in_force(_sharing, how)


def shared_array(
    kind: str, identity: Mapping[str, Any], texts: Sequence[str], make: Make
) -> NDArray[np.float32] | None:
    """Return an array that is computed from texts, memory-mapped; it is computed only if no other work did so.

    Args:
        kind: of the array, as ``states``.
        identity: all that it depends on, except the texts: JSON values.
        texts: that it is computed from; a repeated text counts once.
        make: computes the array, float32; the same for the same identity and texts.

    Returns:
        None if nothing is shared, or no array of these texts: texts with words hidden at random occur only once.
    """
    if (how := _sharing.get()) is None or (name := digest_of_texts(texts)) not in how.texts():
        return None
    return how.keep(kind, {**identity, "texts": name}, make)


def digest_of_texts(texts: Sequence[str]) -> str:
    """Return the SHA-256 of the distinct texts in order."""
    return hashlib.sha256(json.dumps(list(dict.fromkeys(texts))).encode()).hexdigest()
