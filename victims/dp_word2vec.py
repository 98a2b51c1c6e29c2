"""Train Word2Vec with differential privacy (DP-Embedding; Vu, Tran and Jiang 2019, Algorithms 1-a and 1-b).

The model is word2vec's skip-gram with negative sampling. Its training limits how well a reader of the published word
vectors can tell whether one unit was in the training data:

- A *unit* is protected as one: a (centre, context) *pair*, as in the paper; a *document*; or a *user* with all texts.
  A user of 1,000 words is in thousands of pairs, so an epsilon for pairs says next to nothing about people.
- Each step takes a random *batch*: every unit independently, with the same probability (Poisson sampling). The attacker
  does not know which units were sampled; that is part of the protection, and the accountant counts on it.
  ``sampling: fixed`` takes batches in the order of the text, as the paper's code does. Then the claim is ``unproven``.
- Each unit's gradient is scaled down to length C (*clipping norm*) if it is longer, so no unit moves the sum by more.
  The sum gets Gaussian noise of s C on every coordinate of both tables (s: *noise multiplier*).
- The *accountant* adds up the privacy loss of the steps: (epsilon, delta). Epsilon 1 at delta 1e-5 means: any result is
  at most e (2.7) times as likely with the unit as without it, except with probability 1e-5. The claim is the epsilon of
  Renyi differential privacy. Proved is the smaller of this and the epsilon of privacy loss distributions.
- The *vocabulary*, its order and the weights of the negatives come from the texts too. ``noisy`` counts with noise and
  pays for it. A path names a public list, which is free. ``exact`` counts without noise, and nothing is proved.
- ``budgets`` gives every user a personal epsilon; users leave when it is spent (Algorithm 1-b, by an individual Renyi
  filter).

The guarantee rests on these theorems:

- cost of the steps, by Poisson samples or by batches in order: `leakboard.privacy.accounting.training_budget`
- noise that is drawn late has the same distribution: `leakboard.models.skip_gram.noisy_tables`
- cost of a vocabulary that is counted with noise: `leakboard.models.skip_gram.vocabulary`
- personal budgets: `leakboard.models.skip_gram.sampling`

Neighbours differ in one unit's contribution, which is there or not. Public are the number of units (pairs with unknown
words included), the options, and the users' budgets. The claim is about the word table alone. It does not cover the
vectors of texts, nor the task's classifier, which learns from train without noise and is not published.

The noise comes from the run's seed: an attacker who knows the seed can subtract it. The derived seed has 31 bits, which
can be tried one by one. That is fit for measuring, not for publishing a table of private texts. Two tables with the
same seed and options must not both be published.

With ``noise_multiplier: 0`` it is the paper's None-DP: the same code, clipped, without noise or claim. The broken
control ``dp_word2vec_as_published`` does what the paper's released code and its accounting of budgets do.

The cost of a step depends on its batch, not on the size of the vocabulary. Published are the input vectors; the vector
of a text is the mean of its words' vectors.
"""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from leakboard.claims import TrainingUnit
from leakboard.errors import RequestError
from leakboard.privacy.mechanisms.textbook import Positive
from leakboard.suite.options import field_names, victim
from leakboard.victims._private_word2vec.private_recipe import EXAMPLE, MIN_NOISE_MULTIPLIER, Epsilons, PrivateSkipGram
from leakboard.victims._private_word2vec.private_training import Plan


@victim(revision=1)
class DPWord2Vec(PrivateSkipGram):
    unit: TrainingUnit = "pair"
    """What is protected as one: a pair of words, a document, or a user with all texts."""
    epsilon: Positive | None = None
    """Target: sets the noise; beside a noise_multiplier, ends training when spent. null: 1; beside one, no limit."""
    noise_multiplier: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """s, the noise's standard deviation over the clipping norm; 0: no noise; null: as much as epsilon needs."""
    sampling: Literal["poisson", "fixed"] = "poisson"
    """poisson: random batches, as the accountant assumes; fixed: batches in the order of the data (then unproven)."""
    budgets: Epsilons | str | None = None
    """Personal epsilons: each user draws one of these, all equally likely, or a column has them."""

    plan_type: ClassVar[type[Plan]] = Plan

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return a training of few steps with little noise."""
        return cls(noise_multiplier=1.0, **EXAMPLE)

    def __post_init__(self) -> None:
        """Refuse options that do not go together.

        Raises:
            RequestError: names the first such option.
        """
        if self.noise_multiplier == 0 and (self.epsilon or self.budgets):
            raise RequestError("noise_multiplier: 0 reaches no epsilon; leave out epsilon and budgets")
        if self.budgets is not None and (self.unit != "user" or not self.noise_multiplier):
            raise RequestError("budgets belong to users: set unit: user, and a noise_multiplier for all")
        if self.budgets is not None and self.sampling == "fixed":
            raise RequestError("budgets: a filter counts on Poisson samples; leave out sampling: fixed")
        if self.noise_multiplier and self.noise_multiplier < MIN_NOISE_MULTIPLIER:
            raise RequestError(
                f"noise_multiplier: {self.noise_multiplier:g} is not allowed: 0, or from {MIN_NOISE_MULTIPLIER:g}"
            )
        super().__post_init__()

    def non_private(self) -> "DPWord2Vec":
        """Return the recipe without its protection; the attacker trains it on its own texts."""
        return non_private_recipe(self)


def non_private_recipe(options: PrivateSkipGram) -> DPWord2Vec:
    """Return the same model and training without noise, claim and protection of the vocabulary."""
    same = {name: getattr(options, name) for name in field_names(PrivateSkipGram)}
    same["vocabulary"] = "exact" if options.vocabulary == "noisy" else options.vocabulary
    return DPWord2Vec(unit=options.unit, noise_multiplier=0.0, **same)
