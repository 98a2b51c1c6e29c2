"""Answer with the nearest known text as it stands.

The attacker knows texts with their vectors. For each vector it answers with the text whose vector has the largest
cosine. Nothing is learned. It is the floor for attacks that write texts: what they gain over it was not in the known
texts. If a corpus has copies or near copies, it is often the strongest attack.
"""

import numpy as np

from leakboard.attacks._alignment.known_encoder import search
from leakboard.interfaces import Floats, Texts
from leakboard.suite.options import attack
from leakboard.threats.texts import Reader, TextGuesses, TextsAttack, TextsView


@attack(revision=1)
class NearestText(TextsAttack):
    def fit(self, view: TextsView, seed: int) -> Reader:
        """Keep the texts of train and dev with their vectors."""
        texts = Texts([*view.train.texts, *view.dev.texts])
        known = np.concatenate([view.train.vectors, view.dev.vectors])

        def read(vectors: Floats) -> TextGuesses:
            found = search(vectors, known, vectors, 1)
            similarity = found.similarity[:, 0]
            details = f"the nearest of {len(texts)} known texts; mean cosine {similarity.mean():.3f}"
            return TextGuesses([texts[row] for row in found.rows[:, 0]], details=details)

        return read
