"""Verdicts of `dp_audit` on controls: sound mechanisms must be left alone, and the flaws of calls caught.

    python benchmarks/audit_controls.py [--audits 1000] [--budget 100000] [--dimension 2]

The sound controls share the audits, each with a seed of its own, at a claim of 1 (an audit takes 1 to 3 seconds); every
flaw of calls is audited at claims of 0.5, 1 and 5. A claim is violated where the bound at the confidence of a verdict
exceeds it: of 10,000 audits one may be, of 1,000 where the claim has a delta. At 95 % one in twenty may exceed it,
which a binomial test judges; bounds are rarely tight, so that fewer do.
"""

import argparse
from dataclasses import replace

from _sides import verdict
from scipy import stats

from leakboard.attacks.dp_audit import DpAudit
from leakboard.datasets.zeros_and_ones import ZerosAndOnes
from leakboard.metrics.claims import BOUND, ERROR, corrected_bound, verdict_error
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.pipeline.fitting import fit
from leakboard.pipeline.publications import publish
from leakboard.randomness import Streams
from leakboard.threats.threat import VictimSide
from leakboard.victims.mechanism import Mechanism

SOUND = ("laplace", "discrete_laplace", "gaussian", "random", "halved_output", "shared_and_own")
FLAWS = ("shared_by_rows", "few_seeds", "scaled_by_rows")
CLAIMS = (0.5, 1.0, 5.0)


def bounds(name: str, epsilon: float, audits: int, budget: int, dimension: int) -> list[tuple[float, float]]:
    """Return the bound of each audit at 95 % confidence, and at that of a verdict."""
    corpus, victim = ZerosAndOnes(dimension=dimension).load(), Mechanism(name=name, epsilon=epsilon)
    streams = Streams(0, corpus.name, name, "dp_audit")
    fitted = fit(victim, corpus, streams)
    published = publish(victim, fitted, corpus, streams)
    side = VictimSide(corpus, corpus, victim, lambda: fitted, published, streams)
    pairs = []
    for seed in range(audits):
        drawn = replace(side, streams=Streams(seed, corpus.name, name, "dp_audit"))
        metrics = evaluate_attack(DpAudit(pairs="corners", budget=budget), drawn).metrics
        bound = next(metric.value for metric in metrics if metric.name == BOUND)
        pairs.append((bound or 0.0, corrected_bound([metrics], verdict_error(fitted.delta)) or 0.0))
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--budget", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=2)
    arguments = parser.parse_args()
    alarms, caught, surprise, each = 0, 0, 1.0, -(-arguments.audits // len(SOUND))
    for name in SOUND:
        audited = bounds(name, 1.0, each, arguments.budget, arguments.dimension)
        above, violated = (sum(pair[i] > 1.0 for pair in audited) for i in range(2))
        alarms += violated
        surprise = min(surprise, stats.binomtest(above, each, ERROR, alternative="greater").pvalue)
        largest = max(pair[0] for pair in audited)
        print(
            f"{name}: {violated} of {each} violated; {above} above 1 at 95 %, {largest:.2f} the largest",
            flush=True,
        )
    for name in FLAWS:
        for epsilon in CLAIMS:
            ((bound, beyond),) = bounds(name, epsilon, 1, arguments.budget, arguments.dimension)
            caught += beyond > epsilon
            print(f"{name}, a claim of {epsilon:g}: {bound:.2f} at 95 %, {beyond:.2f} for a verdict", flush=True)
    verdict("audit_controls_false_alarms", alarms, 1, True)
    verdict("audit_controls_p_value_of_those_above_the_claim_at_95", surprise, 0.001)
    verdict("audit_controls_flaws_caught", caught, len(FLAWS) * len(CLAIMS))


if __name__ == "__main__":
    main()
