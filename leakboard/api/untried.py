"""Warn of what attacks on own vectors did not try: secrets without a result, and attacks that do not apply."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from leakboard.suite.names import Names

if TYPE_CHECKING:
    from leakboard.pipeline.records import Record

ATTACKS = ("linking", "presence")
"""Attacks that an encoder adds."""


def not_attacked(secrets: Iterable[str], records: Iterable[Record]) -> list[str]:
    """Return a warning for each secret without a result.

    If no attack has any result, return none: each of them has its own warning.
    """
    records = list(records)
    others = ("failed", "skipped")
    way_out = "" if any(record.status in others for record in records) else "; name one of these, or attacks: all"
    guessed = {secret for record in records if record.status == "ok" for secret in record.secrets}
    missed = [secret for secret in secrets if secret not in guessed] if guessed else []
    return [f"{secret} was not attacked: no attack that guesses it has a result{way_out}" for secret in missed]


def not_tried(records: Iterable[Record], names: Names) -> list[str]:
    """Return a line for each attack on stores that does not apply, with the reason.

    The line has the name of the release if the attack applies to another one. If no attack applies, there is none: the
    report has the reasons of all.

    Args:
        records: of all releases.
        names: of the releases.
    """
    records = list(records)
    skipped = [r for r in records if r.status == "skipped"] if any(r.status == "ok" for r in records) else []
    lines = []
    for attack in ATTACKS:
        tried = any(record.status == "ok" and record.attack.partition("(")[0] == attack for record in records)
        for record in (record for record in skipped if record.attack.partition("(")[0] == attack):
            release = f" on {names.name('victim', record.victim)!r}" if tried else ""
            lines.append(f"{attack} was not tried{release}: {record.reason}")
    return list(dict.fromkeys(lines))
