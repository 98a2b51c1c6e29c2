"""LeakBoard: how much does a published text representation give away?

In a checkout the plugin folders stand beside this package; they are reached as ``leakboard.attacks``,
``leakboard.victims`` and ``leakboard.datasets``, exactly as in an installed wheel. The folders have no
``__init__.py``: a top-level package named ``datasets`` would shadow the Hugging Face library.
"""

from pathlib import Path

__version__ = "0.1.0"

_CHECKOUT = Path(__file__).resolve().parent.parent
if (_CHECKOUT / "run_benchmark.py").is_file() and str(_CHECKOUT) not in __path__:
    __path__.append(str(_CHECKOUT))
