"""The form for corrections asks which row, what is wrong, and which command shows it."""

from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]


def test_the_form_for_corrections_is_the_one_that_the_readme_names():
    form = YAML(typ="safe").load(ROOT / ".github" / "ISSUE_TEMPLATE" / "correction.yml")
    assert f"*{form['name']}*" in (ROOT / "README.md").read_text("utf-8")
    assert [part["id"] for part in form["body"]] == ["row", "wrong", "command"]
    assert all(part["validations"]["required"] for part in form["body"])
