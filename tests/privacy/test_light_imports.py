"""Listing a plugin, or asking a mechanism for its claim, imports no heavy library."""

import subprocess
import sys

HEAVY = ("numba", "scipy", "dp_accounting", "sklearn", "torch", "datasets", "gensim", "pandas")
LIGHT = (
    *(f"leakboard.privacy.mechanisms.{name}" for name in ("broken", "masking", "normalisation", "cube")),
    *(f"leakboard.privacy.protections.{name}" for name in ("compression", "noise", "secret_maps", "whitening")),
    "leakboard.victims._channels",
    "leakboard.privacy.exact.audit",
    "leakboard.privacy.exact.calibration",
    "leakboard.privacy.accounting.accountant",
    "leakboard.privacy.accounting.training_budget",
    "leakboard.models.skip_gram.descent",
    "leakboard.models.skip_gram.vocabulary",
    "leakboard.victims.dp_word2vec",
    "leakboard.victims.dp_word2vec_as_published",
    "leakboard.victims.mechanism",
)


def test_importing_them_imports_nothing_heavy():
    code = f"import sys, {', '.join(LIGHT)}; print([name for name in {HEAVY} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
