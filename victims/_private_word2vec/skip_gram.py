"""What the victims of privately trained skip-gram share: options of the model and of its training, and the table."""

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
from leakboard.victims._private_word2vec.training import Method, plan
from leakboard.victims._word_vectors import WordVectors
from leakboard.workspace import resume_dir

Epsilons = Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)]
KINDS = ("noisy", "exact")
LEAST_NOISE = 1e-3
"""Smallest noise multiplier: below it an epsilon is beyond what accountants can work out."""
EXAMPLE: dict[str, Any] = {"steps": 10, "expected_batch_size": 50, "vector_size": 8, "vocabulary_noise": 0.5}
"""Options of a training that takes a moment."""


@shared
class PrivateSkipGram(Victim):
    """Skip-gram trained step by step; a subclass says what is protected, by how much noise, and by which method."""

    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    """Chance that the guarantee fails; below 1 over the number of units, or it means little."""
    clipping_norm: Positive = 1.0
    """C, the largest 2-norm of a unit's gradient, over both tables."""
    expected_batch_size: Count = 4096
    """L, expected number of units a step; all take part where there are fewer (units)."""
    steps: Annotated[int, Field(ge=0)] = 2000
    """Steps at most; 0 publishes the random start (steps)."""
    checkpoints: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    """Steps after which the vectors are kept as well, each with what was spent by then (steps)."""
    published_step: Count | None = None
    """Which checkpoint is published; null: the last step (steps)."""
    learning_rate: Positive = 0.01
    """Of the sum of a batch's clipped gradients (the paper divides its own by the batch size; word2vec's is 0.025)."""
    vector_size: Count = 100
    """Dimensions d."""
    window: Count = 1
    """Largest distance between a word and its context, all of it (words)."""
    negative: Count = 5
    """Negatives for each pair."""
    vocabulary: File = FileName("noisy")
    """Counted with noise (noisy), as it is (exact), or the path of a public list: a word a line, a tab, its count."""
    vocabulary_noise: Positive = 5.0
    """Noise on each count, over what a unit adds (1 in all); a word must reach about 7 times as much to be in."""
    min_count: Count = 5
    """Exact vocabulary: rarer words are left out (occurrences)."""
    max_words: Count = 50_000
    """Largest vocabulary: the most frequent words by the (noisy) counts (words)."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "words")

    if TYPE_CHECKING:  # what a subclass says

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
        def method(self) -> Method: ...

    def __post_init__(self) -> None:
        """Refuse steps that do not go together.

        Raises:
            RequestError: names the first such option.
        """
        if late := [step for step in self.checkpoints if step > self.steps]:
            raise RequestError(f"checkpoints: {late[0]} is not allowed: at most steps, {self.steps}")
        if self.published_step and self.published_step not in self.checkpoints:
            allowed = ", ".join(map(str, self.checkpoints)) or "none is given"
            raise RequestError(f"published_step: {self.published_step} is not among the checkpoints ({allowed})")

    @property
    def target(self) -> float | None:
        """The epsilon that is asked for."""
        return 1.0 if self.epsilon is None and self.noise_multiplier is None else self.epsilon

    @property
    def noisy_vocabulary(self) -> bool:
        """Whether the vocabulary is counted with noise that the budget pays for."""
        return self.vocabulary == "noisy"

    @property
    def exact_vocabulary(self) -> bool:
        """Whether the vocabulary is counted without noise, which nothing pays for."""
        return self.vocabulary == "exact"

    def training_config(self) -> PrivateSkipGram:
        """Return the recipe whatever checkpoint is published."""
        return dataclasses.replace(self, published_step=None)

    def fingerprint(self) -> str:
        """Return the checksum of a given vocabulary.

        Raises:
            RequestError: there is no such file.
        """
        if self.vocabulary in KINDS:
            return ""
        if not Path(self.vocabulary.located).is_file():
            hint = nearest(self.vocabulary, KINDS)
            raise RequestError(f"vocabulary: {self.vocabulary!r} is no file; allowed: noisy, exact, or a file{hint}")
        return file_checksum(Path(self.vocabulary.located))

    def why_not_applicable(self, corpus: Corpus) -> str:
        """Return why it cannot be trained on a corpus: users are protected, and it names none."""
        named = self.unit != "user" or corpus.has_users
        return "" if named else f"unit: user, but {corpus.name} names no users"

    def fit(self, corpus: Corpus, seed: int) -> PrivateTable:
        """Train on the words of train, up to the step that is published.

        Raises:
            RequestError: fewer than two words or no pair of them is left, users are asked for where there are none, the
                target cannot be reached, or training ends before the step that is asked for.
        """
        planned = plan(self, corpus, seed)
        last = self.published_step or planned.steps
        if last > planned.steps:
            raise self._not_reached()
        vectors = planned.training.run(last, self.checkpoints, resume_dir())
        tables = {step: PrivateTable(planned.words, table, planned.claim(step)) for step, table in vectors.items()}
        kept = {step: table for step, table in tables.items() if step in self.checkpoints}
        return dataclasses.replace(tables[last], checkpoints=kept)

    def _not_reached(self) -> RequestError:
        return RequestError(f"published_step: {self.published_step} was not reached: epsilon was spent before")

    def load(self, folder: Path) -> PrivateTable:
        """Return the table that is published.

        Raises:
            RequestError: training ended before the step that is asked for, its budget spent.
        """
        if not self.published_step:
            return PrivateTable.load(folder)
        if not (chosen := folder / f"step {self.published_step}").is_dir():
            raise self._not_reached()
        return PrivateTable.load(chosen)


@dataclass(frozen=True)
class PrivateTable(WordVectors):
    """A published table with what is claimed for its training data."""

    stated: TrainingClaim | None = None
    checkpoints: dict[int, PrivateTable] = dataclasses.field(default_factory=dict)
    """By step, the tables that are kept besides."""

    @property
    def claim(self) -> TrainingClaim | None:
        """What is claimed for the training data; None without noise."""
        return self.stated

    def save(self, folder: Path) -> None:
        """Write the table, its claim (JSON), and the checkpoints in folders of their own."""
        save_fields(WordVectors(self.vocabulary, self.vectors), folder)
        (folder / "claim.json").write_text(json.dumps(claim_as_json(self.stated)), encoding="utf-8")
        for step, table in self.checkpoints.items():
            (folder / f"step {step}").mkdir()
            table.save(folder / f"step {step}")

    @classmethod
    def load(cls, folder: Path) -> PrivateTable:
        """Return what `save` wrote, the checkpoints left out."""
        table = load_fields(WordVectors, folder)
        stated = claim_from_json(json.loads((folder / "claim.json").read_text("utf-8")))
        assert stated is None or isinstance(stated, TrainingClaim)
        return cls(table.vocabulary, table.vectors, stated)
