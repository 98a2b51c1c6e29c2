"""The classifier portfolio behind ``attribute_inference`` and ``entity_presence``.

The attacker of DPNR (Lyu, He and Li 2020) and Coavoux et al. (2018) is one MLP on the published vectors. A defence must
not profit from one kind of classifier, nor from vectors that are merely badly scaled for it. So the ensemble has
seven kinds, on raw, standardised and per-vector normalised inputs, and weighs them on dev (`_ensemble`). Where the
victim adds noise, whose law is public, they are also given vectors that were denoised (`_inputs`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field

from leakboard.attacks._portfolio.ensemble import Ensemble, stacked
from leakboard.attacks._portfolio.inputs import Inputs, Scaling, plain_scalings, shrinkage
from leakboard.attacks._portfolio.members import Member, Scores
from leakboard.attacks._portfolio.trainer import Trainer
from leakboard.interfaces import Floats, Integers, Secret
from leakboard.logs import log_progress
from leakboard.suite.options import ALWAYS_NAMED, Count, shared
from leakboard.threats.secrets import KnownTexts, SecretGuesses, SecretsAttack, SecretsView

Portfolio = Literal["ensemble", "mlp", "logistic"]

DENOISED: tuple[Inputs, ...] = ("centred", "above minimum")
"""Inputs that remove a shift of the whole vector."""


@dataclass(frozen=True)
class FittedPortfolio:
    """A member, or all of them, with the offset that turns scores into guesses."""

    attacker: Member | Ensemble
    offset: float
    """Added to the score of an entity's presence."""
    secrets: tuple[Secret, ...]
    details: str
    on_dev: Scores
    """Its scores on dev, with the offset."""

    def __call__(self, vectors: Floats) -> SecretGuesses:
        """Guess the secrets of published vectors, float32 (n, d); several of a text, (n, m, d), are averaged first."""
        scores = self.attacker(vectors.mean(1) if vectors.ndim == 3 else vectors)
        shifted = {secret.name: _shift(scores[secret.name], self.offset) for secret in self.secrets}
        return SecretGuesses(shifted, self.details, self.on_dev)


def _shift(scores: Floats, offset: float) -> Floats:
    return scores + np.array([0.0] * (scores.shape[1] - 1) + [offset], np.float32)


@shared
class PortfolioAttack(SecretsAttack):
    """Which classifiers are tried, and the MLP's recipe: two layers, ReLU, one head a secret, stopped early on dev."""

    portfolio: Annotated[Portfolio, ALWAYS_NAMED] = "ensemble"
    """``ensemble``: MLP, logistic regression, discriminant analysis, linear SVM, neighbours, kernel and trees, stacked
    on dev; ``mlp``: the papers' alone; ``logistic``: logistic regression alone."""
    inputs: Inputs | None = None
    """What they are given; null: of an ensemble all that apply, the last three where the victim adds noise; of one
    classifier ``raw``."""
    queries: Count = 1
    """Publications of each of its own texts that the attacker learns from."""
    observations: Count = 1
    """Publications of the same test text that it sees, and averages."""
    hidden: Count = 512
    """ReLU units of the MLP."""
    epochs: Count = 60
    """Most passes over the attacker's texts."""
    patience: Count = 6
    """Stop after this many epochs without a better dev loss."""
    batch_size: Count = 256
    """Texts a step."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Adam's."""

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return one epoch of narrow networks."""
        return cls(hidden=8, epochs=1, batch_size=16)


def fit_portfolio(
    options: PortfolioAttack,
    view: SecretsView,
    offsets: Callable[[Scores, Mapping[str, Integers]], float],
    seed: int,
) -> FittedPortfolio:
    """Train one member on the attacker's own vectors, or all, which are stacked on dev.

    Args:
        options: which members, on which inputs.
        view: what the attacker knows.
        offsets: finds the offset of presence scores on dev.
        seed: of the members' random draws.

    Raises:
        RequestError: no member can be trained on these vectors; it says why.
    """
    train = _repeated(view, view.train, options.queries, options.observations)
    dev = _repeated(view, view.dev, 1, options.observations)
    trainer = Trainer(train, dev, view.secrets, options, seed)
    scalings = _scalings(options, view, train, trainer)
    attacker: Member | Ensemble
    if options.portfolio == "ensemble":
        attacker = stacked(trainer, scalings)
    else:
        members = trainer.members((options.portfolio, scaling) for scaling in scalings)
        trainer.require(members)
        (attacker,) = members
    offset = offsets(attacker.on_dev, dev.values)
    shifted = {secret: _shift(scores, offset) for secret, scores in attacker.on_dev.items()}
    details = "; ".join([attacker.name, *trainer.remarks])
    return FittedPortfolio(attacker, offset, view.secrets, details, shifted)


def _repeated(view: SecretsView, first: KnownTexts, queries: int, observations: int) -> KnownTexts:
    """Return known texts ``queries`` times over, each time with the mean of ``observations`` publications of its own.

    The publication that the attacker was given is the first.
    """
    if queries == observations == 1:
        return first
    parts = []
    for i in range(queries):
        log_progress(f"publications {i + 1} of {queries} of its own texts")
        total = first.vectors.astype(np.float64) if i == 0 else view.oracle.encode(first.texts)
        for _ in range(observations - 1):
            total = total + view.oracle.encode(first.texts)
        parts.append(replace(first, vectors=(total / observations).astype(np.float32)))
    return KnownTexts.joined(parts)


def _scalings(options: PortfolioAttack, view: SecretsView, train: KnownTexts, trainer: Trainer) -> list[Scaling]:
    """Return what the members are given: a victim that claims privacy adds noise, which is worth removing.

    Of vectors whose noise cannot be told, as constant ones, the trainer notes that they are not shrunken.
    """
    requested = options.inputs or (None if options.portfolio == "ensemble" else "raw")
    scalings = plain_scalings(train.vectors)
    if (requested is None and view.claim) or requested in DENOISED:
        scalings += [Scaling("centred"), Scaling("above minimum")]
    if (requested is None and view.claim) or requested == "shrunken":
        once = KnownTexts(view.train.texts, view.oracle.encode(view.train.texts), view.train.values)
        again = _repeated(view, once, 1, options.observations).vectors
        scalings += trainer.attempt("shrunken inputs", lambda: shrinkage(train.vectors[: len(again)], again))
    return [scaling for scaling in scalings if requested in (None, scaling.name)]
