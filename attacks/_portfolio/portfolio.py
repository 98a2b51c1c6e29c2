"""Train the attacker behind ``attribute_inference`` and ``entity_presence``.

The attacker of DPNR (Lyu, He and Li 2020) and Coavoux et al. (2018) is one MLP on the published vectors. A defence must
not profit from one kind of classifier, nor from vectors that are badly scaled for it. So the ensemble trains seven
kinds of classifier on raw, standardised and per-vector normalised inputs, and weighs them on dev (`ensemble`). Where
the victim claims privacy, the classifiers also learn from denoised vectors (`vector_inputs`): the law of the noise is
public. Several publications of a text become one vector by a trimmed mean (`best_trim`); Bayes' rule sees them all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from leakboard.attacks._portfolio.ensemble import Ensemble, train_ensemble
from leakboard.attacks._portfolio.made_texts import publish_made_texts
from leakboard.attacks._portfolio.members import Family, Member, Release, Scores, Task, shifted
from leakboard.attacks._portfolio.mixture import Mixture, fit_mixture
from leakboard.attacks._portfolio.portfolio_options import PAPERS, Portfolio, PortfolioAttack
from leakboard.attacks._portfolio.sources import FittedSources, fit_sources
from leakboard.attacks._portfolio.trainer import Trainer
from leakboard.attacks._portfolio.vector_inputs import (
    AnyScaling,
    Inputs,
    Quantiles,
    Saturated,
    Scaling,
    blocks,
    plain_scalings,
    shrinkage,
)
from leakboard.claims import ReleaseClaim
from leakboard.errors import NotApplicable
from leakboard.interfaces import Floats, Integers
from leakboard.logs import log_progress
from leakboard.threats.secrets import KnownTexts, SecretGuesses, SecretsView

MAX_DEV = 25_000
"""Largest number of texts of dev that choose options and weights: more texts would hardly change the choice."""
TRIMS = (0.0, 0.25, 0.5)
"""Shares of publications that a trimmed mean leaves out at each end: none is the mean, one half is the median."""
ALONE: Mapping[Portfolio, Family] = {"logistic": "logistic", "bayes": "posterior"}
"""Portfolios of one classifier that is no MLP."""
DEFAULT_INPUTS: Mapping[Portfolio, Inputs | None] = {"ensemble": None, "bayes": "raw"}
"""Scalings of portfolios that do not standardise; None: several."""
SHIFT_REMOVING: tuple[Inputs, ...] = ("centred", "above minimum")
"""Inputs that remove a shift of the whole vector."""


@dataclass(frozen=True)
class FittedPortfolio:
    """A trained classifier or ensemble, with the offset that turns scores into guesses."""

    attacker: Member | Ensemble | Mixture
    details: str
    on_dev: Scores
    """Scores of the dev texts, without the offset."""
    offset: float = 0.0
    """Added to the score of a secret's last value; the last value of an entity is "present"."""
    trim: float = 0.0
    """Share of a text's publications that their trimmed mean leaves out at each end."""

    def __call__(self, vectors: Floats) -> SecretGuesses:
        """Guess the secrets of published vectors, float32 (n, d), or of m publications of each text, (n, m, d)."""
        several = vectors if vectors.ndim == 3 else None
        scores = self.attacker(vectors if several is None else trimmed_mean(several, self.trim), several)
        return SecretGuesses(shifted(scores, self.offset), self.details, shifted(self.on_dev, self.offset))


def fit_portfolio(options: PortfolioAttack, view: SecretsView, seed: int) -> FittedPortfolio | FittedSources:
    """Train one classifier on the vectors of the known texts, or an ensemble that is stacked on dev.

    For ``sources`` nothing is trained: the known texts are the sources of published words.

    Args:
        options: chooses the classifiers and their inputs.
        view: the attacker's view.
        seed: seed of the classifiers' random draws.

    Raises:
        NotApplicable: ``bayes``, and the law of the noise is unknown; or ``saturated`` inputs beyond -1 or 1.
        RequestError: no classifier can be trained on these vectors; the message has the reasons.
    """
    if options.portfolio == "sources":
        return fit_sources(view, options.observations, seed)
    if options.portfolio in PAPERS:
        options = replace(options, inputs="raw", hidden=PAPERS[options.portfolio])
    uses_law = options.portfolio in ("ensemble", "bayes")
    may_know_noise = uses_law and options.inputs is None and isinstance(view.claim, ReleaseClaim)
    several = _all_publications(view, view.dev, options.observations) if options.observations > 1 else None
    trim = 0.0 if several is None or not may_know_noise else best_trim(view, several)
    train = _published(view, view.train, options.queries, options.observations, trim)
    dev = view.dev if several is None else replace(view.dev, vectors=trimmed_mean(several, trim))
    release = None
    if may_know_noise:
        train, dev = (_with_inputs(view, known) for known in (train, dev))
        release = _release(view, options.observations, trim) if train.inputs is not None else None
    chosen, others = _divided(len(dev.vectors), seed)
    chosen_several = None if several is None else several[chosen]
    made = None
    if options.made_texts:
        once = publish_made_texts(view, options.made_texts, seed)
        made = _published(view, once, 1, options.observations, trim)
        made = _with_inputs(view, made) if may_know_noise else made
    task = Task(
        train, dev.rows(chosen), view.secrets, options, seed, release, made_texts=made, dev_publications=chosen_several
    )
    trainer = Trainer(task)
    scalings = _scalings(options, view, trainer, trim)
    attacker: Member | Ensemble | Mixture
    if options.portfolio == "ensemble":
        attacker = ensemble = train_ensemble(trainer, scalings)
        if options.bayes == "mixed":
            (attacker,) = trainer.attempt("Bayes' rule", lambda: fit_mixture(ensemble, task)) or [ensemble]
    else:
        family = ALONE.get(options.portfolio, "mlp")
        members = trainer.members((family, scaling) for scaling in scalings)
        if not members and options.portfolio == "bayes":
            raise NotApplicable(f"portfolio: bayes: {'; '.join(trainer.remarks)}")
        trainer.require(members)
        (attacker,) = members
    on_dev = attacker.on_dev
    if len(others):
        of_others = attacker(dev.vectors[others], None if several is None else several[others])
        back = np.argsort(np.concatenate([chosen, others]))
        on_dev = {name: np.concatenate([scores, of_others[name]])[back] for name, scores in on_dev.items()}
    return FittedPortfolio(attacker, "; ".join([attacker.name, *trainer.remarks]), on_dev, trim=trim)


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


def trimmed_mean(publications: Floats, trim: float) -> Floats:
    """Return the trimmed mean of each coordinate over m publications of each text, float32 (n, d).

    Args:
        publications: float32 (n, m, d).
        trim: one of `TRIMS`.
    """
    import scipy

    result = np.empty((len(publications), publications.shape[2]), np.float32)
    for rows in blocks(len(publications)):
        part = publications[rows]
        result[rows] = np.median(part, 1) if trim == 0.5 else scipy.stats.trim_mean(part, trim, 1)
    return result


def best_trim(view: SecretsView, publications: Floats) -> float:
    """Return the one of `TRIMS` whose trimmed mean is nearest to the dev texts' vectors before the noise.

    For Laplace noise of scale b, the mean of m publications has the variance 2 b^2 / m, and the median only b^2 / m if
    m is large: as little as the best estimate. The mean is the best one for Gaussian noise. If the vectors before the
    noise are unknown, it is the mean.

    Args:
        view: the attacker's view.
        publications: of the dev texts, float32 (n, m, d).
    """
    if publications.shape[1] < 3 or (inputs := _with_inputs(view, view.dev).inputs) is None:
        return 0.0
    return min(TRIMS, key=lambda trim: float(((trimmed_mean(publications, trim) - inputs) ** 2).mean()))


def _release(view: SecretsView, observations: int, trim: float) -> Release:
    """Return the trimmed mean of releases of the victim's mechanism, as a function of its inputs."""
    mechanism = view.oracle.mechanism
    if observations == 1:
        return mechanism.release
    return lambda values, rng: trimmed_mean(
        np.stack([mechanism.release(values, rng) for _ in range(observations)], 1), trim
    )


def _all_publications(view: SecretsView, first: KnownTexts, observations: int) -> Floats:
    """Return the first publication of known texts and fresh ones, float32 (n, observations, d)."""
    result = np.empty((len(first.vectors), observations, first.vectors.shape[1]), np.float32)
    result[:, 0] = first.vectors
    for number in range(1, observations):
        result[:, number] = view.oracle.encode(first.texts)
    return result


def _published(view: SecretsView, first: KnownTexts, queries: int, observations: int, trim: float) -> KnownTexts:
    """Return the known texts ``queries`` times over, each time with the trimmed mean of fresh publications.

    The first publication is the one in ``first``; the oracle makes the others.
    """
    if queries == observations == 1:
        return first
    parts = []
    for i in range(queries):
        log_progress(f"publications {i + 1} of {queries} of its own texts")
        start = first if i == 0 else replace(first, vectors=view.oracle.encode(first.texts))
        parts.append(replace(first, vectors=trimmed_mean(_all_publications(view, start, observations), trim)))
    return KnownTexts.joined(parts)


def _scalings(options: PortfolioAttack, view: SecretsView, trainer: Trainer, trim: float) -> list[AnyScaling]:
    """Return the scalings to train on; if the victim claims privacy, the ensemble tries to remove noise.

    If signal and noise cannot be separated, as in constant vectors, the trainer notes why shrinkage is left out.
    """
    requested = options.inputs or DEFAULT_INPUTS.get(options.portfolio, "standardised")
    vectors = trainer.task.train.vectors
    if requested == "quantile":
        return [Quantiles.of(vectors)]
    if requested == "saturated":
        return [Saturated.of(vectors)]
    scalings = plain_scalings(vectors)
    denoise = requested is None and view.claim is not None
    if denoise or requested in SHIFT_REMOVING:
        scalings += [Scaling(name) for name in SHIFT_REMOVING]
    if denoise or requested == "shrunken":
        once = replace(view.train, vectors=view.oracle.encode(view.train.texts))
        again = _published(view, once, 1, options.observations, trim).vectors
        scalings += trainer.attempt("shrunken inputs", lambda: shrinkage(vectors[: len(again)], again))
    return [scaling for scaling in scalings if requested in (None, scaling.name)]
