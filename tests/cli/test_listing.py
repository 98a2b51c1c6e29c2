"""`list` and `show` report which attacks apply to which victims."""


def row_of(out, attack):
    """Return what an attack needs and the victims of its row, which may go over several lines."""
    table = out.partition("which attacks meet which victims")[2].splitlines()
    (start,) = [i for i, line in enumerate(table) if line.startswith(f"{attack} ")]
    lines = [table[start].removeprefix(attack)]
    for line in table[start + 1 :]:
        if not line.startswith(" "):
            break
        lines.append(line)
    needed, *victims = " ".join(lines).split()
    return needed, [victim.strip(",") for victim in victims]


def test_list_shows_which_attacks_meet_which_victims(command_line):
    code, out, _ = command_line("list")
    assert code == 0
    needed, victims = row_of(out, "dp_audit")
    assert (needed, "word2vec" in victims, "lstm" in victims) == ("releases", True, False)
    needed, victims = row_of(out, "attribute_inference")
    assert (needed, "lstm" in victims) == ("documents", True)


def test_show_says_what_a_plugin_meets(command_line):
    _, out, _ = command_line("show", "attack", "dp_audit")
    assert "needs releases; meets the victims dpnr, mechanism, word2vec" in " ".join(out.split())
    _, out, _ = command_line("show", "victim", "lstm")
    shown = " ".join(out.split())
    assert "publishes documents; meets the attacks attribute_inference" in shown
    assert "dp_audit" not in shown.partition("meets the attacks")[2]
    assert "meets" not in command_line("show", "dataset", "table")[1]


def test_a_broken_plugin_applies_to_nothing_and_breaks_no_list(command_line, tmp_path):
    path = tmp_path / "odd.py"
    path.write_text('"""Odd."""\n\nfrom leakboard.suite.options import attack\n\n\n@attack\nclass Odd:\n    pass\n')
    code, out, _ = command_line("list", "--plugin", path)
    assert code == 0
    assert "\nodd " not in out.partition("which attacks meet which victims")[2]
