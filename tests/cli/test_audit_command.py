"""The command ``audit``: both sides, distances, exit statuses, and refused files."""

import shlex
import sys

import pytest

KEEP = """import random, sys
draws = random.Random(0)
for line in sys.stdin:
    words = line.split()
    print(*(word if draws.random() < {share} else draws.choice(["ant", "bee"]) for word in words))
"""


@pytest.fixture
def audit(tmp_path, command_line):
    """Return a function that audits a program, which keeps a share of the words, on the pairs of a file."""

    def call(*options, code=None, share=0.5, pairs="ant\tbee\n", budget=8000):
        program, file = tmp_path / "keep.py", tmp_path / "pairs.txt"
        program.write_text(KEEP.format(share=share) if code is None else code)
        if pairs is not None:
            file.write_bytes(pairs.encode() if isinstance(pairs, str) else pairs)
        command = shlex.join([sys.executable, str(program)])
        return command_line("audit", "--command", command, "--inputs", file, "--budget", budget, *options)

    return call


class TestBothSides:
    """Two words, of which a share of a half is kept, come out as they are with 3/4: epsilon is ln 3."""

    def test_a_claim_that_holds(self, audit):
        code, out, _ = audit("--epsilon", 1.11)
        assert code == 0
        sentence, event, intervals = out.splitlines()
        assert sentence.endswith("no more than the claimed 1.11: the claim is not refuted, which does not prove it")
        assert event.startswith("the event: the output is '")
        assert intervals.startswith("95 % intervals of these two shares: 0.7")

    def test_a_claim_that_is_violated(self, audit):
        code, out, err = audit("--epsilon", 1, share=0.7, pairs="\ufeffant\tbee\r\n")  # as editors on Windows write it
        assert code == 1
        assert "more than the claimed 1: the claim is violated" in out
        assert "lines answered in" in err


class TestDistance:
    """Two words differ, so the loss is 2 ln 3: it refutes epsilon 1.2 for both, and not for each word."""

    PAIRS = "ant ant\tbee bee\n"

    @pytest.mark.parametrize(
        ("options", "pairs", "status"),
        [
            ((), PAIRS, 1),
            (("--distance", "words"), PAIRS, 0),
            ((), "ant ant\tbee bee\t2\n", 0),
            ((), "ant ant\tbee bee\t1.5\r\n", 1),
        ],
        ids=["none", "words", "given", "given and smaller"],
    )
    def test_the_claim_may_be_for_each_unit(self, audit, options, pairs, status):
        code, out, _ = audit("--epsilon", 1.2, *options, pairs=pairs)
        assert code == status
        assert ("epsilon for each unit of" in out) == ("distance" in str(options) or pairs != self.PAIRS)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (None, "pairs.txt: No such file or directory"),
        ("", "pairs.txt: empty; allowed: lines of two texts separated by a tab"),
        ("ant\tbee\n\n", "pairs.txt: line 2 has 1 columns; allowed: two texts"),
        ("ant\tbee\t1\ncat\tdog\n", "pairs.txt: line 2 has 2 columns; allowed: two texts"),
        ("a\tb\tc\td\n", "pairs.txt: line 1 has 4 columns"),
        ("a\tb\tfar\n", "pairs.txt: line 1: the distance 'far' is not allowed: a number from 0, not infinite"),
        ("a\tb\tinf\n", "line 1: the distance 'inf' is not allowed"),
        (b"\xff\tb\n", "pairs.txt: not UTF-8"),
        ("ant\tant\n", "inputs: pair 0 is twice 'ant'; allowed: two inputs that differ"),
    ],
)
def test_wrong_files_are_refused(audit, pairs, message):
    code, out, err = audit("--epsilon", 1, pairs=pairs)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ((), "print(input())", "it ended after 1 lines with exit status 0"),
        (
            ("--timeout", 0.5),
            "import sys; sys.stdin.read()",
            "it printed 0 of 64 lines in 0.5 s; it must print and flush",
        ),
        (("--distance", "l1"), None, "--distance l1: allowed: words, or a third column"),
        (("--budget", 100), None, "budget: 100 is not allowed: a whole number from 200 on, for 1 pairs"),
    ],
)
def test_wrong_programs_and_options_are_refused(audit, options, code, message):
    status, out, err = audit("--epsilon", 1, *options, code=code)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_distances_are_given_once(audit):
    code, _, err = audit("--epsilon", 1, "--distance", "words", pairs="a\tb\t1\n")
    assert code == 2
    assert "--distance words: not allowed, since" in err
