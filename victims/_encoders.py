"""Name the encoders that a defence may be built on."""

from collections.abc import Mapping

from leakboard.models.trainable import TrainableVictim
from leakboard.victims.bert import Bert
from leakboard.victims.embedding_bag import EmbeddingBag
from leakboard.victims.lstm import Lstm

ENCODERS: Mapping[str, type[TrainableVictim]] = {"bert": Bert, "embedding_bag": EmbeddingBag, "lstm": Lstm}
