"""Check the verdicts of `dp_audit` on controls: sound mechanisms must hold, and the flaws of calls must be caught.

The sound controls share the audits, each audit with a seed of its own, at a claim of 1. Every flaw of calls is audited
at claims of 0.5, 1 and 5. This takes 9 minutes on two cores. Finished audits are kept: the same command goes on.

A claim is violated where the bound at the confidence of a verdict exceeds it. Of 10,000 audits one may be a false
alarm, of 1,000 where the claim has a delta. At 95 % confidence one in twenty bounds may exceed its claim, which a
binomial test judges. Bounds are rarely tight, so fewer do.
"""

from itertools import groupby

from _timing import verdict
from scipy import stats

import leakboard
from leakboard.metrics.audits import ERROR, corrected_bound, verdict_error
from leakboard.pipeline.records import Record

SOUND = ("laplace", "discrete_laplace", "gaussian", "random", "halved_output", "shared_and_own")
FLAWS = ("shared_by_rows", "few_seeds", "scaled_by_rows")
CLAIMS = (0.5, 1.0, 5.0)


def exceeds(record: Record, error: float) -> bool:
    """Return whether the bound of an audit, with this error, exceeds the claim."""
    assert record.claim, record.reason
    return (corrected_bound([record.metrics], error) or 0.0) > record.claim["epsilon"]


def is_violated(record: Record) -> bool:
    """Return whether this audit alone finds the claim violated."""
    return exceeds(record, verdict_error(record.claim["delta"] if record.claim else 0.0))


def main(audits: int = 1000, budget: int = 100_000, dimension: int = 2, out: str = "runs", jobs: int = 2) -> None:
    """Audit the controls; each audit may draw ``budget`` numbers."""
    suite = {
        "seeds": [*range(-(-audits // len(SOUND)))],
        "threads": 1,
        "datasets": [{"zeros_and_ones": {"dimension": dimension}}],
        "victims": [
            {"mechanism": {"epsilon": 1.0, "grid": {"name": [*SOUND]}}},
            {"mechanism": {"grid": {"name": [*FLAWS], "epsilon": [*CLAIMS]}, "seeds": [0]}},
        ],
        "attacks": [{"dp_audit": {"pairs": "corners", "budget": budget}}],
    }
    records = sorted(leakboard.run(suite, out=out, jobs=jobs).records, key=lambda record: record.victim)
    alarms, caught, p_value = 0, 0, 1.0
    for victim, group in groupby(records, key=lambda record: record.victim):
        results = [*group]
        violated, above = sum(map(is_violated, results)), sum(exceeds(record, ERROR) for record in results)
        print(f"{victim}: of {len(results)} audits {violated} violated, {above} above the claim at 95 %")
        if any(f"name={name})" in victim for name in SOUND):
            alarms += violated
            p_value = min(p_value, stats.binomtest(above, len(results), ERROR, alternative="greater").pvalue)
        else:
            caught += violated
    verdict("audit_controls_false_alarms", alarms, 1, True)
    verdict("audit_controls_p_value_of_those_above_the_claim_at_95", p_value, 0.001)
    verdict("audit_controls_flaws_caught", caught, len(FLAWS) * len(CLAIMS))
