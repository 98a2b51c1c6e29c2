"""Share the tables that are written from records."""

import pandas as pd
import pytest

from leakboard.board import tables


@pytest.fixture
def rows(tmp_path):
    """Return a function that writes the tables of records and returns the rows of one table as text."""

    def read(records, name="leaderboard"):
        tables.write_tables(tmp_path / "run", records, {})
        return pd.read_csv(tmp_path / "run" / f"{name}.csv", dtype=str, keep_default_na=False).to_dict("records")

    return read
