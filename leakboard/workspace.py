"""Give running work access to its kept state, and to arrays that other work shares.

The stages of a run set both. Outside a run, for instance in a notebook, nothing is kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

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
    texts: Callable[[], Mapping[str, Sequence[str]]]
    """Returns the distinct texts of whole splits, by digest. Only these are shared: other work needs them, too."""
    by_text: bool = True
    """Whether `shared_rows` looks for rows of single texts."""


Work = Literal["fit", "attack"]
_unfinished: Mapping[Work, ContextVar[Path | None]] = {
    "fit": ContextVar("state of an unfinished fit", default=None),
    "attack": ContextVar("state of an unfinished attack", default=None),
}
_sharing: ContextVar[Sharing | None] = ContextVar("arrays that other work needs too", default=None)


@contextmanager
def in_force(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a variable to a value for a block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def resumable(folder: Path, work: Work = "fit") -> AbstractContextManager[None]:
    """Let the work in a block keep its state in ``folder``, which is made at the first call of `resume_dir`."""
    return in_force(_unfinished[work], folder)


def resume_dir(work: Work = "fit") -> Path | None:
    """Return the folder for the state of the running work; None: no state is kept.

    None is kept in tests, and of fits of an attacker's own models. Files in the folder were left by the same work: same
    code, options, data and seed.
    """
    if folder := _unfinished[work].get():
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def sharing(how: Sharing) -> AbstractContextManager[None]:
    """Let the work in a block share arrays."""
    return in_force(_sharing, how)


def without_shared_rows() -> AbstractContextManager[None]:
    """Let the work in a block compute the rows of `shared_rows` anew."""
    how = _sharing.get()
    return in_force(_sharing, how and replace(how, by_text=False))


def also_shared(texts: Sequence[str]) -> AbstractContextManager[None]:
    """Let the work in a block share the arrays of these texts, too, since other work needs them."""
    if (how := _sharing.get()) is None:
        return nullcontext()
    more = {digest_of_texts(texts): tuple(dict.fromkeys(texts))}
    return in_force(_sharing, replace(how, texts=lambda: {**how.texts(), **more}))


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


def shared_rows(
    kind: str, identity: Mapping[str, Any], texts: Sequence[str], make: Callable[[Sequence[str]], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Return an array with a row for each text; rows of shared texts are computed only if no other work did so.

    Args:
        kind: of the array, as ``documents``.
        identity: all that a row depends on, except its text: JSON values.
        texts: distinct texts, in any order.
        make: computes the rows of texts, float32 (n, ...); a row depends on its own text alone, up to rounding.
    """
    import numpy as np

    if not texts:
        return make(texts)
    rows: dict[str, NDArray[np.float32]] = {}
    how = _sharing.get()
    if how is not None and how.by_text:
        for name, part in how.texts().items():
            if not (wanted := set(texts) - rows.keys()).isdisjoint(part):
                kept = how.keep(kind, {**identity, "texts": name}, partial(make, part))
                rows |= {text: row for text, row in zip(part, kept, strict=True) if text in wanted}
    if left := [text for text in texts if text not in rows]:
        rows |= dict(zip(left, make(left), strict=True))
    return np.stack([rows[text] for text in texts])


def digest_of_texts(texts: Sequence[str]) -> str:
    """Return the SHA-256 of the distinct texts in order."""
    return hashlib.sha256(json.dumps(list(dict.fromkeys(texts))).encode()).hexdigest()
