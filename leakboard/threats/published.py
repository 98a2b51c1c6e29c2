"""Hold the publications of a fitted victim, and publish texts again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.claims import PrivacyClaim, ReleaseClaim
from leakboard.execution import devices
from leakboard.interfaces import Coverage, FittedVictim, Floats, Integers, PublishedWords, Texts, Victim
from leakboard.store import LATER
from leakboard.workspace import shared_array

MAX_KEPT = 8
"""Largest number of sets of texts whose inputs a `Publisher` keeps."""


@dataclass(frozen=True)
class Publications:
    """Everything that a fitted victim publishes about a corpus, and the task labels that it predicts for test."""

    documents: dict[str, Floats]
    """Vectors by split, float32 (n, d); empty if the victim publishes no documents."""
    predicted: Integers | None
    """Predicted task labels of test, int64 (n,); None if the corpus has no task, or no document is published."""
    words: PublishedWords | None
    claim: PrivacyClaim | None
    coverage: Coverage = field(default_factory=Coverage)
    """Coverage of the test texts."""
    probabilities: Floats | None = None
    """Probabilities of the task labels of test, float32 (n, labels), by a classifier trained on the published vectors
    of train; None as for ``predicted``."""
    ranks: Integers | None = None
    """For each search: the row of the text that half was taken from, and that text's rank, int64 (q, 2). None: the
    victim cannot encode new texts."""
    faults: tuple[str, ...] = ()
    """Metrics of `leakboard.pipeline.victim_metrics` that say which promise the victim breaks."""
    texts: Texts | None = field(default=None, metadata=LATER)
    """The test texts with their words replaced, or rewritten; None if the victim publishes no texts."""


@dataclass
class Publisher:
    """Publishes texts with fresh noise; the mechanism's inputs are computed once, unless they are random."""

    victim: Victim
    fitted: Callable[[], FittedVictim]
    identity: Callable[[], str] = str
    """Returns the identity of the fitted victim."""
    kept: dict[tuple[str, ...], NDArray[Any] | None] = field(default_factory=dict)
    """Inputs of the mechanism by distinct texts; None if they are random."""

    def __call__(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Publish texts, float32 (n, d)."""
        fitted = self.fitted()
        if (inputs := self.inputs(texts)) is None or fitted.mechanism is None:
            return fitted.publish_documents(texts, rng)
        return fitted.mechanism.release(inputs, rng).astype(np.float32)

    def inputs(self, texts: Texts) -> NDArray[Any] | None:
        """Return the mechanism's inputs, float (n, d); None if they are random, or if there is no mechanism."""
        fitted = self.fitted()
        if "releases" not in self.victim.publishes or fitted.mechanism is None:
            return None
        distinct, places = Texts(texts).coded()
        if (key := tuple(distinct)) not in self.kept:
            if len(self.kept) == MAX_KEPT:
                self.kept.pop(next(iter(self.kept)))
            self.kept[key] = self._inputs(fitted, key)
        if (inputs := self.kept[key]) is None:
            return None
        chosen: NDArray[Any] = inputs[places]
        return chosen

    def _inputs(self, fitted: FittedVictim, texts: tuple[str, ...]) -> NDArray[Any] | None:
        """Return the mechanism's inputs for distinct texts; None if they are random."""
        import torch

        def make() -> NDArray[Any]:
            if (vectors := fitted.inputs(Texts(texts))) is None:
                raise _AreRandom
            return vectors

        try:
            identity = {"victim": self.identity(), "threads": torch.get_num_threads(), "device": devices.kind()}
            shared = shared_array("inputs", identity, texts, make)
            return make() if shared is None else shared
        except _AreRandom:
            return None


def why_no_releases(fitted: FittedVictim, texts: Texts, seed: int) -> str:
    """Return why the documents of a victim are not releases of its mechanism, whose claim is audited; else empty.

    Each document must be the release of the text's input, bit for bit. The random inputs of a claim about words or
    documents cannot be checked so; its audit publishes texts.
    """
    mechanism, claim = fitted.mechanism, fitted.claim
    assert mechanism is not None
    assert isinstance(claim, ReleaseClaim)
    if (inputs := fitted.inputs(texts)) is None:
        if claim.unit in ("word", "document"):
            return ""
        return f"`inputs` returns None; a claim about one {claim.unit} needs the inputs of its mechanism"
    if not 0 <= inputs.min() <= inputs.max() <= 1:
        return f"its inputs are from {inputs.min():g} to {inputs.max():g}; allowed: 0 to 1"
    released = mechanism.release(inputs, np.random.default_rng(seed)).astype(np.float32)
    is_same = np.array_equal(released, fitted.publish_documents(texts, np.random.default_rng(seed)))
    return "" if is_same else "its documents are not the release of its inputs, bit for bit"


class _AreRandom(Exception):
    """The inputs of a mechanism are drawn anew each time."""
