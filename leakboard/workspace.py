"""What running work keeps outside itself: the state of what is unfinished, and arrays that other work needs too.

The stages of a run say where. Elsewhere (a notebook's own fit, an attacker's models) nobody keeps anything.
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
    """How arrays that are made of the run's texts are shared."""

    keep: Callable[[str, Mapping[str, Any], Make], NDArray[np.float32]]
    """Given a kind, an identity and what makes the array, returns the array that is kept."""
    texts: Callable[[], frozenset[str]]
    """Digests of the texts that are worth it: those of whole splits, which others take too."""


_unfinished: ContextVar[Path | None] = ContextVar("state of unfinished work", default=None)
_sharing: ContextVar[Sharing | None] = ContextVar("arrays that other work needs too", default=None)


@contextmanager
def in_force(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a variable a value for the work inside."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def resumable(folder: Path) -> AbstractContextManager[None]:
    """Let the work inside keep its state in ``folder``, which is made when it is first asked for."""
    return in_force(_unfinished, folder)


def resume_dir() -> Path | None:
    """Return where the running work may keep its state; None where nobody keeps it (tests, an attacker's own models).

    What is found there was left by the same work: same code, options, data and seed.
    """
    if folder := _unfinished.get():
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def sharing(how: Sharing) -> AbstractContextManager[None]:
    """Let the work inside share arrays."""
    return in_force(_sharing, how)


def shared_array(
    kind: str, identity: Mapping[str, Any], texts: Sequence[str], make: Make
) -> NDArray[np.float32] | None:
    """Return an array that ``make()`` computes of texts, memory-mapped, whoever computed it first.

    Args:
        kind: what it is, as ``states``.
        identity: whatever else it depends on, beside the texts: JSON values.
        texts: that it is made of; a text that stands there twice counts once.
        make: computes it, float32; always the same for the same identity and texts.

    Returns:
        None where nothing is shared, or not what is made of these texts: they are met once, such as texts with words
        hidden at random.
    """
    if (how := _sharing.get()) is None or (name := digest_of_texts(texts)) not in how.texts():
        return None
    return how.keep(kind, {**identity, "texts": name}, make)


def digest_of_texts(texts: Sequence[str]) -> str:
    """Return the SHA-256 of the distinct texts in order."""
    return hashlib.sha256(json.dumps(list(dict.fromkeys(texts))).encode()).hexdigest()
