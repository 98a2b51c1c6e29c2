"""Train Word2Vec with differential privacy (DP-Embedding; Vu, Tran and Jiang 2019, Algorithms 1-a and 1-b).

The model is word2vec's skip-gram with negative sampling. Its training limits how well a reader of the published word
vectors can tell whether one unit was in the training data:

- The *unit* of protection is a (centre, context) *pair*, as in the paper; a *document*; or a *user* with all texts. A
  user of 1,000 words is in thousands of pairs, so an epsilon for pairs says next to nothing about people.
- Each step takes a random *batch*: every unit independently, with the same probability (Poisson sampling). The attacker
  does not know which units were sampled. This is part of the protection, and the accountant relies on it.
  ``sampling: fixed`` takes batches in the order of the text, as the paper's code does. Then the claim is ``unproven``.
- If a unit's gradient is longer than C (*clipping norm*), it is scaled down to this length. So no unit moves the sum by
  more than C. The sum gets Gaussian noise of s C on every coordinate of both tables (s: *noise multiplier*).
- The *accountant* adds up the privacy loss of the steps: (epsilon, delta). Epsilon 1 at delta 1e-5 means: any result is
  at most e (2.7) times as likely with the unit as without it, except with probability 1e-5. The claim is the epsilon of
  Renyi differential privacy. The proved epsilon is the smaller one of this and the epsilon of privacy loss
  distributions.
- The *vocabulary*, its order and the weights of the negatives come from the texts too. ``noisy`` counts words with
  noise, and this costs epsilon. A path names a public list, at no cost. ``exact`` counts without noise; then nothing is
  proved.
- ``budgets`` gives every user a personal epsilon. Users leave when their epsilon is spent (Algorithm 1-b, by an
  individual Renyi filter).

The guarantee rests on these theorems:

- cost of the steps, with Poisson samples or with batches in order: `leakboard.privacy.accounting.training_budget`
- noise that is drawn late has the same distribution: `leakboard.models.skip_gram.noisy_tables`
- cost of a vocabulary that is counted with noise: `leakboard.models.skip_gram.vocabulary`
- personal budgets: `leakboard.models.skip_gram.sampling`

Two neighbouring sets of training data differ in one unit: one has its contribution, the other does not. The number of
units (pairs with unknown words included), the options and the users' budgets are public. The claim is about the word
table alone. It does not cover the vectors of texts. It does not cover the task's classifier either: the classifier
learns from train without noise, and is not published.

The noise comes from the run's seed, so an attacker who knows the seed can subtract the noise. The derived seed has only
31 bits, so an attacker can try all seeds. This is good enough for measuring, but not for publishing a table of private
texts. Never publish two tables with the same seed and options.

``noise_multiplier: 0`` gives the paper's None-DP: the same code with clipping, but without noise or claim. The broken
control ``dp_word2vec_as_published`` has the flaws of the paper's released code and of its accounting of budgets.

The time of a step depends on its batch, not on the size of the vocabulary. The input vectors are published; the vector
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
    """Unit of protection: a pair of words, a document, or a user with all texts."""
    epsilon: Positive | None = None
    """Target that sets the noise; null: 1. With a noise_multiplier: the epsilon that ends training; null: no limit."""
    noise_multiplier: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """s: standard deviation of the noise / clipping norm; 0: no noise; null: the noise that epsilon needs."""
    sampling: Literal["poisson", "fixed"] = "poisson"
    """poisson: random batches, as the accountant assumes; fixed: batches in the order of the data (then unproven)."""
    budgets: Epsilons | str | None = None
    """Personal epsilons: a list from which each user draws one at random, or the name of a column."""

    plan_type: ClassVar[type[Plan]] = Plan

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return a recipe with few steps."""
        return cls(noise_multiplier=1.0, **EXAMPLE)

    def __post_init__(self) -> None:
        """Refuse options that do not go together.

        Raises:
            RequestError: two options do not go together; the message names them.
        """
        if self.noise_multiplier == 0 and (self.epsilon or self.budgets):
            raise RequestError("noise_multiplier: 0 reaches no epsilon; leave out epsilon and budgets")
        if self.budgets is not None and (self.unit != "user" or not self.noise_multiplier):
            raise RequestError("budgets belong to users: set unit: user, and a noise_multiplier for all")
        if self.budgets is not None and self.sampling == "fixed":
            raise RequestError("budgets: the filter of budgets needs Poisson samples; leave out sampling: fixed")
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
