"""Verdicts of `dp_audit` on controls: sound mechanisms must be left alone, and the flaws of calls caught.

    python benchmarks/audit_controls.py [--audits 1000] [--budget 100000] [--dimension 2] [--out runs] [--jobs 2]

The sound controls share the audits, each with a seed of its own, at a claim of 1; every flaw of calls is audited at
claims of 0.5, 1 and 5. That takes 9 minutes on two cores. What is done is kept: the same command goes on. A claim is
violated where the bound at the confidence of a verdict exceeds it: of 10,000 audits one may be, of 1,000 where the
claim has a delta. At 95 % one in twenty may exceed it, which a binomial test judges; bounds are rarely tight, so that
fewer do.
"""

import argparse
from itertools import groupby

from _sides import verdict
from scipy import stats

import leakboard
from leakboard.metrics.audits import ERROR, corrected_bound, verdict_error
from leakboard.pipeline.records import Record

SOUND = ("laplace", "discrete_laplace", "gaussian", "random", "halved_output", "shared_and_own")
FLAWS = ("shared_by_rows", "few_seeds", "scaled_by_rows")
CLAIMS = (0.5, 1.0, 5.0)


def exceeds(record: Record, error: float) -> bool:
    """Return whether an audit's bound with this error exceeds the claim."""
    assert record.claim, record.reason
    return (corrected_bound([record.metrics], error) or 0.0) > record.claim["epsilon"]


def is_violated(record: Record) -> bool:
    """Return whether an audit's claim is violated by itself."""
    return exceeds(record, verdict_error(record.claim["delta"] if record.claim else 0.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--budget", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=2)
    parser.add_argument("--out", default="runs")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    sound = {"epsilon": 1.0, "grid": {"name": [*SOUND]}}
    flaws = {"grid": {"name": [*FLAWS], "epsilon": [*CLAIMS]}}
    suite = {
        "seeds": [*range(-(-arguments.audits // len(SOUND)))],
        "threads": 1,
        "datasets": [{"zeros_and_ones": {"dimension": arguments.dimension}}],
        "victims": [{"mechanism": sound}, {"mechanism": {**flaws, "seeds": [0]}}],
        "attacks": [{"dp_audit": {"pairs": "corners", "budget": arguments.budget}}],
    }
    records = sorted(leakboard.run(suite, out=arguments.out, jobs=arguments.jobs).records, key=lambda r: r.victim)
    alarms, caught, surprise = 0, 0, 1.0
    for victim, group in groupby(records, key=lambda r: r.victim):
        audits = [*group]
        violated, above = sum(map(is_violated, audits)), sum(exceeds(record, ERROR) for record in audits)
        print(f"{victim}: of {len(audits)} audits {violated} violated, {above} above the claim at 95 %")
        if any(f"name={name})" in victim for name in SOUND):
            alarms += violated
            surprise = min(surprise, stats.binomtest(above, len(audits), ERROR, alternative="greater").pvalue)
        else:
            caught += violated
    verdict("audit_controls_false_alarms", alarms, 1, True)
    verdict("audit_controls_p_value_of_those_above_the_claim_at_95", surprise, 0.001)
    verdict("audit_controls_flaws_caught", caught, len(FLAWS) * len(CLAIMS))


if __name__ == "__main__":
    main()
