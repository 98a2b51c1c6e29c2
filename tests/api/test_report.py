"""A report says in sentences what its frames hold, and hostile names stay text."""

import dataclasses
import math
import re

import made_records
import pytest
from made_records import on_dev, with_metrics

from leakboard.api.report import Report
from leakboard.metrics.audits import bound_metrics, rounded_down
from leakboard.metrics.measures import Metric
from leakboard.threats.secrets import AttributesThreat

SECRETS = {"gender": (0.76, 0.37), "age": (0.55, 0.45)}
"""Score of the attack and of the best constant on each secret."""


def record(attack="probe", gender=0.76, **fields):
    scores = {**SECRETS, "gender": (gender, SECRETS["gender"][1])}
    of_secrets = []
    for name, (score, constant) in scores.items():
        kept = min(1 - score, constant)
        of_secrets += [
            Metric("attack_accuracy", score, name),
            Metric("privacy_best_constant", constant, name),
            Metric("empirical_privacy", kept, name, low=kept - 0.05, high=min(kept + 0.05, constant)),
            *made_records.gain(score, constant, 0.05, name),
        ]
    usual = {"accuracy": 0.9, "privacy": 0.345, "score": sum(s for s, _ in scores.values()) / 2, "constant": 0.41}
    usual |= {"test_size": 200, "margin": 0.045, "secrets": ("gender", "age"), "more": of_secrets, "key": attack}
    return made_records.record("lsa", attack, "made", **(usual | fields))


def audit(bound, **claim):
    usual = {"epsilon": 1.0, "proved": 1.0, "delta": 0.0, "unit": "vector", "observations": 1, "caveat": ""}
    metrics = bound_metrics(*((900, 1) if bound > 1 else (510, 500)), (1000, 1000), 0.0)
    return record(
        "dp_audit", threat="releases", attack_metric="epsilon", secrets=("claim",), metrics=metrics, claim=usual | claim
    )


def report(*records, **fields):
    return Report("made", "a description", {}, records, **fields)


class TestDoubts:
    """Tables of own vectors say what their sentences say about too few texts and about chance."""

    @staticmethod
    def statuses(made):
        return {row["secret"]: row["status"] for row in made.short_table()[1]}

    def test_a_finding_has_no_remark(self):
        made = report(record(), day="2026-11-27")
        assert "chance" not in made.sentences[0]
        assert self.statuses(made)["gender"] == "ok"

    def test_a_gain_that_may_be_chance_has_the_remark_of_its_sentence(self):
        made = report(record(gender=0.64), day="2026-11-27")
        assert "gender: " in made.sentences[0]
        assert "this may be chance" in made.sentences[0]
        assert self.statuses(made)["gender"] == "this may be chance"
        assert self.statuses(made)[""] == "ok"  # no sentence is about the mean

    def test_the_strongest_of_many_attacks_has_the_remark_of_its_sentence(self):
        """A p-value that is small for one attack may be chance for the best of 80."""
        several = [record(f"probe {i}", gender=0.70) for i in range(80)]
        for attacks, shown in ((several[:1], "ok"), (several, "this may be chance")):
            made = report(*attacks, day="2026-11-27")
            assert ("chance" in made.sentences[0]) == (shown != "ok"), made.sentences[0]
            assert self.statuses(made)["gender"] == shown

    def test_too_few_texts_are_named_in_the_table_and_on_the_page(self, tmp_path):
        made = report(record(test_size=20), day="2026-11-27")
        few = "fewer than 30 are too few for a claim"
        assert few in made.sentences[0]
        assert self.statuses(made)["gender"] == few
        page = made.save(tmp_path / "page.html").read_text("utf-8")
        _, _, table = page.partition("<caption>Every secret</caption>")
        assert table.partition("</table>")[0].count(few) == 2


class TestTable:
    def test_one_row_averages_over_secrets_and_one_stands_for_each(self):
        table = report(record()).table.set_index("secret")
        assert list(table.index) == ["", "gender", "age"]
        assert table["attack_score"].tolist() == pytest.approx([0.655, 0.76, 0.55])
        assert table["empirical_privacy"].tolist() == pytest.approx([0.345, 0.24, 0.45])
        assert table.loc["gender", ["empirical_privacy_low", "empirical_privacy_high"]].tolist() == [0.19, 0.29]

    def test_the_other_frames_hold_what_the_files_do(self):
        costs = [{"stage": "attack", "seconds": 1.5, "peak_memory_mib": 10, "device": "cpu", "threads": 1}]
        made = report(record(), stage_costs={"probe": costs})
        assert made.costs[["attack", "stage", "seconds"]].values.tolist() == [["probe", "attack", 1.5]]
        assert len(made.cells) == len(record().metrics)
        assert made.comparison.empty
        reference = dict.fromkeys(("variable", "group"), "") | {"dataset": "made", "victim": "lsa", "attack": "probe"}
        reference |= {"metric": "attack_score", "value": 0.5, "source": "a paper"}
        assert report(record(), reference=[reference]).comparison["difference"].tolist() == pytest.approx([0.155])


class TestSentences:
    def test_a_score_is_compared_with_the_best_guess_without_the_vectors(self):
        assert report(record()).summary.splitlines() == [
            "gender: an attacker gains 0.35 of what there is to gain (0.22 to 0.49; 200 texts); "
            "right in 76 %, 63 % without the vectors",
            "age: the strongest attack gains nothing; guessing the most frequent value is right in 55 % (200 texts); "
            "this does not show that there is nothing to find",
        ]

    def test_of_several_attacks_the_strongest_is_reported(self):
        shown = report(record(), record("weak", gender=0.65)).summary
        assert "76 %" in shown
        assert "65 %" not in shown

    def test_dev_decides_which_is_the_strongest(self):
        lucky, better = record(), record("better on dev", gender=0.74)
        summary = report(on_dev(lucky, 0.6, gender=0.6, age=0.6), on_dev(better, 0.7, gender=0.7, age=0.7)).summary
        assert "74 %" in summary
        assert "76 %" not in summary

    @pytest.mark.parametrize(
        ("fields", "doubt"),
        [
            ({}, ""),
            ({"attack_advantage_p": 0.03}, "; this may be chance"),
            ({"attacks": 3, "chosen_on": "test"}, "; this may be chance"),  # .01 times three attacks
            ({"attacks": 3, "chosen_on": "dev"}, ""),
            ({"test_size": 29}, "; fewer than 30 are too few for a claim"),
            ({"attack_advantage_p": None}, "; this may be chance"),
        ],
    )
    def test_a_gain_that_may_be_chance_is_called_so(self, fields, doubt):
        row = {"secret": "age", "secrets": "age", "attack_metric": "accuracy", "attack_score": 0.56}
        row |= {
            "privacy_best_constant": 0.45,
            "attack_advantage": 0.25,
            "attack_advantage_low": 0.01,
            "test_size": 1200,
        }
        row |= {"attack_advantage_high": 0.4, "attack_advantage_p": 0.01} | fields
        assert AttributesThreat.sentence(row) == (
            f"age: an attacker gains 0.25 of what there is to gain (0.01 to 0.40; {row['test_size']:,} texts{doubt}); "
            "right in 56 %, 55 % without the vectors"
        )

    def test_guesses_no_better_than_a_constant_are_not_shown_beside_it(self):
        row = {"secret": "age", "secrets": "age", "attack_metric": "accuracy", "attack_score": 0.54, "test_size": 1200}
        row |= {"privacy_best_constant": 0.45, "attack_advantage": 0.25, "attack_advantage_low": 0.1}
        row |= {"attack_advantage_high": 0.4, "attack_advantage_p": 0.001, "attack_auc": 0.71}
        told = (
            "it tells them apart by rank (area under the ROC curve 0.71); its own guesses are no better than a constant"
        )
        assert f"; {told} guess" in AttributesThreat.sentence(row)

    RARE = {  # noqa: RUF012
        **{"secret": "ill", "secrets": "ill", "attack_metric": "accuracy", "attack_score": 0.981, "test_size": 3000},
        **{"privacy_best_constant": 0.03, "attack_advantage": 0.84, "attack_advantage_low": 0.77},
        **{"attack_advantage_high": 0.9, "attack_advantage_p": 0.001, "attack_auc": 0.92},
        **{"exposed_value": "yes", "exposed_found": 0.37, "exposed_lift": 18.26},
    }

    def test_a_rare_secret_has_the_share_that_is_found_at_1_percent_false_alarms(self):
        assert AttributesThreat.sentence(self.RARE) == (
            "ill: an attacker gains 0.84 of what there is to gain (0.77 to 0.90; 3,000 texts); "
            "right in 98 %, 97 % without the vectors; at 1 % false alarms 37 % of the texts with 'yes' are found, "
            "which are 18.3 times as frequent among the most suspected texts"
        )

    @pytest.mark.parametrize(
        ("fields", "is_named"),
        [
            ({"privacy_best_constant": 0.2}, True),
            ({"privacy_best_constant": 0.21}, False),  # accuracy says enough
            ({"attack_advantage_p": 0.03}, False),  # chance
            ({"attacks": 30, "chosen_on": "test"}, False),  # chance
            ({"test_size": 29}, False),
            ({"exposed_found": None}, False),
            ({"exposed_lift": math.nan}, False),
        ],
    )
    def test_that_share_is_named_only_for_a_rare_secret_and_a_sure_gain(self, fields, is_named):
        assert ("at 1 % false alarms" in AttributesThreat.sentence(self.RARE | fields)) == is_named

    def test_a_board_older_than_the_advantage_claims_nothing(self):
        row = {"secret": "age", "secrets": "age", "attack_metric": "accuracy", "attack_score": 0.56}
        sentence = AttributesThreat.sentence(row | {"privacy_best_constant": 0.45, "test_size": 1200})
        told = "age: right in 56 %, 55 % without the vectors (1,200 texts); whether this is chance is unknown"
        assert sentence == told

    def test_a_small_test_that_finds_nothing_says_so(self):
        row = {"secret": "age", "secrets": "age", "attack_metric": "accuracy", "attack_score": 1.0, "test_size": 1}
        assert AttributesThreat.sentence(row | {"privacy_best_constant": 0.0}).endswith("are too few for a claim")

    def test_one_author_in_test_is_told_in_the_status(self):
        status = "fewer than two texts (or authors) with each of two values"
        none = [Metric(name, None, "gender", status=status) for name in ("attack_auc", "attack_advantage")]
        of_gender = [m for m in record().metrics if m.variable == "gender" and "advantage" not in m.name]
        table = report(record(metrics=[*record().metrics[:4], *of_gender, *none], secrets=("gender",))).table
        assert status in table["status"][0]

    def test_an_average_is_told_where_the_secrets_are_not_known_apart(self):
        metrics = [metric for metric in record().metrics if not metric.variable]
        (sentence,) = report(record(metrics=metrics)).sentences
        assert sentence.startswith("gender, age (on average): an attacker gains 0.16 of what there is to gain")
        assert sentence.endswith("right in 66 %, 59 % without the vectors")

    @pytest.mark.parametrize(
        ("bound", "claim", "end"),
        [
            (6.0, {}, "more than the claimed 1: the claim is violated"),
            (0.0, {}, "no more than the claimed 1: the claim holds as far as this audit sees"),
            (0.0, {"proved": 2.0}, "the claimed 1 is not proved for what the code does"),
            (6.0, {"epsilon": 4.0, "proved": 4.0, "observations": 2}, "more than the claimed 2: the claim is violated"),
        ],
    )
    def test_an_audit_is_compared_with_the_claim_for_one_release(self, bound, claim, end):
        made = report(audit(bound, **claim))
        (sentence,) = made.sentences
        shown = rounded_down(made.table["epsilon_audited"][0])
        assert sentence == f"epsilon is at least {shown} (95 % confidence), {end}"

    def test_victims_are_named_where_there_are_several_and_warnings_come_last(self):
        other = dataclasses.replace(record(), victim="bert", checks={"test_copies": 0.25})
        failed = dataclasses.replace(record(), status="failed", reason="no", attack="other", metrics=[])
        shown = report(record(), other, failed, notes=("take care",)).sentences
        assert shown[0].startswith("bert on made: gender: an attacker gains 0.35 of what there is to gain")
        assert shown[-3:] == [
            "warning: 1 of 3 cells failed: no",
            "warning: 25.0 % of the test texts occur verbatim in train",
            "warning: take care",
        ]

    WARNING = "warning: do the rows match?"

    @pytest.fixture
    def joined(self):
        """Return a function that gives the lines about two attacks on vectors with a verdict about their join."""

        def lines(name, value, gender):
            verdict = Metric(name, value, status="" if value else "do the rows match?")
            records = [record(attack, gender) for attack in ("a", "b")]
            made = report(*(dataclasses.replace(r, metrics=[*r.metrics, verdict]) for r in records))
            statuses = made.table["status"].str.startswith("do the rows match?")
            assert statuses.all() == statuses.any() == (self.WARNING in made.summary)
            return made.summary.splitlines()

        return lines

    @pytest.mark.parametrize(
        ("name", "gender"), [("rows_match", 0.63), ("rows_match_throughout", 0.63), ("rows_match_throughout", 0.76)]
    )
    def test_a_broken_join_opens_the_report(self, joined, name, gender):
        lines = joined(name, 0.0, gender)
        assert lines[0] == self.WARNING
        assert lines.count(self.WARNING) == 1
        assert self.WARNING not in joined(name, 1.0, gender)

    @pytest.mark.parametrize(("gender", "is_refuted"), [(0.68, False), (0.7, False), (0.71, True), (0.76, True)])
    def test_an_attack_that_surely_reads_a_secret_refutes_that_no_row_matches(self, joined, gender, is_refuted):
        """Six p-values are compared, so at level 1 % the advantage must be 2.94 standard errors above 0, not 1.96."""
        assert (self.WARNING not in joined("rows_match", 0.0, gender)) == is_refuted

    def test_few_test_texts_deserve_a_warning(self):
        warning = "warning: only 199 test texts; intervals are wide, and small gains are not found"
        assert warning in report(record(test_size=199)).sentences
        assert "only" not in report(record(test_size=200)).summary

    def test_no_more_is_told_than_one_reads(self):
        sentences = report(*(dataclasses.replace(record(), victim=f"v{i:02}") for i in range(40))).sentences
        assert len(sentences) == 31
        assert sentences[-1] == "50 more sentences like these: see the table"

    def test_nothing_is_told_of_nothing(self):
        assert report().summary == "no results"

    def test_where_nothing_ran_each_reason_is_told_once(self):
        reasons = ("needs texts", "needs texts", "no")
        skipped = [dataclasses.replace(record(metrics=[]), status="skipped", reason=reason) for reason in reasons]
        assert report(*skipped).sentences == [
            "warning: no results: probe: needs texts",
            "warning: no results: probe: no",
        ]
        assert "no results" not in report(record(), *skipped).summary


class TestOwnVectors:
    """The page about a user's own vectors: one page for people who decide, then the details."""

    @staticmethod
    def saved(tmp_path, *records, **fields):
        made = dataclasses.replace(report(*records), description="What do these vectors give away?", day="2026-11-27")
        path = dataclasses.replace(made, **fields).save(tmp_path / "report.html")
        text = re.sub(r"<(script|style).*?</\1>", "", path.read_text("utf-8"), flags=re.DOTALL)
        return " ".join(re.sub(r"<[^>]*>", " ", text).split())

    def test_it_says_what_was_tried_when_and_on_how_many_texts(self, tmp_path):
        page = self.saved(tmp_path, with_metrics(record(), Metric("known_pairs", 800.0)))
        assert "day 27 November 2026" in page
        assert "texts attacked 200" in page
        assert "texts that attackers knew 800, with vectors and secrets" in page
        assert "attacks probe" in page
        assert "task accuracy 0.90" in page

    def test_each_secret_is_a_sentence_with_its_interval_and_a_label(self, tmp_path):
        page = self.saved(tmp_path, record())
        sentence = "given away gender: an attacker gains 0.35 of what there is to gain (0.22 to 0.49); right in 76 %"
        assert sentence in page
        assert "200 texts" not in page
        constant = "guessing the most frequent value is right in 55 %; this does"
        assert f"not found age: the strongest attack gains nothing; {constant}" in page
        few = self.saved(tmp_path, record(test_size=29))
        assert "may be chance gender: an attacker gains 0.35" in few

    def test_it_has_no_words_of_boards_and_no_double_marks(self, tmp_path):
        page = self.saved(tmp_path, record(), notes=("take care",))
        for words in ("published records", "verify", "keeps most privacy", "seconds", "not published", "?.", ".."):
            assert words not in page, words
        assert page.index("What it does not show") < page.index("Details")

    def test_vectors_that_miss_their_rows_are_told_first_and_releases_compared(self, tmp_path):
        verdict = Metric("rows_match", 0.0, status="do the rows match?")
        page = self.saved(tmp_path, with_metrics(record(gender=0.63), verdict))
        assert page.index("do the rows match?") < page.index("gender:")
        two = [record(), dataclasses.replace(record(gender=0.6), victim="other")]
        compared = self.saved(tmp_path, *two, releases=("lsa", "other"))
        details = compared.index("Details")
        assert compared.index("What the strongest") < details < compared.index("gives away less than &#39;lsa&#39;")
        assert compared.index("What it costs") < compared.index("lsa 0.900") < compared.index("other 0.900") < details

    def test_a_conclusion_opens_the_page_unless_the_numbers_may_mean_nothing(self, tmp_path):
        page = self.saved(tmp_path, record())
        conclusion = "Given away: gender. Not found, which proves nothing: age."
        assert page.index(conclusion) < page.index("gender: an attacker gains")
        two = [record(), dataclasses.replace(record(gender=0.6), victim="other")]
        compared = self.saved(tmp_path, *two, releases=("lsa", "other"))
        assert f"{conclusion} &#39;other&#39; gives away less of gender." in compared
        same = self.saved(tmp_path, two[0], dataclasses.replace(record(), victim="other"), releases=("lsa", "other"))
        assert "&#39;other&#39; shows no difference." in same
        verdict = Metric("rows_match", 0.0, status="do the rows match?")
        assert "which proves nothing: age" not in self.saved(tmp_path, with_metrics(record(gender=0.63), verdict))

    def test_the_table_of_costs_has_the_interval_of_the_task(self, tmp_path):
        (task,) = (metric for metric in record().metrics if metric.name == "task_accuracy")
        unknown = dataclasses.replace(task, low=None, high=None)
        others = [metric for metric in record().metrics if metric.name != "task_accuracy"]
        two = [record(), dataclasses.replace(record(), victim="other", metrics=[*others, unknown])]
        ends = report(*two, releases=("lsa", "other")).utility[["task_accuracy_low", "task_accuracy_high"]]
        assert ends.iloc[0].tolist() == [task.low, task.high]
        assert ends.iloc[1].isna().all()
        page = self.saved(tmp_path, *two, releases=("lsa", "other"))
        assert f"lsa 0.900 {task.low:.3f} to {task.high:.3f} other 0.900 What" in page[page.index("What it costs") :]

    def test_presence_is_no_secret(self, tmp_path):
        scores = [Metric("privacy_best_constant", 0.5), Metric("attack_advantage", 0.8, low=0.6, high=1.0)]
        of_store = {"secrets": ("presence",), "threat": "presence", "attack_metric": "auc", "test_size": 400}
        presence = dataclasses.replace(record("presence"), metrics=[Metric("attack_score", 0.9), *scores], **of_store)
        page = self.saved(tmp_path, record(), presence)
        assert "secrets gender, age attacks" in page
        assert "presence:" not in page
        assert "whether a text is stored:" in page
        assert "texts attacked 200" in page

    def test_no_line_breaks_before_a_percent_sign(self, tmp_path):
        self.saved(tmp_path, record(test_size=150), notes=("5 % are lost",))
        page = (tmp_path / "report.html").read_text("utf-8")
        shown = page[page.index("<main") : page.index('aria-label="Details"')]
        assert "76\N{NO-BREAK SPACE}%" in shown
        assert "5\N{NO-BREAK SPACE}% are lost" in shown
        assert " %" not in shown

    def test_a_suite_has_the_page_of_a_board(self, tmp_path):
        assert "What it does not show" not in self.saved(tmp_path, record(), day="")


class TestPages:
    HOSTILE = "<script>alert(1)</script>"

    def test_hostile_names_stay_text(self, tmp_path):
        hostile = dataclasses.replace(record(self.HOSTILE), victim=self.HOSTILE, dataset=self.HOSTILE)
        made = report(hostile, record(), notes=(self.HOSTILE,))
        page = made.save(tmp_path / "report.html").read_text("utf-8")
        for shown in (made._repr_html_(), page):
            assert self.HOSTILE not in shown
            assert "&lt;script&gt;alert(1)" in shown

    def test_the_page_loads_nothing_from_elsewhere(self, tmp_path):
        page = report(record()).save(tmp_path / "report.html").read_text("utf-8")
        assert " src=" not in page.replace("Plotly", "")[:2000]
        assert "76 %" in page
        assert "<table" in page

    def test_a_notebook_shows_sentences_and_the_table_without_columns_that_say_nothing(self):
        shown = report(record())._repr_html_()
        assert "gender: an attacker gains 0.35" in shown
        heads = re.findall(r"<th [^>]*scope=.col.[^>]*>([^<]*)", shown)
        assert "attack score" in heads
        assert not {"dataset", "claimed"} & set(heads)

    def test_a_notebook_shows_no_bound_that_is_larger_than_what_was_proved(self):
        made = report(audit(6.0), dataclasses.replace(audit(6.0, proved=1 / 3), victim="other"))
        bound = made.table["epsilon_audited"][0]
        shown = made._repr_html_()
        assert float(rounded_down(bound)) <= bound < float(f"{bound:.3g}") or f"≥ {rounded_down(bound)}" in shown
        assert f"≥ {rounded_down(bound)}<" in shown
        assert "0.333" in shown
        assert "nan" not in shown.lower()

    def test_the_plot_has_a_point_a_victim(self):
        other = dataclasses.replace(record(), victim="bert")
        points = report(record(), other).plot().data[-1]
        assert len(points.x) == 2
        assert set(points.y) == {0.345}
