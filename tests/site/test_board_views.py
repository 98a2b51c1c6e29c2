"""Which victim stands for what: strongest attacks, ranks that intervals leave open, and the choice at a loss."""

import dataclasses

import pytest
from made_records import record

from leakboard.metrics.measures import Metric
from leakboard.site.board_pages import facts
from leakboard.site.content import make_board, slug
from leakboard.site.labels import number, parse, without
from leakboard.site.rendering import RENDERERS
from leakboard.site.sections import read_findings
from leakboard.site.views import keeps_most, measure_rows, secret_rows, views


def board(tmp_path, *records):
    return make_board("board", "", records, tmp_path, tmp_path)


def only(tmp_path, *records):
    (view,) = views(board(tmp_path, *records))
    return view


def test_a_victim_stands_with_its_strongest_attack(tmp_path):
    view = only(tmp_path, record("a", "weak", privacy=0.4), record("a", "strong", privacy=0.1))
    assert [(row["attack"], row["attacks"], row["empirical_privacy"]) for row in view.rows] == [
        ("strong", 2, pytest.approx(0.1))
    ]


def test_dev_decides_which_is_the_strongest(tmp_path):
    def on_dev(made, score):
        return dataclasses.replace(made, metrics=[*made.metrics, Metric("attack_score_dev", score)])

    lucky, better = record("a", "lucky", privacy=0.1), record("a", "better", privacy=0.2)
    (row,) = only(tmp_path, on_dev(lucky, 0.6), on_dev(better, 0.7)).rows
    assert (row["attack"], row["empirical_privacy"]) == ("better", pytest.approx(0.2))


def test_several_publications_count_where_no_attack_sees_fewer(tmp_path):
    claim = {"epsilon": 1.0, "proved": 1.0, "delta": 0.0, "unit": "document", "mechanism": "", "sensitivity": ""}

    def seeing(publications, attack, privacy):
        made = record("a", attack, privacy=privacy)
        return dataclasses.replace(made, claim={**claim, "about": "release", "observations": publications})

    once, often = seeing(1, "once", 0.3), seeing(16, "often", 0.1)
    assert [row["attack"] for row in only(tmp_path, often, once).rows] == ["once"]
    assert [row["attack"] for row in only(tmp_path, often).rows] == ["often"]


def test_other_secrets_are_another_table(tmp_path):
    found = views(board(tmp_path, record("a"), record("a", "other", secrets=("age",)), record("b")))
    assert [(view.secrets, len(view.rows)) for view in found] == [("gender", 2), ("age", 1)]


def test_ranks_are_open_where_intervals_overlap_and_closed_where_not(tmp_path):
    view = only(tmp_path, record("a", privacy=0.4), record("b", privacy=0.37), record("c", privacy=0.2))
    ranks = [(row["victim"], row["rank"], row["last_rank"]) for row in view.rows]
    assert ranks == [("a", 1, 2), ("b", 1, 2), ("c", 3, 3)]


def test_the_loss_is_counted_from_the_encoder_that_others_defend(tmp_path):
    plain, best = record("net(size=2)", accuracy=0.8, privacy=0.1), record("other", accuracy=0.9, privacy=0.1)
    view = only(tmp_path, plain, best, record("defence(encoder=net(size=2))", accuracy=0.79, privacy=0.3))
    assert (view.reference["victim_options"], view.undefended) == ("net(size=2)", True)
    assert keeps_most(view).best["victim_options"].startswith("defence")
    view = only(tmp_path, plain, best)
    assert (view.reference["victim_options"], view.undefended) == ("other", False)


def test_what_costs_more_is_not_chosen_and_overlaps_are_told(tmp_path):
    records = [record("a", accuracy=0.8, privacy=0.2), record("b", accuracy=0.79, privacy=0.22)]
    view = only(tmp_path, *records, record("costly", accuracy=0.7, privacy=0.5))
    choice = keeps_most(view, 2)
    assert (choice.best["victim"], [tie["victim"] for tie in choice.ties]) == ("b", ["a"])
    assert keeps_most(view, 0).best["victim"] == "a"
    assert keeps_most(view, 10).best["victim"] == "costly"
    assert not keeps_most(view, 10).ties


@pytest.mark.parametrize(("privacy", "expected"), [(0.3, False), (0.12, True)])
def test_a_defence_within_the_interval_of_none_is_no_better(tmp_path, privacy, expected):
    defended = record("defence(encoder=net)", privacy=privacy)
    assert keeps_most(only(tmp_path, record("net", privacy=0.1), defended)).no_better is expected


def test_other_measures_stand_once_where_every_attack_has_them(tmp_path):
    first, second = record("a", "one"), record("a", "two")
    first.metrics.extend([Metric("map_word", 0.5), Metric("recall@1", 0.1)])
    second.metrics.append(Metric("map_word", 0.5))
    rows = measure_rows(board(tmp_path, first, second), "data", "a")
    assert [(row["metric"], row["value"], row["attack"]) for row in rows] == [
        ("map_word", 0.5, ""),
        ("recall@1", 0.1, "one"),
    ]


def test_audits_alone_are_a_table_by_verdict_and_three_epsilons_are_of_one_release(tmp_path):
    claim = {"epsilon": 2.0, "proved": 4.0, "delta": 0.0, "unit": "word", "observations": 2, "caveat": ""}
    audited = dataclasses.replace(record("a", claim=claim), threat="releases", attack_metric="epsilon")
    audited = dataclasses.replace(audited, metrics=[Metric("attack_score", 0.1)])
    view = only(tmp_path, audited)
    row = view.rows[0]
    assert (row["epsilon_claimed"], row["epsilon_proved"], row["verdict"], row["privacy_unit"]) == (
        1.0,
        2.0,
        "unproven",
        "word",
    )


def test_secrets_of_a_victim_are_means_over_seeds(tmp_path):
    found = board(tmp_path, record("a", privacy=0.4), record("a", seed=1, privacy=0.2))
    (row,) = secret_rows(found, "data", "a")
    assert (row["secret"], row["attack_accuracy"]) == ("gender", pytest.approx(0.7))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Q?\n\nYes,\nit is.\n\n- why\n\n- how\n", ("Q?", "Yes, it is.", "- why\n\n- how")),
        ("Yes.\n", ("", "Yes.", "")),
        ("", ("", "", "")),
    ],
)
def test_findings_are_a_question_an_answer_and_details(text, expected):
    found = read_findings(text)
    assert (found.question, found.answer, found.details) == expected


def test_labels_are_taken_apart_and_put_together_again():
    label = "dpnr(encoder=bert(epochs=3, rate=0.1), sizes=[1, 2], epsilon=0.5)"
    assert parse(label) == ("dpnr", {"encoder": "bert(epochs=3, rate=0.1)", "sizes": "[1, 2]", "epsilon": "0.5"})
    assert number(label, "epsilon") == 0.5
    assert number(label, "mu") is None
    assert number(label, "encoder") is None
    assert without(label, "epsilon") == "dpnr(encoder=bert(epochs=3, rate=0.1), sizes=[1, 2])"
    assert without("My net (epsilon=1)", "epsilon") == "My net"
    assert parse("=cmd(x)") == ("=cmd(x)", {})


def test_names_are_sorted_by_their_numbers_in_browsers():
    names = ["DPNR (epsilon=0.05)", "DPNR (epsilon=1e-01)", "DPNR (epsilon=9)", "DPNR (epsilon=10.0, mu=0.5)", "LSTM"]
    orders = [RENDERERS["name"]({"victim": name}, "victim").order for name in names]
    assert names != sorted(names)
    assert orders == sorted(orders)


def test_a_board_goes_by_the_names_of_its_table_in_records_too(tmp_path):
    head = "dataset,victim,attack,dataset_options,victim_options,attack_options"
    (tmp_path / "leaderboard.csv").write_text(f"{head}\ndata,My net,attack,data,net(size=2),attack\n")
    found = board(tmp_path, record("net(size=2)"), record("other"))
    assert {r.victim for r in found.records} == {"My net", "other"}
    ((named, other),) = [view.rows for view in views(found)]
    assert (named["victim"], named["victim_options"], named["slug"]) == ("My net", "net(size=2)", slug("net(size=2)"))
    assert (other["victim"], other["victim_options"]) == ("other", "other")


def test_rows_are_marked_by_who_computed_them(tmp_path):
    marks = {("data", "a", "attack"): "verified", ("data", "b", "attack"): "self-reported"}
    found = dataclasses.replace(board(tmp_path, record("a"), record("b", privacy=0.1)), provenance=marks)
    (view,) = views(found)
    assert [row["provenance"] for row in view.rows] == ["verified", "self-reported"]
    assert dict(facts(found))["verified"] == "1 of 2 rows are self-reported"


def test_slugs_differ_where_labels_do():
    assert slug("A (b)") != slug("a-b")
    assert slug("<script>").isascii()
    assert slug("\u202e").startswith("x-")


def test_victims_that_differ_in_a_number_stand_in_its_order(tmp_path):
    """Where nothing else orders them; published tables keep the order of the letters."""
    names = [f"lsa(k={k})" for k in (8, 9, 80, 81)]
    board = make_board("b", "", [record(name, f"a{i}") for name in sorted(names) for i in (9, 10)], tmp_path, tmp_path)
    assert [(row["victim"], row["attack"]) for row in board.rows] == [(n, f"a{i}") for n in names for i in (9, 10)]
    (view,) = views(board)
    assert [row["victim"] for row in view.rows] == names
