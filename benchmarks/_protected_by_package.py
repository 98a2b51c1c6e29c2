"""Protect vectors with an installed package, in an environment of its own: only NumPy and the package are imported.

Usage: ``python _protected_by_package.py PACKAGE FACTOR FILE.npy ...``. The files are overwritten with what the package
makes of them; all have one key.
"""

import asyncio
import secrets
import sys

import numpy as np


def turboquant(parts: list[np.ndarray], factor: float) -> list[np.ndarray]:
    """Rotate vectors as ``turboquant-vectors`` does; it has no factor."""
    from turboquant_vectors.private import PrivateEncoder

    encoder = PrivateEncoder.generate(parts[0].shape[1])
    return [encoder.rotate(part) for part in parts]


def ironcore(parts: list[np.ndarray], factor: float) -> list[np.ndarray]:
    """Encrypt vectors as ``ironcore-alloy`` does without a server, with its approximation factor."""
    import ironcore_alloy as alloy

    def key() -> alloy.StandaloneSecret:
        return alloy.StandaloneSecret(id=1, secret=alloy.Secret(secret=secrets.token_bytes(32)))

    vector = alloy.VectorSecret(
        approximation_factor=factor, secret=alloy.RotatableSecret(current_secret=key(), in_rotation_secret=None)
    )
    standard = alloy.StandardSecrets(primary_secret_id=1, secrets=[key()])
    client = alloy.Standalone(
        alloy.StandaloneConfiguration(standard=standard, deterministic={}, vector={"path": vector})
    ).vector()

    async def encrypt(part: np.ndarray) -> np.ndarray:
        metadata = alloy.AlloyMetadata.new_simple("tenant")
        names = {"secret_path": "path", "derivation_path": ""}
        plain = (alloy.PlaintextVector(plaintext_vector=row, **names) for row in part.tolist())
        return np.array([(await client.encrypt(row, metadata)).encrypted_vector for row in plain])

    return [asyncio.run(encrypt(part)) for part in parts]


if __name__ == "__main__":
    package, factor, *files = sys.argv[1:]
    protect = {"ironcore-alloy": ironcore, "turboquant-vectors": turboquant}[package]
    for file, protected in zip(files, protect([np.load(file) for file in files], float(factor)), strict=True):
        np.save(file, protected.astype(np.float32))
