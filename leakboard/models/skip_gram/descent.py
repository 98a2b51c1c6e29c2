"""Private training of skip-gram: Algorithm 1-a of Vu, Tran and Jiang (2019), with the clipping that its listing omits.

theta <- theta - rate * (sum over the batch of clip(gradient of a unit, C) + N(0, deviation**2 I)), for both tables.

A run goes on from its saved state as if it had not stopped: the same batches, negatives and noise.
"""

from __future__ import annotations

import json
import os
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leakboard.errors import one_line
from leakboard.interfaces import Floats
from leakboard.logs import log_progress
from leakboard.models.skip_gram.noise import NoiseStream
from leakboard.models.skip_gram.noisy_tables import NoisyTables, Workspace
from leakboard.models.skip_gram.pairs import Pairs
from leakboard.models.skip_gram.participation import Participation
from leakboard.models.skip_gram.sampling import Sampler
from leakboard.randomness import derived_seed, stream
from leakboard.store import digest

STATE = "training.npz"
LOG, SAVE = 5.0, 60.0
"""How often progress is logged and the state is saved (seconds)."""


@dataclass(frozen=True)
class Descent:
    """What a step does with the gradients of its batch."""

    rate: float
    """Learning rate of the sum of a batch's contributions."""
    clipping_norm: float
    """C; infinite to clip nothing."""
    deviation: float
    """Standard deviation of the noise on every coordinate of the sum; 0 for none."""
    of_batch: bool = False
    """Clip the sum of the whole batch, each table's part by itself, not every unit's (a broken control)."""


class Training:
    """A run that is under way."""

    def __init__(
        self,
        pairs: Pairs,
        frequencies: np.ndarray,
        sampler: Sampler,
        descent: Descent,
        *,
        dimensions: int,
        negatives: int,
        seed: int,
        participation: Participation | None = None,
    ):
        """Start a run.

        Args:
            pairs: what is learnt from.
            frequencies: float (V,), how likely each word is drawn as a negative, up to a factor.
            sampler: chooses the units of each step.
            descent: what a step does.
            dimensions: of the vectors.
            negatives: drawn for each pair, each by itself; the true context may be among them.
            seed: of everything.
            participation: says which of the sampled units still take part; None: all do.
        """
        self.pairs, self.sampler, self.descent, self.negatives = pairs, sampler, descent, negatives
        self.participation = participation
        self.step = 0
        self.published: dict[int, Floats] = {}
        self.cumulative = np.cumsum(frequencies) / np.sum(frequencies)
        self.tables = NoisyTables.start(len(frequencies), dimensions, stream(seed, "start"))
        self.workspace = Workspace(self.tables)
        self.generators = {name: stream(seed, name) for name in ("lots", "negatives")}
        """Of the sampled units and of the negatives; their names are part of every published number."""
        self.identity = digest(
            {"seed": seed, "descent": repr(descent), "sampler": repr(sampler), "pairs": len(pairs.centres)}
        )
        """What a saved state must be of; the engine keeps it apart by code, options and data besides."""
        self.noise = NoiseStream(derived_seed(seed, "noise") << 31 | derived_seed(seed, "noise", "more"))

    def advance(self) -> None:
        """Take one step."""
        units = self.sampler.draw(self.step, self.generators["lots"])
        if self.participation:
            units = units[self.participation(units, self.step)]
        centres, contexts, starts = self.pairs.batch(units)
        drawn = self.generators["negatives"].random((len(centres), self.negatives))
        targets = np.empty((len(centres), 1 + self.negatives), np.int32)
        targets[:, 0] = contexts
        targets[:, 1:] = np.minimum(np.searchsorted(self.cumulative, drawn, "right"), len(self.cumulative) - 1)
        how = self.descent
        self.workspace.descend(
            centres,
            targets,
            starts[[0, -1]] if how.of_batch else starts,
            rate=how.rate,
            clipping_norm=how.clipping_norm,
            each_table=how.of_batch,
            deviation=how.deviation,
            noise=self.noise,
        )
        self.step += 1

    def publish(self) -> Floats:
        """Return the input vectors with all of their noise, float32 (V, d), and keep them as those of this step.

        Raises:
            FloatingPointError: they are not finite.
        """
        vectors = self.tables.flush_noise(self.noise)
        if not np.isfinite(vectors).all():
            raise FloatingPointError(f"the vectors are not finite after {self.step} steps: lower the learning rate")
        self.published[self.step] = vectors
        return vectors

    def run(self, steps: int, checkpoints: Sequence[int] = (), folder: Path | None = None) -> dict[int, Floats]:
        """Train up to ``steps`` steps, and return what is published after them and after each of the checkpoints.

        Args:
            steps: from the start of the run.
            checkpoints: steps whose vectors are published too.
            folder: where the state is saved now and then, and taken up again; None saves nothing.
        """
        if folder and (folder / STATE).exists():
            try:
                self.load(folder)
                log_progress(f"goes on after step {self.step} of {steps}")
            except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile) as error:
                log_progress(f"starts anew: the saved state is of no use ({one_line(error)[:80]})")
        wanted = {step for step in checkpoints if step <= steps} | {steps}
        logged = saved = start = time.monotonic()
        first = self.step
        compiled = False
        while True:
            if self.step in wanted and self.step not in self.published:
                self.publish()
            if self.step >= steps:
                return self.published
            self.advance()
            now = time.monotonic()
            if not compiled:  # the first step waits for the compiler
                logged = start = now
                first, compiled = self.step, True
            if now - logged > LOG:
                left = (now - start) / max(1, self.step - first) * (steps - self.step)
                log_progress(f"step {self.step}/{steps}, about {left:.0f} s left")
                logged = now
            if folder and now - saved > SAVE:
                self.save(folder)
                saved = time.monotonic()

    def save(self, folder: Path) -> None:
        """Write the state, the noise that is still to be added included, in one piece; it is no private release."""
        state = {
            "run": self.identity,
            "step": self.step,
            "target_variance": self.tables.target_variance,
            "block": self.noise.block,
            "generators": {name: generator.bit_generator.state for name, generator in self.generators.items()},
        }
        arrays: dict[str, Any] = {"values": self.tables.values, "applied_variance": self.tables.applied_variance}
        arrays |= {"spent": self.participation.spent} if self.participation else {}
        arrays |= {f"after {step}": vectors for step, vectors in self.published.items()}
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".{os.getpid()}.{STATE}"  # two runs may train the same at once
        with temporary.open("wb") as file:
            np.savez(file, state=np.frombuffer(json.dumps(state).encode(), np.uint8), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, folder / STATE)

    def load(self, folder: Path) -> None:
        """Go on from what `save` wrote; the run is as it was where that cannot be read whole.

        Raises:
            ValueError, OSError, KeyError, EOFError, BadZipFile: it is not whole, or of another run.
        """
        with np.load(folder / STATE, allow_pickle=False) as file:
            arrays = dict(file)
        state: dict[str, Any] = json.loads(arrays["state"].tobytes())
        if state["run"] != self.identity:
            raise ValueError("it is of another run")
        tables = NoisyTables(arrays["values"], arrays["applied_variance"], state["target_variance"])
        spent = arrays["spent"] if self.participation else None
        published = {int(name.split()[1]): array for name, array in arrays.items() if name.startswith("after ")}
        generators = {name: np.random.default_rng() for name in self.generators}
        for name, generator in generators.items():
            generator.bit_generator.state = state["generators"][name]
        step, block = int(state["step"]), int(state["block"])
        if self.participation and spent is not None:
            self.participation.spent[:] = spent
        self.tables, self.generators, self.published = tables, generators, published
        self.workspace, self.step, self.noise.block = Workspace(tables), step, block
