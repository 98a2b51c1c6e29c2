"""Measure how much private information a published text representation gives away.

From Python: ``evaluate`` vectors, ``compare`` evaluations, ``audit`` a mechanism, ``run`` a suite, ``open_board`` for
published results. Each is imported when it is first used.

In a checkout the plugin folders are next to this package. They are imported as ``leakboard.attacks``,
``leakboard.victims`` and ``leakboard.datasets``, as in an installed wheel. The folders have no ``__init__.py``: a
top-level package named ``datasets`` would shadow the Hugging Face library.
"""

import importlib
from pathlib import Path
from typing import Any

__version__ = "0.3.0.dev1"

_CHECKOUT = Path(__file__).resolve().parent.parent
if (_CHECKOUT / "run_benchmark.py").is_file() and str(_CHECKOUT) not in __path__:
    __path__.append(str(_CHECKOUT))

_PUBLIC = {
    "audit": "mechanisms",
    "boards": "boards",
    "compare": "comparing",
    "evaluate": "own_vectors",
    "open_board": "boards",
    "run": "running",
}
"""Modules of `leakboard.api` by public function."""
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(f"leakboard.api.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'leakboard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
