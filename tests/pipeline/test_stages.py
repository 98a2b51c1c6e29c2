"""What a cell's stages hand to its attack."""


def test_an_attacker_with_another_dataset_leaves_all_training_texts_to_the_victim(bench, command_line):
    bench.suite(
        datasets=[{"generated_reviews": {"users": 30, "auxiliary": "letters"}}],
        victims=[{"word2vec": {"vector_size": 8, "min_count": 1}}],
        attacks=[{"membership_inference": {"candidates": 20, "unit": "document"}}],
        text_classifier=False,
    )
    status, out, _ = command_line(*bench.arguments("run"))
    assert status == 0, out
    (row,) = bench.leaderboard().to_dict("records")
    assert row["attack_metric"] == "auc"  # the cell was scored: how well is not the question here
