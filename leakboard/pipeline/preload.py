"""Import the libraries that nearly every stage needs.

On Linux, the workers of the engine `Local` are forked from a process that has imported this module.
No import here may start threads or use a GPU: neither survives a fork.
"""

import sys
from types import TracebackType

import faiss  # noqa: F401
import scipy.linalg
import scipy.stats  # noqa: F401
import sklearn.linear_model  # noqa: F401
import torch  # noqa: F401

import leakboard.pipeline.cell
import leakboard.pipeline.worker  # noqa: F401
from leakboard.execution.resources import silence_libraries

silence_libraries()


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show an error, unless its cause is that the main process ended while it started this process."""
    if not issubclass(kind, EOFError | ConnectionError):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _show
