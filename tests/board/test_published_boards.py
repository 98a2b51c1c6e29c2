"""Test the published boards: each record has the identity of its cell, and columns keep their names."""

import pandas as pd
import pytest
from marks import with_slow

from leakboard.errors import RequestError
from leakboard.pipeline.records import published_records
from leakboard.suite.plan import Identities, plan
from leakboard.suite.registry import Registry
from leakboard.suite.suites import find_suite, load_suite, suite_names

COMPUTED_AGAIN = {
    "ag",
    "defences",
    "demo",
    "dpnr",
    "dp_word_vectors",
    "mechanisms",
    "noise_training",
    "sanitisers",
    "text_inversion",
    "training_steps",
    "vector_stores",
    "word_recovery",
}
"""Boards that were computed with the present revisions."""
COLUMNS = {
    "leaderboard.csv": "dataset victim attack secrets seeds test_size task_accuracy task_majority attack_metric "
    "attack_score empirical_privacy empirical_privacy_low empirical_privacy_high privacy_best_constant "
    "privacy_text_classifier privacy_bayes fairness_gap fairness_variable epsilon_claimed epsilon_proved "
    "epsilon_audited delta privacy_unit verdict status privacy_label task_accuracy_sd empirical_privacy_sd test_copies "
    "observations secret dataset_options victim_options attack_options attack_score_new empirical_privacy_new "
    "attack_score_dev attack_advantage attack_advantage_low attack_advantage_high attack_advantage_p "
    "attack_advantage_dev attack_auc exposed_value exposed_found exposed_lift own_texts known_pairs queries "
    "retrained_accuracy retrieval_recall@10 fairness_gap_low fairness_gap_high fairness_n tpr_gap tpr_gap_low "
    "tpr_gap_high tpr_n tpr_variable",
    "best_known.csv": "dataset victim secret secrets observations attack attacks chosen_on attack_metric attack_score "
    "empirical_privacy empirical_privacy_low empirical_privacy_high privacy_best_constant privacy_text_classifier "
    "privacy_bayes attack_score_new empirical_privacy_new status attack_advantage attack_advantage_low "
    "attack_advantage_high attack_advantage_p attack_auc exposed_value exposed_found exposed_lift own_texts "
    "known_pairs queries",
    "skipped.csv": "dataset victim attack reason",
    "fairness.csv": "dataset victim variable group n share task_accuracy gap gap_low gap_high p_value tpr_gap "
    "attack_accuracy attack task_accuracy_low task_accuracy_high",
    "costs.csv": "dataset victim attack seed stage seconds peak_memory_mib device threads",
    "comparison.csv": "source dataset victim attack metric variable group seeds ours ours_low ours_high theirs "
    "difference standard_errors",
}
"""Users' scripts rely on these names and their order; new columns are added at the end."""
WORDS_FOUND = (
    "numbers_found numbers_floor capitalised_words_found capitalised_words_floor rare_words_found rare_words_floor"
)
OF_THREATS = {
    "ag": {"leaderboard.csv": WORDS_FOUND},
    "sanitisers": {
        "leaderboard.csv": "words_kept context_free_bound sensitive_right true_epsilon unused_budget",
        "best_known.csv": "words_kept context_free_bound sensitive_right true_epsilon unused_budget",
    },
    "text_inversion": {"leaderboard.csv": WORDS_FOUND},
    "vector_stores": {
        "leaderboard.csv": f"linked_at_1_percent_false_links linked_first stolen_vectors candidate_texts {WORDS_FOUND}",
        "best_known.csv": "linked_at_1_percent_false_links linked_first stolen_vectors candidate_texts",
    },
}
"""Columns that a board has besides, since one of its threats adds them."""


@pytest.mark.parametrize("name", with_slow(suite_names(), "ag", "dpnr", "noise_training"))
def test_every_cell_of_a_board_is_published_under_its_identity(name, request):
    if name not in COMPUTED_AGAIN:
        request.getfixturevalue("as_published")
    suite = load_suite(name, Registry())
    try:
        jobs = plan(suite, suite.cells(), Identities())
    except RequestError as error:
        pytest.skip(f"a file of its identity is missing: {error}")
    published = {record.key for record in published_records(suite.home)}
    assert {job.key for job in jobs} == published
    assert not any(job.undeclared for job in jobs)


@pytest.mark.parametrize("name", with_slow(suite_names(), "dpnr", "noise_training"))
def test_records_agree_with_the_tables_and_hold_no_text(name):
    suite, parts = load_suite(name, Registry()), ["dataset", "victim", "attack"]
    paths = [suite.home / f"{table}.csv" for table in ("leaderboard", "skipped")]
    tables = [pd.read_csv(path, keep_default_na=False, usecols=parts) for path in paths]
    records = published_records(suite.home)
    named = [suite.names.row({part: getattr(record, part) for part in parts}) for record in records]
    assert {tuple(row.values()) for row in named} == {tuple(row) for table in tables for row in table.to_numpy()}
    assert not any(record.sentences for record in records)


@pytest.mark.parametrize("name", suite_names())
@pytest.mark.parametrize("file", COLUMNS)
def test_columns_keep_their_names(name, file):
    path = find_suite(name).parent / file
    if not path.is_file():
        pytest.skip("this suite has no published numbers to compare with")
    columns, added = list(pd.read_csv(path, nrows=0).columns), OF_THREATS.get(name, {}).get(file, "").split()
    assert [column for column in columns if column in added] == added
    assert [column for column in columns if column not in added] == COLUMNS[file].split()
