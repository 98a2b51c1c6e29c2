"""An epoch of private skip-gram over 17 million tokens, in minutes, and its speed against gensim's.

    python benchmarks/private_epoch.py [--tokens 17005207] [--size 8192] [--folder DIR] [--rounds 3]

The text is text8 where it is here, else generated: 10,000 words by Zipf's law. V = 10,000, d = 100, window 1, 5
negatives, Poisson samples, clipping norm 1, noise multiplier 1; as many steps as give every pair one turn on average.
With ``--folder`` an interrupted run goes on from its saved state; its time is then that of the steps of this process,
scaled to all of them. Gensim (skip-gram, window never shrunk, no subsampling) trains on a part of the same tokens.
Every side has one thread. Making the pairs and gensim's vocabulary is not timed.
"""

import argparse
import logging
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from _sides import alternate, seconds, verdict

from leakboard.logs import PROGRESS
from leakboard.models.skip_gram.descent import STATE, Descent, Training
from leakboard.models.skip_gram.kernels import make_pairs
from leakboard.models.skip_gram.pairs import Pairs
from leakboard.models.skip_gram.sampling import PoissonSampler
from leakboard.suite.registry import Registry

WORDS, DIMENSIONS, WINDOW, NEGATIVES, SENTENCE, RATE = 10_000, 100, 1, 5, 1000, 0.05
TEXT8 = 17_005_207
"""Its number of tokens."""


def text8(tokens: int) -> list[list[str]] | None:
    """Return text8's first tokens in texts of `SENTENCE` words, or None where it is not here."""
    plugin = Registry().load("datasets", "text8")
    if plugin.availability() != "there":
        print(f"generated text instead of text8, which is {plugin.availability()}", flush=True)
        return None
    corpus = plugin(words=tokens, words_per_text=SENTENCE).load()
    return [text.split() for split in ("train", "dev", "test") for text in corpus.texts(split)]


def coded(tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of the words, int32 (tokens,), -1 for unknown ones, and how frequent each word is, (WORDS,)."""
    texts = text8(tokens)
    if texts is None:
        shares = 1 / np.arange(1, WORDS + 1)
        drawn = np.random.default_rng(0).choice(WORDS, tokens, p=shares / shares.sum())
        return drawn.astype(np.int32), np.bincount(drawn, minlength=WORDS)
    common = Counter(word for text in texts for word in text).most_common(WORDS)
    code = {word: number for number, (word, _) in enumerate(common)}
    codes = np.fromiter((code.get(word, -1) for text in texts for word in text), np.int32)
    return codes, np.array([count for _, count in common])


def pairs_in(codes: np.ndarray) -> Pairs:
    starts = np.append(np.arange(0, len(codes), SENTENCE), len(codes))
    return Pairs(*make_pairs(codes, starts, WINDOW)[:2])


class CountedSampler:
    """Poisson sampling that counts the steps and pairs it was asked for: those of this process alone."""

    def __init__(self, pairs: Pairs, size: int):
        self.sampler, self.steps, self.pairs = PoissonSampler(pairs.units, size / pairs.units), 0, 0

    def __repr__(self) -> str:  # a saved state is of the same sampler
        return repr(self.sampler)

    def draw(self, step: int, generator: np.random.Generator) -> np.ndarray:
        """Return the pairs of a step."""
        units = self.sampler.draw(step, generator)
        self.steps, self.pairs = self.steps + 1, self.pairs + len(units)
        return units


def training(pairs: Pairs, counts: np.ndarray, sampler: CountedSampler, size: int, deviation: float) -> Training:
    how = Descent(RATE / size, 1.0, deviation)
    return Training(pairs, counts**0.75, sampler, how, dimensions=DIMENSIONS, negatives=NEGATIVES, seed=0)


def epoch(pairs: Pairs, counts: np.ndarray, size: int, folder: Path | None) -> float:
    """Train on as many pairs as there are, and return the minutes it takes."""
    sampler, steps = CountedSampler(pairs, size), round(pairs.units / size)
    run = training(pairs, counts, sampler, size, 1.0)
    if folder:
        folder /= f"{pairs.units}_pairs_in_batches_of_{size}"  # the state of another run is no use
        folder.mkdir(parents=True, exist_ok=True)
    taken = seconds(lambda: run.run(steps, folder=folder))
    if folder:
        (folder / STATE).unlink(missing_ok=True)
    print(f"{sampler.steps} of {steps} steps, {sampler.pairs} pairs: {taken:.1f} s", end=", ")
    print(f"{taken / sampler.pairs * 1e6:.2f} s per million pairs", flush=True)
    return taken / sampler.steps * steps / 60


def race(codes: np.ndarray, counts: np.ndarray, size: int, rounds: int) -> None:
    """Time ours with noise, ours without, and gensim on some tokens, and print pairs a second and ratios."""
    from gensim.models import Word2Vec

    pairs, names = pairs_in(codes), [str(number) for number in range(len(counts))]
    texts = [codes[start : start + SENTENCE] for start in range(0, len(codes), SENTENCE)]
    sentences = [[names[code] for code in text if code >= 0] for text in texts]
    how = {"vector_size": DIMENSIONS, "window": WINDOW, "negative": NEGATIVES, "shrink_windows": False}
    gensim = Word2Vec(sg=1, sample=0, min_count=1, workers=1, **how)
    gensim.build_vocab(sentences)
    runs = {
        name: training(pairs, counts, CountedSampler(pairs, size), size, deviation)
        for name, deviation in (("ours", 1.0), ("ours without noise", 0.0))
    }
    steps = round(pairs.units / size)
    sides = {name: lambda run=run: [run.advance() for _ in range(steps)] for name, run in runs.items()}
    sides["gensim"] = lambda: gensim.train(sentences, total_examples=len(sentences), epochs=1)
    times = alternate(rounds, **sides)
    learnt = dict.fromkeys(runs, steps * size) | {"gensim": sum(2 * len(s) - 2 for s in sentences if s)}
    rates = {name: learnt[name] / taken for name, taken in times.items()}
    for name, rate in rates.items():
        print(f"{name}: {rate:,.0f} pairs a second, {rate / rates['gensim']:.2f} of gensim's")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=TEXT8)
    parser.add_argument("--part", type=int, default=2_000_000, help="tokens that are timed against gensim")
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    PROGRESS.addHandler(logging.StreamHandler(sys.stdout))
    codes, counts = coded(arguments.tokens)
    pairs = pairs_in(codes)
    print(
        f"{len(codes)} tokens, {len(counts)} words, {pairs.units} pairs in batches of about {arguments.size}",
        flush=True,
    )
    minutes = epoch(pairs, counts, arguments.size, arguments.folder)
    race(codes[: arguments.part], counts, arguments.size, arguments.rounds)
    verdict("private_epoch_minutes", minutes, 15, at_most=True)


if __name__ == "__main__":
    main()
