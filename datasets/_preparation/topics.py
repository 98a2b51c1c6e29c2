r"""Label texts with topics: latent Dirichlet allocation fitted on the train split.

The recipe is that of Coavoux et al. (2018) for blogs. Tokens are ``\w+`` in lower case. Tokens in fewer than 2 or more
than half of the documents are left out; there is no stop list. The label is the most probable topic.

Three things differ. The model is never fitted on dev or test. All remaining tokens are kept; the authors' code keeps
the 100,000 that are in most documents, gensim's default. Documents are kept even if their most probable topic has a
share below 0.8; `blog_authorship` drops them.
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
    """A fitted topic model; the topic of a text depends on that text only."""

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
        """Return each text's most probable topic, int64 (n,), and the share of the text that it has, float64 (n,)."""
        labels, shares = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts))
        with threadpool_limits(1):
            for i, text in enumerate(texts):
                # Inference draws random numbers from the model: the same ones for every text, whatever came before.
                self.model.random_state = np.random.RandomState(self.seed)
                gamma, _ = self.model.inference([self.dictionary.doc2bow(_tokens(text))])
                labels[i] = gamma[0].argmax()
                shares[i] = gamma[0].max() / gamma[0].sum()
                if (i + 1) % 10_000 == 0:
                    log_progress(f"topics of {i + 1:,} of {len(texts):,} texts")
        return labels, shares
