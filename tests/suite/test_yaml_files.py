"""YAML 1.2 is read as people write it; every file that is wrong or unsafe is refused in one line."""

import pytest

from leakboard.errors import RequestError
from leakboard.suite.yaml_files import read_yaml


@pytest.fixture
def read(tmp_path):
    """Read a text as a file."""

    def read(text):
        path = tmp_path / "suite.yaml"
        path.write_text(text, "utf-8")
        return read_yaml(path)

    return read


@pytest.fixture
def refusal(read):
    """Return the one line with which a text is refused, without the file's name."""

    def refusal(text):
        with pytest.raises(RequestError) as caught:
            read(text)
        head, separator, reason = str(caught.value).partition("suite.yaml: not readable YAML: ")
        assert separator
        assert "\n" not in head + reason
        return reason

    return refusal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5e-2", 0.05),
        ("1.5e3", 1500.0),
        (".5e1", 5.0),
        ("-.5E1", -5.0),
        ("1e+3", 1000.0),
        ("0.5", 0.5),
        ("e5", "e5"),
        (".5e", ".5e"),
        ("17", 17),
        ("0o17", 15),
    ],
)
def test_numbers(read, text, value):
    assert read(text) == value
    assert type(read(text)) is type(value)


@pytest.mark.parametrize("text", ["123e4567", "-1.0e999"])
def test_a_number_too_large_does_not_become_infinite(read, refusal, text):
    assert refusal(f"a: 1\nb: {text}") == f"line 2: {text} is too large a number"
    assert read("-.inf") == -read(".inf") == float("-inf")


def test_words_are_no_truth_values(read):
    assert read("[yes, no, on, off]") == ["yes", "no", "on", "off"]
    assert read("[true, false]") == [True, False]


@pytest.mark.parametrize("text", ["{true: 1, True: 2}", "{a: 1, 'a': 2}", "{x: [{b: 1, b: 1}]}", "{1: a, 1.0: b}"])
def test_equal_keys_are_repeats_however_they_are_written(refusal, text):
    assert refusal(text).startswith("line 1: '")
    assert refusal(text).endswith(" is given twice")


def test_a_repeat_is_found_next_to_a_merge(read, refusal):
    merge = "a: &a {x: 1}\nb:\n  <<: *a\n  x: 2\n"
    assert read(merge) == {"a": {"x": 1}, "b": {"x": 2}}
    assert refusal(merge + "  x: 3\n") == "line 5: 'x' is given twice"
    assert refusal("a:\n  <<: {x: 1, x: 2}\n") == "line 2: 'x' is given twice"
    assert read(merge.replace("b:", "b: &b") + "c: {<<: *b, y: 3}")["c"] == {"x": 2, "y": 3}


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: [1, *a]}", "a: &a\n  <<: *a\n"])
def test_a_part_that_holds_itself(read, refusal, text):
    assert refusal(text) == "line 1: &a holds itself"
    assert read("a: &a [1]\nb: [*a, *a]") == {"a": [1], "b": [[1], [1]]}


NESTED = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
)
DOUBLED = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 13))


@pytest.mark.parametrize(
    ("text", "alias"), [(f"{NESTED}b: *a8\n", "a4"), (f"{DOUBLED}b: [{', '.join(['*a12'] * 300)}]\n", "a12")]
)
def test_aliases_that_expand_too_far_are_refused(refusal, text, alias):
    """One nested deeply, or many small ones together."""
    reason = refusal(text)
    assert f"the aliases up to &{alias} stand for " in reason
    assert reason.endswith(" entries; allowed: 100,000")


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.getcwd []", "!!python/name:os.system x", "!mine 3"])
def test_a_tag_makes_no_object(refusal, tag):
    assert refusal(f"a: 1\nb: {tag}").startswith("line 2: could not determine a constructor for the tag")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [b\nc: }", "line 2: expected ',' or ']', but got ':'"),
        ("a: 1\n---\nb: 2", "line 2: but found another document"),
        ("a: *b", "line 1: found undefined alias 'b'"),
        ("a: 2024-13-45", "ValueError: month must be in 1..12"),
        ("a: !!int b", "ValueError: invalid literal for int() with base 10: 'b'"),
        ("a: !!omap [b: 1, b: 1]", "AssertionError: no message"),
        ("[" * 1000, "RecursionError: maximum recursion depth exceeded"),
    ],
)
def test_what_cannot_be_read_is_one_line(refusal, text, reason):
    assert refusal(text).startswith(reason)


def test_bytes_that_are_no_text_and_a_missing_file(tmp_path):
    path = tmp_path / "suite.yaml"
    with pytest.raises(RequestError, match=r"suite\.yaml: not readable YAML: FileNotFoundError"):
        read_yaml(path)
    path.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(RequestError, match=r"suite\.yaml: not readable YAML: UnicodeDecodeError"):
        read_yaml(path)
