"""`check`: a table of promises, exit status 1 where one is broken, and one line where the request is wrong."""

import subprocess
import sys

import pytest
from bench import CHECKOUT

HASHED = CHECKOUT / "tests" / "tiny" / "hashed.py"


def test_a_broken_plugin_fails_with_reason_and_line(command_line, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(HASHED.read_text().replace("return means +", "return means.astype(float) +"))
    status, out, _ = command_line("check", "--plugin", path, "--plugin", CHECKOUT / "tests" / "tiny" / "ridge.py")
    assert status == 1
    (number,) = [i for i, line in enumerate(path.read_text().splitlines(), 1) if "def publish_documents" in line]
    shown = " ".join(out.split())
    assert f"failed vectors are float64, expected float32 (mine.py:{number}) promised: Documents are float32" in shown
    victims, attacks = out.partition("attacks/ridge")[::2]
    assert "victims/mine" in victims
    assert "failed" not in attacks.replace(", 0 failed,", "")


def test_a_plugin_whose_library_is_missing_has_not_passed(command_line, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(HASHED.read_text().replace("import numpy as np", "import nowhere_to_be_found\nimport numpy as np"))
    status, out, _ = command_line("check", "--plugin", path)
    assert status == 1
    assert "skipped  needs nowhere_to_be_found, not installed" in out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "name a plugin, as in `check victim lstm`"),
        (["victm", "lstm"], "did you mean 'victim'?"),
        (["victim"], "which victim? There are: adversarial, "),
        (["victim", "lstn"], "did you mean 'lstm'?"),
        (["--plugin", "nowhere.py"], "--plugin nowhere.py: no such file"),
    ],
)
def test_a_wrong_request_is_one_line(arguments, reason, command_line):
    status, _, err = command_line("check", *arguments)
    assert (status, err.count("\n"), reason in err) == (2, 1, True), err


def test_it_needs_no_pytest():
    code = "import sys; sys.modules['pytest'] = None\nimport leakboard.conformance.suite, leakboard.cli.check"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
