"""The command ``audit``: both sides, distances, exit statuses, and refused files."""

import re
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
    """Half of the draws keep the word, half take one of two words: it stays with 3/4, so epsilon is ln 3."""

    def test_a_claim_that_holds(self, audit):
        code, out, _ = audit("--epsilon", 1.11)
        assert code == 0
        sentence, event, intervals = out.splitlines()
        assert sentence.endswith("no more than the claimed 1.11: the claim is not refuted, which does not prove it")
        assert event.startswith("the event: the output is '")
        pattern = r": ([\d,]+) of ([\d,]+) \((0\.7\d*) to (0\.7\d*)\), and ([\d,]+) of ([\d,]+) \(0\.2"
        start = "counts and 95 % intervals of these two shares, not corrected for the choice among rounds"
        held, lines, low, high, *other = re.match(start + pattern, intervals).groups()
        held, lines, *other = (int(number.replace(",", "")) for number in (held, lines, *other))
        assert float(low) < held / lines < float(high)
        assert lines != other[1]  # coins choose the inputs
        assert 1_000 < lines + other[1] < 8_000

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
        (
            "a\tb\t1\nc\td\t1\na\tb\t2\n",
            "line 3: the distance 2 is not allowed: this pair has the distance 1 in an earlier line",
        ),
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
            "it printed 0 of 125 lines in 0.5 s; it must print and flush",
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


def test_a_delta_above_zero_names_its_assumption(audit):
    sentence = "with delta above 0 the bound assumes that calls are independent of each other"
    for delta in (0, 1e-6):
        code, out, _ = audit("--epsilon", 1.11, "--delta", delta, budget=1000)
        assert code == 0
        assert (sentence in out) == (delta > 0)


def test_white_space_is_no_distance_of_words(audit):
    code, _, err = audit("--epsilon", 1, "--distance", "words", pairs="ant bee\tant  bee\n")
    assert code == 2
    assert (
        "inputs: pair 0, 'ant bee' and 'ant  bee', differs in white space alone; allowed with distance='words'" in err
    )
    assert err.count("\n") == 1


def test_distances_are_given_once(audit):
    code, _, err = audit("--epsilon", 1, "--distance", "words", pairs="a\tb\t1\n")
    assert code == 2
    assert "--distance words: not allowed, since" in err
