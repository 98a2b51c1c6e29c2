"""Attack vectors that a user has, from arrays and frames or from files.

Both ways build the same suite: a ``table`` of secrets and ``precomputed`` vectors.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import date
from io import BytesIO, StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from leakboard.api.arguments import FilePath, Whole, as_int, require
from leakboard.api.running import compute
from leakboard.errors import RequestError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from leakboard.api.own_stores import Encoder
    from leakboard.api.report import Report
    from leakboard.data.readers.vector_databases import Source
    from leakboard.metrics.row_guesses import RowGuesses
    from leakboard.suite.suite_file import Device

TEST_SHARE = 0.2
"""Share of the rows that attacks are scored on."""
ID = "id"
"""Column of ids, if none is named."""
ENCODED = "encoded"
"""Option of ``precomputed``, and name of the file of what a user's function gives for the texts."""
Attacks = str | Sequence[Any]
"""``all``, or entries of a suite and instances of attacks."""
AS_STORED = "as stored"
"""Name of the vectors without protection, where protections are tried on them."""
Part = str | Mapping[str, Any]
"""A name, or a name with options, as a suite has it."""


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
    for part in (protections := _protections(protection)):
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
    arrays = dict(zip(_file_names(len(matrices)), matrices.items(), strict=True))
    if callable(encoder):
        arrays[ENCODED] = ("encoder", encode(encoder, frame["text"].tolist()))
    folder = Path(out).resolve() if out is not None else None
    with _reserved(folder, list(arrays)) if folder else nullcontext():
        table, files = _write(folder, arrays, frame) if folder else _in_memory(arrays, frame)
        known = {ENCODED: files.pop(ENCODED)} if callable(encoder) else {"encoder": encoder}
        options = {name: value for name, value in known.items() if value is not None}
        of_release = {name: {"vectors": file, **options} for name, file in zip(names, files.values(), strict=True)}
        victims = _victims(of_release, protections)
        roles = {role: role for role in ("label", "text", "user", "document") if role in frame}
        columns = [str(column) for column in frame if column not in ROLES]
        suite = _suite(table, victims, columns, **roles, attacks=attacks, seed=seed)
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


def suite_of(
    table: str | Path,
    vectors: str | Path | Mapping[str, str | Path],
    secrets: Sequence[str],
    *,
    label: str | None = None,
    text: str | None = None,
    user: str | None = None,
    document: str | None = None,
    id: str | None = None,
    column: str | None = None,
    encoder: Part | None = None,
    encoded: str | Path | None = None,
    protection: Part | Sequence[Part] | None = None,
    attacks: Attacks = "all",
    entities: Sequence[str] = (),
    bins: Mapping[str, int] | None = None,
    drop_missing: bool = False,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return the suite that attacks precomputed vectors, as its YAML has it.

    Args:
        table: file or glob of the rows, or the address of a vector store (`leakboard.data.readers.vector_databases`).
        vectors: file of their vectors, or the address of a vector store. Or a mapping of names to those of several
            releases of the same rows, which are compared with the first.
        secrets: columns of the table that are secret.
        label: column of the task's classes.
        text: column of the texts.
        user: column of the texts' authors.
        document: column of the documents that rows are chunks of.
        id: column of the rows' ids, in both files if the vectors' file has columns; there it may be called ``id``, too.
            None: the column ``id``, in any case of letters, if both files have one without another role.
        column: of the vectors, if their file has several.
        encoder: the victim that a thief of the vectors knows as their encoder.
        encoded: or the file of what the thief's encoder gives for the same rows.
        protection: one or several: the vectors as they are in the one file are compared with each of them.
        attacks: ``all`` that apply, or entries of a suite.
        entities: columns of 0 and 1: whether the text mentions somebody.
        bins: for secrets that are numbers, the number of classes of equal size.
        drop_missing: leave out rows that lack a value, and count them.
        seed: of the split, the attacks and everything else that is random.
        seeds: of the attacks, instead of ``seed``; the split stays that of ``seed``.

    Raises:
        RequestError: no id is given, and the rows or the vectors cannot be read.
    """
    releases = (
        {name: str(file) for name, file in vectors.items()} if isinstance(vectors, Mapping) else {"": str(vectors)}
    )
    if id is None:
        common = {_common_id(str(table), file) for file in releases.values() if Path(file).suffix.lower() != ".npy"}
        if len(common) == 1 and (name := common.pop()) not in (label, text, user, document, *secrets):
            id = name
    known = {"encoder": encoder, "encoded": None if encoded is None else str(encoded)}
    known = {name: value for name, value in known.items() if value is not None}
    roles = {"label": label, "text": text, "user": user, "document": document, "id": id}
    options: dict[str, Any] = {"entities": list(entities), "bins": dict(bins or {})}
    options["on_bad_rows"] = "drop" if drop_missing else None
    of_release = {
        name: {"vectors": file, **_options(Path(file), column, _id_of_vectors(file, id)), **known}
        for name, file in releases.items()
    }
    victims = _victims(of_release, _protections(protection))
    suite = _suite(str(table), victims, secrets, **roles, **options, attacks=attacks, seed=seed)
    return suite | ({"seeds": list(seeds)} if seeds else {})


def _protections(given: Part | Sequence[Part] | None) -> list[Part]:
    """Return a list of protections."""
    if given is None:
        return []
    return [given] if isinstance(given, str | Mapping) else [*given]


def _victims(releases: Mapping[str, Mapping[str, Any]], protections: Sequence[Part]) -> list[dict[str, Any]]:
    """Return the victims of a suite: the releases, or one as it is stored and then with each protection.

    Args:
        releases: options of ``precomputed`` for each release by its name; a single one may have an empty name.
        protections: of the only release.

    Raises:
        RequestError: two of the victims would have one name.
    """
    if protections:
        ((name, options),) = releases.items()
        protected = {_title(part): {**options, "protection": part} for part in protections}
        if len(protected) < len(protections):
            raise RequestError(
                f"protection: {', '.join(map(_title, protections))}: one is named twice; allowed: each once"
            )
        if (stored := name or AS_STORED) in protected:
            raise RequestError(
                f"vectors: {stored!r} names the release and a protection; allowed: another name for the release"
            )
        releases = {stored: options, **protected}
    return [{"precomputed": dict(given), **({"name": name} if name else {})} for name, given in releases.items()]


def _title(part: Part) -> str:
    """Return the name of a part with its options, as in ``gaussian(sigma=0.05)``."""
    if isinstance(part, str):
        return part
    ((name, options),) = part.items()
    listed = ", ".join(f"{key}={value}" for key, value in (options or {}).items())
    return f"{name}({listed})" if listed else name


def _suite(
    table: str,
    victims: Sequence[Mapping[str, Any]],
    secrets: Sequence[str],
    *,
    text: str | None = None,
    attacks: Attacks = "all",
    seed: int = 0,
    **options: Any,
) -> dict[str, Any]:
    """Return a suite; options of the dataset that are None or empty are left out."""
    dataset: dict[str, Any] = {"path": table, "text": text, "secrets": list(secrets)}
    dataset |= {name: value for name, value in options.items() if value}
    dataset |= {"test_share": TEST_SHARE, **({"split_seed": seed} if seed else {})}
    return {
        "description": "What do these vectors give away?",
        "seeds": [seed],
        "reuse": False,
        "text_classifier": text is not None,
        "datasets": [{"table": dataset}],
        "victims": list(victims),
        "attacks": "all" if isinstance(attacks, str) and attacks == "all" else _entries(attacks),
    }


def require_part(argument: str, option: str, value: Part | None) -> None:
    """Refuse a value that the option ``encoder`` or ``protection`` of ``precomputed`` does not take.

    Args:
        argument: what the user wrote it for, as in ``--protection``; the message begins with it.
        option: name of the option.
        value: a name, or a name with options; None: the option is left out.

    Raises:
        RequestError: one line names the argument, its value and what is allowed.
    """
    from leakboard.suite.options import build
    from leakboard.suite.registry import Registry

    plugin = Registry().load("victims", "precomputed", argument)
    try:
        build(plugin, {"vectors": "any file", option: value}, "")
    except RequestError as error:
        raise RequestError(f"{argument}: {str(error).removeprefix(f'.{option}: ')}") from None


def as_yaml(suite: Mapping[str, Any]) -> str:
    """Return a suite as the YAML file that asks for the same."""
    from ruamel.yaml import YAML

    writer: Any = YAML(typ="safe", pure=True)
    writer.default_flow_style, writer.sort_base_mapping_type_on_output = False, False
    stream = StringIO()
    writer.dump(dict(suite), stream)
    return stream.getvalue()


def run_kept(suite: Mapping[str, Any], folder: Path) -> Report:
    """Write a suite into ``suite.yaml`` of a folder, and run it there.

    Raises:
        RequestError: another process evaluates vectors in the folder, or it has files that no evaluation wrote.
    """
    with _reserved(folder):
        return _run(suite, folder)


@contextmanager
def _reserved(folder: Path, vectors: Sequence[str] = ()) -> Iterator[None]:
    """Reserve a folder for one evaluation: its files have fixed names.

    Raises:
        RequestError: another process evaluates in the folder, or it has a file of such a name that no evaluation wrote.
    """
    from leakboard.execution.reservations import Reservation, ReservedError
    from leakboard.store import write_file
    from leakboard.suite.suites import KEPT

    names = ("suite.yaml", "suite", *(("table.parquet", *(f"{name}.npy" for name in vectors)) if vectors else ()))
    foreign = [name for name in names if (folder / name).exists() and not (folder / KEPT).is_file()]
    if foreign:
        allowed = "a folder without it, or one that `evaluate` made"
        raise RequestError(f"{folder / foreign[0]}: no evaluation wrote this file; allowed: {allowed}")
    reservation = Reservation(folder / ".evaluate", uuid.uuid4().hex)
    try:
        with reservation.held():
            write_file(folder / KEPT, "Files of `leakboard evaluate` in this folder are overwritten by the next one.\n")
            yield
    except ReservedError:
        allowed = "one evaluation at a time; give the other one another folder"
        raise RequestError(f"{folder}: in use by {reservation.holder() or 'another'}; allowed: {allowed}") from None


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


def _common_id(table: str, vectors: str) -> str | None:
    """Return the name of the rows' column of ids, if both the rows and the vectors have one of the usual name."""
    from leakboard.data.readers.tabular import expand
    from leakboard.data.readers.vector_databases import source

    of_vectors, of_rows = (_usual_id(place) for place in (source(vectors), expand(table)[0]))
    return of_rows if of_vectors else None


def _id_of_vectors(vectors: str, id: str | None) -> str | None:
    """Return the vectors' column of ids: called as the table's, or else by the usual name, if there is one."""
    from leakboard.data.readers.vector_databases import source
    from leakboard.data.readers.vectors import column_names

    place = source(vectors)
    return id if id is None or id in column_names(place) else _usual_id(place) or id


def _usual_id(place: Source) -> str | None:
    """Return the column that is called `ID`, else one that differs from it only in case; None: there is none."""
    from leakboard.data.readers.vectors import column_names

    names = column_names(place)
    return ID if ID in names else next((name for name in names if name.casefold() == ID), None)


def _options(vectors: Path, column: str | None, id: str | None) -> dict[str, Any]:
    """Return the options of the vectors; a bare array has no ids, and the victim says that it is joined by position."""
    options = {"column": column, "id": None if vectors.suffix.lower() == ".npy" else id}
    return {name: value for name, value in options.items() if value is not None}


def _entries(attacks: Attacks) -> list[Any]:
    allowed = "allowed: all, or a list of names, entries of a suite and instances, as in ['attribute_inference']"
    if not isinstance(attacks, str | Sequence):
        raise RequestError(f"attacks: {attacks!r} is not allowed; {allowed}")
    if not attacks:
        raise RequestError(f"attacks: none is named; {allowed}")
    entries = [attacks] if isinstance(attacks, str) else attacks
    for entry in entries:
        if not isinstance(entry, str | Mapping) and not hasattr(entry, "__leakboard_kind__"):
            raise RequestError(f"attacks: {entry!r} is not allowed; {allowed}")
    return [dict(entry) if isinstance(entry, Mapping) else entry for entry in entries]


def _in_memory(arrays: Mapping[str, tuple[str, NDArray[Any]]], frame: pd.DataFrame) -> tuple[str, dict[str, str]]:
    """Return file names that refer to rows and arrays in memory.

    Args:
        arrays: title in messages, and content, of each array.
        frame: rows.
    """
    from leakboard.data.readers.in_memory import InMemory
    from leakboard.suite.files import FileName

    def named(name: str, title: str, content: Any) -> str:
        file = FileName(name)
        file.content = InMemory.of(title, content)
        return file

    return named("rows", "rows", frame), {name: named(name, *given) for name, given in arrays.items()}


def _file_names(releases: int) -> list[str]:
    """Return ``vectors``, or of several releases a numbered name each: tables have them in this order."""
    return ["vectors"] if releases == 1 else [f"vectors_{number + 1}" for number in range(releases)]


def _write(
    folder: Path, arrays: Mapping[str, tuple[str, NDArray[Any]]], frame: pd.DataFrame
) -> tuple[str, dict[str, str]]:
    """Write ``table.parquet`` and a file of NumPy for each array, and return their paths.

    Raises:
        StorageError: the folder cannot be written.
    """
    import numpy as np

    from leakboard.store import write_file

    table = BytesIO()
    frame.to_parquet(table, index=False)
    write_file(folder / "table.parquet", table.getvalue())
    for name, (_, content) in arrays.items():
        array = BytesIO()
        np.save(array, content)
        write_file(folder / f"{name}.npy", array.getvalue())
    return str(folder / "table.parquet"), {name: str(folder / f"{name}.npy") for name in arrays}
