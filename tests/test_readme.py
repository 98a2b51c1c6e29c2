"""The tables of the pages that were written by hand have the numbers of the published leaderboards."""

from pathlib import Path

import pandas as pd
import pytest

from leakboard.pipeline.records import published_records

ROOT = Path(__file__).parent.parent
PRIVACY = (ROOT / "docs" / "privacy.md").read_text("utf-8")


def leaderboard(name):
    """Return a published leaderboard by labels: plugins with all options that differ from their defaults."""
    table = pd.read_csv(ROOT / "leaderboards" / name / "leaderboard.csv")
    table = table[table["secret"].isna()]
    return table.assign(**{kind: table[f"{kind}_options"] for kind in ("dataset", "victim", "attack")})


def test_its_three_epsilons_are_the_published_ones():
    """A row of the table is a victim of the demo; the numbers stand as published, rounded to three digits."""
    published = leaderboard("demo").query("victim.str.startswith('dpnr')")
    table = PRIVACY.partition("<!-- three epsilons")[2].partition("\n\n")[0]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[3:]]
    told = {"the paper": "", "released code": "sampling=shared", "true sensitivity": "calibration=l1"}
    assert len(shown) == len(told) == published["victim"].nunique()
    for name, *numbers in shown:
        option = next(option for words, option in told.items() if words in name)
        others = [other for other in told.values() if other and other != option]
        asked = published["victim"].str.contains(option, regex=False)
        for other in others:
            asked &= ~published["victim"].str.contains(other, regex=False)
        row = published[asked].iloc[0]
        expected = [f"{row[f'epsilon_{kind}']:.3g}" for kind in ("claimed", "proved", "audited")]
        assert [number.removeprefix("at least ") for number in numbers] == [
            *(e.replace("inf", "none") for e in expected),
            row["verdict"],
        ]


def test_its_table_of_dpnr_is_the_published_one():
    """A row is a victim of the leaderboard at epsilon 0.05; two digits of accuracy and privacy, three of the audit."""
    published = leaderboard("dpnr").set_index(["victim", "attack"])
    encoder = "encoder=bert(epochs=3, learning_rate=0.001, train_layers=1), epsilon=0.05"
    victims = {
        "no defence": "bert(epochs=3, learning_rate=0.001, train_layers=1)",
        "as in the paper": f"dpnr({encoder})",
        "as released": f"dpnr({encoder}, sampling=shared)",
        "calibrated": f"dpnr(calibration=l1, {encoder}, training=standard)",
    }
    table = PRIVACY.partition("<!-- dpnr")[2].partition("\n\n")[0]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[3:]]
    assert [name for name, *_ in shown] == list(victims)
    for name, *told in shown:
        papers, centres = (
            published.loc[(victims[name], f"entity_presence({options}portfolio=mlp)")]
            for options in ("", "inputs=centred, ")
        )
        audited = papers["epsilon_audited"]
        assert told == [
            f"{papers['task_accuracy']:.2f}",
            f"{papers['empirical_privacy']:.2f}",
            f"{centres['empirical_privacy']:.2f}",
            "" if pd.isna(audited) else f"at least {audited:.3g}",
            "" if pd.isna(audited) else papers["verdict"],
        ]


CORPORA = {
    "AG": "ag(duplicates=keep)",
    "Trustpilot English": "trustpilot",
    "Trustpilot English, +DEMO": "trustpilot(show_secrets=true)",
    "Trustpilot German": "trustpilot(language=german)",
    "Trustpilot German, +DEMO": "trustpilot(language=german, show_secrets=true)",
}
METHODS = ("multidetasking", "generation", "declustering", "gradient_reversal", "erasure")


def rows_of_defences(table, attacker):
    """Return a line a corpus: accuracy and privacy of the LSTM, what each defence adds, and what bounds them (%)."""

    def percent(row, names=("task_accuracy", "empirical_privacy"), less=None):
        return [f"{100 * (row[n] - (0 if less is None else less[n])):{'' if less is None else '+'}.1f}" for n in names]

    for corpus, dataset in CORPORA.items():
        kind = "entity_presence" if corpus == "AG" else "attribute_inference"
        rows = table[(table["dataset"] == dataset) & (table["attack"] == kind + attacker)]
        plain = rows[rows["victim"].str.startswith("lstm")].iloc[0]
        defended = [rows[rows["victim"].str.contains(f"method={method}")].iloc[0] for method in METHODS]
        cells = [*percent(plain), *(" ".join(percent(row, less=plain)) for row in defended)]
        bounds = percent(plain, ("task_majority", "privacy_best_constant", "privacy_text_classifier"))
        yield "| " + " | ".join([corpus, *cells, *bounds]) + " |"


@pytest.mark.parametrize(("heading", "attacker"), [("the paper's", "(portfolio=mlp)"), ("the portfolio", "")])
def test_the_tables_of_defences_are_the_published_ones(heading, attacker):
    folder = ROOT / "leaderboards" / "defences"
    page = (
        (folder / "README.md").read_text(encoding="utf-8").partition(f"Attacker: {heading}")[2].partition("\n\n## ")[0]
    )
    expected = list(rows_of_defences(leaderboard("defences"), attacker))
    assert [line for line in page.splitlines() if line.startswith(("| AG", "| Trustpilot"))] == expected


def labelled(name="dp_word2vec", **options):
    """Return a victim's label: its options by name."""
    return f"{name}({', '.join(f'{key}={value}' for key, value in sorted(options.items()))})"


PAIRS = {"learning_rate": 0.005, "expected_batch_size": 8192, "steps": 300}
TWIN = {"noise_multiplier": 0.0, "vocabulary": "exact"}
SMALL = {"clipping_norm": 0.1, "delta": "1e-05", "steps": 100}
DOCUMENTS = {**SMALL, "learning_rate": 0.2, "expected_batch_size": 500, "unit": "document"}
USERS = {**SMALL, "learning_rate": 0.5, "expected_batch_size": 100, "unit": "user"}
BUDGETS = {**USERS, "noise_multiplier": 1.0, "vocabulary_noise": 4.0, "budgets": "[2.0, 4.0, 8.0]"}
RELEASED = {"clipping_norm": 0.01, "delta": "1e-05", "learning_rate": 0.0078125, "expected_batch_size": 128}
PUBLISHED = "dp_word2vec_as_published"
TABLES = {
    "gensim": "word2vec(sg=1)",
    "random start": labelled(**TWIN, steps=0),
    "None-DP: clipped, no noise": labelled(**{**PAIRS, "learning_rate": 0.05}, **TWIN),
    "pairs, epsilon 1": labelled(**PAIRS, epsilon=1.0),
    "pairs, epsilon 8": labelled(**PAIRS, epsilon=8.0),
    "pairs, epsilon 8, batches in order": labelled(**PAIRS, epsilon=8.0, sampling="fixed"),
    "pairs, epsilon 64": labelled(**PAIRS, epsilon=64.0),
    "pairs, as released": labelled(PUBLISHED, **RELEASED, noise_multiplier=5.0, steps=10000, variant="released_code"),
    "documents, epsilon 1": labelled(**DOCUMENTS, epsilon=1.0, vocabulary_noise=6.0),
    "documents, epsilon 8": labelled(**DOCUMENTS, epsilon=8.0, vocabulary_noise=2.0),
    "users, epsilon 1": labelled(**USERS, epsilon=1.0, vocabulary_noise=6.0),
    "users, epsilon 8": labelled(**USERS, epsilon=8.0, vocabulary_noise=2.0),
    "users, epsilon 64": labelled(**USERS, epsilon=64.0, vocabulary_noise=2.0),
    "users, budgets 2 to 8, filter": labelled(**BUDGETS),
    "users, budgets 2 to 8, the paper's shares": labelled(
        PUBLISHED, **{key: value for key, value in BUDGETS.items() if key != "unit"}, variant="paper_accounting"
    ),
}
"""What the page of dp_word_vectors calls each victim."""
REGIMES = {
    "AG": ("ag(auxiliary=overlap)", "ag(auxiliary=disjoint)", "ag(auxiliary=trustpilot)"),
    "generated reviews": tuple(
        f"generated_reviews(auxiliary={name}, users=2000)" for name in ("overlap", "disjoint", "ag")
    ),
}
ALIGNED, ASKED = "nearest_neighbour(align=anchors)", "membership_inference({}unit={})"


def rows_of_word_vectors(folder, corpus, kind):
    """Return a line a victim of the page of dp_word_vectors: what it is good for, gives away, or claims."""
    board = leaderboard(folder.name).set_index(["dataset", "victim", "attack"])
    records = published_records(folder)
    cells = {(r.dataset, r.victim, r.attack, m.name): m.value for r in records for m in r.metrics if not m.variable}
    datasets = REGIMES[corpus]

    def score(dataset, victim, attack, column="attack_score"):
        key = (dataset, victim, attack)
        value = board[column].get(key, float("nan")) if key in board.index else float("nan")
        return "" if pd.isna(value) else f"{value:.2f}"

    def metric(victim, name):
        value = cells.get((datasets[1], victim, ASKED.format("", "document"), name))
        return "" if value is None else f"{value:.2f}"

    for name, victim in TABLES.items():
        if (datasets[1], victim) not in board.index.droplevel("attack"):  # it cannot be trained on this corpus
            continue
        if kind == "use":
            found = [score(datasets[1], victim, ASKED.format("", "document"), "task_accuracy")]
            found += [metric(victim, n) for n in ("map_word", "map_char", "average_precision@100", "gold_queries")]
        elif kind == "attacks":
            found = [score(dataset, victim, ALIGNED) for dataset in datasets]
            found += [score(datasets[1], victim, ASKED.format("", unit)) for unit in ("document", "user")]
            found += [score(datasets[1], victim, ASKED.format("score=likelihood_ratio, shadows=4, ", "document"))]
            found += [score(datasets[1], victim, "canary_audit(canaries=500, shadows=4)")]
        else:
            row = board.loc[(datasets[1], victim, ASKED.format("", "document"))]
            if pd.isna(row["epsilon_claimed"]):
                continue
            numbers = [f"{row[f'epsilon_{which}']:.3g}".replace("inf", "none") for which in ("claimed", "proved")]
            audited = row["epsilon_audited"]
            found = [row["privacy_unit"], *numbers, "" if pd.isna(audited) else f"{audited:.2g}", row["verdict"]]
        yield "| " + " | ".join([name, *found]) + " |"


@pytest.mark.parametrize("kind", ["use", "attacks", "claims"])
@pytest.mark.parametrize("corpus", REGIMES)
def test_the_tables_of_word_vectors_are_the_published_ones(corpus, kind):
    folder = ROOT / "leaderboards" / "dp_word_vectors"
    if not (folder / "leaderboard.csv").is_file():
        pytest.skip("this leaderboard is not published yet")
    page = (folder / "README.md").read_text(encoding="utf-8")
    table = page.partition(f"<!-- {kind}: {corpus} -->")[2].partition("\n\n")[0]
    assert table.splitlines()[3:] == list(rows_of_word_vectors(folder, corpus, kind))
