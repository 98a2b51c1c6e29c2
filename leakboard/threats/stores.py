"""Grant what the thief of a vector store has: stored vectors of unknown texts, and as many known pairs as it asks for.

The thief knows the public encoder and the rule of the protection. It does not know the key or the noise. A thief with
an encoder of its own (``own_encoder``) knows no more of the victim's encoder than the known pairs show.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leakboard.column import Column
from leakboard.errors import NotApplicable
from leakboard.interfaces import Attack, Corpus, Floats, Texts
from leakboard.metrics.measures import Metric
from leakboard.models.public_encoders import PublicEncoder
from leakboard.threats.oracle import Oracle
from leakboard.threats.threat import VictimSide

TABLES = ("leaderboard.csv", "best_known.csv", "page: attacks")
LEDGER = (
    Column(
        "stolen_vectors",
        "Number of stored vectors that the attacker has, those of known pairs and those to be linked included.",
        TABLES,
        title="stolen vectors",
        kind="whole",
        group="Attacker",
        metric="stolen_vectors",
        since="0.2.0",
    ),
    Column(
        "candidate_texts",
        "Number of texts among which the attacker looks for stored ones.",
        TABLES,
        title="candidates",
        kind="whole",
        group="Attacker",
        metric="candidate_texts",
        since="0.2.0",
    ),
)
"""Columns of what the thief of a store has, next to its own texts, known pairs and queries."""


@dataclass(frozen=True)
class KnownPairs:
    """Texts and their stored vectors."""

    texts: Texts
    vectors: Floats
    """float32 (p, d)."""


@dataclass(frozen=True)
class StolenStore:
    """The stored vectors of the victim's train texts."""

    pairs: KnownPairs
    """Vectors whose texts the attacker knows."""
    vectors: Floats
    """The other vectors, in random order, float32 (n, d)."""

    def ledger(self, attacked: int = 0) -> list[Metric]:
        """Return the number of stolen vectors, those that the attacker guesses about (``attacked``) included."""
        return [Metric("stolen_vectors", float(len(self.pairs.texts) + len(self.vectors) + attacked))]


class StoreThief(Attack):
    """An attack of a thief of a vector store."""

    steals_store: ClassVar[bool] = True
    reads_published_texts: ClassVar[bool] = False
    """Whether the thief sees published words instead of vectors: a store has vectors."""
    pairs: int = 0
    """Number of known pairs of a text and its stored vector."""
    own_encoder: PublicEncoder | None = None
    """Encoder of a thief that does not know the victim's; None: it knows it."""


def oracle_of(side: VictimSide, attack: Any, auxiliary: Corpus) -> Oracle:
    """Return the oracle of an attack; if the attack is a thief's, with the thief's own encoder.

    Args:
        side: the victim's side.
        attack: a `StoreThief`, or any other attack.
        auxiliary: the attacker's corpus.
    """
    return Oracle(side, auxiliary, attack.own_encoder if attack.steals_store else None)


def stolen_store(side: VictimSide, thief: Any, hidden: Collection[str] = ()) -> StolenStore:
    """Return the victim's stored vectors.

    Args:
        side: the victim's side.
        thief: the `StoreThief`, which asks for ``pairs``.
        hidden: texts that may not be known pairs.

    Raises:
        NotApplicable: the store has fewer texts than the thief asks for.
    """
    texts, vectors = side.corpus.texts("train"), side.published.documents["train"]
    order = side.streams.stream("stolen store").permutation(len(vectors))
    secret = set(hidden)
    known = [row for row in order if texts[row] not in secret][: thief.pairs]
    if len(known) < thief.pairs:
        raise NotApplicable(f"pairs: {thief.pairs} asked for, but only {len(known)} stored texts may be known")
    unknown = order[~np.isin(order, known)]
    return StolenStore(KnownPairs(Texts([texts[row] for row in known]), vectors[known]), vectors[unknown])
