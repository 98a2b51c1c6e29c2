"""Test that the findings of each board are short: an answer, then at most five bullets."""

import re
from pathlib import Path

import pytest

FINDINGS = sorted((Path(__file__).parents[2] / "leaderboards").glob("*/findings.md"))
MAX_ANSWER, MAX_BULLETS, MAX_BULLET = 25, 5, 40
"""Largest number of words of the answer, of bullets, and of words of a bullet."""


def too_long(text):
    """Return which parts of findings have too many words; empty if none has.

    White space separates words. The answer is the first paragraph under the title. Findings have no other paragraph.
    """
    title, answer, *rest = re.split(r"\n\s*\n|\n(?=- )", text.strip())
    if not title.startswith("# ") or answer.startswith("- "):
        return ["a title, then an answer"]
    bullets = [part for part in rest if part.startswith("- ")]
    counted = [("the answer", len(answer.split()), MAX_ANSWER), ("bullets", len(bullets), MAX_BULLETS)]
    counted += [(bullet.split("\n")[0], len(bullet.split()) - 1, MAX_BULLET) for bullet in bullets]
    long = [f"{part}: {count}, at most {most}" for part, count, most in counted if count > most]
    return long + [f"no bullet: {part}" for part in rest if part not in bullets]


def test_there_are_findings():
    assert len(FINDINGS) >= 12


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.parent.name)
def test_findings_are_short(path):
    assert too_long(path.read_text("utf-8")) == []


def findings(answer, *bullets):
    """Return findings with an answer and bullets of so many words; lines have four words."""

    def lines(count, indent):
        words = ["word"] * count
        return f"\n{indent}".join(" ".join(words[at : at + 4]) for at in range(0, count, 4))

    return f"# How long?\n\n{lines(answer, '')}\n\n" + "\n".join(f"- {lines(count, '  ')}" for count in bullets) + "\n"


def test_the_longest_that_is_allowed_has_no_problem():
    assert too_long(findings(25, 40, 40, 40, 40, 40)) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (findings(26, 40), "the answer: 26, at most 25"),
        (findings(25, 40, 41), "- word word word word: 41, at most 40"),
        (findings(25, 1, 1, 1, 1, 1, 1), "bullets: 6, at most 5"),
        (findings(25, 40) + "\nOne more paragraph.\n", "no bullet: One more paragraph."),
        ("# How long?\n\n- A bullet.\n", "a title, then an answer"),
    ],
)
def test_one_word_more_is_a_problem(text, problem):
    assert too_long(text) == [problem]
