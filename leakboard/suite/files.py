"""Files that options name: as written in a result's identity, and looked for beside the suite that names them."""

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
"""What file names of options that are being read are relative to; at first the working folder."""
_ADDRESS = re.compile(r"[a-z]+:")
_STORE = re.compile(r"([a-z]+:)(?!.*://)(.+)(#[^#]+)")
"""The address of a vector store that is a folder: the store's name, the folder and the collection."""


class FileName(str):
    """A file's name as it is written, with the folder that it is relative to."""

    folder = Path()
    content: Any = None
    """Rows or vectors in memory that the name stands for, instead of a file (`leakboard.data.readers.in_memory`)."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Describe it as the text that it is."""
        return handler(str)

    @property
    def located(self) -> Any:
        """Where the file is: in the folder, unless the name is absolute or the address of something else.

        A vector store that is a folder is in the folder too, as ``qdrant:store#reviews``. Content that is in memory is
        returned itself.
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
    name.folder = FOLDER.get()
    return name


if TYPE_CHECKING:
    File = FileName
else:
    File = Annotated[str, WrapValidator(_file_name)]
"""The type of an option that names a file, or a glob of files."""


def relative_to(folder: Path) -> AbstractContextManager[None]:
    """Read options whose file names are relative to a folder."""
    return in_force(FOLDER, folder)
