"""Make the suite that attacks a user's vectors: a ``table`` of secrets, and ``precomputed`` vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakboard.errors import RequestError

if TYPE_CHECKING:
    from leakboard.data.readers.vector_databases import Source

TEST_SHARE = 0.2
"""Share of the rows that attacks are scored on."""
ID = "id"
"""Column of ids, if none is named."""
Attacks = str | Sequence[Any]
"""``all``, or entries of a suite and instances of attacks."""
AS_STORED = "as stored"
"""Name of the vectors without protection, where protections are tried on them."""
Part = str | Mapping[str, Any]
"""A name, or a name with options, as a suite has it."""


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
    victims = victims_of(of_release, as_list(protection))
    suite = own_suite(str(table), victims, secrets, **roles, **options, attacks=attacks, seed=seed)
    return suite | ({"seeds": list(seeds)} if seeds else {})


def as_list(given: Part | Sequence[Part] | None) -> list[Part]:
    """Return a list of protections."""
    if given is None:
        return []
    return [given] if isinstance(given, str | Mapping) else [*given]


def victims_of(releases: Mapping[str, Mapping[str, Any]], protections: Sequence[Part]) -> list[dict[str, Any]]:
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


def own_suite(
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
