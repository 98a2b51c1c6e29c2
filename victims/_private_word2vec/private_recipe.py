"""Define the options of privately trained skip-gram, its training, and the table that it publishes."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from leakboard.claims import TrainingClaim, TrainingUnit, claim_as_json, claim_from_json
from leakboard.errors import RequestError, nearest
from leakboard.interfaces import Corpus, Publication, Victim
from leakboard.privacy.mechanisms.textbook import Positive
from leakboard.store import file_checksum, load_fields, save_fields
from leakboard.suite.files import File, FileName
from leakboard.suite.options import Count, shared
from leakboard.victims._private_word2vec.private_training import Plan, plan
from leakboard.victims._word_vectors import WordVectors
from leakboard.workspace import resume_dir

Epsilons = Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)]
COUNTED_VOCABULARIES = ("noisy", "exact")
MIN_NOISE_MULTIPLIER = 1e-3
"""Accountants cannot compute an epsilon for a smaller noise multiplier."""
EXAMPLE: dict[str, Any] = {"steps": 10, "expected_batch_size": 50, "vector_size": 8, "vocabulary_noise": 0.5}
"""Options of a short training, for tests."""


@shared
class PrivateSkipGram(Victim):
    """Options of skip-gram that is trained step by step. A victim adds the unit, the noise and the plan."""

    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    """Probability that the guarantee fails; it should be less than 1 / number of units."""
    clipping_norm: Positive = 1.0
    """C: largest 2-norm of a unit's gradient, over both tables."""
    expected_batch_size: Count = 4096
    """L: expected number of units in each step; all units if there are fewer (units)."""
    steps: Annotated[int, Field(ge=0)] = 2000
    """Largest number of steps; 0 publishes the random start vectors (steps)."""
    checkpoints: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    """Steps after which the vectors are also kept, with the epsilon that was spent until then (steps)."""
    published_step: Count | None = None
    """Checkpoint to publish; null: the last step (steps)."""
    learning_rate: Positive = 0.01
    """Rate for the sum of a batch's clipped gradients (in the paper: divided by the batch size; in word2vec: 0.025)."""
    vector_size: Count = 100
    """d: dimensions of the vectors."""
    window: Count = 1
    """Largest distance between a word and a context; all words within this distance are contexts (words)."""
    negative: Count = 5
    """Negative samples for each pair."""
    vocabulary: File = FileName("noisy")
    """noisy or exact: counts with or without noise; or the path of a public list: on each line word, tab, count."""
    vocabulary_noise: Positive = 5.0
    """Noise on each count (a unit adds 1 to all counts together); a word needs a count of about 7 times this noise."""
    min_count: Count = 5
    """Exact vocabulary: least number of occurrences of a word."""
    max_words: Count = 50_000
    """Largest vocabulary: the most frequent words by the (noisy) counts (words)."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "words")

    if TYPE_CHECKING:  # options and properties of the victims

        @property
        def unit(self) -> TrainingUnit: ...
        @property
        def epsilon(self) -> float | None: ...
        @property
        def noise_multiplier(self) -> float | None: ...
        @property
        def sampling(self) -> Literal["poisson", "fixed"]: ...
        @property
        def budgets(self) -> tuple[float, ...] | str | None: ...
        @property
        def plan_type(self) -> type[Plan]: ...

    def __post_init__(self) -> None:
        """Refuse steps that do not go together.

        Raises:
            RequestError: ``published_step`` or ``checkpoints`` do not go with ``steps``.
        """
        if late := [step for step in self.checkpoints if step > self.steps]:
            raise RequestError(f"checkpoints: {late[0]} is not allowed: at most steps, {self.steps}")
        if self.published_step and self.published_step not in self.checkpoints:
            allowed = ", ".join(map(str, self.checkpoints)) or "none is given"
            raise RequestError(f"published_step: {self.published_step} is not among the checkpoints ({allowed})")

    @property
    def target(self) -> float | None:
        """The epsilon of the options; 1 if the options give neither epsilon nor noise."""
        return 1.0 if self.epsilon is None and self.noise_multiplier is None else self.epsilon

    def training_config(self) -> PrivateSkipGram:
        """Return the recipe without the choice of a checkpoint."""
        return dataclasses.replace(self, published_step=None)

    def fingerprint(self) -> str:
        """Return the checksum of a vocabulary file, or "".

        Raises:
            RequestError: the file is missing.
        """
        if self.vocabulary in COUNTED_VOCABULARIES:
            return ""
        if not Path(self.vocabulary.located).is_file():
            hint = nearest(self.vocabulary, COUNTED_VOCABULARIES)
            raise RequestError(f"vocabulary: {self.vocabulary!r} is no file; allowed: noisy, exact, or a file{hint}")
        return file_checksum(Path(self.vocabulary.located))

    def why_not_applicable(self, corpus: Corpus) -> str:
        """Return why the corpus cannot be trained on: the unit is the user, and the corpus names no users."""
        named = self.unit != "user" or corpus.has_users
        return "" if named else f"unit: user, but {corpus.name} names no users"

    def fit(self, corpus: Corpus, seed: int) -> PrivateTable:
        """Train on the words of train, up to the step that is published.

        Raises:
            RequestError: fewer than two words, or no pair of words, are left; the corpus names no users or budgets; the
                target cannot be reached; or training ends before the published step.
        """
        planned = plan(self, corpus, seed)
        last = self.published_step or planned.steps
        if last > planned.steps:
            raise self._not_reached()
        vectors = planned.training.run(last, self.checkpoints, resume_dir())
        words = planned.vocabulary.words
        tables = {step: PrivateTable(words, table, planned.claim(step)) for step, table in vectors.items()}
        kept = {step: table for step, table in tables.items() if step in self.checkpoints}
        return dataclasses.replace(tables[last], checkpoints=kept)

    def _not_reached(self) -> RequestError:
        return RequestError(f"published_step: {self.published_step} was not reached: epsilon was spent before")

    def load(self, folder: Path) -> PrivateTable:
        """Return the published table.

        Raises:
            RequestError: training ended before the published step, because its budget was spent.
        """
        if not self.published_step:
            return PrivateTable.load(folder)
        if not (checkpoint := folder / f"step {self.published_step}").is_dir():
            raise self._not_reached()
        return PrivateTable.load(checkpoint)


@dataclass(frozen=True)
class PrivateTable(WordVectors):
    """A published table with its claim about the training data."""

    claim: TrainingClaim | None = None
    """None without noise."""
    checkpoints: dict[int, PrivateTable] = dataclasses.field(default_factory=dict)
    """The tables that were kept before the published one, by step."""

    def save(self, folder: Path) -> None:
        """Write the table, its claim (JSON), and each checkpoint in a folder of its own."""
        save_fields(WordVectors(self.vocabulary, self.vectors), folder)
        (folder / "claim.json").write_text(json.dumps(claim_as_json(self.claim)), encoding="utf-8")
        for step, table in self.checkpoints.items():
            (folder / f"step {step}").mkdir()
            table.save(folder / f"step {step}")

    @classmethod
    def load(cls, folder: Path) -> PrivateTable:
        """Return the table that `save` wrote, without its checkpoints."""
        table = load_fields(WordVectors, folder)
        claim = claim_from_json(json.loads((folder / "claim.json").read_text("utf-8")))
        assert claim is None or isinstance(claim, TrainingClaim)
        return cls(table.vocabulary, table.vectors, claim)
