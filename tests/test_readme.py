"""Tables of handwritten pages have the numbers of the published leaderboards."""

from pathlib import Path

import pandas as pd

from leakboard.metrics.audits import rounded_down

ROOT = Path(__file__).parent.parent
PRIVACY = (ROOT / "docs" / "privacy.md").read_text("utf-8")


def leaderboard(name):
    """Return a published leaderboard by labels: plugins with all options that differ from their defaults."""
    table = pd.read_csv(ROOT / "leaderboards" / name / "leaderboard.csv")
    table = table[table["secret"].isna()]
    return table.assign(**{kind: table[f"{kind}_options"] for kind in ("dataset", "victim", "attack")})


def test_its_three_epsilons_are_the_published_ones():
    """A row of the table is a victim of the demo; the numbers are those published, rounded to three digits."""
    published = leaderboard("demo").query("victim.str.startswith('dpnr')")
    table = PRIVACY.partition("<!-- three epsilons")[2].partition("\n\n")[0]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[3:]]
    options = {"the paper": "", "released code": "sampling=shared", "true sensitivity": "calibration=l1"}
    assert len(shown) == len(options) == published["victim"].nunique()
    for name, *numbers in shown:
        option = next(option for words, option in options.items() if words in name)
        is_row = published["victim"].str.contains(option, regex=False)
        for other in {*options.values()} - {"", option}:
            is_row &= ~published["victim"].str.contains(other, regex=False)
        row = published[is_row].iloc[0]
        expected = [f"{row[f'epsilon_{kind}']:.3g}" for kind in ("claimed", "proved")]
        expected.append(rounded_down(row["epsilon_audited"]))
        assert [number.removeprefix("at least ") for number in numbers] == [
            *(e.replace("inf", "none") for e in expected),
            row["verdict"],
        ]


def test_its_table_of_dpnr_is_the_published_one():
    """A row is a victim of the leaderboard at epsilon 0.05; two digits of accuracy and privacy, three of the audit."""
    published = leaderboard("dpnr").set_index(["victim", "attack"])
    pooled = "epochs=3, learning_rate=0.001, pooling=pooler, train_layers=1"
    encoder = f"encoder=bert({pooled}), epsilon=0.05"
    victims = {
        "no defence": f"bert({pooled})",
        "as in the paper": f"dpnr({encoder})",
        "as released": f"dpnr({encoder}, sampling=shared)",
        "calibrated": f"dpnr(calibration=l1, {encoder}, training=standard)",
    }
    table = PRIVACY.partition("<!-- dpnr")[2].partition("\n\n")[0]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[3:]]
    assert [name for name, *_ in shown] == list(victims)
    ensembles = {"as in the paper": "bayes=mixed, portfolio=ensemble"}
    for name, *cells in shown:
        papers, strongest = (
            published.loc[(victims[name], f"entity_presence({options})")]
            for options in ("portfolio=lyu", ensembles.get(name, "portfolio=ensemble"))
        )
        audited = papers["epsilon_audited"]
        assert cells == [
            f"{papers['task_accuracy']:.2f}",
            f"{papers['empirical_privacy']:.2f}",
            f"{strongest['empirical_privacy']:.2f}",
            "" if pd.isna(audited) else f"at least {rounded_down(audited)}",
            "" if pd.isna(audited) else papers["verdict"],
        ]


def test_the_readme_installs_before_it_calls_anything():
    """The first block makes the environment, and torch has the pinned version."""
    readme = (ROOT / "README.md").read_text("utf-8")
    first = readme.split("```sh\n")[1].partition("```")[0]
    commands = [line.partition("   #")[0] for line in first.splitlines()]
    pinned = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch=="))
    assert commands == [
        "python3 -m venv .venv",
        ". .venv/bin/activate",
        f"pip install {pinned} --index-url https://download.pytorch.org/whl/cpu",
        "pip install -c constraints.txt -e '.[pretrained]'",
    ]
    assert readme.index("python3 -m venv") < readme.index("make demo") < readme.index("import leakboard")
