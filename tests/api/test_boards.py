"""Published leaderboards open as reports, without computing anything."""

import pandas as pd
import pytest

import leakboard
from leakboard.pipeline.records import PUBLISHED
from leakboard.suite.suites import suite_folder


def test_every_published_board_opens_and_says_what_its_file_says():
    names = leakboard.boards()
    assert {"demo", "dpnr", "mechanisms"} <= set(names)
    demo = leakboard.open_board("demo")
    published = pd.read_csv(
        suite_folder() / "demo" / "leaderboard.csv", keep_default_na=False, na_values={"attack_score": ""}
    )
    for name in ("victim", "attack", "secret"):
        assert demo.table[name].tolist() == published[name].tolist()
    assert demo.table["attack_score"].tolist() == pytest.approx(
        published["attack_score"].tolist(), abs=1e-4, nan_ok=True
    )
    assert demo.description == demo.suite["description"] != ""
    assert not demo.costs.empty
    assert "the claim is violated" in demo.summary


@pytest.mark.slow
def test_a_folder_opens_too_and_another_does_not(tmp_path):
    folder = suite_folder() / "dpnr"
    assert len(leakboard.open_board(folder).comparison) > 10
    with pytest.raises(ValueError, match=r"'demoo' is no published leaderboard: .*; did you mean 'demo'"):
        leakboard.open_board("demoo")
    with pytest.raises(ValueError, match="is no published leaderboard"):
        leakboard.open_board(tmp_path)


def test_what_others_submitted_to_a_board_is_no_board_of_its_own(tmp_path, monkeypatch):
    for folder in ("one", "one/submissions/two"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / PUBLISHED).touch()
    monkeypatch.setattr("leakboard.pipeline.results.suite_folder", lambda: tmp_path)
    monkeypatch.setattr("leakboard.suite.suites.suite_folder", lambda: tmp_path)
    assert leakboard.boards() == ["one"]
