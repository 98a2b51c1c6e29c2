"""Import what nearly every stage needs, once: workers are forked from a process that has imported this module.

Nothing here may compute: a library that has started threads, or a GPU, does not survive a fork.
"""

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
