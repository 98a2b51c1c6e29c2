"""Guesses of single rows: named as the owner names them, in her file alone, as right as the report says."""

import stat

import numpy as np
import pandas as pd
import pytest

import leakboard
from leakboard.api import own_suites
from leakboard.api.report import Report
from leakboard.api.risk import risk_table
from leakboard.errors import RequestError
from leakboard.interfaces import Secret
from leakboard.metrics.measures import Metric
from leakboard.metrics.row_guesses import RowGuesses, SecretScores
from leakboard.pipeline.records import GUESSES, PUBLISHED, Record, pack
from leakboard.suite.names import Names

N = 300
QUICK = [{"attribute_inference": {"portfolio": "logistic", "inputs": "raw"}}]


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(2)
    gender = rng.integers(2, size=N)
    vectors = rng.normal(size=(N, 3)).astype(np.float32)
    vectors[:, 0] += 2 * gender
    secrets = pd.DataFrame({"gender": np.array(["f", "m"])[gender]}, index=[f"row-{i}" for i in range(N)])
    return vectors, secrets


@pytest.fixture(scope="module")
def evaluated(planted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("risk")
    path = folder / "risk.csv"
    return leakboard.evaluate(*planted, attacks=QUICK, out=folder / "out", risk=path, progress=False), path


class TestEvaluated:
    def test_the_file_has_every_test_row_as_the_owner_names_it(self, evaluated, planted):
        report, path = evaluated
        rows = pd.read_csv(path)
        assert list(rows) == ["row", "secret", "guess", "probability", "right", "share"]
        assert len(rows) == report.table["test_size"].iloc[0] == rows["row"].nunique()
        truth = planted[1]["gender"].loc[rows["row"]].to_numpy()
        assert (rows["right"] == (rows["guess"].to_numpy() == truth)).all()
        assert rows["right"].mean() == pytest.approx(report.table["attack_score"].iloc[0])
        assert rows["share"].to_numpy() == pytest.approx([(truth == guess).mean() for guess in rows["guess"]], abs=1e-4)

    def test_the_most_confident_guesses_come_first_and_are_right_more_often(self, evaluated):
        rows = evaluated[0].risk
        assert rows["probability"].is_monotonic_decreasing
        assert rows["right"][:20].mean() > rows["right"][-20:].mean()
        spread = np.sqrt((rows["probability"] * (1 - rows["probability"])).sum())
        assert abs((rows["right"] - rows["probability"]).sum()) < 3 * spread

    def test_only_the_owner_can_read_it(self, evaluated):
        path = evaluated[1]
        kept = list((path.parent / "out").rglob(GUESSES))
        assert [stat.S_IMODE(file.stat().st_mode) for file in (path, *kept)] == [0o600, 0o600]

    def test_no_page_record_or_table_names_a_row(self, evaluated, tmp_path):
        report, path = evaluated
        page = report.save(tmp_path / "page.html").read_text("utf-8")
        published = pack([(record, ()) for record in report.records])
        tables = [file.read_text("utf-8") for file in (path.parent / "out").rglob("*.csv")]
        assert tables
        assert "row-" not in "".join([page, str(published), repr(report), report._repr_html_(), *tables])
        assert "row-" in path.read_text("utf-8")

    def test_a_folder_of_an_earlier_version_is_computed_again(self, evaluated, planted):
        report, path = evaluated
        for file in (path.parent / "out").rglob(GUESSES):
            file.unlink()
        again = leakboard.evaluate(*planted, attacks=QUICK, out=path.parent / "out", progress=False)
        assert again.risk.equals(report.risk)


def test_rows_that_were_left_out_do_not_shift_the_numbers(planted):
    vectors, secrets = planted
    genders = [None, *secrets["gender"].tolist()[1:]]
    report = leakboard.evaluate(vectors, {"gender": genders}, attacks=QUICK, drop_missing=True, progress=False)
    rows = report.risk
    assert (rows["right"] == [genders[int(row)] == guess for row, guess in zip(rows["row"], rows["guess"])]).all()  # noqa: B905


def test_the_command_writes_it(planted, tmp_path, command_line, monkeypatch):
    entries = own_suites._entries
    monkeypatch.setattr(own_suites, "_entries", lambda given: entries(QUICK))
    np.save(tmp_path / "v.npy", planted[0])
    planted[1].rename_axis("name").reset_index().to_csv(tmp_path / "t.csv", index=False)
    given = ["evaluate", tmp_path / "t.csv", "--vectors", tmp_path / "v.npy", "--secrets", "gender"]
    options = ["--attacks", "attribute_inference", "--out", tmp_path / "out", "--risk", tmp_path / "risk.csv"]
    code, out, err = command_line(*given, *options)
    assert code == 0, err
    assert "risk.csv: the guess of each test row, for you alone; other rows have no number" in out
    rows = pd.read_csv(tmp_path / "risk.csv")
    genders = planted[1]["gender"].to_numpy()[rows["row"]]  # without ids rows are numbers
    assert (rows["right"] == (rows["guess"] == genders)).all()


@pytest.mark.parametrize("write", ["command", "python", "report"])
def test_a_folder_that_is_published_is_refused(write, planted, evaluated, tmp_path, command_line):
    (tmp_path / PUBLISHED).touch()
    path = tmp_path / "parts" / "risk.csv"
    message = f"{path}: a folder of published results; allowed: a folder that you do not publish"
    if write == "command":
        code, _, err = command_line("evaluate", "t.csv", "--vectors", "v.npy", "--secrets", "g", "--risk", path)
        assert (code, message in err) == (2, True), err
        return
    with pytest.raises(RequestError) as caught:
        leakboard.evaluate(*planted, risk=path) if write == "python" else evaluated[0].save_risk(path)
    assert str(caught.value) == message
    assert not path.parent.exists()


def test_a_folder_with_guesses_is_not_published(evaluated, command_line):
    out = evaluated[1].parent / "out"
    code, _, err = command_line("publish", out / "suite.yaml", "--out", out)
    assert (code, "guesses of rows are not published" in err) == (2, True), err
    assert not (out / PUBLISHED).exists()


def test_only_a_new_file_or_such_a_file_is_written(planted, evaluated, tmp_path):
    mine = tmp_path / "table.csv"
    mine.write_text("gender,age\nf,3\n", "utf-8")
    for path, message in ((mine, "not a file of rows at risk"), (tmp_path / "no" / "risk.csv", "a folder that exists")):
        with pytest.raises(RequestError, match=message):
            leakboard.evaluate(*planted, risk=path)
    assert mine.read_text("utf-8") == "gender,age\nf,3\n"
    evaluated[0].save_risk(evaluated[1])  # again


def test_a_report_without_rows_at_risk_is_not_lost(planted, tmp_path):
    texts = [f"word{i % 7} other{i % 5} more{i}" for i in range(N)]
    report = leakboard.evaluate(
        planted[0], planted[1], texts=texts, attacks=["nearest_text"], risk=tmp_path / "risk.csv", progress=False
    )
    assert len(report.table)
    assert any("risk.csv was not written" in note for note in report.notes)


def test_other_reports_have_no_guesses():
    with pytest.raises(RequestError, match="risk: this report has no guesses of rows; allowed: a report of"):
        Report("demo", "", {}, ()).risk  # noqa: B018


SECRET = Secret("ill", ("no", "yes"), "attribute")
TRUTH = np.array([0, 0, 0, 1] * 10)


def cell(attack, seed, margin, dev=True, gain=0.5):
    """Return the record and the guesses of an attack that says ``yes`` by these margins of 40 rows."""
    names = {"attack_score": 0.7, "empirical_privacy": 0.3, "privacy_best_constant": 0.25, "attack_advantage": gain}
    metrics = [Metric(name, value) for name, value in names.items()]
    metrics += [Metric("attack_advantage_dev", gain), Metric("attack_score_dev", 0.7)] if dev else []
    usual = {"secrets": ("ill",), "threat": "attributes", "attack_metric": "accuracy", "test_size": 40}
    record = Record("d", "v", attack, seed, "ok", key=f"{attack}{seed}", metrics=metrics, **usual)
    scores = np.stack([np.zeros(40), np.broadcast_to(margin, 40)], axis=1)
    known = (scores, TRUTH) if dev else (np.empty((0, 2)), np.empty(0, int))
    return record, RowGuesses(np.arange(40), secrets={"ill": SecretScores(SECRET, scores, TRUTH, *known)})


def rows_of(*cells):
    records = [record for record, _ in cells]
    table = risk_table(records, {record.key: guesses for record, guesses in cells}, Names(), False)
    return table.set_index(table["row"].astype(int)).sort_index()


def test_the_attack_that_is_stronger_on_dev_guesses():
    right, wrong = np.where(TRUTH, 3.0, -3.0), np.where(TRUTH, -3.0, 3.0)
    rows = rows_of(cell("weak", 0, wrong, gain=0.2), cell("strong", 0, right, gain=0.6))
    assert rows["right"].all()
    rows = rows_of(cell("weak", 0, wrong, gain=0.6), cell("strong", 0, right, gain=0.2))
    assert not rows["right"].any()


def test_most_seeds_decide_and_their_probabilities_are_averaged():
    right, wrong = np.where(TRUTH, 3.0, -3.0), np.where(TRUTH, -3.0, 3.0)
    cells = [cell("probe", seed, margin) for seed, margin in enumerate([right, right, wrong])]
    rows, alone = rows_of(*cells), rows_of(cells[0])
    assert rows["right"].all()
    # the third seed's scores are turned: calibrated, they say the share of ``yes``, also where it guesses ``no``
    share = rows_of(cells[2])["probability"][0]
    assert rows["probability"][3] == pytest.approx((2 * alone["probability"][3] + share) / 3, abs=1e-3)


def test_an_attack_without_scores_on_dev_does_not_guess():
    margin = np.where(TRUTH, 3.0, -3.0)
    assert rows_of(cell("best", 0, -margin, dev=False, gain=0.9), cell("other", 0, margin))["right"].all()
    with pytest.raises(RequestError, match="risk: no attack has guessed secrets of dev, too"):
        rows_of(cell("best", 0, margin, dev=False))
