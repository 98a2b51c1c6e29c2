"""Release vectors that are written as texts, such as those of the dataset zeros_and_ones, by a bare mechanism.

Three mechanisms are correct. The others are controls: an audit must find the broken ones, and must not accuse the sound
ones. Six controls are those of Habernal (2022, experiment.py) (`leakboard.privacy.mechanisms.broken`). All mechanisms
claim epsilon for a change of the whole vector. Its coordinates are in [0, 1].
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from leakboard.claims import ReleaseClaim
from leakboard.data.corpora import SPLITS, build_corpus
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, FittedVictim, Floats, Publication, Texts, Victim
from leakboard.mechanism import MechanismDefaults
from leakboard.privacy.mechanisms import broken, broken_calls
from leakboard.privacy.mechanisms.cube import CubeRelease
from leakboard.privacy.mechanisms.textbook import Positive
from leakboard.suite.options import victim

CONTROLS: Mapping[str, Any] = {
    "copy": broken.Copy,
    "dptext": broken.DpTextSampler,
    "dptext_without_nan": broken.DpTextSamplerWithoutNan,
    "adept": broken.AdeptSensitivity,
    "half_scale": broken.HalfScale,
    "averaged": broken.Averaged,
    "shared_draw": broken.SharedDraw,
    "fixed_seed": broken.FixedSeed,
    "random": broken.RandomBits,
    "halved_output": broken.HalvedOutput,
    "shared_by_rows": broken_calls.SharedByRows,
    "few_seeds": broken_calls.FewSeeds,
    "scaled_by_rows": broken_calls.ScaledByRows,
    "shared_and_own": broken_calls.SharedAndOwn,
}
"""Broken and sound controls by name. `broken_calls.SeedUsedTwice` is not here: it must remember the call before, and a
fitted victim has no memory."""
NAMES = ("laplace", "discrete_laplace", "gaussian", *CONTROLS)


@victim(revision=1)
class Mechanism(Victim):
    name: Literal[NAMES]  # type: ignore[valid-type]
    """The first three are correct. Of the controls, ``random``, ``halved_output`` and ``shared_and_own`` are sound. In
    ``shared_by_rows``, ``few_seeds`` and ``scaled_by_rows`` only the other rows of a call reveal a row: `dp_audit`
    finds this by its option ``calls``."""
    epsilon: Positive
    """Epsilon that is claimed for one release."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-3
    """Delta that ``gaussian`` claims; the others claim 0."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "releases")
    encodes_parts: ClassVar[bool] = False

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return the textbook mechanism."""
        return cls(name="laplace", epsilon=1.0)

    @classmethod
    def example_corpus(cls) -> Corpus:
        """Return texts with two vectors of four coordinates: all zeros and all ones."""
        import pandas as pd

        texts = ["0 0 0 0", "1 1 1 1"]
        splits = {split: pd.DataFrame({"text": texts, "row": [2 * i, 2 * i + 1]}) for i, split in enumerate(SPLITS)}
        return build_corpus("spelled_vectors", splits, [], None)

    def fit(self, corpus: Corpus, seed: int) -> "FittedMechanism":
        """Read the dimension from the texts.

        Raises:
            RequestError: a text is not a vector, or the vectors have different lengths.
        """
        return FittedMechanism(self, len(_vectors(corpus.texts("train"))[0]))

    def load(self, folder: Path) -> "FittedMechanism":
        """Return the mechanism with the saved dimension."""
        return FittedMechanism(self, int((folder / "dimension.txt").read_text("utf-8")))


def _vectors(texts: Texts) -> Floats:
    try:
        rows = [[float(number) for number in text.split()] for text in texts]
    except ValueError as error:
        raise RequestError(f"mechanism: a text does not spell a vector ({error}); use zeros_and_ones") from None
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        raise RequestError(
            f"mechanism: texts spell vectors of {sorted({len(row) for row in rows})} numbers, not of one length"
        )
    vectors = np.array(rows, np.float32)
    if not ((vectors >= 0) & (vectors <= 1)).all():
        raise RequestError("mechanism: a text spells a number outside [0, 1], where its sensitivity does not hold")
    return vectors


@dataclass(frozen=True)
class FittedMechanism(MechanismDefaults, FittedVictim):
    options: Mechanism
    dimension: int

    @property
    def mechanism(self) -> "FittedMechanism":
        """The fitted victim itself is the mechanism."""
        return self

    @property
    def epsilon(self) -> float:
        """Claimed."""
        return self.options.epsilon

    @property
    def delta(self) -> float:
        """Claimed."""
        return self.options.delta if self.options.name == "gaussian" else 0.0

    @property
    def _running(self) -> Any:
        if self.options.name in CONTROLS:
            return CONTROLS[self.options.name](self.epsilon)
        family: Any = self.options.name
        calibration: Any = "l2" if family == "gaussian" else "l1"
        return CubeRelease(self.dimension, self.epsilon, family, calibration, "independent", self.delta)

    def release(self, values: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        """Release every row of ``values``, float (n, d)."""
        return self._running.release(values, generator)

    def log_ratio(self, outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64] | None:
        """Return ln p(output | first) - ln p(output | second) of each row, or None if unknown."""
        ratio: NDArray[np.float64] | None = self._running.log_ratio(outputs, first, second)
        return ratio

    @property
    def claim(self) -> ReleaseClaim:
        """The claimed and the proved epsilon."""
        running = self._running
        bound = f"{math.sqrt(self.dimension):.4g} in L2" if self.delta else f"{self.dimension} in L1"
        assumed = getattr(running, "assumed", bound)
        proved = running.proved(self.dimension) if self.options.name in CONTROLS else running.proved
        return ReleaseClaim(self.epsilon, self.delta, "vector", self.options.name, assumed, proved)

    def inputs(self, texts: Texts) -> Floats:
        """Return the vectors that the texts spell, float32 (n, d)."""
        return _vectors(texts)

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return releases of the vectors that the texts spell."""
        return self.release(_vectors(texts), rng).astype(np.float32)

    def save(self, folder: Path) -> None:
        """Write the dimension."""
        (folder / "dimension.txt").write_text(str(self.dimension), encoding="utf-8")
