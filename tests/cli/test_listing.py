"""Test which attacks meet which victims in the output of `list` and `show`."""


def row_of(out, attack):
    """Return the need of an attack and the victims in its row, which may have several lines."""
    table = out.partition("which attacks meet which victims")[2].splitlines()
    (start,) = [i for i, line in enumerate(table) if line.startswith(f"{attack} ")]
    lines = [table[start].removeprefix(attack)]
    for line in table[start + 1 :]:
        if not line.startswith(" "):
            break
        lines.append(line)
    needed, *victims = " ".join(lines).split()
    return needed, [victim.strip(",") for victim in victims]


def test_list_shows_which_attacks_meet_which_victims(output_of):
    out = output_of("list")
    needed, victims = row_of(out, "dp_audit")
    assert (needed, "word2vec" in victims, "lstm" in victims) == ("releases", True, False)
    needed, victims = row_of(out, "attribute_inference")
    assert (needed, "lstm" in victims) == ("documents", True)


def test_show_lists_what_a_plugin_meets(output_of):
    shown = " ".join(output_of("show", "attack", "dp_audit").split())
    assert "needs releases; meets the victims adept, dpnr, mechanism, word2vec" in shown
    shown = " ".join(output_of("show", "victim", "lstm").split())
    assert "publishes documents; meets the attacks aligned, attribute_inference" in shown
    assert "dp_audit" not in shown.partition("meets the attacks")[2]
    assert "meets" not in output_of("show", "dataset", "table")


def test_a_broken_plugin_meets_no_victim_and_breaks_no_list(output_of, tmp_path):
    path = tmp_path / "odd.py"
    path.write_text('"""Odd."""\n\nfrom leakboard.suite.options import attack\n\n\n@attack\nclass Odd:\n    pass\n')
    out = output_of("list", "--plugin", path)
    assert "\nodd " not in out.partition("which attacks meet which victims")[2]


def test_show_prints_no_double_backticks(output_of):
    assert "``" not in output_of("show", "dataset", "table")
