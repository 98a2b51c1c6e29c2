"""Compare the victims of a board: on one dataset, each with the strongest attack of a threat on the same secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leakboard.board.figures import finite, pareto_front
from leakboard.board.kept_neighbours import COLUMNS as KEPT
from leakboard.board.means import PARTS, interval, mean
from leakboard.board.schema import Row, columns, mean_columns, metric_title
from leakboard.board.strongest import headlines, observations
from leakboard.metrics.entries import METRICS
from leakboard.pipeline.records import Record
from leakboard.site.content import Board, slug
from leakboard.site.ranks import attacks_met, met_weaker_attacks, most_private, ranked, useful
from leakboard.site.utility import TASK, Utility
from leakboard.suite.labels import number, parse
from leakboard.suite.names import natural
from leakboard.threats.threat import Threat, threat_named

VERDICTS = ("violated", "unproven", "holds", "holds, not audited", "")
"""Failures first."""


@dataclass(frozen=True)
class View:
    """A table of comparable victims: one dataset, one threat, the same secrets, at most as many known pairs."""

    dataset: str
    threat: type[Threat[Any]]
    secrets: str
    rows: Sequence[Row]
    reference: Row | None
    """The victim from which losses of utility are counted; None if no accuracy is above that of a constant guess."""
    undefended: bool
    """Whether the reference is the encoder that the other victims defend, not just the most accurate victim."""
    utility: Utility = TASK
    """What is weighed against privacy."""
    pairs: int | None = None
    """Known pairs of a text and its stored vector; None unless a board tells attackers of stores apart by them."""

    @property
    def title(self) -> str:
        """The attacked secrets in words."""
        names = self.secrets.split("; ")
        secrets = ", ".join(names) if len(names) < 3 else f"{counted(self.secrets)}: {', '.join(names)}"
        known = "" if self.pairs is None else f" ({self.pairs:,} known pairs)"
        return f"{self.threat.title or secrets}{known}"

    @property
    def short_title(self) -> str:
        """The attacked secrets in few words: many secrets are counted."""
        return self.threat.title.rstrip("?") or counted(self.secrets)

    @property
    def menu_title(self) -> str:
        """The title in a menu that narrow screens show in one line."""
        known = "" if self.pairs is None else f", {self.pairs:,} known pairs"
        return f"{self.threat.title.partition(':')[0] or counted(self.secrets)}{known}"

    @property
    def links(self) -> bool:
        """Whether vectors are linked to texts: who links a vector has its whole text."""
        return self.threat.name == "linking"

    @property
    def metrics(self) -> list[str]:
        """Return the scores of the strongest attacks, as in ``F1``."""
        return sorted({metric_title(row["attack_metric"], [row["threat"]]) for row in self.rows})

    @property
    def constant(self) -> float | None:
        """Return the privacy that the best constant guess leaves; None if it differs between victims."""
        constants = {None if (value := row["privacy_best_constant"]) is None else round(value, 3) for row in self.rows}
        return constants.pop() if len(constants) == 1 else None

    @property
    def drawn(self) -> list[Row]:
        """Return the victims with privacy and utility."""
        return [row for row in self.rows if finite(row[self.utility.column]) and finite(row["empirical_privacy"])]

    @property
    def counted_from(self) -> str:
        """Say from which victim losses are counted if no victim is the undefended encoder of the others; else empty."""
        if self.reference is None or self.undefended:
            return ""
        name, value = self.reference["victim"], f"{self.reference[self.utility.column]:.3f}"
        start = "No row shows the defences' encoder without a defence."
        return f"{start} So losses are counted from the victim with the highest {self.utility.name}: {name} ({value})."

    @property
    def comparable(self) -> list[Row]:
        """Return the victims that may be chosen.

        Victims that are useless for the task may not, nor those that did not meet the strongest attack on the
        reference: an attack that was not tried proves nothing.
        """
        left_out = {row["slug"] for row in self.left_out}
        return [row for row in useful(self.drawn) if row["slug"] not in left_out]

    @property
    def left_out(self) -> list[Row]:
        """Return the victims that may not be chosen, since they met weaker attacks only."""
        reference = compared_with(self.threat, self.reference)
        return [row for row in useful(self.drawn) if met_weaker_attacks(row, reference)]

    @property
    def front(self) -> list[Row]:
        """Return the Pareto front, most privacy first: no comparable victim is better than one of these in both."""
        return pareto_front(self.comparable, self.utility.column, "empirical_privacy")

    @property
    def is_scored(self) -> bool:
        """Whether the table has empirical privacy; otherwise it has only audits."""
        return not self.threat.bounds_epsilon


def compared_with(threat: type[Threat[Any]], reference: Row | None) -> Row | None:
    """Return the victim whose strongest attack the others must have met; None if vectors of words are attacked.

    An attack on vectors of words suits some encoders only, so that those without it did not meet weaker ones.
    """
    return None if threat.needs == "words" else reference


def counted(secrets: str) -> str:
    """Return the secrets of a row, or the number of secrets if there are more than two."""
    count = secrets.count("; ") + 1
    return secrets.replace("; ", ", ") if count < 3 else f"{count} secrets"


def views(board: Board) -> list[View]:
    """Return the tables of a board; audits have a table if nothing else was attacked on a dataset.

    Threats have tables of their own, and so have attackers of stores that know different numbers of pairs. Who knows
    pairs may leave some of them out, so attacks with fewer pairs on the same victims count, too.
    """
    scored = [row for row in board.rows if row.get("empirical_privacy") is not None]
    groups: dict[tuple[str, str, str, int], list[Row]] = {}
    for row in scored:
        groups.setdefault((row["dataset"], row["threat"], row["secrets"], _pairs(row)), []).append(row)
    datasets = {dataset for dataset, *_ in groups}
    for row in board.rows:
        if threat_named(row.get("threat", "")).bounds_epsilon and row["dataset"] not in datasets:
            groups.setdefault((row["dataset"], row["threat"], row["secrets"], 0), []).append(row)
    several = {(threat, secrets) for _, threat, secrets, pairs in groups if pairs}
    made = [
        _view(
            board,
            dataset,
            secrets,
            _with_fewer(groups, (dataset, threat, secrets, pairs)),
            pairs if (threat, secrets) in several else None,
        )
        for dataset, threat, secrets, pairs in groups
    ]

    def place(view: View) -> tuple[Any, ...]:
        rest = -len(view.rows), natural(view.secrets), view.threat.name, view.pairs or 0
        return natural(view.dataset), not view.links, *rest

    return sorted(made, key=place)


def _with_fewer(groups: Mapping[tuple[str, str, str, int], list[Row]], group: tuple[str, str, str, int]) -> list[Row]:
    """Return the rows of a group, and those on the same victims with fewer known pairs."""
    *same, pairs = group
    victims = {row["victim_options"] for row in groups[group]}
    fewer = [rows for (*of, known), rows in groups.items() if of == same and known < pairs]
    return [*groups[group], *(row for rows in fewer for row in rows if row["victim_options"] in victims)]


def _pairs(row: Row) -> int:
    """Return how many pairs of a text and its stored vector an attack may know."""
    return int(number(row["attack_options"], "pairs") or 0)


def _view(board: Board, dataset: str, secrets: str, rows: Sequence[Row], pairs: int | None) -> View:
    threat = threat_named(rows[0]["threat"])
    if threat.bounds_epsilon:
        first = {row["victim_options"]: row for row in reversed(rows)}
        chosen = [_victim_row(board, row) for row in first.values()]
        chosen.sort(key=lambda row: (VERDICTS.index(row["verdict"] or ""), natural(row["victim"])))
    else:
        chosen = sorted((_victim_row(board, dict(row)) for row in headlines(rows)), key=most_private)
    for row in chosen:
        row |= _attempts(row, [other for other in rows if other["victim_options"] == row["victim_options"]])
    own = [row for row in chosen if row["victim_options"] not in board.submitted]
    reference, undefended = reference_of(own or chosen, board.utility)
    if not threat.bounds_epsilon:
        chosen = ranked(chosen, compared_with(threat, reference))
    return View(dataset, threat, secrets, chosen, reference, undefended, board.utility, pairs)


def _attempts(row: Row, attacks: Sequence[Row]) -> Row:
    """Return which attacks a victim met, and what is left if seeing more publications of a text helps.

    ``attacks`` is how many of them saw as many publications as the strongest. ``most_observations`` is the most
    publications that one of them saw.

    Args:
        row: of the strongest attack on a victim.
        attacks: the rows of all attacks on it.
    """
    seen = observations(row)
    more = [a for a in attacks if observations(a) > seen and a.get("empirical_privacy") is not None]
    met = {label for attack in attacks for label in attacks_met(attack["attack_options"])}
    same = len([a for a in attacks if observations(a) == seen])
    tried = {"attacks": same, "met": met, "most_observations": max(map(observations, attacks))}
    worst = min(more, key=lambda a: float(a["empirical_privacy"]), default=None)
    if worst is None or worst["empirical_privacy"] >= row["empirical_privacy"]:
        return {**tried, "repeated": ""}
    left = f"{worst['empirical_privacy']:.2f} if a text is published {observations(worst)} times"
    return {**tried, "repeated": left}


def _victim_row(board: Board, row: Row) -> Row:
    """Return the row of a victim's strongest attack, with what pages add: more means, the three epsilons, the cost."""
    records = _records(board, row)
    options = row["victim_options"]
    empty = dict.fromkeys(column.name for column in columns("leaderboard.csv"))
    added = [column for column in mean_columns("page: victims") if column.name not in row]
    more = {column.name: PARTS[column.part](records, column.metric, "") for column in added}
    low, high = interval(records, board.utility.column)
    of_vectors = {name: mean(records, name) for name in ("map_word", "map_char")}
    kept = board.kept.get((row["dataset"], row["victim"]), {})
    return {
        **empty,
        **more,
        **of_vectors,
        **{name: kept.get(name) for name in KEPT},
        **row,
        "slug": slug(options),
        "weighed": board.utility,
        f"{board.utility.column}_low": low,
        f"{board.utility.column}_high": high,
        "attack_slug": slug(row["attack_options"]),
        "provenance": board.mark(row),
        "seconds": seconds(board, row["dataset"], row["victim"]),
        **three_epsilons(board, row["dataset"], row["victim"]),
    }


def three_epsilons(board: Board, dataset: str, victim: str) -> Row:
    """Return the claimed, proved and audited epsilon of one release of a victim, and the verdict."""
    rows = [r for r in board.rows if (r["dataset"], r["victim"]) == (dataset, victim)]
    claiming = next((r for r in rows if r.get("verdict")), None)
    row: Row = dict.fromkeys(("epsilon_claimed", "epsilon_proved", "delta"), None) | {"verdict": "", "privacy_unit": ""}
    if claiming is None:
        audited = next((r["epsilon_audited"] for r in rows if r.get("epsilon_audited") is not None), None)
        return {**row, "epsilon_audited": audited}
    observations = claiming.get("observations") or 1
    return {
        **row,
        "epsilon_audited": claiming["epsilon_audited"],
        "epsilon_claimed": claiming["epsilon_claimed"] / observations,
        "epsilon_proved": claiming["epsilon_proved"] / observations,
        "delta": claiming["delta"] / observations,
        "verdict": claiming["verdict"],
        "privacy_unit": claiming["privacy_unit"],
    }


def seconds(board: Board, dataset: str, victim: str) -> float | None:
    """Return the seconds to fit a victim and to publish its vectors, mean over seeds.

    A fit is in the costs of every attack that used it, and counts once.
    """
    taken: dict[Any, dict[str, float]] = {}
    for cost in board.costs:
        if (cost["dataset"], cost["victim"]) == (dataset, victim) and cost["stage"] in ("fit", "publish"):
            taken.setdefault(cost["seed"], {}).setdefault(cost["stage"], cost["seconds"] or 0.0)
    return sum(sum(stages.values()) for stages in taken.values()) / len(taken) if taken else None


def encoder_of(row: Row) -> str:
    """Return the encoder of an undefended victim: its option ``encoder`` if it has no defence, else its label."""
    options = parse(row["victim_options"])[1]
    return options.get("encoder", "") if _has_no_defence(options) else str(row["victim_options"])


def _has_no_defence(options: Mapping[str, str]) -> bool:
    return options.get("epsilon") == "null" or options.get("protection") == "none"


def reference_of(rows: Sequence[Row], utility: Utility = TASK) -> tuple[Row | None, bool]:
    """Return the victim from which losses are counted, and whether it is the encoder that most others defend."""
    known = [row for row in useful(rows) if finite(row[utility.column])]
    options = [parse(row["victim_options"])[1] for row in rows]
    encoders = [given.get("encoder") for given in options if not _has_no_defence(given)]
    defended = [(encoders.count(encoder_of(row)), row) for row in known]
    count, encoder = max(defended, key=lambda pair: pair[0], default=(0, None))
    if count:
        return encoder, True
    return max(known, key=lambda row: row[utility.column], default=None), False


def attack_rows(board: Board, dataset: str, victim: str) -> list[Row]:
    """Return every attack on a victim, by its secrets, the strongest first; audits come last."""
    rows = [r for r in board.rows if (r["dataset"], r["victim"]) == (dataset, victim)]
    return sorted(
        rows,
        key=lambda r: (threat_named(r["threat"]).bounds_epsilon, r["secrets"], r.get("empirical_privacy") or 0),
    )


def _records(board: Board, row: Row) -> list[Record]:
    key = row["dataset"], row["victim"], row["attack"]
    return [record for record in board.records if (record.dataset, record.victim, record.attack) == key]


def secret_rows(board: Board, dataset: str, victim: str) -> list[Row]:
    """Return how well each secret of a victim is guessed by each attack, from the records' own metrics."""
    rows = []
    for row in attack_rows(board, dataset, victim):
        records = _records(board, row)
        for secret in records[0].secrets if records else ():
            guessed = {c.name: PARTS[c.part](records, c.metric, secret) for c in mean_columns("page: secrets")}
            if guessed["attack_accuracy"] is not None:
                low, high = interval(records, "attack_accuracy", secret)
                ends = {"attack_accuracy_low": low, "attack_accuracy_high": high}
                rows.append({"attack": row["attack"], "secret": secret, **guessed, **ends})
    return rows


def measure_rows(board: Board, dataset: str, victim: str, where: str = "page") -> list[Row]:
    """Return the other measures of a victim as a whole, mean over seeds; a measure of every attack comes once.

    Args:
        board: the leaderboard.
        dataset: the victim's.
        victim: its name.
        where: ``page`` for all that a victim's page lists, ``board`` for those that a board's page lists.
    """
    listed = ("page", "board") if where == "page" else ("board",)
    rows: dict[tuple[Any, ...], Row] = {}
    attacks = attack_rows(board, dataset, victim)
    for row in attacks:
        records = _records(board, row)
        for name in dict.fromkeys(m.name for r in records for m in r.metrics if not m.variable):
            if name in METRICS and METRICS[name].listed not in listed:
                continue
            value, (low, high) = mean(records, name), interval(records, name)
            if value is not None:
                known = rows.setdefault((name, value), {"metric": name, "value": value, "attacks": []})
                known |= {"value_low": low, "value_high": high}
                known["attacks"].append(row["attack"])

    def of_all(row: Row) -> bool:
        """Return whether every attack has the measure. The measures of a single attack may depend on it."""
        entry = METRICS.get(row["metric"])
        if entry is None or (len(attacks) == 1 and entry.of == "attack"):
            return False
        return len(row["attacks"]) == len(attacks)

    return [{**row, "attack": "" if of_all(row) else "; ".join(row["attacks"])} for row in rows.values()]
