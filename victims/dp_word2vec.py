"""Word2Vec trained with differential privacy (DP-Embedding; Vu, Tran and Jiang 2019, Algorithms 1-a and 1-b).

The model is word2vec's skip-gram with negative sampling. What differs is how it learns, so that nobody who reads the
published word vectors can tell well whether one unit of the training data was there:

- A *unit* is what is protected: one (centre, context) *pair*, as in the paper; a *document*; or a *user* with all
  texts. A user of 1,000 words is in thousands of pairs, so an epsilon for pairs says next to nothing about people.
- Each step takes a random *lot*: every unit by itself with the same probability (Poisson sampling). Not knowing who
  was drawn is part of the protection, and the accountant counts on it. ``sampling: fixed`` takes batches in the order
  of the text instead, as the paper's code does; then the claim that counts on chance is ``unproven``.
- Each unit's gradient is scaled down to length C (*clipping norm*) where it is longer, so that no unit moves the sum by
  more. The sum gets Gaussian noise of s times C on every coordinate of both tables (s: *noise multiplier*).
- The *accountant* adds up what the steps give away: (epsilon, delta). Epsilon 1 at delta 1e-5 means that whatever is
  published is at most e (2.7) times as likely with the unit as without it, but for a chance of 1e-5. Claimed is what
  Renyi differential privacy proves; proved is the tighter of the two accountants (privacy loss distributions).
- The *vocabulary*, its order and the law of the negatives come from the texts too. ``noisy`` counts with noise and pays
  for it; a path names a public list, which is free; ``exact`` counts as usual, and then nothing is proved.

Neighbours differ in one unit's contribution, which is there or not; how many units there are (pairs with unknown words
included), the options, and the users' budgets are public. The claim is about the word table alone. What else is
measured is outside of it: the vectors of texts, and the task's classifier, which learns from train without noise and is
not published.

Noise comes from the run's seed: whoever knows it takes the noise off, and what is derived from it has 31 bits, which
can be tried out one by one. That is fit for measuring, not for publishing a table of private texts; nor may two tables
with the same seed and options be published.

With ``noise_multiplier: 0`` it is the paper's None-DP: the same code, clipped, without noise or claim. ``budgets``
gives every user an epsilon of its own; users leave when theirs is spent (Algorithm 1-b). ``as_released`` does what the
paper's code does to the gradients and claims what it claims: the mean of a whole batch is clipped, not each pair's
gradient; its noise is s C**2 on that mean; batches follow each other; and the accountant is told the number of words
for that of pairs. (The code's model differs: sampled softmax with 64 negatives shared by a batch, three tensors, 300
dimensions, an exact vocabulary.) With ``vocabulary: exact`` nothing is proved, else the true cost of such steps is.

A step costs what its lot touches, however large the vocabulary: noise is drawn when a row is next read or published
(``leakboard/skip_gram/tables.py``). Published are the input vectors, and for texts the means of their words'.
"""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from leakboard.errors import RequestError, nearest
from leakboard.interfaces import Corpus, PrivacyClaim, Publication, TrainingUnit
from leakboard.privacy.mechanisms import Positive
from leakboard.randomness import stream
from leakboard.resuming import state_folder
from leakboard.store import file_checksum, finite, numbers
from leakboard.suite.options import victim
from leakboard.victims._private_training import plan
from leakboard.victims._word_vectors import WordVectors

Count = Annotated[int, Field(ge=1)]
KINDS = ("noisy", "exact")
LEAST_NOISE = 1e-3
"""Smallest noise multiplier: below it an epsilon is beyond what accountants can work out."""
Epsilons = Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)]


@victim(revision=1)
class DPWord2Vec:
    unit: TrainingUnit = "pair"
    """What is protected as one: a pair of words, a document, or a user with all texts."""
    epsilon: Positive | None = None
    """Target: sets the noise, or with a noise_multiplier ends training when spent; null: 1, or what the noise costs."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    """Chance that the guarantee fails; below 1 over the number of units, or it means little."""
    noise_multiplier: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """s, the noise's standard deviation over the clipping norm; 0 trains without noise; null: what epsilon needs."""
    clipping_norm: Positive = 1.0
    """C, the largest 2-norm of a unit's gradient, over both tables."""
    sampling: Literal["poisson", "fixed"] = "poisson"
    """Lots drawn at random, as the accountant assumes, or batches in the order of the data (then unproven)."""
    lot_size: Count = 4096
    """L, expected number of units a step; all take part where there are fewer (units)."""
    steps: Annotated[int, Field(ge=0)] = 2000
    """Steps at most; 0 publishes the random start (steps)."""
    checkpoints: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    """Steps after which the vectors are kept as well, each with what was spent by then (steps)."""
    published_step: Count | None = None
    """Which checkpoint is published; null: the last step (steps)."""
    learning_rate: Positive = 0.01
    """Of the sum of a lot's clipped gradients (the paper divides its own by the lot; word2vec's is 0.025)."""
    vector_size: Count = 100
    """Dimensions d."""
    window: Count = 1
    """Largest distance between a word and its context, all of it (words)."""
    negative: Count = 5
    """Negatives for each pair."""
    vocabulary: str = "noisy"
    """Counted with noise (noisy), as it is (exact), or the path of a public list: a word a line, a tab, its count."""
    vocabulary_noise: Positive = 5.0
    """Noise on each count, over what a unit adds (1 in all); a word must reach about 7 times as much to be in."""
    min_count: Count = 5
    """Exact vocabulary: rarer words are left out (occurrences)."""
    max_words: Count = 50_000
    """Largest vocabulary: the most frequent words by the (noisy) counts (words)."""
    budgets: Epsilons | str | None = None
    """Users' own epsilons: each draws one of these, all as likely, or a column has it; users leave when it is spent."""
    accounting: Literal["filter", "paper"] = "filter"
    """Of budgets: an individual Renyi filter, or the paper's split of each step by the lot (unproven)."""
    as_released: bool = False
    """Broken control, what the paper's code does to pairs; sampling is fixed."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "words")

    def __post_init__(self) -> None:
        """Refuse options that do not go together.

        Raises:
            RequestError: names the first such option.
        """
        if self.noise_multiplier == 0 and (self.epsilon or self.budgets):
            raise RequestError("noise_multiplier: 0 reaches no epsilon; leave out epsilon and budgets")
        if self.budgets is not None and (self.unit != "user" or not self.noise_multiplier):
            raise RequestError("budgets: they are of users: give unit: user, and a noise_multiplier for all")
        if self.accounting == "paper" and self.budgets is None:
            raise RequestError("accounting: paper is about budgets; give budgets")
        if self.as_released and self.epsilon:
            raise RequestError("as_released: its claim follows from noise_multiplier and steps; leave out epsilon")
        if self.budgets is not None and self.accounting == "filter" and self.sampling == "fixed":
            raise RequestError("budgets: a filter counts on Poisson samples; leave out sampling: fixed")
        if self.as_released and (self.unit != "pair" or not self.noise_multiplier):
            raise RequestError("as_released: the code is about pairs and needs its noise_multiplier (the paper's is 5)")
        if self.noise_multiplier and self.noise_multiplier < LEAST_NOISE:
            raise RequestError(
                f"noise_multiplier: {self.noise_multiplier:g} is not allowed: 0, or from {LEAST_NOISE:g}"
            )
        if late := [step for step in self.checkpoints if step > self.steps]:
            raise RequestError(f"checkpoints: {late[0]} is not allowed: at most steps, {self.steps}")
        if self.published_step and self.published_step not in self.checkpoints:
            allowed = ", ".join(map(str, self.checkpoints)) or "none is given"
            raise RequestError(f"published_step: {self.published_step} is not among the checkpoints ({allowed})")

    def without_noise(self) -> "DPWord2Vec":
        """Return the recipe less what protects the training data; what an attacker trains on texts of its own."""
        return dataclasses.replace(
            self,
            epsilon=None,
            noise_multiplier=0.0,
            sampling="poisson",
            vocabulary="exact" if self.noisy_vocabulary else self.vocabulary,
            budgets=None,
            accounting="filter",
            as_released=False,
        )

    @property
    def target(self) -> float | None:
        """The epsilon that is asked for."""
        return 1.0 if self.epsilon is None and self.noise_multiplier is None else self.epsilon

    @property
    def fixed(self) -> bool:
        """Whether batches follow each other in the order of the data."""
        return self.as_released or self.sampling == "fixed"

    @property
    def noisy_vocabulary(self) -> bool:
        """Whether the vocabulary is counted with noise that the budget pays for."""
        return self.vocabulary == "noisy"

    @property
    def exact_vocabulary(self) -> bool:
        """Whether the vocabulary is counted without noise, which nothing pays for."""
        return self.vocabulary == "exact"

    def trained_as(self) -> "DPWord2Vec":
        """Return the recipe whatever checkpoint is published."""
        return dataclasses.replace(self, published_step=None)

    def fingerprint(self) -> str:
        """Return the checksum of a given vocabulary.

        Raises:
            RequestError: there is no such file.
        """
        if self.vocabulary in KINDS:
            return ""
        if not Path(self.vocabulary).is_file():
            hint = nearest(self.vocabulary, KINDS)
            raise RequestError(f"vocabulary: {self.vocabulary!r} is no file; allowed: noisy, exact, or a file{hint}")
        return file_checksum(Path(self.vocabulary))

    def mismatch(self, corpus: Corpus) -> str:
        """Return why it cannot be trained on a corpus: users are protected, and it names none."""
        named = self.unit != "user" or "user" in corpus.splits["train"].features
        return "" if named else f"unit: user, but {corpus.name} names no users"

    def fit(self, corpus: Corpus, seed: int) -> "FittedDPWord2Vec":
        """Train on the words of train, up to the step that is published.

        Raises:
            RequestError: fewer than two words or no pair of them is left, users are asked for where there are none, the
                target cannot be reached, or training ends before the step that is asked for.
        """
        planned = plan(self, corpus, seed)
        last = self.published_step or planned.steps
        if last > planned.steps:
            raise self._not_reached()
        published = planned.training.run(last, self.checkpoints, state_folder())
        rng = stream(seed, "dp_word2vec", "documents")
        tables = {
            step: FittedDPWord2Vec(planned.words, vectors, None, planned.claim(step)).with_classifier(corpus, rng)
            for step, vectors in published.items()
        }
        kept = {step: table for step, table in tables.items() if step in self.checkpoints}
        return dataclasses.replace(tables[last], checkpoints=kept)

    def _not_reached(self) -> RequestError:
        return RequestError(f"published_step: {self.published_step} was not reached: epsilon was spent before")

    def load(self, folder: Path) -> "FittedDPWord2Vec":
        """Return the table that is published.

        Raises:
            RequestError: training ended before the step that is asked for, its budget spent.
        """
        if not self.published_step:
            return _saved(folder)
        if not (chosen := folder / f"step {self.published_step}").is_dir():
            raise self._not_reached()
        return _saved(chosen)


@dataclass(frozen=True)
class FittedDPWord2Vec(WordVectors):
    stated: PrivacyClaim | None = None
    checkpoints: dict[int, "FittedDPWord2Vec"] = dataclasses.field(default_factory=dict)
    """By step, the tables that are kept besides."""

    @property
    def claim(self) -> PrivacyClaim | None:
        """What is claimed for the training data; None without noise."""
        return self.stated

    def save(self, folder: Path) -> None:
        """Write the table, its claim (JSON), and the checkpoints in folders of their own."""
        super().save(folder)
        stated = finite(dataclasses.asdict(self.stated)) if self.stated else None
        (folder / "claim.json").write_text(json.dumps(stated), encoding="utf-8")
        for step, table in self.checkpoints.items():
            (folder / f"step {step}").mkdir()
            table.save(folder / f"step {step}")


def _saved(folder: Path) -> FittedDPWord2Vec:
    stated = json.loads((folder / "claim.json").read_text("utf-8"))
    return FittedDPWord2Vec(**WordVectors.saved(folder), stated=PrivacyClaim(**numbers(stated)) if stated else None)
