"""An LSTM on padded sequences of like length, whose last states are gathered, against torch's packed sequences.

    python benchmarks/padded_lstm.py [--batches 40] [--rounds 5] [--threads 1]

Both sides take the same steps (forward, backward) of the victim ``lstm`` on the same batches of generated reviews;
their states agree to the rounding of float32.
"""

import argparse
from collections.abc import Sequence

import torch
from _sides import alternate, verdict
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

from leakboard.models.training import of_like_length
from leakboard.suite.registry import Registry


class Side:
    """Forward and backward through the encoder for some batches."""

    def __init__(self, encoder: torch.nn.Module, batches: Sequence[Sequence[torch.Tensor]], packed: bool):
        self.encoder, self.batches, self.packed = encoder, batches, packed

    def states(self, batch: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the last states of a batch."""
        if not self.packed:
            states: torch.Tensor = self.encoder(batch)
            return states
        vectors = self.encoder.words(pad_sequence(list(batch), batch_first=True))
        lengths = torch.tensor([len(rows) for rows in batch])
        sequences = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        last: torch.Tensor = self.encoder.lstm(sequences)[1][0][0]
        return last

    def run(self) -> None:
        """Take the steps."""
        for batch in self.batches:
            self.encoder.zero_grad()
            self.states(batch).square().sum().backward()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    corpus = Registry().load("datasets", "generated_reviews")().load()
    encoder = Registry().load("victims", "lstm")().build(corpus).eval()
    prepared = encoder.prepare(corpus.texts("train"))
    order = of_like_length([len(rows) for rows in prepared], 32, torch.Generator().manual_seed(0))
    batches = [[prepared[i] for i in batch] for _, batch in zip(range(arguments.batches), order, strict=False)]
    sides = {name: Side(encoder, batches, name == "packed") for name in ("padded", "packed")}
    assert torch.allclose(*(side.states(batches[0]) for side in sides.values()), atol=1e-5)
    times = alternate(arguments.rounds, **{name: side.run for name, side in sides.items()})
    verdict("padded_lstm", times["packed"] / times["padded"], 2.0)


if __name__ == "__main__":
    main()
