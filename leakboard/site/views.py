"""One table of a board: the victims on one dataset, each with its strongest attack on the same secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leakboard.board.columns import METRICS
from leakboard.board.figures import finite
from leakboard.board.means import mean
from leakboard.board.strongest import headlines
from leakboard.site.content import AUDIT, Board, Row, slug
from leakboard.site.labels import parse
from leakboard.suite.names import KINDS, natural

SPECIAL = {
    "words": "words: which word is this vector?",
    "text": "texts: which words are in the text?",
    "membership": "membership: was this in the training data?",
    "claim": "claims of privacy, audited",
}
"""What is guessed where it is not a column of the data."""
VERDICTS = ("holds", "unproven", "violated", "")
LOSS = 2.0
"""Loss of task accuracy, in points, for which the page says which victim keeps most privacy."""


@dataclass(frozen=True)
class View:
    """A table of victims that can be compared: one dataset, the same secrets."""

    dataset: str
    secrets: str
    rows: Sequence[Row]
    reference: Row | None
    """The victim that losses of accuracy are counted from; None where no accuracy is known."""
    undefended: bool
    """Whether the reference is the encoder that the other victims defend, or else just the most accurate one."""

    @property
    def title(self) -> str:
        """What is guessed, in words."""
        if self.secrets in SPECIAL:
            return SPECIAL[self.secrets]
        names = self.secrets.split("; ")
        return ", ".join(names) if len(names) < 3 else f"{counted(self.secrets)}: {', '.join(names)}"

    @property
    def metrics(self) -> list[str]:
        """Return the scores of the strongest attacks, as in ``F1``."""
        return sorted({METRICS.get(str(row["metric"]), str(row["metric"])) for row in self.rows})

    @property
    def constant(self) -> float | None:
        """Return the privacy that the best constant guess leaves; None where it is not the same for all victims."""
        constants = {None if row["constant"] is None else round(row["constant"], 3) for row in self.rows}
        return constants.pop() if len(constants) == 1 else None

    @property
    def is_scored(self) -> bool:
        """Whether the table has empirical privacy, or audits alone."""
        return self.secrets != "claim"


def counted(secrets: str) -> str:
    """Return the secrets of a row, or how many they are where they are many."""
    count = secrets.count("; ") + 1
    return secrets.replace("; ", ", ") if count < 3 else f"{count} secrets"


def views(board: Board) -> list[View]:
    """Return the tables of a board; audits have a table of their own where nothing else was attacked."""
    scored = [row for row in board.rows if row.get("empirical_privacy") is not None]
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in scored:
        groups.setdefault((row["dataset"], row["secrets"]), []).append(row)
    datasets = {dataset for dataset, _ in groups}
    for row in board.rows:
        if row["attack_metric"] == AUDIT and row["dataset"] not in datasets:
            groups.setdefault((row["dataset"], "claim"), []).append(row)
    found = [_view(board, dataset, secrets, rows) for (dataset, secrets), rows in groups.items()]
    return sorted(found, key=lambda view: (natural(view.dataset), -len(view.rows), natural(view.secrets)))


def _view(board: Board, dataset: str, secrets: str, rows: Sequence[Row]) -> View:
    if secrets == "claim":
        first = {row["victim_options"]: row for row in reversed(rows)}
        chosen = [_victim_row(board, row) for row in first.values()]
        chosen.sort(key=lambda row: (VERDICTS.index(row["verdict"] or ""), natural(row["victim"])))
    else:
        chosen = [_victim_row(board, dict(row)) for row in headlines(rows)]
        chosen.sort(key=lambda row: (-row["privacy"], natural(row["victim"])))
        for row in chosen:
            row["rank"] = 1 + sum(_above(other, row) for other in chosen)
            row["last_rank"] = len(chosen) - sum(_above(row, other) for other in chosen)
    tried = Counter(row["victim_options"] for row in rows)
    for row in chosen:
        row["attacks"] = tried[row["options"]]
    reference, undefended = _reference(chosen)
    return View(dataset, secrets, chosen, reference, undefended)


def _above(other: Row, row: Row) -> bool:
    """Return whether the interval of one victim's privacy lies wholly above that of another."""
    return bool(_end(other, "low") > _end(row, "high"))


def _end(row: Row, end: str) -> float:
    value = row[f"privacy_{end}"]
    return float(row["privacy"] if value is None else value)


def overlap(first: Row, second: Row) -> bool:
    """Return whether the intervals of two victims' privacy overlap: then neither is said to keep more."""
    return not _above(first, second) and not _above(second, first)


def _victim_row(board: Board, row: Row) -> Row:
    """Return what a board's table shows of a victim: the row of its strongest attack with claim, accuracy, cost."""
    here = [
        r for r in board.records if (r.dataset, r.victim, r.attack) == (row["dataset"], row["victim"], row["attack"])
    ]
    dataset, victim, options = row["dataset"], row["victim"], row["victim_options"]
    return {
        "victim": victim,
        "options": options,
        "slug": slug(options),
        "dataset": dataset,
        "seeds": row["seeds"],
        "accuracy": row.get("task_accuracy"),
        "task_constant": row.get("task_majority"),
        "accuracy_low": mean(here, "task_accuracy", "low"),
        "accuracy_high": mean(here, "task_accuracy", "high"),
        "accuracy_sd": row.get("task_accuracy_sd"),
        "privacy": row.get("empirical_privacy"),
        "privacy_low": row.get("empirical_privacy_low"),
        "privacy_high": row.get("empirical_privacy_high"),
        "privacy_sd": row.get("empirical_privacy_sd"),
        "privacy_new": row.get("empirical_privacy_new"),
        "attack": row["attack"],
        "metric": row["attack_metric"],
        "attack_slug": slug(row["attack_options"]),
        "constant": row.get("privacy_best_constant"),
        "text_classifier": row.get("privacy_text_classifier"),
        "bayes": row.get("privacy_bayes"),
        "plug_in": mean(here, "plug_in_loss"),
        "map_word": mean(here, "map_word"),
        "map_char": mean(here, "map_char"),
        "provenance": board.provenance.get(tuple(row[f"{kind}_options"] for kind in KINDS), ""),
        "gap": row.get("fairness_gap"),
        "gap_variable": row.get("fairness_variable"),
        "seconds": seconds(board, dataset, victim),
        **three_epsilons(board, dataset, victim),
    }


def three_epsilons(board: Board, dataset: str, victim: str) -> Row:
    """Return what a victim claims of one release, what is proved and audited, and the verdict."""
    rows = [r for r in board.rows if (r["dataset"], r["victim"]) == (dataset, victim)]
    claiming = next((r for r in rows if r.get("verdict")), None)
    audited = next((r["epsilon_audited"] for r in rows if r.get("epsilon_audited") is not None), None)
    if claiming is None:
        return {"claimed": None, "proved": None, "audited": audited, "verdict": "", "unit": "", "delta": None}
    times = claiming.get("observations") or 1
    return {
        "claimed": claiming["epsilon_claimed"] / times,
        "proved": claiming["epsilon_proved"] / times,
        "audited": audited,
        "verdict": claiming["verdict"],
        "unit": claiming["privacy_unit"],
        "delta": claiming["delta"] / times,
    }


def seconds(board: Board, dataset: str, victim: str) -> float | None:
    """Return how long it took to fit a victim and to publish its vectors, in seconds, mean over seeds.

    The same fit stands beside every attack that used it, and is counted once.
    """
    taken: dict[Any, dict[str, float]] = {}
    for cost in board.costs:
        if (cost["dataset"], cost["victim"]) == (dataset, victim) and cost["stage"] in ("fit", "publish"):
            taken.setdefault(cost["seed"], {}).setdefault(cost["stage"], cost["seconds"] or 0.0)
    return sum(sum(stages.values()) for stages in taken.values()) / len(taken) if taken else None


def _encoder(row: Row) -> str:
    """Return the encoder that a victim publishes without noise or another defence: itself, or what it is made of."""
    options = parse(row["options"])[1]
    return options.get("encoder", "") if options.get("epsilon") == "null" else str(row["options"])


def _reference(rows: Sequence[Row]) -> tuple[Row | None, bool]:
    known = [row for row in rows if finite(row["accuracy"])]
    options = [parse(row["options"])[1] for row in rows]
    encoders = [given.get("encoder") for given in options if given.get("epsilon") != "null"]
    defended = [(encoders.count(_encoder(row)), row) for row in known]
    count, encoder = max(defended, key=lambda pair: pair[0], default=(0, None))
    if count:
        return encoder, True
    return max(known, key=lambda row: row["accuracy"], default=None), False


@dataclass(frozen=True)
class Choice:
    """Which victim keeps most privacy at an allowed loss of task accuracy."""

    best: Row
    ties: Sequence[Row]
    """Those within the loss whose intervals overlap that of the best."""
    no_better: bool
    """Whether the encoder without a defence is the best or among the ties: then no defence keeps measurably more."""


def keeps_most(view: View, loss: float = LOSS) -> Choice | None:
    """Return the victim of most privacy among those that lose at most ``loss`` points of accuracy; None without any.

    Args:
        view: the table.
        loss: points of accuracy, 1 for 0.01.
    """
    if view.reference is None or not view.is_scored:
        return None
    least = view.reference["accuracy"] - loss / 100 - 1e-9
    allowed = [row for row in view.rows if finite(row["accuracy"]) and row["accuracy"] >= least]
    best = max(allowed, key=lambda row: row["privacy"])
    ties = [row for row in allowed if row is not best and overlap(row, best)]
    return Choice(best, ties, view.undefended and any(row is view.reference for row in (best, *ties)))
