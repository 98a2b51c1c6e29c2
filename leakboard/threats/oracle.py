"""Answer an attack's questions to the victim, and record every text and word in them.

An attacker that does not know the victim's encoder encodes by its own one. That costs no question.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.data.corpora import one_user_a_text
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Corpus, FittedVictim, Floats, PublishedWords, Texts
from leakboard.mechanism import ReleaseMechanism
from leakboard.metrics.measures import Metric
from leakboard.models.public_encoders import PublicEncoder, public_encoder
from leakboard.threats.threat import NO_TEXTS, VictimSide, fit_recipe

BY_CHANCE = 0.05
"""Share of test texts that an attack may send by chance, if it makes up texts."""


def plain(text: str) -> str:
    """Return a text without case, punctuation and repeated spaces."""
    return " ".join(words(text))


class Oracle:
    """Answers an attack's questions: encodes texts, returns vectors of words, and trains the victim's recipe.

    Args:
        side: the victim's side.
        auxiliary: the attacker's corpus; shadow models learn from it by default.
        own_encoder: encoder of an attacker that does not know the victim's; None: it knows it.
    """

    def __init__(self, side: VictimSide, auxiliary: Corpus, own_encoder: PublicEncoder | None = None):
        self._side, self._auxiliary, self._own_encoder = side, auxiliary, own_encoder
        self._publish, self._stream = side.new_publisher(), side.streams.stream("query")
        self._queried: frozenset[str] = frozenset()
        self._asked: set[str] = set()
        self._queries = self._shadow_models = 0
        self._noiseless: set[str] = set()

    @cached_property
    def _splits(self) -> list[Texts]:
        """The texts of each split of both corpora."""
        return [corpus.texts(split) for corpus in (self._side.corpus, self._side.auxiliary) for split in corpus.splits]

    def ledger(self, known_pairs: int = 0, has_own_texts: bool = True) -> list[Metric]:
        """Return what the attacker had and used: its own texts, known pairs, queries and shadow models.

        Args:
            known_pairs: number of texts whose published vectors the attacker was given.
            has_own_texts: whether the attacker was given its own texts. Shadow models always learn from them.
        """
        own = {text for split in ("train", "dev") for text in self._auxiliary.texts(split)}
        counts = {
            "own_texts": len(own) if has_own_texts or self._shadow_models else 0,
            "known_pairs": known_pairs,
            "queries": self._queries,
            "noiseless_queries": len(self._noiseless),
            "shadow_models": self._shadow_models,
        }
        return [Metric(name, float(count)) for name, count in counts.items()]

    @property
    def queried(self) -> frozenset[str]:
        """Return every word that the attack has sent to the victim."""
        return self._queried

    def require_own_questions(self, seen: Iterable[str] = ()) -> None:
        """Refuse an attack that asked the victim about too many test texts.

        Test texts that are also in ``seen``, or in the attacker's corpus, do not count.

        Args:
            seen: other texts of the attacker's view.

        Raises:
            RequestError: the attack asked about more than a share of `BY_CHANCE` of the texts that count.
        """
        if not self._asked:
            return
        auxiliary = (self._auxiliary.texts(name) for name in ("train", "dev"))
        own = {plain(text) for text in itertools.chain(seen, *auxiliary)}
        foreign = {plain(text) for text in self._side.corpus.texts("test")} - own
        sent = foreign & {plain(text) for text in self._asked}
        if len(sent) > BY_CHANCE * len(foreign):
            raise RequestError(
                f"the attack sent the victim {len(sent)} of {len(foreign)} test texts that are not its own; "
                "allowed: texts of its view, or texts that it made"
            )

    def encode(self, texts: Texts) -> Floats:
        """Publish these texts with fresh noise, float32 (n, d)."""
        self._require_known_encoder()
        self._queries += len(texts)
        self._record(texts)
        return self._publish(Texts(texts), self._stream)

    def words(self, texts: Texts) -> PublishedWords:
        """Publish the words of these texts.

        A static table gives one row for each of its words that the texts contain. Otherwise each occurrence has a row.
        """
        self._require_known_encoder()
        self._queries += len(texts)
        named = self._record(texts)
        answer = self._side.fitted().publish_words(Texts(texts), self._stream)
        if answer.text_index is not None:
            return answer
        rows = [row for row, word in enumerate(answer.words) if word in named]
        return PublishedWords([answer.words[row] for row in rows], answer.vectors[rows])

    def train_shadow(self, seed: int, corpus: Corpus | None = None, *, private: bool = True) -> FittedVictim:
        """Train the victim's public recipe on train and dev of a corpus.

        If the victim's corpus names users and this corpus does not, each text gets a user of its own.

        Args:
            seed: seed of the training.
            corpus: corpus to train on; None: the attacker's own.
            private: whether to keep the privacy protection of the training; False trains the non-private variant.

        Raises:
            NotApplicable: the victim's recipe cannot be trained on other texts.
        """
        self._require_known_encoder()
        if not self._side.victim.trainable:
            raise NotApplicable("the victim's vectors come from no recipe that could be trained on other texts")
        self._shadow_models += 1
        recipe = self._side.victim if private else self._side.victim.non_private()
        train = self._side.train if corpus is None else fit_recipe  # an attack's own corpus is not shared
        corpus = corpus or self._auxiliary
        lacks_users = self._side.corpus.has_users and not corpus.has_users
        return train(recipe, one_user_a_text(corpus) if lacks_users else corpus, seed)

    @property
    def mechanism(self) -> ReleaseMechanism:
        """Return the victim's last step, which the attack may run as often as it likes.

        Raises:
            RequestError: the victim has no mechanism.
        """
        fitted = self._side.fitted()
        if fitted.mechanism is None:
            raise RequestError(f"{type(fitted).__name__} has no mechanism that could release other vectors")
        return fitted.mechanism

    def search(self, texts: Texts, k: int) -> Floats:
        """Search the store for these texts; return the similarities of the k nearest vectors, float32 (n, k).

        The store has the victim's train texts. A text is encoded like any query of the store's users.

        Raises:
            NotApplicable: the victim cannot encode new texts.
        """
        from leakboard.models.search import nearest  # takes seconds to import

        self._require_known_encoder()
        self._queries += len(texts)
        self._record(texts)
        self._require_encoder(self._side.victim.encodes_texts)
        queries = self._side.fitted().publish_queries(Texts(texts), self._stream)
        return nearest(queries, self._side.published.documents["train"], k).similarity

    @property
    def knows_encoder(self) -> bool:
        """Whether the attacker knows the victim's encoder, without its key and noise."""
        return self._own_encoder is None

    def _require_known_encoder(self) -> None:
        if self._own_encoder is not None:
            raise NotApplicable(f"own_encoder: {self._own_encoder}, so the attacker does not know the victim's encoder")

    @cached_property
    def _encode_as_own(self) -> Callable[[Texts], Floats]:
        assert self._own_encoder is not None
        return public_encoder(self._own_encoder)

    def _require_encoder(self, reads_texts: bool) -> None:
        if not reads_texts:
            raise NotApplicable("the victim cannot encode new texts")

    def own_vectors(self, split: str) -> Floats:
        """Return the encoder's vectors of train or dev of the attacker's own texts, without protection, float32 (n, d).

        Raises:
            NotApplicable: the victim has no public encoder, or has no vectors of the attacker's dataset.
        """
        texts = self._auxiliary.texts(split)
        if self._own_encoder is not None:
            return self._encode_as_own(texts)
        self._noiseless.update(texts)
        self._record(texts)
        return self._unprotected(texts)

    def unprotected(self, texts: Texts) -> Floats:
        """Encode these texts with the victim's public encoder, or the attacker's own, unprotected, float32 (n, d).

        Rows of the texts are ignored: by rows, an attack could ask for the vectors of the test texts in order.

        Raises:
            NotApplicable: the corpus has no texts, or the victim has no public encoder for these texts.
        """
        if not self._side.corpus.has_texts:
            raise NotApplicable(NO_TEXTS)
        if self._own_encoder is not None:
            return self._encode_as_own(texts)
        self._noiseless.update(texts)
        self._record(texts)
        wanted = dict.fromkeys(texts)
        vector_of: dict[str, Floats] = {}
        for part in self._splits:  # whole splits, since these are encoded once for all cells
            if not wanted.keys().isdisjoint(part):
                vector_of |= dict(zip(part, self._unprotected(part), strict=True))
        if left := Texts([text for text in wanted if text not in vector_of]):
            self._require_encoder(self._side.victim.encoder_reads_texts)
            vector_of |= dict(zip(left, self._unprotected(left), strict=True))
        return np.stack([vector_of[text] for text in texts])

    def _unprotected(self, texts: Texts) -> Floats:
        if not self._side.victim.encoder_reads_texts and self._side.external_auxiliary:
            raise NotApplicable("the victim has no vectors of the attacker's dataset, and cannot encode its texts")
        if (vectors := self._side.fitted().unprotected(texts)) is None:
            raise NotApplicable("the victim has no public encoder that the attacker could know")
        return vectors

    def inputs(self, texts: Texts) -> NDArray[Any] | None:
        """Return the inputs of the mechanism for these texts, float (n, d); None if they are random or unknown."""
        if self._own_encoder is not None:
            return None
        self._noiseless.update(texts)
        self._record(texts)
        return self._publish.inputs(Texts(texts))

    def _record(self, texts: Texts) -> frozenset[str]:
        self._asked.update(texts)
        named = frozenset(word for text in texts for word in words(text))
        self._queried |= named
        return named


class Refusing(Oracle):
    """Refuses to encode texts, for attacks whose vectors no encoder gives.

    Args:
        reason: of the refusal.
    """

    def __init__(self, reason: str):
        self._reason = reason

    def encode(self, texts: Texts) -> Floats:
        """Refuse.

        Raises:
            NotApplicable: always.
        """
        raise NotApplicable(self._reason)

    def unprotected(self, texts: Texts) -> Floats:
        """Refuse.

        Raises:
            NotApplicable: always.
        """
        raise NotApplicable(self._reason)
