"""Name the encoders that a defence, or a store of vectors, may be built on."""

from collections.abc import Mapping

from leakboard.interfaces import Victim
from leakboard.models.trainable import TrainableVictim
from leakboard.victims.bert import Bert
from leakboard.victims.embedding_bag import EmbeddingBag
from leakboard.victims.lstm import Lstm
from leakboard.victims.sentence_encoder import SentenceEncoder
from leakboard.victims.static_encoder import StaticEncoder
from leakboard.victims.word2vec import Word2Vec

ENCODERS: Mapping[str, type[TrainableVictim]] = {"bert": Bert, "embedding_bag": EmbeddingBag, "lstm": Lstm}
"""Encoders that are trained on the task, so that a defence can change their training."""
DOCUMENT_ENCODERS: Mapping[str, type[Victim]] = {
    **ENCODERS,
    "sentence_encoder": SentenceEncoder,
    "static_encoder": StaticEncoder,
    "word2vec": Word2Vec,
}
"""All encoders of documents; they publish without noise by default."""
