"""Write the text of a vector with a trained decoder, then correct it by the vectors of what was written.

1. A bag of pieces, trained as by `bag_of_words`, gives the evidence for each piece of a word.
2. A small transformer that is guided by this evidence writes first texts.
3. The oracle encodes them. The text whose vector is nearest to the target is the hypothesis.
4. A second transformer is given target, hypothesis and the hypothesis's vector, and writes again, as in vec2text
   (Morris et al. 2023, section 3). Steps 3 and 4 are repeated.

Both transformers learn from the attacker's own texts; the second starts from the weights of the first. The first has
learned from the texts about which the second corrects it, so its errors are smaller there than on test. If the oracle
refuses, steps 3 and 4 are left out, and the details say so. Vec2text starts from a pretrained T5 and learns from
millions of texts; here nothing is pretrained.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
from pydantic import Field

from leakboard.attacks._reading.asking import Encode, questions
from leakboard.attacks._reading.pieces import Pieces
from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Floats, Texts
from leakboard.models.search import normalised
from leakboard.randomness import seeded
from leakboard.suite.options import ALWAYS_NAMED, Count, attack, part
from leakboard.threats.texts import TextGuesses, TextsAttack, TextsView

if TYPE_CHECKING:
    from leakboard.attacks._reading.writer import Training, Writer


@attack(revision=1)
class Inversion(TextsAttack):
    bag: Annotated[part({"bag_of_words": BagOfWords}), ALWAYS_NAMED] = Field(default=BagOfWords())  # type: ignore[valid-type]
    """The bag of pieces, with its options; its vocabulary is that of the transformers."""
    width: Annotated[int, Field(ge=64, multiple_of=64)] = 256
    """Width of the transformers' states."""
    layers: Count = 4
    """Layers of each transformer."""
    longest: Count = 64
    """Longest text that the attacker learns from and writes (pieces)."""
    epochs: Count = 10
    """Passes over the attacker's texts in the training of the first transformer; of few texts, 100 steps are a pass."""
    corrector_epochs: Annotated[int, Field(ge=0)] = 5
    """The same for the second transformer; 0: nothing is corrected."""
    hypotheses: Count = 50_000
    """Largest number of own texts from which the second transformer learns; each of them, and each dev text, costs a
    question."""
    batch_size: Count = 128
    """Texts in each step."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Largest learning rate of AdamW."""
    rounds: Annotated[int, Field(ge=0)] = 5
    """Largest number of corrections; 0: no question is asked."""
    candidates: Count = 8
    """Texts that are written and encoded in each round, for each vector: the likeliest one, the others drawn."""
    temperature: Annotated[float, Field(gt=0)] = 0.7
    """Of the drawn texts: at smaller values they are nearer to the likeliest one."""

    uses_gpu: ClassVar[bool] = True
    only_by_name: ClassVar[bool] = True

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an attack that trains narrow networks for one epoch."""
        bag = BagOfWords.example(folder)
        return cls(bag=bag, width=64, layers=1, longest=16, epochs=1, corrector_epochs=1, rounds=1, candidates=2)

    def fit(self, view: TextsView, seed: int) -> "FittedInversion":
        """Train the bag and the first transformer; write and encode own texts, and train the second one on them."""
        from leakboard.attacks._reading.writer import Training, Writer

        pieces = Pieces(view.train.texts, self.bag.vocabulary)
        bag = self.bag.fit_units(view, seed, pieces.split)
        training = Training(self.epochs, self.batch_size, self.learning_rate)
        with seeded(seed):
            new = Writer.new(pieces, bag, view.train.vectors.shape[1], self.width, self.layers, self.longest)
        first = new.trained((view.train, view.dev), training, seed)
        encode, asked = questions(view) if self.rounds else (None, "rounds: 0")
        second = None
        if encode is not None and self.corrector_epochs:
            training = replace(training, epochs=self.corrector_epochs)
            second = self._corrector(first, view, training, encode, seed)
        return FittedInversion(self, first, second, encode, asked, seed)

    def _corrector(self, first: "Writer", view: TextsView, training: "Training", encode: Encode, seed: int) -> "Writer":
        """Train a copy of the first transformer to correct what the first one writes about own texts."""
        import torch

        from leakboard.attacks._reading.writer import Hypotheses

        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.permutation(len(view.train.texts))[: self.hypotheses])
        known = view.train.rows(chosen), view.dev
        generator = torch.Generator().manual_seed(seed)
        written = [first.write(part.vectors, None, self.temperature, generator) for part in known]
        hypotheses = [Hypotheses(texts, encode(Texts(texts))) for texts in written]
        return first.trained(known, training, seed, hypotheses, name="corrector")


@dataclass(frozen=True)
class FittedInversion:
    options: Inversion
    first: "Writer"
    second: "Writer | None"
    """Corrects; None: nothing is corrected."""
    encode: Encode | None
    """Answers questions; None: no question is asked."""
    asked: str
    """Who answers the questions, or why there is no answer."""
    seed: int

    def __call__(self, vectors: Floats) -> TextGuesses:
        """Write the text of each vector, and correct it."""
        found = Found(normalised(vectors), self.first.write(vectors))
        if self.encode is None:
            return TextGuesses(found.texts, details=f"no questions ({self.asked})")
        try:
            self._ask(found, vectors, self.encode)
        except (NotApplicable, RequestError) as error:
            asked = f"stopped after {found.questions} questions" if found.questions else "no questions"
            return TextGuesses(found.texts, details=f"{asked} ({error})")
        each = found.questions / max(1, len(vectors))
        cosine = float(found.cosines.mean()) if len(vectors) else 0.0
        return TextGuesses(
            found.texts, details=f"{each:.0f} questions a text to {self.asked}; mean cosine {cosine:.3f}"
        )

    def _ask(self, found: "Found", vectors: Floats, encode: Encode) -> None:
        """Improve texts by their exact vectors."""
        import torch

        from leakboard.attacks._reading.writer import Hypotheses

        options, generator = self.options, torch.Generator().manual_seed(self.seed)
        found.judge([found.texts], encode)
        drawn = options.candidates - 1
        found.judge([self.first.write(vectors, None, options.temperature, generator) for _ in range(drawn)], encode)
        if self.second is None:
            return
        for _ in range(options.rounds):
            before, hypotheses = list(found.texts), Hypotheses(found.texts, found.vectors)
            temperatures = [0.0, *[options.temperature] * drawn]
            found.judge([self.second.write(vectors, hypotheses, one, generator) for one in temperatures], encode)
            if found.texts == before:
                break


class Found:
    """The nearest text to each target so far.

    Args:
        targets: of length 1, float32 (n, d).
        texts: one for each target, not judged yet.
    """

    def __init__(self, targets: Floats, texts: list[str]):
        self.targets, self.texts = targets, texts
        self.vectors = np.zeros_like(targets)
        """Of the texts, float32 (n, d)."""
        self.cosines = np.full(len(targets), -np.inf, np.float32)
        self.questions = 0

    def judge(self, written: list[list[str]], encode: Encode) -> None:
        """Encode lists of texts, one text for each target, and keep the nearest."""
        n = len(self.targets)
        if not written or not n:
            return
        vectors = encode(Texts([text for texts in written for text in texts]))
        self.questions += len(vectors)
        for texts, own in zip(written, vectors.reshape(len(written), n, -1), strict=True):
            cosines = np.einsum("nd,nd->n", normalised(own), self.targets)
            nearer = np.flatnonzero(cosines > self.cosines)
            self.vectors[nearer], self.cosines[nearer] = own[nearer], cosines[nearer]
            for row in nearer:
                self.texts[row] = texts[row]
