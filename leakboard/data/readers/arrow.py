"""Read Parquet and Arrow files (IPC file, Feather or stream) batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow


def read_batches(path: Path, columns: Sequence[str] | None) -> tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]:
    """Return the schema of a file, and its batches in order.

    The batches have the outermost columns in which these names are; None: all columns.
    """
    import pyarrow
    import pyarrow.parquet

    def outermost(schema: pyarrow.Schema) -> list[str]:
        tops = [name for name in schema.names for c in columns or () if c == name or c.startswith(f"{name}.")]
        return schema.names if columns is None else list(dict.fromkeys(tops))

    if path.suffix.lower() == ".parquet":
        file = pyarrow.parquet.ParquetFile(path)
        return file.schema_arrow, file.iter_batches(columns=outermost(file.schema_arrow))
    source = pyarrow.memory_map(str(path))
    try:
        reader = pyarrow.ipc.open_file(source)
        batches: Iterable[pyarrow.RecordBatch] = map(reader.get_batch, range(reader.num_record_batches))
    except pyarrow.ArrowInvalid:
        source.seek(0)
        batches = reader = pyarrow.ipc.open_stream(source)
    return reader.schema, (batch.select(outermost(reader.schema)) for batch in batches)


def flat_types(schema: pyarrow.Schema) -> dict[str, pyarrow.DataType]:
    """Return the types of a schema's columns; columns of structs have names with dots."""
    import pyarrow

    flat: dict[str, pyarrow.DataType] = {}
    for field in schema:
        nested = flat_types(pyarrow.schema(list(field.type))) if pyarrow.types.is_struct(field.type) else None
        flat |= {f"{field.name}.{n}": t for n, t in nested.items()} if nested else {field.name: field.type}
    return flat


def column_of(table: pyarrow.Table, name: str) -> Any:
    """Return a column of a table, or of the structs in it, as one array."""
    import pyarrow.compute

    if name in table.column_names:
        return table[name].combine_chunks()
    top = max((top for top in table.column_names if name.startswith(f"{top}.")), key=len)
    return pyarrow.compute.struct_field(column_of(table, top), name.removeprefix(f"{top}.").split("."))


def rows_of(column: pyarrow.Array) -> list[Any]:
    """Return a column as Python values; dates beyond the year 9999, which Python lacks, as text."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        import pyarrow

        return list(column.cast(pyarrow.string()).to_pylist())
