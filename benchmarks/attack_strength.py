"""The ensemble against a dozen classifiers of scikit-learn with their defaults, on the published vectors of a suite.

    python benchmarks/attack_strength.py SUITE [--out runs] [--dataset NAME ...] [--victim NAME ...] [--without SVC ...]

Every victim of the suite is fitted with seed 0, or taken from the store of ``--out``; published results are not taken
over, since another processor fits other vectors. All classifiers see standardised vectors and are scored as the attacks
are: one that does worse than the constant guess counts as it. They learn from train; for entities each chooses its
threshold on dev, from whose texts the ensemble learns at last. What is done is kept: the same command goes on. For each
set of vectors the best ordinary classifier on test stands beside the ensemble. The best of a dozen on few texts is also
the luckiest, so the last lines compare each classifier with the ensemble over all sets, with a standard error that
takes sets to be independent, which those of one dataset are not. A set counts as lost where the best of them is better
by more than the bar and by more than half the width of the ensemble's 95 % interval over test texts. The worst set is
one of those on which somebody beats the constant guess by more than that: elsewhere differences are chance. On a few
hundred texts it is short by luck alone; the worst dataset is told by the mean over its victims. What the ensemble takes
beside scikit-learn's MLP, `attribute_inference.py` measures.
"""

import argparse
import json
from pathlib import Path

import leakboard

leakboard.__path__.append(str(Path(__file__).parent / "strength"))

from _sides import verdict  # noqa: E402

from leakboard.attacks._ordinary_classifiers import CLASSIFIERS  # noqa: E402 (workers read this file first, too)
from leakboard.suite.registry import Registry  # noqa: E402
from leakboard.suite.suites import load_suite  # noqa: E402

OURS = "ensemble"
BAR = 0.005
"""By how much another may be better."""


def suite_of(name: str, without: list[str]) -> dict[str, object]:
    """Return the suite's datasets and victims, each with our attacks instead of its own."""
    suite = load_suite(name, Registry()).file.model_dump(exclude_unset=True)
    victims = [_without_its_own(entry) for entry in suite["victims"]]
    ours = [{plugin: {}, "name": f"{OURS} {plugin}"} for plugin in PLUGINS.values()]
    theirs = [
        {plugin: {"classifier": classifier}, "name": f"{classifier} {PLUGINS[plugin]}"}
        for plugin in PLUGINS
        for classifier in CLASSIFIERS
        if classifier not in without
    ]
    kept = {key: suite[key] for key in ("datasets", "threads", "text_classifier") if key in suite}
    return {**kept, "reuse": False, "seeds": [0], "victims": victims, "attacks": [*ours, *theirs]}


def _without_its_own(entry: object) -> object:
    """Return a suite's victim without seeds and attacks of its own."""
    if not isinstance(entry, dict):
        return entry
    return {key: _without_its_own(value) for key, value in entry.items() if key not in ("seeds", "attacks")}


PLUGINS = {"ordinary_attributes": "attribute_inference", "ordinary_entities": "entity_presence"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--out", default="runs")
    parser.add_argument("--jobs", type=int, default=2)
    for kind in ("dataset", "victim"):
        parser.add_argument(f"--{kind}", nargs="*", default=[])
    parser.add_argument("--without", nargs="*", default=[])
    arguments = parser.parse_args()
    only = {kind: getattr(arguments, kind) for kind in ("dataset", "victim") if getattr(arguments, kind)}
    suite = suite_of(arguments.suite, arguments.without)
    out = Path(arguments.out)
    path = out / f"{Path(arguments.suite).stem}_strength.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(suite))
    report = leakboard.run(path, out=out, only=only, jobs=arguments.jobs)
    failed = [f"{r.dataset} / {r.victim} / {r.attack}: {r.reason}" for r in report.records if r.status == "failed"]
    if failed:
        parser.exit(1, "\n".join(["these failed; the same command tries them again:", *failed, ""]))
    rows = report.table[~report.table["secret"].astype(bool)]
    rows = rows.assign(kind=rows["attack"].str.split().str[-1], classifier=rows["attack"].str.split().str[0])
    sets = ["dataset", "victim", "kind"]
    scores = 1 - rows.pivot_table(index=sets, columns="classifier", values="empirical_privacy")
    ours = rows[rows["classifier"] == OURS].set_index(sets).loc[scores.index]
    luck = (ours["empirical_privacy_high"] - ours["empirical_privacy_low"]) / 2
    constant = 1 - ours["privacy_best_constant"]
    lost = 0
    for (dataset, victim, kind), row in scores.iterrows():
        theirs = row.drop(OURS)
        lost += theirs.max() - row[OURS] > max(BAR, luck[dataset, victim, kind])
        line = f"ours {row[OURS]:.3f} +- {luck[dataset, victim, kind]:.3f}, "
        line += f"{theirs.idxmax()} {theirs.max():.3f}: {row[OURS] - theirs.max():+.3f}"
        print(f"{dataset} / {victim} / {kind}: {line}")
    differences = scores.sub(scores[OURS], axis=0).drop(columns=OURS)
    mean, error = differences.mean().sort_values(), differences.sem()
    means = ", ".join(f"{name} {value:+.3f} ({error[name]:.3f})" for name, value in mean.items())
    print(f"mean difference from ours over {len(scores)} sets (standard error): {means}")
    verdict("attack_strength_sets_lost", lost, 0, True)
    is_noise = scores.max(axis=1) - constant <= luck
    print(f"on {is_noise.sum()} of these sets nobody is better than the constant guess by more than half the interval")
    ahead = scores.drop(columns=OURS).max(axis=1) - scores[OURS]
    verdict("attack_strength_worst_set", ahead[~is_noise].max() if not is_noise.all() else 0.0, BAR, True)
    verdict("attack_strength_worst_dataset", differences.groupby("dataset").mean().max(axis=None), BAR, True)
    verdict("attack_strength_mean_of_the_best", mean.max(), BAR, True)


if __name__ == "__main__":
    main()
