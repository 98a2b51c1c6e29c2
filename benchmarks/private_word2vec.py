"""Compare a private step of skip-gram, with noise drawn late, with Opacus: ghost clipping, dense noise (Linux only).

Both sides take the same steps, which is checked: 512 pairs, 5 negatives, words by Zipf's law, two tables of V x 100,
clipping norm 1, noise multiplier 1.

- Ours has one thread. Its noise is completed at publication; that is timed apart and counts in our peak memory, which
  is measured in a process of its own.
- Opacus has the faster of one and two threads. Its loss is summed, gradients are freed rather than zeroed, and malloc
  keeps memory (4 times as fast at V = 1,000,000). It cannot add noise to sparse gradients.
"""

import ctypes
import itertools
import multiprocessing
import warnings
from pathlib import Path

import numpy as np
import torch
from _timing import alternate, seconds, verdict
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from torch.nn.functional import logsigmoid

from leakboard.models.skip_gram.noisy_tables import Descent, NoiseStream, NoisyTables

PAIRS, COLUMNS, DIMENSIONS, CLIPPING_NORM, RATE = 512, 1 + 1 + 5, 100, 1.0, 0.05 / 512
OUR_STEPS, BATCHES, THREADS = 500, 100, (1, 2)
TARGETS = {10_000: 5, 30_000: 15, 1_000_000: 300}
"""How many times as fast our step must be, by the number of words."""


def zipf_batches(words: int) -> np.ndarray:
    """Return batches, int32 (BATCHES, PAIRS, COLUMNS); columns are the centre, the context and the negatives."""
    shares = 1 / np.arange(1, words + 1)
    return np.random.default_rng(0).choice(words, (BATCHES, PAIRS, COLUMNS), p=shares / shares.sum()).astype(np.int32)


class Ours:
    """LeakBoard's tables, with batches that are used over and over; a step returns the gradient norms of its pairs."""

    def __init__(self, words: int, batches: np.ndarray):
        self.tables, self.noise = NoisyTables.start(words, DIMENSIONS, np.random.default_rng(0)), NoiseStream(1)
        self.starts = np.arange(PAIRS + 1)
        self.batches = itertools.cycle([(batch[:, 0].copy(), batch[:, 1:].copy()) for batch in batches])

    def step(self, multiplier: float = 1.0, rate: float = RATE) -> np.ndarray:  # noqa: D102
        descent = Descent(rate, CLIPPING_NORM, multiplier * CLIPPING_NORM)
        return self.tables.descend(*next(self.batches), self.starts, descent, self.noise)


class Theirs:
    """The same steps in Opacus. Each table is looked up once in a step, as ghost clipping demands."""

    def __init__(self, words: int, batches: np.ndarray):
        warnings.filterwarnings("ignore", "Full backward hook")
        options = {"max_grad_norm": CLIPPING_NORM, "loss_reduction": "sum"}
        self.tables = torch.nn.ModuleList(torch.nn.Embedding(words, DIMENSIONS) for _ in range(2))
        self.module = GradSampleModuleFastGradientClipping(self.tables, use_ghost_clipping=True, **options)
        plain = torch.optim.SGD(self.module.parameters(), lr=RATE)
        self.optimizer = DPOptimizerFastGradientClipping(
            plain, noise_multiplier=1.0, expected_batch_size=PAIRS, **options
        )
        self.loss = DPLossFastGradientClipping(self.module, self.optimizer, torch.nn.Identity(), loss_reduction="sum")
        self.batches = itertools.cycle(
            [(batch[:, 0].clone(), batch[:, 1:].clone()) for batch in torch.from_numpy(batches).long()]
        )

    def step(self, multiplier: float = 1.0, rate: float = RATE) -> np.ndarray:  # noqa: D102
        self.optimizer.noise_multiplier, self.optimizer.param_groups[0]["lr"] = multiplier, rate
        centre, targets = (table(rows) for table, rows in zip(self.tables, next(self.batches), strict=True))
        scores = torch.bmm(targets, centre.unsqueeze(2)).squeeze(2)
        self.loss(-logsigmoid(scores[:, 0]) - logsigmoid(-scores[:, 1:]).sum(1)).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return self.module.per_sample_gradient_norms.numpy()


def walk(side: Ours | Theirs, steps: int, threads: int = 1) -> None:
    """Take steps with this many threads."""
    torch.set_num_threads(threads)
    for _ in range(steps):
        side.step()


def check(ours: Ours, theirs: Theirs, batch: np.ndarray) -> None:
    """Give both sides the same random tables, take a step without noise, and compare the tables."""
    np.random.default_rng(1).standard_normal(out=ours.tables.values, dtype=np.float32)
    ours.tables.values *= np.float32(0.058)  # about half of the pairs are clipped
    halves = list(zip(np.split(ours.tables.values, 2), (t.weight.data.numpy() for t in theirs.tables), strict=True))
    [np.copyto(table, half) for half, table in halves]
    norms, others = ours.step(0, 0.1), theirs.step(0, 0.1)
    apart, far = max(np.abs(half - table).max() for half, table in halves), np.abs(norms / others - 1)
    twice, clipped = (np.diff(np.sort(batch[:, 1:]), axis=1) == 0).any(1), (norms > CLIPPING_NORM).sum()
    print(f"  without noise, {clipped} of {PAIRS} pairs clipped: tables differ by {apart:.1e} at most, norms by")
    print(f"  {far.max():.1e} of themselves; by {far[twice].max():.1e} in the {twice.sum()} pairs with a word twice")
    assert max(apart, far.max()) < 1e-5


def compare_steps(words: int, rounds: int) -> None:
    """Time a step of each side."""
    batches, steps = zipf_batches(words), max(1, 300_000 // words)
    check(ours := Ours(words, batches), theirs := Theirs(words, batches), batches[0])
    sides = {f"opacus, {steps} steps, {n} threads": lambda n=n: walk(theirs, steps, n) for n in THREADS}
    mine, *others = alternate(rounds, ours=lambda: walk(ours, OUR_STEPS), **sides).values()
    mine, other = mine / OUR_STEPS, min(others) / steps
    late = seconds(lambda: ours.tables.flush_noise(ours.noise))
    print(f"  a step: ours {1000 * mine:.2f} ms, opacus {1000 * other:.1f} ms; completing the noise {late:.2f} s")
    verdict(f"private_step_{words}", other / mine, TARGETS.get(words, 1))


def compare_sizes(small: int, large: int, rounds: int) -> None:
    """Time our step on two vocabularies: on the same batches, and on batches of their own."""
    kinds = {"small": (small, small), "same": (large, small), "own": (large, large)}
    sides = {name: Ours(words, zipf_batches(source)) for name, (words, source) in kinds.items()}
    times = alternate(rounds, **{name: lambda side=side: walk(side, OUR_STEPS) for name, side in sides.items()})
    rows = [
        len({*batch[:, 0]}) + len({*batch[:, 1:].flat}) for batch in (zipf_batches(small)[0], zipf_batches(large)[0])
    ]
    print(
        f"  each with its own batches (a batch reads {rows[0]} and {rows[1]} rows): {times['own'] / times['small']:.2f}"
    )
    verdict("private_step_scaling", times["same"] / times["small"], 1.5, at_most=True)


def peaks(side: type[Ours] | type[Theirs], words: int) -> list[float]:
    """Return the peak memory (MiB) of this process with tables of 100 words, mostly imports, and of ``words`` words."""
    mebibytes = []
    for size in (100, words):
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak (Linux)
        walk(run := side(size, zipf_batches(size)), 5)
        if isinstance(run, Ours):
            run.tables.flush_noise(run.noise)
        mebibytes.append(int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024)
    return mebibytes


def compare_memory(words: int) -> None:
    """Compare the peak memory of both sides, imports subtracted."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
        mine, other = fresh.starmap(peaks, [(Ours, words), (Theirs, words)], 1)
    print("  peak MiB with V = 100 and {}: ours {:.0f}, {:.0f}; opacus {:.0f}, {:.0f}".format(words, *mine, *other))
    verdict(f"private_step_memory_{words}", (mine[1] - mine[0]) / (other[1] - other[0]), 1, at_most=True)


def main(largest: int = max(TARGETS), rounds: int = 7) -> None:
    """Compare on all vocabularies up to ``largest``."""
    [ctypes.CDLL(None).mallopt(*option) for option in ((-4, 0), (-1, -1))]  # M_MMAP_MAX, M_TRIM_THRESHOLD
    vocabularies = [words for words in TARGETS if words <= largest]
    for words in vocabularies:
        compare_steps(words, rounds)
        compare_memory(words)
    compare_sizes(min(vocabularies), max(vocabularies), rounds)
