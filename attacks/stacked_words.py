"""Name the words of a text by several kinds of evidence, which dev teaches to weigh.

The evidence for each word of a text, where cosines are between published vectors:

1. the log-odds by a bag of words, trained as by `bag_of_words`;
2. the share of the nearest known texts that have the word, weighted by their cosines;
3. whether the nearest known text has it, times the cosine;
4. the weight of the word's own vector in the sparse sum of words' vectors, without negative weights, that is nearest
   to the target. Of encoders that average words, this alone finds most words. Words' vectors are fitted to known texts,
   and those of single words are asked for, unless the oracle refuses.

Boosted trees (scikit-learn) learn from the pairs of a dev text and a word how likely the word is in the text.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field

from leakboard.attacks._reading.asking import questions
from leakboard.attacks.bag_of_words import DEV_TEXTS, BagOfWords
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Floats, Texts
from leakboard.logs import log_progress
from leakboard.suite.options import ALWAYS_NAMED, Count, attack, part
from leakboard.threats.texts import TextGuesses, TextsAttack, TextsView

if TYPE_CHECKING:
    from leakboard.attacks._reading.word_evidence import WordEvidence

FOLDS = 4
"""Parts of dev; the trees that choose the threshold for a part learn from the others."""


@attack(revision=2)
class StackedWords(TextsAttack):
    bag: Annotated[part({"bag_of_words": BagOfWords}), ALWAYS_NAMED] = Field(default=BagOfWords())  # type: ignore[valid-type]
    """The bag of words, with its options; its vocabulary is that of this attack."""
    neighbours: Count = 60
    """Number of nearest vectors of known texts that are evidence; each publication of a text counts."""
    asks: bool = True
    """Whether to ask for the vector of each word of the vocabulary, besides vectors that are fitted to known texts."""
    trees: Count = 150
    """Number of boosted trees."""

    uses_gpu: ClassVar[bool] = True

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an attack with few trees and one epoch of a narrow network."""
        return cls(bag=BagOfWords.example(folder), neighbours=5, trees=5)

    def fit(self, view: TextsView, seed: int) -> "FittedStack":
        """Train the bag, gather the evidence on dev, and train the trees; out-of-fold scores choose the threshold.

        Raises:
            NotApplicable: dev has fewer than two distinct texts.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.model_selection import GroupKFold, cross_val_predict

        from leakboard.attacks._reading.word_evidence import WordEvidence, fitted_vectors
        from leakboard.metrics.measures import best_offset

        bag = self.bag.fit(view, seed)
        asked, who = self._asked(view, bag.vocabulary.units)
        tables = [fitted_vectors(view.train, bag.vocabulary), *asked]
        evidence = WordEvidence.of(view.train, bag, tables, self.neighbours)
        dev = Texts(view.dev.texts[:DEV_TEXTS])
        found = evidence(view.dev.vectors[:DEV_TEXTS])
        codes = bag.vocabulary.codes(map(words, dev))
        pairs = {(row, code) for row, text in enumerate(codes) for code in text}
        present = np.array([pair in pairs for pair in zip(found.rows, found.words, strict=True)], np.int64)
        trees = HistGradientBoostingClassifier(
            max_iter=self.trees, learning_rate=0.06, max_leaf_nodes=15, min_samples_leaf=40, random_state=seed
        )
        same = np.array(dev.coded()[1])  # publications of the same text stay in one part
        if (distinct := len(set(same))) < 2:
            raise NotApplicable(f"dev has {distinct} distinct texts; needed: 2")
        parts = GroupKFold(min(FOLDS, distinct))
        log_progress("weighing the evidence")
        margins = cross_val_predict(
            trees, found.columns, present, groups=same[found.rows], cv=parts, method="decision_function"
        )
        missed = len(pairs) - int(present.sum())  # words of dev without enough evidence are never named
        offset = best_offset(margins, present, missed)
        return FittedStack(evidence, trees.fit(found.columns, present), offset, who)

    def _asked(self, view: TextsView, units: list[str]) -> tuple[list[Floats], str]:
        """Return the asked vector of each word, float32 (words, d), if there is one, and who gave it or why not."""
        encode, who = questions(view) if self.asks else (None, "asks: false")
        if encode is not None:
            try:
                return [encode(Texts(units))], f"vectors of words also by {who}"
            except (NotApplicable, RequestError) as error:
                who = str(error)
        return [], f"no vectors of words by the encoder ({who})"


@dataclass(frozen=True)
class FittedStack:
    evidence: "WordEvidence"
    trees: Any
    """Classifier of pairs of a text and a word."""
    offset: float
    """Added to the log-odds of every pair."""
    who: str
    """Where the vectors of words are from."""

    def __call__(self, vectors: Floats) -> TextGuesses:
        """Name the words of each text, the likeliest word first."""
        units, found = self.evidence.bag.vocabulary.units, self.evidence(vectors)
        odds = self.trees.decision_function(found.columns) + self.offset if len(vectors) else np.empty(0)
        named = np.flatnonzero(odds > 0)
        named = named[np.argsort(-odds[named], kind="stable")]
        of_row: list[list[str]] = [[] for _ in vectors]
        for row, word in zip(found.rows[named], found.words[named], strict=True):
            of_row[row].append(units[word])
        threshold = f"threshold {1 / (1 + np.exp(self.offset)):.2f} chosen on dev"
        details = f"{len(units)} words, {threshold}; {self.who}{self.evidence.bag.remark}"
        return TextGuesses([" ".join(text) for text in of_row], ordered=False, details=details)
