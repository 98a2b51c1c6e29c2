"""Records, and the rows of the tables that are written of them."""

import pandas as pd
import pytest

from leakboard.board import tables


@pytest.fixture
def rows(tmp_path):
    """Write the tables of records and return the rows of one, as text."""

    def read(records, name="leaderboard"):
        tables.write_tables(tmp_path / "run", records, {})
        return pd.read_csv(tmp_path / "run" / f"{name}.csv", dtype=str, keep_default_na=False).to_dict("records")

    return read
