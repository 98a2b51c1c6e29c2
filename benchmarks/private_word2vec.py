"""A private step of skip-gram with noise drawn late, against Opacus with ghost clipping and dense noise (Linux only).

    python benchmarks/private_word2vec.py [--vocabularies 10000 30000 1000000] [--rounds 7] [--threads 1 2]

Both sides take the same steps, which is checked: 512 pairs, 5 negatives, words by Zipf's law, two tables of V x 100,
clipping norm 1, noise multiplier 1. Ours has one thread; Opacus the faster of ``--threads``, its loss summed, gradients
freed, not zeroed, memory kept by malloc (4 times as fast at V = 1,000,000); it cannot add noise to sparse gradients.
Our noise is completed at publishing, which is timed by itself and part of our peak memory (of a process of its own).
"""

import argparse
import ctypes
import itertools
import multiprocessing
import warnings
from pathlib import Path

import numpy as np
import torch
from _sides import alternate, seconds, verdict
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from torch.nn.functional import logsigmoid

from leakboard.models.skip_gram.noise import NoiseStream
from leakboard.models.skip_gram.noisy_tables import NoisyTables, Workspace

PAIRS, COLUMNS, DIMENSIONS, CLIPPING_NORM, RATE = 512, 1 + 1 + 5, 100, 1.0, 0.05 / 512
OUR_STEPS, BATCHES, TARGETS = 500, 100, {10_000: 5, 30_000: 15, 1_000_000: 300}


def zipf_batches(words: int) -> np.ndarray:
    """Return batches, int32 (BATCHES, PAIRS, COLUMNS): of each pair the centre, the context, the negatives."""
    shares = 1 / np.arange(1, words + 1)
    return np.random.default_rng(0).choice(words, (BATCHES, PAIRS, COLUMNS), p=shares / shares.sum()).astype(np.int32)


class Ours:
    """LeakBoard's tables, and batches to step through over and over; a step returns its pairs' gradient norms."""

    def __init__(self, words: int, batches: np.ndarray):
        self.tables, self.noise = NoisyTables.start(words, DIMENSIONS, np.random.default_rng(0)), NoiseStream(1)
        self.workspace, self.starts = Workspace(self.tables), np.arange(PAIRS + 1)
        self.batches = itertools.cycle([(batch[:, 0].copy(), batch[:, 1:].copy()) for batch in batches])

    def step(self, multiplier: float = 1.0, rate: float = RATE) -> np.ndarray:  # noqa: D102
        how = {"clipping_norm": CLIPPING_NORM, "each_table": False, "deviation": multiplier * CLIPPING_NORM}
        return self.workspace.descend(*next(self.batches), self.starts, rate=rate, noise=self.noise, **how)


class Theirs:
    """The same in Opacus; each table is looked up once a step, as ghost clipping demands."""

    def __init__(self, words: int, batches: np.ndarray):
        warnings.filterwarnings("ignore", "Full backward hook")
        how = {"max_grad_norm": CLIPPING_NORM, "loss_reduction": "sum"}
        self.tables = torch.nn.ModuleList(torch.nn.Embedding(words, DIMENSIONS) for _ in range(2))
        self.module = GradSampleModuleFastGradientClipping(self.tables, use_ghost_clipping=True, **how)
        plain = torch.optim.SGD(self.module.parameters(), lr=RATE)
        self.optimizer = DPOptimizerFastGradientClipping(plain, noise_multiplier=1.0, expected_batch_size=PAIRS, **how)
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
    torch.set_num_threads(threads)
    for _ in range(steps):
        side.step()


def check(ours: Ours, theirs: Theirs, batch: np.ndarray) -> None:
    """Give both the same random tables, take a step without noise, and compare."""
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


def race(words: int, rounds: int, threads: list[int]) -> None:
    batches, steps = zipf_batches(words), max(1, 300_000 // words)
    check(ours := Ours(words, batches), theirs := Theirs(words, batches), batches[0])
    sides = {f"opacus, {steps} steps, {n} threads": lambda n=n: walk(theirs, steps, n) for n in threads}
    mine, *others = alternate(rounds, ours=lambda: walk(ours, OUR_STEPS), **sides).values()
    mine, other = mine / OUR_STEPS, min(others) / steps
    late = seconds(lambda: ours.tables.flush_noise(ours.noise))
    print(f"  a step: ours {1000 * mine:.2f} ms, opacus {1000 * other:.1f} ms; completing the noise {late:.2f} s")
    verdict(f"private_step_{words}", other / mine, TARGETS.get(words, 1))


def scaling(small: int, large: int, rounds: int) -> None:
    """Time our step on two vocabularies: on the same batches, and on the batches of each."""
    kinds = {"small": (small, small), "same": (large, small), "own": (large, large)}
    sides = {name: Ours(words, zipf_batches(source)) for name, (words, source) in kinds.items()}
    taken = alternate(rounds, **{name: lambda side=side: walk(side, OUR_STEPS) for name, side in sides.items()})
    rows = [
        len({*batch[:, 0]}) + len({*batch[:, 1:].flat}) for batch in (zipf_batches(small)[0], zipf_batches(large)[0])
    ]
    print(
        f"  each with its own batches (a batch reads {rows[0]} and {rows[1]} rows): {taken['own'] / taken['small']:.2f}"
    )
    verdict("private_step_scaling", taken["same"] / taken["small"], 1.5, at_most=True)


def peaks(side: type[Ours] | type[Theirs], words: int) -> list[float]:
    """Return this process's peak memory in MiB with tables of 100 words, imports above all, and with these tables."""
    mebibytes = []
    for size in (100, words):
        Path("/proc/self/clear_refs").write_text("5")  # Linux forgets the peak so far
        walk(run := side(size, zipf_batches(size)), 5)
        if isinstance(run, Ours):
            run.tables.flush_noise(run.noise)
        mebibytes.append(int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024)
    return mebibytes


def memory(words: int) -> None:
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
        mine, other = fresh.starmap(peaks, [(Ours, words), (Theirs, words)], 1)
    print("  peak MiB with V = 100 and {}: ours {:.0f}, {:.0f}; opacus {:.0f}, {:.0f}".format(words, *mine, *other))
    verdict(f"private_step_memory_{words}", (mine[1] - mine[0]) / (other[1] - other[0]), 1, at_most=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabularies", type=int, nargs="+", default=list(TARGETS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    [ctypes.CDLL(None).mallopt(*option) for option in ((-4, 0), (-1, -1))]  # M_MMAP_MAX, M_TRIM_THRESHOLD
    for words in arguments.vocabularies:
        race(words, arguments.rounds, arguments.threads)
        memory(words)
    scaling(min(arguments.vocabularies), max(arguments.vocabularies), arguments.rounds)


if __name__ == "__main__":
    main()
