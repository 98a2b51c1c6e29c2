"""Train skip-gram privately: Algorithm 1-a of Vu, Tran and Jiang (2019), with the clipping that its listing omits.

Every step changes both tables::

    table <- table - rate * (sum over the batch of clip(gradient of a unit, C) + N(0, deviation**2 I))

A run that is interrupted resumes from its saved state: the same batches, negatives and noise.
"""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leakboard.errors import one_line
from leakboard.interfaces import Floats
from leakboard.logs import log_progress
from leakboard.models.skip_gram.noisy_tables import Descent, NoiseStream, NoisyTables
from leakboard.models.skip_gram.pairs import Pairs
from leakboard.models.skip_gram.sampling import PaperAccounting, Participation, Sampler
from leakboard.randomness import derived_seed, stream
from leakboard.store import digest, write_file

STATE = "training.npz"
LOG_SECONDS, SAVE_SECONDS = 5.0, 60.0
"""Intervals between log lines and between saved states (seconds)."""


class Training:
    """A training run."""

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
            pairs: training data.
            frequencies: float64 (V,), weight of each word in the draw of the negatives.
            sampler: chooses the units of each step.
            descent: rule of a step.
            dimensions: of the vectors.
            negatives: number drawn for each pair, independently; the true context may be among them.
            seed: of all randomness.
            participation: which of the sampled units still take part; None: all.
        """
        self.pairs, self.sampler, self.descent, self.negatives = pairs, sampler, descent, negatives
        self.participation = participation
        self.step = 0
        self.published: dict[int, Floats] = {}
        self.cumulative = np.cumsum(frequencies) / np.sum(frequencies)
        self.tables = NoisyTables.start(len(frequencies), dimensions, stream(seed, "start"))
        self.generators = {name: stream(seed, name) for name in ("lots", "negatives")}
        """Draw the units and the negatives. Their names are part of every published number."""
        self.identity = digest(
            {"seed": seed, "descent": repr(descent), "sampler": repr(sampler), "pairs": len(pairs.centres)}
        )
        """A saved state must have the same. The engine already keeps states apart by code, options and data."""
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
        self.tables.descend(centres, targets, starts, self.descent, self.noise)
        self.step += 1

    def run(self, steps: int, checkpoints: Sequence[int] = (), folder: Path | None = None) -> dict[int, Floats]:
        """Train up to ``steps`` steps, and return the published input vectors by step, each float32 (V, d).

        Args:
            steps: number of steps since the start of the run; its vectors are published.
            checkpoints: earlier steps to publish too.
            folder: where the state is saved and resumed from; None saves nothing.

        Raises:
            FloatingPointError: the vectors are not finite.
        """
        if folder and (folder / STATE).exists():
            try:
                self.load(folder)
                log_progress(f"resumes after step {self.step} of {steps}")
            except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile) as error:
                log_progress(f"starts again: the saved state cannot be used ({one_line(error)[:80]})")
        wanted = {step for step in checkpoints if step <= steps} | {steps}
        first, start = self.step, time.monotonic()
        logged = saved = start
        while True:
            if self.step in wanted and self.step not in self.published:
                vectors = self.tables.flush_noise(self.noise)
                if not np.isfinite(vectors).all():
                    raise FloatingPointError(f"vectors are not finite after {self.step} steps: lower the learning rate")
                self.published[self.step] = vectors
            if self.step >= steps:
                return self.published
            self.advance()
            now = time.monotonic()
            if self.step == first + 1:  # this step waited for the compiler
                start = logged = now
            if now - logged > LOG_SECONDS:
                left = (now - start) / (self.step - first - 1) * (steps - self.step)
                log_progress(f"step {self.step}/{steps}, about {left:.0f} s left")
                logged = now
            if folder and now - saved > SAVE_SECONDS:
                self.save(folder)
                saved = time.monotonic()

    def save(self, folder: Path) -> None:
        """Write the state, noise that is still due included, in one piece. It is no private release.

        Raises:
            StorageError: the disk is full, or the folder cannot be written.
        """
        state = {
            "run": self.identity,
            "step": self.step,
            "target_variance": self.tables.target_variance,
            "block": self.noise.block,
            "generators": {name: generator.bit_generator.state for name, generator in self.generators.items()},
        }
        arrays: dict[str, Any] = {"values": self.tables.values, "applied_variance": self.tables.applied_variance}
        if isinstance(self.participation, PaperAccounting):
            arrays["spent"] = self.participation.spent
        arrays |= {f"after {step}": vectors for step, vectors in self.published.items()}
        content = io.BytesIO()
        np.savez(content, state=np.frombuffer(json.dumps(state).encode(), np.uint8), **arrays)
        write_file(folder / STATE, content.getvalue())

    def load(self, folder: Path) -> None:
        """Resume from the state that `save` wrote; an error leaves the run as it was.

        Raises:
            ValueError, OSError, KeyError, EOFError, BadZipFile: the file is damaged, or of another run.
        """
        with np.load(folder / STATE, allow_pickle=False) as file:
            arrays = dict(file)
        state: dict[str, Any] = json.loads(arrays["state"].tobytes())
        if state["run"] != self.identity:
            raise ValueError("it is of another run")
        tables = NoisyTables(arrays["values"], arrays["applied_variance"], state["target_variance"])
        published = {int(name.split()[1]): array for name, array in arrays.items() if name.startswith("after ")}
        generators = {name: np.random.default_rng() for name in self.generators}
        for name, generator in generators.items():
            generator.bit_generator.state = state["generators"][name]
        step, block = int(state["step"]), int(state["block"])
        if isinstance(self.participation, PaperAccounting):
            self.participation.spent[:] = arrays["spent"]
        self.tables, self.generators, self.published = tables, generators, published
        self.step, self.noise.block = step, block
