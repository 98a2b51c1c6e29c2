"""List the test rows whose secrets are guessed with most confidence, for the owner of the rows alone.

The guesses are those of the strongest attack on each secret, the one that the report names. Only test rows have a
number: attackers learn from the other rows, with their secrets. Probabilities are calibrated on dev
(`leakboard.metrics.row_guesses`); with several seeds they are averaged, and the guess is that of most seeds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from leakboard.board.leaderboard import leaderboard
from leakboard.board.strongest import headlines
from leakboard.board.summary import rows_of_secrets
from leakboard.board.tables import guarded
from leakboard.errors import RequestError
from leakboard.metrics.row_guesses import RowGuesses, SecretScores
from leakboard.pipeline.records import PUBLISHED, Record
from leakboard.store import write_file
from leakboard.suite.names import Names
from leakboard.suite.suites import suite_folder

COLUMNS = ("row", "secret", "guess", "probability", "right", "share")
"""Columns of the file; of several releases, ``release`` comes first."""


def risk_table(
    records: Sequence[Record], guesses: Mapping[str, RowGuesses], names: Names, several: bool
) -> pd.DataFrame:
    """Return one row for each secret and test row, the highest probability first.

    ==============  ==================================================================
    ``row``         the row's id, else its number in the table, from 0
    ``secret``      name of the secret
    ``guess``       the value that the strongest attack guesses
    ``probability`` of the guess, according to the attack
    ``right``       whether the guess is right
    ``share``       share of the test rows with this value: the probability without the vectors
    ==============  ==================================================================

    Args:
        records: of the evaluation.
        guesses: of each test row, by a record's key.
        names: of the releases.
        several: whether there are several releases; then the column ``release`` names them.

    Raises:
        RequestError: there are no guesses, or no attack has scores on dev.
    """
    if not guesses:
        raise RequestError("risk: this report has no guesses of rows; allowed: a report of `leakboard.evaluate`")
    parts = []
    for row in headlines(rows_of_secrets(leaderboard([record for record in records if _on_dev(record, guesses)]))):
        secret = row["secret"] or row["secrets"]
        seeds = [
            guesses[record.key]
            for record in records
            if record.key in guesses and (record.victim, record.attack) == (row["victim"], row["attack"])
        ]
        release = {"release": names.name("victim", row["victim"])} if several else {}
        parts.append(_of_secret(secret, seeds).assign(**release))
    if not parts:
        raise RequestError("risk: no attack has guessed secrets of dev, too, which calibrates its probabilities")
    table = pd.concat(parts).sort_values("probability", ascending=False, kind="stable", ignore_index=True)
    return table[[*(["release"] if several else []), *COLUMNS]]


def _on_dev(record: Record, guesses: Mapping[str, RowGuesses]) -> bool:
    """Return whether a cell has guesses of secrets, all with scores on dev."""
    of_cell = guesses.get(record.key)
    return record.status == "ok" and of_cell is not None and _calibrates(of_cell)


def _calibrates(of_cell: RowGuesses) -> bool:
    return bool(of_cell.secrets) and all(scores.has_dev for scores in of_cell.secrets.values())


def _of_secret(secret: str, seeds: Sequence[RowGuesses]) -> pd.DataFrame:
    scores: list[SecretScores] = [of_cell.secrets[secret] for of_cell in seeds]
    first = scores[0]
    mean = np.mean([of_seed.probabilities() for of_seed in scores], axis=0)
    votes = sum(np.eye(mean.shape[1])[of_seed.scores.argmax(1)] for of_seed in scores)
    guess = (votes + mean / 2).argmax(1)  # probabilities decide between values with equally many votes
    values = np.array(first.secret.values, object)
    shares = np.bincount(first.truth, minlength=len(values)) / len(first.truth)
    return pd.DataFrame(
        {
            "row": seeds[0].names(),
            "secret": secret,
            "guess": values[guess],
            "probability": mean[np.arange(len(mean)), guess].round(4),
            "right": guess == first.truth,
            "share": shares[guess].round(4),
        }
    )


def require_private(path: Path) -> None:
    """Refuse a path in a folder of published results.

    Raises:
        RequestError: it is in one.
    """
    folders = path.resolve().parents
    if suite_folder().resolve() in folders or any((folder / PUBLISHED).exists() for folder in folders):
        raise RequestError(f"{path}: a folder of published results; allowed: a folder that you do not publish")


def require_risk_file(path: Path) -> None:
    """Refuse a path that cannot become the file, before anything is computed.

    Raises:
        RequestError: it is in a folder of published results, in no folder that can be written, or another file.
    """
    require_private(path)
    folder = path.resolve().parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise RequestError(f"{path}: allowed: a file in a folder that exists and can be written")
    if path.exists() and not (path.is_file() and _is_risk_file(path)):
        raise RequestError(f"{path}: not a file of rows at risk; allowed: such a file, or a new one")


def _is_risk_file(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        header = file.readline().strip()
    return header in (",".join(COLUMNS), ",".join(("release", *COLUMNS)))


def write_risk(table: pd.DataFrame, path: Path) -> Path:
    """Write the table as CSV with mode 0600, and return its path.

    Raises:
        RequestError: `require_risk_file` refuses the path.
        StorageError: it cannot be written.
    """
    require_risk_file(path)
    safe = table.map(lambda value: guarded(value) if isinstance(value, str) else value)
    write_file(path, safe.to_csv(index=False), is_private=True)
    return path
