"""Training MiniLM's last layer: frozen layers once and first tokens alone, against the whole model in every step.

    python benchmarks/frozen_layers.py [--texts 400] [--epochs 3] [--rounds 3] [--threads 2]

Both sides tokenise the same generated reviews and take the same steps (last layer, softmax layer, AdamW); ours takes
the texts through the frozen layers anew in every round.
"""

import argparse

import torch
from _sides import alternate, verdict

from leakboard.models import checkpoints, frozen_states
from leakboard.models.transformer import TransformerEncoder
from leakboard.suite.registry import Registry


class Side:
    """The last layer, trained for some epochs."""

    def __init__(self, texts: list[str], epochs: int, whole: bool):
        torch.manual_seed(0)
        self.encoder = TransformerEncoder(checkpoints.find(checkpoints.MINILM, None), 128, "cls", "auto", 64)
        self.encoder.freeze(1)
        self.head = torch.nn.Linear(self.encoder.dimension, 4)
        self.texts, self.epochs, self.whole = texts, epochs, whole
        trained = [value for value in self.encoder.parameters() if value.requires_grad]
        self.optimiser = torch.optim.AdamW([*trained, *self.head.parameters()], lr=1e-3, fused=True)
        if whole:
            self.encoder.parts = None  # as an architecture that is not known in parts

    def run(self) -> None:
        """Train."""
        frozen_states.clear()
        prepared = self.encoder.prepare(self.texts)
        self.encoder.train()
        generator = torch.Generator().manual_seed(0)
        for _ in range(self.epochs):
            for batch in self.encoder.batches(prepared, generator):
                vectors = self.encoder([prepared[i] for i in batch])
                loss = torch.nn.functional.cross_entropy(self.head(vectors), torch.zeros(len(batch), dtype=torch.long))
                self.optimiser.zero_grad()
                loss.backward()
                self.optimiser.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    texts = list(Registry().load("datasets", "generated_reviews")().load().texts("train"))[: arguments.texts]
    sides = {name: Side(texts, arguments.epochs, name == "whole") for name in ("parts", "whole")}
    times = alternate(arguments.rounds, **{name: side.run for name, side in sides.items()})
    verdict("frozen_layers", times["whole"] / times["parts"], 3.0)


if __name__ == "__main__":
    main()
