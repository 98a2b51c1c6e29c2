"""Import what nearly every stage needs, once: workers are forked from a process that has imported this module.

Nothing here may compute: a library that has started threads, or a GPU, does not survive a fork.
"""

import sys
from types import TracebackType

import faiss  # noqa: F401
import scipy.linalg
import scipy.stats  # noqa: F401
import sklearn.linear_model
import sklearn.neural_network  # noqa: F401
import torch  # noqa: F401

import leakboard.pipeline.cell
import leakboard.pipeline.worker  # noqa: F401
from leakboard.execution.resources import silence_libraries

silence_libraries()


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show an error, unless it only says that the main process has gone while it started this one."""
    if not issubclass(kind, EOFError | ConnectionError):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _show
