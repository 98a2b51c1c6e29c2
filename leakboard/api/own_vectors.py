"""Evaluating vectors that one has: what do they give away? From arrays and frames, or from files.

Both ways build the same suite: a ``table`` of secrets beside ``precomputed`` vectors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from leakboard.api.running import run
from leakboard.errors import RequestError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from leakboard.api.report import Report
    from leakboard.suite.keys import Device

TEST_SHARE = 0.2
"""Share of the rows that attacks are scored on."""
ID = "id"
"""The column of ids, where none is named."""
Attacks = str | Sequence[str | Mapping[str, Any]]


def evaluate(
    vectors: Any,
    secrets: Any,
    *,
    labels: Any = None,
    texts: Any = None,
    users: Any = None,
    ids: Any = None,
    attacks: Attacks = "all",
    out: str | Path | None = None,
    seed: int = 0,
    device: Device = "auto",
) -> Report:
    """Attack vectors, and return how well the secrets of their texts can be guessed.

    Row i of everything belongs together: NumPy arrays, pandas frames and series, Arrow tables, torch tensors or lists.
    Where pandas objects have an index of their own, the indexes must be the same.

    Args:
        vectors: numbers (n, d).
        secrets: columns of classes (gender, age group): a frame, a mapping of names to columns, or one series.
        labels: the task's classes; without them no task is scored.
        texts: the texts; without them nothing is compared with what the text itself reveals.
        users: who wrote each text; no user is in two splits, and intervals are over users.
        ids: names of the rows, none twice; where another object has an index of its own it must hold these.
        attacks: ``all`` that apply, or entries of a suite.
        out: folder for the files, the suite and the run; None: they live as long as the report does.
        seed: of the split, the attacks and all else that is random.
        device: where the attacks' networks compute: ``auto`` is CUDA where torch sees it, else the processor.

    Raises:
        RequestError: an argument is wrong; one line names it, the row, and what is allowed.
    """
    from leakboard.api.inputs import ROLES, gather

    matrix, frame = gather(vectors, secrets, labels=labels, texts=texts, users=users, ids=ids)
    temporary = TemporaryDirectory(prefix="leakboard-") if out is None else None
    folder = Path(temporary.name if temporary else str(out)).resolve()
    names = [str(name) for name in frame if name not in ROLES]
    roles = {role: role for role in ("label", "text", "user") if role in frame}  # both files have the rows in order
    table, file = _write(folder, matrix, frame)
    suite = suite_of(table, file, names, **roles, attacks=attacks, seed=seed)
    suite |= {} if device == "auto" else {"device": device}
    return dataclasses.replace(run_kept(suite, folder), kept=temporary)


def suite_of(
    table: str | Path,
    vectors: str | Path,
    secrets: Sequence[str],
    *,
    label: str | None = None,
    text: str | None = None,
    user: str | None = None,
    id: str | None = None,
    column: str | None = None,
    attacks: Attacks = "all",
    seed: int = 0,
) -> dict[str, Any]:
    """Return the suite that attacks precomputed vectors, as its YAML would hold it.

    Args:
        table: file or glob of the rows, or the address of a vector store (`leakboard.data.readers.vector_databases`).
        vectors: file of their vectors, or the address of a vector store.
        secrets: columns of the table that are secret.
        label: column of the task's classes.
        text: column of the texts.
        user: column that says who wrote each text.
        id: column of the rows' ids, in both files where that of the vectors has columns; None: the column ``id`` where
            both have one and it is nothing else.
        column: of the vectors, where their file has several.
        attacks: ``all`` that apply, or entries of a suite.
        seed: of the split, the attacks and all else that is random.

    Raises:
        RequestError: no id is given, and the rows or the vectors cannot be read.
    """
    if id is None and ID not in (label, text, user, *secrets):
        id = _common_id(str(table), str(vectors))
    columns = {"label": label, "user": user, "id": id}
    dataset: dict[str, Any] = {"path": str(table), "text": text, "secrets": list(secrets)}
    dataset |= {name: column for name, column in columns.items() if column is not None}
    dataset |= {"test_share": TEST_SHARE, **({"split_seed": seed} if seed else {})}
    return {
        "description": "What do these vectors give away?",
        "seeds": [seed],
        "reuse": False,  # nobody has published results of them
        "text_classifier": text is not None,
        "datasets": [{"table": dataset}],
        "victims": [{"precomputed": {"vectors": str(vectors), **_options(Path(vectors), column, id)}}],
        "attacks": "all" if isinstance(attacks, str) and attacks == "all" else _entries(attacks),
    }


def as_yaml(suite: Mapping[str, Any]) -> str:
    """Return a suite as the YAML file that asks for the same."""
    from ruamel.yaml import YAML

    writer: Any = YAML(typ="safe", pure=True)
    writer.default_flow_style, writer.sort_base_mapping_type_on_output = False, False
    stream = StringIO()
    writer.dump(dict(suite), stream)
    return stream.getvalue()


def run_kept(suite: Mapping[str, Any], folder: Path) -> Report:
    """Write a suite into ``suite.yaml`` of a folder, and run it there."""
    from leakboard.store import write_file

    write_file(folder / "suite.yaml", as_yaml(suite))
    report = run(suite, out=folder)
    return dataclasses.replace(report, name="own vectors")


def _common_id(table: str, vectors: str) -> str | None:
    """Return the name of the column of ids, where both the rows and the vectors have one of the usual name."""
    from leakboard.data.readers.tabular import expand
    from leakboard.data.readers.vector_databases import source
    from leakboard.data.readers.vectors import column_names

    both = source(vectors), expand(table)[0]
    return ID if all(ID in column_names(place) for place in both) else None


def _options(vectors: Path, column: str | None, id: str | None) -> dict[str, str]:
    """Return the options of the vectors; a bare array has no ids, and the victim says that it is joined by position."""
    options = {"column": column, "id": None if vectors.suffix.lower() == ".npy" else id}
    return {name: value for name, value in options.items() if value is not None}


def _entries(attacks: Attacks) -> list[str | Mapping[str, Any]]:
    allowed = "allowed: all, or entries of a suite, as in ['attribute_inference']"
    if not isinstance(attacks, str | Sequence):
        raise RequestError(f"attacks: {attacks!r} is not allowed; {allowed}")
    if not attacks:
        raise RequestError(f"attacks: none is named; {allowed}")
    entries = [attacks] if isinstance(attacks, str) else attacks
    if wrong := [entry for entry in entries if not isinstance(entry, str | Mapping)]:
        raise RequestError(f"attacks: {wrong[0]!r} is not allowed; {allowed}")
    return [entry if isinstance(entry, str) else dict(entry) for entry in entries]


def _write(folder: Path, vectors: NDArray[Any], frame: pd.DataFrame) -> tuple[Path, Path]:
    """Write ``table.parquet`` and ``vectors.npy`` into a folder and return their paths.

    Raises:
        StorageError: the folder cannot be written.
    """
    from io import BytesIO

    import numpy as np

    from leakboard.store import write_file

    array, table = BytesIO(), BytesIO()
    np.save(array, vectors)
    frame.to_parquet(table, index=False)
    paths = folder / "table.parquet", folder / "vectors.npy"
    for path, content in zip(paths, (table, array), strict=True):
        write_file(path, content.getvalue())
    return paths
