"""Evaluations before and after a defence, side by side: noise that helps, and a copy that does not."""

import re

import numpy as np
import pandas as pd
import pytest
from ruamel.yaml import YAML

import leakboard
from leakboard.api import own_suites
from leakboard.api.report import Report
from leakboard.errors import RequestError

N = 400
QUICK = [{"attribute_inference": {"portfolio": "logistic", "inputs": "raw"}}]


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(8)
    gender, age = rng.integers(2, size=(2, N))
    before = rng.normal(size=(N, 4)).astype(np.float32)
    before[:, 0] += 2.0 * gender
    noisy = before + 3 * rng.normal(size=before.shape).astype(np.float32)
    int8 = np.round(before * 30) / 30
    secrets = pd.DataFrame({"gender": np.array(["f", "m"])[gender], "age": np.array(["old", "young"])[age]})
    return {"before": before, "noisy": noisy, "int8": int8}, secrets


@pytest.fixture(scope="module")
def reports(vectors):
    releases, secrets = vectors
    return {name: leakboard.evaluate(given, secrets, attacks=QUICK, seeds=[0, 1]) for name, given in releases.items()}


@pytest.fixture(scope="module")
def compared(reports):
    return leakboard.compare(reports)


class TestPlantedTruth:
    def test_noise_helps_and_rounding_does_not(self, compared):
        found = compared.differences.set_index(["secret", "release"])
        assert found.loc[("gender", "noisy"), "gives_away"] == "less"
        assert found.loc[("gender", "noisy"), "difference_high"] < 0
        for same in (("gender", "int8"), ("age", "noisy"), ("age", "int8")):
            assert found.loc[same, "gives_away"] == "no difference shown"
            assert found.loc[same, "difference_low"] <= 0 <= found.loc[same, "difference_high"]
        assert found["comparisons"].tolist() == [4] * 4
        assert found["seeds"].tolist() == [2] * 4

    def test_a_defence_that_makes_it_worse_is_told(self, reports):
        turned = leakboard.compare({"noisy": reports["noisy"], "plain": reports["before"]})
        assert turned.differences.set_index("secret").loc["gender", "gives_away"] == "more"
        assert any(s.startswith("gender: 'plain' gives away more than 'noisy'") for s in turned.sentences)

    def test_a_true_copy_differs_in_nothing(self, reports):
        found = leakboard.compare({"before": reports["before"], "copy": reports["before"]}).differences
        assert found["difference"].tolist() == found["difference_low"].tolist() == [0, 0]


class TestOneCall:
    def test_it_says_the_same_as_one_evaluation_of_all(self, vectors, compared):
        releases, secrets = vectors
        together = leakboard.evaluate(releases, secrets, attacks=QUICK, seeds=[0, 1])
        numbers = ["attack_advantage", "difference", "difference_low", "difference_high", "gives_away"]
        assert together.differences[numbers].equals(compared.differences[numbers])
        assert together.releases == compared.releases == ("before", "noisy", "int8")

    def test_the_command_compares_files(self, vectors, compared, tmp_path, command_line, monkeypatch):
        releases, secrets = vectors
        entries = own_suites._entries
        monkeypatch.setattr(own_suites, "_entries", lambda given: entries(QUICK))
        options = []
        for name in ("before", "noisy"):
            np.save(tmp_path / f"{name}.npy", releases[name])
            options += ["--vectors", f"{name}={tmp_path / f'{name}.npy'}"]
        secrets.to_csv(tmp_path / "t.csv", index=False)
        given = [*options, "--secrets", "gender", "--seeds", "0,1", "--attacks", "attribute_inference"]
        code, out, err = command_line("evaluate", tmp_path / "t.csv", *given, "--out", tmp_path / "out")
        assert code == 0, err
        assert "gender: 'noisy' gives away less than 'before': an attacker gains " in out
        suite = YAML(typ="safe").load((tmp_path / "out" / "suite.yaml").read_text("utf-8"))
        assert [victim["name"] for victim in suite["victims"]] == ["before", "noisy"]


class TestShown:
    def test_the_page_has_table_and_picture(self, compared, tmp_path):
        page = compared.save(tmp_path / "page.html").read_text("utf-8")
        for shown in (
            "What the strongest attack gains",
            "Releases side by side",
            "report-releases",
            "no difference shown",
        ):
            assert shown in page
        assert not re.search(r"-0\.0+(?!\d)", page.partition("Details")[0])
        row = compared.differences.iloc[0]
        assert f"{row['difference_low']:.2f} to {row['difference_high']:.2f}" in page

    def test_the_picture_has_a_line_for_each_secret(self, compared):
        figure = compared.plot("release", "attack_advantage")
        assert {trace.name: tuple(trace.x) for trace in figure.data} == dict.fromkeys(
            ("age", "gender"), compared.releases
        )

    def test_risk_names_the_release(self, compared):
        assert next(iter(compared.risk)) == "release"
        assert set(compared.risk["release"]) == set(compared.releases)


@pytest.mark.parametrize("change", ["seed", "seeds", "secrets", "rows"])
def test_evaluations_of_other_rows_secrets_or_seeds_are_refused(change, vectors, reports):
    releases, secrets = vectors
    options = {"seeds": [0, 1], "seed": 1 if change == "seed" else 0}
    given = secrets[["gender"]] if change == "secrets" else secrets
    n = N - 40 if change == "rows" else N
    if change == "seeds":
        options["seeds"] = [0]
    other = leakboard.evaluate(releases["noisy"][:n], given[:n], attacks=QUICK, **options)
    what = {"seed": "the test rows", "rows": "the test rows"}.get(change, f"the {change}")
    with pytest.raises(RequestError, match=f"compare: {what} of 'after' differ from those of 'before'; evaluate both"):
        leakboard.compare({"before": reports["before"], "after": other})


def test_other_things_are_refused(reports, compared):
    with pytest.raises(RequestError, match="compare: allowed: names of at least two reports"):
        leakboard.compare({"before": reports["before"]})
    with pytest.raises(RequestError, match="compare: 'b' has no guesses of rows"):
        leakboard.compare({"a": reports["before"], "b": Report("demo", "", {}, ())})
    with pytest.raises(RequestError, match="compare: 'b' has several releases"):
        leakboard.compare({"a": reports["before"], "b": compared})
    with pytest.raises(RequestError, match="compare: ' a' is not allowed as a name"):
        leakboard.compare({" a": reports["before"], "b": reports["before"]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a.npy", "after=b.npy"], "--vectors a.npy: several are given; allowed is NAME=FILE, as in before=a.npy"),
        (["a=a.npy", "a=b.npy"], "--vectors a=b.npy: 'a' is named twice"),
        (["a=nine.npy", "b=ten.npy"], "nine.npy: no such file"),
    ],
)
def test_wrong_releases_are_one_line(options, message, tmp_path, command_line):
    (tmp_path / "t.csv").write_text("gender\nf\n")
    given = [part for option in options for part in ("--vectors", option)]
    code, _, err = command_line("evaluate", tmp_path / "t.csv", *given, "--secrets", "gender")
    assert (code, err.count("\n"), message in err) == (2, 1, True), err
