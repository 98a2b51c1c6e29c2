"""Train the attacker behind ``attribute_inference`` and ``entity_presence``.

The attacker of DPNR (Lyu, He and Li 2020) and Coavoux et al. (2018) is one MLP on the published vectors. A defence must
not profit from one kind of classifier, nor from vectors that are badly scaled for it. So the ensemble trains seven
kinds of classifier on raw, standardised and per-vector normalised inputs, and weighs them on dev (`ensemble`). Where
the victim claims privacy, the classifiers also learn from denoised vectors (`vector_inputs`): the law of the noise is
public.
"""

from dataclasses import dataclass, replace

import numpy as np

from leakboard.attacks._portfolio.ensemble import Ensemble, train_ensemble
from leakboard.attacks._portfolio.members import Family, Member, Release, Scores, Task
from leakboard.attacks._portfolio.portfolio_options import PAPERS, PortfolioAttack
from leakboard.attacks._portfolio.trainer import Trainer
from leakboard.attacks._portfolio.vector_inputs import Inputs, Scaling, plain_scalings, shrinkage
from leakboard.claims import ReleaseClaim
from leakboard.interfaces import Floats, Integers
from leakboard.logs import log_progress
from leakboard.threats.secrets import KnownTexts, SecretGuesses, SecretsView

MAX_DEV = 25_000
"""Largest number of texts of dev that choose options and weights: more texts would hardly change the choice."""
SHIFT_REMOVING: tuple[Inputs, ...] = ("centred", "above minimum")
"""Inputs that remove a shift of the whole vector."""


@dataclass(frozen=True)
class FittedPortfolio:
    """A trained classifier or ensemble, with the offset that turns scores into guesses."""

    attacker: Member | Ensemble
    details: str
    on_dev: Scores
    """Scores of the dev texts, without the offset."""
    offset: float = 0.0
    """Added to the score of a secret's last value; the last value of an entity is "present"."""

    def __call__(self, vectors: Floats) -> SecretGuesses:
        """Guess the secrets of published vectors, float32 (n, d), or of m publications of each text, (n, m, d).

        Several publications of a text are averaged first.
        """
        scores = self.attacker(vectors.mean(1) if vectors.ndim == 3 else vectors)
        return SecretGuesses(self._shifted(scores), self.details, self._shifted(self.on_dev))

    def _shifted(self, scores: Scores) -> Scores:
        return {
            name: values + np.array([0.0] * (values.shape[1] - 1) + [self.offset], np.float32)
            for name, values in scores.items()
        }


def fit_portfolio(options: PortfolioAttack, view: SecretsView, seed: int) -> FittedPortfolio:
    """Train one classifier on the vectors of the known texts, or an ensemble that is stacked on dev.

    Args:
        options: chooses the classifiers and their inputs.
        view: the attacker's view.
        seed: seed of the classifiers' random draws.

    Raises:
        RequestError: no classifier can be trained on these vectors; the message has the reasons.
    """
    if options.portfolio in PAPERS:
        options = replace(options, inputs="raw", hidden=PAPERS[options.portfolio])
    train = _averaged(view, view.train, options.queries, options.observations)
    dev = _averaged(view, view.dev, 1, options.observations)
    release = None
    if options.portfolio == "ensemble" and options.inputs is None and isinstance(view.claim, ReleaseClaim):
        train, dev = (_with_inputs(view, known) for known in (train, dev))
        release = _release(view, options.observations) if train.inputs is not None else None
    chosen, others = _divided(len(dev.vectors), seed)
    trainer = Trainer(Task(train, dev.rows(chosen), view.secrets, options, seed, release))
    scalings = _scalings(options, view, trainer)
    attacker: Member | Ensemble
    if options.portfolio == "ensemble":
        attacker = train_ensemble(trainer, scalings)
    else:
        family: Family = "logistic" if options.portfolio == "logistic" else "mlp"
        members = trainer.members((family, scaling) for scaling in scalings)
        trainer.require(members)
        (attacker,) = members
    on_dev = attacker.on_dev
    if len(others):
        back, of_others = np.argsort(np.concatenate([chosen, others])), attacker(dev.vectors[others])
        on_dev = {name: np.concatenate([scores, of_others[name]])[back] for name, scores in on_dev.items()}
    return FittedPortfolio(attacker, "; ".join([attacker.name, *trainer.remarks]), on_dev)


def _divided(dev: int, seed: int) -> tuple[Integers, Integers]:
    """Return the rows of dev that choose options and weights, at most `MAX_DEV` at random, and the other rows."""
    order = np.random.default_rng(seed).permutation(dev) if dev > MAX_DEV else np.arange(dev)
    return np.sort(order[:MAX_DEV]), np.sort(order[MAX_DEV:])


def _with_inputs(view: SecretsView, known: KnownTexts) -> KnownTexts:
    """Return the known texts with the inputs of the victim's mechanism, if these are vectors of the same length."""
    inputs = view.oracle.inputs(known.texts)
    if inputs is None or inputs.shape != known.vectors.shape:
        return known
    return replace(known, inputs=inputs.astype(np.float32))


def _release(view: SecretsView, observations: int) -> Release:
    """Return the mean of ``observations`` releases of the victim's mechanism, as a function of its inputs."""
    mechanism = view.oracle.mechanism
    return lambda values, rng: sum(mechanism.release(values, rng) for _ in range(observations)) / observations


def _averaged(view: SecretsView, first: KnownTexts, queries: int, observations: int) -> KnownTexts:
    """Return the known texts ``queries`` times over, each time with the mean of ``observations`` fresh publications.

    The first publication is the one in ``first``; the oracle makes the others.
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


def _scalings(options: PortfolioAttack, view: SecretsView, trainer: Trainer) -> list[Scaling]:
    """Return the scalings to train on; if the victim claims privacy, the ensemble tries to remove noise.

    If signal and noise cannot be separated, as in constant vectors, the trainer notes why shrinkage is left out.
    """
    requested = options.inputs or (None if options.portfolio == "ensemble" else "standardised")
    vectors = trainer.task.train.vectors
    scalings = plain_scalings(vectors)
    denoise = requested is None and view.claim is not None
    if denoise or requested in SHIFT_REMOVING:
        scalings += [Scaling(name) for name in SHIFT_REMOVING]
    if denoise or requested == "shrunken":
        once = replace(view.train, vectors=view.oracle.encode(view.train.texts))
        again = _averaged(view, once, 1, options.observations).vectors
        scalings += trainer.attempt("shrunken inputs", lambda: shrinkage(vectors[: len(again)], again))
    return [scaling for scaling in scalings if requested in (None, scaling.name)]
