"""Import libraries before workers are forked. No import may start threads or use a GPU: neither survives a fork."""

import sys
from types import TracebackType

import faiss  # noqa: F401
import scipy.linalg
import scipy.stats  # noqa: F401
import sklearn.linear_model  # noqa: F401
import torch  # noqa: F401

import leakboard.pipeline.cell
import leakboard.pipeline.task_functions  # noqa: F401
from leakboard.execution.resources import silence_libraries

silence_libraries()


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    # the main process may end while it starts this process; its pipes and semaphores end with it
    if not issubclass(kind, EOFError | ConnectionError | FileNotFoundError):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _show
