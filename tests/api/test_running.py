"""A suite that is run from Python gives what the command line gives; importing the package stays free."""

import subprocess
import sys
from pathlib import Path

import pytest

import leakboard
from leakboard.errors import RequestError

SUITE = {"threads": 1, "datasets": [{"letters": {"size": 60}}], "victims": ["hashed"], "attacks": ["ridge"]}


@pytest.fixture
def run(bench):
    def call(suite=None, **options):
        return leakboard.run(SUITE if suite is None else suite, out=bench.out, plugins=bench.files, **options)

    return call


def test_it_gives_what_the_command_line_gives(finished, run, bench):
    (bench.folder / "tiny.yaml").write_bytes((finished.folder / "tiny.yaml").read_bytes())
    report = run(bench.folder / "tiny.yaml")
    assert bench.tables() == finished.tables()
    assert len(report.table[report.table["secret"] == ""]) == len(finished.leaderboard())
    assert report.suite["victims"] == ["hashed", {"hashed": {"noise": 0.05}}]


def test_a_mapping_runs_and_is_kept(run, bench):
    report = run()
    assert report.suite == SUITE
    assert report.table["status"].tolist() == ["ok"]
    assert (bench.out / "suite" / "leaderboard.csv").is_file()
    assert report.summary.startswith("colour: ")
    assert report.costs["stage"].tolist() == ["fit", "publish", "attack"]


def test_seeds_and_only_choose_cells(run):
    suite = SUITE | {"victims": ["hashed", {"hashed": {"noise": 1.0}}]}
    report = run(suite, seeds=[3], only={"victim": "hashed(noise=1.0)"})
    assert {(record.victim, record.seed) for record in report.records} == {("hashed(noise=1.0)", 3)}


def test_a_device_is_chosen_for_a_suite_that_names_another(run, monkeypatch):
    monkeypatch.setattr("leakboard.execution.engines.cards", lambda: 0)
    with pytest.raises(RequestError, match="device: cuda is not allowed here: there is no CUDA device"):
        run(device="cuda")
    report = run(SUITE | {"device": "cuda"}, device="cpu")
    assert report.costs["device"].tolist() == ["cpu"] * 3


def test_failures_are_told(run, bench):
    bench.plugin("hashed", "broken", ("        bare = FittedHashed", '        raise KeyError("gone")\n        bare ='))
    report = run(SUITE | {"victims": ["broken"]})
    assert "warning: 1 of 1 cells failed: KeyError: 'gone'" in report.summary
    assert any("KeyError" in note for note in report.notes)


@pytest.mark.slow
def test_progress_is_on_standard_error_where_it_is_seen_and_wanted(run, capsys, monkeypatch):
    run()
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes a captured stream for a terminal
    run(force=True)
    out, err = capsys.readouterr()
    assert (out, "100%" in err, "ridge" in err) == ("", True, True)
    run(force=True, progress=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": [0, 1, 0]}, r"seeds: \[0, 1, 0\] lists a seed twice"),
        ({"only": {"victm": "hashed"}}, r"only: 'victm' is not one of .*; did you mean 'victim'"),
        ({"only": {"victim": "hased"}}, r"victim=hased: no such cell"),
        ({"seeds": [-1]}, r"seeds\[0\]: -1 is not allowed"),
        ({"jobs": 1.5}, "jobs: 1.5 is not allowed"),
        ({"device": "gpu"}, "device: 'gpu' is not one of auto, cpu, cuda"),
        ({"suite": {**SUITE, "device": "gpu"}}, "suite: device"),
        ({"suite": {**SUITE, "attacks": ["rigde"]}}, r"suite: attacks\[0\]: no attack is named 'rigde'"),
        ({"suite": "dem"}, "no suite 'dem'"),
    ],
)
def test_a_wrong_request_is_one_line(run, options, message):
    with pytest.raises(RequestError, match=message) as caught:
        run(**options)
    assert "\n" not in str(caught.value)


def test_importing_is_free_and_names_are_known():
    script = (
        "import sys, leakboard; names = dir(leakboard); leakboard.__version__\n"
        "heavy = {'numpy', 'pandas', 'torch', 'plotly', 'leakboard.api'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert {'evaluate', 'audit', 'run', 'open_board'} <= set(names)\n"
        "assert all(callable(getattr(leakboard, name)) for name in leakboard.__all__ if name != '__version__')\n"
        "assert not {'torch', 'pandas', 'plotly'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(leakboard.__file__).parent.parent)
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        _ = leakboard.evaluat
