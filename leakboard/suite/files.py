"""Define the type of options that name files.

Identities contain a name as written. A relative name is resolved against the suite's folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WrapValidator

from leakboard.workspace import in_force

FOLDER: ContextVar[Path] = ContextVar("folder", default=Path())
"""Folder of relative file names in the options that are being read; at first the working folder."""
_ADDRESS = re.compile(r"[a-z]+:")
_STORE = re.compile(r"([a-z]+:)(?!.*://)(.+)(#[^#]+)")
"""Address of a vector store that is a folder: the store's name, the folder and the collection."""


class FileName(str):
    """A file's name as written, with the folder that it is relative to."""

    folder = Path()
    content: Any = None
    """Rows or vectors in memory that the name refers to, instead of a file (`leakboard.data.readers.in_memory`)."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Describe it as text."""
        return handler(str)

    @property
    def located(self) -> Any:
        """The path of the file, or the content in memory.

        A relative path is in the folder, also that of a vector store, as in ``qdrant:store#reviews``. An absolute path
        and any other address stay as they are.
        """
        if self.content is not None:
            return self.content
        if store := _STORE.fullmatch(self):
            return f"{store[1]}{self.folder / store[2]}{store[3]}"
        return str(self) if _ADDRESS.match(self) else str(self.folder / self)


def _file_name(value: Any, check: Callable[[Any], str]) -> FileName:
    if isinstance(value, FileName):
        return value
    name = FileName(check(value))
    if not name:
        raise ValueError("empty; allowed: a path")
    name.folder = FOLDER.get()
    return name


if TYPE_CHECKING:
    File = FileName
else:
    File = Annotated[str, WrapValidator(_file_name)]
"""The type of an option that names a file, or a glob of files."""


def relative_to(folder: Path) -> AbstractContextManager[None]:
    """Resolve the file names in options that are read meanwhile against a folder."""
    return in_force(FOLDER, folder)
