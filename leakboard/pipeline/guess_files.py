"""Keep the guesses of each test row in the folder of their cell, in a file that only its owner can read.

The file is no part of the record: tables, pages and published records are made from records alone.
"""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from leakboard.interfaces import Secret
from leakboard.metrics.row_guesses import RowGuesses, SecretScores
from leakboard.pipeline.records import GUESSES
from leakboard.store import write_file

PARTS = ("scores", "truth", "dev_scores", "dev_truth")
"""Arrays of each secret."""


def write_guesses(folder: Path, key: str, guesses: RowGuesses | None) -> None:
    """Write ``guesses.npz`` (NumPy arrays, mode 0600) into the folder of a cell.

    Args:
        folder: of the cell.
        key: the cell's identity.
        guesses: None: the attack guesses nothing about rows; the file says so.
    """
    guesses = guesses or RowGuesses(np.empty(0, np.int64))
    arrays: dict[str, Any] = {"rows": guesses.rows}
    if guesses.units is not None:
        arrays["units"] = guesses.units
    secrets = []
    for number, of_secret in enumerate(guesses.secrets.values()):
        secrets.append([of_secret.secret.name, of_secret.secret.values, of_secret.secret.kind])
        arrays |= {f"{part} {number}": getattr(of_secret, part) for part in PARTS}
    about = {"key": key, "secrets": secrets, "ids": None if guesses.ids is None else list(guesses.ids)}
    content = BytesIO()
    np.savez(content, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)
    write_file(folder / GUESSES, content.getvalue(), is_private=True)


def read_guesses(folder: Path, key: str) -> RowGuesses | None:
    """Return the guesses of a cell; None if they are missing, damaged, or of another identity."""
    try:
        with np.load(folder / GUESSES, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays["about"].tobytes())
        if about["key"] != key:
            return None
        secrets = {}
        for number, (name, values, kind) in enumerate(about["secrets"]):
            secrets[name] = SecretScores(
                Secret(name, tuple(values), kind), **{part: arrays[f"{part} {number}"] for part in PARTS}
            )
        return RowGuesses(arrays["rows"], about["ids"], arrays.get("units"), secrets)
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
        return None
