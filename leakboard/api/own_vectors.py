"""Attack vectors that a user has, from arrays and frames or from files.

Both ways make the same suite (`leakboard.api.own_suites`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from leakboard.api.arguments import FilePath, Whole, as_int, require
from leakboard.api.own_files import file_names, kept_in_memory, reserved, write_files
from leakboard.api.own_suites import Attacks, Part, as_list, as_yaml, own_suite, require_part, victims_of
from leakboard.api.running import compute
from leakboard.errors import RequestError

if TYPE_CHECKING:
    from leakboard.api.own_stores import Encoder
    from leakboard.api.report import Report
    from leakboard.metrics.row_guesses import RowGuesses
    from leakboard.suite.suite_file import Device

ENCODED = "encoded"
"""Option of ``precomputed``, and name of the file of what a user's function gives for the texts."""


def evaluate(
    vectors: Any,
    secrets: Any = None,
    *,
    labels: Any = None,
    texts: Any = None,
    users: Any = None,
    documents: Any = None,
    ids: Any = None,
    encoder: Encoder | None = None,
    protection: Part | Sequence[Part] | None = None,
    attacks: Attacks = "all",
    drop_missing: bool = False,
    out: str | Path | None = None,
    risk: str | Path | None = None,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    device: Device = "auto",
    progress: bool = True,
) -> Report:
    """Attack vectors, and return how well the secrets of their texts can be guessed.

    Row i of everything belongs together: NumPy arrays, pandas frames and series, Arrow tables, torch tensors or lists.
    Pandas objects with an index of their own must have the same one.

    Args:
        vectors: numbers (n, d). Or a mapping of names to several releases of the same rows, (n, d) each: the report
            compares each release with the first, on the same split and secrets.
        secrets: columns of classes (gender, age group): a frame, a mapping of names to columns, or one series. None
            with ``encoder``: then only links and presence are tried.
        labels: the task's classes; without them no task is scored.
        texts: the texts; without them nothing is compared with what the text itself reveals.
        users: authors of the texts; no user is in two splits, and intervals are over users.
        documents: the document of each row, if rows are chunks of documents; no document is in two splits, and without
            users intervals are over documents.
        ids: names of the rows, none twice; an index of another object must equal them.
        encoder: what a thief of the vectors knows: a victim (``sentence_encoder``, or a mapping with its options), or a
            function of a list of texts that returns numbers (n, e). Adds links and presence; needs ``texts``.
        protection: of the table in the victim ``vector_store``, a name or a mapping with options, or several: the
            report compares the vectors ``as stored`` with those of each protection.
        attacks: ``all`` that apply, except ``search``, which takes long; or a list of names, entries of a suite, and
            instances such as ``MyAttack(k=3)``.
        drop_missing: leave out rows that lack a secret, a label or a text, and say how many.
        out: folder that keeps the files, the suite and the run. None keeps nothing: rows and vectors stay in memory,
            and a temporary folder holds the run's other parts while it lasts.
        risk: CSV file for the test rows whose secrets are guessed with most confidence, which only you can read
            (`Report.risk`).
        seed: of the split, the attacks and everything else that is random.
        seeds: of the attacks, instead of ``seed``; the split stays that of ``seed``. Several seeds show smaller
            differences between releases.
        device: where the attacks' networks compute: ``auto`` is CUDA where torch sees it, else the processor.
        progress: show a bar on standard error, in a terminal or a notebook.

    Raises:
        RequestError: an argument is wrong; one line names it, the row, and what is allowed.
    """
    from leakboard.api.inputs import ROLES, gather
    from leakboard.api.own_stores import check_encoder, encode
    from leakboard.api.risk import require_private, require_risk_file
    from leakboard.suite.suite_file import Device

    require(FilePath | None, out=out, risk=risk)
    if risk is not None:
        require_risk_file(Path(risk))
    if out is not None:
        require_private(Path(out) / "suite.yaml")
    require(bool, progress=progress, drop_missing=drop_missing)
    require(Part | Sequence[Part] | None, protection=protection)
    for part in (protections := as_list(protection)):
        require_part("protection", "protection", part)
    if protections and isinstance(vectors, Mapping) and len(vectors) > 1:
        raise RequestError(f"vectors: {len(vectors)} releases are given with protection; allowed: one release")
    seed = as_int(seed)
    require(Whole, seed=seed)
    seeds = None if seeds is None else [as_int(value) for value in seeds]
    require(Annotated[list[Whole], Field(min_length=1)] | None, seeds=seeds)
    require(Device, device=device)
    check_encoder(encoder, texts is not None, secrets is not None)
    require_part("encoder", "encoder", None if callable(encoder) else encoder)
    matrices, frame, dropped, row_names = gather(
        _releases(vectors),
        secrets,
        labels=labels,
        texts=texts,
        users=users,
        documents=documents,
        ids=ids,
        drop_missing=drop_missing,
    )
    names = list(vectors) if isinstance(vectors, Mapping) else [""]
    arrays = dict(zip(file_names(len(matrices)), matrices.items(), strict=True))
    if callable(encoder):
        arrays[ENCODED] = ("encoder", encode(encoder, frame["text"].tolist()))
    folder = Path(out).resolve() if out is not None else None
    with reserved(folder, list(arrays)) if folder else nullcontext():
        table, files = write_files(folder, arrays, frame) if folder else kept_in_memory(arrays, frame)
        known = {ENCODED: files.pop(ENCODED)} if callable(encoder) else {"encoder": encoder}
        options = {name: value for name, value in known.items() if value is not None}
        of_release = {name: {"vectors": file, **options} for name, file in zip(names, files.values(), strict=True)}
        victims = victims_of(of_release, protections)
        roles = {role: role for role in ("label", "text", "user", "document") if role in frame}
        columns = [str(column) for column in frame if column not in ROLES]
        suite = own_suite(table, victims, columns, **roles, attacks=attacks, seed=seed)
        suite |= {} if device == "auto" else {"device": device}
        suite |= {"seeds": seeds} if seeds else {}
        report = _run(suite, folder, progress)
    left_out = f"{dropped} of {dropped + len(frame)} rows were left out, since they lack a value"
    notes = (*report.notes, *([left_out] if dropped else ()))
    guesses = {key: _named(of_cell, row_names) for key, of_cell in report.guesses.items()}
    report = dataclasses.replace(report, notes=notes, guesses=guesses)
    return report if risk is None else _with_risk_file(report, Path(risk))


def _with_risk_file(report: Report, path: Path) -> Report:
    """Write the file of rows at risk; if no attack allows it, the report says so and is not lost."""
    try:
        report.save_risk(path)
    except RequestError as error:
        return dataclasses.replace(report, notes=(*report.notes, f"{path} was not written: {error}"))
    return report


def _named(guesses: RowGuesses, names: Sequence[str]) -> RowGuesses:
    """Return guesses with these names of the table's rows as ids."""
    return dataclasses.replace(guesses, ids=[names[row] for row in guesses.rows])


def run_kept(suite: Mapping[str, Any], folder: Path) -> Report:
    """Write a suite into ``suite.yaml`` of a folder, and run it there.

    Raises:
        RequestError: another process evaluates vectors in the folder, or it has files that no evaluation wrote.
    """
    with reserved(folder):
        return _run(suite, folder)


def _run(suite: Mapping[str, Any], folder: Path | None, progress: bool = True) -> Report:
    """Run a suite in a folder that keeps it as ``suite.yaml``, or without one in a temporary folder."""
    from leakboard.api.estimate import estimate
    from leakboard.api.untried import not_attacked, not_tried
    from leakboard.store import write_file
    from leakboard.suite.instances import as_entries
    from leakboard.suite.registry import Registry
    from leakboard.suite.suites import load_suite

    releases = tuple(victim["name"] for victim in suite["victims"] if "name" in victim)
    registry = Registry()
    content = as_entries(suite, registry, "suite")
    loaded = load_suite(content, registry)
    options: dict[str, Any] = {"progress": progress, "keeps_guesses": True, "releases": releases}
    options |= {"estimated": estimate(loaded)} if progress else {}
    if folder:
        write_file(folder / "suite.yaml", as_yaml(content))
        report = compute(loaded, loaded.cells(), registry, folder, **options)
    else:
        with TemporaryDirectory(prefix="leakboard-") as temporary:
            report = compute(loaded, loaded.cells(), registry, Path(temporary), **options)
    knows_encoder = any(
        {"encoder", ENCODED, "protection"} & victim["precomputed"].keys() for victim in suite["victims"]
    )
    dataset = loaded.cells()[0].source.corpus.plugin
    unguessed = not_attacked([*dataset.secrets, *dataset.entities], report.records)
    notes = (*report.notes, *unguessed, *(not_tried(report.records, report.names) if knows_encoder else ()))
    return dataclasses.replace(report, name="own vectors", notes=notes, day=date.today().isoformat())


def _releases(vectors: Any) -> dict[str, Any]:
    """Return the releases by the names that messages use.

    Raises:
        RequestError: a mapping is empty, or a name is not allowed.
    """
    if not isinstance(vectors, Mapping):
        return {"vectors": vectors}
    if not vectors:
        raise RequestError("vectors: the mapping is empty; allowed: names of releases with their vectors")
    for name in vectors:
        if not (isinstance(name, str) and name and name.isprintable() and name == name.strip()):
            raise RequestError(
                f"vectors: {name!r} is not allowed as a release's name: a line of text without blanks around it"
            )
    return {f"vectors[{name!r}]": given for name, given in vectors.items()}
