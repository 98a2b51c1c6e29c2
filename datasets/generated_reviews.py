r"""Reviews written by LeakBoard's own generator from an explicit model, so that the best possible attacker is known.

Task: sentiment (2 classes) or topic (5). Secrets: gender and age of the author, and the presence of five invented
persons. All numbers of the model are in `_generated_reviews.model`, all words in `_generated_reviews.word_lists`.

The model, with leak strength λ = ``leak``. Gender g and age a are drawn once for each user. Sentiment s, topic t and
the presence e_j of each person j are drawn once for each text. All are independent and uniform, except that
P(e_j = present) = q_j.

- A text has three sentences, then one for each mentioned person, then three more. Given (g, a, s, t), the template of a
  sentence and the words w_k of its slots are independent.
- Words that may show a secret: P(w | g, a) = (1 - λ) b(w) + λ b(w) r(w, g, a) / Σ_v b(v) r(v, g, a). The base rate b of
  the i-th word, from 0, is proportional to 1 / √(1 + ⌊i / 4⌋), and Σ_v b(v) = 1. The factor r is 4 to the power of the
  number of attributes that the slot shows (g, a or both) and whose value prefers w.
- Words of sentiment and topic: with fixed shares the word is one for the text's own value, one for any value, or (only
  sentiment) one for the opposite value. Within each group all words are equally likely.
- Templates and the words of a person's sentence are uniform.
- P(person j mentioned | present) = q_j + λ (1 - q_j), P(mentioned | absent) = (1 - λ) q_j. At every λ, a share q_j of
  the texts mentions j. At λ = 1, and only there, "present" means "mentioned".

So at λ = 0 the text is independent of every secret. The posterior columns are Bayes' rule without approximation:

    P(g | text) = Σ_{a,s,t} Π_k P(w_k | g, a, s, t) / Σ_{g,a,s,t} Π_k P(w_k | g, a, s, t).

The same holds for age. For each person, P(e_j | m_j) ∝ P(m_j | e_j) P(e_j), since the mention m_j depends on e_j only.

The posteriors are exact because a text determines its choices, so that p(text | state) = p(choices | state):

- A sentence ends at its only full stop or exclamation mark (and bracket).
- The kinds of sentences come in a fixed order.
- The optional sentences have a name that occurs nowhere else.
- Within a kind, different choices give different sentences; a test enumerates them.

The posterior is that of an attacker who knows the model and reads each text alone. An attacker who pools the texts of a
user can know more about gender and age. The texts say nothing about how any group of people really writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import Field

from leakboard.data.corpora import POSTERIOR, build_corpus, divide
from leakboard.datasets._generated_reviews.model import SHAPE, draw, posteriors, write_identifiers, write_texts
from leakboard.datasets._generated_reviews.word_lists import AGES, ENTITIES, GENDERS, SENTIMENTS, TOPICS
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.randomness import derived_seed, stream
from leakboard.suite.options import dataset

if TYPE_CHECKING:
    import pandas as pd

NAME = "generated_reviews"
VERSION = "generated-1"
"""Raised when the same options give other texts."""
IDENTIFIERS = "identifiers-2"
"""The same for the beginnings of texts with identifiers."""

SECRETS = (
    Secret("gender", GENDERS, "attribute"),
    Secret("age", AGES, "attribute"),
    *(Secret(name, ("absent", "present"), "entity") for name in ENTITIES),
)
LABELS = {"sentiment": SENTIMENTS, "topic": TOPICS}

Share = Annotated[float, Field(gt=0, le=0.4)]


@dataset(revision=1)
class GeneratedReviews(Dataset):
    users: Annotated[int, Field(ge=10)] = 300
    """Number of users; none is in two splits."""
    texts_per_user: Annotated[int, Field(ge=1)] = 5
    """Number of texts of each user."""
    leak: Annotated[float, Field(ge=0, le=1)] = 0.7
    """How strongly each secret shows in the words: 0 not at all, 1 as strongly as possible. It changes only words."""
    task: Literal["sentiment", "topic"] = "sentiment"
    """Hidden variable that is the task label."""
    dev_share: Share = 0.15
    """Share of the users in dev."""
    test_share: Share = 0.2
    """Share of the users in test."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the users, the texts and the split."""
    identifiers: bool = False
    """Whether each text begins with an invented name, address and telephone number, for attacks on texts."""

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an instance with 120 texts."""
        return cls(users=40, texts_per_user=3)

    def fingerprint(self) -> str:
        """Return the generator's version; it and the options determine the corpus."""
        return f"{VERSION}, {IDENTIFIERS}" if self.identifiers else VERSION

    @property
    def texts_are_invented(self) -> bool:
        """LeakBoard wrote them."""
        return True

    def load(self) -> Corpus:
        """Draw users, texts and the split."""
        frame = self._frame()
        splits = divide(frame, self.dev_share, self.test_share, derived_seed(NAME, self.seed, "split"))
        return build_corpus(NAME, splits, SECRETS, LABELS[self.task])

    def _frame(self) -> pd.DataFrame:
        import pandas as pd

        n = self.users * self.texts_per_user
        user = np.repeat(np.arange(self.users), self.texts_per_user)
        of_user = stream(NAME, self.seed, "users").integers([SHAPE["gender"], SHAPE["age"]], size=(self.users, 2))
        of_text = stream(NAME, self.seed, "texts")
        hidden = dict(zip(("gender", "age"), of_user[user].T, strict=True))
        hidden |= {variable: of_text.integers(SHAPE[variable], size=n) for variable in LABELS}
        present = (of_text.random((n, len(ENTITIES))) < list(ENTITIES.values())).astype(np.int64)

        state = np.ravel_multi_index(tuple(hidden[variable] for variable in SHAPE), tuple(SHAPE.values()))
        choices = draw(state, present, self.leak, stream(NAME, self.seed, "words"))
        texts = write_texts(choices)
        if self.identifiers:
            identifiers = write_identifiers(n, stream(NAME, self.seed, "identifiers"))
            texts = [f"{identifier} {text}" for identifier, text in zip(identifiers, texts, strict=True)]
        columns = {"text": texts, "row": np.arange(n), "user": [f"user{u:05d}" for u in user]}
        columns |= {"label": hidden[self.task], "gender": hidden["gender"], "age": hidden["age"]}
        columns |= dict(zip(ENTITIES, present.T, strict=True))
        columns |= {POSTERIOR + secret: p.tolist() for secret, p in posteriors(choices, self.leak).items()}
        return pd.DataFrame(columns)
