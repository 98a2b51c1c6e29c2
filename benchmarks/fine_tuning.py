"""Fine-tuning MiniLM: length-sorted bfloat16 batches against float32 batches of random order, in tokens a second.

    python benchmarks/fine_tuning.py [--steps 12] [--rounds 3]

Both sides take the same steps (encoder, softmax layer, AdamW) on the same texts, AG where it is here and generated
reviews where it is not. Tokens are real ones; padding does not count.
"""

import argparse
import itertools

import torch
from _sides import alternate, verdict

from leakboard.errors import RequestError
from leakboard.models import checkpoints
from leakboard.models.transformer import TransformerEncoder
from leakboard.suite.registry import Registry

BATCH = 64


def corpus_texts() -> list[str]:
    registry = Registry()
    try:
        return list(registry.load("datasets", "ag")().load().texts("train"))
    except RequestError as error:
        print(f"generated reviews instead of AG: {error}")
        return list(registry.load("datasets", "generated_reviews")(users=2000).load().texts("train"))


class Side:
    """One way to fine-tune; ``run`` takes ``steps`` steps and counts the tokens of each pass."""

    def __init__(self, texts: list[str], precision: str, sort: bool, steps: int):
        torch.manual_seed(0)
        folder = checkpoints.find(checkpoints.MINILM, None)
        self.encoder = TransformerEncoder(folder, 128, "cls", precision, BATCH)
        self.head = torch.nn.Linear(self.encoder.dimension, 4)
        self.prepared = self.encoder.prepare(texts)
        self.optimiser = torch.optim.AdamW([*self.encoder.parameters(), *self.head.parameters()], lr=5e-5, fused=True)
        generator = torch.Generator().manual_seed(0)
        order = torch.randperm(len(texts), generator=generator).split(BATCH)
        batches = self.encoder.batches(self.prepared, generator) if sort else (part.tolist() for part in order)
        self.batches = list(itertools.islice(batches, steps))
        self.tokens = sum(len(self.prepared[i]) for batch in self.batches for i in batch)

    def run(self) -> None:
        """Take all steps once."""
        self.encoder.train()
        for batch in self.batches:
            loss = torch.nn.functional.cross_entropy(
                self.head(self.encoder([self.prepared[i] for i in batch])), torch.zeros(len(batch), dtype=torch.long)
            )
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    texts = corpus_texts()
    sides = {
        "sorted bfloat16": Side(texts, "auto", True, arguments.steps),
        "unsorted float32": Side(texts, "float32", False, arguments.steps),
    }
    times = alternate(arguments.rounds, **{name: side.run for name, side in sides.items()})
    rates = {name: side.tokens / times[name] for name, side in sides.items()}
    for name, rate in rates.items():
        print(f"{name}: {rate:.0f} tokens a second ({sides[name].tokens} tokens in {times[name]:.1f} s)")
    verdict("fine_tuning", rates["sorted bfloat16"] / rates["unsorted float32"], 2.0)


if __name__ == "__main__":
    main()
