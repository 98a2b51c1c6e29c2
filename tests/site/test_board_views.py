"""Test the views of a board: strongest attacks, ranks with overlapping intervals, and the choice of a defence."""

import dataclasses
import math

import pytest
from made_records import on_dev, record, with_metrics

from leakboard.board.schema import columns
from leakboard.metrics.measures import Metric
from leakboard.site.board_pages import facts
from leakboard.site.build import write_page
from leakboard.site.charts import plug_in_losses, scatter
from leakboard.site.choices import keeps_most
from leakboard.site.content import make_board, read_board, slug
from leakboard.site.needs import needs
from leakboard.site.readme import board_markdown
from leakboard.site.rendering import RENDERERS
from leakboard.site.sections import read_findings
from leakboard.site.utility import UTILITIES
from leakboard.site.views import measure_rows, secret_rows, views
from leakboard.suite.labels import number, parse, without


@pytest.fixture
def board(tmp_path):
    return lambda *records: make_board("board", "", records, tmp_path, tmp_path)


@pytest.fixture
def view(board):
    """Return a function that returns the only view of a board of these records."""

    def only(*records):
        (view,) = views(board(*records))
        return view

    return only


class TestStrongestAttack:
    """A row shows the strongest attack on its victim."""

    def test_the_attack_that_leaves_least_privacy_is_shown(self, view):
        (row,) = view(record("a", "weak", privacy=0.4), record("a", "strong", privacy=0.1)).rows
        assert (row["attack"], row["attacks"], row["empirical_privacy"]) == ("strong", 2, pytest.approx(0.1))

    def test_dev_decides_which_attack_is_strongest(self, view):
        lucky, better = record("a", "lucky", privacy=0.195), record("a", "better", privacy=0.2)
        (row,) = view(on_dev(lucky, 0.6), on_dev(better, 0.7)).rows
        assert (row["attack"], row["empirical_privacy"]) == ("better", pytest.approx(0.2))

    def test_attacks_on_several_publications_count_only_without_attacks_on_fewer(self, view):
        def seeing(publications, attack, privacy):
            claim = {
                "epsilon": 1.0,
                "proved": 1.0,
                "delta": 0.0,
                "unit": "document",
                "mechanism": "",
                "sensitivity": "",
            }
            claim |= {"about": "release", "observations": publications}
            return record("a", attack, privacy=privacy, claim=claim)

        once, often = seeing(1, "once", 0.3), seeing(16, "often", 0.1)
        assert [row["attack"] for row in view(often, once).rows] == ["once"]
        assert [row["attack"] for row in view(often).rows] == ["often"]


def test_other_secrets_are_another_view(board):
    two = views(board(record("a"), record("a", "other", secrets=("age",)), record("b")))
    assert [(view.secrets, len(view.rows)) for view in two] == [("gender", 2), ("age", 1)]


def test_another_threat_on_the_same_secret_is_another_view(board):
    read = dataclasses.replace(record("a", "read", secrets=("text",)), threat="texts", attack_metric="token_f1")
    linked = dataclasses.replace(record("a", "link", secrets=("text",)), threat="linking")
    assert [[row["attack"] for row in view.rows] for view in views(board(read, linked))] == [["link"], ["read"]]


def test_ranks_are_shared_where_intervals_overlap(view):
    rows = view(record("a", privacy=0.4), record("b", privacy=0.37), record("c", privacy=0.2)).rows
    assert [(row["victim"], row["rank"], row["last_rank"]) for row in rows] == [("a", 1, 2), ("b", 1, 2), ("c", 3, 3)]


def test_attackers_who_know_pairs_are_in_a_table_of_their_own(board):
    none, known = views(board(record("a", "linking"), record("a", "linking(pairs=1000)", privacy=0.1)))
    assert [row["attack"] for row in none.rows] == ["linking"]
    assert [view.title for view in (none, known)] == ["gender (0 known pairs)", "gender (1,000 known pairs)"]
    assert [view.menu_title for view in (none, known)] == ["gender, 0 known pairs", "gender, 1,000 known pairs"]


def test_who_knows_pairs_may_attack_without_them(board):
    attacks = [record("a", "linking", privacy=0.2), record("a", "linking(pairs=20)", privacy=0.9)]
    without, known = views(board(*attacks, record("b", "linking", privacy=0.5)))
    assert [(row["victim"], row["empirical_privacy"]) for row in known.rows] == [("a", 0.2)]
    assert {row["victim"] for row in without.rows} == {"a", "b"}


class TestUtility:
    """Boards of stores weigh search against privacy, not accuracy of a task."""

    @pytest.fixture
    def stores(self, tmp_path):
        def store(protection, found, privacy):
            made = record(f"vector_store(encoder=word2vec, protection={protection})", accuracy=0.5, privacy=privacy)
            return with_metrics(made, Metric("retrieval_recall@10", found), Metric("task_majority", 0.6))

        records = [store("none", 0.9, 0.0), store("rotation", 0.8, 0.3), store("gaussian", 0.7, 0.5)]
        (view,) = views(make_board("stores", "", records, tmp_path, tmp_path, UTILITIES["search"]))
        return view

    def test_losses_of_search_are_counted_from_the_store_without_protection(self, stores):
        assert (stores.reference["victim_options"], stores.undefended) == (
            "vector_store(encoder=word2vec, protection=none)",
            True,
        )

    def test_ten_points_may_be_lost(self, stores):
        assert "rotation" in keeps_most(stores).best["victim"]
        assert "gaussian" in keeps_most(stores, 20).best["victim"]

    def test_the_chart_has_search_on_its_axis(self, stores):
        figure = scatter(stores)
        (points,) = [line for line in figure["data"] if line["name"].startswith("a victim")]
        assert sorted(points["x"]) == [0.7, 0.8, 0.9]
        assert "recall@10" in figure["layout"]["xaxis"]["title"]["text"]


class TestUseless:
    """Victims whose task accuracy is not above that of a constant guess."""

    @pytest.fixture
    def mixed(self, view):
        def with_majority(victim, accuracy, privacy):
            made = record(victim, accuracy=accuracy, privacy=privacy)
            return with_metrics(made, Metric("task_majority", 0.58))

        return view(
            with_majority("noise", 0.3, 0.5), with_majority("good", 0.8, 0.2), with_majority("constant", 0.5804, 0.4)
        )

    def test_they_come_last_and_have_no_rank(self, mixed):
        shown = [(row["victim"], row.get("rank"), row.get("small", "")) for row in mixed.rows]
        note = "useless for the task"
        assert shown == [("good", 1, ""), ("noise", None, note), ("constant", None, note)]
        assert [RENDERERS["rank"](row, "rank").order < 10 for row in mixed.rows] == [True, False, False]

    def test_they_are_on_no_front_and_never_chosen(self, mixed):
        assert [row["victim"] for row in mixed.front] == ["good"]
        assert keeps_most(mixed, 100).best["victim"] == "good"

    def test_they_are_grey_in_the_chart(self, mixed):
        (useful,) = [line for line in scatter(mixed)["data"] if line["name"].startswith("a victim")]
        (grey,) = [line for line in scatter(mixed)["data"] if line["name"] == "useless for the task"]
        assert (useful["text"], grey["text"]) == ([""], ["noise", "constant"])  # a ring has the name
        assert [line["layer"] for line in scatter(mixed)["layout"]["shapes"]] == ["below"]

    def test_where_all_are_useless_nothing_is_chosen(self, view):
        only = view(with_metrics(record("noise", accuracy=0.3), Metric("task_majority", 0.58)))
        assert (only.reference, keeps_most(only)) == (None, None)
        assert [row.get("rank") for row in only.rows] == [None]

    def test_without_a_task_nobody_is_useless(self, view):
        (row,) = view(record("a")).rows
        assert row["rank"] == 1


def test_the_front_is_named_with_most_privacy_first(view):
    records = [record("a", accuracy=0.8, privacy=0.2), record("b", accuracy=0.7, privacy=0.4)]
    assert [row["victim"] for row in view(*records, record("worse", accuracy=0.7, privacy=0.1)).front] == ["b", "a"]


@pytest.mark.parametrize(
    ("row", "seconds", "expected"),
    [
        ({}, None, "texts not counted"),
        ({"threat": "releases"}, 3.2, "3 s"),
        ({"known_pairs": 1200, "queries": 0, "own_texts": 0}, 3.2, "1,200 known pairs, no queries, 3 s"),
        (
            {"own_texts": 50, "queries": 70, "observations": 16},
            7300,
            "50 own texts, 70 queries, 16 publications of each text, 2 h",
        ),
        ({"queries": 0}, 0.2, "no queries, under 1 s"),
        ({"queries": 0}, 180, "no queries, 3 min"),
    ],
)
def test_what_an_attacker_had_is_told_in_words(row, seconds, expected):
    assert needs(row, seconds) == expected


class TestChoice:
    """The defence that keeps most privacy at a loss of task accuracy."""

    def test_of_one_victim_nothing_is_chosen(self, view):
        assert keeps_most(view(record("a"))) is None

    def test_no_vectors_of_words_are_chosen_by_the_accuracy_of_a_task(self, view):
        fields = {"threat": "words", "secrets": ("words",), "attack_metric": "recall@5"}
        assert keeps_most(view(record("a", privacy=0.9, **fields), record("c", privacy=0.7, **fields))) is None

    def test_the_loss_is_measured_from_the_defended_encoder(self, view):
        plain, best = record("net(size=2)", accuracy=0.8, privacy=0.1), record("other", accuracy=0.9, privacy=0.1)
        defended = view(plain, best, record("defence(encoder=net(size=2))", accuracy=0.79, privacy=0.3))
        assert (defended.reference["victim_options"], defended.undefended) == ("net(size=2)", True)
        assert keeps_most(defended).best["victim_options"].startswith("defence")
        plain_view = view(plain, best)
        assert (plain_view.reference["victim_options"], plain_view.undefended) == ("other", False)
        assert plain_view.counted_from.endswith("from the victim with the highest task accuracy: other (0.900).")
        assert defended.counted_from == ""

    def test_a_submitted_victim_is_no_encoder_without_a_defence(self, board):
        own = [record("net", accuracy=0.8, privacy=0.1), record("defence(encoder=net, epsilon=5)", accuracy=0.79)]
        sent = record("shield(encoder=net, epsilon=null)", accuracy=0.5, privacy=0.4)
        (view,) = views(dataclasses.replace(board(*own, sent), submitted=frozenset([sent.victim])))
        assert (view.reference["victim_options"], view.undefended) == ("net", True)

    def test_a_wide_interval_hides_no_defence_that_is_better_than_none(self, view):
        none = record("net", accuracy=0.8, privacy=0.33, margin=0.02)
        better = record("defence(encoder=net, epsilon=5)", accuracy=0.8, privacy=0.39, margin=0.03)
        wide = record("defence(encoder=net, epsilon=4)", accuracy=0.8, privacy=0.4, margin=0.1)
        assert [
            keeps_most(view(*records)).no_better for records in ([none, better], [none, better, wide], [none, wide])
        ] == [
            False,
            False,
            True,
        ]

    @pytest.mark.parametrize(("loss", "best", "ties"), [(2, "b", ["a"]), (0, "a", []), (10, "costly", [])])
    def test_costlier_victims_are_not_chosen_and_ties_are_listed(self, loss, best, ties, view):
        records = [record("a", accuracy=0.8, privacy=0.2), record("b", accuracy=0.79, privacy=0.22)]
        choice = keeps_most(view(*records, record("costly", accuracy=0.7, privacy=0.5)), loss)
        assert (choice.best["victim"], [tie["victim"] for tie in choice.ties]) == (best, ties)

    def test_a_victim_that_did_not_meet_the_strongest_attack_is_not_chosen(self, view):
        met = [record("net", "strong", accuracy=0.81, privacy=0.1), record("defence", "strong", privacy=0.2)]
        weak = [record(name, "weak", privacy=0.5) for name in ("net", "defence", "lucky")]
        made = view(*met, *weak)
        assert keeps_most(made).best["victim"] == "defence"
        shown = [(row["victim"], row["rank"], row["small"]) for row in made.rows]
        assert shown == [("defence", 1, ""), ("net", 2, ""), ("lucky", None, "met weaker attacks only")]
        assert [row["victim"] for row in made.left_out] == ["lucky"]
        assert [row["victim"] for row in made.front] == ["defence", "net"]
        lines = {line["name"]: line for line in scatter(made)["data"]}
        (front,) = [line for name, line in lines.items() if name.startswith("Pareto front")]
        assert front["y"] == pytest.approx([0.2, 0.1])
        assert lines["met weaker attacks only"]["text"] == ["lucky"]
        assert "lucky" not in lines["a victim, with 95 % intervals"]["text"]

    @pytest.mark.parametrize(
        ("named", "small"),
        [
            ("strong(alignment=unwhitened)", ""),
            ("strong(alignment=unwhitened, starts=79)", ""),
            ("strong(alignment=identity)", "met weaker attacks only"),
            ("strong(alignment=identity, starts=79)", "met weaker attacks only"),
            ("strong(depth=9)", "met weaker attacks only"),
        ],
    )
    def test_a_thief_may_name_the_way_to_undo_a_protection(self, view, named, small):
        records = [record("net", "strong", accuracy=0.81, privacy=0.1), record("whitening", named, privacy=0.5)]
        (found,) = [row["small"] for row in view(*records).rows if row["victim"] == "whitening"]
        assert found == small

    @pytest.mark.parametrize(
        ("strongest", "met", "small"),
        [
            ("strong", "strong(bayes=mixed)", ""),
            ("strong", "strong(made_texts=9, ranks=true)", ""),
            ("strong(made_texts=9)", "strong", "met weaker attacks only"),
            ("strong(made_texts=9)", "strong(bayes=mixed)", "met weaker attacks only"),
            ("strong(made_texts=9)", "strong(bayes=mixed, made_texts=9)", ""),
        ],
    )
    def test_a_source_more_is_no_weaker_attack(self, view, strongest, met, small):
        records = [record("net", strongest, accuracy=0.81, privacy=0.1), record("noisy", met, privacy=0.5)]
        (found,) = [row["small"] for row in view(*records).rows if row["victim"] == "noisy"]
        assert found == small

    def test_the_table_says_how_many_trainings_a_row_averages_over(self, view):
        twice = [record("a"), dataclasses.replace(record("a"), seed=1)]
        assert {row["victim"]: row["seeds"] for row in view(*twice, record("b")).rows} == {"a": 2, "b": 1}
        assert "seeds" in [column.name for column in columns("README")]

    @pytest.mark.parametrize(("seen", "privacy", "caveat"), [(1, 0.3, True), (16, 0.3, False), (16, 0.1, False)])
    def test_attackers_of_the_best_victim_may_have_seen_fewer_publications(self, view, seen, privacy, caveat):
        """More publications that do not help (0.3) are no fewer publications."""

        def attacked(victim, attack, publications, privacy):
            claim = {"epsilon": 1.0, "proved": 1.0, "delta": 0.0, "unit": "word", "caveat": "", "about": "release"}
            return record(victim, attack, privacy=privacy, claim=claim | {"observations": publications})

        net = [record("net", "once", accuracy=0.81, privacy=0.05)]
        worse = [attacked("worse", "once", 1, 0.2), attacked("worse", "often", 16, 0.1)]
        best = [attacked("best", "once", 1, 0.3), attacked("best", "again", seen, privacy)]
        choice = keeps_most(view(*net, *worse, *best))
        assert choice.best["victim"] == "best"
        assert ("fewer publications" in choice.caveat) is caveat

    def test_encoders_of_words_may_meet_other_attacks(self, view):
        fields = {"threat": "words", "secrets": ("words",), "attack_metric": "recall@5"}
        made = view(record("a", "one", accuracy=0.9, privacy=0.2, **fields), record("b", "two", privacy=0.5, **fields))
        assert [(row["victim"], row["rank"], row["small"]) for row in made.rows] == [("b", 1, ""), ("a", 2, "")]
        assert made.left_out == []

    @pytest.mark.parametrize(("privacy", "expected"), [(0.3, False), (0.12, True)])
    def test_a_defence_within_the_interval_of_no_defence_is_no_better(self, view, privacy, expected):
        defended = record("defence(encoder=net)", privacy=privacy)
        assert keeps_most(view(record("net", privacy=0.1), defended)).no_better is expected


def test_a_measure_that_every_attack_reports_is_listed_once(board):
    first = with_metrics(record("a", "one"), Metric("map_word", 0.5), Metric("recall@1", 0.1))
    rows = measure_rows(board(first, with_metrics(record("a", "two"), Metric("map_word", 0.5))), "data", "a")
    listed = [(row["metric"], row["value"], row["attack"]) for row in rows]
    assert listed == [("map_word", 0.5, ""), ("recall@1", 0.1, "one")]


def test_mechanisms_without_a_finite_estimate_have_no_chart():
    board = read_board("mechanisms")
    drawn = {title for title, _ in plug_in_losses(board)}
    assert {"Laplace", "ADePT", "random bits"} < drawn
    assert not {"copy, no noise", "DPText"} & drawn
    infinite = {row["victim"].partition(" (")[0] for row in board.comparison if row["ours"] == math.inf}
    assert infinite == {"copy, no noise", "DPText", "ADePT"}


def test_audits_alone_are_a_view_with_the_epsilons_of_one_release(view):
    claim = {"epsilon": 2.0, "proved": 4.0, "delta": 0.0, "unit": "word", "observations": 2, "caveat": ""}
    metrics = [Metric("attack_score", 0.1)]
    (row,) = view(record("a", claim=claim, threat="releases", attack_metric="epsilon", metrics=metrics)).rows
    names = ("epsilon_claimed", "epsilon_proved", "verdict", "privacy_unit")
    assert [row[name] for name in names] == [1.0, 2.0, "unproven", "word"]


@pytest.mark.parametrize(("delta", "below"), [(0.0, "per word"), (1e-5, "per word, delta 1e-05")])
def test_a_claim_shows_its_unit_and_delta(delta, below):
    row = {"epsilon_claimed": 1.0, "privacy_unit": "word", "delta": delta}
    assert RENDERERS["claim"](row, "epsilon_claimed").small == below


@pytest.mark.parametrize(
    ("low", "expected"),
    [(0.05, ("≥ 0.050", 0.05, "age: 0.200")), (0.0, ("none shown", 0.0, "age: 0.200")), (None, ("0.200", 0.2, "age"))],
)
@pytest.mark.parametrize("stem", ["fairness", "tpr"])
def test_a_gap_is_claimed_only_as_far_as_its_interval_shows(stem, low, expected):
    row = {f"{stem}_gap": 0.2, f"{stem}_gap_low": low, f"{stem}_variable": "age"}
    shown = RENDERERS["gap"](row, f"{stem}_gap")
    assert (shown.text, shown.order, shown.small) == expected


def test_secrets_of_a_victim_are_means_over_seeds(board):
    (row,) = secret_rows(board(record("a", privacy=0.4), record("a", seed=1, privacy=0.2)), "data", "a")
    assert (row["secret"], row["attack_accuracy"]) == ("gender", pytest.approx(0.7))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Q?\n\nYes,\nit is.\n\n- why\n\n- how\n", ("Q?", "Yes, it is.", "- why\n\n- how")),
        ("Yes.\n", ("", "Yes.", "")),
        ("", ("", "", "")),
        ("# Q?\n\nYes. At 0.5 it is. More.\n\nwhy\n", ("Q?", "Yes. At 0.5 it is. More.", "why")),
    ],
)
def test_findings_are_a_question_an_answer_and_details(text, expected):
    findings = read_findings(text)
    assert (findings.question, findings.answer, findings.details) == expected


def test_a_page_leads_with_the_first_sentences_of_an_answer():
    long = f"More {'and more ' * 30}."
    findings = read_findings(f"# Q?\n\nNo, at 0.5 it is. At 2 points: yes. {long} End.\n\n- why\n")
    assert (findings.lead, findings.more) == ("No, at 0.5 it is. At 2 points: yes.", f"{long} End.\n\n- why")
    assert read_findings(f"{long} End.").lead == long
    short = read_findings("# Q?\n\nYes.\n")
    assert (short.lead, short.more) == ("Yes.", "")


class TestLabels:
    def test_labels_are_parsed_and_shortened(self):
        label = "dpnr(encoder=bert(epochs=3, rate=0.1), sizes=[1, 2], epsilon=0.5)"
        assert parse(label) == ("dpnr", {"encoder": "bert(epochs=3, rate=0.1)", "sizes": "[1, 2]", "epsilon": "0.5"})
        assert [number(label, option) for option in ("epsilon", "mu", "encoder")] == [0.5, None, None]
        assert without(label, "epsilon") == "dpnr(encoder=bert(epochs=3, rate=0.1), sizes=[1, 2])"
        assert without("My net (epsilon=1)", "epsilon") == "My net"
        assert parse("=cmd(x)") == ("=cmd(x)", {})

    def test_browsers_sort_names_by_their_numbers(self):
        names = [
            "DPNR (epsilon=0.05)",
            "DPNR (epsilon=1e-01)",
            "DPNR (epsilon=9)",
            "DPNR (epsilon=10.0, mu=0.5)",
            "LSTM",
        ]
        orders = [RENDERERS["name"]({"victim": name}, "victim").order for name in names]
        assert names != sorted(names)
        assert orders == sorted(orders)

    def test_rows_are_sorted_by_the_numbers_in_names(self, board):
        names = [f"lsa(k={k})" for k in (8, 9, 80, 81)]
        made = board(*(record(name, f"a{i}") for name in sorted(names) for i in (9, 10)))
        assert [(row["victim"], row["attack"]) for row in made.rows] == [(n, f"a{i}") for n in names for i in (9, 10)]
        (view,) = views(made)
        assert [row["victim"] for row in view.rows] == names

    def test_records_get_the_names_of_the_boards_table(self, board, tmp_path):
        head = "dataset,victim,attack,dataset_options,victim_options,attack_options"
        (tmp_path / "leaderboard.csv").write_text(f"{head}\ndata,My net,attack,data,net(size=2),attack\n")
        made = board(record("net(size=2)"), record("other"))
        assert {r.victim for r in made.records} == {"My net", "other"}
        ((net, other),) = [view.rows for view in views(made)]
        assert (net["victim"], net["victim_options"], net["slug"]) == ("My net", "net(size=2)", slug("net(size=2)"))
        assert (other["victim"], other["victim_options"]) == ("other", "other")

    def test_different_labels_have_different_slugs(self):
        assert slug("A (b)") != slug("a-b")
        assert slug("<script>").isascii()
        assert slug("\u202e").startswith("x-")


def test_an_attack_without_a_result_has_no_row_and_its_reason_is_told(board, tmp_path):
    failed = dataclasses.replace(record("a", "other"), status="failed", reason="boom", metrics=[], secrets=())
    made = board(record("a"), failed)
    assert [row["attack"] for row in made.rows] == ["attack"]
    write_page(made, path := tmp_path / "page.html")
    assert "No result of a / other: failed: boom" in path.read_text()


def test_rows_show_their_provenance(board):
    provenance = {("data", "a", "attack"): "project", ("data", "b", "attack"): "submission"}
    made = dataclasses.replace(board(record("a"), record("b", privacy=0.1)), provenance=provenance)
    (view,) = views(made)
    assert [row["provenance"] for row in view.rows] == ["project", "submission"]
    assert dict(facts(made))["rows"] == "the project computed 1, and 1 of submissions again"


class TestLinks:
    """Noise makes links with few false ones rare, although first candidates are right."""

    def linked(self, tmp_path, *firsts):
        def store(protection, privacy, first):
            made = record(
                f"vector_store(encoder=word2vec, protection={protection})",
                privacy=privacy,
                constant=0.99,
                secrets=("text",),
                threat="linking",
                attack_metric="linked_at_1_percent_false_links",
                more=[],
            )
            metrics = Metric("retrieval_recall@10", 0.9), Metric("task_majority", 0.6), Metric("linked_first", first)
            return with_metrics(made, *metrics)

        records = [store("none", 0.01, firsts[0]), store("gaussian", 0.8, firsts[1])]
        board = make_board("stores", "", records, tmp_path, tmp_path, UTILITIES["search"])
        return board, views(board)[0]

    @pytest.mark.parametrize(("first", "hides_nothing"), [(0.97, True), (0.4, False)])
    def test_no_victim_is_recommended_if_first_candidates_are_right(self, tmp_path, first, hides_nothing):
        board, view = self.linked(tmp_path, 1.0, first)
        choice = keeps_most(view)
        assert "gaussian" in choice.best["victim"]
        assert (choice.hides_nothing, choice.is_kept) == (hides_nothing, not hides_nothing)
        assert choice.linked_first == first
        said = "No victim hides its texts at a loss of at most 10 points of recall@10 of search"
        right = "the first candidate is right for at least 0.970 of the vectors"
        assert (f"{said}: {right}" in board_markdown(board)) is hides_nothing
        write_page(board, tmp_path / "page.html")
        assert ("<b>No victim hides its texts</b>" in (tmp_path / "page.html").read_text()) is hides_nothing
