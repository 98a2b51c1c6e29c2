r"""Topics as task labels, for corpora that come without one: latent Dirichlet allocation fitted on the train split.

The recipe of Coavoux et al. (2018) for blogs: tokens ``\w+`` lower-cased, without those in fewer than 2 or more than
half of the documents, no stop list; the label is the most probable topic. Unlike them it keeps the documents whose
most probable topic stays below 0.8 (`blog_authorship` drops them), and it never fits on dev or test.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from leakboard.logs import log_progress


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@dataclass(frozen=True)
class TopicModel:
    """A topic model, fitted; a text's topic depends on that text alone."""

    dictionary: Any
    model: Any
    seed: int

    @classmethod
    def fit(cls, texts: Sequence[str], topics: int, passes: int, seed: int) -> "TopicModel":
        """Fit on the texts of the train split, reproducibly."""
        from gensim.corpora import Dictionary
        from gensim.models import LdaModel

        documents = [_tokens(text) for text in texts]
        dictionary = Dictionary(documents)
        dictionary.filter_extremes(no_below=2, no_above=0.5, keep_n=None)
        bags = [dictionary.doc2bow(document) for document in documents]
        with threadpool_limits(1):  # sums in another order give other bits
            model = LdaModel(
                bags,
                num_topics=topics,
                id2word=dictionary,
                passes=passes,
                eval_every=None,
                random_state=np.random.RandomState(seed),
            )
        return cls(dictionary, model, seed)

    def label(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the most probable topic of every text, int64 (n,)."""
        return self.dominating(texts)[0]

    def dominating(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the most probable topic of every text, int64 (n,), and its share of the text, float64 (n,) in 0..1."""
        labels, shares = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts))
        with threadpool_limits(1):
            for i, text in enumerate(texts):
                # Inference starts from random numbers of the model: the same for every text, whatever came before.
                self.model.random_state = np.random.RandomState(self.seed)
                gamma, _ = self.model.inference([self.dictionary.doc2bow(_tokens(text))])
                labels[i] = gamma[0].argmax()
                shares[i] = gamma[0].max() / gamma[0].sum()
                if (i + 1) % 10_000 == 0:
                    log_progress(f"topics of {i + 1:,} of {len(texts):,} texts")
        return labels, shares
