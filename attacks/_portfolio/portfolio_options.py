"""Hold the options that `attribute_inference` and `entity_presence` share."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from leakboard.attacks._portfolio.vector_inputs import Inputs
from leakboard.errors import RequestError
from leakboard.suite.options import ALWAYS_NAMED, Count, shared
from leakboard.threats.secrets import SecretsAttack

Portfolio = Literal["ensemble", "mlp", "logistic", "bayes", "coavoux", "lyu", "sources"]
PAPERS = {"coavoux": 64, "lyu": 512}
"""The papers' attackers, each with the ReLU units of its networks."""


@shared
class PortfolioAttack(SecretsAttack):
    """The classifiers to train, and the MLP's recipe: two layers, ReLU, one head for each secret, dev ends training."""

    portfolio: Annotated[Portfolio, ALWAYS_NAMED] = "ensemble"
    """``ensemble``: MLP, logistic regression, discriminant analysis, linear SVM, neighbours, kernel and trees, stacked
    on dev; ``mlp``: one MLP alone; ``logistic``: logistic regression alone; ``bayes``: Bayes' rule alone, by the law of
    the victim's noise; ``coavoux``: the attacker of Coavoux et al. (2018), one MLP with 64 units for all secrets;
    ``lyu``: that of DPNR, an MLP with 512 units for each secret. These two read raw vectors, and call an entity present
    if its probability is above one half; ``sources``: Bayes' rule for published texts whose words were replaced, with
    the attacker's own texts as possible sources."""
    inputs: Inputs | None = None
    """Scaling of the vectors; null: ``standardised`` for ``mlp`` and ``logistic``; for an ensemble ``raw``,
    ``standardised`` and ``per vector``, and all if the victim claims privacy. ``raw`` suits a classifier only if the
    scale is near 1; ``quantile`` suits vectors whose coordinates are all near -1 or 1; ``saturated`` may suit them
    better if most have the signs of one vector, or the opposite ones."""
    queries: Count = 1
    """Number of publications of each known text that the attacker learns from."""
    observations: Count = 1
    """Number of publications of each test text that the attacker sees."""
    bayes: Literal["member", "mixed"] = "member"
    """How Bayes' rule, by the law of the victim's noise, takes part in the ensemble. ``member``: as the other
    classifiers; ``mixed``: its probabilities are mixed with those of the ensemble, text by text."""
    made_texts: Annotated[int, Field(ge=0)] = 0
    """Number of texts that the attacker makes from known ones and lets the victim publish. The ensemble has a network
    that learns from them, too."""
    hidden: Count = 512
    """Number of ReLU units of the MLP; those of the papers are fixed."""
    epochs: Count = 60
    """Largest number of epochs: passes over the attacker's texts, or over the next 65,536 of more texts."""
    patience: Count = 6
    """Stop after this many epochs without a better dev loss."""
    batch_size: Count = 256
    """Texts in each step."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Learning rate of Adam."""

    def __post_init__(self) -> None:
        """Refuse options that the portfolio would ignore.

        Raises:
            RequestError: ``made_texts`` or ``bayes`` without an ensemble, or ``inputs`` with ``portfolio: bayes``.
        """
        only: dict[str, tuple[object, object]] = {}
        if self.portfolio != "ensemble":
            only = {"made_texts": (self.made_texts, 0), "bayes": (self.bayes, "member")}
        if self.portfolio == "bayes":
            only["inputs"] = self.inputs, None
        for name, (value, allowed) in only.items():
            if value != allowed:
                shown = "null" if allowed is None else allowed
                raise RequestError(f"{name}: {value} is not allowed with portfolio: {self.portfolio}; allowed: {shown}")

    @property
    def reads_published_texts(self) -> bool:
        """Whether the attack sees the published words of the test texts, not their vectors."""
        return self.portfolio == "sources"

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an attack that trains narrow networks for one epoch."""
        return cls(hidden=8, epochs=1, batch_size=16)
