"""Compress vectors as stores do to save memory. This is no privacy protection: it has no key and no claim.

| recipe | what is stored | the query |
|---|---|---|
| `Int8` | one of 256 levels for each coordinate | not compressed |
| `ProductQuantisation` | the nearest of 2^bits centres for each part of the vector | not compressed |
| `Binary` | the sign of each coordinate | signs too: the cosine of signs is 1 - 2 h / d at Hamming distance h |
| `Truncation` | the first coordinates | truncated too |

Vectors that are not compressed search compressed ones (asymmetric search), as in Faiss. The published vector is what
the code stands for, so that cosines of published vectors are the store's scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from pydantic import Field

from leakboard.errors import RequestError
from leakboard.interfaces import Floats
from leakboard.privacy.protections.protection import FittedProtection, Protection, at_most, protection, unit_length

Count = Annotated[int, Field(ge=1)]


@protection(revision=1)
class Int8(Protection):
    """Rounds each coordinate to 256 levels between its least and largest stored value (Faiss: ``QT_8bit``)."""

    def learn(self, vectors: Floats, rng: Generator) -> FittedInt8:
        """Return the range of each coordinate."""
        low = vectors.min(0)
        return FittedInt8(low, (vectors.max(0) - low) / 255)


@dataclass(frozen=True)
class FittedInt8(FittedProtection):
    """The levels of each coordinate."""

    low: Floats
    """Least level, float32 (d,)."""
    step: Floats
    """Distance of two levels, float32 (d,); 0 for a coordinate that is the same in all stored vectors."""

    def stored(self, vectors: Floats, rng: Generator) -> Any:
        """Return the nearest levels; values outside the range get its ends."""
        codes = np.rint((vectors - self.low) / np.where(self.step > 0, self.step, 1)).clip(0, 255)
        return self.low + codes * self.step

    def query(self, vectors: Floats, rng: Generator) -> Floats:
        """Return the queries as they are."""
        return vectors


@protection(revision=1)
class Binary(Protection):
    """Stores the sign of each coordinate: 1 above 0, else -1 (pgvector: ``binary_quantize``)."""

    def learn(self, vectors: Floats, rng: Generator) -> FittedBinary:
        """Return the signs' threshold, 0; nothing is learned or drawn."""
        return FittedBinary()


@dataclass(frozen=True)
class FittedBinary(FittedProtection):
    """Signs."""

    def stored(self, vectors: Floats, rng: Generator) -> Any:
        """Return signs."""
        return np.where(vectors > 0, np.float32(1), np.float32(-1))


@protection(revision=1)
class ProductQuantisation(Protection):
    """Cuts vectors into parts of equal width, and stores for each part the nearest of its centres (k-means)."""

    subvectors: Count = 32
    """Parts of a vector; they must divide its dimension."""
    bits: Annotated[int, Field(ge=1, le=8)] = 8
    """Bits of the number of a centre: each part has 2^bits centres."""

    def learn(self, vectors: Floats, rng: Generator) -> FittedProductQuantisation:
        """Train the centres.

        Raises:
            RequestError: ``subvectors`` does not divide the dimension, or there are less stored vectors than centres.
        """
        import faiss

        dimension, centres = vectors.shape[1], 2**self.bits
        if dimension % self.subvectors:
            allowed = ", ".join(str(count) for count in range(1, dimension + 1) if dimension % count == 0)
            option = f"product_quantisation.subvectors: {self.subvectors}"
            raise RequestError(f"{option} is not allowed with {dimension} dimensions (allowed: {allowed})")
        most = len(vectors).bit_length() - 1
        at_most("product_quantisation.bits", self.bits, most, f"for {len(vectors)} stored vectors")
        quantiser = _quantiser(dimension, self.subvectors, self.bits)
        quantiser.cp.seed = int(rng.integers(2**31))
        quantiser.cp.min_points_per_centroid = 1  # Faiss prints a warning below
        quantiser.train(np.ascontiguousarray(vectors))
        shape = self.subvectors, centres, dimension // self.subvectors
        return FittedProductQuantisation(faiss.vector_to_array(quantiser.centroids).reshape(shape))


@dataclass(frozen=True)
class FittedProductQuantisation(FittedProtection):
    """The centres of each part."""

    centres: Floats
    """float32 (parts, centres, width of a part)."""

    def stored(self, vectors: Floats, rng: Generator) -> Floats:
        """Return the nearest centres of each part, side by side."""
        import faiss

        parts, centres, width = self.centres.shape
        quantiser = _quantiser(parts * width, parts, centres.bit_length() - 1)
        faiss.copy_array_to_vector(self.centres.ravel(), quantiser.centroids)
        decoded: Floats = quantiser.decode(quantiser.compute_codes(np.ascontiguousarray(vectors)))
        return decoded

    def query(self, vectors: Floats, rng: Generator) -> Floats:
        """Return the queries as they are."""
        return vectors


def _quantiser(dimension: int, parts: int, bits: int) -> Any:
    import faiss

    return faiss.ProductQuantizer(dimension, parts, bits)


@protection(revision=1)
class Truncation(Protection):
    """Stores the first coordinates alone, scaled to length 1, as for Matryoshka models (OpenAI: ``dimensions``)."""

    dimensions: Count
    """Number of coordinates that are kept."""

    def learn(self, vectors: Floats, rng: Generator) -> FittedTruncation:
        """Return the number of coordinates.

        Raises:
            RequestError: ``dimensions`` is above the vectors' dimension.
        """
        at_most("truncation.dimensions", self.dimensions, vectors.shape[1], "the dimension")
        return FittedTruncation(self.dimensions)


@dataclass(frozen=True)
class FittedTruncation(FittedProtection):
    """The first coordinates."""

    dimensions: int

    def stored(self, vectors: Floats, rng: Generator) -> Floats:
        """Return the first coordinates, scaled to length 1."""
        return unit_length(vectors[:, : self.dimensions])
