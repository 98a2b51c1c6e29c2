"""Store protected vectors of sentences, as a vector database does: any encoder, then a protection.

The encoder's vectors are scaled to length 1, protected, and published. Searches send protected queries, and find the
stored vectors that are nearest by cosine. The key of the protection is drawn at the fit: all splits share it, and
another seed has another key. Attackers may fit the recipe on their own texts, with a key of their own.

| ``protection`` | options | what is stored |
|---|---|---|
| ``none`` | | unit vectors |
| ``rotation``, ``permutation`` | | the product with a secret rotation; coordinates in a secret order |
| ``secret_linear`` | ``condition`` (10) | the product with a secret matrix of this condition number |
| ``watermark`` | ``entries`` (25) | the product with WET's circulant matrix: so many entries above 0 in a row |
| ``scale_and_perturb`` | ``beta`` | IronCore's: secret scale and order, noise in a ball of radius scale beta / 4 |
| ``gaussian`` | ``sigma`` | Gaussian noise on each coordinate |
| ``metric_laplace`` | ``epsilon`` | LapMech: noise with density exp(-epsilon length); claims 2 epsilon |
| ``purkayastha`` | ``epsilon`` | PurMech: density exp(-epsilon angle) on the sphere; claims pi epsilon |
| ``int8``, ``binary`` | | 256 levels a coordinate; signs |
| ``product_quantisation`` | ``subvectors`` (32), ``bits`` (8) | the nearest of 2^bits centres for each part |
| ``truncation`` | ``dimensions`` | the first coordinates |
| ``whitening`` | ``dimensions`` (all) | uncorrelated coordinates with variance 1 |

The claims are about one stored vector of any two texts. They do not cover the training of the encoder.
`leakboard.privacy.protections` has the sources.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Self

import numpy as np
from pydantic import Field

from leakboard.claims import ReleaseClaim
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Coverage, FittedVictim, Floats, Texts, Victim
from leakboard.models import checkpoints
from leakboard.privacy.protections.none import NoProtection
from leakboard.privacy.protections.protection import FittedProtection, unit_length
from leakboard.privacy.protections.secret_maps import Rotation
from leakboard.randomness import stream
from leakboard.suite.options import ALWAYS_NAMED, part, victim
from leakboard.victims._encoders import DOCUMENT_ENCODERS
from leakboard.victims._protections import PROTECTIONS
from leakboard.victims.embedding_bag import EmbeddingBag
from leakboard.victims.sentence_encoder import SentenceEncoder
from leakboard.victims.word2vec import Word2Vec


@victim(revision=1)
class VectorStore(Victim):
    encoder: Annotated[part(DOCUMENT_ENCODERS), ALWAYS_NAMED] = Field(default=SentenceEncoder())  # type: ignore[valid-type]
    """Victim that makes the vectors, with its own options; without noise of its own."""
    protection: Annotated[part(PROTECTIONS), ALWAYS_NAMED] = Field(default=NoProtection())  # type: ignore[valid-type]
    """How the vectors are protected, with options: see the table above."""

    def __post_init__(self) -> None:
        if isinstance(self.encoder, Word2Vec) and self.encoder.epsilon is not None:
            message = f"encoder.epsilon: {self.encoder.epsilon:g} is not allowed: null, since protections add the noise"
            raise RequestError(message)

    @classmethod
    def availability(cls) -> str:
        """Return whether the default encoder's checkpoint is installed; other encoders need none."""
        checkpoint = checkpoints.availability()
        return checkpoint if checkpoint == "ready" else f"ready but for encoder: sentence_encoder; {checkpoint}"

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return rotated vectors of an encoder that is trained for one epoch."""
        return cls(encoder=EmbeddingBag.example(folder), protection=Rotation())

    def fingerprint(self) -> str:
        """Identify the encoder's files."""
        return str(self.encoder.fingerprint())

    def why_not_applicable(self, corpus: Corpus) -> str:
        """Return why a corpus cannot train the encoder."""
        return str(self.encoder.why_not_applicable(corpus))

    def non_private(self) -> "VectorStore":
        """Return the store without protection."""
        return replace(self, protection=NoProtection())

    def fit(self, corpus: Corpus, seed: int) -> "FittedVectorStore":
        """Fit the encoder, and the protection on the vectors of train.

        Raises:
            RequestError: the encoder cannot be fitted, or the vectors do not suit the protection's options.
        """
        encoder = self.encoder.fit(corpus, seed)
        vectors = encoder.publish_documents(corpus.texts("train"), stream(seed, "encoder"))
        return FittedVectorStore(encoder, self.protection.fit(vectors, stream(seed, "protection")))

    def load(self, folder: Path) -> "FittedVectorStore":
        """Return a saved store with its encoder and key."""
        return FittedVectorStore(self.encoder.load(folder / "encoder"), self.protection.load(folder / "protection"))


@dataclass(frozen=True)
class FittedVectorStore(FittedVictim):
    encoder: FittedVictim
    protection: FittedProtection

    @property
    def claim(self) -> ReleaseClaim | None:
        """The protection's claim."""
        return self.protection.claim

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return stored vectors; noise is fresh, also for a text that is stored twice."""
        return self.protection.protect(self.unprotected(texts), rng)

    def publish_queries(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return queries under the same key."""
        return self.protection.protect_query(self.unprotected(texts), rng)

    def unprotected(self, texts: Texts) -> Floats:
        """Return the encoder's vectors, scaled to length 1; nothing is random."""
        return unit_length(self.encoder.publish_documents(texts, np.random.default_rng(0)))

    def coverage(self, texts: Texts) -> Coverage:
        """Return the encoder's shares of texts that it cannot read in full."""
        return self.encoder.coverage(texts)

    def save(self, folder: Path) -> None:
        """Write encoder and protection, each into a folder of its own."""
        for name, part_of_store in (("encoder", self.encoder), ("protection", self.protection)):
            (folder / name).mkdir()
            part_of_store.save(folder / name)
