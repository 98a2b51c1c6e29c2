"""Read the exact words of texts from vectors that are means of known vectors, by basis pursuit.

An encoder that averages vectors of tokens or words gives away which ones they are: two texts hardly ever have the same
mean. The attacker finds the vectors in a public table of tokens, or asks for the vectors of words. A linear program
(`_reading.mean_decoder`) finds the units of a mean. Its costs are by a bag of words over these units. An answer is
exact if whole numbers of units have this mean; of several such answers the cheapest counts. Some dev texts are held
out. They choose between `stacked_words` and inexact solutions for the other texts. Words that the encoder does not know
leave no trace, and are not named.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from leakboard.attacks.bag_of_words import BagOfWords, FittedBagOfWords
from leakboard.attacks.stacked_words import FittedStack, StackedWords
from leakboard.interfaces import Floats
from leakboard.logs import log_progress
from leakboard.metrics.text_scores import bags, overlap
from leakboard.models import static_vectors
from leakboard.models.public_encoders import files_of
from leakboard.suite.options import ALWAYS_NAMED, Count, attack, part
from leakboard.threats.secrets import KnownTexts
from leakboard.threats.texts import TextGuesses, TextsAttack, TextsView

if TYPE_CHECKING:
    from leakboard.attacks._reading.averages import Units
    from leakboard.attacks._reading.mean_decoder import Decoded, MeanDecoder

UNSEEN = 0.02
"""How often a unit counts that is in no known text."""
LEAST_COST, MOST_COST = 0.02, 25.0
"""Limits of the costs of units (nats)."""
SURPRISE = 3.0
"""Most by which the bag of words raises a unit's cost above that of its frequency (nats)."""
JUDGES = 40
"""Most held-out texts, the last of dev."""
JUDGES_SHARE = 0.25
"""Largest share of dev that is held out."""
LOG_EVERY = 20
"""Texts between two lines of progress."""


@attack(revision=2)
class BasisPursuit(TextsAttack):
    stack: Annotated[part({"stacked_words": StackedWords}), ALWAYS_NAMED] = Field(default=StackedWords())  # type: ignore[valid-type]
    """The attack that reads texts without an exact solution, with its options, unless inexact solutions are better on
    dev."""
    bag: Annotated[part({"bag_of_words": BagOfWords}), ALWAYS_NAMED] = Field(default=BagOfWords(vocabulary=10_000))  # type: ignore[valid-type]
    """The bag of units that gives the costs, with its options."""
    table: Literal["WordLlama"] | None = "WordLlama"
    """Public table whose tokens are tried as units before words are asked for. null: none, as without its package."""
    words: Count = 20_000
    """Largest number of words whose vectors are asked for: the most frequent ones of the attacker's texts,
    beyond those of a sample of texts."""
    atoms: Count = 2_000
    """Number of units that a linear program may choose from, the likeliest ones."""
    rounds: Count = 3
    """Most linear programs for a text."""
    iterations: Count = 20_000
    """Most iterations of the simplex method in a linear program."""
    longest: Count = 160
    """Most units of an exact solution."""

    uses_gpu: ClassVar[bool] = True

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an attack without a public table, and with narrow networks."""
        return cls(stack=StackedWords.example(folder), bag=BagOfWords.example(folder), table=None, atoms=50)

    @property
    def _has_table(self) -> bool:
        return self.table is not None and static_vectors.availability() == "ready"

    def fingerprint(self) -> str:
        """Identify the files of the public table."""
        return files_of(self.table) if self.table and self._has_table else ""

    def fit(self, view: TextsView, seed: int) -> "FittedPursuit":
        """Find the units whose vectors are averaged, and train the bag of units and the stack.

        Raises:
            NotApplicable: published vectors are no means of vectors of tokens or words.
        """
        from leakboard.attacks._reading.averages import asked_words, public_tokens
        from leakboard.attacks._reading.mean_decoder import Limits, MeanDecoder

        dev = np.arange(len(view.dev.texts))
        learned, judged = np.split(dev, [len(dev) - min(JUDGES, int(JUDGES_SHARE * len(dev)))])
        judges, view = view.dev.rows(judged), replace(view, dev=view.dev.rows(learned))
        units = public_tokens(view) if self._has_table else None
        if units is None or not units.explain(view.train):
            units = asked_words(view, self.words)
        texts = [text for text in units.split(view.train.texts) if text]
        rows = {name: row for row, name in enumerate(units.names)}
        counts = np.full(len(rows), UNSEEN)
        np.add.at(counts, [rows[name] for text in texts for name in text], 1)
        length = sum(map(len, texts)) / len(texts)
        limits = Limits(self.atoms, self.rounds, self.iterations, self.longest)
        decoder = MeanDecoder.of(units.vectors, counts, length, limits)
        expected = counts / counts.sum() * length
        log_progress("training a bag of units")
        bag = self.bag.fit_units(view, seed, units.split)
        places = np.array([rows[name] for name in bag.vocabulary.units])
        fitted = FittedPursuit(units, decoder, expected, bag, places, self.stack.fit(view, seed))
        return replace(fitted, prefers_stack=fitted.is_stack_better(judges))


@dataclass(frozen=True)
class FittedPursuit:
    units: "Units"
    decoder: "MeanDecoder"
    expected: Floats
    """Mean number of each unit in a text, float64 (units,)."""
    bag: FittedBagOfWords
    places: np.ndarray
    """The unit of each code of the bag, int64 (codes,)."""
    stack: FittedStack
    prefers_stack: bool = True
    """Whether the stack reads texts without an exact solution better than solutions that are not exact."""

    def __call__(self, vectors: Floats) -> TextGuesses:
        """Name the words of each text, without an order."""
        solutions = self._solutions(vectors)
        texts, exact = self._texts(solutions), [found.certified for found in solutions]
        others = [row for row, found in enumerate(solutions) if not self._is_answer(found)]
        stacked = self.stack(vectors[np.array(others, np.int64)])
        for row, text in zip(others, stacked.texts, strict=True):
            texts[row] = text
        inexact = len(texts) - sum(exact) - len(others)
        details = f"of {len(texts)} texts {sum(exact)} exact, {inexact} inexact, of {self.units.source}"
        if others:
            details += f"; {len(others)} by the stack: {stacked.details}"
        return TextGuesses(texts, ordered=False, details=details)

    def _is_answer(self, found: "Decoded") -> bool:
        return found.certified or (not self.prefers_stack and len(found.counts) > 0)

    def is_stack_better(self, judges: KnownTexts) -> bool:
        """Return whether the stack's F1 is at least that of inexact solutions, on texts with such a solution."""
        solutions = self._solutions(judges.vectors)
        rows = np.array([row for row, found in enumerate(solutions) if found.counts and not found.certified], np.int64)
        true, by_stack, by_sums = (
            bags(texts, counted=False)
            for texts in (
                [judges.texts[row] for row in rows],
                self.stack(judges.vectors[rows]).texts,
                self._texts([solutions[row] for row in rows]),
            )
        )
        return overlap(by_stack, true)[2].value >= overlap(by_sums, true)[2].value

    def _solutions(self, vectors: Floats) -> list["Decoded"]:
        """Return the units of each text by linear programs."""
        solutions = []
        for row, vector in enumerate(vectors):
            if row % LOG_EVERY == 0:
                log_progress(f"text {row + 1}/{len(vectors)}")
            solutions.append(self.decoder(vector.astype(np.float64), self._costs(vector)))
        return solutions

    def _texts(self, solutions: Sequence["Decoded"]) -> list[str]:
        return [" ".join(self.units.join(found.counts)) for found in solutions]

    def _costs(self, vector: Floats) -> Floats:
        """Return -ln P(the unit is in the text) for each unit, float64 (units,), in nats.

        The bag gives the probability; of units that it does not know, the share in known texts does. The bag may raise
        a cost by no more than `SURPRISE`.
        """
        rarity = np.minimum(-np.log(np.minimum(self.expected, 0.95)), MOST_COST)
        costs = rarity.copy()
        costs[self.places] = np.logaddexp(0, -self.bag.log_odds(vector[None])[0].astype(np.float64))
        return np.clip(costs, LEAST_COST, rarity + SURPRISE)
