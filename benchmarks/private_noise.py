"""Private training of skip-gram with our compiled noise against NumPy's Philox generator: whole steps and whole fits.

    python benchmarks/private_noise.py [--vocabularies 10000 1000000] [--steps 300] [--rounds 5]

Both sides take the same steps (512 pairs, 5 negatives, words by Zipf's law, d = 100) and train the same recipe on
generated reviews; nothing but the source of the normal numbers differs. One thread each. The ratio of a vocabulary says
how much longer NumPy's side takes; compiled noise that saves less than 0.3 of a step would not be worth its lines.
"""

import argparse
import itertools

import numpy as np
from _sides import alternate, verdict

from leakboard.datasets.generated_reviews import GeneratedReviews
from leakboard.models.skip_gram import descent as training
from leakboard.models.skip_gram.noise import NoiseStream
from leakboard.models.skip_gram.noisy_tables import NoisyTables, Workspace
from leakboard.victims._private_word2vec.training import plan
from leakboard.victims.dp_word2vec import DPWord2Vec

PAIRS, COLUMNS, DIMENSIONS, BATCHES = 512, 1 + 1 + 5, 100, 100
RECIPE = DPWord2Vec(noise_multiplier=5.0, clipping_norm=0.01, expected_batch_size=128, steps=3000, delta=1e-5)


class NumpyNoise:
    """What `NoiseStream` does, by NumPy."""

    def __init__(self, key: int):
        self.generator, self.block = np.random.Generator(np.random.Philox(key)), 0

    def fill(self, out: np.ndarray) -> None:
        """Fill a contiguous float32 array."""
        self.generator.standard_normal(dtype=np.float32, out=out.reshape(-1))


SOURCES = {"ours": NoiseStream, "numpy": NumpyNoise}


def steps(words: int, count: int, rounds: int) -> None:
    shares = 1 / np.arange(1, words + 1)
    drawn = np.random.default_rng(0).choice(words, (BATCHES, PAIRS, COLUMNS), p=shares / shares.sum()).astype(np.int32)
    how = {"rate": 0.05 / PAIRS, "clipping_norm": 1.0, "each_table": False, "deviation": 1.0}

    def side(source: type) -> object:
        workspace = Workspace(NoisyTables.start(words, DIMENSIONS, np.random.default_rng(0)))
        batches, noise = itertools.cycle([(b[:, 0].copy(), b[:, 1:].copy()) for b in drawn]), source(1)
        return lambda: [
            workspace.descend(*next(batches), np.arange(PAIRS + 1), noise=noise, **how) for _ in range(count)
        ]

    times = alternate(rounds, **{name: side(source) for name, source in SOURCES.items()})
    verdict(f"private_noise_step_{words}", times["numpy"] / times["ours"], 1.3)


def fits(rounds: int) -> None:
    corpus = GeneratedReviews(users=2000).load().only("train", "dev")

    def fit(source: type) -> None:
        training.NoiseStream = source
        planned = plan(RECIPE, corpus, 0)
        planned.training.run(planned.steps)

    times = alternate(rounds, **{name: lambda source=source: fit(source) for name, source in SOURCES.items()})
    verdict("private_noise_fit", times["numpy"] / times["ours"], 1.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabularies", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for words in arguments.vocabularies:
        steps(words, arguments.steps, arguments.rounds)
    fits(arguments.rounds)


if __name__ == "__main__":
    main()
