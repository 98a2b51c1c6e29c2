"""Records that tests make, and names that pages must show as they are."""

from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import Record

SCRIPT, FORMULA, REVERSED = "<script>document.title='run'</script>", '=cmd("calc")', "\u202ereversed"
HOSTILE = (SCRIPT, FORMULA, REVERSED, "</script><img src=x onerror=document.title='run'>")


def record(victim, attack="attack", dataset="data", seed=0, accuracy=0.8, privacy=0.3, secrets=("gender",), **more):
    """Return a record with the metrics that pages show; intervals reach 0.02 to both sides."""
    interval = {"low": privacy - 0.02, "high": privacy + 0.02}
    metrics = [
        Metric("task_accuracy", accuracy, low=accuracy - 0.02, high=accuracy + 0.02),
        Metric("attack_score", 1 - privacy),
        Metric("empirical_privacy", privacy, **interval),
        Metric("privacy_best_constant", 0.5),
        *(Metric("attack_accuracy", 1 - privacy, secret) for secret in secrets),
    ]
    return Record(
        dataset, victim, attack, seed, "ok", key=f"{dataset}{victim}{attack}{seed}", secrets=secrets,
        threat="attributes", attack_metric="accuracy", test_size=100, metrics=metrics, **more,
    )  # fmt: skip
