"""Word2Vec trained with differential privacy (DP-Embedding; Vu, Tran and Jiang 2019, Algorithms 1-a and 1-b).

The model is word2vec's skip-gram with negative sampling. What differs is how it learns, so that nobody who reads the
published word vectors can tell well whether one unit of the training data was there:

- A *unit* is what is protected: one (centre, context) *pair*, as in the paper; a *document*; or a *user* with all
  texts. A user of 1,000 words is in thousands of pairs, so an epsilon for pairs says next to nothing about people.
- Each step takes a random *batch*: every unit by itself with the same probability (Poisson sampling). Not knowing which
  units were sampled is part of the protection, and the accountant counts on it. ``sampling: fixed`` takes batches in
  the order of the text instead, as the paper's code does; then the claim that counts on chance is ``unproven``.
- Each unit's gradient is scaled down to length C (*clipping norm*) where it is longer, so that no unit moves the sum by
  more. The sum gets Gaussian noise of s times C on every coordinate of both tables (s: *noise multiplier*).
- The *accountant* adds up what the steps give away: (epsilon, delta). Epsilon 1 at delta 1e-5 means that whatever is
  published is at most e (2.7) times as likely with the unit as without it, but for a chance of 1e-5. Claimed is what
  Renyi differential privacy proves; proved is the tighter of the two accountants (privacy loss distributions).
- The *vocabulary*, its order and how often each word is drawn as a negative come from the texts too. ``noisy`` counts
  with noise and pays for it; a path names a public list, which is free; ``exact`` counts as usual, and then nothing is
  proved.
- ``budgets`` gives every user an epsilon of its own; users leave when theirs is spent (Algorithm 1-b, counted by an
  individual Renyi filter).

Neighbours differ in one unit's contribution, which is there or not; how many units there are (pairs with unknown words
included), the options, and the users' budgets are public. The claim is about the word table alone. What else is
measured is outside of it: the vectors of texts, and the task's classifier, which learns from train without noise and is
not published.

Noise comes from the run's seed: whoever knows it takes the noise off, and what is derived from it has 31 bits, which
can be tried out one by one. That is fit for measuring, not for publishing a table of private texts; nor may two tables
with the same seed and options be published.

With ``noise_multiplier: 0`` it is the paper's None-DP: the same code, clipped, without noise or claim. What the paper's
released code and its accounting of budgets do is another victim, ``dp_word2vec_as_published``.

A step costs what its batch touches, however large the vocabulary: noise is drawn when a row is next read or published
(`leakboard.models.skip_gram.noisy_tables`). Published are the input vectors, and for texts the means of their words'.
"""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from leakboard.claims import TrainingUnit
from leakboard.errors import RequestError
from leakboard.privacy.mechanisms.textbook import Positive
from leakboard.suite.options import field_names, victim
from leakboard.victims._private_word2vec.skip_gram import EXAMPLE, LEAST_NOISE, Epsilons, PrivateSkipGram
from leakboard.victims._private_word2vec.training import Method


@victim(revision=1)
class DPWord2Vec(PrivateSkipGram):
    unit: TrainingUnit = "pair"
    """What is protected as one: a pair of words, a document, or a user with all texts."""
    epsilon: Positive | None = None
    """Target: sets the noise, or with a noise_multiplier ends training when spent; null: 1, or what the noise costs."""
    noise_multiplier: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """s, the noise's standard deviation over the clipping norm; 0 trains without noise; null: what epsilon needs."""
    sampling: Literal["poisson", "fixed"] = "poisson"
    """Batches drawn at random, as the accountant assumes, or in the order of the data (then unproven)."""
    budgets: Epsilons | str | None = None
    """Users' own epsilons: each draws one of these, all as likely, or a column has it; users leave when it is spent."""

    method: ClassVar[Method] = Method()

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return a few steps under noise, with a vocabulary that is counted with little."""
        return cls(noise_multiplier=1.0, **EXAMPLE)

    def __post_init__(self) -> None:
        """Refuse options that do not go together.

        Raises:
            RequestError: names the first such option.
        """
        if self.noise_multiplier == 0 and (self.epsilon or self.budgets):
            raise RequestError("noise_multiplier: 0 reaches no epsilon; leave out epsilon and budgets")
        if self.budgets is not None and (self.unit != "user" or not self.noise_multiplier):
            raise RequestError("budgets: they are of users: give unit: user, and a noise_multiplier for all")
        if self.budgets is not None and self.sampling == "fixed":
            raise RequestError("budgets: a filter counts on Poisson samples; leave out sampling: fixed")
        if self.noise_multiplier and self.noise_multiplier < LEAST_NOISE:
            raise RequestError(
                f"noise_multiplier: {self.noise_multiplier:g} is not allowed: 0, or from {LEAST_NOISE:g}"
            )
        super().__post_init__()

    def non_private(self) -> "DPWord2Vec":
        """Return the recipe less what protects the training data; what an attacker trains on texts of its own."""
        return non_private_recipe(self)


def non_private_recipe(options: PrivateSkipGram) -> DPWord2Vec:
    """Return the same model and training without noise, claim and protection of the vocabulary."""
    same = {name: getattr(options, name) for name in field_names(PrivateSkipGram)}
    same["vocabulary"] = "exact" if options.noisy_vocabulary else options.vocabulary
    return DPWord2Vec(unit=options.unit, noise_multiplier=0.0, **same)
