"""Build corpora without a task from the texts of a few users."""

import pandas as pd

from leakboard.data.corpora import build_corpus


def corpus_of(rows, columns=("user", "text", "budget")):
    """Return train and dev, both with these rows."""
    frame = pd.DataFrame(rows, columns=list(columns)).assign(row=range(len(rows)))
    budgets = [column for column in columns if column == "budget"]
    splits = dict.fromkeys(("train", "dev", "test"), frame)
    return build_corpus("made", splits, [], None, numeric_targets=budgets).only("train", "dev")
