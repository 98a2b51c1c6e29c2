"""Read texts from noisy vectors, after learning from several publications of each known text.

The attacker asks the victim for fresh publications of the texts that it knows, and the inner attack learns from all of
them. So it sees more of the noise than of one publication. The best linear estimate of the vector without noise, in
place of each publication, named fewer words by `bag_of_words`, `stacked_words` and `search` (reviews of 8 words).
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import Field

from leakboard.attacks._reading.readers import READERS
from leakboard.attacks.bag_of_words import DEV_TEXTS
from leakboard.attacks.stacked_words import StackedWords
from leakboard.interfaces import Floats, Texts
from leakboard.models.search import normalised
from leakboard.suite.options import ALWAYS_NAMED, attack, part
from leakboard.threats.secrets import KnownTexts
from leakboard.threats.texts import Reader, TextGuesses, TextsAttack, TextsView

DEV_PUBLICATIONS = 4
"""Largest number of publications of each dev text; inner attacks read no more than `DEV_TEXTS` in all."""
NOISE = 1e-4
"""Publications whose mean cosine differs from 1 by less have no noise: encoders round differently each time."""


@attack(revision=1)
class NoiseTrained(TextsAttack):
    inner: Annotated[part(READERS), ALWAYS_NAMED] = Field(default=StackedWords())  # type: ignore[valid-type]
    """The attack on texts, with its options."""
    publications: Annotated[int, Field(ge=2)] = 8
    """Number of publications of each text of train; all but one are asked for. Dev has up to four."""

    uses_gpu: ClassVar[bool] = True
    only_by_name: ClassVar[bool] = True

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return few trees, and two publications."""
        return cls(inner=StackedWords.example(folder), publications=2)

    def fit(self, view: TextsView, seed: int) -> Reader:
        """Ask for publications, and train the inner attack; without noise, it has the known vectors alone.

        Raises:
            NotApplicable: the victim answers no questions.
        """
        again = replace(view.dev, vectors=view.oracle.encode(Texts(view.dev.texts)))
        cosines = (normalised(again.vectors) * normalised(view.dev.vectors)).sum(1)
        if cosines.mean() > 1 - NOISE:
            guess, remark = self.inner.fit(view, seed), "a second publication is the same: there is no noise"
        else:
            train = self._published(view, [view.train], self.publications)
            most = min(self.publications, DEV_PUBLICATIONS, max(2, DEV_TEXTS // len(view.dev.texts)))
            dev = self._published(view, [view.dev, again], most)
            guess = self.inner.fit(replace(view, train=train, dev=dev), seed)
            remark = f"{self.publications} publications of each text of train, {most} of dev"

        def read(vectors: Floats) -> TextGuesses:
            guesses: TextGuesses = guess(vectors)
            return replace(guesses, details=f"{guesses.details}; {remark}")

        return read

    def _published(self, view: TextsView, known: list[KnownTexts], publications: int) -> KnownTexts:
        """Return known texts with so many publications of each; those in ``known`` are there already."""
        texts = Texts(known[0].texts)
        more = [replace(known[0], vectors=view.oracle.encode(texts)) for _ in range(publications - len(known))]
        return KnownTexts.joined([*known, *more])
