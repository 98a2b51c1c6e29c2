"""Make the rows of a leaderboard from records: the scores of each attack on each victim, and the skipped pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from leakboard.board.fairness_rows import gap_columns
from leakboard.board.means import PARTS, grouped, mean
from leakboard.board.schema import Row, mean_columns
from leakboard.claims import unit_of
from leakboard.metrics.audits import corrected_bound, verdict, verdict_error
from leakboard.metrics.row_match import LEVEL
from leakboard.pipeline.records import Record
from leakboard.suite.names import KINDS
from leakboard.threats.sentence_parts import ROUNDING, beats_constant
from leakboard.threats.threat import threat_named

BEYOND = "better than the best possible attacker on the texts: the secret leaks in another way, or there is a bug"
"""Status of an attack on generated data whose whole interval is above the best possible attacker on the texts."""
PERFECT = "every guess is right: do the vectors hold the secret itself, or is there a bug?"
"""Status of an attack whose score is exactly 1."""
LOST = "attack failed: no better than the best constant guess"
"""Status of an attack whose advantage is not above 0."""

JOIN_VERDICTS = ("rows_match", "rows_match_throughout", "order_kept")
"""Metrics that are 0 where vectors seem not to belong to their rows or texts, with a warning."""


class AuditBounds(NamedTuple):
    """Lower bounds on the epsilon of a claim, from all of its audits together."""

    bound: float | None = None
    """The bound at 95 % confidence; None if nothing was audited."""
    beyond_doubt: float | None = None
    """The bound at the confidence of a verdict, `verdict_error`."""

    @classmethod
    def by(cls, records: Sequence[Record]) -> AuditBounds:
        """Return the bounds that these audits of one claim prove together."""
        cells = [record.metrics for record in records]
        delta = claim["delta"] if (claim := weakest_claim(records)) else 0.0
        return cls(corrected_bound(cells), corrected_bound(cells, verdict_error(delta)))

    def at_least(self, exact: float | None) -> AuditBounds:
        """Return the bounds, raised to an epsilon that was computed without an error; None: nothing was computed."""
        if exact is None:
            return self
        bound, beyond_doubt = (exact if bound is None else max(bound, exact) for bound in self)
        return AuditBounds(bound, beyond_doubt)


def leaderboard(records: Sequence[Record]) -> list[Row]:
    """Return the rows of each (dataset, victim, attack) that was measured or failed: means over seeds.

    - One row is about all secrets together. If there are several, each secret has one more (column ``secret``).
    - A 95 % interval counts the test texts (sampling) and the seeds (training): `leakboard.board.means.interval`. The
      columns ``..._sd`` are standard deviations over seeds, empty with one seed.
    - ``epsilon_audited`` is the largest bound of the audits of the victim, all seeds and pairs together
      (`corrected_bound`). It is in every row of the victim that has its claim. A victim that claims nothing has it in
      the rows of its audits alone, for their unit and delta. A claim may have an exact one (`ReleaseClaim.exact`).
    - ``epsilon_audited`` and the verdict are about one release at its own delta. In rows of an attack that sees several
      releases (``observations``), the claimed and proved epsilons and the delta are the sums.
    - If the claims of the seeds differ, the row has the claim with the largest epsilon, and its status says so.
    - One of twenty true claims is expected above a 95 % bound, so verdicts use bounds at a higher confidence
      (`verdict_error`).
    """
    rows = []
    for of_victim in grouped(records, lambda r: (r.dataset, r.victim)):
        audits = grouped([record for record in of_victim if threat_named(record.threat).bounds_epsilon], _audit_subject)
        bounds = {_audit_subject(group[0]): AuditBounds.by(group) for group in audits}
        for group in grouped(of_victim, lambda r: r.attack):
            if not _is_skipped(group):
                rows += _leaderboard_rows(group, bounds)
    warnings = join_warnings(records, rows)
    return [_with_warning(row, warnings.get((row["dataset"], row["victim"]), "")) for row in rows]


def join_warnings(records: Sequence[Record], rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """Return the warning about each dataset and victim whose vectors seem not to belong to the rows of the table.

    If an attack reads secrets from the vectors, at least some vectors belong to their rows. Then the warning of
    `rows_match` is dropped (`leakboard.metrics.row_match`). The p-value of its advantage must be so small that this is
    wrong in any row of the victim with probability `row_match.LEVEL` at most (Bonferroni).
    """
    warnings = {}
    for of_victim in grouped(records, lambda r: (r.dataset, r.victim)):
        subject = of_victim[0].dataset, of_victim[0].victim
        statuses: dict[str, str] = {}
        for metric in (metric for record in of_victim for metric in record.metrics):
            if metric.name in JOIN_VERDICTS and metric.value == 0:
                statuses.setdefault(metric.name, metric.status)
        if statuses and _is_refuted([row for row in rows if (row["dataset"], row["victim"]) == subject]):
            statuses.pop("rows_match", None)
        if statuses:
            warnings[subject] = next(iter(statuses.values()))
    return warnings


def _is_refuted(rows: Sequence[Row]) -> bool:
    """Return whether an attack surely beats the best constant guess, all attacks and secrets counted."""
    p_values = [row["attack_advantage_p"] for row in rows if row.get("attack_advantage_p") is not None]
    return any(p_value <= LEVEL / len(p_values) for p_value in p_values)


def _with_warning(row: Row, warning: str) -> Row:
    """Return a row with a warning in its status, unless it has failed."""
    if not warning or "attack_score" not in row:
        return row
    return {**row, "status": warning if row["status"] == "ok" else f"{warning}; {row['status']}"}


def skipped(records: Sequence[Record]) -> list[Row]:
    """Return one row for each (dataset, victim, attack) that was skipped, with the reason."""
    groups = grouped(records, lambda r: (r.dataset, r.victim, r.attack))
    firsts = [group[0] for group in groups if _is_skipped(group)]
    return [{"dataset": r.dataset, "victim": r.victim, "attack": r.attack, "reason": r.reason} for r in firsts]


def _is_skipped(records: Sequence[Record]) -> bool:
    return all(record.status == "skipped" for record in records)


def _audit_subject(record: Record) -> tuple[str, float | None]:
    """Return the subject of an audit: the victim's claim or, without a claim, the audit's unit and delta."""
    if record.claim:
        return "claim", None
    return (record.audited["unit"], record.audited["delta"]) if record.audited else ("", None)


def _leaderboard_rows(records: Sequence[Record], bounds: Mapping[tuple[str, float | None], AuditBounds]) -> list[Row]:
    done = [record for record in records if record.status == "ok"]
    first = done[0] if done else records[0]
    row: Row = {"dataset": first.dataset, "victim": first.victim, "attack": first.attack, "seeds": len(done)}
    row |= {f"{kind}_options": row[kind] for kind in KINDS} | {"secret": ""}
    if not done:
        return [{**row, "status": _status(records, done, row)}]
    row |= {
        "secrets": "; ".join(first.secrets),
        "test_size": round(sum(r.test_size or 0 for r in done) / len(done)),
        "threat": first.threat,
        "attack_metric": first.attack_metric,
        "test_copies": first.checks.get("test_copies"),
    }
    row |= _means(done)
    audit_bounds = bounds.get(_audit_subject(first), AuditBounds())
    if claim := weakest_claim(done):
        audit_bounds = audit_bounds.at_least(claim.get("exact"))
        row |= {
            "epsilon_claimed": claim["epsilon"],
            "epsilon_proved": claim["proved"],
            "delta": claim["delta"],
            "privacy_unit": unit_of(claim),
            "verdict": _verdict(claim, audit_bounds.beyond_doubt),
            "observations": claim.get("observations", 1),
        }
    elif audit_bounds.bound is not None:
        unit, delta = _audit_subject(first)
        row |= {"delta": delta, "privacy_unit": unit}
    row["epsilon_audited"] = audit_bounds.bound
    row |= gap_columns(done)
    row |= _most_exposed(done, first.secrets[0]) if len(first.secrets) == 1 else {}
    row["status"] = _status(records, done, row)
    return [row, *(_secret_row(row, records, done, secret) for secret in _scored_secrets(first))]


def weakest_claim(records: Sequence[Record]) -> Mapping[str, Any] | None:
    """Return the claim with the largest epsilon among those of several seeds; None if there is none.

    The audits of all seeds are compared with one claim. So a claim that holds is not called violated.
    """
    claims = [record.claim for record in records if record.claim]
    return max(claims, key=lambda claim: (claim["epsilon"], claim["proved"], claim["delta"]), default=None)


def _means(done: Sequence[Record], secret: str = "") -> Row:
    """Return the columns that are means of metrics: of all secrets together, or those that one secret has."""
    columns = mean_columns("leaderboard.csv", [done[0].threat], bool(secret))
    return {column.name: PARTS[column.part](done, column.metric, column.variable or secret) for column in columns}


def _most_exposed(done: Sequence[Record], secret: str) -> Row:
    """Return the value of a secret with the largest lift, its lift, and its share found at 1 % false alarms."""
    values = dict.fromkeys(m.group for m in done[0].metrics if m.name == "lift" and m.variable == secret)
    lifts = {value: lift for value in values if (lift := mean(done, "lift", secret, value)) is not None}
    if not lifts:
        return {}
    value = max(lifts, key=lambda value: lifts[value])
    found = mean(done, "tpr@fpr=0.01", secret, value)
    return {"exposed_value": value, "exposed_found": found, "exposed_lift": lifts[value]}


def _scored_secrets(record: Record) -> list[str]:
    """Return the secrets that have a row each: if there are several, those that are scored one by one."""
    scored = [secret for secret in record.secrets if any(map(record.value, _headlines(record), repeat(secret)))]
    return scored if len(record.secrets) > 1 else []


def _headlines(record: Record) -> tuple[str, str]:
    """Return the names that the headline of one secret may have."""
    return f"attack_{record.attack_metric}", "attack_score"


def _secret_row(row: Row, records: Sequence[Record], done: Sequence[Record], secret: str) -> Row:
    """Return the row of one secret; its columns about the victim are those of the row about all secrets."""
    of_secret = {**row, "secret": secret, "secrets": secret} | _means(done, secret) | _most_exposed(done, secret)
    scores = (mean(done, name, secret) for name in _headlines(done[0]))
    of_secret["attack_score"] = next((score for score in scores if score is not None), None)
    of_secret |= gap_columns(done, secret)
    of_secret["status"] = _status(records, done, of_secret)
    return of_secret


def _verdict(claim: Mapping[str, Any], audited: float | None) -> str:
    """Return the verdict on one release, also if a row is about several: audits bound the epsilon of one."""
    times = claim.get("observations", 1)
    return verdict(claim["epsilon"] / times, claim["proved"] / times, audited)


def _status(records: Sequence[Record], done: Sequence[Record], row: Row) -> str:
    other = next((record for record in records if record.status != "ok"), None)
    if not done:
        assert other, "a group has at least one record"
        return f"{other.status}: {other.reason}"
    parts = [f"{len(records) - len(done)} of {len(records)} seeds {other.status}: {other.reason}"] if other else []
    claimed = {(claim["epsilon"], claim["proved"], claim["delta"]) for record in done if (claim := record.claim)}
    if len(claimed) > 1:
        parts.append(
            f"claims differ between seeds: epsilon {min(claimed)[0]:g} to {max(claimed)[0]:g}, shown is the last"
        )
    caveat = (done[0].claim or {}).get("caveat", "")
    parts += [f"claim: {caveat}"] if caveat else []
    parts += list(dict.fromkeys(m.status for r in done for m in r.metrics if m.name == "fresh_noise" and m.value == 0))
    parts += list(dict.fromkeys(m.status for r in done for m in r.metrics if m.name == "words_kept" and m.status))
    areas = [m for r in done for m in r.metrics if m.name == "attack_auc" and row["secret"] in ("", m.variable)]
    parts += list(dict.fromkeys(metric.status for metric in areas if metric.status))
    high, bayes = row.get("empirical_privacy_high"), row.get("privacy_bayes")
    parts += [BEYOND] if high is not None and bayes is not None and high < bayes - ROUNDING else []
    if row.get("attack_score") is not None and not beats_constant(row):
        parts.append(LOST)
    elif row.get("attack_score") == 1 and threat_named(done[0].threat).doubts_perfect_scores:
        parts.append(PERFECT)
    return "; ".join(parts) or "ok"
