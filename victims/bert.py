"""A pretrained transformer fine-tuned on the task: the non-private encoder of DPNR (Lyu, He and Li 2020, NON-PRIV).

Encoder, dropout, one softmax layer; AdamW with linear decay; the epoch of best dev loss is kept. Publishes the pooled
vector of a text, and the contextual vectors of its words. It makes no privacy claim.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from safetensors.torch import load_file, save_file

from leakboard import checkpoints
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Floats, Integers, Publication, PublishedWords, Texts
from leakboard.options import victim
from leakboard.randomness import seeded
from leakboard.training import train
from leakboard.transformer import Pooling, Precision, TransformerEncoder

Count = Annotated[int, Field(ge=1)]


@victim
class Bert:
    checkpoint: str = checkpoints.MINILM
    """Local folder, hub id (with ``revision``), or ``all-MiniLM-L6-v2`` from the hub's cache or its package."""
    revision: str | None = None
    """Full commit hash of a hub checkpoint."""
    max_tokens: Annotated[int, Field(ge=3)] = 128
    """Longer texts are cut (tokens)."""
    epochs: Count = 4
    """Passes over train; the one of best dev loss is kept."""
    batch_size: Count = 64
    """Texts a step."""
    learning_rate: Annotated[float, Field(gt=0)] = 5e-5
    """AdamW's, falling linearly to 0."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Before the softmax layer."""
    pooling: Pooling = "cls"
    """The first token's vector, or the mean over tokens."""
    train_layers: Literal["all", "none"] | Count = "all"
    """Which encoder layers are trained: all, none, or the last k."""
    precision: Precision = "auto"
    """Number format of the encoder's products; ``auto`` is bfloat16 where the processor has it."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "words")

    def fingerprint(self) -> str:
        """Identify the pretrained weights."""
        return checkpoints.identity(self.checkpoint, self.revision)

    def fit(self, corpus: Corpus, seed: int) -> "FittedBert":
        """Fine-tune on the task labels.

        Raises:
            RequestError: no weights, or the corpus has no task label.
        """
        if not corpus.has_labels:
            raise RequestError(f"bert: {corpus.name} has no task label to train on; sentence_encoder needs none")
        with seeded(seed):
            return self._fine_tuned(corpus, seed)

    def _fine_tuned(self, corpus: Corpus, seed: int) -> "FittedBert":
        encoder = self._encoder(checkpoints.find(self.checkpoint, self.revision))
        head = torch.nn.Linear(encoder.dimension, len(corpus.values("label"))).to(encoder.device)
        fitted = FittedBert(encoder, head)
        encodings = {split: encoder.tokenise(corpus.texts(split)) for split in ("train", "dev")}
        labels = {split: torch.from_numpy(corpus.column(split, "label")).to(encoder.device) for split in encodings}
        generator = torch.Generator().manual_seed(seed)
        trained = self._trained_parameters(encoder) + list(head.parameters())
        optimiser = torch.optim.AdamW(trained, lr=self.learning_rate, eps=1e-8, weight_decay=0.0, fused=True)
        steps = self.epochs * -(-len(encodings["train"]) // self.batch_size)
        linear = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: max(0.0, 1 - step / steps))

        def loss(batch: list[int], split: str = "train") -> torch.Tensor:
            vectors = encoder([encodings[split][i] for i in batch])
            logits = head(torch.nn.functional.dropout(vectors, self.dropout, training=encoder.training))
            return torch.nn.functional.cross_entropy(logits, labels[split][batch])

        def dev_loss() -> float:
            sums = [loss(batch, "dev").item() * len(batch) for batch in encoder.batches(encodings["dev"])]
            return sum(sums) / len(labels["dev"])

        train(
            torch.nn.ModuleDict({"encoder": encoder, "head": head}),
            lambda: encoder.batches(encodings["train"], generator),
            loss,
            dev_loss,
            optimiser=optimiser,
            epochs=self.epochs,
            scheduler=linear,
            clipping_norm=1.0,
            notes=True,
        )
        return fitted

    def load(self, folder: Path) -> "FittedBert":
        """Return a saved encoder and its softmax layer."""
        encoder = self._encoder(folder / "encoder")
        state = load_file(folder / "head.safetensors")
        head = torch.nn.Linear(encoder.dimension, len(state["bias"])).to(encoder.device)
        head.load_state_dict(state)
        return FittedBert(encoder, head)

    def _encoder(self, folder: Path) -> TransformerEncoder:
        return TransformerEncoder(folder, self.max_tokens, self.pooling, self.precision, self.batch_size)

    def _trained_parameters(self, encoder: TransformerEncoder) -> list[torch.nn.Parameter]:
        """Freeze what is not trained and return the rest."""
        if self.train_layers != "all":
            encoder.model.requires_grad_(False)
        if isinstance(self.train_layers, int):
            for layer in encoder.layers()[-self.train_layers :]:
                layer.requires_grad_(True)
        return [parameter for parameter in encoder.parameters() if parameter.requires_grad]


@dataclass(frozen=True)
class FittedBert:
    encoder: TransformerEncoder
    head: torch.nn.Linear
    claim: None = None

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return pooled vectors; nothing is random."""
        return self.encoder.documents(texts)

    def publish_words(self, texts: Texts, rng: np.random.Generator) -> PublishedWords:
        """Return the contextual vectors of the texts' words."""
        return self.encoder.words(texts)

    def coverage(self, texts: Texts) -> dict[str, float]:
        """Return the share of texts that are cut."""
        return {"cut_texts": self.encoder.cut(texts)}

    @torch.no_grad()
    def predict(self, vectors: Floats) -> Integers:
        """Return the softmax layer's labels."""
        inputs = torch.from_numpy(np.ascontiguousarray(vectors)).to(self.head.weight.device)
        return self.head(inputs).argmax(1).cpu().numpy()

    def save(self, folder: Path) -> None:
        """Write encoder, tokenizer and softmax layer (safetensors, JSON)."""
        self.encoder.model.save_pretrained(folder / "encoder")
        self.encoder.tokenizer.save_pretrained(folder / "encoder")
        save_file(self.head.state_dict(), folder / "head.safetensors")
