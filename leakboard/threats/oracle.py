"""The queries that an attack may send to a victim; every word in them is recorded."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from leakboard.data.corpora import one_user_a_text
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Corpus, FittedVictim, Floats, PublishedWords, Texts
from leakboard.mechanism import ReleaseMechanism
from leakboard.threats.threat import VictimSide, fit_recipe


class Oracle:
    """Encodes texts of the attacker's, returns words that it names, and trains the victim's public recipe.

    Args:
        side: the victim's.
        auxiliary: the attacker's corpus, which shadow models are trained on unless it gives another.
    """

    def __init__(self, side: VictimSide, auxiliary: Corpus):
        self._side, self._auxiliary = side, auxiliary
        self._publish, self._stream = side.publish, side.streams.stream("query")
        self._queried: frozenset[str] = frozenset()

    @property
    def queried(self) -> frozenset[str]:
        """Every word that the attack sent to the victim so far; it cannot take one back."""
        return self._queried

    def encode(self, texts: Texts) -> Floats:
        """Publish these texts, float32 (n, d), with fresh noise; it is their words that are asked, not source rows."""
        self._record(texts)
        return self._publish(Texts(texts), self._stream)

    def words(self, texts: Texts) -> PublishedWords:
        """Publish the words of these texts: of a static table the rows of these words, else their occurrences."""
        named = self._record(texts)
        answer = self._side.fitted().publish_words(Texts(texts), self._stream)
        if answer.text_index is not None:
            return answer
        rows = [row for row, word in enumerate(answer.words) if word in named]
        return PublishedWords([answer.words[row] for row in rows], answer.vectors[rows])

    def train_shadow(self, seed: int, corpus: Corpus | None = None, *, private: bool = True) -> FittedVictim:
        """Train the victim's public recipe on train and dev of a corpus; None is the attacker's own.

        Where the recipe protects users and the attacker's corpus names none, each text has a user of its own.

        Args:
            seed: of the training.
            corpus: to train on.
            private: with what protects the recipe's training data; the attacker's own texts need no protection.

        Raises:
            NotApplicable: the victim has no recipe to train.
        """
        if not self._side.victim.trainable:
            raise NotApplicable("the victim's vectors come from no recipe that could be trained on other texts")
        recipe = self._side.victim if private else self._side.victim.non_private()
        train = self._side.train if corpus is None else fit_recipe
        corpus = corpus or self._auxiliary
        lacks_users = self._side.corpus.has_users and not corpus.has_users
        return train(recipe, one_user_a_text(corpus) if lacks_users else corpus, seed)

    @property
    def mechanism(self) -> ReleaseMechanism:
        """The victim's last step, to try at will.

        Raises:
            RequestError: the victim has none.
        """
        fitted = self._side.fitted()
        if fitted.mechanism is None:
            raise RequestError(f"{type(fitted).__name__} has no mechanism to release other vectors by")
        return fitted.mechanism

    def inputs(self, texts: Texts) -> NDArray[Any] | None:
        """Return what the mechanism is given for these texts, float (n, d); None where that is random."""
        self._record(texts)
        return self._side.fitted().inputs(Texts(texts))

    def _record(self, texts: Texts) -> frozenset[str]:
        named = frozenset(word for text in texts for word in words(text))
        self._queried |= named
        return named
