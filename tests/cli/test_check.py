"""Test `check`: a table of promises, exit status 1 if one is broken, and one line for a wrong request."""

import subprocess
import sys

import pytest
from bench import CHECKOUT

DOUBLES = '''"""Publish the lengths of texts, as doubles."""

import numpy as np

from leakboard.interfaces import FittedVictim, Victim
from leakboard.suite.options import victim


class Fitted(FittedVictim):
    def publish_documents(self, texts, rng):
        return np.array([[len(text)] for text in texts], np.float64)


@victim(revision=1)
class Doubles(Victim):
    def fit(self, corpus, seed):
        return Fitted()
'''


@pytest.mark.slow
def test_a_broken_plugin_fails_with_reason_and_line(output_of, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(DOUBLES)
    out = output_of("check", "--plugin", path, "--plugin", CHECKOUT / "tests" / "tiny" / "ridge.py", status=1)
    (number,) = [i for i, line in enumerate(DOUBLES.splitlines(), 1) if "def publish_documents" in line]
    shown = " ".join(out.split())
    assert f"failed vectors are float64, expected float32 (mine.py:{number}) promised: Documents are float32" in shown
    victims, attacks = out.partition("attacks/ridge")[::2]
    assert "victims/mine" in victims
    assert "failed" not in attacks.replace(", 0 failed,", "")


def test_a_plugin_without_its_library_fails(output_of, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(f"{DOUBLES}\nimport nowhere_to_be_found\n")
    out = output_of("check", "--plugin", path, status=1)
    assert "skipped  needs nowhere_to_be_found, not installed" in out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "name a plugin, as in `check victim lstm`"),
        (["victm", "lstm"], "did you mean 'victim'?"),
        (["victim"], "which victim? There are: adept, adversarial, "),
        (["victim", "lstn"], "did you mean 'lstm'?"),
        (["--plugin", "nowhere.py"], "--plugin nowhere.py: no such file"),
    ],
)
def test_a_wrong_request_is_one_line(arguments, reason, refusal):
    assert reason in refusal("check", *arguments)


def test_check_needs_no_pytest():
    code = "import sys; sys.modules['pytest'] = None\nimport leakboard.conformance.suite, leakboard.cli.check"
    process = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
