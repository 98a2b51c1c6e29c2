"""Compare the ensemble with Bayes' rule and thirteen classifiers of scikit-learn, on the published vectors of a suite.

Every victim of the suite is fitted with seed 0, or taken from ``--out``. Published results are not used, since another
processor fits other vectors. Finished cells are kept: the same command goes on.

Bayes' rule (`portfolio: bayes`) knows the law of a victim's noise. Victims without noise do not meet it. The
classifiers have their defaults, see standardised vectors, and learn from train. For entities each chooses its threshold
on dev; the ensemble also learns from dev. A classifier that does worse than the constant guess counts as the constant
guess.

For each set of vectors (a dataset, a victim and a kind of secret) the best of the classifiers on test is next to the
ensemble. The best of so many on few texts is also the luckiest. So the last lines compare each classifier with the
ensemble over all sets. Their standard error takes sets to be independent, which those of one dataset are not.

- A set is lost if the best classifier is better by more than `BAR`, and by more than half the width of the ensemble's
  95 % interval over test texts.
- The worst set is one where an attack beats the constant guess by more than that half width: elsewhere differences are
  chance. On a few hundred texts it falls short by luck alone.
- The worst dataset is judged by the mean over its victims.

`attribute_inference` measures how long the ensemble takes, compared with scikit-learn's MLP.
"""

import json
import subprocess
import sys
from pathlib import Path

import _leakboard
import pandas as pd
from _timing import verdict

import leakboard
from leakboard.attacks._ordinary_classifiers import CLASSIFIERS
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite

OURS = "ensemble"
BAR = 0.005
"""How much better another classifier may be, in score."""
BAYES = "bayes"
PLUGINS = {"ordinary_attributes": "attribute_inference", "ordinary_entities": "entity_presence"}
"""Attacks by one classifier, with the attack of LeakBoard on the same secrets."""


def strength_suite(name: str, without: list[str]) -> dict[str, object]:
    """Return a suite of the same datasets and victims, with these attacks instead of its own."""
    suite = load_suite(name, Registry()).file.model_dump(exclude_unset=True)
    ours = [{plugin: {}, "name": f"{OURS} {plugin}"} for plugin in PLUGINS.values()]
    theirs = [
        {plugin: {"classifier": classifier}, "name": f"{classifier} {PLUGINS[plugin]}"}
        for plugin in PLUGINS
        for classifier in CLASSIFIERS
        if classifier not in without
    ]
    if BAYES not in without:
        theirs += [{plugin: {"portfolio": BAYES}, "name": f"{BAYES} {plugin}"} for plugin in PLUGINS.values()]
    kept = {key: suite[key] for key in ("datasets", "threads", "text_classifier") if key in suite}
    victims = [_without_seeds_and_attacks(entry) for entry in suite["victims"]]
    return {**kept, "reuse": False, "seeds": [0], "victims": victims, "attacks": [*ours, *theirs]}


def _without_seeds_and_attacks(entry: object) -> object:
    if not isinstance(entry, dict):
        return entry
    return {key: _without_seeds_and_attacks(value) for key, value in entry.items() if key not in ("seeds", "attacks")}


def compute(path: Path, out: Path, jobs: int, only: dict[str, list[str]]) -> pd.DataFrame:
    """Run the suite; return its rows that average over secrets."""
    filters = [f"--only={kind}={name}" for kind, names in only.items() for name in names]
    command = [sys.executable, _leakboard.__file__, "run", str(path), "--out", str(out), "--jobs", str(jobs), *filters]
    if status := subprocess.run(command).returncode:
        sys.exit(f"the run ended with status {status}; the same command tries failed cells again")
    table = leakboard.run(path, out=out, only=only).table  # which computes nothing again
    return table[~table["secret"].astype(bool)]


def main(
    suite: str,
    out: Path = Path("runs"),
    jobs: int = 2,
    dataset: list[str] | None = None,
    victim: list[str] | None = None,
    without: list[str] | None = None,
) -> None:
    """Compare on ``suite``, or on some of its datasets and victims, ``without`` some of the classifiers."""
    path = out / f"{Path(suite).stem}_strength.yaml"
    out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(strength_suite(suite, without or [])))
    only = {kind: names for kind, names in (("dataset", dataset), ("victim", victim)) if names}
    rows = compute(path, out, jobs, only)
    rows = rows.assign(kind=rows["attack"].str.split().str[-1], classifier=rows["attack"].str.split().str[0])
    sets = ["dataset", "victim", "kind"]
    scores = 1 - rows.pivot_table(index=sets, columns="classifier", values="empirical_privacy")
    ours = rows[rows["classifier"] == OURS].set_index(sets).loc[scores.index]
    half_width = (ours["empirical_privacy_high"] - ours["empirical_privacy_low"]) / 2
    theirs = scores.drop(columns=OURS)
    ahead = theirs.max(axis=1) - scores[OURS]
    for key, best in theirs.idxmax(axis=1).items():
        line = f"ours {scores[OURS][key]:.3f} +- {half_width[key]:.3f}, {best} {theirs[best][key]:.3f}"
        print(f"{' / '.join(key)}: {line}: {-ahead[key]:+.3f}")
    differences = theirs.sub(scores[OURS], axis=0)
    mean, error, known = differences.mean().sort_values(), differences.sem(), differences.count()
    means = ", ".join(f"{name} {value:+.3f} ({error[name]:.3f}; {known[name]})" for name, value in mean.items())
    print(f"mean difference from ours over {len(scores)} sets (standard error; sets): {means}")
    verdict("attack_strength_sets_lost", (ahead > half_width.clip(lower=BAR)).sum(), 0, True)
    is_noise = scores.max(axis=1) - (1 - ours["privacy_best_constant"]) <= half_width
    print(f"on {is_noise.sum()} of these sets no attack beats the constant guess by more than half the interval")
    verdict("attack_strength_worst_set", ahead[~is_noise].max() if not is_noise.all() else 0.0, BAR, True)
    verdict("attack_strength_worst_dataset", differences.groupby("dataset").mean().max(axis=None), BAR, True)
    verdict("attack_strength_mean_of_the_best", mean.max(), BAR, True)
